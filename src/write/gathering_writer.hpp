// GatheringWriter: a FileWriter that buffers steps of over-time fields until a chunk of several
// steps is full (chunk= with one extent more than the field; docs/adr/steps-in-one-chunk.md).
//
// It stores copies of the values put. For the inner writer an entry of such a field is k steps. It
// gets an entry when k steps are complete, or fewer when the file is closed. All other calls pass
// through. As StepGuest it joins the inner writer's step after the ranks have agreed on the step's
// definitions. So it needs no extra message while the boxes repeat.
//
// Invariant 1: a failed step drops only its own values. Earlier steps wait on, even if they were
// handed over with it, and the next step takes its place.
// Invariant 2: each step is checked when it arrives: elements that no rank, or two ranks, have put
// are an error of that step. Checks of a field that can fail are made in its first step.
// Invariant 3: waiting steps are limited to half of memory=, checked before memory is allocated;
// the lanes have the rest. In the modes async and in_situ, handed-over values count as well until
// they are committed.
// Invariant 4: between two calls, every rank has the same waiting steps of the same fields.

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

/// Writer of a file, with buffered steps.
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
    FieldDefinition step;             ///< Defined by the application.
    FieldDefinition entry;            ///< Entry of k steps.
    bool has_waited = false;          ///< All ranks have accepted its first step.
    WaitingSteps steps;               ///< Waiting steps, and the values put of the next one.
    std::uint64_t first_waiting = 0;  ///< Number of the first waiting step, if any waits.
    std::vector<PendingAttribute> attributes;  ///< Attributes of its dataset, until that exists.
    std::size_t n_attributes_kept = 0;         ///< Attributes whose steps cannot fail any more.
    std::size_t n_attributes_of_step = 0;      ///< Attributes up to the last step.

    // State of the open step.
    bool put_called = false;
    std::vector<PutRecord> puts;  ///< Its boxes; `steps` has the values.
    std::vector<Box> covered_by;  ///< Boxes of this rank at the last coverage check.
    std::uint64_t any_put = 0;    ///< 1 if this rank has put; after reduction, if any has.
    std::uint64_t differs = 0;    ///< Same for boxes that differ from those last checked.
    bool takes_part = false;
    bool handed_in = false;  ///< Submitted to the inner writer, with all waiting steps.

    // Modes async and in_situ: state of the step that was handed over last.
    std::optional<WaitingSteps> under_way;  ///< Its steps, until it is known to be committed.
    std::uint64_t first_under_way = 0;      ///< Number of the first of them.
    bool part_of_flight = false;
    bool first_in_flight = false;

    std::uint64_t n_per_chunk() const { return entry.steps_per_entry; }
  };
  using Fields = std::map<std::size_t, GatheredField>;  ///< Keyed by the writer's number.

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
  bool flight_ = false;  ///< A handed-over step is in flight.
  // Steps are numbered by the calls of end_step before them.
  std::uint64_t n_ended_ = 0;               ///< Number of end_step calls so far.
  std::uint64_t flight_number_ = 0;         ///< Number of the step that was handed over last.
  std::optional<std::uint64_t> published_;  ///< Last step with a commit, maybe pending.
  std::optional<std::uint64_t> committed_;  ///< Last step whose commit is certain.
  /// Maps a step that writes chunks of several steps to the first step in these chunks.
  std::map<std::uint64_t, std::uint64_t> first_of_chunks_;
  std::vector<std::size_t> writing_now_;  ///< Fields that close() writes with partly filled chunks.
  std::unique_ptr<FileWriter> inner_;  ///< Last, since a step in flight may use the values above.
};

}  // namespace tailrace
