// Buffering of steps: checks, submission of full chunks, and recovery after failures.

#include "write/gathering_writer.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace tailrace {
namespace {

/// Number of steps in a chunk: more than 1 for a field over time whose chunk shape has one extent
/// more than the field.
std::uint64_t steps_in_chunk(const FieldDefinition& definition) {
  const std::optional<Shape>& chunk = definition.options.chunk_shape;
  if (!definition.options.over_time || definition.as_stored != nullptr || !chunk) return 1;
  const bool has_time = chunk->size() == definition.shape.size() + 1 && n_elements(*chunk) > 0;
  return has_time ? chunk->front() : 1;
}

/// Define the same field with entries of `n_steps` steps.
FieldDefinition definition_of_entry(FieldDefinition definition, std::uint64_t n_steps) {
  Shape& chunk = *definition.options.chunk_shape;
  for (std::size_t d = 0; d < definition.shape.size(); ++d) {
    chunk[d + 1] = std::min(chunk[d + 1], std::max<std::uint64_t>(definition.shape[d], 1));
  }
  definition.shape.insert(definition.shape.begin(), n_steps);
  definition.steps_per_entry = n_steps;
  return definition;
}

/// Normalise a path as fields have it: without empty names and ".", which HDF5 ignores.
std::string plain_path(const std::string& path) {
  std::string plain;
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string name = path.substr(start, end - start);
    if (!name.empty() && name != ".") plain += "/" + name;
    start = end + 1;
  }
  return plain;
}

std::vector<Box> boxes_of(std::span<const PutRecord> puts) {
  std::vector<Box> boxes;
  for (const PutRecord& put : puts) boxes.push_back(put.box);
  return boxes;
}

}  // namespace

// --- Calls of the application.

Result<std::size_t> GatheringWriter::define_field(const FieldDefinition& definition) {
  const std::optional<Shape>& chunk = definition.options.chunk_shape;
  const std::uint64_t n_steps = steps_in_chunk(definition);
  if (n_steps == 1) {
    FieldDefinition plain = definition;
    const bool has_time = definition.options.over_time && definition.as_stored == nullptr &&
                          chunk && chunk->size() == definition.shape.size() + 1 &&
                          chunk->front() == 1;
    if (has_time) plain.options.chunk_shape->erase(plain.options.chunk_shape->begin());
    return inner_->define_field(plain);
  }
  Fields made;  // Allocate first: the code below must not fail midway.
  GatheredField& field = made[0];
  field.step = definition;
  field.entry = definition_of_entry(definition, n_steps);
  Fields::node_type node = made.extract(made.begin());
  TAILRACE_TAKE(const std::size_t index, inner_->define_field(field.entry));
  inner_->record().field(index).life = FieldLife::waiting;
  node.key() = index;
  fields_.insert(std::move(node));
  return index;
}

Status GatheringWriter::put(std::size_t field_index, const Box& box, const void* values,
                            bool copy) {
  const auto found = fields_.find(field_index);
  if (found == fields_.end()) return inner_->put(field_index, box, values, copy);
  GatheredField& field = found->second;
  StepRecord& record = inner_->record();
  if (Status fits = check_box(field.step, box); !fits.ok()) return record.note(fits);
  field.put_called = true;
  if (box.empty()) return Status();
  if (values == nullptr) {
    return record.note(Status(Code::invalid_argument, field.step.name() + ": box " + box_text(box) +
                                                          " was put without values"));
  }
  const Status kept = keep_values(field, box, static_cast<const std::byte*>(values));
  return kept.ok() ? kept : record.note(kept);
}

Status GatheringWriter::put_source(std::size_t field_index, const Box& box, BoxSource& source) {
  const auto found = fields_.find(field_index);
  if (found == fields_.end()) return inner_->put_source(field_index, box, source);
  return inner_->record().note(Status(
      Code::unsupported, found->second.step.name() +
                             ": values that are pulled from a source cannot wait until a chunk of "
                             "several steps is full"));
}

/// Copy a box of the open step, if the limit on waiting steps has room for it.
Status GatheringWriter::keep_values(GatheredField& field, const Box& box, const std::byte* values) {
  const std::size_t element = dtype_bytes(field.step.dtype);
  const WaitingSteps::Place place = field.steps.place_for(box, element, field.n_per_chunk());
  if (place.bytes_to_take > 0) {
    std::uint64_t waiting = place.bytes_to_take;
    std::uint64_t under_way = 0;
    for (const auto& [index, other] : fields_) {
      waiting += other.steps.held_bytes();
      if (other.under_way) under_way += other.under_way->held_bytes();
    }
    // A handed-over chunk stays in memory until its commit is known, in addition to the next one.
    const std::uint64_t needed = waiting + (defers() ? std::max(waiting, under_way) : 0);
    const std::uint64_t most = inner_->options().memory_bytes / 2;
    if (needed > most) {
      return Status(Code::out_of_memory,
                    field.step.name() + ": steps that wait for chunks of " +
                        std::to_string(field.n_per_chunk()) + " would need " + bytes_text(needed) +
                        " with it, half of the memory cap is " + bytes_text(most) +
                        "; raise memory= or gather fewer steps");
    }
  }
  PutRecord record;
  record.box = box;
  field.puts.push_back(std::move(record));
  const Status kept = local_part([&] { return field.steps.put(place, box, values); });
  if (!kept.ok()) field.puts.pop_back();
  return kept.within(field.step.name());
}

std::uint64_t GatheringWriter::held_bytes() const {
  std::uint64_t n_bytes = 0;
  for (const auto& [index, field] : fields_) {
    n_bytes += field.steps.held_bytes() + (field.under_way ? field.under_way->held_bytes() : 0);
  }
  return n_bytes;
}

/// Reserve memory for waiting steps. Lanes that run while the application puts cannot release
/// theirs, so half of the cap is reserved in advance.
void GatheringWriter::set_aside() {
  const std::uint64_t held = held_bytes();
  const bool half = defers() && !fields_.empty();
  inner_->set_aside(half ? inner_->options().memory_bytes / 2 : held, held);
}

// --- StepGuest: the ranks have agreed on the step's definitions.

RankNumbers GatheringWriter::numbers() {
  RankNumbers numbers;
  for (auto& [index, field] : fields_) {
    if (!field.has_waited) continue;  // Other ranks may have defined other fields.
    field.any_put = field.put_called ? 1 : 0;
    const bool as_checked = std::ranges::equal(field.puts, field.covered_by, {}, &PutRecord::box);
    field.differs = as_checked ? 0 : 1;
    numbers.add(Reduction::max, field.any_put, field.differs);
  }
  return numbers;
}

Result<bool> GatheringWriter::join() {
  if (fields_.empty()) return false;
  StepRecord& record = inner_->record();
  Status handed_in;
  const auto add = [&](std::size_t index, GatheredField& field, std::uint64_t n_steps) {
    const Status added = local_part([&] { return hand_in(index, field, n_steps); });
    if (handed_in.ok()) handed_in = added;
  };
  if (!writing_now_.empty()) {
    for (const std::size_t index : writing_now_) {
      GatheredField& field = fields_.at(index);
      add(index, field, field.steps.n_steps());
    }
    TAILRACE_TRY(comm().agree(handed_in));
    return true;
  }
  std::vector<std::size_t> fresh;
  for (auto& [index, field] : fields_) {
    if (!field.has_waited) fresh.push_back(index);
    field.takes_part = !field.has_waited || field.any_put != 0;
  }
  if (!fresh.empty()) TAILRACE_TRY(inner_->try_waiting(fresh));
  for (const std::size_t index : fresh) {
    fields_.at(index).steps.stand_behind(record.field(index).n_begun);
  }
  TAILRACE_TRY(check_attributes());
  TAILRACE_TRY(check_coverage());
  bool any_due = false;
  for (auto& [index, field] : fields_) {
    // It has no dataset yet, so store its attributes.
    if (record.field(index).life == FieldLife::waiting) {
      const std::string& path = field.step.path;
      const auto rest = std::stable_partition(
          record.attributes.begin(), record.attributes.end(),
          [&](const PendingAttribute& set) { return plain_path(set.object_path) != path; });
      std::move(rest, record.attributes.end(), std::back_inserter(field.attributes));
      record.attributes.erase(rest, record.attributes.end());
    }
    const std::uint64_t n_steps = field.steps.n_steps() + 1;
    if (!field.takes_part || n_steps < field.n_per_chunk()) continue;
    any_due = true;
    add(index, field, n_steps);
    field.handed_in = true;
  }
  if (any_due) TAILRACE_TRY(comm().agree(handed_in));
  return any_due;
}

/// Check that no attribute belongs to an object below a waiting field, since that object would take
/// the field's path. All ranks have the same attributes.
Status GatheringWriter::check_attributes() const {
  const StepRecord& record = inner_->record();
  for (const PendingAttribute& set : record.attributes) {
    const std::string object = plain_path(set.object_path);
    for (const auto& [index, field] : fields_) {
      if (record.field(index).life != FieldLife::waiting) continue;
      if (!object.starts_with(field.step.path + "/")) continue;
      return Status(Code::invalid_argument, "attribute \"" + set.name + "\" of \"" +
                                                set.object_path + "\": \"" + field.step.path +
                                                "\" is a field, not a group");
    }
  }
  return Status();
}

/// Check that every element is put once, unless the boxes are those that were checked last.
Status GatheringWriter::check_coverage() {
  std::vector<OwnedField> owned;
  std::vector<GatheredField*> checked;
  for (auto& [index, field] : fields_) {
    if (!field.takes_part || (field.has_waited && field.differs == 0)) continue;
    const Shape& chunk = *field.entry.options.chunk_shape;
    owned.push_back({field.step.path,
                     {field.step.shape, Shape(chunk.begin() + 1, chunk.end())},
                     field.step.options.allow_holes,
                     std::span<const PutRecord>(field.puts)});
    checked.push_back(&field);
  }
  if (owned.empty()) return Status();
  Settlement settlement(comm(), owned);
  const RankNumbers waiting = settlement.numbers();
  const auto no_more = [](const Ownership&) { return Status(); };
  TAILRACE_TRY(settlement.finish(waiting, no_more).status());
  for (GatheredField* field : checked) field->covered_by = boxes_of(field->puts);
  return Status();
}

/// Submit an entry of `n_steps` steps to the inner writer. Not collective.
Status GatheringWriter::hand_in(std::size_t field_index, GatheredField& field,
                                std::uint64_t n_steps) {
  StepRecord& record = inner_->record();
  FieldState& state = record.field(field_index);
  if (state.life == FieldLife::waiting) {
    record.attributes.insert(record.attributes.end(), field.attributes.begin(),
                             field.attributes.end());
    FieldState anew;  // A failed attempt may have left traces in the old one.
    anew.number = field_index;
    anew.definition = field.entry;
    anew.has_waited = field.has_waited;
    state = std::move(anew);  // Move, all or nothing: memory may be short.
  }
  state.definition.shape.front() = n_steps;
  const std::size_t rank = state.definition.shape.size();
  TAILRACE_TRY(record.put(field_index, {Shape(rank, 0), Shape(rank, 0)}, nullptr, false));
  for (const WaitingSteps::Run& run : field.steps.runs()) {
    TAILRACE_TRY(record.put(field_index, run.box_in_chunk(), run.values.data(), false));
  }
  return Status();
}

// --- Outcome of a step.

/// Keep the open step: it is committed, or (if steps are handed over) in flight.
void GatheringWriter::keep_step() {
  for (auto& [index, field] : fields_) {
    if (field.takes_part) {
      if (field.steps.n_steps() <= field.steps.n_in_file()) field.first_waiting = n_ended_;
      field.steps.keep_step();
    }
    if (field.handed_in) {
      const std::uint64_t first = field.first_waiting;
      std::uint64_t& least = first_of_chunks_.try_emplace(n_ended_, first).first->second;
      least = std::min(least, first);
      if (defers()) {
        field.under_way = std::move(field.steps);
        field.first_under_way = first;
      } else {
        field.attributes.clear();
      }
      field.steps = WaitingSteps();
    } else if (field.takes_part) {
      field.steps.trim();
    }
    field.part_of_flight = defers() && field.takes_part && !field.handed_in;
    field.first_in_flight = defers() && !field.has_waited;
    field.n_attributes_of_step = field.attributes.size();
    if (!defers()) field.n_attributes_kept = field.attributes.size();
    field.has_waited = true;
    FieldState& state = inner_->record().field(index);
    state.has_waited = true;
    // An exception after the commit made FileWriter treat the step as failed.
    if (state.life == FieldLife::retired) state.life = FieldLife::waiting;
  }
  flight_ = defers();
  forget_open_step();
}

/// Drop what the open step has added, including its new fields.
void GatheringWriter::drop_step() {
  for (auto& [index, field] : fields_) {
    field.steps.drop_open_step();
    field.attributes.resize(std::min(field.attributes.size(), field.n_attributes_kept));
  }
  std::erase_if(fields_, [](const auto& entry) { return !entry.second.has_waited; });
  forget_open_step();
}

void GatheringWriter::forget_open_step() {
  for (auto& [index, field] : fields_) {
    field.put_called = field.takes_part = field.handed_in = false;
    field.puts.clear();
  }
}

void GatheringWriter::flight_is_committed() {
  for (auto& [index, field] : fields_) {
    field.n_attributes_kept = field.n_attributes_of_step;
    if (field.under_way) {
      field.under_way.reset();
      field.attributes.clear();
      field.n_attributes_kept = 0;
    }
    field.part_of_flight = field.first_in_flight = false;
  }
}

/// Undo a failed handed-over step: the steps that waited before it wait again.
void GatheringWriter::take_flight_back() {
  first_of_chunks_.erase(flight_number_);
  for (auto& [index, field] : fields_) {
    field.steps.drop_open_step();
    if (field.under_way) {
      field.steps = std::move(*field.under_way);
      field.first_waiting = field.first_under_way;
      field.under_way.reset();
      field.steps.drop_last_step();
    } else if (field.part_of_flight) {
      field.steps.drop_last_step();
    }
    if (field.first_in_flight) {
      field.has_waited = false;  // It is dropped with its first step.
      inner_->record().field(index).life = FieldLife::retired;
    }
    field.part_of_flight = field.first_in_flight = false;
  }
}

/// Let the inner writer end a step, or wait for one; then keep or drop the waiting steps by the
/// outcome. If memory is short, the inner writer may throw before it completes the step in flight,
/// or when everything is done. So the outcome is read from its counters.
template <class Call>
auto GatheringWriter::settle(Call&& call, bool ends_step) {
  const std::uint64_t n_before = inner_->n_steps();
  const std::uint64_t n_handed_over_before = inner_->n_handed_over();
  const std::uint64_t flight = flight_number_;
  bool flight_is_lost = false;
  const auto conclude = [&](bool returned_well) {
    const bool committed = inner_->n_steps() > n_before;
    const bool handed_over = inner_->n_handed_over() > n_handed_over_before;
    // A step that is still in flight: its lanes read the waiting steps.
    const bool flies_on = inner_->is_under_way() && !handed_over;
    if (committed) note_published(defers() ? flight_number_ : n_ended_);
    if (flight_ && !flies_on) {
      flight_ = false;
      if (committed) {
        flight_is_committed();
      } else {
        take_flight_back();
        flight_is_lost = true;
      }
    }
    if (handed_over) flight_number_ = n_ended_;
    const bool step_went_well = defers() ? handed_over : committed;
    if (ends_step && step_went_well) {
      keep_step();
    } else if (ends_step || !returned_well) {
      drop_step();
    }
    if (ends_step) ++n_ended_;
    if (inner_->commit_is_certain()) committed_ = published_;
  };
  try {
    auto result = call();
    conclude(result.ok());
    if (result.ok() || !flight_is_lost) return result;
    return decltype(result)(with_lost(result.status(), flight, ends_step ? n_ended_ - 1 : flight));
  } catch (...) {
    conclude(false);
    throw;
  }
}

/// Record that a step has its commit; the commit of the step before it is then done.
void GatheringWriter::note_published(std::uint64_t number) {
  committed_ = published_;
  published_ = number;
  if (!committed_) return;
  first_of_chunks_.erase(first_of_chunks_.begin(), first_of_chunks_.upper_bound(*committed_));
}

std::optional<std::uint64_t> GatheringWriter::last_committed_step() const {
  if (!committed_) return std::nullopt;
  std::uint64_t end = *committed_ + 1;
  for (const auto& [index, field] : fields_) {
    if (field.steps.n_steps() > field.steps.n_in_file()) end = std::min(end, field.first_waiting);
  }
  for (auto chunks = first_of_chunks_.upper_bound(*committed_); chunks != first_of_chunks_.end();
       ++chunks) {
    end = std::min(end, chunks->second);
  }
  return end > 0 ? std::optional(end - 1) : std::nullopt;
}

std::string last_committed_text(const std::optional<std::uint64_t>& step) {
  return step ? "the last step that is surely in the file is step " + std::to_string(*step)
              : "no step is surely in the file";
}

/// Add to a failure which steps it has lost.
Status GatheringWriter::with_lost(const Status& failure, std::uint64_t first,
                                  std::uint64_t last) const {
  std::string text = "; step " + std::to_string(first) + " is lost";
  if (last > first) {
    text = "; steps " + std::to_string(first) + (last == first + 1 ? " and " : " to ") +
           std::to_string(last) + " are lost";
  }
  text += ", and " + last_committed_text(last_committed_step());
  return Status(failure.code(), failure.message() + text + " (counted from 0)");
}

void GatheringWriter::tell(StepReport& report) const {
  for (const auto& [index, field] : fields_) {
    const std::uint64_t n_steps = field.steps.n_steps() - field.steps.n_in_file();
    report.n_waiting_steps = std::max(report.n_waiting_steps, n_steps);
    report.waiting_bytes += n_steps * field.step.raw_bytes();
  }
}

Result<StepReport> GatheringWriter::end_step() {
  set_aside();
  Result<StepReport> ended = settle([this] { return inner_->end_step(); }, true);
  if (ended.ok()) tell(*ended);
  return ended;
}

Result<std::optional<StepReport>> GatheringWriter::wait() {
  Result<std::optional<StepReport>> waited = settle([this] { return inner_->wait(); }, false);
  if (waited.ok() && *waited) tell(**waited);
  return waited;
}

// --- Closing the file.

Status GatheringWriter::close() {
  const bool open = std::any_of(fields_.begin(), fields_.end(), [](const auto& entry) {
    return entry.second.put_called || !entry.second.has_waited;
  });
  const auto end_all = [this] {
    const Status waited = wait().status();
    const Status written = write_what_waits();
    return waited.ok() ? written : waited;
  };
  return inner_->close_after(
      open, [this] { return end_step().status(); }, end_all);
}

/// Write all waiting steps, in partly filled chunks. If that fails, write each field separately, so
/// that one that cannot be written does not lose the others.
Status GatheringWriter::write_what_waits() {
  std::vector<std::size_t> waiting;
  for (const auto& [index, field] : fields_) {
    if (field.steps.n_steps() > field.steps.n_in_file()) waiting.push_back(index);
  }
  if (waiting.empty()) return Status();
  Status written = write_now(waiting);
  if (written.ok() || waiting.size() == 1 || !inner_->usable().ok()) return written;
  written = Status();
  for (const std::size_t index : waiting) {
    const Status alone = write_now({index});
    if (written.ok()) written = alone;
  }
  return written;
}

Status GatheringWriter::write_now(const std::vector<std::size_t>& field_indices) {
  set_aside();
  writing_now_ = field_indices;
  const std::uint64_t n_before = inner_->n_steps();
  std::uint64_t first = n_ended_;
  for (const std::size_t index : field_indices) {
    first = std::min(first, fields_.at(index).first_waiting);
  }
  bool lost = true;
  const auto conclude = [&] {
    writing_now_.clear();
    if (inner_->n_steps() == n_before) return;
    lost = false;  // The steps are in the file, whatever was thrown.
    for (const std::size_t index : field_indices) fields_.at(index).steps = WaitingSteps();
  };
  try {
    Status written = inner_->end_step().status();
    if (written.ok() && defers()) written = inner_->wait().status();
    conclude();
    return written.ok() || !lost ? written : with_lost(written, first, n_ended_ - 1);
  } catch (...) {
    conclude();
    throw;
  }
}

}  // namespace tailrace
