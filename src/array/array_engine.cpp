// What all kinds of array files do alike but for the flush: options compared, failures kept for the
// next collective call.

#include "array/array_engine.hpp"

#include <algorithm>
#include <utility>

#include "hdf5/chunk_index_reader.hpp"

namespace tailrace {

namespace {

/// A chunk that several ranks share takes six to seven times its bytes to lay together and encode,
/// of the half of memory that staging leaves; nine times, where elements are single bytes.
constexpr std::uint64_t kChunksPerMemory = 16;

/// HDF5 takes a chunk's bytes twice or three times to change some of it.
constexpr std::uint64_t kHdf5ChunksPerMemory = 4;

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
  TAILRACE_TRY(Output::agree(*comm_, path_, options_.file, Engine::array, patterns));
  if (options_.file.direct_io) {
    options_.file.alignment_bytes = std::max<std::uint64_t>(options_.file.alignment_bytes, 4096);
  }
  least_memory_bytes_ = options_.file.memory_bytes;
  comm_->allreduce(std::span<std::uint64_t>(&least_memory_bytes_, 1), Reduction::min);
  return Status();
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

bool ArrayEngine::fits(const Shape& chunk_shape, std::uint64_t element_bytes) const {
  const std::uint64_t most = least_memory_bytes_ / kChunksPerMemory;
  return n_elements(chunk_shape) <= most / std::max<std::uint64_t>(element_bytes, 2);
}

bool ArrayEngine::for_rank_0(const Shape& chunk_shape, std::uint64_t element_bytes,
                             const Codec& codec) const {
  if (fits(chunk_shape, element_bytes) || codec.lossy()) return false;
  if (codec.filters().empty()) return true;
  return n_elements(chunk_shape) <= least_memory_bytes_ / kHdf5ChunksPerMemory / element_bytes;
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

/// What every collective call begins with: whether some rank's put has failed since the last one.
/// What is put from now on is later than what any rank has put before.
Status ArrayEngine::begin_collective() {
  if (comm_->n_ranks() > 1) ++epoch_;  // alone, the order of the puts says it all
  Status mine = check_writable();
  if (mine.ok()) mine = output_.broken();
  if (mine.ok()) mine = std::exchange(put_status_, Status());
  put_status_ = Status();
  return comm_->agree(mine);
}

// --- what only rank 0 writes

void ArrayEngine::add_plain(std::size_t variable, ByteWriter& writer) const {
  const StagingLog& log = variables_[variable].log;
  for (std::size_t e = 0; e < log.n_entries(); ++e) {
    log.for_each_piece(e, [&](const Slab& slab, std::uint64_t epoch, const std::byte* values) {
      writer.add(static_cast<std::uint64_t>(variable));
      writer.add(epoch);
      writer.add(slab);
      writer.add_bytes({values, slab.n_elements() * log.element_bytes()});
    });
  }
}

ArrayEngine::PlainPart ArrayEngine::take_plain(ByteReader& reader) const {
  PlainPart part;
  part.variable = static_cast<std::size_t>(reader.take<std::uint64_t>());
  part.epoch = reader.take<std::uint64_t>();
  part.slab = reader.take_slab();
  const std::size_t element = variables_[part.variable].log.element_bytes();
  part.values = reader.take_bytes(part.slab.n_elements() * element);
  return part;
}

Status ArrayEngine::write_plain_parts(std::vector<PlainPart> parts, const PlainWrite& write) const {
  std::ranges::stable_sort(parts, [](const PlainPart& a, const PlainPart& b) {
    return std::pair(a.variable, a.epoch) < std::pair(b.variable, b.epoch);
  });
  for (std::size_t i = 0; i < parts.size();) {
    const std::size_t v = parts[i].variable;
    StagingMemory memory(UINT64_MAX, options_.spill_folder);
    StagingLog laid(memory, variables_[v].log.element_bytes());
    for (; i < parts.size() && parts[i].variable == v; ++i) {
      TAILRACE_TRY(laid.put(parts[i].slab, parts[i].values).within(quoted(v)));
    }
    laid.tidy();
    TAILRACE_TRY(write(v, laid).within(quoted(v)));
  }
  return Status();
}

}  // namespace tailrace
