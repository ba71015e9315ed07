// ChunkReader: reads slabs on one rank. Finds, fetches, decodes, caches and prefetches chunks.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "chunk/chunk_cache.hpp"
#include "chunk/chunk_file.hpp"
#include "chunk/read_dataset.hpp"
#include "chunk/read_options.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/thread_team.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

// --- TouchedChunks: the chunks of a grid that hold elements of a slab.

/// Row-major iterator over these chunks; it omits chunks that a strided slab jumps over.
class TouchedChunks {
 public:
  /// @param slab  within the grid's shape, not empty.
  TouchedChunks(const ChunkGrid& grid, const Slab& slab);
  std::uint64_t n_chunks() const { return n_chunks_; }
  /// Return the next chunks, at most `n_max`; none at the end.
  void next(std::size_t n_max, std::vector<std::uint64_t>& chunk_indexes);

 private:
  std::vector<std::vector<std::uint64_t>> touched_;  ///< Per dimension, coordinates in the grid.
  Shape n_per_dimension_;
  std::vector<std::size_t> at_;
  std::uint64_t n_chunks_ = 1;
  bool at_end_ = false;
};

// --- ChunkReader: slabs of chunked datasets on one rank: fetch, decode, copy, cache, prefetch.
//
// Neighbouring chunks are fetched in large reads, including gaps of up to ReadOptions::gap_bytes,
// and decoded by threads. Values are decoded directly into the caller's buffer if the chunk is
// contiguous there, else into scratch memory and copied. Decoded chunks are cached if a slab used
// them in part, or if it is small. With one_pass, used-up chunks are not cached. A slab of more
// than twice the cache's capacity then caches none, since its chunks would evict each other. When
// slabs advance along a dimension, the next chunks are decoded ahead.
//
// Memory: half of ReadOptions::memory_bytes is for the cache and half for work. A slab that caches
// nothing may also use free cache memory for work. One chunk (encoded, decoded and what its codec
// needs) is processed in any case.

/// Counters of ReadReport, updated by threads.
struct ReadCounts {
  std::atomic<std::uint64_t> n_chunks{0};
  std::atomic<std::uint64_t> n_chunk_hits{0};
  std::atomic<std::uint64_t> decoded_bytes{0};
  std::atomic<std::uint64_t> fetched_bytes{0};
  std::atomic<std::uint64_t> n_reads{0};
  std::atomic<std::uint64_t> fetch_ns{0};
  std::atomic<std::uint64_t> decode_ns{0};
};

/// Adds its lifetime to a counter.
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

/// Threads to decode with on this rank: ReadOptions::n_threads, or the rank's share of the cores.
std::uint64_t n_decode_threads(const Comm& comm, const ReadOptions& options);

/// Reads slabs of a file's datasets on one rank.
class ChunkReader {
 public:
  /// @param n_threads  for decoding, including the caller.
  ChunkReader(const ReadOptions& options, std::uint64_t n_threads);
  ~ChunkReader() { forget(); }

  /// Prepare a dataset of the file's list, once; `listed` must stay valid. @error corrupt
  Status prepare(std::size_t number, const StoredDataset& listed, ReadDataset*& dataset);
  ReadDataset& prepared(std::size_t number) { return prepared_.at(number); }
  std::map<std::size_t, ReadDataset>& all_prepared() { return prepared_; }
  /// Read a slab (checked, not empty) of any dataset: by chunks, as one contiguous array, or by
  /// HDF5 if only HDF5 can read it. Not collective; one thread at a time.
  Status read(ChunkFile& file, std::size_t number, const StoredDataset& listed, const Slab& slab,
              std::span<std::byte> values, double abs_bound = 0);

  /// Predicate on a chunk's number: true if another rank reads it.
  using LeftOut = std::function<bool(std::uint64_t)>;
  /// Read a slab of a chunked dataset.
  /// @param left_out  chunks whose elements are left unchanged; empty: none.
  Status read(ChunkFile& file, ReadDataset& dataset, const Slab& slab, std::byte* values,
              const LeftOut& left_out = {}, double abs_bound = 0);
  /// True if the slab is read from parts of chunks, without sharing these with other ranks. It then
  /// omits at least every second value along all axes of the coarse views, or
  /// ReadOptions::abs_bound allows it. Makes the dataset's codec.
  bool reads_parts(ReadDataset& dataset, const Slab& slab) const;
  /// True if the chunk is cached or being decoded.
  bool holds(const ChunkKey& id) { return cache_.holds(id); }
  /// Call visit(position in `chunks`, values) for each of these stored chunks, decoded; on any
  /// thread. Uses memory for work like read(); caches none.
  Status visit(ChunkFile& file, ReadDataset& dataset, std::span<const StoredChunk> chunks,
               const std::function<void(std::size_t, std::span<const std::byte>)>& visit);
  /// Read a slab of a contiguous dataset; on several threads if it is large.
  Status read_contiguous(ChunkFile& file, const ReadDataset& dataset, const Slab& slab,
                         std::byte* values);
  /// Stop decoding ahead and empty the cache.
  void forget();
  /// Same as forget(), and drop all prepared datasets. Collective if the ranks have opened indexes.
  void forget_all();
  /// Make the destruction of the indexes local.
  void abandon();

  const ReadCounts& counts() const { return counts_; }
  std::uint64_t work_bytes() const { return work_bytes_; }

 private:
  /// A slab in the array that the coarse views of all chunks form.
  struct ViewSlab {
    int level = 0;
    ChunkGrid grid;  ///< Grid of the same chunks, coarser.
    Slab slab;
    std::uint64_t chunk_bytes = 0;
  };
  /// A slab being read.
  struct Reading {
    ChunkFile& file;
    ReadDataset& dataset;
    const Slab& slab;
    std::byte* values;
    const ViewSlab* view = nullptr;  ///< Null: read complete chunks.
    double abs_bound = 0;     ///< Above 0: read only first bytes of chunks, where these suffice.
    bool keep_whole = false;  ///< Cache chunks that are used up, too.
    bool keep_parts = true;   ///< Cache chunks that are used in part.
  };
  /// Stored chunks that one read fetches.
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  /// Scratch memory of a thread.
  struct Lane {
    Buffer fetched;
    Buffer decoded;
  };
  using Work = std::function<Status(Lane&, std::size_t, std::span<const std::byte>)>;

  Status read_batch(Reading& reading, std::span<const std::uint64_t> chunk_indexes);
  /// Return the slab at the coarsest level that has all its values; std::nullopt: no level has.
  std::optional<ViewSlab> view_slab(ReadDataset& dataset, const Slab& slab) const;
  Status read_views(Reading& reading, std::span<const StoredChunk> chunks);
  Status read_view(Reading& reading, Lane& lane, const StoredChunk& job);
  /// Return the effective bound for prefixes; 0 if the dataset's chunks are read completely.
  double prefix_bound(ReadDataset& dataset, double abs_bound) const;
  Status read_prefix(Reading& reading, Lane& lane, const StoredChunk& job);
  /// Read a chunk's first bytes, at least a page, into a lane's memory, which has room for the
  /// chunk.
  Status fetch_head(const Reading& reading, const StoredChunk& job, std::uint64_t n_bytes,
                    Lane& lane, std::uint64_t& n_fetched);
  /// Read a range of a chunk's bytes.
  Status fetch_part(const Reading& reading, const StoredChunk& job, std::uint64_t begin,
                    std::uint64_t n_bytes, std::byte* to);
  /// True if the slab needs all values of the chunk.
  static bool uses_up(const Reading& reading, const SlabPart& part, const Box& box);
  Status take_hits(Reading& reading,
                   std::span<const std::pair<StoredChunk, ChunkCache::Entry>> hits,
                   std::vector<StoredChunk>& jobs);
  Status for_each_fetched(ChunkFile& file, ReadDataset& dataset, std::span<StoredChunk> jobs,
                          std::uint64_t work_bytes, const Work& work);
  Status fetch_group(ChunkFile& file, const ReadDataset& dataset, std::span<const StoredChunk> jobs,
                     const Group& group, std::size_t lane, const Work& work);
  std::uint64_t n_lanes_for(const ReadDataset& dataset, std::span<const StoredChunk> jobs,
                            std::uint64_t work_bytes) const;
  std::uint64_t work_bytes_for(const Reading& reading);
  /// @param prefix  the bytes are only a chunk's first ones; the result is not cached.
  Status finish_chunk(Reading& reading, Lane& lane, const StoredChunk& job,
                      std::span<const std::byte> encoded, bool prefix = false);
  Status read_raw_part(Reading& reading, Lane& lane, const StoredChunk& job, const SlabPart& part);
  Status decode(const ReadDataset& dataset, const StoredChunk& job,
                std::span<const std::byte> encoded, std::span<std::byte> values,
                bool prefix = false);
  void look_ahead(ChunkFile& file, ReadDataset& dataset, const Slab& slab);
  void post_ahead(ChunkFile& file, ReadDataset& dataset, const StoredChunk& job);

  ReadOptions options_;
  std::map<std::size_t, ReadDataset> prepared_;  ///< Same order on all ranks, for windows.
  std::uint64_t work_bytes_;
  ChunkCache cache_;
  ReadCounts counts_;
  std::vector<Lane> lanes_;
  /// The last slab, and the last one decoded ahead.
  std::optional<Slab> last_slab_;
  std::size_t last_dataset_ = 0;
  std::optional<Slab> last_ahead_;
  ThreadTeam team_;  // Last: its threads use the members above.
};

}  // namespace tailrace
