// Slabs of datasets on one rank: which chunks, fetched, decoded, kept, and read ahead.

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

#include "core/slab.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/thread_team.hpp"
#include "read/read.hpp"
#include "read/read_dataset.hpp"
#include "trz/base/buffer.hpp"

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

// --- ReadCache: decoded chunks that are likely to be read again, least recently used ones dropped.
//
// Invariant 1: what is kept is at most the cap given, ready or still being decoded.
// Invariant 2: an entry's values do not change once it is ready; who holds it may read without a
// lock, also after it has been dropped from here.

/// One decoded chunk, in native byte order, not cut at the dataset's edge.
struct CachedChunk {
  Buffer values;
  bool ready = false;  ///< Under the cache's lock.
  Status failure;      ///< Of a chunk that was decoded ahead; valid once ready.
};

class ReadCache {
 public:
  using Entry = std::shared_ptr<CachedChunk>;

  explicit ReadCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// The chunk if it is here, perhaps still being decoded; it counts as used. Null: not here.
  Entry find(const ChunkKey& id);
  /// Wait until it is ready. @returns false: decoding it ahead has failed, and who needs it finds
  /// out why by decoding it.
  bool wait(const Entry& entry);
  /// Whether find() would have it.
  bool holds(const ChunkKey& id);
  /// Make room for a chunk that the caller decodes; then finish() it. Others are dropped for it,
  /// but none that is being decoded. Null: no room, or no memory, or it is here already.
  Entry begin(const ChunkKey& id, std::uint64_t n_bytes);
  /// The entry is ready, or has failed.
  void finish(const ChunkKey& id, const Entry& entry, Status failure);
  /// Drop this one, if it is here and ready.
  void drop(const ChunkKey& id);
  /// Drop all. Nothing may be under way.
  void clear();
  /// Bytes that one more entry may have without dropping anything.
  std::uint64_t bytes_free();
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  struct Kept {
    Entry entry;
    std::list<ChunkKey>::iterator use;
  };
  void drop(std::unordered_map<ChunkKey, Kept, ChunkKeyHash>::iterator kept);

  std::uint64_t bytes_max_;
  std::uint64_t n_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::unordered_map<ChunkKey, Kept, ChunkKeyHash> kept_;
  std::list<ChunkKey> uses_;  ///< Least recent first.
};

// --- ChunkReader: slabs of chunked datasets on one rank: fetch, decode, hand over, keep, fetch
// ahead.
//
// Neighbouring chunks are fetched in large reads (gaps up to ReadOptions::gap_bytes are read over)
// and decoded by threads, straight into the caller's buffer where the chunk's values lie in one
// piece there, else into memory that is gathered from. Decoded chunks that a slab used in part, or
// that are few, are kept; in one pass no chunk is that a slab used up, and none of a slab of more
// than twice the chunks that may be kept, most of which would be dropped for each other. When slabs
// run on along a dimension, the next chunks are decoded ahead.
//
// Memory: half of ReadOptions::memory_bytes for chunks kept, half for what is in work, which a slab
// that keeps none may have of the former, too; one chunk (encoded, decoded and what its codec
// needs) is worked on in any case.

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

  /// Prepare a dataset of the file's list, which must stay where it is; once. @error corrupt
  Status prepare(std::size_t number, const StoredDataset& listed, ReadDataset*& dataset);
  ReadDataset& prepared(std::size_t number) { return prepared_.at(number); }
  std::map<std::size_t, ReadDataset>& all_prepared() { return prepared_; }
  /// Read a slab (checked, not empty) of any dataset: by chunks, in one piece, or by HDF5 what only
  /// HDF5 can read. Not collective; one thread at a time.
  Status read(StoredFile& file, std::size_t number, const StoredDataset& listed, const Slab& slab,
              std::span<std::byte> values, double abs_bound = 0);

  /// Whether a chunk, by its number, is somebody else's to read.
  using LeftOut = std::function<bool(std::uint64_t)>;
  /// Read a slab of a chunked dataset.
  /// @param left_out  chunks whose elements stay as they are; empty: none.
  Status read(StoredFile& file, ReadDataset& dataset, const Slab& slab, std::byte* values,
              const LeftOut& left_out = {}, double abs_bound = 0);
  /// Whether the slab is read from parts of chunks, by itself, without sharing these: as it leaves
  /// out at least every second value along all axes along which coarse views do, or because of
  /// ReadOptions::abs_bound. Makes the dataset's codec.
  bool reads_parts(ReadDataset& dataset, const Slab& slab) const;
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
  /// ... and all that was prepared. Collective where the ranks have opened indexes.
  void forget_all();
  /// Make forgetting these indexes local.
  void abandon();

  const ReadCounts& counts() const { return counts_; }
  std::uint64_t work_bytes() const { return work_bytes_; }

 private:
  /// A slab as one of the array that the views of all chunks make up.
  struct ViewSlab {
    int level = 0;
    ChunkGrid grid;  ///< The same chunks, coarser.
    Slab slab;
    std::uint64_t chunk_bytes = 0;
  };
  /// A slab on its way.
  struct Reading {
    StoredFile& file;
    ReadDataset& dataset;
    const Slab& slab;
    std::byte* values;
    const ViewSlab* view = nullptr;  ///< Null: from whole chunks.
    double abs_bound = 0;            ///< Above 0: from chunks' first bytes, where these will do.
    bool keep_whole = false;         ///< Also chunks that are used up are kept.
    bool keep_parts = true;          ///< Chunks that are used in part are kept.
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
  /// The slab at the coarsest level that holds all of it; nothing: views do not.
  std::optional<ViewSlab> view_slab(ReadDataset& dataset, const Slab& slab) const;
  Status read_views(Reading& reading, std::span<const StoredChunk> chunks);
  Status read_view(Reading& reading, Lane& lane, const StoredChunk& job);
  /// What counts of the bound that is asked for: 0 where the dataset's chunks are read whole.
  double prefix_bound(ReadDataset& dataset, double abs_bound) const;
  Status read_prefix(Reading& reading, Lane& lane, const StoredChunk& job);
  /// Read a chunk's first bytes into a lane's memory, which has room for all: a page at least.
  Status fetch_head(const Reading& reading, const StoredChunk& job, std::uint64_t n_bytes,
                    Lane& lane, std::uint64_t& n_fetched);
  /// Read bytes of a chunk.
  Status fetch_part(const Reading& reading, const StoredChunk& job, std::uint64_t begin,
                    std::uint64_t n_bytes, std::byte* to);
  /// Whether the slab wants all values of the chunk.
  static bool uses_up(const Reading& reading, const SlabPart& part, const Box& box);
  Status take_hits(Reading& reading, std::span<const std::pair<StoredChunk, ReadCache::Entry>> hits,
                   std::vector<StoredChunk>& jobs);
  Status for_each_fetched(StoredFile& file, ReadDataset& dataset, std::span<StoredChunk> jobs,
                          std::uint64_t work_bytes, const Work& work);
  Status fetch_group(StoredFile& file, const ReadDataset& dataset,
                     std::span<const StoredChunk> jobs, const Group& group, std::size_t lane,
                     const Work& work);
  std::uint64_t n_lanes_for(const ReadDataset& dataset, std::span<const StoredChunk> jobs,
                            std::uint64_t work_bytes) const;
  std::uint64_t work_bytes_for(const Reading& reading);
  /// @param prefix  the bytes are a chunk's first ones: what they decode to is not kept.
  Status finish_chunk(Reading& reading, Lane& lane, const StoredChunk& job,
                      std::span<const std::byte> encoded, bool prefix = false);
  Status read_raw_part(Reading& reading, Lane& lane, const StoredChunk& job, const SlabPart& part);
  Status decode(const ReadDataset& dataset, const StoredChunk& job,
                std::span<const std::byte> encoded, std::span<std::byte> values,
                bool prefix = false);
  void look_ahead(StoredFile& file, ReadDataset& dataset, const Slab& slab);
  void post_ahead(StoredFile& file, ReadDataset& dataset, const StoredChunk& job);

  ReadOptions options_;
  std::map<std::size_t, ReadDataset> prepared_;  ///< In the same order on all ranks: windows.
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
