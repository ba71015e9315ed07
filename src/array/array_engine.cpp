// What all kinds of array files do alike but for the flush: options compared, failures kept for the
// next collective call.

#include "array/array_engine.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "hdf5/chunk_index_reader.hpp"

namespace tailrace {

namespace {

/// What of the memory cap is for staging: half, as long as the other half encodes a small chunk.
std::uint64_t staging_bytes(std::uint64_t memory_bytes) {
  constexpr std::uint64_t kSmallCapBytes = 3U << 20;
  return memory_bytes < kSmallCapBytes ? memory_bytes / 8 : memory_bytes / 2;
}

}  // namespace

ArrayEngine::ArrayEngine(std::unique_ptr<Comm> comm, std::string path,
                         const ArrayFileOptions& options)
    : comm_(std::move(comm)),
      path_(std::move(path)),
      options_(options),
      memory_(staging_bytes(options.file.memory_bytes), options.spill_folder) {}

double ArrayEngine::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - born_).count();
}

Status ArrayEngine::agree_on_options(const std::string& more) {
  std::string patterns = more;
  for (const auto& [pattern, of_variable] : options_.variable_options) {
    patterns += "variables " + pattern + ": " + of_variable + "\n";
  }
  for (const auto& [pattern, bound] : options_.component_bounds) {
    patterns += "components " + pattern + ": " + error_bound_text(bound) + "\n";
  }
  TAILRACE_TRY(Output::agree(*comm_, path_, options_.file, Engine::array, patterns));
  if (options_.file.direct_io) {
    options_.file.alignment_bytes = std::max<std::uint64_t>(options_.file.alignment_bytes, 4096);
  }
  return Status();
}

void ArrayEngine::note_idle_options(std::span<const std::string> paths,
                                    const std::set<std::string>& component_globs) {
  std::string idle;
  const auto note = [&](const std::string& pattern) {
    idle += (idle.empty() ? "\"" : ", \"") + pattern + "\"";
  };
  for (const auto& [pattern, of_variable] : options_.variable_options) {
    const auto is_named = [&pattern = pattern](const std::string& path) {
      return glob_matches(pattern, path);
    };
    if (std::ranges::none_of(paths, is_named)) note(pattern);
  }
  for (const auto& [pattern, bound] : options_.component_bounds) {
    if (!component_globs.contains(pattern)) note("component:" + pattern);
  }
  if (!idle.empty())
    closing_remark_ = "nothing in the file is called as these options say: " + idle;
}

Status ArrayEngine::open_output(std::vector<std::string>& sharing) {
  TAILRACE_TRY(output_.open(*comm_, path_, options_.file));
  Status unshared;
  if (comm_->is_root()) {
    sharing = datasets_that_share_chunks(output_.path());
    if (!sharing.empty() && output_.file().reuses_space()) {
      unshared = Status(Code::unsupported,
                        "file \"" + path_ + "\": chunks of dataset \"" + sharing.front() +
                            "\" lie where others do, too, and the file does not say that such "
                            "places are kept (an earlier concat --dedup did not): nothing can be "
                            "changed in it; repack it first");
    }
  }
  return comm_->agree(unshared);
}

Status ArrayEngine::check_open() const {
  if (closed_) return Status(Code::invalid_argument, "file \"" + path_ + "\" is closed");
  return Status();
}

Status ArrayEngine::check_writable() const {
  TAILRACE_TRY(check_open());
  if (writable_) return Status();
  return Status(Code::invalid_argument, "file \"" + path_ + "\" was opened for reading");
}

/// Keep the first failure of this rank's puts, for the next collective call. @returns `failure`.
Status ArrayEngine::note(const Status& failure) {
  if (put_status_.ok()) put_status_ = failure;
  return failure;
}

void ArrayEngine::note_change(std::string_view what, std::string_view change) {
  const std::hash<std::string_view> hash;  // Takes no memory.
  for (const std::string_view text : {what, change}) {
    changes_ = (changes_ ^ hash(text)) * 0x100000001B3U;
  }
  comm_->decide(what, change);
}

void ArrayEngine::lose(const Status& failure) {
  if (lost_.ok()) lost_ = failure;
}

/// What every collective call begins with: whether some rank's put has failed since the last one.
/// What is put from now on is later than what any rank has put before. Where ranks have come to
/// differ, flushes would mix up their variables: there is none any more. A rank that closes meets
/// the others here, whatever they have begun, as often as it takes until they close, too.
Status ArrayEngine::begin_collective(bool* all_close) {
  if (comm_->n_ranks() > 1) ++epoch_;  // alone, the order of the puts says it all
  Status mine = check_writable();
  if (mine.ok()) mine = output_.broken();
  const bool goes_on = mine.ok();
  if (mine.ok()) mine = lost_;
  if (mine.ok()) mine = std::exchange(put_status_, Status());
  put_status_ = Status();
  std::uint64_t lost = lost_.ok() ? 0 : 1;
  std::uint64_t changes = changes_;
  std::uint64_t complement = ~changes_;
  RankNumbers along;
  std::uint64_t closing = all_close != nullptr ? 1 : 0;
  std::uint64_t some_close = closing;
  along.add(Reduction::max, lost, some_close);
  along.add(Reduction::min, changes, complement, closing);
  Status agreed = comm_->agree(mine, along);
  if (all_close != nullptr) *all_close = closing != 0;
  if (agreed.ok() && closing != some_close) {
    agreed = Status(Code::disagreement, "some ranks close the file, others do not yet");
  }
  if (!goes_on || (lost == 0 && changes == ~complement)) return agreed;
  // The same everywhere, behind whichever failure was the first to be heard of.
  if (agreed.ok()) agreed = Status(Code::disagreement, "ranks have made different changes");
  return output_.break_off(agreed, "the file stays at its last flush");
}

}  // namespace tailrace
