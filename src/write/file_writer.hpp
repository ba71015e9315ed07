// FileWriter: the Writer of one file, except for steps that wait until a chunk of several steps is
// full. The GatheringWriter wraps it and adds these. Its calls are those of the Writer. Sources:
// write.cpp, the stages of a step; write_hand_over.cpp, steps that continue while the application
// computes.
//
// The invariants are at the head of write.cpp.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/shared_writes.hpp"
#include "field/lineage.hpp"
#include "output/output.hpp"
#include "write/write.hpp"
#include "write/write_idle.hpp"
#include "write/write_report.hpp"
#include "write/write_step.hpp"

namespace tailrace {

/// Writes the steps of one file.
class FileWriter final {
 public:
  /// @param guest  adds to the steps; must outlive the FileWriter.
  FileWriter(std::unique_ptr<Comm> comm, std::string path, const FileOptions& options,
             StepGuest& guest)
      : comm_(std::move(comm)), path_(std::move(path)), options_(options), guest_(&guest) {}
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  Status start(bool append);

  Comm& comm() { return *comm_; }
  Result<std::size_t> define_field(const FieldDefinition& definition);
  Status set_attribute(const std::string& object_path, const std::string& name,
                       AttributeValue value) {
    return record_.set_attribute(object_path, name, std::move(value));
  }
  Status put(std::size_t field_index, const Box& box, const void* values, bool copy) {
    return record_.put(field_index, box, values, copy);
  }
  Status put_source(std::size_t field_index, const Box& box, BoxSource& source) {
    return record_.put_source(field_index, box, source);
  }
  void note_failure(const Status& failure) { (void)record_.note(failure); }
  Result<StepReport> end_step();
  Result<std::optional<StepReport>> wait();
  void mark(Lane lane, bool begins);
  void idle(double seconds, const std::function<bool()>& done, const std::function<void()>& wait);
  void on_progress(ProgressCallback callback) { progress_ = std::move(callback); }
  void on_log(LogCallback callback);
  void on_metadata(MetadataCallback before, MetadataCallback after) {
    before_datasets_ = std::move(before);
    after_datasets_ = std::move(after);
  }
  std::vector<TraceEvent> gather_trace();
  std::vector<std::string> field_paths() const { return record_.paths(); }

  // --- Calls of the GatheringWriter that wraps it.

  StepRecord& record() { return record_; }
  const FileOptions& options() const { return options_; }
  /// Reason why nothing can be written; ok otherwise. The same on every rank.
  Status usable() const;
  std::uint64_t n_steps() const { return n_steps_; }              ///< Committed steps.
  std::uint64_t n_handed_over() const { return n_handed_over_; }  ///< Modes async and in_situ.
  bool is_under_way() const { return flight_ != nullptr; }
  /// True if the commit of the n_steps()-th step cannot fail any more.
  bool commit_is_certain() const { return !output_.pending() && output_.broken().ok(); }
  /// Reserve memory that the lanes of the next steps must not use, and report how much of it is
  /// held now. Not collective.
  void set_aside(std::uint64_t n_bytes, std::uint64_t n_held_bytes) {
    set_aside_bytes_ = n_bytes;
    held_aside_bytes_ = n_held_bytes;
  }
  /// Check that waiting fields can be written, except for what depends on their values. Sets the
  /// number of steps of their next entry that the file has (FieldState::n_begun). Collective, and
  /// the error is agreed. Cost: a broadcast if the file was opened, two agreements.
  Status try_waiting(std::span<const std::size_t> field_indices);
  /// Close the file like close(). The callbacks end an open step, and then everything in flight.
  /// @param more_is_open  this rank has an open step that is not recorded here.
  Status close_after(bool more_is_open, const std::function<Status()>& end_open_step,
                     const std::function<Status()>& end_all);

 private:
  void share_within_node();
  Result<StepReport> write_step();
  Result<StepReport> hand_over_step();
  Result<std::optional<StepReport>> complete_flight(const RankNumbers& along);
  void end_iteration(double now_s);
  Status prepare_step(Step& step, StepOpening& opening);
  Status complete_step(Step& step, const RankNumbers& along);
  void keep_events(Step& step, const std::vector<WrittenChunk>& written);
  void repeat_last_step(Step& step) const;
  Status settle_step(Step& step);
  Status hear_what_is_there(std::vector<FieldState>& fields, Status& mine);
  Status check_tried(std::span<const std::size_t> places, std::vector<FieldState>& fields) const;
  Status settle_codecs_and_owners(Step& step);
  Status go_on_with_chunks(std::vector<FieldState>& fields);
  bool in_front() const { return options_.field_defaults.layout == front_layout; }
  Status check_front() const;
  Status reserve_front(std::span<FieldState* const> active);
  Status choose_codecs(StepReport& report, RankNumbers& waiting);
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
  StepGuest* guest_;
  LaneClock clock_;
  Trace trace_;
  IterationRecorder recorder_;
  Output output_;

  StepRecord record_;
  LineageTable lineages_;  ///< Passes what committed steps have learned to later fields.
  std::optional<PutPattern> last_puts_;          ///< Puts of this rank in the last settled step.
  std::vector<std::size_t> last_field_indices_;  ///< Agreed for that step.
  std::shared_ptr<const Ownership> last_ownership_;
  std::uint64_t least_threads_ = 1;  ///< Fewest threads of any rank, at the last settled step.
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
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_handed_over_ = 0;
  bool closed_ = false;

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
