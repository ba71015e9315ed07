// The datasets of a serial program whose chunks are encoded and decoded by our threads.
//
//   H5Dwrite ──> chunk whole? ──> encoded by all threads ──> H5Dwrite_chunk
//                  └─> staged until it is whole; what is not when somebody looks is completed by
//                  H5Dread
//   H5Dread ───> H5Dread_chunk ──> decoded by all threads, ahead where chunks are read in order
//
// Invariant 1: what is staged is in no file yet, and HDF5 has nothing newer of these elements. So
// flush() comes before each call that looks at chunks and is not served here.
// Invariant 2: what is kept decoded is what the file's chunk decodes to, or HDF5's cache of it
// holds. So it is dropped before each call that may change chunks and is not served here. Invariant
// 3: HDF5 is never handed a chunk with a filter left out, nor one of the length of what it
// replaces: of both 1.10.8 remembers the wrong filter mask. It encodes such chunks itself.
// Invariant 4: helpers call no HDF5.
//
// All of it under the lock that serial_calls.cpp takes for each call.

#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "core/slab.hpp"
#include "exec/thread_team.hpp"
#include "hdf5_serial/asked_datasets.hpp"
#include "hdf5_serial/serial_hdf5.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace::hdf5_serial {

/// A chunk some of whose elements the program has written. Its place in the grid is its key.
struct StagedChunk {
  Buffer values;  ///< The whole chunk; the fill value where nothing was written.
  /// 1 for each element that was; empty: all within the dataset's extents.
  std::vector<std::byte> written;
  std::uint64_t n_written = 0;  ///< Of these.
  bool keeps_stored = false;    ///< Completed by elements that the file's chunk had.
};

struct DecodedChunk {
  Buffer values;
  std::uint64_t last_use = 0;  ///< Calls counted.
};

/// What is known of a dataset while the program has it open.
struct ServedDataset {
  hid_t id = H5I_INVALID_HID;  ///< One of the program's.
  bool served = false;
  bool is_virtual = false;  ///< Its values are other datasets'.
  bool may_write = false;
  hid_t type = H5I_INVALID_HID;  ///< Ours, in no file.
  std::uint64_t element_bytes = 0;
  Shape extents;  ///< As the call under way finds them,
  Shape most;     ///< and as they may become.
  Shape chunk_shape;
  Buffer fill_value;             ///< Not allocated: undefined.
  bool fill_is_known = false;    ///< What a chunk reads as that is not in the file.
  std::unique_ptr<Codec> codec;  ///< The header's filters.
  /// Null: nothing is asked, and all chunks are encoded by the header's filters.
  std::shared_ptr<AskedDataset> asked;
  /// Its chunks wait for a flush where memory allows: by then it may be a scale, which is exact.
  bool may_become_scale = false;
  std::map<Shape, StagedChunk> staged;
  std::map<Shape, DecodedChunk> decoded;
  Shape expected;  ///< The chunk that a reader in order asks for next; empty: nobody knows.

  std::uint64_t chunk_bytes() const { return n_elements(chunk_shape) * element_bytes; }
  ChunkGrid grid() const { return {extents, chunk_shape}; }
};

/// The arguments of H5Dread and H5Dwrite.
struct Transfer {
  hid_t dataset;
  hid_t memory_type;
  hid_t memory_space;
  hid_t file_space;
  hid_t transfer_list;
};

/// For TAILRACE_REPORT.
struct SerialReport {
  std::uint64_t n_encoded = 0;  ///< Chunks.
  std::uint64_t n_decoded = 0;
  std::uint64_t n_completed = 0;     ///< Of the encoded ones: their other elements were read first.
  std::uint64_t n_lossy = 0;         ///< Of the encoded ones: within a bound that was asked.
  std::uint64_t n_left_to_hdf5 = 0;  ///< Chunks that HDF5 encoded.
  std::uint64_t value_bytes = 0;     ///< Of the encoded chunks.
  std::uint64_t stored_bytes = 0;
};

class ServedDatasets {
 public:
  ServedDatasets(const SerialHdf5& hdf5, std::uint64_t n_threads)
      : hdf5_(hdf5), team_(n_threads), asked_(hdf5) {}

  /// What the program's options ask of its files and datasets.
  AskedFiles& asked() { return asked_; }
  /// Say in the attributes of all open datasets what they have lost. @returns false  HDF5 has
  /// refused it.
  bool describe();

  /// As H5Dwrite. @returns nothing where HDF5 must do it, before which all is flushed.
  std::optional<herr_t> write(const Transfer& transfer, const void* values);
  /// As H5Dread. The same.
  std::optional<herr_t> read(const Transfer& transfer, void* values);
  /// Encode and hand over to HDF5 all that is staged. @returns false  HDF5 has refused some of it,
  /// which is lost, as what HDF5's own cache cannot write is.
  bool flush();
  /// Drop what was decoded.
  void drop_decoded();
  /// The dataset's extents will change. @returns as flush(), which is needed if they shrink.
  bool change_extents(hid_t dataset, const hsize_t* extents);
  /// The program stores a chunk of its own by H5Dwrite_chunk. @returns as flush()
  bool make_way(hid_t dataset, std::uint32_t filter_mask, const hsize_t* start,
                std::size_t n_bytes);
  /// The id ends. Flushed before. @returns as describe(), of this dataset
  bool forget(hid_t id);
  bool forget_all();
  const SerialReport& report() const { return report_; }

 private:
  /// A served call: which elements of the file, and where they lie in memory.
  struct Selected {
    Slab slab;
    /// Where the elements lie in memory as one run, in elements; else they are gathered, scattered.
    std::optional<std::uint64_t> run;
    hid_t memory_space = H5S_ALL;
    bool converts = false;  ///< The type in memory is another number's.
  };
  /// A chunk on its way to the file.
  struct Outgoing {
    ServedDataset* dataset;
    Shape place;  ///< Within the grid.
    Buffer values;
    bool keeps_stored;             ///< As StagedChunk's.
    const Codec* codec = nullptr;  ///< Within the bound that was asked; null: the header's.
    std::optional<EncodedBytes> encoded = std::nullopt;
  };
  /// A chunk on its way to the program.
  struct Incoming {
    Shape place;
    Box box;
    bool stored = false;  ///< Else the fill value.
    bool keep = false;
    bool wanted = true;  ///< Else read ahead.
    EncodedBytes encoded;
    Buffer values;
  };

  ServedDataset& dataset_of(hid_t id);
  void look_at(hid_t id, const H5O_info_t& info, ServedDataset& dataset);
  bool look_at_pipeline(hid_t creation, ServedDataset& dataset, std::vector<FilterSpec>& filters);
  bool take_extents(ServedDataset& dataset);
  bool plain_transfer(hid_t transfer_list);
  std::optional<Selected> select(ServedDataset& dataset, const Transfer& transfer, bool writes);

  bool write_selected(ServedDataset& dataset, const Transfer& transfer, const Selected& selected,
                      const std::byte* values);
  bool write_converted(ServedDataset& dataset, const Transfer& transfer, const Selected& selected,
                       const std::byte* values);
  bool write_slab(ServedDataset& dataset, const Slab& slab, const std::byte* values);
  bool write_whole(ServedDataset& dataset, const std::vector<Shape>& places, const Slab& slab,
                   const std::byte* values);
  bool stage(ServedDataset& dataset, const Shape& place, const Slab& slab, const std::byte* values);
  void note_whole(const ServedDataset& dataset) {
    if (!dataset.may_become_scale) whole_bytes_ += dataset.chunk_bytes();
  }
  void unstage(ServedDataset& dataset, const Shape& place);
  /// Chunks that are whole; those of them, too, that wait for a flush; all, when they have been
  /// completed.
  enum class Which { whole, waiting, all };
  bool send_staged(Which which);
  bool complete(ServedDataset& dataset, const Shape& place, StagedChunk& chunk);
  bool send(std::vector<Outgoing>& batch, const std::function<bool(Outgoing&)>& prepare);
  bool store(Outgoing& chunk);
  bool may_fill_up(const ServedDataset& dataset, const Shape& place) const;
  bool is_stored(const ServedDataset& dataset, const Box& box);
  bool transfer_box(ServedDataset& dataset, const Box& box, std::byte* values, bool writes);

  bool read_slab(ServedDataset& dataset, const Slab& slab, std::byte* values);
  void read_ahead(ServedDataset& dataset, std::vector<Incoming>& batch);
  bool receive(ServedDataset& dataset, std::vector<Incoming>& batch, const Slab& slab,
               std::byte* values);
  void make_room(std::uint64_t n_bytes);

  void drop_decoded(ServedDataset& dataset);
  void drop_decoded(ServedDataset& dataset, const Shape& place);
  std::size_t chunks_at_once(const ServedDataset& dataset) const;

  const SerialHdf5& hdf5_;
  ThreadTeam team_;
  std::unordered_map<hid_t, std::shared_ptr<ServedDataset>> by_id_;
  std::map<std::pair<unsigned long, haddr_t>, std::weak_ptr<ServedDataset>> by_address_;
  ServedDataset nothing_;  ///< What is no dataset.
  hid_t plain_list_ = H5I_INVALID_HID;
  std::uint64_t staged_bytes_ = 0;
  std::uint64_t whole_bytes_ = 0;  ///< Of those: chunks that are whole, and wait for no flush.
  std::uint64_t decoded_bytes_ = 0;
  std::uint64_t n_calls_ = 0;
  AskedFiles asked_;
  SerialReport report_;
};

}  // namespace tailrace::hdf5_serial
