// The datasets of a serial program whose chunks a thread team encodes and decodes.
//
//  H5Dwrite --> chunk complete? --> encoded by all threads --> H5Dwrite_chunk
//                 +-> staged until complete; at a flush, H5Dread supplies the missing elements
//  H5Dread ---> H5Dread_chunk --> decoded by all threads, ahead if chunks are read in order
//
// Invariant 1: staged values are not in any file yet, and HDF5 has nothing newer for these
// elements. So flush() precedes each unserved call that reads chunks.
// Invariant 2: a cached decoded chunk equals the file's chunk, or the version in HDF5's cache. So
// it is dropped before each unserved call that may change chunks.
// Invariant 3: HDF5 never receives a chunk with a filter skipped, nor one of the same length as the
// chunk that it replaces. In both cases 1.10.8 remembers the wrong filter mask. HDF5 encodes such
// chunks itself.
// Invariant 4: helper threads do not call HDF5.
//
// All functions run under the lock that serial_calls.cpp acquires for each call.

#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chunk/chunk_cache.hpp"
#include "core/chunk_key.hpp"
#include "core/codec.hpp"
#include "core/slab.hpp"
#include "exec/thread_team.hpp"
#include "hdf5_serial/requested_datasets.hpp"
#include "hdf5_serial/serial_hdf5.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace::hdf5_serial {

/// Chunk of which the program has written some elements. Its place in the grid is its key.
struct PartialChunk {
  Buffer values;  ///< The full chunk, prefilled with the fill value.
  /// 1 for each written element; empty if all elements within the dataset's extents are written.
  std::vector<std::byte> written;
  std::uint64_t n_written = 0;  ///< Number of written elements.
  bool keeps_stored = false;    ///< Contains elements of the file's chunk.
};

/// State of a dataset while the program has it open.
struct InterceptedDataset {
  hid_t id = H5I_INVALID_HID;  ///< One of the program's ids.
  std::size_t number = 0;      ///< Identifies it in the cache of decoded chunks.
  bool served = false;
  bool is_virtual = false;  ///< Its values are in other datasets.
  bool may_write = false;
  hid_t type = H5I_INVALID_HID;  ///< Copy of the type that is in no file.
  std::uint64_t element_bytes = 0;
  Shape extents;  ///< Extents at the current call.
  Shape most;     ///< Maximum extents.
  Shape chunk_shape;
  Buffer fill_value;             ///< Not allocated: undefined.
  bool fill_is_known = false;    ///< Chunks that are not in the file read as fill_value.
  std::unique_ptr<Codec> codec;  ///< The header's filters.
  /// Null if the options request nothing: then all chunks are encoded by the header's filters.
  std::shared_ptr<RequestedDataset> requested;
  /// Delay its chunks until a flush, if memory permits: it may still become a scale, which is
  /// exact.
  bool may_become_scale = false;
  std::map<Shape, PartialChunk> staged;
  bool cached = false;  ///< The cache may hold decoded chunks of it.
  /// Next chunk that a sequential reader will request; empty if unknown.
  Shape expected;

  std::uint64_t chunk_bytes() const { return n_elements(chunk_shape) * element_bytes; }
  ChunkGrid grid() const { return {extents, chunk_shape}; }
  /// Name of a chunk in the cache, as long as the extents are the same.
  ChunkKey key(const Shape& place) const { return {number, grid().index_of(place)}; }
};

/// Arguments of H5Dread and H5Dwrite.
struct Transfer {
  hid_t dataset;
  hid_t memory_type;
  hid_t memory_space;
  hid_t file_space;
  hid_t transfer_list;
};

/// Statistics for TAILRACE_REPORT.
struct SerialReport {
  std::uint64_t n_encoded = 0;  ///< Number of chunks.
  std::uint64_t n_decoded = 0;
  /// Encoded chunks whose missing elements were read first.
  std::uint64_t n_completed = 0;
  std::uint64_t n_lossy = 0;         ///< Encoded chunks within a requested bound.
  std::uint64_t n_left_to_hdf5 = 0;  ///< Chunks that HDF5 encoded.
  std::uint64_t value_bytes = 0;     ///< Bytes of values in the encoded chunks.
  std::uint64_t stored_bytes = 0;
};

class InterceptedDatasets {
 public:
  InterceptedDatasets(const SerialHdf5& hdf5, std::uint64_t n_threads);

  /// Requests in the program's options for its files and datasets.
  RequestedFiles& requested_files() { return requested_files_; }
  /// Record in the attributes of all open datasets what they have lost. @returns false if HDF5
  /// refused it
  bool describe();

  /// Serve H5Dwrite. @returns nothing if HDF5 must do it; then all staged values are flushed before
  std::optional<herr_t> write(const Transfer& transfer, const void* values);
  /// Serve H5Dread. @returns nothing if HDF5 must do it, like write()
  std::optional<herr_t> read(const Transfer& transfer, void* values);
  /// Encode all staged values and pass them to HDF5. @returns false if HDF5 refused some of them;
  /// these are lost, like values that HDF5's own cache cannot write
  bool flush();
  /// Drop all cached decoded chunks.
  void drop_decoded();
  /// Prepare for new extents of a dataset. Flushes if they shrink. @returns like flush()
  bool change_extents(hid_t dataset, const hsize_t* extents);
  /// Prepare for a chunk that the program stores by H5Dwrite_chunk. @returns like flush()
  bool make_way(hid_t dataset, std::uint32_t filter_mask, const hsize_t* start,
                std::size_t n_bytes);
  /// Forget an id that is being closed, after a flush. @returns like describe(), for this dataset
  bool forget(hid_t id);
  bool forget_all();
  const SerialReport& report() const { return report_; }
  /// Text for a program of which no chunk was encoded or decoded.
  std::string reasons_for_nothing() const;

 private:
  /// Selection of a served call: elements of the file, and their place in memory.
  struct Selected {
    Slab slab;
    /// First element, if the elements are contiguous in memory; else they are gathered or
    /// scattered.
    std::optional<std::uint64_t> run;
    hid_t memory_space = H5S_ALL;
    bool converts = false;  ///< The memory type is another numeric type.
  };
  /// Chunk that will be stored in the file.
  struct Outgoing {
    InterceptedDataset* dataset;
    Shape place;  ///< Coordinates in the grid.
    Buffer values;
    bool keeps_stored;  ///< Same as in PartialChunk.
    /// Codec within the requested bound; null: the header's filters.
    const Codec* codec = nullptr;
    std::optional<EncodedBytes> encoded = std::nullopt;
  };
  /// Chunk that is read for the program.
  struct Incoming {
    Shape place;
    Box box;
    bool stored = false;  ///< False: it reads as the fill value.
    bool keep = false;
    bool wanted = true;  ///< False: it is read ahead.
    EncodedBytes encoded;
    Buffer values;
  };

  InterceptedDataset& dataset_of(hid_t id);
  void look_at(hid_t id, const H5O_info_t& info, InterceptedDataset& dataset);
  /// Record why HDF5 serves a dataset or a call. @returns false
  bool refuse(std::string_view why);
  bool look_at_pipeline(hid_t creation, InterceptedDataset& dataset,
                        std::vector<FilterSpec>& filters);
  bool take_extents(InterceptedDataset& dataset);
  bool plain_transfer(hid_t transfer_list);
  std::optional<Selected> select(InterceptedDataset& dataset, const Transfer& transfer,
                                 bool writes);

  bool write_selected(InterceptedDataset& dataset, const Transfer& transfer,
                      const Selected& selected, const std::byte* values);
  bool write_converted(InterceptedDataset& dataset, const Transfer& transfer,
                       const Selected& selected, const std::byte* values);
  bool write_slab(InterceptedDataset& dataset, const Slab& slab, const std::byte* values);
  bool write_whole(InterceptedDataset& dataset, const std::vector<Shape>& places, const Slab& slab,
                   const std::byte* values);
  bool stage(InterceptedDataset& dataset, const Shape& place, const Slab& slab,
             const std::byte* values);
  void note_whole(const InterceptedDataset& dataset) {
    if (!dataset.may_become_scale) whole_bytes_ += dataset.chunk_bytes();
  }
  void unstage(InterceptedDataset& dataset, const Shape& place);
  /// Selects staged chunks: the complete ones; also complete ones that wait for a flush; or all,
  /// after completing them.
  enum class Which { whole, waiting, all };
  bool send_staged(Which which);
  bool complete(InterceptedDataset& dataset, const Shape& place, PartialChunk& chunk);
  bool send(std::vector<Outgoing>& batch, const std::function<bool(Outgoing&)>& prepare);
  bool store(Outgoing& chunk);
  bool may_fill_up(const InterceptedDataset& dataset, const Shape& place) const;
  bool is_stored(const InterceptedDataset& dataset, const Box& box);
  bool transfer_box(InterceptedDataset& dataset, const Box& box, std::byte* values, bool writes);

  bool read_slab(InterceptedDataset& dataset, const Slab& slab, std::byte* values);
  void read_ahead(InterceptedDataset& dataset, std::vector<Incoming>& batch);
  bool receive(InterceptedDataset& dataset, std::vector<Incoming>& batch, const Slab& slab,
               std::byte* values);
  void drop_decoded(InterceptedDataset& dataset);
  void drop_decoded(const InterceptedDataset& dataset, const Shape& place);
  std::size_t chunks_at_once(const InterceptedDataset& dataset) const;

  const SerialHdf5& hdf5_;
  ThreadTeam team_;
  std::unordered_map<hid_t, std::shared_ptr<InterceptedDataset>> by_id_;
  std::map<std::pair<unsigned long, haddr_t>, std::weak_ptr<InterceptedDataset>> by_address_;
  InterceptedDataset nothing_;  ///< Represents ids that are not datasets.
  hid_t plain_list_ = H5I_INVALID_HID;
  std::uint64_t staged_bytes_ = 0;
  /// Part of staged_bytes_ in complete chunks that do not wait for a flush.
  std::uint64_t whole_bytes_ = 0;
  ChunkCache decoded_;
  std::size_t n_inspected_ = 0;  ///< Datasets so far; numbers the next one.
  RequestedFiles requested_files_;
  SerialReport report_;
  std::set<std::string_view> refusals_;  ///< Reasons; their texts are constants.
};

}  // namespace tailrace::hdf5_serial
