// Hdf5File: the HDF5 metadata of the output, written by one rank with a plain serial HDF5 library.
//
// Chunk bytes never pass through this class: every rank writes its chunks itself, anywhere in the
// file. This class creates groups, datasets and attributes, inserts each chunk's {address,
// encoded_bytes} into the dataset's chunk index, and commits. The metadata driver
// (metadata_driver.cpp) buffers all metadata writes until a commit. It then writes them in an order
// that leaves a readable file whenever the job dies. Another thread can do the writing of a commit
// (prepare_commit). Used by rank 0 only; one thread at a time. Source: shared trial notes on the
// driver (src/hdf5/README.md states the HDF5 behaviour that we rely on).

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/codec.hpp"
#include "core/storage.hpp"
#include "hdf5/commit_order.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// An attribute's value: one string, or numbers of one type (one number: scalar; several: 1-D).
struct AttributeValue {
  std::variant<std::string, std::vector<std::int64_t>, std::vector<std::uint64_t>,
               std::vector<double>>
      value;
};

struct NamedAttribute {
  std::string name;
  AttributeValue value;
};

/// Definition of a dataset that rank 0 creates.
struct DatasetDefinition {
  std::string path;  ///< Absolute; missing parent groups are created.
  DType dtype = DType::f32;
  Shape shape;                       ///< Empty: scalar.
  bool extendable = false;           ///< The first dimension is unlimited.
  std::uint64_t more_unlimited = 0;  ///< Bit d: dimension d > 0 is also unlimited.
  Shape chunk_shape;                 ///< Empty: contiguous storage.
  std::vector<FilterSpec> filters;  ///< Ordered as in the pipeline; user-level and final cd_values.
  std::optional<double> fill_value;
  std::optional<Bytes> stored_fill;      ///< Replaces fill_value: one element; empty: none is set.
  std::uint64_t contiguous_address = 0;  ///< Contiguous storage: address of the bytes.
  bool compact = false;                  ///< Stored in the header; only without a chunk shape.
  bool grows_by_steps = false;           ///< Each commit adds an entry; see Settings::old_forms.
  /// Element type in the file, encoded by H5Tencode: the numbers of `dtype`, in either byte order.
  /// Empty: this machine's type for `dtype`.
  Bytes type;
  /// Element size of `type` if that is not a number; 0: that of `dtype`.
  std::uint64_t element_bytes = 0;
  std::string type_path;  ///< Named type of the file to use instead of `type`; empty: none.
  Shape limits;  ///< Largest extents; empty: fixed, except for the two unlimited marks above.
  std::optional<CreationTimes> times;  ///< Default: HDF5's.
  std::uint64_t bytes_of_element() const {
    return element_bytes > 0 ? element_bytes : dtype_bytes(dtype);
  }
  /// Largest extent of dimension d; UINT64_MAX: unlimited.
  std::uint64_t limit(std::size_t d) const {
    if (d == 0 ? extendable : (more_unlimited >> d & 1U) != 0) return UINT64_MAX;
    return limits.empty() ? shape[d] : limits[d];
  }
};

/// Size of the block that holds a file's metadata in front of all data, computed by
/// Hdf5File::rehearse(). Plain data.
struct FrontPlan {
  std::uint64_t n_bytes = 0;
  /// Lengths of global heaps (variable-length strings, references). They are metadata, but HDF5
  /// allocates them as raw data. All raw blocks of these lengths go in front, since HDF5's
  /// allocation order changes with the contents of its caches.
  std::set<std::uint64_t> heap_bytes;
};

class Hdf5File {
 public:
  /// Allocates file space for metadata: returns the address of `n_bytes` fresh bytes.
  using Allocate = std::function<std::uint64_t(std::uint64_t n_bytes)>;

  struct Settings {
    bool sync = true;  ///< fdatasync between the phases of a commit.
    /// Write a redo journal (storage.path() + ".journal") around the in-place writes of every
    /// commit. False (default): only commits that cannot be ordered safely have one (old or foreign
    /// files, very large groups).
    bool journal = false;
    /// Journal also the commits that change several blocks in place: a kill leaves such a commit
    /// complete or absent. False (default): a kill may leave some of the changed datasets in their
    /// old state.
    bool whole_commits = false;
    /// Room for links in the root group; for many links, a heap.
    std::uint64_t expected_root_links = 0;
    bool track_creation_order = true;  ///< Track creation order, which netCDF-4 needs to append.
    /// Use HDF5 1.8's forms, for readers that are not the HDF5 library: chunk indexes are version 1
    /// B-trees, and headers do not state the threshold for dense attributes.
    bool old_forms = false;
    /// Use HDF5 1.10's forms for datasets that grow by steps, even with old_forms. A commit changes
    /// their indexes and headers in one place, and needs no journal.
    bool steps_in_new_forms = false;
    /// List in the root group which filters readers need (hdf5/readers_need.hpp).
    bool lists_readers_need = false;
    bool shares_chunks = false;  ///< Several chunks may share an address; see reuses_space().
    bool on_nodes = false;       ///< Processes on other nodes write chunks into the file.
    /// HDF5 ids of a program's own property lists, used when the program makes the metadata. The
    /// file has their properties, except those that the driver and a safe commit need. -1: ours.
    std::int64_t creation_list_id = -1;
    std::int64_t access_list_id = -1;
  };

  /// Start a new file's metadata in `storage`. The bytes of `storage` may hold chunk data already,
  /// after the first bytes, which create() takes through `allocate`. Nothing is on disk before
  /// commit().
  static Result<std::unique_ptr<Hdf5File>> create(Storage& storage, Allocate allocate,
                                                  const Settings& settings);
  /// Open an existing HDF5 file to add to it. `end_of_file` receives the first free address.
  /// @error corrupt  not an HDF5 file, or damaged.
  static Result<std::unique_ptr<Hdf5File>> open(Storage& storage, Allocate allocate,
                                                const Settings& settings,
                                                std::uint64_t& end_of_file);
  /// Measure the metadata that `make` adds to a new file with these settings, beyond the metadata
  /// that every such file has. The same calls build the metadata in memory, and the result is
  /// discarded. Chunk bytes are never needed, so that their addresses and lengths need not be
  /// known.
  /// @param raw_bytes_max  limit for values that HDF5 itself writes in `make`.
  /// @error any error of `make`; out_of_memory  more than raw_bytes_max.
  static Result<FrontPlan> rehearse(const Settings& settings, std::uint64_t raw_bytes_max,
                                    const std::function<Status(Hdf5File&)>& make);
  virtual ~Hdf5File() = default;

  /// Value of Settings::old_forms, for code that makes objects with HDF5's own calls.
  virtual bool old_forms() const = 0;

  /// Put all metadata of the next commit into one block at the file's current end, sized for the
  /// metadata that was rehearsed. A commit with more metadata is refused.
  virtual void reserve_front(FrontPlan plan) = 0;

  /// True if the program may call HDF5 on one thread while another thread uses this class.
  static bool can_be_used_concurrently();

  /// Write values to space that HDF5 has already allocated in the file, for a contiguous dataset
  /// that is not open; the values of an open dataset may be buffered. The next commit returns any
  /// error of Storage.
  virtual void write_values_at(std::uint64_t address, std::span<const std::byte> bytes) = 0;

  /// Create a group and its missing parent groups; an existing group is fine. With many
  /// `expected_links` the group has a heap from the start: HDF5's time for links in a header grows
  /// with the cube of their number. For the root group of a file that is still empty this works
  /// too, and changes the root group's id.
  virtual Status create_group(const std::string& path, std::uint64_t expected_links = 0) = 0;
  /// Create a dataset. @error already_exists, unsupported, plugin_missing
  virtual Status create_dataset(const DatasetDefinition& definition) = 0;
  /// True if a link with this path exists.
  virtual bool exists(const std::string& path) = 0;
  /// The current extents of a dataset. @error not_found
  virtual Result<Shape> dataset_shape(const std::string& path) = 0;
  /// Enlarge the first extent of an extendable dataset. @error not_found, invalid_argument
  virtual Status extend_dataset(const std::string& path, const Shape& shape) = 0;

  /// One chunk's entry in the index of a dataset.
  struct ChunkRecord {
    std::uint64_t chunk_index = 0;  ///< Row-major in the grid of the dataset's current shape.
    Extent extent;
    std::uint32_t filter_mask = 0;
    /// The filtered chunk that this one replaces. Its space stays unused as long as the file is
    /// open, so that the bytes of the last commit survive. Only if keeps_replaced(). Length 0:
    /// nothing is replaced, or HDF5 may reuse the space.
    Extent replaced = {};
  };
  /// Insert the chunks of one dataset. Sort them by chunk_index for speed (container notes: 0.3-1
  /// us each sorted, up to 24 us in random order). The chunk bytes may be written before or after.
  virtual Status insert_chunks(const std::string& path, std::span<const ChunkRecord> records) = 0;

  /// Changes of one step to one dataset. Plain data without references.
  struct DatasetUpdate {
    DatasetDefinition dataset;         ///< State after the update.
    bool is_new = false;               ///< True: to be created. False: it exists, and grows.
    std::vector<ChunkRecord> records;  ///< Chunks for insert_chunks().
    std::vector<NamedAttribute> attributes;
  };
  /// Create or grow a dataset, insert chunks and set attributes, with one look-up of the dataset. A
  /// dataset that can grow stays open for the next update. @error like the separate calls
  virtual Status update_dataset(const DatasetUpdate& update) = 0;

  /// True if HDF5 reuses the space of replaced chunks, now or at any later write of the file.
  /// Chunks that share an address would then overwrite each other.
  virtual bool reuses_space() const = 0;

  /// True if ChunkRecord::replaced is honoured. False if HDF5 has free space from earlier, or if
  /// the file begins with a user block.
  virtual bool keeps_replaced() const = 0;

  /// The chunks for which HDF5 chose another address than the last insertion stated, with the
  /// address to which the next commit copies them. HDF5 chooses free space that it knows, or the
  /// space of an existing chunk of the same length. After create_exact(), a contiguous dataset
  /// counts as chunk 0.
  virtual std::vector<ChunkRecord> take_moved_chunks() = 0;

  /// Make a creation list for a dataset with storage `storage` and exactly its filters
  /// (final_client_data).
  /// @param type_id  the dataset's type.
  /// @param fill_value  one element of that type; empty: HDF5's default.
  /// @param planned  contiguous storage at an address that the caller chooses.
  /// @param bare  leave no room for attributes in the header; adding one later is possible but
  /// costs more.
  /// @returns HDF5's id; the caller closes it.
  /// @error internal  HDF5 refuses.
  virtual Result<std::int64_t> creation_list(const StoredForm& storage, std::int64_t type_id,
                                             std::span<const std::byte> fill_value, bool planned,
                                             bool bare) = 0;
  /// Change a program's creation list to the layout and filters of `storage`; other properties of
  /// the list stay. @error internal  HDF5 refuses.
  virtual Status adapt_creation_list(std::int64_t list_id, const StoredForm& storage) = 0;
  /// A dataset described by HDF5 ids, to copy types that have no DType.
  struct ExactDataset {
    std::string path;            ///< Text for messages.
    std::int64_t group_id = -1;  ///< Parent group.
    std::string name;            ///< Name in that group; UTF-8.
    std::int64_t type_id = -1;
    std::int64_t space_id = -1;
    std::int64_t creation_list_id = -1;
    /// Filters to store; empty: known from a similar dataset.
    std::span<const FilterSpec> filters;
    std::uint64_t contiguous_address = 0;  ///< Address of the bytes; 0: HDF5 chooses one.
    std::uint64_t contiguous_bytes = 0;
  };
  /// Create a dataset, without its parent groups. @returns its open id; the caller closes it.
  /// @error already_exists, unsupported (a filter stores other client data), internal
  virtual Result<std::int64_t> create_exact(const ExactDataset& dataset) = 0;
  /// Change the extents of an open dataset; see extend_with_filters() (stub_filters.hpp).
  /// @error internal  HDF5 refuses.
  virtual Status set_extents(std::int64_t dataset_id, const Shape& extents) = 0;
  /// insert_chunks() for an open dataset with a known grid. Saves a look-up and three property
  /// calls per dataset, which dominate the cost of insertion into small datasets.
  virtual Status insert_chunks_into(std::int64_t dataset_id, const std::string& path,
                                    const ChunkGrid& grid,
                                    std::span<const ChunkRecord> records) = 0;

  /// Add attributes to an open dataset that has none of them yet; same kinds as set_attribute().
  virtual Status add_attributes(std::int64_t dataset_id, const std::string& path,
                                std::span<const NamedAttribute> attributes) = 0;

  /// Set (create or replace) an attribute of a group ("/" too) or dataset.
  virtual Status set_attribute(const std::string& object_path, const std::string& name,
                               const AttributeValue& value) = 0;

  virtual bool has_attribute(const std::string& object_path, const std::string& name) = 0;

  /// HDF5's id (hid_t) of the open file, with which the repacker copies foreign objects.
  virtual std::int64_t hdf5_id() const = 0;

  /// Publish everything since the last commit. Before the call, all ranks' bytes must have been
  /// written (and synced, if durability is wanted). Afterwards, stock readers see the new state.
  virtual Status commit() = 0;

  /// First half of a commit: detach everything since the last commit from HDF5. The caller lets any
  /// thread call write() on the result (milliseconds, mostly waiting for syncs), then calls
  /// finish_commit() on its own thread. Meanwhile this object remains usable; additions belong to
  /// the next commit. One commit at a time: commit() and prepare_commit() before finish_commit()
  /// are programmer errors. Not collective. Cost: one flush within memory, and a small read from
  /// storage per old block.
  /// @error an earlier failure; any error of HDF5 or Storage.
  virtual Result<std::shared_ptr<PendingCommit>> prepare_commit() = 0;
  /// Second half of a commit: obtain the result of write() once it has returned, or write now if no
  /// thread has started. On success, stock readers see the new state. After a failure nothing more
  /// is written, and every later commit returns that failure.
  virtual Status finish_commit() = 0;

  /// Finish a pending commit (whose write() must not be running), commit and close. Further calls
  /// are programmer errors.
  virtual Status close() = 0;
  /// Set the file's new name: later journals lie next to it. Call between commits.
  virtual void set_path(const std::string& path) = 0;
  /// Set Settings::whole_commits, from the next commit on.
  virtual void make_commits_whole() = 0;
  /// Bytes of metadata passed to storage so far, for the report.
  virtual std::uint64_t metadata_bytes() const = 0;
};

}  // namespace tailrace
