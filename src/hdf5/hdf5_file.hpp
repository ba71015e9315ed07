// Hdf5File: the HDF5 metadata of the output, written by one rank with a plain serial HDF5 library.
//
// Chunk bytes never pass through here: every rank has written its own, anywhere in the file. This
// class creates groups, datasets and attributes, puts each chunk's {address, encoded_bytes} into
// the dataset's chunk index, and commits: the metadata driver (metadata_driver.cpp) keeps all
// metadata writes in memory until then and writes them in an order that leaves a readable file
// whenever the job dies. The writing of a commit can be left to another thread (prepare_commit).
// Used by rank 0 only; one thread at a time. Source: shared trial notes on the driver
// (docs/format.md restates what we rely on).

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

/// An attribute's value: one text, or numbers of one type (one value: scalar; more: 1-D).
struct AttributeValue {
  std::variant<std::string, std::vector<std::int64_t>, std::vector<std::uint64_t>,
               std::vector<double>>
      value;
};

struct NamedAttribute {
  std::string name;
  AttributeValue value;
};

/// A dataset as rank 0 creates it.
struct DatasetDefinition {
  std::string path;  ///< Absolute; missing groups on the way are created.
  DType dtype = DType::f32;
  Shape shape;                       ///< Empty: scalar.
  bool extendable = false;           ///< The first dimension is unlimited.
  std::uint64_t more_unlimited = 0;  ///< Bit d: dimension d > 0 is unlimited, too.
  Shape chunk_shape;                 ///< Empty: contiguous storage.
  std::vector<FilterSpec> filters;   ///< In pipeline order; user-level and final cd_values.
  std::optional<double> fill_value;
  std::optional<Bytes> stored_fill;      ///< In its place: one element; empty: none is set.
  std::uint64_t contiguous_address = 0;  ///< Contiguous storage: where the bytes lie.
  bool compact = false;                  ///< In the header; without a chunk shape.
  bool grows_by_steps = false;           ///< Each commit adds an entry; see Settings::old_forms.
  /// Element type of the file, of the same numbers as `dtype` in either byte order, as H5Tencode
  /// makes it. Empty: this machine's type of `dtype`.
  Bytes type;
  std::uint64_t element_bytes = 0;  ///< Of `type`, where it is no number; 0: as of `dtype`.
  std::string type_path;            ///< The file's named type to use in its place; empty: none.
  Shape limits;  ///< Up to which dimensions may grow; empty: as the two marks say.
  std::optional<CreationTimes> times;  ///< Default: HDF5's.
  std::uint64_t bytes_of_element() const {
    return element_bytes > 0 ? element_bytes : dtype_bytes(dtype);
  }
  /// Extent up to which dimension d may grow; UINT64_MAX: without limit.
  std::uint64_t limit(std::size_t d) const {
    if (d == 0 ? extendable : (more_unlimited >> d & 1U) != 0) return UINT64_MAX;
    return limits.empty() ? shape[d] : limits[d];
  }
};

/// The block in front of all data that a file's metadata are to take, as Hdf5File::rehearse() finds
/// it. Plain data.
struct FrontPlan {
  std::uint64_t n_bytes = 0;
  /// Lengths of global heaps (texts of variable length, references), which are metadata, though
  /// HDF5 asks for them as for raw data. All raw data of such a length go in front, since the order
  /// in which HDF5 asks changes with what its caches hold.
  std::set<std::uint64_t> heap_bytes;
};

class Hdf5File {
 public:
  /// Hands out file space for metadata: returns the address of `n_bytes` fresh bytes.
  using Allocate = std::function<std::uint64_t(std::uint64_t n_bytes)>;

  struct Settings {
    bool sync = true;  ///< fdatasync between the phases of a commit.
    /// Redo journal (storage.path() + ".journal") around the in-place writes of every commit.
    /// Without it, only commits that cannot be ordered safely have one (old or foreign files, very
    /// large groups).
    bool journal = false;
    /// Commits that change several blocks in place have a journal, too: a kill leaves such a commit
    /// whole or absent. Else a kill may leave some of the datasets that a commit changes as before.
    bool whole_commits = false;
    std::uint64_t expected_root_links = 0;  ///< Room in the root group; if many, a heap.
    bool track_creation_order = true;       ///< netCDF-4 needs it to append.
    /// Forms of HDF5 1.8, for readers that are not the HDF5 library: chunk indexes are version 1
    /// B-trees, and headers do not say when attributes become dense.
    bool old_forms = false;
    /// Datasets that grow by steps have HDF5 1.10's forms even so, whose indexes and headers a
    /// commit changes in one place: without a journal.
    bool steps_in_new_forms = false;
    /// The root group says which filters readers must have (hdf5/readers_need.hpp).
    bool says_readers_need = false;
    bool shares_chunks = false;  ///< Several may lie at one place; see reuses_space().
    bool on_nodes = false;       ///< Other nodes write chunks into the file.
    /// Lists (HDF5's ids) whose properties the file is to have, but for those that the driver and a
    /// safe commit need: a program's own, where it makes the metadata. -1: ours.
    std::int64_t creation_list_id = -1;
    std::int64_t access_list_id = -1;
  };

  /// A new file's metadata in `storage` (whose bytes may hold chunk data already, behind the first
  /// `first_address` bytes that create() takes through `allocate`). Nothing is on disk before
  /// commit().
  static Result<std::unique_ptr<Hdf5File>> create(Storage& storage, Allocate allocate,
                                                  const Settings& settings);
  /// An existing HDF5 file, to be added to. `end_of_file` receives the first address that is free.
  /// @error corrupt  not an HDF5 file, or damaged.
  static Result<std::unique_ptr<Hdf5File>> open(Storage& storage, Allocate allocate,
                                                const Settings& settings,
                                                std::uint64_t& end_of_file);
  /// Which metadata `make` puts into a new file of these settings, behind those that every such
  /// file has. It is made in memory, by the same calls, and thrown away; the bytes of chunks are
  /// never asked for, so that their addresses and lengths need not be known.
  /// @param raw_bytes_max  of values that HDF5 itself writes in `make`.
  /// @error what `make` answers; out_of_memory  more than raw_bytes_max.
  static Result<FrontPlan> rehearse(const Settings& settings, std::uint64_t raw_bytes_max,
                                    const std::function<Status(Hdf5File&)>& make);
  virtual ~Hdf5File() = default;

  /// As Settings::old_forms: for who makes objects by HDF5's own calls.
  virtual bool old_forms() const = 0;

  /// Let all metadata of the next commit lie in one block at the end that the file has now, as long
  /// as they need if they are those that were rehearsed. A commit with more is refused.
  virtual void reserve_front(FrontPlan plan) = 0;

  /// Whether the program may use HDF5 on a thread of its own while another one uses this.
  static bool can_be_used_beside();

  /// Write bytes of values that HDF5 has a place for in the file: of a dataset in one piece that
  /// nobody has open, since an open one's values may be buffered. What Storage answers comes back
  /// from the next commit.
  virtual void write_values_at(std::uint64_t address, std::span<const std::byte> bytes) = 0;

  /// Create a group and the missing groups above it; an existing group is fine. With many links to
  /// come at once it has a heap from the start, and so has the root group of a file into which
  /// nothing was put yet (whose id is another one then): HDF5 takes a time for links in a header
  /// that grows with the cube of their number.
  virtual Status create_group(const std::string& path, std::uint64_t expected_links = 0) = 0;
  /// Create a dataset. @error already_exists, unsupported, plugin_missing
  virtual Status create_dataset(const DatasetDefinition& definition) = 0;
  /// Whether a link of this path exists.
  virtual bool exists(const std::string& path) = 0;
  /// The current extents of a dataset. @error not_found
  virtual Result<Shape> dataset_shape(const std::string& path) = 0;
  /// Give an extendable dataset a larger first extent. @error not_found, invalid_argument
  virtual Status extend_dataset(const std::string& path, const Shape& shape) = 0;

  /// One chunk's entry in the index of a dataset.
  struct ChunkRecord {
    std::uint64_t chunk_index = 0;  ///< Row-major in the grid of the dataset's current shape.
    Extent extent;
    std::uint32_t filter_mask = 0;
    /// The filtered chunk that is there, whose place stays unused as long as the file is open: so
    /// the last commit's bytes stay. Only where keeps_replaced(). Of length 0: there is none, or
    /// HDF5 may use its place again.
    Extent replaced = {};
  };
  /// Insert the chunks of one dataset; sorted by chunk_index for speed (container notes: 0.3-1 us
  /// each sorted, up to 24 us in random order). The bytes may be written before or after.
  virtual Status insert_chunks(const std::string& path, std::span<const ChunkRecord> records) = 0;

  /// What a step changes of one dataset. Plain data: nothing of it needs what it was made from.
  struct DatasetUpdate {
    DatasetDefinition dataset;         ///< As it is from now on.
    bool is_new = false;               ///< To be created; else it is there, and grows.
    std::vector<ChunkRecord> records;  ///< As for insert_chunks().
    std::vector<NamedAttribute> attributes;
  };
  /// Create or grow a dataset, insert chunks and set attributes, with the dataset looked up once
  /// for all. One that can grow stays open for the next update. @error as of those one by one.
  virtual Status update_dataset(const DatasetUpdate& update) = 0;

  /// Whether HDF5 hands out the space of replaced chunks again, now or whenever the file is
  /// written. Then chunks that lie at one place would change with one another.
  virtual bool reuses_space() const = 0;

  /// Whether ChunkRecord::replaced is served: not where HDF5 has free space from before, or the
  /// file begins with a user block.
  virtual bool keeps_replaced() const = 0;

  /// The chunks that HDF5 put elsewhere than the last insertion said, with the address where the
  /// next commit copies them: it has given them space that it knew as free, or, a chunk of the
  /// same length being there, that chunk's. After create_exact(), a contiguous dataset as chunk 0.
  virtual std::vector<ChunkRecord> take_moved_chunks() = 0;

  /// A creation list for a dataset that is stored as `storage` says, its filters exactly as they
  /// stand there (final_client_data). `type_id` is the dataset's, `fill_value` one element of it
  /// (empty: HDF5's default); `planned`: contiguous storage at an address of the caller's; `bare`:
  /// no attribute is to follow (one may, at a price), so the header leaves no room for any.
  /// @returns HDF5's id, for the caller to close.  @error internal  HDF5 refuses.
  virtual Result<std::int64_t> creation_list(const StoredForm& storage, std::int64_t type_id,
                                             std::span<const std::byte> fill_value, bool planned,
                                             bool bare) = 0;
  /// Change a program's list for a dataset that is to be stored as `storage` says, all filters new;
  /// what the list says besides stays. @error internal  HDF5 refuses.
  virtual Status adapt_creation_list(std::int64_t list_id, const StoredForm& storage) = 0;
  /// A dataset by HDF5's own ids, for whoever carries over types that have no DType.
  struct ExactDataset {
    std::string path;            ///< For messages.
    std::int64_t group_id = -1;  ///< Where it goes,
    std::string name;            ///< and its name there; UTF-8.
    std::int64_t type_id = -1;
    std::int64_t space_id = -1;
    std::int64_t creation_list_id = -1;
    std::span<const FilterSpec> filters;   ///< What must be stored; empty: known from one like it.
    std::uint64_t contiguous_address = 0;  ///< Where the bytes lie; 0: HDF5 finds a place.
    std::uint64_t contiguous_bytes = 0;
  };
  /// Create a dataset; no group on the way is made. @returns its open id, for the caller to close.
  /// @error already_exists, unsupported (a filter stores other client data), internal
  virtual Result<std::int64_t> create_exact(const ExactDataset& dataset) = 0;
  /// Change the extents of a dataset that is open; see extend_with_filters() (stub_filters.hpp).
  /// @error internal  HDF5 refuses.
  virtual Status set_extents(std::int64_t dataset_id, const Shape& extents) = 0;
  /// insert_chunks() for a dataset that is open and whose grid is known: saves a look-up and three
  /// property calls per dataset, which is what insertion costs where datasets are small.
  virtual Status insert_chunks_into(std::int64_t dataset_id, const std::string& path,
                                    const ChunkGrid& grid,
                                    std::span<const ChunkRecord> records) = 0;

  /// Give a dataset that is open, and has none of them yet, these attributes; of the kinds that
  /// set_attribute() takes.
  virtual Status add_attributes(std::int64_t dataset_id, const std::string& path,
                                std::span<const NamedAttribute> attributes) = 0;

  /// Set (create or replace) an attribute of a group ("/" too) or dataset.
  virtual Status set_attribute(const std::string& object_path, const std::string& name,
                               const AttributeValue& value) = 0;

  virtual bool has_attribute(const std::string& object_path, const std::string& name) = 0;

  /// HDF5's id of the open file, for the repacker's carry-over of foreign objects (hid_t).
  virtual std::int64_t hdf5_id() const = 0;

  /// Publish everything since the last commit. All ranks' bytes must have been written (and synced,
  /// if durability is wanted) before. After it returns, stock readers see the new state.
  virtual Status commit() = 0;

  /// The first half of a commit: take everything since the last one out of HDF5. The caller lets
  /// any thread call write() on what it gets (milliseconds, mostly waiting for syncs), and then
  /// calls finish_commit() on its own thread. Meanwhile this object can be used as ever; what is
  /// added belongs to the next commit. One commit at a time: commit() and prepare_commit() before
  /// finish_commit() are programmer errors. Not collective; costs one flush within memory, and a
  /// small read from storage per old block.
  /// @error an earlier failure; whatever HDF5 or Storage answers.
  virtual Result<std::shared_ptr<PendingCommit>> prepare_commit() = 0;
  /// The second half: learn how the write went, once it has returned; does the writing if nobody
  /// has begun it. Stock readers see the new state if it is ok. After a failure nothing is written
  /// any more, and every later commit returns it.
  virtual Status finish_commit() = 0;

  /// Finish a pending commit (whose write() must not be running), commit and close. Further calls
  /// are programmer errors.
  virtual Status close() = 0;
  /// The file has another name now: later journals lie beside that. Between commits.
  virtual void set_path(const std::string& path) = 0;
  /// Bytes of metadata handed to storage so far, for the report.
  virtual std::uint64_t metadata_bytes() const = 0;
};

}  // namespace tailrace
