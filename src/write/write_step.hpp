// StepRecord: the application's calls since the last step. Step: state of one step between its puts
// and its commit.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "exec/device_values.hpp"
#include "exec/executor.hpp"
#include "exec/lane_clock.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"
#include "netcdf/step_dimensions.hpp"
#include "output/publish_fields.hpp"
#include "write/write_plan.hpp"

namespace tailrace {

// --- StepRecord: the application's calls since the last step: fields, puts, attributes,
// coordinates.
//
// Recording is not collective and touches no file. This rank's first failing call is stored, so
// that the next end_step returns it on every rank.

class StepRecord {
 public:
  /// Same as the Writer's calls of these names; a field's index is its number.
  Result<std::size_t> define_field(const FieldDefinition& definition);
  Status set_attribute(const std::string& object_path, const std::string& name,
                       AttributeValue value);
  Status set_coordinate(Coordinate coordinate);
  /// Add a time to the definitions, which all ranks must give alike.
  void note_time(const std::string& path, double value) { times.emplace_back(path, value); }
  Status put(std::size_t number, const Box& box, const void* values, bool copy,
             const std::int64_t* strides = nullptr);
  Status put_source(std::size_t number, const Box& box, BoxSource& source);
  Status put_device(std::size_t number, const Box& box, const void* values,
                    const CopyFromDevice& copy);
  /// Store the first failure of this rank's calls, which end_step agrees on. @returns `failure`.
  Status note(const Status& failure);

  /// True if this rank has recorded anything that a step would have to write.
  /// @param continues  the file is of an earlier run, whose fields over time are defined again: not
  /// counted.
  bool anything(bool continues) const;
  /// True if this rank has put anything since the last step.
  bool any_put() const;
  /// Retire the fields over time that were defined since the last step. Call if no rank has put
  /// any.
  void retire_unput_over_time();
  /// A text that is equal on two ranks exactly if they define the same fields and attributes.
  std::string definitions_text() const;
  /// Forget the puts. After a failure also forget attributes and fields that are not in the file,
  /// whose paths become free.
  void forget_step(bool failed);
  /// Forget a step that never began, while another one is in flight.
  void forget_open_step();

  /// Return the field with this number, which must not be done.
  FieldState& field(std::size_t number) { return fields[known_[number].place]; }
  const FieldState& field(std::size_t number) const { return fields[known_[number].place]; }
  /// Return the place in `fields` of the field with this number, which must not be done.
  std::size_t place_of(std::size_t number) const { return known_[number].place; }
  /// True if a field of this path is defined or in the file.
  bool is_taken(const std::string& path) const;
  /// Paths of all fields, by number.
  std::vector<std::string> paths() const;

  /// Fields by place. A field that is done frees its place for a later one: a file with a group per
  /// step has thousands of fields, and a step visits every place.
  std::vector<FieldState> fields;
  std::vector<PendingAttribute> attributes;
  std::vector<Coordinate> coordinates;
  std::vector<std::pair<std::string, double>> times;  ///< Path and value: compared, not written.
  Status put_status;  ///< The first bad call since the last step, on this rank.

 private:
  struct Known {
    std::string path;
    std::size_t place = 0;
    bool in_file = false;  ///< Set when the field leaves its place: it was written.
  };
  /// Return null if the field was done and has left its place.
  const FieldState* find(std::size_t number) const;
  std::size_t take_place();
  Result<PutRecord> check_put(std::size_t number, const Box& box);

  std::vector<Known> known_;  ///< Indexed by number.
  /// Maps a path to the last number with it.
  std::unordered_map<std::string, std::size_t> newest_;
};

// --- Step: state of one step between its puts and its commit.
//
// In mode sync it lives within end_step. In the other modes it is handed over: it owns its puts and
// attributes, while the application records the next step's. The next end_step, wait or close
// completes it.

/// This rank's puts in a step, as far as chunks and owners depend on them.
struct PutPattern {
  std::vector<std::size_t> field_indices;  ///< Places of the fields put here, also if empty.
  std::vector<std::vector<Box>> boxes;     ///< Parallel to field_indices.

  bool operator==(const PutPattern&) const = default;
};

/// Agreement that begins each collective call of a file: do all ranks make the same call, have they
/// the same definitions, and do they all repeat the last step's puts?
/// Invariant: the first message of every such call has these numbers, so that ranks in different
/// calls find out.
class StepOpening {
 public:
  /// @param last_puts  of this rank, in the last step with owners.
  /// @param along  more numbers to be reduced, the same number of them on every rank.
  /// @param call  name of the call that this begins.
  StepOpening(Comm& comm, const StepRecord& record, const std::optional<PutPattern>& last_puts,
              RankNumbers along, const std::string& call);
  /// Return numbers to be reduced over all ranks, with the next reduction.
  RankNumbers numbers();
  /// Return whether the step repeats the last one, once the numbers are reduced. Collective if
  /// ranks do not agree. Fails if a rank's call failed or its definitions differ from others.
  Result<bool> repeats();
  /// Return whether other ranks make another call, once the numbers are reduced. Then repeats()
  /// fails and names the calls.
  bool calls_differ() const { return call_ != ~call_complement_; }

 private:
  std::uint64_t differs_;
  std::uint64_t call_;  ///< Hash of the call's name; least of all ranks, like its complement.
  std::uint64_t call_complement_;
  TextAgreement definitions_;
  RankNumbers along_;
};

/// State of one step.
struct Step {
  std::vector<std::size_t> field_indices;      ///< Places of its fields, in plan order.
  std::vector<std::vector<PutRecord>> puts;    ///< Handed over with the fields; empty in mode sync.
  std::vector<PendingAttribute> attributes;    ///< Handed over too.
  std::vector<Coordinate> coordinates;         ///< Handed over too.
  std::shared_ptr<const Ownership> ownership;  ///< Shared by steps that repeat the same puts.
  StepPlan plan;
  std::vector<int> writers;  ///< Rank on the node that writes each job; see exec/executor.hpp.
  StepReport report;
  Trace trace;                  ///< Events of its lanes.
  RecordedIteration iteration;  ///< Iteration during which it was written; see lab.record=.
  double delay_s = 0;           ///< Total delay of the application's obstacles.
  double start_s = 0;           ///< Time of its end_step call.
  Status failure;               ///< Failure of this rank, before anything is encoded.

  std::unique_ptr<Executor> executor;  // last: its threads use the members above

  /// Return the fields that take part. The pointers are valid until the next define_field().
  std::vector<FieldState*> active(StepRecord& record) const;
  /// Move the record's puts and attributes here; plans and ownership still point to them.
  void take(StepRecord& record);
  /// Count the time that the application waited for a chunk being encoded; no effect if <= 0.
  void count_delay(double seconds);
};

/// Normalise a path as fields have it: without empty names and ".", which HDF5 ignores.
std::string plain_path(const std::string& path);

/// The datasets of a step whose dimensions have names, as they are after it (write_dimensions.cpp).
std::vector<NamedDataset> named_datasets(std::span<FieldState* const> active);
/// Add the datasets of coordinates.
std::vector<NamedDataset> with_coordinates(std::vector<NamedDataset> datasets,
                                           std::span<const Coordinate> coordinates);

/// Return this rank's puts if the record has nothing else, all of them from memory and of fields in
/// the file. Such a step may repeat the last one. Not collective.
std::optional<PutPattern> repeatable_puts(const StepRecord& record);

/// Check that the fields can be written without the main thread. Not collective.
/// @error unsupported  a layout that must know all sizes first, or values that are pulled.
Status check_can_be_handed_over(std::span<FieldState* const> active);

}  // namespace tailrace
