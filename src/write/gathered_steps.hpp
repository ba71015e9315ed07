// GatheredSteps: the steps of over-time fields that wait until a chunk of several steps is full
// (chunk= with one extent more than the field; docs/adr/0025-steps-in-one-chunk.md).
//
// It stores copies of the values put. An entry of such a field is k steps. It is added to the
// Writer's record when k steps are complete, or fewer when the file is closed. The Writer calls
// join() after the ranks have agreed on a step's definitions. So no extra message is needed while
// the boxes repeat.
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
#include <optional>
#include <span>
#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "field/field.hpp"
#include "write/waiting_steps.hpp"
#include "write/write_report.hpp"
#include "write/write_step.hpp"

namespace tailrace {

class GatheredSteps {
 public:
  /// Record and options must outlive this object.
  GatheredSteps(StepRecord& record, const FileOptions& options)
      : record_(record), options_(options) {}

  /// First extent of the chunk shape, if the field is over time and its chunk shape has one extent
  /// more than the field: the number of steps in a chunk. 0: the chunk shape has no such extent.
  static std::uint64_t steps_in_chunk(const FieldDefinition& definition);
  /// Define a field with entries of `n_steps` steps. @param define_entry  defines the entries.
  Result<std::size_t> define(
      const FieldDefinition& definition, std::uint64_t n_steps,
      const std::function<Result<std::size_t>(const FieldDefinition&)>& define_entry);
  /// True if the steps of this field are gathered here.
  bool holds(std::size_t field_index) const { return fields_.contains(field_index); }
  bool empty() const { return fields_.empty(); }
  /// Copy a box of the open step. Not collective. @error noted in the record
  Status put(std::size_t field_index, const Box& box, const void* values,
             const std::int64_t* strides = nullptr);
  /// Form of put() for values on a device. Holds at most 8 MiB, or one row, beyond the copy.
  Status put_device(std::size_t field_index, const Box& box, const void* values,
                    const CopyFromDevice& copy);
  /// The error of a source for such a field, noted in the record.
  Status refuse_source(std::size_t field_index);
  /// True if this rank has put anything since the last step.
  bool any_put() const;
  /// Retire the fields that were defined since the last step. Call if no rank has put any.
  void retire_unput();
  /// True if this rank has put anything, or defined a field, since the last step.
  /// @param continues  the file is of an earlier run, whose fields are defined again: not counted.
  bool anything_open(bool continues) const;

  /// Numbers that must be reduced before join(), the same number of them on every rank.
  RankNumbers numbers();
  using TryWaiting = std::function<Status(std::span<const std::size_t> field_indices)>;
  /// Add the chunks that this step fills to the record. Collective; requires that definitions and
  /// numbers are agreed. @param try_waiting  checks fields whose first step waits.
  /// @returns true if puts were added. @error agreed; the step fails.
  Result<bool> join(Comm& comm, const TryWaiting& try_waiting);

  /// Fields put in the open step, once it has joined. The same on every rank.
  std::vector<std::size_t> taking_part() const;
  /// Fields whose dimensions have names and whose chunk is not full yet, with their lengths after
  /// the step. @param take_part  fields put in this step, or the other ones.
  std::vector<NamedDataset> named_steps(bool take_part) const;
  /// Fields put in this step whose dimensions have no names, with their lengths after the step.
  /// Empty during write_now(), which adds no step.
  std::vector<NamedDataset> unnamed_steps() const;

  /// Keep the open step: it is committed, or (if steps are handed over) in flight.
  /// @param number  number of the step.
  /// @returns the first step in the chunks of several steps that it writes, if it writes any.
  std::optional<std::uint64_t> keep_step(std::uint64_t number);
  /// Drop what the open step has added, including its new fields.
  void drop_step();
  /// Handle the commit of the step in flight.
  void flight_is_committed();
  /// Undo a failed handed-over step: the steps that waited before it wait again.
  void take_flight_back();

  /// Fields of which steps wait.
  std::vector<std::size_t> waiting_fields() const;
  /// Number of the first waiting step of these fields; `otherwise` if none waits.
  std::uint64_t first_waiting(std::span<const std::size_t> field_indices,
                              std::uint64_t otherwise) const;
  /// Let the next join() add all waiting steps of these fields, in partly filled chunks.
  void write_now(const std::vector<std::size_t>& field_indices) { writing_now_ = field_indices; }
  /// End write_now(). @param written  the fields' steps are in the file.
  void end_write_now(bool written);

  /// Bytes of memory held by waiting and handed-over steps.
  std::uint64_t held_bytes() const;
  /// Set the numbers of waiting steps in a report.
  void count_waiting(StepReport& report) const;

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
    bool handed_in = false;  ///< Added to the record, with all waiting steps.

    // Modes async and in_situ: state of the step that was handed over last.
    std::optional<WaitingSteps> under_way;  ///< Its steps, until it is known to be committed.
    std::uint64_t first_under_way = 0;      ///< Number of the first of them.
    bool part_of_flight = false;
    bool first_in_flight = false;

    std::uint64_t n_per_chunk() const { return entry.steps_per_entry; }
  };
  using Fields = std::map<std::size_t, GatheredField>;  ///< Keyed by the writer's number.

  Status check_attributes() const;
  Status check_coverage(Comm& comm);
  Status submit(std::size_t field_index, GatheredField& field, std::uint64_t n_steps);
  bool defers() const { return options_.mode != StepMode::sync; }
  Status keep_values(GatheredField& field, const PutRecord& put);
  void forget_open_step();

  StepRecord& record_;
  const FileOptions& options_;
  Fields fields_;
  std::vector<std::size_t> writing_now_;  ///< Fields of write_now().
};

}  // namespace tailrace
