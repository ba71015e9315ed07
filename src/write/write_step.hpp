// StepRecord: what the application has said since the last step. Step: all that belongs to one step
// between its puts and its commit.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/comm.hpp"
#include "exec/executor.hpp"
#include "exec/lane_clock.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"
#include "output/publish_fields.hpp"
#include "write/write_plan.hpp"

namespace tailrace {

// --- StepRecord: what the application has said since the last step: fields, puts, attributes.
//
// Recording is not collective and touches no file. The first bad call of this rank is kept, so that
// the next end_step returns it on every rank.

class StepRecord {
 public:
  /// As the Writer's calls of the same names; a field's index is its number.
  Result<std::size_t> define_field(const FieldDefinition& definition);
  Status set_attribute(const std::string& object_path, const std::string& name,
                       AttributeValue value);
  Status put(std::size_t number, const Box& box, const void* values, bool copy);
  Status put_source(std::size_t number, const Box& box, BoxSource& source);
  /// Keep the first failure of this rank's calls, for end_step to share. @returns `failure`.
  Status note(const Status& failure);

  /// Whether this rank has said anything that a step would have to write.
  bool anything() const;
  /// A text that is equal on two ranks exactly if they define the same fields and attributes.
  std::string definitions_text() const;
  /// Forget what was put. After a failure also forget attributes and the fields that are not in the
  /// file: their paths are free again.
  void forget_step(bool failed);
  /// Forget a step that never began, beside one that is under way.
  void forget_open_step();

  /// The field of this number, which is not done.
  FieldState& field(std::size_t number) { return fields[known_[number].place]; }
  const FieldState& field(std::size_t number) const { return fields[known_[number].place]; }
  /// The place in `fields` of the field of this number, which is not done.
  std::size_t place_of(std::size_t number) const { return known_[number].place; }
  /// Paths of all fields, by number.
  std::vector<std::string> paths() const;

  /// Fields by place. A field that is done leaves its place to one that is defined later: a file
  /// with a group per step has thousands of these, and a step looks at every place.
  std::vector<FieldState> fields;
  std::vector<PendingAttribute> attributes;
  Status put_status;  ///< The first bad call since the last step, on this rank.

 private:
  struct Known {
    std::string path;
    std::size_t place = 0;
    bool in_file = false;  ///< Of a field that has left its place: it was written.
  };
  /// Null: it was done, and has left its place.
  const FieldState* find(std::size_t number) const;
  bool is_taken(const std::string& path) const;
  std::size_t take_place();
  Result<PutRecord> check_put(std::size_t number, const Box& box);

  std::vector<Known> known_;                             ///< By number.
  std::unordered_map<std::string, std::size_t> newest_;  ///< By path, the last number of it.
};

// --- Step: all that belongs to one step between its puts and its commit.
//
// In mode sync it lives within end_step. In the other modes it is handed over: it keeps the puts
// and attributes that it came with, while the application records the next step's, until the next
// end_step, wait or close completes it.

/// What a rank puts in a step, as far as chunks and their owners depend on it.
struct PutPattern {
  std::vector<std::size_t> field_indices;  ///< Places of the fields put here, also if empty.
  std::vector<std::vector<Box>> boxes;     ///< Parallel to it.

  bool operator==(const PutPattern&) const = default;
};

/// What all ranks must know of each other before a step is begun: whether they mean the same, and
/// whether they all repeat the last one.
class StepOpening {
 public:
  /// @param last_puts  of this rank, in the last step that was settled.
  /// @param along  more numbers to be reduced, as many on every rank.
  StepOpening(Comm& comm, const StepRecord& record, const std::optional<PutPattern>& last_puts,
              RankNumbers along = {});
  /// To be reduced over all ranks, with whatever they reduce next.
  RankNumbers numbers();
  /// What that has come to: whether the step repeats the last one. Collective, where ranks do not
  /// agree; refuses what a rank has said amiss, or differently from others.
  Result<bool> repeats();

 private:
  std::uint64_t differs_;
  TextAgreement definitions_;
  RankNumbers along_;
};

/// Who adds to a step what has waited for it, once all ranks have said what they mean by the step
/// (gathering_writer).
class StepGuest {
 public:
  virtual ~StepGuest() = default;
  /// Numbers that all ranks must know before join(), as many on every rank; they go with those of
  /// the opening.
  virtual RankNumbers numbers() = 0;
  /// Collective, definitions and numbers being agreed. @returns whether puts have been added.
  /// @error agreed; the step fails.
  virtual Result<bool> join() = 0;
};

struct Step {
  std::vector<std::size_t> field_indices;      ///< Places of its fields, in plan order.
  std::vector<std::vector<PutRecord>> puts;    ///< Handed over with them; empty in mode sync.
  std::vector<PendingAttribute> attributes;    ///< Likewise.
  std::shared_ptr<const Ownership> ownership;  ///< Shared by steps that repeat the same puts.
  StepPlan plan;
  std::vector<int> writers;  ///< By job, who writes it on this node; see exec/executor.hpp.
  StepReport report;
  Trace trace;               ///< Of its lanes.
  RecordedIteration beside;  ///< The iteration that it was written beside; see lab.record=.
  double delay_s = 0;        ///< By which the application's obstacles began late, all together.
  double start_s = 0;        ///< When its end_step was called.
  Status failure;            ///< Of this rank, before anything of it is encoded.

  std::unique_ptr<Executor> executor;  // last: its threads use what stands above

  /// The fields that take part. Pointers are good until the next define_field().
  std::vector<FieldState*> active(StepRecord& record) const;
  /// Take the record's puts and attributes along; plans and ownership go on using them.
  void take(StepRecord& record);
  /// The application waited for a chunk that was being encoded; 0 and less: it did not.
  void count_delay(double seconds);
};

/// What was recorded, if it is nothing but puts of fields that are in the file already, from
/// memory: such a step may be the last one over again. Not collective.
std::optional<PutPattern> repeatable_puts(const StepRecord& record);

/// Refuse what cannot go on without the main thread. Not collective.
/// @error unsupported  a layout that must know all sizes first, or values that are pulled.
Status check_can_be_handed_over(std::span<FieldState* const> active);

}  // namespace tailrace
