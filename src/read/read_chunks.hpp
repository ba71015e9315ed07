// Slabs of chunked datasets on one rank: which chunks, fetched, decoded, kept, and read ahead.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/buffer.hpp"
#include "core/slab.hpp"
#include "exec/thread_team.hpp"
#include "read/read.hpp"
#include "read/read_cache.hpp"
#include "read/read_dataset.hpp"

namespace tailrace {

// --- The chunks of a grid that hold elements of a slab, in order.

/// Walks over them row-major; a chunk that a strided slab jumps over is not among them.
class TouchedChunks {
 public:
  /// @param slab  within the grid's shape, not empty.
  TouchedChunks(const ChunkGrid& grid, const Slab& slab);
  std::uint64_t n_chunks() const { return n_chunks_; }
  /// The next chunks, at most `n_max`; none: that was all.
  void next(std::size_t n_max, std::vector<std::uint64_t>& chunk_indexes);

 private:
  std::vector<std::vector<std::uint64_t>> touched_;  ///< Per dimension, coordinates in the grid.
  Shape n_per_dimension_;
  std::vector<std::size_t> at_;
  std::uint64_t n_chunks_ = 1;
  bool at_end_ = false;
};

// --- ChunkReader: slabs of chunked datasets on one rank: fetch, decode, hand over, keep, fetch
// ahead.
//
// Neighbouring chunks are fetched in large reads (gaps up to ReadOptions::gap_bytes are read over)
// and decoded by threads, straight into the caller's buffer where the chunk's values lie in one
// piece there, else into memory that is gathered from. Decoded chunks that a slab used in part, or
// that are few, are kept. When slabs run on along a dimension, the next chunks are decoded ahead.
//
// Memory: half of ReadOptions::memory_bytes for chunks kept, half for what is in work; one chunk
// (encoded, decoded and what its codec needs) is worked on in any case.

/// ReadReport while threads add to it.
struct ReadCounts {
  std::atomic<std::uint64_t> n_chunks{0};
  std::atomic<std::uint64_t> n_chunk_hits{0};
  std::atomic<std::uint64_t> decoded_bytes{0};
  std::atomic<std::uint64_t> fetched_bytes{0};
  std::atomic<std::uint64_t> n_reads{0};
  std::atomic<std::uint64_t> fetch_ns{0};
  std::atomic<std::uint64_t> decode_ns{0};
};

/// Adds the time of its life to a count.
class ReadStopwatch {
 public:
  explicit ReadStopwatch(std::atomic<std::uint64_t>& total) : total_(total) {}
  ReadStopwatch(const ReadStopwatch&) = delete;
  ReadStopwatch& operator=(const ReadStopwatch&) = delete;
  ~ReadStopwatch() {
    const auto spent = std::chrono::steady_clock::now() - start_;
    total_ += std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
  }

 private:
  std::atomic<std::uint64_t>& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class ChunkReader {
 public:
  /// @param n_threads  for decoding, the caller's among them.
  ChunkReader(const ReadOptions& options, std::uint64_t n_threads);
  ~ChunkReader() { forget(); }

  /// Whether a chunk, by its number, is somebody else's to read.
  using LeftOut = std::function<bool(std::uint64_t)>;
  /// Read a slab (checked, not empty). Not collective; one thread at a time.
  /// @param left_out  chunks whose elements stay as they are; empty: none.
  Status read(StoredFile& file, ReadDataset& dataset, const Slab& slab, std::byte* values,
              const LeftOut& left_out = {});
  /// Whether the chunk is kept here, decoded or nearly so.
  bool holds(const ChunkKey& id) { return cache_.holds(id); }
  /// Call visit(chunk number in `chunks`, its values) for each of these stored chunks, decoded; on
  /// any thread. Chunks in work take memory as in read(); none is kept.
  Status visit(StoredFile& file, ReadDataset& dataset, std::span<const StoredChunk> chunks,
               const std::function<void(std::size_t, std::span<const std::byte>)>& visit);
  /// Read a slab of a contiguous dataset, by threads if it is large.
  Status read_contiguous(StoredFile& file, const ReadDataset& dataset, const Slab& slab,
                         std::byte* values);
  /// Stop what is done ahead and drop all that is kept.
  void forget();

  const ReadCounts& counts() const { return counts_; }
  std::uint64_t work_bytes() const { return work_bytes_; }

 private:
  /// A slab on its way.
  struct Reading {
    StoredFile& file;
    ReadDataset& dataset;
    const Slab& slab;
    std::byte* values;
    bool keep_whole = false;  ///< Also chunks that are used up are kept.
  };
  /// Stored chunks that one read brings.
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  /// What a thread works with.
  struct Lane {
    Buffer fetched;
    Buffer decoded;
  };
  using Work = std::function<Status(Lane&, std::size_t, std::span<const std::byte>)>;

  Status read_batch(Reading& reading, std::span<const std::uint64_t> chunk_indexes);
  Status take_hits(Reading& reading, std::span<const std::pair<StoredChunk, ReadCache::Entry>> hits,
                   std::vector<StoredChunk>& jobs);
  Status for_each_fetched(StoredFile& file, ReadDataset& dataset, std::span<StoredChunk> jobs,
                          const Work& work);
  Status fetch_group(StoredFile& file, const ReadDataset& dataset,
                     std::span<const StoredChunk> jobs, const Group& group, std::size_t lane,
                     const Work& work);
  std::uint64_t n_lanes_for(const ReadDataset& dataset, std::span<const StoredChunk> jobs) const;
  Status finish_chunk(Reading& reading, Lane& lane, const StoredChunk& job,
                      std::span<const std::byte> encoded);
  Status read_raw_part(Reading& reading, Lane& lane, const StoredChunk& job, const SlabPart& part);
  Status decode(const ReadDataset& dataset, const StoredChunk& job,
                std::span<const std::byte> encoded, std::span<std::byte> values);
  void look_ahead(StoredFile& file, ReadDataset& dataset, const Slab& slab);
  void post_ahead(StoredFile& file, ReadDataset& dataset, const StoredChunk& job);

  ReadOptions options_;
  std::uint64_t work_bytes_;
  ReadCache cache_;
  ReadCounts counts_;
  std::vector<Lane> lanes_;
  /// The last slab, and how far ahead of it was decoded.
  std::optional<Slab> last_slab_;
  std::size_t last_dataset_ = 0;
  std::optional<Slab> last_ahead_;
  ThreadTeam team_;  // Last: its threads use the others.
};

}  // namespace tailrace
