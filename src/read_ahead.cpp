// Decoding ahead of slabs that run on along a dimension.

#include <algorithm>
#include <utility>

#include "read_chunks.hpp"
#include "read_walk.hpp"

namespace tailrace {
namespace {

/// What is decoded ahead at most: enough to keep the helpers busy until the next slab.
constexpr std::uint64_t ahead_bytes_max = 16U << 20;
/// A run of slabs never has more chunks ahead than these bytes, but they may be tiny.
constexpr std::size_t ahead_chunks_max = 4096;

}  // namespace

void ChunkReader::post_ahead(StoredFile& file, ReadDataset& dataset, const StoredChunk& job) {
  const ChunkId id{dataset.number, job.chunk_index};
  const ReadCache::Entry entry = cache_.begin(id, dataset.chunk_bytes);
  if (entry == nullptr) return;
  const bool posted = team_.post([this, &file, &dataset, job, id, entry] {
    Buffer encoded(job.extent.encoded_bytes);
    Status done;
    if (!encoded.allocated()) done = Status(Code::out_of_memory, "no memory to work ahead");
    {
      const ReadStopwatch watch(counts_.fetch_ns);
      if (done.ok()) done = file.bytes().read_at(job.extent.address, encoded.bytes());
    }
    ++counts_.n_reads;
    counts_.fetched_bytes += encoded.n_bytes();
    if (done.ok()) {
      done = decode(dataset, job, std::as_const(encoded).bytes(),
                    {entry->values.data(), dataset.chunk_bytes});
    }
    cache_.finish(id, entry, done);
  });
  if (!posted) cache_.finish(id, entry, Status(Code::internal, "nobody works ahead"));
}

void ChunkReader::look_ahead(StoredFile& file, ReadDataset& dataset, const Slab& slab) {
  if (!options_.prefetch || team_.n_threads() <= 1) return;
  const std::optional<Slab> last = std::exchange(last_slab_, slab);
  const std::size_t last_dataset = std::exchange(last_dataset_, dataset.number);
  if (!last || last_dataset != dataset.number || last->rank() != slab.rank() ||
      last->count != slab.count || last->stride != slab.stride) {
    return;
  }
  // Where this slab goes on in exactly one dimension from where the last one ended.
  std::size_t along = slab.rank();
  for (std::size_t d = 0; d < slab.rank(); ++d) {
    if (slab.start[d] == last->start[d]) continue;
    if (along < slab.rank()) return;
    along = d;
    if (slab.start[d] != last->start[d] + slab.count[d] * slab.stride_of(d)) return;
  }
  if (along == slab.rank()) return;
  // The next row of chunks, or as many rows as the slab touches.
  const std::uint64_t extent = dataset.grid.chunk_shape[along];
  const std::uint64_t stride = slab.stride_of(along);
  const std::uint64_t end = slab.start[along] + (slab.count[along] - 1) * stride + 1;
  const std::uint64_t n_rows = (end - 1) / extent - slab.start[along] / extent + 1;
  const std::uint64_t ahead_start = ((end - 1) / extent + 1) * extent;
  const std::uint64_t ahead_end =
      std::min(ahead_start + n_rows * extent, dataset.grid.shape[along]);
  if (ahead_start >= ahead_end) return;
  Slab ahead = slab;
  const std::uint64_t next = slab.start[along] + slab.count[along] * stride;
  const std::uint64_t skipped =
      next >= ahead_start ? 0 : (ahead_start - next + stride - 1) / stride;
  ahead.start[along] = next + skipped * stride;
  if (ahead.start[along] >= ahead_end) return;
  ahead.count[along] = (ahead_end - 1 - ahead.start[along]) / stride + 1;
  if (last_ahead_ == ahead) return;
  TouchedChunks touched(dataset.grid, ahead);
  if (touched.n_chunks() * dataset.chunk_bytes >
      std::min(ahead_bytes_max, cache_.bytes_max() / 4)) {
    return;
  }
  std::vector<std::uint64_t> chunk_indexes;
  touched.next(ahead_chunks_max, chunk_indexes);
  std::vector<StoredChunk> found;
  // Whatever fails here fails again, and is told, when the slab is read.
  if (!dataset.index.find(file, *dataset.listed, dataset.n_chunks, chunk_indexes, found).ok()) {
    return;
  }
  last_ahead_ = ahead;
  for (const StoredChunk& job : found) {
    const bool worth = job.extent.encoded_bytes > 0 && !dataset.is_raw(job) &&
                       dataset.check_chunk(file.bytes(), job).ok() &&
                       !cache_.holds({dataset.number, job.chunk_index});
    if (!worth || !dataset.make_codec(options_.plugin_path).ok()) continue;
    post_ahead(file, dataset, job);
  }
}

}  // namespace tailrace
