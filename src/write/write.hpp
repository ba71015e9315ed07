// Writer: writes fields, passed by put(), into one ordinary HDF5 file.
//
// write.cpp lists the stages: agree on the definitions, choose chunks, assign owners to chunks,
// resolve bounds, encode and write concurrently, gather the index, commit. The frontends (C, CLI,
// Python) translate into these calls and have no policy.
//
// Collectivity. create, open, end_step and close are collective. define_field and set_attribute
// must be called alike by all ranks in the same order, but only record; end_step checks that the
// ranks agree. put is not collective. A failure on one rank is returned by end_step on every rank.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "core/trace.hpp"
#include "exec/field_plan.hpp"
#include "exec/shared_writes.hpp"
#include "field/field.hpp"
#include "field/lineage.hpp"
#include "hdf5/hdf5_file.hpp"
#include "output/output.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"
#include "write/gathered_steps.hpp"
#include "write/write_idle.hpp"
#include "write/write_report.hpp"
#include "write/write_step.hpp"

namespace tailrace {

/// Progress of end_step, passed to a callback on its main thread. Bytes count this node's ranks.
struct Progress {
  std::uint64_t bytes_done = 0;  ///< Uncompressed bytes encoded so far.
  std::uint64_t bytes_total = 0;
};
using ProgressCallback = std::function<void(const Progress&)>;
/// Callback on rank 0 with the HDF5 file around the creation of a step's datasets (for repack).
using MetadataCallback = std::function<Status(Hdf5File&)>;

/// Format the result of Writer::last_committed_step(): "the last step known to be in the file is
/// step 3".
std::string last_committed_text(const std::optional<std::uint64_t>& step);

/// Writes the steps of one file.
class Writer final {
 public:
  /// Create a file. It appears under `path` at the first commit; until then an older file stays.
  /// Collective. Cost: O(log ranks).
  /// @error already_exists  the file exists and options.replace is off.  @error io_error, no_space
  static Result<std::unique_ptr<Writer>> create(std::unique_ptr<Comm> comm, const std::string& path,
                                                const FileOptions& options);
  /// Open an existing HDF5 file to add fields and steps. Collective.
  /// @error not_found, corrupt
  static Result<std::unique_ptr<Writer>> open(std::unique_ptr<Comm> comm, const std::string& path,
                                              const FileOptions& options);
  /// Destroy the writer. Without a close() before, the step in flight is lost, and so are steps
  /// that wait until a chunk of several is full (gathered_steps). A file that was never committed
  /// is removed. This is not collective, so that one rank can give up without the others.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Give up without close(): the destructor's work. Afterwards this object refuses all work. Not
  /// collective; a second call does nothing. MPI_Finalize makes this call if the program has not.
  void abandon();
  /// Describe what an abandoned file has: "all 4 steps are in it", "steps 3 and 4 are lost, the
  /// last step in it is step 2 (counted from 0)". Steps of unknown outcome "may be lost".
  std::string outcome_text() const;
  /// True if abandon() loses ended steps from number `n_reported` up.
  bool loses_steps(std::uint64_t n_reported) const;
  /// Number of end_step() calls so far.
  std::uint64_t n_ended_steps() const { return n_ended_; }
  /// True if MPI_Finalize abandoned the file.
  bool was_open_at_finalize() const { return open_at_finalize_; }

  Comm& comm() { return *comm_; }

  /// Record a field. Same calls in the same order on every rank. @returns its index, from 0 up.
  /// @error invalid_argument  bad path, shape or options.  @error already_exists
  Result<std::size_t> define_field(const FieldDefinition& definition);
  /// Record an attribute of "/", a group, or a field. Same calls on every rank.
  Status set_attribute(const std::string& object_path, const std::string& name,
                       AttributeValue value) {
    return record_.set_attribute(object_path, name, std::move(value));
  }
  /// Record the values of a dimension, which the next step writes once. If the file has a
  /// coordinate of this path, its values must be the same. Same calls on every rank.
  /// @error invalid_argument  bad path.  @error already_exists  a field or coordinate has it.
  Status set_coordinate(Coordinate coordinate) {
    return record_.set_coordinate(std::move(coordinate));
  }
  /// Record the value of a time of the open step, which the next step compares between ranks.
  void note_time(const std::string& path, double value) { record_.note_time(path, value); }
  /// True if a field of this path is defined or in the file. The same on every rank.
  bool has_field(const std::string& path) const { return record_.is_taken(path); }
  /// Record that `values` (row-major, box.count) belong at `box`. Not collective; any number of
  /// calls. The memory must stay unchanged until end_step returns, unless `copy`. An empty box is
  /// allowed. @error invalid_argument, bad_coverage (box outside the shape)
  /// @param strides  bytes from value to value along each dimension, of any sign; `values` is the
  /// box's first value. Null: the values are dense.
  Status put(std::size_t field_index, const Box& box, const void* values, bool copy = false,
             const std::int64_t* strides = nullptr);
  /// Record a source of values, which are pulled chunk by chunk when they are needed. `source` must
  /// live until end_step returns. Pulled boxes must be whole chunks, so options.chunk_shape must be
  /// given.
  Status put_source(std::size_t field_index, const Box& box, BoxSource& source);
  /// Form of put() for values that only `copy` can read. They must stay unchanged until end_step
  /// returns, in every mode. `copy` is called within put_device (fields whose chunks span steps)
  /// and end_step, on the calling thread. @error invalid_argument  values or copy missing.
  /// @error io_error  `copy` failed. Both are also returned by end_step, on every rank.
  Status put_device(std::size_t field_index, const Box& box, const void* values,
                    const CopyFromDevice& copy);

  /// Record a failure of the caller: the next end_step returns it on every rank. Not collective.
  void note_failure(const Status& failure) { (void)record_.note(failure); }

  /// Write and commit all that was put since the last step. Collective. In the modes async and
  /// in_situ: commit the previous step, and hand this one over. The report and a failure are then
  /// those of the previous step (`completed` is false if there was none). Every field defined since
  /// the last end_step must have been put completely; a field with over_time may be put again in
  /// each step. On failure nothing of this step is in the file. Steps of a field whose chunks hold
  /// several steps wait until a chunk is full, or for close(). Waiting steps survive the failure of
  /// a later step. The report counts them.
  Result<StepReport> end_step();
  /// Wait until the last handed-over step is committed. Modes async and in_situ. Collective.
  /// @returns its report; std::nullopt if no step was handed over.
  Result<std::optional<StepReport>> wait();
  /// Return the last step that is certainly in the file; so is every earlier step that did not
  /// fail. std::nullopt: no step is. Steps are numbered from 0 by this Writer's calls of end_step.
  /// In the modes async and in_situ a commit is certain when the next end_step, or wait, has
  /// returned. A step with a part that waits for a chunk of several steps is not in the file. The
  /// same on every rank; changes only in collective calls. Not collective.
  std::optional<std::uint64_t> last_committed_step() const;
  /// Mark that the application begins, or ends, to use a lane. Mode in_situ. Not collective.
  void mark(Lane lane, bool begins);
  /// Encode while the application's thread is idle: until `done`, at most for `seconds`. Modes
  /// async and in_situ. Without `done` it returns as soon as nothing is left to encode. Not
  /// collective.
  /// @param wait  called at most once, when this thread has nothing left to do. It must return when
  /// `done` would return true. It replaces polling, which takes the core from computing threads.
  void idle(double seconds, const std::function<bool()>& done,
            const std::function<void()>& wait = {});

  /// End an open step, write the waiting steps (even after a failure), commit, close. Collective.
  /// The object is unusable afterwards.
  Status close();

  /// Return the chunk shape that Tailrace would choose for a field of this shape, shared by
  /// `n_ranks` ranks in whole chunks. Not collective.
  static Shape choose_chunk_shape(const Shape& shape, DType dtype, std::uint64_t chunk_bytes,
                                  int n_ranks);

  void on_progress(ProgressCallback callback) { progress_ = std::move(callback); }
  void on_log(LogCallback callback);
  /// Set callbacks for rank 0, called once per step: before the step's datasets are created, and
  /// after they and their attributes exist. A failure fails the step on every rank. With
  /// layout=front each is called twice: first on a file that is discarded, before any data are
  /// written.
  void on_metadata(MetadataCallback before_datasets, MetadataCallback after_datasets) {
    before_datasets_ = std::move(before_datasets);
    after_datasets_ = std::move(after_datasets);
  }

  /// Gather all trace events of all ranks so far at rank 0 (empty elsewhere). Collective. Needs
  /// options.trace.
  std::vector<TraceEvent> gather_trace();
  /// Paths of the fields by index, for traces and tables.
  std::vector<std::string> field_paths() const { return record_.paths(); }

 private:
  Writer(std::unique_ptr<Comm> comm, std::string path, const FileOptions& options)
      : comm_(std::move(comm)), path_(std::move(path)), options_(options) {}
  Status start(bool append);
  /// Reason why nothing can be written; ok otherwise. The same on every rank.
  Status usable() const;

  // write_outcome.cpp: what a step's success or failure means for steps that wait.
  /// End a step, or complete the last one, by `call`; then keep or drop the waiting steps.
  /// @param ends_step  read when `call` has returned.
  template <class Call>
  auto conclude(Call&& call, const bool& ends_step);
  RankNumbers numbers_along(bool anything_open, bool any_put);
  Status go_out_of_step(StepOpening& opening);
  void note_published(std::uint64_t number);
  Status with_lost(const Status& failure, std::uint64_t first, std::uint64_t last) const;
  Status with_uncertain(const Status& failure) const;
  void set_aside();
  bool defers() const { return options_.mode != StepMode::sync; }
  Status write_what_waits();
  Status write_now(const std::vector<std::size_t>& field_indices);

  // write.cpp, write_hand_over.cpp: a step of entries that are complete.
  Result<std::size_t> define_entry(const FieldDefinition& definition);
  Result<StepReport> end_recorded_step();
  Result<std::optional<StepReport>> complete_last_step();
  /// Check that waiting fields can be written, except for what depends on their values. Sets the
  /// number of steps of their next entry that the file has (FieldState::n_begun). Collective, and
  /// the error is agreed. Cost: a broadcast if the file was opened, two agreements.
  Status try_waiting(std::span<const std::size_t> field_indices);
  void share_within_node();
  Result<StepReport> write_step();
  Result<StepReport> hand_over_step();
  Result<std::optional<StepReport>> complete_flight(const RankNumbers& along);
  void end_iteration(double now_s);
  Status prepare_step(Step& step, StepOpening& opening);
  Status complete_step(Step& step, const RankNumbers& along);
  void keep_events(Step& step, const std::vector<WrittenChunk>& written);
  void repeat_last_step(Step& step) const;
  Status prepare_changed_step(Step& step);
  Status find_existing_parts(std::vector<FieldState>& fields, Status& mine);
  Status check_tried(std::span<const std::size_t> places, std::vector<FieldState>& fields) const;
  Status choose_codecs_and_owners(Step& step);
  Status go_on_with_chunks(std::vector<FieldState>& fields);

  // write_dimensions.cpp: names of dimensions.
  Status read_dimensions(const std::vector<FieldState>& fields);
  Status check_late_times(const std::vector<FieldState>& fields) const;
  Status try_dimensions(const std::vector<FieldState>& fields) const;
  std::vector<NamedDataset> unnamed_over_time(std::span<FieldState* const> active) const;
  Status plan_dimensions(std::span<FieldState* const> active);
  Status check_dimensions(std::span<FieldState* const> active);
  Status check_attributes();
  bool in_front() const { return options_.field_defaults.layout == kFrontLayout; }
  Status check_front() const;
  Status reserve_front(std::span<FieldState* const> active);
  Status choose_codecs(StepReport& report, RankNumbers& waiting);
  void note_raw_chunks(std::span<FieldState* const> active, const StepReport& report);
  std::string profile_name() const;
  Status plan(std::span<FieldState* const> active, Step& step);
  void balance(Step& step);
  std::unique_ptr<Executor> make_executor(Step& step);
  Status encode_and_write(Step& step, ExecutorReport& done, double& sync_s);
  Status publish(Step& step, std::span<FieldState* const> active, const Status& own,
                 const std::vector<WrittenChunk>& written, StepSums& sums);
  /// Changes of a step to the file's datasets.
  struct Updates {
    std::vector<Hdf5File::DatasetUpdate> of_datasets;
    std::vector<std::uint64_t> n_before;          ///< Chunks of the earlier entries.
    std::vector<std::vector<StoredChunk>> begun;  ///< Chunks that the update replaces.
  };
  Updates updates_of(std::span<FieldState* const> active, Notes notes) const;
  bool any_lossy(std::span<FieldState* const> active) const;
  static Status publish_datasets(Hdf5File& file, Updates& updates,
                                 const std::vector<std::vector<WrittenChunk>>& by_plan);
  Status publish_at_root(const Step& step, std::span<FieldState* const> active,
                         GatheredChunks&& chunks, StepReport& report);
  Status write_trace();
  void trace_plan_of(const Step& step, double start_s);
  void trace_root(TraceEvent::Kind kind, std::int32_t lane, double start_s, double end_s);
  void forget_step(bool failed);
  void forget_after_throw();
  std::uint64_t n_threads() const;

  std::unique_ptr<Comm> comm_;
  std::string path_;
  FileOptions options_;
  LaneClock clock_;
  Trace trace_;
  IterationRecorder recorder_;
  Output output_;

  StepRecord record_;
  GatheredSteps gathered_{record_, options_};
  LineageTable lineages_;          ///< Passes what committed steps have learned to later fields.
  DimensionTable dimensions_;      ///< Named dimensions of the committed steps.
  bool knows_dimensions_ = false;  ///< dimensions_ includes those of an opened file.
  std::vector<std::string> new_placeholders_;  ///< Scales that the open step must make.
  Status coordinates_fit_;  ///< Do fields have the dimensions of the open step's coordinates?
  StepDimensions step_dimensions_;       ///< Rank 0 only; used while output_ publishes.
  std::optional<PutPattern> last_puts_;  ///< Puts of this rank in the last step with owners.
  std::vector<std::size_t> last_field_indices_;  ///< Agreed for that step.
  std::vector<std::size_t> last_taking_part_;    ///< Gathered fields put in the last step; agreed.
  std::shared_ptr<const Ownership> last_ownership_;
  std::uint64_t least_threads_ = 1;  ///< Fewest threads of any rank, at the last step with owners.
  bool needs_main_lane();
  IdleTime idle_;
  std::optional<MachineProfile> profile_;  ///< Read when the file is opened.
  double write_s_per_byte_ = 0;            ///< Measured on this rank; 0: not yet.
  /// Used in mode in_situ with balancing, and with writers=node.
  std::unique_ptr<SharedWrites> shared_;
  std::uint64_t n_shared_steps_ = 0;
  std::uint64_t set_aside_bytes_ = 0;
  std::uint64_t held_aside_bytes_ = 0;
  bool appended_ = false;  ///< The file was opened, not created.
  NotesOfFile notes_of_file_;
  bool closing_ = false;        ///< Within close().
  bool out_of_step_ = false;    ///< Ranks made different calls: no collective call is possible.
  std::uint64_t any_open_ = 0;  ///< Reduced with a call's first message: anything to write ...
  std::uint64_t any_put_ = 0;   ///< ... and any put, on any rank. Set by close() only.
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_handed_over_ = 0;
  // Steps are numbered by the calls of end_step before them.
  std::uint64_t n_ended_ = 0;               ///< Number of end_step calls so far.
  bool in_flight_ = false;                  ///< The step flight_number_ is not known to be done.
  std::uint64_t flight_number_ = 0;         ///< Number of the step that was handed over last.
  std::optional<std::uint64_t> published_;  ///< Last step with a commit, maybe pending.
  std::optional<std::uint64_t> committed_;  ///< Last step whose commit is certain.
  /// Maps a step that writes chunks of several steps to the first step in these chunks.
  std::map<std::uint64_t, std::uint64_t> first_of_chunks_;
  /// An entry for first_of_chunks_, allocated before a step: its outcome is recorded without.
  std::map<std::uint64_t, std::uint64_t>::node_type spare_;
  bool closed_ = false;
  bool abandoned_ = false;
  bool open_at_finalize_ = false;
  bool last_commit_is_known_ = false;  ///< After abandon(): see Output::abandon().
  bool any_failed_ = false;            ///< A step has failed.

  ProgressCallback progress_;
  LogCallback log_;
  std::vector<std::string> remarks_;  ///< Log lines from before a callback was set.
  MetadataCallback before_datasets_;
  MetadataCallback after_datasets_;

  std::unique_ptr<LaneStock> lane_stock_;  ///< Made by the first step.
  /// Handed-over step. Last, since its threads use the members above.
  std::unique_ptr<Step> flight_;
};

}  // namespace tailrace
