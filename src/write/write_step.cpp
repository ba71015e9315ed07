// Records of the application's calls, and a step's own copy of them.

#include "write/write_step.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "trz/base/error_bound.hpp"

namespace tailrace {
namespace {

/// True if `path` is `other` or an object in the group `other`.
bool is_same_or_below(const std::string& path, const std::string& other) {
  return path == other || path.starts_with(other + "/");
}

}  // namespace

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

/// Store the first failure of this rank's calls, which end_step agrees on.
Status StepRecord::note(const Status& failure) {
  if (put_status.ok()) put_status = failure;
  return failure;
}

const FieldState* StepRecord::find(std::size_t number) const {
  if (number >= known_.size()) return nullptr;
  const FieldState& field = fields[known_[number].place];
  return field.number == number ? &field : nullptr;
}

bool StepRecord::is_taken(const std::string& path) const {
  const auto newest = newest_.find(path);
  if (newest == newest_.end()) return false;
  const FieldState* const field = find(newest->second);
  return field != nullptr ? field->life != FieldLife::retired : known_[newest->second].in_file;
}

/// Return the first place whose field is done: the same on every rank, like the fields' lives.
std::size_t StepRecord::take_place() {
  const auto done = std::ranges::find_if(fields, &FieldState::is_done);
  const auto place = static_cast<std::size_t>(done - fields.begin());
  if (done == fields.end()) {
    fields.emplace_back().life = FieldLife::retired;
  } else if (find(done->number) != nullptr) {
    known_[done->number].in_file = done->life == FieldLife::in_file;
  }
  return place;
}

Result<std::size_t> StepRecord::define_field(const FieldDefinition& definition) {
  if (Status checked = check_definition(definition); !checked.ok()) return note(checked);
  if (is_taken(definition.path)) {
    return note(Status(Code::already_exists, definition.name() + " is already defined"));
  }
  const auto meets = [&](const Coordinate& coordinate) {
    return is_same_or_below(definition.path, coordinate.path) ||
           is_same_or_below(coordinate.path, definition.path);
  };
  if (const auto met = std::ranges::find_if(coordinates, meets); met != coordinates.end()) {
    return note(Status(Code::already_exists,
                       definition.name() + ": \"" + met->path + "\" is a coordinate"));
  }
  FieldState field;
  field.definition = definition;
  field.number = known_.size();
  const std::size_t number = field.number;
  const std::size_t place = take_place();
  known_.push_back({definition.path, place});
  newest_[definition.path] = number;
  fields[place] = std::move(field);
  return number;
}

std::vector<std::string> StepRecord::paths() const {
  std::vector<std::string> paths;
  for (const Known& known : known_) paths.push_back(known.path);
  return paths;
}

Status StepRecord::set_attribute(const std::string& object_path, const std::string& name,
                                 AttributeValue value) {
  if (object_path.empty() || object_path.front() != '/' || name.empty()) {
    return note(Status(Code::invalid_argument, "attribute \"" + name + "\" of \"" + object_path +
                                                   "\": expected an absolute path and a name"));
  }
  attributes.push_back({object_path, name, std::move(value)});
  return Status();
}

Status StepRecord::set_coordinate(Coordinate coordinate) {
  const std::string& path = coordinate.path;
  const std::string name = "coordinate \"" + path + "\": ";
  if (path.size() < 2 || path.front() != '/' || path.back() == '/' ||
      path.find("//") != std::string::npos || (path + "/").find("/./") != std::string::npos) {
    return note(Status(Code::invalid_argument,
                       name + "the path must be absolute and end in the dimension's name"));
  }
  const NamedDataset dataset = coordinate.dataset();
  if (Status named = DimensionTable().add({&dataset, 1}); !named.ok()) return note(named);
  for (const FieldState& field : fields) {
    if (field.life == FieldLife::retired) continue;
    const std::string& other = field.definition.path;
    if (!is_same_or_below(path, other) && !is_same_or_below(other, path)) continue;
    return note(Status(Code::already_exists, name + "\"" + other + "\" is a field"));
  }
  for (const Coordinate& other : coordinates) {
    if (!is_same_or_below(path, other.path) && !is_same_or_below(other.path, path)) continue;
    return note(Status(Code::already_exists, name + "it is set twice in this step"));
  }
  coordinates.push_back(std::move(coordinate));
  return Status();
}

Result<PutRecord> StepRecord::check_put(std::size_t number, const Box& box) {
  const FieldState* const found = find(number);
  const bool gone = found == nullptr && number < known_.size() && known_[number].in_file;
  if (!gone && (found == nullptr || found->life == FieldLife::retired)) {
    if (number < known_.size()) {
      return note(Status(Code::invalid_argument,
                         "field \"" + known_[number].path +
                             "\": its definition was lost with the step that failed; define it "
                             "again, and put with the field that define returns"));
    }
    const bool none = number == static_cast<std::size_t>(-1);
    return note(Status(Code::invalid_argument,
                       none
                           ? "put: the field is not defined; call define before put, and check its "
                             "result"
                           : "put: unknown field number " + std::to_string(number) +
                                 "; pass the field that define of this file has returned"));
  }
  if (!gone) {
    if (Status checked = check_box(found->definition, box); !checked.ok()) return note(checked);
  }
  if (gone || (!found->is_new() && !found->definition.options.over_time)) {
    return note(
        Status(Code::invalid_argument,
               "field \"" + known_[number].path +
                   "\" is in the file already; only fields with over-time=on can be put again"));
  }
  field(number).put_called = true;
  PutRecord record;
  record.box = box;
  return record;
}

Status StepRecord::put(std::size_t number, const Box& box, const void* values, bool copy,
                       const std::int64_t* strides) {
  Result<PutRecord> record = check_put(number, box);
  if (!record.ok()) return record.status();
  if (box.empty()) return Status();
  FieldState& its = field(number);
  if (values == nullptr) {
    return note(Status(Code::invalid_argument, its.definition.name() + ": box " + box_text(box) +
                                                   " was put without values"));
  }
  record->values = static_cast<const std::byte*>(values);
  const std::size_t element = dtype_bytes(its.definition.dtype);
  record->set_strides(strides, element);
  if (copy) {
    record->copy = Buffer(box.n_elements() * element);
    if (!record->copy.allocated()) {
      return note(Status(Code::out_of_memory,
                         its.definition.name() + ": no memory to copy box " + box_text(box)));
    }
    record->copy_to(box, box, record->copy.data(), element);
    record->values = record->copy.data();
    record->set_strides(nullptr, element);
  }
  its.puts.push_back(std::move(*record));
  return Status();
}

Status StepRecord::put_source(std::size_t number, const Box& box, BoxSource& source) {
  Result<PutRecord> record = check_put(number, box);
  if (!record.ok()) return record.status();
  if (box.empty()) return Status();
  record->source = &source;
  field(number).puts.push_back(std::move(*record));
  return Status();
}

Status StepRecord::put_device(std::size_t number, const Box& box, const void* values,
                              const CopyFromDevice& copy) {
  Result<PutRecord> record = check_put(number, box);
  if (!record.ok()) return record.status();
  if (box.empty()) return Status();
  FieldState& its = field(number);
  const std::string name = its.definition.name();
  if (values == nullptr || !copy) {
    return note(Status(Code::invalid_argument,
                       name + ": box " + box_text(box) + " was put from a device without " +
                           (copy ? "values" : "a function that copies from it")));
  }
  record->own_source =
      std::make_shared<DeviceValues>(name, box, values, dtype_bytes(its.definition.dtype), copy);
  record->source = record->own_source.get();
  its.puts.push_back(std::move(*record));
  return Status();
}

bool StepRecord::anything(bool continues) const {
  const auto has_work = [&](const FieldState& field) {
    const bool again = continues && field.definition.options.over_time;
    return field.put_called || (field.is_new() && !again);
  };
  return !put_status.ok() || !attributes.empty() || !coordinates.empty() ||
         std::ranges::any_of(fields, has_work);
}

bool StepRecord::any_put() const {
  return std::ranges::any_of(fields, [](const FieldState& field) { return field.put_called; });
}

void StepRecord::retire_unput_over_time() {
  for (FieldState& field : fields) {
    if (field.is_new() && field.definition.options.over_time) field.life = FieldLife::retired;
  }
}

std::string StepRecord::definitions_text() const {
  std::string text;
  for (const FieldState& field : fields) {
    const bool begins_to_wait = field.life == FieldLife::waiting && !field.has_waited;
    if (field.is_new() || begins_to_wait) text += definition_text(field.definition);
  }
  for (const PendingAttribute& attribute : attributes) text += attribute_text(attribute);
  for (const Coordinate& coordinate : coordinates) text += coordinate_text(coordinate);
  for (const auto& [path, value] : times) {
    // 0 and -0 are the same time.
    text += "the value of set_time for \"" + path + "\": " + number_text(value + 0.0) + "\n";
  }
  return text;
}

void StepRecord::forget_step(bool failed) {
  for (FieldState& field : fields) {
    field.puts.clear();
    field.put_called = false;
    if (failed && field.life != FieldLife::in_file) {
      const bool waits_on = field.has_waited && field.life != FieldLife::retired;
      field.life = waits_on ? FieldLife::waiting : FieldLife::retired;
    }
    if (field.is_open()) continue;
    // Release what no later step needs.
    field.resolved = ResolvedField();
    field.learned = LearnedField();
    field.beginnings.reset();
    field.begun_chunks = {};
  }
  put_status = Status();
  times.clear();
  if (failed) attributes.clear();
  if (failed) coordinates.clear();
}

void StepRecord::forget_open_step() {
  for (FieldState& field : fields) {
    const bool begins_to_wait = field.life == FieldLife::waiting && !field.has_waited;
    if (field.is_new() || begins_to_wait) field.life = FieldLife::retired;
    field.puts.clear();
    field.put_called = false;
  }
  put_status = Status();
  attributes.clear();
  coordinates.clear();
  times.clear();
}

// --- A step's own copy of what was recorded for it.

std::vector<FieldState*> Step::active(StepRecord& record) const {
  std::vector<FieldState*> fields;
  for (const std::size_t index : field_indices) fields.push_back(&record.fields[index]);
  return fields;
}

/// Moving a vector keeps its elements in place, so that the plans' spans stay valid.
void Step::take(StepRecord& record) {
  for (const std::size_t index : field_indices) {
    FieldState& field = record.fields[index];
    puts.push_back(std::move(field.puts));
    if (field.is_new()) field.life = FieldLife::under_way;
  }
  attributes = std::exchange(record.attributes, {});
  coordinates = std::exchange(record.coordinates, {});
}

std::optional<PutPattern> repeatable_puts(const StepRecord& record) {
  if (!record.put_status.ok() || !record.attributes.empty() || !record.coordinates.empty()) {
    return std::nullopt;
  }
  PutPattern pattern;
  for (std::size_t f = 0; f < record.fields.size(); ++f) {
    const FieldState& field = record.fields[f];
    if (field.is_new()) return std::nullopt;
    if (!field.put_called) continue;
    pattern.field_indices.push_back(f);
    std::vector<Box>& boxes = pattern.boxes.emplace_back();
    for (const PutRecord& put : field.puts) {
      if (put.source != nullptr && !put.source->reads_parts()) return std::nullopt;
      boxes.push_back(put.box);
    }
  }
  return pattern;
}

StepOpening::StepOpening(Comm& comm, const StepRecord& record,
                         const std::optional<PutPattern>& last_puts, RankNumbers along,
                         const std::string& call)
    : call_(std::hash<std::string>()(call)),
      call_complement_(~call_),
      definitions_(comm, "the definitions", "the call: " + call + "\n" + record.definitions_text(),
                   record.put_status),
      along_(std::move(along)) {
  const std::optional<PutPattern> puts = repeatable_puts(record);
  differs_ = puts && last_puts && *puts == *last_puts ? 0 : 1;
}

RankNumbers StepOpening::numbers() {
  RankNumbers numbers = definitions_.numbers();
  numbers.add(Reduction::max, differs_);
  numbers.add(Reduction::min, call_, call_complement_);
  numbers.add_all(along_);
  return numbers;
}

Result<bool> StepOpening::repeats() {
  TAILRACE_TRY(definitions_.conclude());
  return differs_ == 0;
}

void Step::count_delay(double seconds) {
  if (!(seconds > 0)) return;
  delay_s += seconds;
  ++report.n_delayed_obstacles;
  report.largest_delay_s = std::max(report.largest_delay_s, seconds);
}

Status check_can_be_handed_over(std::span<FieldState* const> active) {
  for (const FieldState* field : active) {
    const std::string name = field->definition.name() + ": ";
    const Layout& layout = *field->resolved.layout;
    if (needs_rounds(layout)) {
      return Status(Code::unsupported, name + "layout " + std::string(layout.name()) +
                                           " waits for the sizes of all ranks, which mode=async "
                                           "and mode=in_situ do not allow; use claimed or arena");
    }
    for (const PutRecord& put : field->puts) {
      if (put.source == nullptr || put.source->reads_parts()) continue;
      return Status(Code::unsupported,
                    name + "values from a source are read within end_step; use mode=sync");
    }
  }
  return Status();
}

}  // namespace tailrace
