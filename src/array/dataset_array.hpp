// DatasetArray: the datasets of an HDF5 file whose metadata the program writes itself.
//
// HDF5 requires that all ranks of a parallel program make the same metadata changes. So every rank
// has a private file, which the program changes by HDF5's own calls. Rank 0's file is the one that
// is committed; the others' lie in memory and end with the program's file
// (hdf5/private_storage.hpp). Only values take another path: they are staged as by an ArrayFile,
// and a flush writes them chunk by chunk, from all ranks, into rank 0's file. Frontend: hdf5, which
// knows the program's calls.
//
// A dataset has a number, the same on every rank, and an address in each rank's file, which differs
// between ranks. Elements are bytes in the file's type; nothing is converted.
//
// Collectivity. create, open, settle, flush, sync_to_read, before_cut and close are collective. add
// is called alike on all ranks without communication, and the next collective call compares these
// calls. put and get are not collective. The next collective call completes a flush that is in
// flight.
//
// Invariant 1: a flush writes to the dataset that the address denotes on rank 0; if the program has
// deleted that dataset, the values are dropped. Invariant 2: every rank determines independently,
// and identically, which datasets exist and how each is stored; Comm::decide compares the results.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/array_engine.hpp"
#include "array/element_runs.hpp"
#include "array/flushed_file.hpp"
#include "chunk/chunk_reader.hpp"
#include "core/covered_cells.hpp"
#include "hdf5/commit_order.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/private_storage.hpp"
#include "policy/chunk_shape.hpp"

namespace tailrace {

class DatasetArray final : private ArrayEngine {
 public:
  /// Member of a compound type, and its position in an element.
  struct Member {
    std::string name;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  /// Dataset that the program is about to create.
  struct Definition {
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
    std::vector<Member> members;  ///< Top-level members of a compound.
    std::string only_by_root;     ///< Why rank 0 must write it with HDF5; else empty.
    bool own_filters = false;  ///< Filters set by the program, used unless options override them.
    /// Boxes of a plotfile that lie in this dataset, in all of its elements; null: unknown.
    std::shared_ptr<const BoxSeries> boxes;
    /// Named like a plotfile level, so its components may have bounds of their own.
    bool of_level = false;
    /// Callback of a level: computes the cells that the next finer level covers. Called on rank 0
    /// at the start of flushes.
    std::function<LevelCover()> find_cover;
  };
  /// How a dataset will be stored.
  struct Plan {
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
    std::string remark;          ///< Requests that could not be met; for the report.
    /// Component globs that match a component's name, or may match.
    std::vector<std::string> component_globs;
  };

  /// Create a file, or open one to write. `options.file.hdf5_*_list` are the program's property
  /// lists.
  /// @error like Output::create, Output::open
  static Result<std::unique_ptr<DatasetArray>> create(std::unique_ptr<Comm> comm,
                                                      const std::string& path,
                                                      const ArrayFileOptions& options);
  static Result<std::unique_ptr<DatasetArray>> open(std::unique_ptr<Comm> comm,
                                                    const std::string& path,
                                                    const ArrayFileOptions& options);
  ~DatasetArray();

  Comm& comm() { return *comm_; }
  const std::string& path() const { return path_; }
  const ArrayFileReport& report() const { return report_; }
  std::string remark() const { return output_.remark(); }
  std::string closing_remark() const { return closing_remark_; }  ///< Like ArrayFile's.
  /// Like ArrayFile's.
  std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }
  /// Outcomes of datasets, each with the paths concerned; for the report.
  const std::map<std::string, std::set<std::string>>& outcomes() const { return outcomes_; }
  /// This rank's metadata file. The program has no object open through its HDF5 id.
  Hdf5File& metadata();

  /// Decide how a new dataset is stored. Not collective, alike everywhere.
  /// @error invalid_argument, unsupported  options of this dataset
  Result<Plan> plan_new(const Definition& definition);
  /// Register a dataset that was created at `address` in this rank's file. @returns its number
  /// @param values_at  address of its contiguous values in that file; 0: unknown.
  std::size_t add(const Definition& definition, const Plan& plan, std::uint64_t address,
                  std::uint64_t values_at);
  /// Bytes of small datasets that rank 0 has written directly, at their address.
  std::uint64_t placed_bytes() const { return placed_bytes_; }
  /// Origin of a dataset that Tailrace did not plan. It is inspected on first use.
  enum class Origin : std::uint8_t {
    created,  ///< Just created, empty.
    opened,   ///< Opened with the file; same address on all ranks.
    copied    ///< Copied by HDF5 on all ranks; flush before any other call.
  };
  std::size_t add_existing(const std::string& path, std::uint64_t address, Origin origin);
  /// Find the dataset at an address of this rank's file.
  std::optional<std::size_t> find(std::uint64_t address) const;
  /// Record that the program's creation of a dataset failed. All ranks must do so; otherwise the
  /// next collective call breaks off. The dataset must not be visible afterwards.
  void give_up(const std::string& path) {
    look_for_deleted();
    note_change("what could not be created", path);
  }
  /// Make flushes check which datasets still exist, because the program may have deleted some.
  void look_for_deleted() { deleted_ = true; }
  /// Bracket a call that deletes objects by links or reference counts. Not collective, alike
  /// everywhere.
  void begin_deletion();
  void end_deletion();
  /// Record that the program changed the reference count of an object in this rank's file
  /// independently of its links.
  void note_count(std::uint64_t address, int change);

  /// Properties of a dataset; facts() inspects an existing one first. @error unsupported, corrupt
  struct Facts {
    std::size_t element_bytes = 1;
    const Shape* shape = nullptr;
    bool by_value = true;    ///< Elements are plain bytes; else puts are refused.
    bool by_root = false;    ///< Rank 0 writes it with HDF5.
    bool addresses = false;  ///< Elements refer to rank 0's file.
  };
  Result<Facts> facts(std::size_t dataset);
  const std::string& path_of(std::size_t dataset) const {
    return variables_[dataset].definition.path;
  }

  /// Begin a write: the puts that follow are later than all previous ones.
  void begin_write() { call_epoch_ = std::max(call_epoch_, now_epoch()); }
  /// Stage the elements of a slab, dense and row-major. Not collective. @error out_of_memory, ...
  Status put(std::size_t dataset, const Slab& slab, std::span<const std::byte> values);
  /// Stage runs of elements, counted row-major within the extents. If runs overlap, the last one
  /// wins. Cost: 12 bytes a run in addition to the values, if none overlap.
  Status put_runs(std::size_t dataset, const ElementRuns& runs, std::span<const std::byte> values);
  /// Record a failure of this rank, which the next collective call returns on all ranks.
  void fail(const Status& failure) { static_cast<void>(note(failure)); }
  /// Record a failure after which no rank can flush any more.
  void lose(const Status& failure) { ArrayEngine::lose(failure); }
  /// Number under which a member of a compound is put separately, dense and in the file's type. Its
  /// puts are ordered together with those of other members and of complete elements. Empty if the
  /// dataset was not created here, or if the communicator has one rank.
  std::optional<std::size_t> member_of(std::size_t dataset, const std::string& name) const;
  /// Read a slab: the file's elements at its last flush, overlaid with this rank's staged ones. Not
  /// collective.
  /// @error unsupported  the last flush is in flight and has values of the dataset, from any rank
  Status get(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  /// Read runs of elements; each chunk that they touch is read once.
  Status get_runs(std::size_t dataset, const ElementRuns& runs, std::span<std::byte> values);
  /// Adopt extents that the program has set by HDF5, alike everywhere. Values staged beyond them
  /// are dropped. Not collective.
  Status set_shape(std::size_t dataset, const Shape& shape);
  /// Check that the dataset's guards allow this shape. Requires facts().
  /// @error unsupported  the dataset would grow, and its guards allow no new values: names both.
  Status check_growth(std::size_t dataset, const Shape& shape) const;
  /// True if the program chunked the dataset, so that HDF5 can grow and cut it. Requires facts().
  bool may_change_extents(std::size_t dataset) const {
    return std::ranges::find(variables_[dataset].growing, true) !=
           variables_[dataset].growing.end();
  }
  /// True if the file may hold values of the dataset; the same everywhere.
  bool holds_values(std::size_t dataset) const {
    return live_[dataset].flushed || live_[dataset].origin != Origin::created;
  }
  /// True if HDF5 can cut the dataset's chunks itself, because it can run their filters.
  bool hdf5_can_cut(std::size_t dataset) const;
  /// Prepare for HDF5 to cut a dataset's extents, after a flush. HDF5 re-encodes the chunks at the
  /// new edge. If such a chunk was stored raw and its new length happens to equal the old one, HDF5
  /// may keep the old filter mask. So this call saves the contents of these chunks, and after_cut()
  /// stages them again, for a flush that must follow immediately. Errors are agreed; after an error
  /// nothing may be cut. Collective.
  Status before_cut(std::size_t dataset, const Shape& shape);
  /// Stage the saved contents after the cut. Not collective. On failure this rank has lost them.
  Status after_cut(std::size_t dataset);
  /// Discard the saved contents, because HDF5 refused the extents. Not collective.
  void undo_cut(std::size_t dataset) {
    live_[dataset].cut_to.reset();
    cut_parts_.clear();
  }

  /// Begin a collective write, which is later than all previous writes of any rank. No
  /// communication; all ranks must call it alike.
  void begin_collective_put();
  /// End a collective write: flush if a rank stages more than its cap.
  Status settle();
  /// Begin a collective read: flush if any rank has staged values.
  Status sync_to_read();
  /// Begin any other collective call. Errors are alike.
  Status meet() { return begin_collective(); }
  /// Begin closing: wait until all ranks close. Other collective calls fail meanwhile, on all
  /// ranks. @returns failures since the last collective call
  Status meet_to_close();
  Status flush();
  /// Start an async flush, in mode async and if threads can encode it (at least one chunked
  /// dataset, and only built-in codecs). All values are taken before the return. The next
  /// collective call completes the flush and returns its errors. Otherwise like flush().
  Status flush_concurrently();
  /// Start the last flush of the file, like flush_concurrently(); close() must follow at some time.
  Status flush_concurrently_to_close();
  /// Complete the async flush, if one is in flight; then collective.
  Status wait() { return is_flushing() ? begin_collective() : Status(); }
  bool is_flushing() const { return flight_ != nullptr; }
  /// End this process without the others: threads drop the flush in flight, and nothing is flushed
  /// any more. Not collective.
  void end_alone() { drop_flight(); }
  bool flushes_concurrently() const { return options_.file.mode == StepMode::async; }
  Status close();
  /// Close without writing to the file, after close() has failed.
  Status abort();
  bool broken() const { return !output_.broken().ok(); }

 private:
  struct Level {
    std::shared_ptr<const BoxSeries> boxes;    ///< Boxes that chunks follow.
    std::vector<ErrorBound> component_bounds;  ///< Requested bounds; empty: the dataset has one.
    std::vector<double> absolute_bounds;       ///< Resolved component bounds; 0: exact.
  };
  /// Cells of a plotfile level whose values may be dropped.
  struct Cover {
    std::shared_ptr<const BoxSeries> boxes;  ///< Null: unknown, and so are the cells.
    std::function<LevelCover()> find;
    bool known = false;
    std::shared_ptr<const CoveredCells> cells;  ///< Null: none, or unknown.
    bool described = false;                     ///< The dataset's attributes record them.
  };
  struct Live {
    std::uint64_t address = 0;       ///< Address in this rank's file.
    std::uint64_t file_address = 0;  ///< Address in rank 0's file, once committed; else 0.
    std::uint64_t values_at = 0;  ///< Address of contiguous values in this rank's file; 0: unknown.
    Origin origin = Origin::created;
    bool created = false;  ///< Created by a Plan.
    bool dead = false;     ///< Its address now belongs to another dataset.
    bool by_value = true;
    bool addresses = false;
    Status refused;  ///< Why puts are refused although reads work.
    bool flushed = false;
    bool described = false;   ///< Its attributes record how it was stored.
    bool bound_open = false;  ///< Resolved from the values of the first flush.
    /// Compound that this member belongs to, and the member; members are staged like datasets.
    std::size_t whole = SIZE_MAX;
    Member member;
    std::vector<std::size_t> members;  ///< Members' numbers; empty: not a compound.
    std::unique_ptr<Level> level;      ///< Null: no plotfile level, or chunks follow no boxes.
    std::unique_ptr<Cover> cover;      ///< Null: all values are kept.
    Shape shape;
    Shape file_shape;             ///< Shape at the last flush.
    std::optional<Shape> cut_to;  ///< Chunks that are not entirely inside have changed.
  };
  struct CutPart {
    Slab slab;
    std::vector<std::byte> values;
  };

  DatasetArray(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options)
      : ArrayEngine(std::move(comm), std::move(path), options) {
    options_.file.door = Door::hdf5;
  }
  Status start(bool create);
  Status start_private(bool create);
  void preserve_at_root();
  void share_sharing();
  bool shares_chunks(std::size_t dataset) const;
  Status check_put(std::size_t dataset);
  /// Staged part of a dataset, or of one member, as sent to rank 0.
  struct PackedPart {
    std::size_t dataset = 0;
    std::size_t staged_as = 0;  ///< The dataset, or one of its members.
    std::uint64_t epoch = 0;
    Slab slab;
    std::span<const std::byte> values;
  };
  static void pack_log(std::size_t dataset, const StagingLog& log, ByteWriter& writer);
  bool write_in_place(const PackedPart& part);
  std::vector<PackedPart> unpack_logs(const std::vector<Bytes>& packed) const;
  Status fold_members(std::vector<bool>& staged);
  Status lay_members(std::size_t dataset, const std::vector<Bytes>& packed);
  Status get_stored(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  void share_preserved();
  Result<FieldDefinition> define_new(const Definition& definition, Plan& plan) const;
  Status bound_components(const Definition& definition, FieldOptions& options, Plan& plan) const;
  Status resolve_new(FieldState& field, const Definition& definition, Plan& plan);
  std::vector<double> component_ranges(std::size_t dataset) const;
  Status resolve_component_bounds(const ArrayFlush& flush);
  static DatasetFacts facts_of_new(const Definition& definition);
  void begin_time(std::uint64_t latest);
  void add_members(std::size_t dataset, const Definition& definition);
  /// Dataset that a member belongs to; any other dataset itself.
  std::size_t whole_of(std::size_t dataset) const {
    return live_[dataset].whole == SIZE_MAX ? dataset : live_[dataset].whole;
  }
  Status lay_over(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  Status adopt(std::size_t dataset);
  Status adopt_codec(const StoredDataset& stored, bool created, ArrayVariable& variable,
                     Status& refused) const;
  std::uint64_t time_now() const;
  void leave_meeting();
  std::vector<bool> agree_on_staged();
  Status adopt_staged(std::vector<bool>& staged);
  Status learn_covers(const std::vector<bool>& staged);
  Status receive_cover(std::size_t dataset);
  Status flush_these(std::vector<bool> staged, bool hold_back, bool closing,
                     FlushMode mode = FlushMode::at_once);
  Status settle_to_read(std::size_t dataset);
  Status resolve_open_bounds(const ArrayFlush& flush);
  Status insert_at_root(ArrayFlush& flush, std::size_t f, std::span<const WrittenChunk> chunks);
  Status write_plain_at_root(const std::vector<Bytes>& plain);
  Status describe_at_root(bool closing);
  Result<bool> is_alive(std::size_t dataset);
  Status read_flushed(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  Result<FlushedFile*> flushed_file();
  const FlushedFile::Dataset& listed(std::size_t dataset);
  void drop_readers();

  /// Convert a part, or a slab, to a box within the dense array of its slab.
  static Box box_of(const SlabPart& part);
  static Box box_of(const Slab& slab);
  std::uint64_t now_epoch() const;
  std::uint64_t phase_of(std::uint64_t epoch) const override;
  Shape shape_of(std::size_t dataset) const override { return live_[dataset].shape; }
  Shape committed_shape_of(std::size_t dataset) const override {
    const Live& live = live_[dataset];
    return live.file_shape.empty() ? live.shape : live.file_shape;
  }
  std::string quoted(std::size_t dataset) const override {
    return "dataset \"" + variables_[dataset].definition.path + "\"";
  }
  Status prepare_new(ArrayFlush& flush) override { return resolve_open_bounds(flush); }
  Status load_places(const ArrayFlush& flush) override;
  Bytes pack_plain(const ArrayFlush& flush) const override;
  void prepare_publish() override { drop_readers(); }
  Status publish_at_root(ArrayFlush& flush, const std::vector<std::vector<WrittenChunk>>& chunks,
                         const std::vector<Bytes>& plain) override;
  std::vector<bool> definable() const override {  // Each has a dataset.
    return std::vector<bool>(variables_.size());
  }
  void published(const ArrayFlush& flush) override;
  void handed_over(ArrayFlush& flush) override;
  void taken_back(const ArrayFlush& flush) override;
  void add_to_meeting(RankNumbers& along) override;

  // State of a file that was opened, as the other ranks continue to see it.
  bool opened_ = false;
  std::vector<std::string> sharing_;         ///< Datasets that share chunk addresses with others.
  PreservingStorage* preserving_ = nullptr;  ///< Rank 0.
  std::uint64_t opened_bytes_ = 0;
  std::uint64_t least_memory_bytes_ = 0;  ///< Minimum of memory= over all ranks.
  std::uint64_t least_room_bytes_ = 0;    ///< Minimum over all ranks of memory= less staging.
  DirtyBytes preserved_;
  std::unique_ptr<PrivateStorage> private_storage_;  ///< All ranks but 0.
  std::uint64_t private_end_ = 0;
  std::unique_ptr<Hdf5File> private_file_;
  std::vector<Live> live_;                 ///< Parallel to variables_.
  SpanSet placed_;                         ///< Address ranges used by small datasets at any time.
  std::uint64_t placed_bytes_ = 0;         ///< Written by rank 0 at these addresses.
  std::set<std::string> component_globs_;  ///< Component globs of all created datasets.
  std::map<std::string, std::set<std::string>> outcomes_;
  std::map<std::uint64_t, std::size_t> by_address_;
  std::size_t n_published_ = 0;  ///< Datasets whose file address all ranks know.
  std::uint64_t call_epoch_ = 0;
  std::uint64_t flushed_epoch_ = 0;  ///< Value of epoch_ at the last complete flush.
  bool flushed_to_close_ = false;    ///< Nothing is left to flush, or it is in flight.
  /// Numbers of this rank; after a meeting, the maximum over all ranks.
  struct Meeting {
    std::uint64_t short_of_memory = 0;
    std::uint64_t latest = 0;  ///< Clock time.
    std::uint64_t most_calls = 0;
  } meeting_;
  std::uint64_t calls_since_flush_ = 0;  ///< Maximum over all ranks, as of the last agreement.
  std::uint64_t time_base_ = 0;          ///< Start of the time in epochs; the same on every rank.
  std::vector<CutPart> cut_parts_;  ///< This rank's share, between before_cut() and after_cut().
  /// True after any deletion; a deleted dataset exists as long as it is open anywhere.
  bool deleted_ = false;
  /// Counted objects in this rank's file. For an opened file, found at the first deletion.
  CountedObjects counted_;
  bool counted_known_ = false;
  std::optional<HeldObjects> held_;               ///< Set during a deletion.
  int n_deletions_ = 0;                           ///< Deletions in progress, nested.
  std::optional<std::set<std::uint64_t>> alive_;  ///< Rank 0 only, during a flush.
  // Readers of the last flush, each made on first use.
  std::unique_ptr<FlushedFile> flushed_file_;
  std::map<std::size_t, FlushedFile::Dataset> listed_;
  std::unique_ptr<ChunkReader> reader_;
};

}  // namespace tailrace
