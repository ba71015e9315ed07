// DatasetArray: the datasets of an HDF5 file whose metadata the program writes itself.
//
// Every rank has a metadata file, which the program changes by HDF5's own calls (RankMetadata).
// Only values take another path: they are staged as by an ArrayFile, and a flush writes them chunk
// by chunk, from all ranks, into rank 0's file. Frontend: hdf5, which knows the program's calls.
// This class has these calls, the agreement between ranks, and the flush. dataset_plan decides how
// a dataset is stored. dataset_lifetimes knows which datasets exist. staged_parts has the members
// of compounds, the values that rank 0 writes, and cuts of extents.
//
// A dataset has a number, the same on every rank, and an address in each rank's file, which differs
// between ranks. Elements are bytes in the file's type; nothing is converted.
//
// Collectivity. create, open, end_collective_put, flush, sync_to_read, before_cut and close are
// collective. add is called alike on all ranks without communication, and the next collective call
// compares these calls. put and get are not collective. The next collective call completes a flush
// that is in flight.
//
// Invariant 1: a flush writes to the dataset that the address denotes on rank 0; if the program has
// deleted that dataset, the values are dropped. Invariant 2: every rank determines independently,
// and identically, which datasets exist and how each is stored; Comm::decide compares the results.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/array_engine.hpp"
#include "array/dataset_lifetimes.hpp"
#include "array/dataset_plan.hpp"
#include "array/element_runs.hpp"
#include "array/flushed_file.hpp"
#include "array/rank_metadata.hpp"
#include "array/staged_parts.hpp"

namespace tailrace {

class DatasetArray final : private ArrayEngine {
 public:
  /// Create a file, or open one to write. `options.file.hdf5_*_list` are the program's property
  /// lists.
  /// @error like Output::create, Output::open
  static Result<std::unique_ptr<DatasetArray>> create(std::unique_ptr<Comm> comm,
                                                      const std::string& path,
                                                      const ArrayFileOptions& options,
                                                      const Status& mine = Status());
  static Result<std::unique_ptr<DatasetArray>> open(std::unique_ptr<Comm> comm,
                                                    const std::string& path,
                                                    const ArrayFileOptions& options,
                                                    const Status& mine = Status());
  ~DatasetArray();

  Comm& comm() { return *comm_; }
  const std::string& path() const { return path_; }
  const ArrayFileReport& report() const { return report_; }
  std::string remark() const { return output_.remark(); }
  std::string closing_remark() const { return closing_remark_; }  ///< Like ArrayFile's.
  /// Like ArrayFile's.
  std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }
  /// Outcomes of datasets, each with the paths concerned; for the report.
  const std::map<std::string, std::set<std::string>>& outcomes() const {
    return decisions_.outcomes();
  }
  /// This rank's metadata file. The program has no object open through its HDF5 id.
  Hdf5File& metadata() { return metadata_.file(); }

  /// Decide how a new dataset is stored. Not collective, alike everywhere.
  /// @error invalid_argument, unsupported  options of this dataset
  Result<DatasetPlan> plan_new(const NewDataset& definition) {
    return plan_dataset(definition, options_, least_memory_, *comm_);
  }
  /// Set the call that lists the objects of rank 0's file for decisions by roles. Call before the
  /// first flush.
  void list_objects_by(DeferredDecisions::ListObjects call) { list_objects_ = std::move(call); }
  /// True if the first flush of the dataset will decide whether a bound for all datasets applies.
  bool role_open(std::size_t dataset) const { return decisions_.role_open(dataset); }
  /// Register a dataset that was created at `address` in this rank's file. @returns its number
  /// @param values_at  address of its contiguous values in that file; 0: unknown.
  std::size_t add(const NewDataset& definition, const DatasetPlan& plan, std::uint64_t address,
                  std::uint64_t values_at);
  /// Bytes of small datasets that rank 0 has written directly, at their address.
  std::uint64_t placed_bytes() const { return parts_.placed_bytes(); }
  /// Register a dataset that Tailrace did not plan. It is inspected on first use.
  std::size_t add_existing(const std::string& path, std::uint64_t address, DatasetOrigin origin);
  /// Find the dataset at an address of this rank's file.
  std::optional<std::size_t> find(std::uint64_t address) const { return lifetimes_.find(address); }
  /// Record that the program's creation of a dataset failed. All ranks must do so; otherwise the
  /// next collective call breaks off. The dataset must not be visible afterwards.
  void give_up(const std::string& path) {
    look_for_deleted();
    note_change("what could not be created", path);
  }
  /// Make flushes check which datasets still exist, because the program may have deleted some.
  void look_for_deleted() { lifetimes_.look_for_deleted(); }
  /// Bracket a call that deletes objects by links or reference counts. Not collective, alike
  /// everywhere.
  void begin_deletion() { lose(lifetimes_.begin_deletion()); }
  void end_deletion() { lifetimes_.end_deletion(); }
  /// Record that the program changed the reference count of an object in this rank's file
  /// independently of its links.
  void note_count(std::uint64_t address, int change) {
    lose(lifetimes_.note_count(address, change));
  }

  /// Note an attribute that the program has created. Flushes compare the notes of all ranks.
  void note_attribute(const std::string& object, std::string_view name) {
    if (comm_->n_ranks() > 1) attributes_.add(object, name);
  }

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
  /// Record a failure, if it is one, after which no rank can flush any more.
  void lose(const Status& failure) { ArrayEngine::lose(failure); }
  /// Number under which a member of a compound is put separately, dense and in the file's type. Its
  /// puts are ordered together with those of other members and of complete elements. Empty if the
  /// dataset was not created here, or if the communicator has one rank.
  std::optional<std::size_t> member_of(std::size_t dataset, const std::string& name) const {
    return parts_.find_member(dataset, name);
  }
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
    return states_[dataset].flushed || states_[dataset].origin != DatasetOrigin::created;
  }
  /// True if HDF5 can cut the dataset's chunks itself, because it can run their filters.
  bool hdf5_can_cut(std::size_t dataset) const;
  /// Prepare for HDF5 to cut a dataset's extents, after a flush: save the contents of the chunks at
  /// the new edge. after_cut() stages them again, for a flush that must follow immediately. Errors
  /// are agreed; after an error nothing may be cut. Collective.
  Status before_cut(std::size_t dataset, const Shape& shape);
  /// Stage the saved contents after the cut. Not collective. On failure this rank has lost them.
  Status after_cut(std::size_t dataset);
  /// Discard the saved contents, because HDF5 refused the extents. Not collective.
  void undo_cut(std::size_t dataset) { cut_.undo(dataset); }

  /// Begin a collective write, which is later than all previous writes of any rank. No
  /// communication; all ranks must call it alike.
  void begin_collective_put();
  /// End a collective write: flush if a rank stages more than its cap.
  Status end_collective_put();
  /// Begin a collective read: flush if any rank has staged values.
  Status sync_to_read();
  /// Begin any other collective call. Errors are alike.
  Status meet() { return begin_collective(); }
  /// Begin closing: wait until all ranks close. Other collective calls fail meanwhile, on all
  /// ranks. Collective: one agreement, more while some ranks make other calls.
  /// @param most  numbers of the caller, kNumbersToMeet at most, replaced by their maximum over all
  /// ranks.
  /// @returns failures since the last collective call
  Status meet_to_close(std::span<std::uint64_t> most = {});
  static constexpr std::size_t kNumbersToMeet = 4;
  Status flush();
  /// Start an async flush, in the modes async and in_situ and if threads can encode it (at least
  /// one chunked dataset, and only built-in codecs). All values are taken before the return. The
  /// next collective call completes the flush and returns its errors. Otherwise like flush().
  Status flush_concurrently();
  /// Start the last flush of the file, like flush_concurrently(); close() must follow at some time.
  Status flush_concurrently_to_close();
  /// Complete the async flush, if one is in flight; then collective.
  Status wait() { return is_flushing() ? begin_collective() : Status(); }
  bool is_flushing() const { return flight_ != nullptr; }
  /// End this process without the others: threads drop the flush in flight, and nothing is flushed
  /// any more. Not collective.
  void end_alone() { drop_flight(); }
  bool flushes_concurrently() const { return options_.file.mode != StepMode::sync; }
  bool uses_idle_time() const { return options_.file.mode == StepMode::in_situ; }
  /// Flush and close. Directly after meet_to_close() it does not meet again. Collective. Cost
  /// without values: an agreement and two broadcasts, after meet_to_close().
  /// @param along  numbers of the caller, reduced over all ranks.
  Status close(const RankNumbers& along = {});
  /// Close without writing to the file, after close() has failed.
  Status abort(const RankNumbers& along = {});
  bool broken() const { return !output_.broken().ok(); }

 private:
  /// State of a dataset, or of a member of a compound, in addition to its ArrayVariable.
  struct State {
    std::uint64_t file_address = 0;  ///< Header address in rank 0's file, once committed; else 0.
    DatasetOrigin origin = DatasetOrigin::created;
    bool created = false;  ///< Created by a plan.
    bool by_value = true;
    bool addresses = false;
    Status refused;  ///< Why puts are refused although reads work.
    bool flushed = false;
    bool described = false;  ///< Its attributes record how it was stored.
    Shape shape;
    Shape file_shape;  ///< Shape at the last flush.
  };

  DatasetArray(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options)
      : ArrayEngine(std::move(comm), std::move(path), options) {
    options_.file.door = Door::hdf5;
  }
  Status start(bool create, const Status& mine);
  bool shares_chunks(std::size_t dataset) const;
  void add_members(std::size_t dataset, const NewDataset& definition);
  Status adopt(std::size_t dataset);
  Status check_put(std::size_t dataset);
  Status get_stored(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  FlushedFile::Dataset flushed_dataset(std::size_t dataset) const;
  Status complete_to_read(std::size_t dataset);

  void begin_time(std::uint64_t latest);
  std::uint64_t time_now() const;
  std::uint64_t now_epoch() const;
  void leave_meeting();
  std::vector<bool> agree_on_staged();
  Status adopt_staged(std::vector<bool>& staged);
  Status flush_these(std::vector<bool> staged, bool hold_back, bool closing,
                     FlushMode mode = FlushMode::at_once);
  Status insert_at_root(ArrayFlush& flush, std::size_t f, std::span<const WrittenChunk> chunks);
  Status describe_at_root(bool closing);

  std::uint64_t phase_of(std::uint64_t epoch) const override;
  Shape shape_of(std::size_t dataset) const override { return states_[dataset].shape; }
  Shape committed_shape_of(std::size_t dataset) const override {
    const State& state = states_[dataset];
    return state.file_shape.empty() ? state.shape : state.file_shape;
  }
  std::string quoted(std::size_t dataset) const override {
    return quoted_dataset(variables_[dataset].definition.path);
  }
  Status prepare_new(ArrayFlush& flush) override;
  Status load_places(const ArrayFlush& flush) override;
  Bytes pack_plain(const ArrayFlush& flush) const override;
  void prepare_publish() override { flushed_file_.drop(); }
  Status publish_at_root(ArrayFlush& flush, const std::vector<std::vector<WrittenChunk>>& chunks,
                         const std::vector<Bytes>& plain) override;
  /// Each has a dataset, although only the ranks that use it have inspected it.
  std::vector<bool> definable(bool) const override { return std::vector<bool>(variables_.size()); }
  void published(const ArrayFlush& flush) override;
  void handed_over(ArrayFlush& flush) override;
  void taken_back(const ArrayFlush& flush) override;
  void add_to_meeting(RankNumbers& along) override;

  LeastMemory least_memory_;
  std::vector<State> states_;  ///< Parallel to variables_.
  RankMetadata metadata_{*comm_, output_};
  AttributeNotes attributes_;
  DatasetLifetimes lifetimes_{metadata_};
  StagedParts parts_{*comm_, memory_, variables_, output_, lifetimes_};
  DeferredDecisions decisions_{*comm_, options_, variables_};
  DeferredDecisions::ListObjects list_objects_ = [] { return FileObjects(); };
  ExtentCut cut_;
  FlushedFile flushed_file_{*comm_, output_, options_};
  std::set<std::string> component_globs_;  ///< Component globs of all created datasets.
  std::size_t n_published_ = 0;            ///< Datasets whose file address all ranks know.
  std::uint64_t call_epoch_ = 0;
  std::uint64_t flushed_epoch_ = 0;  ///< Value of epoch_ at the last complete flush.
  bool flushed_to_close_ = false;    ///< Nothing is left to flush, or it is in flight.
  /// Numbers of this rank; after a meeting, the maximum over all ranks.
  struct Meeting {
    std::uint64_t short_of_memory = 0;
    std::uint64_t latest = 0;  ///< Clock time.
    std::uint64_t most_calls = 0;
    std::uint64_t staged = 0;  ///< bits_of_staged(), of any rank.
  } meeting_;
  std::array<std::uint64_t, kNumbersToMeet> most_to_meet_{};  ///< Numbers of meet_to_close().
  bool has_met_to_close_ = false;        ///< The last collective call was meet_to_close().
  std::uint64_t calls_since_flush_ = 0;  ///< Maximum over all ranks, as of the last agreement.
  std::uint64_t time_base_ = 0;          ///< Start of the time in epochs; the same on every rank.
};

}  // namespace tailrace
