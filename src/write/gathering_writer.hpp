// GatheringWriter: a FileWriter that lets steps of over-time fields wait until a chunk of several
// of them is full (chunk= with one extent more than the field; docs/adr/steps-in-one-chunk.md).
//
// It keeps copies of what was put. The writer within knows such a field as one whose entries are k
// steps, and gets an entry when k are there, or when the file is closed: then of fewer. All else
// passes through. As StepGuest it comes into the writer's step where all ranks have told what they
// mean by it, so that it costs no message of its own while boxes repeat.
//
// Invariant 1: what a step has brought goes if the step fails, and nothing else: steps before it
//   wait on, also where they had been handed over with it, and the next step takes its place.
// Invariant 2: each step is checked when it comes: elements that nobody, or two ranks, have put are
//   its own error. What can be refused of a field is refused in its first step.
// Invariant 3: what waits is decided against half of memory= before memory is taken, and the lanes
//   have the rest; in the modes async and in_situ what has been handed over counts as well, until
//   it is committed.
// Invariant 4: which steps wait, and of which fields, is the same on every rank between two calls.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "write/file_writer.hpp"
#include "write/waiting_steps.hpp"

namespace tailrace {

class GatheringWriter final : public Writer, private StepGuest {
 public:
  GatheringWriter(std::unique_ptr<Comm> comm, std::string path, const FileOptions& options)
      : inner_(std::make_unique<FileWriter>(std::move(comm), std::move(path), options,
                                            static_cast<StepGuest&>(*this))) {}
  Status start(bool append) { return inner_->start(append); }

  Comm& comm() override { return inner_->comm(); }
  Result<std::size_t> define_field(const FieldDefinition& definition) override;
  Status set_attribute(const std::string& object_path, const std::string& name,
                       AttributeValue value) override {
    return inner_->set_attribute(object_path, name, std::move(value));
  }
  Status put(std::size_t field_index, const Box& box, const void* values, bool copy) override;
  Status put_source(std::size_t field_index, const Box& box, BoxSource& source) override;
  void note_failure(const Status& failure) override { inner_->note_failure(failure); }
  Result<StepReport> end_step() override;
  Result<std::optional<StepReport>> wait() override;
  std::optional<std::uint64_t> last_committed_step() const override;
  void mark(Lane lane, bool begins) override { inner_->mark(lane, begins); }
  void idle(double seconds, const std::function<bool()>& done,
            const std::function<void()>& wait) override {
    inner_->idle(seconds, done, wait);
  }
  Status close() override;
  void on_progress(ProgressCallback callback) override { inner_->on_progress(std::move(callback)); }
  void on_log(LogCallback callback) override { inner_->on_log(std::move(callback)); }
  void on_metadata(MetadataCallback before, MetadataCallback after) override {
    inner_->on_metadata(std::move(before), std::move(after));
  }
  std::vector<TraceEvent> gather_trace() override { return inner_->gather_trace(); }
  std::vector<std::string> field_paths() const override { return inner_->field_paths(); }

 private:
  struct GatheredField {
    FieldDefinition step;             ///< As the application has it.
    FieldDefinition entry;            ///< Of k steps.
    bool has_waited = false;          ///< All ranks have taken its first step.
    WaitingSteps steps;               ///< Those that wait, and what has been put of the next.
    std::uint64_t first_waiting = 0;  ///< Number of the first that waits, if any does.
    std::vector<PendingAttribute> attributes;  ///< For its dataset, as long as there is none.
    std::size_t n_attributes_kept = 0;         ///< Of them, of steps that cannot fail any more,
    std::size_t n_attributes_of_step = 0;      ///< and up to the last step.

    // The step that is open.
    bool put_called = false;
    std::vector<PutRecord> puts;  ///< Its boxes; the values are in `steps`.
    std::vector<Box> covered_by;  ///< Boxes by which this rank last did its part.
    std::uint64_t any_put = 0;    ///< This rank's, then any rank's.
    std::uint64_t differs = 0;    ///< Likewise: boxes that are to be checked.
    bool takes_part = false;
    bool handed_in = false;  ///< With all that waited.

    // Modes async and in_situ: the step that was handed over last.
    std::optional<WaitingSteps> under_way;  ///< With these, till it is known to be committed.
    std::uint64_t first_under_way = 0;      ///< Number of the first of them.
    bool part_of_flight = false;
    bool first_in_flight = false;

    std::uint64_t n_per_chunk() const { return entry.steps_per_entry; }
  };
  using Fields = std::map<std::size_t, GatheredField>;  ///< By the writer's number.

  RankNumbers numbers() override;
  Result<bool> join() override;
  Status check_attributes() const;
  Status check_coverage();
  Status hand_in(std::size_t field_index, GatheredField& field, std::uint64_t n_steps);

  bool defers() const { return inner_->options().mode != StepMode::sync; }
  Status keep_values(GatheredField& field, const Box& box, const std::byte* values);
  std::uint64_t held_bytes() const;
  void set_aside();
  void keep_step();
  void drop_step();
  void forget_open_step();
  void flight_is_committed();
  void take_flight_back();
  template <class Call>
  auto settle(Call&& call, bool ends_step);
  Status write_what_waits();
  Status write_now(const std::vector<std::size_t>& field_indices);
  void tell(StepReport& report) const;
  void note_published(std::uint64_t number);
  Status with_lost(const Status& failure, std::uint64_t first, std::uint64_t last) const;

  Fields fields_;
  bool flight_ = false;  ///< A step has been handed over.
  // Steps by number: the calls of end_step before it.
  std::uint64_t n_ended_ = 0;               ///< Calls of end_step so far.
  std::uint64_t flight_number_ = 0;         ///< Of the step that was handed over last.
  std::optional<std::uint64_t> published_;  ///< The last one with a commit, maybe pending.
  std::optional<std::uint64_t> committed_;  ///< The last one whose commit is certain.
  /// Steps that bring chunks of several steps: their numbers, and those of the first steps in them.
  std::map<std::uint64_t, std::uint64_t> first_of_chunks_;
  std::vector<std::size_t> writing_now_;  ///< By close(): fields whose chunk is not full.
  std::unique_ptr<FileWriter> inner_;     ///< Last: what is under way may use the values above.
};

}  // namespace tailrace
