// Buffering of steps: checks, submission of full chunks, and recovery after failures.

#include "write/gathered_steps.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace tailrace {
namespace {

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

std::vector<Box> boxes_of(std::span<const PutRecord> puts) {
  std::vector<Box> boxes;
  for (const PutRecord& put : puts) boxes.push_back(put.box);
  return boxes;
}

}  // namespace

// --- Definitions and puts.

std::uint64_t GatheredSteps::steps_in_chunk(const FieldDefinition& definition) {
  const std::optional<Shape>& chunk = definition.options.chunk_shape;
  if (!definition.options.over_time || definition.as_stored != nullptr || !chunk) return 0;
  const bool has_time = chunk->size() == definition.shape.size() + 1 &&
                        (n_elements(*chunk) > 0 || chunk->front() == 1);
  return has_time ? chunk->front() : 0;
}

Result<std::size_t> GatheredSteps::define(
    const FieldDefinition& definition, std::uint64_t n_steps,
    const std::function<Result<std::size_t>(const FieldDefinition&)>& define_entry) {
  Fields made;  // Allocate first: the code below must not fail midway.
  GatheredField& field = made[0];
  field.step = definition;
  field.entry = definition_of_entry(definition, n_steps);
  Fields::node_type node = made.extract(made.begin());
  TAILRACE_TAKE(const std::size_t index, define_entry(field.entry));
  record_.field(index).life = FieldLife::waiting;
  node.key() = index;
  fields_.insert(std::move(node));
  return index;
}

Status GatheredSteps::put(std::size_t field_index, const Box& box, const void* values,
                          const std::int64_t* strides) {
  GatheredField& field = fields_.at(field_index);
  if (Status fits = check_box(field.step, box); !fits.ok()) return record_.note(fits);
  field.put_called = true;
  if (box.empty()) return Status();
  if (values == nullptr) {
    return record_.note(
        Status(Code::invalid_argument,
               field.step.name() + ": box " + box_text(box) + " was put without values"));
  }
  PutRecord put;
  put.box = box;
  put.values = static_cast<const std::byte*>(values);
  put.set_strides(strides, dtype_bytes(field.step.dtype));
  const Status kept = keep_values(field, put);
  return kept.ok() ? kept : record_.note(kept);
}

Status GatheredSteps::put_device(std::size_t field_index, const Box& box, const void* values,
                                 const CopyFromDevice& copy) {
  constexpr std::uint64_t kPieceBytes = 8U << 20;
  const FieldDefinition& step = fields_.at(field_index).step;
  if (Status fits = check_box(step, box); !fits.ok()) return record_.note(fits);
  if (box.empty() || values == nullptr || !copy) {
    return put(field_index, box, box.empty() || copy ? values : nullptr);
  }
  const std::size_t element = dtype_bytes(step.dtype);
  DeviceValues source(step.name(), box, values, element, copy);
  // Pieces are rows along the slowest dimension.
  const std::uint64_t n_rows = box.rank() == 0 ? 1 : box.count.front();
  const std::uint64_t row_bytes = box.n_elements() / n_rows * element;
  const std::uint64_t n_rows_each = std::clamp<std::uint64_t>(kPieceBytes / row_bytes, 1, n_rows);
  Buffer rows(n_rows_each * row_bytes);
  Status done;
  if (!rows.allocated()) {
    done = Status(Code::out_of_memory, step.name() + ": no memory to copy box " + box_text(box));
  }
  for (std::uint64_t row = 0; row < n_rows && done.ok(); row += n_rows_each) {
    Box piece = box;
    if (piece.rank() > 0) {
      piece.start.front() += row;
      piece.count.front() = std::min(n_rows_each, n_rows - row);
    }
    done = source.read_part(piece, piece, rows.data());
    if (done.ok()) TAILRACE_TRY(put(field_index, piece, rows.data()));
  }
  return done.ok() ? done : record_.note(done);
}

Status GatheredSteps::refuse_source(std::size_t field_index) {
  return record_.note(
      Status(Code::unsupported, fields_.at(field_index).step.name() +
                                    ": values from a source cannot wait until a chunk of "
                                    "several steps is full; use chunks of one step"));
}

bool GatheredSteps::any_put() const {
  return std::ranges::any_of(fields_, [](const auto& entry) { return entry.second.put_called; });
}

void GatheredSteps::retire_unput() {
  for (const auto& [index, field] : fields_) {
    if (!field.has_waited) record_.field(index).life = FieldLife::retired;
  }
  std::erase_if(fields_, [](const auto& entry) { return !entry.second.has_waited; });
}

bool GatheredSteps::anything_open(bool continues) const {
  return std::any_of(fields_.begin(), fields_.end(), [continues](const auto& entry) {
    return entry.second.put_called || (!continues && !entry.second.has_waited);
  });
}

/// Copy a box of the open step, if the limit on waiting steps has room for it.
Status GatheredSteps::keep_values(GatheredField& field, const PutRecord& put) {
  const Box& box = put.box;
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
    const std::uint64_t most = options_.memory_bytes / 2;
    if (needed > most) {
      return Status(Code::out_of_memory,
                    field.step.name() + ": steps that wait for full chunks of " +
                        std::to_string(field.n_per_chunk()) + " steps would need " +
                        bytes_text(needed) + ", half of memory= is " + bytes_text(most) +
                        "; raise memory=, or choose a chunk= of fewer steps");
    }
  }
  PutRecord record;
  record.box = box;
  field.puts.push_back(std::move(record));
  const Status kept = local_part([&] { return field.steps.put(place, put, element); });
  if (!kept.ok()) field.puts.pop_back();
  return kept.within(field.step.name());
}

std::uint64_t GatheredSteps::held_bytes() const {
  std::uint64_t n_bytes = 0;
  for (const auto& [index, field] : fields_) {
    n_bytes += field.steps.held_bytes() + (field.under_way ? field.under_way->held_bytes() : 0);
  }
  return n_bytes;
}

// --- Joining a step, once the ranks have agreed on its definitions.

RankNumbers GatheredSteps::numbers() {
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

Result<bool> GatheredSteps::join(Comm& comm, const TryWaiting& try_waiting) {
  if (fields_.empty()) return false;
  Status handed_in;
  const auto add = [&](std::size_t index, GatheredField& field, std::uint64_t n_steps) {
    const Status added = local_part([&] { return submit(index, field, n_steps); });
    if (handed_in.ok()) handed_in = added;
  };
  if (!writing_now_.empty()) {
    for (const std::size_t index : writing_now_) {
      GatheredField& field = fields_.at(index);
      add(index, field, field.steps.n_steps());
    }
    TAILRACE_TRY(comm.agree(handed_in));
    return true;
  }
  std::vector<std::size_t> fresh;
  for (auto& [index, field] : fields_) {
    if (!field.has_waited) fresh.push_back(index);
    field.takes_part = !field.has_waited || field.any_put != 0;
  }
  if (!fresh.empty()) TAILRACE_TRY(try_waiting(fresh));
  for (const std::size_t index : fresh) {
    fields_.at(index).steps.stand_behind(record_.field(index).n_begun);
  }
  TAILRACE_TRY(check_attributes());
  TAILRACE_TRY(check_coverage(comm));
  bool any_due = false;
  for (auto& [index, field] : fields_) {
    // It has no dataset yet, so store its attributes.
    if (record_.field(index).life == FieldLife::waiting) {
      const std::string& path = field.step.path;
      const auto rest = std::stable_partition(
          record_.attributes.begin(), record_.attributes.end(),
          [&](const PendingAttribute& set) { return plain_path(set.object_path) != path; });
      std::move(rest, record_.attributes.end(), std::back_inserter(field.attributes));
      record_.attributes.erase(rest, record_.attributes.end());
    }
    const std::uint64_t n_steps = field.steps.n_steps() + 1;
    if (!field.takes_part || n_steps < field.n_per_chunk()) continue;
    any_due = true;
    add(index, field, n_steps);
    field.handed_in = true;
  }
  if (any_due) TAILRACE_TRY(comm.agree(handed_in));
  return any_due;
}

std::vector<std::size_t> GatheredSteps::taking_part() const {
  std::vector<std::size_t> taking_part;
  for (const auto& [index, field] : fields_) {
    if (field.takes_part) taking_part.push_back(index);
  }
  return taking_part;
}

std::vector<NamedDataset> GatheredSteps::named_steps(bool take_part) const {
  std::vector<NamedDataset> named;
  for (const auto& [index, field] : fields_) {
    if (field.takes_part != take_part || field.handed_in) continue;
    if (field.step.dimensions.empty()) continue;
    const std::uint64_t n_full = record_.field(index).n_entries * field.n_per_chunk();
    Shape shape = field.step.shape;
    shape.insert(shape.begin(), n_full + field.steps.n_steps() + (take_part ? 1 : 0));
    named.push_back({field.step.path, field.step.dimensions, std::move(shape), true});
  }
  return named;
}

std::vector<NamedDataset> GatheredSteps::unnamed_steps() const {
  std::vector<NamedDataset> unnamed;
  if (!writing_now_.empty()) return unnamed;
  for (const auto& [index, field] : fields_) {
    if (!field.takes_part || !field.step.dimensions.empty()) continue;
    const std::uint64_t n_full = record_.field(index).n_entries * field.n_per_chunk();
    Shape shape = field.step.shape;
    shape.insert(shape.begin(), n_full + field.steps.n_steps() + 1);
    unnamed.push_back({field.step.path, {}, std::move(shape), true});
  }
  return unnamed;
}

/// Check that no attribute belongs to an object below a waiting field, since that object would take
/// the field's path. All ranks have the same attributes.
Status GatheredSteps::check_attributes() const {
  for (const PendingAttribute& set : record_.attributes) {
    const std::string object = plain_path(set.object_path);
    for (const auto& [index, field] : fields_) {
      if (record_.field(index).life != FieldLife::waiting) continue;
      if (!object.starts_with(field.step.path + "/")) continue;
      return Status(Code::invalid_argument, "attribute \"" + set.name + "\" of \"" +
                                                set.object_path + "\": \"" + field.step.path +
                                                "\" is a field, not a group");
    }
  }
  return Status();
}

/// Check that every element is put once, unless the boxes are those that were checked last.
Status GatheredSteps::check_coverage(Comm& comm) {
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
  OwnerAssignment assignment(comm, owned);
  const RankNumbers waiting = assignment.numbers();
  const auto no_more = [](const Ownership&) { return Status(); };
  TAILRACE_TRY(assignment.finish(waiting, no_more).status());
  for (GatheredField* field : checked) field->covered_by = boxes_of(field->puts);
  return Status();
}

/// Add an entry of `n_steps` steps to the record. Not collective.
Status GatheredSteps::submit(std::size_t field_index, GatheredField& field, std::uint64_t n_steps) {
  FieldState& state = record_.field(field_index);
  if (state.life == FieldLife::waiting) {
    record_.attributes.insert(record_.attributes.end(), field.attributes.begin(),
                              field.attributes.end());
    FieldState anew;  // A failed attempt may have left traces in the old one.
    anew.number = field_index;
    anew.definition = field.entry;
    anew.has_waited = field.has_waited;
    state = std::move(anew);  // Move, all or nothing: memory may be short.
  }
  state.definition.shape.front() = n_steps;
  const std::size_t rank = state.definition.shape.size();
  TAILRACE_TRY(record_.put(field_index, {Shape(rank, 0), Shape(rank, 0)}, nullptr, false));
  for (const WaitingSteps::Run& run : field.steps.runs()) {
    TAILRACE_TRY(record_.put(field_index, run.box_in_chunk(), run.values.data(), false));
  }
  return Status();
}

// --- Outcome of a step.

std::optional<std::uint64_t> GatheredSteps::keep_step(std::uint64_t number) {
  std::optional<std::uint64_t> first_of_chunks;
  for (auto& [index, field] : fields_) {
    if (field.takes_part) {
      if (field.steps.n_steps() <= field.steps.n_in_file()) field.first_waiting = number;
      field.steps.keep_step();
    }
    if (field.handed_in) {
      const std::uint64_t first = field.first_waiting;
      first_of_chunks = std::min(first_of_chunks.value_or(first), first);
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
    FieldState& state = record_.field(index);
    state.has_waited = true;
    // An exception after the commit made the Writer treat the step as failed.
    if (state.life == FieldLife::retired) state.life = FieldLife::waiting;
  }
  forget_open_step();
  return first_of_chunks;
}

void GatheredSteps::drop_step() {
  for (auto& [index, field] : fields_) {
    field.steps.drop_open_step();
    field.attributes.resize(std::min(field.attributes.size(), field.n_attributes_kept));
  }
  std::erase_if(fields_, [](const auto& entry) { return !entry.second.has_waited; });
  forget_open_step();
}

void GatheredSteps::forget_open_step() {
  for (auto& [index, field] : fields_) {
    field.put_called = field.takes_part = field.handed_in = false;
    field.puts.clear();
  }
}

void GatheredSteps::flight_is_committed() {
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

void GatheredSteps::take_flight_back() {
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
      record_.field(index).life = FieldLife::retired;
    }
    field.part_of_flight = field.first_in_flight = false;
  }
}

// --- Waiting steps.

std::vector<std::size_t> GatheredSteps::waiting_fields() const {
  std::vector<std::size_t> waiting;
  for (const auto& [index, field] : fields_) {
    if (field.steps.n_steps() > field.steps.n_in_file()) waiting.push_back(index);
  }
  return waiting;
}

std::uint64_t GatheredSteps::first_waiting(std::span<const std::size_t> field_indices,
                                           std::uint64_t otherwise) const {
  std::uint64_t first = otherwise;
  for (const std::size_t index : field_indices) {
    first = std::min(first, fields_.at(index).first_waiting);
  }
  return first;
}

void GatheredSteps::end_write_now(bool written) {
  for (const std::size_t index : std::exchange(writing_now_, {})) {
    if (written) fields_.at(index).steps = WaitingSteps();
  }
}

void GatheredSteps::count_waiting(StepReport& report) const {
  for (const auto& [index, field] : fields_) {
    const std::uint64_t n_steps = field.steps.n_steps() - field.steps.n_in_file();
    report.n_waiting_steps = std::max(report.n_waiting_steps, n_steps);
    report.waiting_bytes += n_steps * field.step.raw_bytes();
  }
}

}  // namespace tailrace
