// Functions shared by all kinds of array files, except the stages of a flush: comparing options,
// recording failures for the next collective call, and flushes that proceed while the program
// computes.

#include "array/array_engine.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/codec_registry.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "policy/bound_width.hpp"

namespace tailrace {

namespace {

/// Part of the memory cap used for staging: half. If the cap is small, an eighth, so that the rest
/// can encode a small chunk.
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
      memory_(staging_bytes(options.file.memory_bytes), options.spill_folder) {
  options_.file.whole_commits = true;
}

double ArrayEngine::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - born_).count();
}

Status ArrayEngine::agree_on_options(const Status& mine, const RankNumbers& along) {
  std::string patterns;
  for (const auto& [pattern, of_variable] : options_.variable_options) {
    patterns += "variables " + pattern + ": " + of_variable + "\n";
  }
  for (const auto& [pattern, bound] : options_.component_bounds) {
    patterns += "components " + pattern + ": " + error_bound_text(bound) + "\n";
  }
  TAILRACE_TRY(
      Output::agree(*comm_, path_, options_.file, options_.file.door, patterns, mine, along));
  if (options_.file.direct_io) {
    options_.file.alignment_bytes = std::max<std::uint64_t>(options_.file.alignment_bytes, 4096);
  }
  return Status();
}

void ArrayEngine::note_remark(const std::function<std::string()>& make) {
  if (!comm_->is_root()) return;
  // A flush proceeds if memory for a remark is missing.
  (void)local_part([&] {
    if (std::string remark = make(); !remark.empty()) remarks_.push_back(std::move(remark));
    return Status();
  });
}

void ArrayEngine::note_raw_chunks() {
  for (const ArrayVariable& variable : variables_) {
    if (variable.n_chunks_raw == 0 || !variable.resolved.codec) continue;
    note_remark([&] {
      return variable.definition.name() + ": " +
             raw_chunks_text(variable.n_chunks_raw, variable.n_chunks_written,
                             variable.resolved.codec->name());
    });
  }
}

void ArrayEngine::note_idle_options(std::span<const std::string> paths,
                                    const std::set<std::string>& component_globs) {
  closing_remark_ = idle_globs_remark(options_, paths, component_globs);
}

Status ArrayEngine::open_output(std::vector<std::string>& sharing) {
  TAILRACE_TRY(output_.open(*comm_, path_, options_.file));
  was_there_ = true;
  Status unshared;
  if (comm_->is_root()) {
    Result<std::vector<std::string>> found = datasets_that_share_chunks(output_.path());
    if (found.ok()) sharing = std::move(*found);
    unshared = found.status();
    if (!sharing.empty() && output_.file().reuses_space()) {
      unshared = Status(Code::unsupported,
                        "file \"" + path_ + "\": chunks of dataset \"" + sharing.front() +
                            "\" share their bytes with other chunks, which the file does not "
                            "protect (older concat --dedup); repack the file before changing it");
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
  return Status(Code::invalid_argument, "file \"" + path_ + "\" was opened for reading only");
}

std::uint64_t ArrayEngine::bits_of_staged() const {
  std::uint64_t bits = 0;
  for (std::size_t v = 0; v < std::min(variables_.size(), kBitsOfStaged); ++v) {
    if (variables_[v].staged()) bits |= std::uint64_t{1} << v;
  }
  return bits;
}

/// Record the first failure of this rank's puts, for the next collective call. @returns `failure`.
Status ArrayEngine::note(const Status& failure) {
  if (put_status_.ok()) put_status_ = failure;
  return failure;
}

void ArrayEngine::note_change(std::string_view what, std::string_view change) {
  const std::hash<std::string_view> hash;  // Needs no memory.
  for (const std::string_view text : {what, change}) {
    changes_ = (changes_ ^ hash(text)) * 0x100000001B3U;
  }
  comm_->decide(what, change);
}

void ArrayEngine::lose(const Status& failure) {
  if (lost_.ok()) lost_ = failure;
}

/// Start a collective call. It returns failures of puts on any rank since the last one, and
/// completes a flush in flight. Later puts are ordered after all earlier puts of any rank. If the
/// ranks have diverged, a flush would mix up their variables, so no flush follows. A rank that
/// closes the file meets the others here, in whatever call, until they close, too.
Status ArrayEngine::begin_collective(bool* all_close, const std::string& definitions,
                                     const Status& checked) {
  if (comm_->n_ranks() > 1) ++epoch_;  // a single rank's puts are ordered already
  Status mine = check_writable();
  if (mine.ok()) mine = output_.broken();
  const bool goes_on = mine.ok();
  if (mine.ok()) mine = lost_;
  if (mine.ok()) mine = std::exchange(put_status_, Status());
  if (mine.ok()) mine = checked;
  put_status_ = Status();
  std::uint64_t lost = lost_.ok() ? 0 : 1;
  std::uint64_t changes = changes_;
  std::uint64_t complement = ~changes_;
  RankNumbers along;
  std::uint64_t closing = all_close != nullptr ? 1 : 0;
  std::uint64_t some_close = closing;
  along.add(Reduction::max, lost, some_close);
  along.add(Reduction::min, changes, complement, closing);
  add_to_meeting(along);
  TextAgreement text(*comm_, "the definitions", definitions, Status());
  along.add_all(text.numbers());
  Status agreed = comm_->agree(mine, along);
  meeting_is_current_ = flight_ == nullptr;
  const Status alike = text.conclude();
  if (agreed.ok()) agreed = alike;
  if (all_close != nullptr) *all_close = closing != 0;
  if (agreed.ok() && closing != some_close) {
    agreed = Status(Code::disagreement,
                    "file \"" + path_ + "\": some ranks close the file, others do not");
  }
  if (!goes_on) return agreed;
  if (lost == 0 && changes == ~complement) {
    const Status completed = complete_flight();
    return agreed.ok() ? completed : agreed;
  }
  give_up_flight();
  // Same code on every rank, whichever failure was found first.
  if (agreed.ok())
    agreed = Status(Code::disagreement, "file \"" + path_ + "\": ranks made different changes");
  return output_.break_off(agreed, "the file stays at its last flush");
}

// --- A flush that proceeds while the program computes (modes async and in_situ).

bool ArrayEngine::is_under_way(std::size_t variable) const {
  return flight_ != nullptr && std::ranges::binary_search(flight_->variables, variable);
}

/// Test whether the flush has chunks to encode, creates no dataset, and threads can encode all
/// chunks. Plug-ins may call HDF5, which the program uses meanwhile, and layouts in rounds need
/// MPI. Equal on all ranks.
bool ArrayEngine::can_hand_over(const ArrayFlush& flush) const {
  if (!flush.created.empty()) return false;
  bool any = false;
  for (const std::size_t v : flush.variables) {
    const ArrayVariable& variable = variables_[v];
    if (variable.storage != ArrayStorage::chunked) continue;
    any = true;
    if (variable.resolved.codec == nullptr || needs_rounds(*variable.resolved.layout)) return false;
    for (const FilterSpec& filter : variable.resolved.codec->filters()) {
      const CodecEntry* const entry = find_filter(filter.filter_id);
      if (entry == nullptr || entry->plugin) return false;
    }
  }
  return any;
}

/// Do everything that needs the other ranks, and leave the rest to threads. Errors are agreed.
Status ArrayEngine::hand_over(std::unique_ptr<ArrayFlush> flush) {
  flush->handed_over = true;
  output_.tail().start_step();
  const std::uint64_t start = end_before_flush();
  const Status prepared = prepare_hand_over(*flush);
  if (!prepared.ok()) {
    forget_decisions(*flush);
    output_.hand_back(start);
    return prepared;
  }
  flight_ = std::move(flush);
  // If this rank runs out of memory here, it reports that when the flush is completed.
  flight_->handed = local_part([&] {
    output_.tail().expect(expected_bytes(*flight_));
    return Status();
  });
  if (!flight_->handed.ok()) output_.tail().raise_failure();
  flight_->lanes_s = now_s();
  flight_->executor->hand_over(true, [] {});
  flight_->handed_s = now_s();
  return Status();
}

Status ArrayEngine::prepare_hand_over(ArrayFlush& flush) {
  TAILRACE_TRY(prepare_new(flush));
  TAILRACE_TRY(load_places(flush));
  TAILRACE_TRY(find_chunks(flush));
  TAILRACE_TRY(write_plain(flush));
  // Sync what this rank has written directly; the lanes sync their own writes.
  const bool plain = flush.chunked.size() < flush.variables.size();
  Status mine;
  if (plain && syncs()) mine = output_.storage().sync();
  TAILRACE_TRY(comm_->agree(mine));
  ExecutorSettings settings = prepare_encoding(flush);
  settings.sync_behind = syncs();
  mine = local_part([&] {
    take_staged(flush);
    flush.executor =
        std::make_unique<Executor>(*comm_, output_.tail(), output_.storage(), flush.plans,
                                   flush.assigned.ownership, settings, *lane_stock_, flush.clock);
    return Status();
  });
  const Status agreed = comm_->agree(mine);
  if (!agreed.ok()) {
    flush.executor.reset();
    const Status again = stage_again(flush);  // The new logs are empty: needs no memory.
    return again.ok() ? agreed : again;
  }
  flush.staged_bytes = std::exchange(put_bytes_, 0);
  handed_over(flush);
  return Status();
}

/// Move the staged values to the flush, so that the program can put more.
void ArrayEngine::take_staged(ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    StagingLog& log = variables_[v].log;
    flush.taken.emplace_back(memory_, log.element_bytes());
    std::swap(flush.taken.back(), log);
  }
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    const auto at = std::ranges::lower_bound(flush.variables, flush.chunked[f]);
    flush.patches[f]->read_from(
        flush.taken[static_cast<std::size_t>(at - flush.variables.begin())]);
  }
}

/// Stage the values of a failed flush again, ordered before all later puts. Not collective.
Status ArrayEngine::stage_again(ArrayFlush& flush) {
  return local_part([&] {
    Status again;
    for (std::size_t i = 0; i < flush.taken.size(); ++i) {
      StagingLog& later = variables_[flush.variables[i]].log;
      StagingLog& taken = flush.taken[i];
      for (std::size_t e = 0; e < later.n_entries(); ++e) {
        if (again.ok()) again = later.put_into(taken, e, flush.epochs_before);
      }
      std::swap(taken, later);
    }
    return again;
  });
}

/// Estimate the bytes at the file's end that this rank's chunks need.
std::uint64_t ArrayEngine::expected_bytes(const ArrayFlush& flush) const {
  double n_bytes = 0;
  for (const ChunkJob& job : flush.assigned.ownership.jobs) {
    const ArrayVariable& variable = variables_[flush.chunked[job.field]];
    if (variable.resolved.layout->base_from() != BaseFrom::claim) continue;
    n_bytes += static_cast<double>(flush.plans[job.field].chunk_bytes()) * variable.encoded_share;
  }
  return static_cast<std::uint64_t>(n_bytes);
}

/// Complete a flush that was handed over. Collective; errors are agreed.
Status ArrayEngine::complete_flight() {
  if (flight_ == nullptr) return Status();
  const std::unique_ptr<ArrayFlush> flush = std::move(flight_);
  flush->completing_s = now_s();
  const Status finished = flush->executor->finish(flush->done);
  Status written = comm_->agree(flush->handed.ok() ? finished : flush->handed);
  flush->executor.reset();
  completing(*flush);
  if (written.ok()) {
    // Pack only now, so that rank 0's values are not held twice before.
    written = comm_->agree(local_part([&] { return pack(*flush); }));
  }
  if (written.ok()) {
    output_.see_other_nodes();
    const Status done = finish_flush(*flush);
    completed(*flush);
    return done;
  }
  completed(*flush);
  // The space that the flush claimed remains a gap, because metadata of the program may lie behind
  // it. Claims that a lane gave up waiting for are discarded. hand_back() also syncs the nodes, so
  // that none writes its delayed bytes over chunks that stay in place.
  output_.hand_back(output_.tail().end());
  forget_decisions(*flush);
  taken_back(*flush);
  put_bytes_ += flush->staged_bytes;
  if (const Status again = stage_again(*flush); !again.ok()) lose(again);
  return written.within("flush in the background (mode=async or in_situ)");
}

/// Drop the flush in flight, because no further flush publishes it. Collective.
void ArrayEngine::give_up_flight() {
  if (flight_ == nullptr) return;
  output_.tail().raise_failure();
  (void)flight_->executor->finish(flight_->done);
  flight_.reset();
}

void ArrayEngine::drop_flight() {
  if (flight_ == nullptr) return;
  if (output_.in_forked_child()) {  // The threads are the parent's.
    (void)flight_.release();
    (void)lane_stock_.release();
    return;
  }
  output_.tail().raise_failure();
  flight_.reset();
}

}  // namespace tailrace
