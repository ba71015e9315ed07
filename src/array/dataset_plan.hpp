// How the datasets of a program's HDF5 file are stored: new ones by a plan, existing ones as their
// header fixes it. DeferredDecisions: decisions on new datasets that wait for a flush.
//
// Invariant 1: every rank plans and adopts a dataset independently, and identically. The decisions
// depend only on the dataset and on inputs that are the same on every rank.
// Invariant 2: until a bound relative to the values is resolved, a dataset has the exact form. Its
// header always has, also under a bound for all datasets, which may turn out not to apply. Each of
// these decisions is made once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "array/array_options.hpp"
#include "array/array_variable.hpp"
#include "core/box_series.hpp"
#include "core/comm.hpp"
#include "core/covered_cells.hpp"
#include "field/field_state.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/live_datasets.hpp"
#include "policy/roles.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Origin of a dataset.
enum class DatasetOrigin : std::uint8_t {
  created,  ///< Created by the program in this session.
  opened,   ///< Opened with the file; same address on all ranks.
  copied    ///< Copied by HDF5 on all ranks; flush before any other call.
};

/// Member of a compound type, and its position in an element.
struct CompoundMember {
  std::string name;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// Dataset that the program is about to create.
struct NewDataset {
  std::string path;  ///< Used for options and messages.
  std::size_t element_bytes = 1;
  std::optional<DType> number;  ///< Number type of the elements, in native byte order, if any.
  Shape shape;
  Shape max_shape;              ///< UINT64_MAX: unlimited. Empty: like shape.
  std::vector<std::byte> fill;  ///< One element.
  bool fill_given = false;      ///< True if the program set it; else zeros.
  Shape chunk_shape;            ///< The program's own; empty: Tailrace chooses.
  bool by_value = true;         ///< Elements are plain bytes; else puts are refused.
  /// Elements refer to rank 0's file, where rank 0 can put them.
  bool addresses = false;
  std::vector<CompoundMember> members;  ///< Top-level members of a compound.
  std::string only_by_root;             ///< Why rank 0 must write it with HDF5; else empty.
  bool own_filters = false;  ///< Filters set by the program, used unless options override them.
  /// Boxes of a plotfile that lie in this dataset, in all of its elements; null: unknown.
  std::shared_ptr<const BoxSeries> boxes;
  /// Named like a plotfile level, so its components may have bounds of their own.
  bool of_level = false;
  /// Callback of a level: computes the cells that the next finer level covers. Called on rank 0
  /// at the start of flushes.
  std::function<LevelCover()> find_cover;

  /// True per dimension that may change: all if the program has chunked the dataset, since it may
  /// also cut it.
  std::vector<bool> growing() const {
    return std::vector<bool>(shape.size(), !chunk_shape.empty());
  }
};

/// How a new dataset will be stored.
struct DatasetPlan {
  bool in_chunks = false;       ///< All ranks write it; else rank 0 does, with HDF5.
  std::string why;              ///< Why rank 0 writes it; for the report.
  bool keep_filters = false;    ///< The program's own filters apply.
  bool placed_at_once = false;  ///< Small, written by rank 0, and allocated on creation.
  StoredForm form;              ///< Form to create, if in_chunks and not keep_filters.
  std::shared_ptr<FieldState> field;
  std::shared_ptr<const BoxSeries> boxes;  ///< Boxes that chunks follow; null: none.
  /// Requested bound of each component; empty: the dataset has one bound.
  std::vector<ErrorBound> component_bounds;
  bool drops_covered = false;  ///< Values of covered cells need not be kept.
  /// The values may be lost only by options for all datasets. The first flush decides whether these
  /// apply: only to values, not to coordinates, masks and other roles.
  bool for_all = false;
  /// Options that name the dataset make it lossy, whatever its role. The first flush reports it.
  bool named = false;
  /// Codec of the exact form, if `for_all`; null: the codec of `field` is exact until the flush.
  std::shared_ptr<const Codec> exact_codec;
  std::string remark;  ///< Requests that could not be met; for the report.
  /// Component globs that match a component's name, or may match.
  std::vector<std::string> component_globs;
};

/// Name of a dataset for messages: dataset "/g/x".
inline std::string quoted_dataset(const std::string& path) { return "dataset \"" + path + "\""; }

/// Memory of the rank that has the least.
struct LeastMemory {
  std::uint64_t total_bytes = 0;  ///< Minimum of memory= over all ranks.
  std::uint64_t room_bytes = 0;   ///< Minimum over all ranks of memory= less staging.
};

/// Decide how a new dataset is stored. @error invalid_argument, unsupported  options of it
Result<DatasetPlan> plan_dataset(const NewDataset& dataset, const ArrayFileOptions& options,
                                 const LeastMemory& least, Comm& comm);
/// Make the variable of a new dataset. Moves the codec from the plan, which must not keep filters.
ArrayVariable make_variable(StagingMemory& memory, const NewDataset& dataset,
                            const DatasetPlan& plan);
/// Make the variable that stages one member of a new dataset.
ArrayVariable make_variable(StagingMemory& memory, const NewDataset& dataset,
                            const CompoundMember& member);

/// Existing dataset whose storage is known.
struct AdoptedDataset {
  ArrayVariable variable;
  bool by_value = true;
  Status refused;  ///< Why puts are refused although reads work: guards that they could break.
};
/// Adopt the storage that a dataset's header fixes. @error unsupported, plugin_missing
Result<AdoptedDataset> adopt_dataset(const StoredDataset& stored, const std::string& path,
                                     DatasetOrigin origin, const std::string& plugin_path,
                                     StagingMemory& memory, Comm& comm);
/// Let new values of an adopted dataset keep the bound that its attributes record, provided the
/// options ask for the same one. Has no effect if the header has a bound, or if there are guards.
Status continue_bound(const StoredDataset& stored, const RecordedBound& recorded,
                      const ArrayFileOptions& options, Comm& comm, ArrayVariable& variable);

/// Objects of a file.
struct FileObjects {
  RoleFacts facts;
  std::vector<std::uint64_t> addresses;  ///< Header address of each of facts.datasets.
};

/// The first flush of a dataset decides whether a bound for all datasets applies to it. Bounds
/// relative to the values are resolved from those of the first flush, for the dataset or for
/// each component of a plotfile's level. The covered cells of a level are looked for at each flush
/// until they are known, since the finer level's boxes may be written later.
class DeferredDecisions {
 public:
  /// @param variables  by number; all arguments outlive the result.
  DeferredDecisions(Comm& comm, const ArrayFileOptions& options,
                    std::vector<ArrayVariable>& variables)
      : comm_(comm), options_(options), variables_(variables) {}

  /// Add a new dataset. Not collective.
  void add(std::size_t dataset, const NewDataset& definition, const DatasetPlan& plan);
  /// Find the covered cells of the levels that are about to be written. Values flushed earlier
  /// stay. Errors are agreed. Collective: a broadcast for each such level.
  Status find_covers(const std::vector<bool>& staged);
  /// Lists the objects of rank 0's file; called on rank 0 only.
  using ListObjects = std::function<Result<FileObjects>()>;
  /// Header address of a dataset in this rank's file.
  using AddressOf = std::function<std::uint64_t(std::size_t dataset)>;
  /// Makes a remark for the user; called on every rank.
  using NoteRemark = std::function<void(const std::function<std::string()>& make)>;
  /// Decide whether a bound for all datasets applies to datasets in their first flush. Note a
  /// remark on those that become lossy by name although they have no values. The names, shapes and
  /// attributes in rank 0's file decide. Collective: one broadcast, if any dataset is
  /// undecided. Cost on rank 0: some 20 us for each object of the file.
  Status decide_roles(std::span<const std::size_t> datasets, const ListObjects& list_objects,
                      const AddressOf& address_of, const NoteRemark& note_remark);
  /// True if the dataset has had no flush that decides whether its bound applies.
  bool role_open(std::size_t dataset) const;
  /// Current extents of a dataset.
  using ShapeOf = std::function<Shape(std::size_t dataset)>;
  /// Resolve value-dependent bounds from the staged values, and judge absolute ones. Errors are
  /// agreed. Collective if any dataset's bound is open or not judged.
  Status resolve_bounds(std::span<const std::size_t> datasets, const ShapeOf& shape_of,
                        const NoteRemark& note_remark);

  /// Covered cells that the dataset's attributes do not record yet; null: none.
  const CoveredCells* cells_to_describe(std::size_t dataset) const;
  void note_described(std::size_t dataset) { entries_.at(dataset).cells_described = true; }
  /// Replace the attributes for one bound by those for the components' bounds, if the dataset has
  /// any.
  void describe_bounds(std::size_t dataset, std::vector<NamedAttribute>& attributes) const;
  /// Outcomes of datasets, each with the paths concerned; for the report.
  const std::map<std::string, std::set<std::string>>& outcomes() const { return outcomes_; }

 private:
  struct Entry {
    bool role_open = false;    ///< The first flush decides if the bound applies.
    bool role_untold = false;  ///< The first flush reports the role; the bound applies in any case.
    std::unique_ptr<Codec> exact_codec;        ///< Codec if it does not; null: as it is.
    bool bound_open = false;                   ///< Resolved by the first flush.
    bool width_open = false;                   ///< The absolute bound is judged by the first flush.
    std::shared_ptr<const BoxSeries> boxes;    ///< Boxes that chunks follow; null: none.
    std::vector<ErrorBound> component_bounds;  ///< Requested bounds; empty: the dataset has one.
    std::vector<double> absolute_bounds;       ///< Resolved component bounds; 0: exact.
    bool cover_open = false;                   ///< Covered cells are to be found.
    std::shared_ptr<const BoxSeries> level;    ///< Boxes of the level; null: unknown.
    std::function<LevelCover()> find_cover;
    std::shared_ptr<const CoveredCells> cells;  ///< Null: none, or unknown.
    bool cells_described = false;               ///< The dataset's attributes record them.
  };
  std::string quoted(std::size_t dataset) const {
    return quoted_dataset(variables_[dataset].definition.path);
  }
  std::vector<bool> applies_at_root(std::span<const std::size_t> datasets,
                                    const ListObjects& list_objects, const AddressOf& address_of,
                                    const NoteRemark& note_remark);
  void keep_exact(std::size_t dataset, Entry& entry);
  Status receive_cover(std::size_t dataset, Entry& entry);
  std::vector<double> component_ranges(std::size_t dataset, const Entry& entry) const;
  Status resolve_component_bounds(std::size_t dataset, Entry& entry);
  Status judge_bounds(std::span<const std::size_t> datasets, const NoteRemark& note_remark);
  Status encode_boxes(std::size_t dataset, const Entry& entry, std::span<const double> bounds);

  Comm& comm_;
  const ArrayFileOptions& options_;
  std::vector<ArrayVariable>& variables_;
  std::map<std::size_t, Entry> entries_;  ///< Keyed by dataset.
  std::map<std::string, std::set<std::string>> outcomes_;
};

}  // namespace tailrace
