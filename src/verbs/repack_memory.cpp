// Divides the memory; each share is as large as the plan can use.

#include "verbs/repack_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codec/deflate.hpp"
#include "core/options.hpp"

namespace tailrace::verbs {
namespace {

/// Share of the reader in addition to encoding: for chunks that boxes have used in part, and for
/// chunks that are being decoded. The maximum corresponds to the default cap.
constexpr std::uint64_t kMemoryOverReading = 4;
constexpr std::uint64_t kReadingBytesMin = 4U << 20;
constexpr std::uint64_t kReadingBytesMax = 256U << 20;
/// Memory of a process in addition to its buffers.
constexpr std::uint64_t kProcessBytes = 64U << 20;
/// Chunks for which memory must remain if boxes that are read together use most of it.
constexpr std::uint64_t kEncodedChunksMin = 16;
/// Minimum memory of a Writer: this many chunks of the output and a MiB, whatever the codec. A trz
/// preset that tries decimals needs nine chunks.
constexpr std::uint64_t kEncodedChunksLeast = 10;

/// Memory for boxes that are read together because stored chunks span several of them. If not all
/// boxes fit, each piece decodes the stored chunks again.
std::uint64_t tile_bytes_of(std::uint64_t memory_bytes) {
  const std::uint64_t most = memory_bytes / 8 * 5;
  return std::max(memory_bytes / 4, most - std::min(most, kProcessBytes));
}

/// A stored chunk with filters, which must be decoded completely whatever its size.
struct LargestStored {
  const StoredDataset* dataset = nullptr;
  std::uint64_t chunk_bytes = 0;   ///< Size after decoding.
  std::uint64_t needed_bytes = 0;  ///< Upper limit of memory to decode it.
};

/// Memory to decode a chunk of this dataset: its encoded bytes, its values, and a block for each
/// further filter. At most two blocks exist, used in turn, up to an eighth larger than the values.
/// A plug-in's filter needs a block even if it is the only filter; deflate does not.
LargestStored need_of_stored_chunk(const StoredDataset& stored) {
  LargestStored need{&stored, n_elements(stored.storage.chunk_shape) * stored.value_bytes(), 0};
  // Sizes of single chunks are only in the index; filters hardly ever enlarge them.
  const std::uint64_t encoded_bytes = std::min(stored.stored_bytes, need.chunk_bytes);
  const auto& filters = stored.storage.filters;
  const bool is_deflate = filters.size() == 1 && filters.front().filter_id == kDeflateFilterId;
  const std::uint64_t n_blocks = is_deflate ? 0 : filters.size() > 2 ? 2 : 1;
  const std::uint64_t block_bytes = need.chunk_bytes + need.chunk_bytes / 8;
  need.needed_bytes = encoded_bytes + need.chunk_bytes + n_blocks * block_bytes;
  return need;
}

std::uint64_t chunk_bytes_of(const PlannedField& planned, std::uint64_t value_bytes) {
  return n_elements(*planned.definition.options.chunk_shape) * value_bytes;
}

/// The stored chunk that needs the most memory to decode; copied ones are ignored. Cost: O(fields).
LargestStored largest_stored(const MemoryQuestion& question) {
  LargestStored largest;
  for (const PlannedField& planned : question.plan) {
    const StoredDataset& stored = question.stored[planned.input_index];
    const bool decoded = planned.definition.as_stored == nullptr && stored.stored_bytes > 0 &&
                         !stored.storage.filters.empty();
    if (!decoded) continue;
    const LargestStored need = need_of_stored_chunk(stored);
    if (need.needed_bytes > largest.needed_bytes) largest = need;
  }
  return largest;
}

/// Memory for the largest stored chunk if the reader's share is too small for it; else 0.
/// @param remark  set if that exceeds the memory limit.
/// @error out_of_memory  asked, and too little is left for the output.
Result<std::uint64_t> share_of_reading(const MemoryQuestion& question, const LargestStored& largest,
                                       std::string& remark) {
  // Half of the reader's share is for chunks that boxes have used in part.
  if (largest.needed_bytes <= reading_bytes_of(question.all_bytes) / 2) return std::uint64_t{0};
  std::uint64_t chunk_bytes = 0;
  for (const PlannedField& planned : question.plan) {
    if (planned.definition.as_stored != nullptr) continue;
    const std::size_t value_bytes = dtype_bytes(planned.definition.dtype);
    chunk_bytes = std::max(chunk_bytes, chunk_bytes_of(planned, value_bytes));
  }
  const std::uint64_t least_bytes =
      kEncodedChunksLeast * chunk_bytes + TileReader::pack_bytes(UINT64_MAX) + (1U << 20);
  const std::uint64_t needed_bytes = largest.needed_bytes + least_bytes;
  // Reserve memory only if the user has set it. Less memory for the rest would make tiles decode
  // stored chunks many times.
  if (needed_bytes <= question.all_bytes) return question.memory_given ? largest.needed_bytes : 0;
  const std::string why = fmt::format(
      "dataset \"{}\": a stored chunk of {} must be decoded as a whole, which needs up to {}",
      largest.dataset->path, bytes_text(largest.chunk_bytes), bytes_text(largest.needed_bytes));
  if (question.memory_given) {
    return Status(
        Code::out_of_memory,
        fmt::format("{}; --memory {} is too small, at least {}MB are needed", why,
                    bytes_text(question.all_bytes), (needed_bytes + 999'999) / 1'000'000));
  }
  remark = fmt::format("{}, more than the memory limit", why);
  return std::uint64_t{0};
}

}  // namespace

std::uint64_t reading_bytes_of(std::uint64_t memory_bytes) {
  return std::clamp(memory_bytes / kMemoryOverReading, kReadingBytesMin, kReadingBytesMax);
}

ChunkTiles tiles_of(const PlannedField& planned, const StoredDataset& stored, int n_ranks,
                    std::uint64_t bytes_max) {
  const ChunkGrid grid{planned.definition.shape, *planned.definition.options.chunk_shape};
  const std::uint64_t chunk_bytes = chunk_bytes_of(planned, stored.value_bytes());
  // Limit a tile to a rank's run of chunks, so that boxes do not extend beyond the runs.
  const std::uint64_t n_max = std::min(bytes_max / std::max<std::uint64_t>(chunk_bytes, 1),
                                       grid.n_chunks() / static_cast<unsigned>(n_ranks));
  return ChunkTiles(grid, stored.storage.chunk_shape, std::max<std::uint64_t>(n_max, 1));
}

Result<MemoryDivision> divide_memory(const MemoryQuestion& question) {
  MemoryDivision division;
  const LargestStored largest = largest_stored(question);
  TAILRACE_TAKE(const std::uint64_t reading_bytes,
                share_of_reading(question, largest, division.remark));
  const std::uint64_t all_bytes = question.all_bytes - reading_bytes;
  std::uint64_t tile_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  for (const PlannedField& planned : question.plan) {
    const StoredDataset& stored = question.stored[planned.input_index];
    const std::uint64_t each = chunk_bytes_of(planned, stored.value_bytes());
    chunk_bytes = std::max(chunk_bytes, each);
    const ChunkTiles tiles = tiles_of(planned, stored, question.n_ranks, UINT64_MAX);
    const std::uint64_t in_tile = tiles.chunks_of_tile();
    if (in_tile > 1) tile_bytes = std::max(tile_bytes, in_tile * each);
  }
  tile_bytes = std::min(tile_bytes, tile_bytes_of(all_bytes));
  const bool scratch = tile_bytes > 0 && question.scratch;
  const std::uint64_t pack_bytes = scratch ? TileReader::pack_bytes(tile_bytes) : 0;
  const std::uint64_t least_bytes = kEncodedChunksMin * chunk_bytes + pack_bytes;
  const bool divides = all_bytes - tile_bytes >= least_bytes;
  division.held_bytes = divides ? tile_bytes : all_bytes / kMemoryOverReading;
  division.set_aside_bytes = reading_bytes + pack_bytes + (divides ? tile_bytes : 0);
  if (!scratch) return division;
  // A scratch file is filled in boxes of complete stored chunks, and one may exceed the cache.
  const std::uint64_t stored_bytes =
      question.memory_given ? largest.chunk_bytes : division.held_bytes;
  const std::uint64_t excess_bytes = stored_bytes - std::min(stored_bytes, division.held_bytes);
  const bool fits = divides && all_bytes - tile_bytes >= least_bytes + excess_bytes;
  if (fits) division.set_aside_bytes += excess_bytes;
  division.scratch_whole_bytes = fits ? stored_bytes : 0;
  return division;
}

}  // namespace tailrace::verbs
