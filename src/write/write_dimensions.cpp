// Named dimensions of the fields of a step: when they are planned, checked and written.
//
//   prepare   read_dimensions   an opened file: rank 0 reads its dimensions, and broadcasts them
//             try_dimensions    all ranks, fields with several steps in a chunk: do lengths fit?
//             plan_dimensions   all ranks: do the names and lengths of this step fit?
//             check_dimensions  rank 0: does the file have room for new dimensions?
//             check_attributes  rank 0: do the objects of new attributes exist?
//   publish   StepDimensions    rank 0: writes coordinates and scales     (netcdf/step_dimensions)

#include <algorithm>
#include <utility>

#include "core/utf8.hpp"
#include "exec/comm_factory.hpp"
#include "write/write.hpp"

namespace tailrace {

std::vector<NamedDataset> named_datasets(std::span<FieldState* const> active) {
  std::vector<NamedDataset> datasets;
  for (const FieldState* field : active) {
    const FieldDefinition& definition = field->definition;
    if (definition.dimensions.empty()) continue;
    datasets.push_back({definition.path, definition.dimensions,
                        definition.with_entries(field->n_entries + 1, definition.shape),
                        definition.options.over_time});
  }
  return datasets;
}

std::vector<NamedDataset> with_coordinates(std::vector<NamedDataset> datasets,
                                           std::span<const Coordinate> coordinates) {
  for (const Coordinate& coordinate : coordinates) datasets.push_back(coordinate.dataset());
  return datasets;
}

/// Read the dimensions of an opened file, before the first step that names any, or that continues a
/// field over time. Collective: a broadcast. All ranks have the same definitions, so all ranks call
/// it or none.
Status Writer::read_dimensions(const std::vector<FieldState>& fields) {
  const auto needs_them = [this](const FieldState& field) {
    const bool grows = field.definition.options.over_time && options_.door == Door::steps;
    return field.is_new() && (grows || !field.definition.dimensions.empty());
  };
  if (knows_dimensions_ || !appended_) return Status();
  if (record_.coordinates.empty() && std::ranges::none_of(fields, needs_them)) return Status();
  TAILRACE_TRY(output_.finish_commit());  // The code below reads the file.
  const Result<Bytes> received = broadcast_from_root(*comm_, [&](ByteWriter& message) {
    TAILRACE_TAKE(const DimensionTable table, step_dimensions_.open(output_.file()));
    table.pack(message);
    return Status();
  });
  if (!received.ok()) return received.status();
  ByteReader reader(*received);
  dimensions_.take(reader);
  knows_dimensions_ = true;
  return Status();
}

/// Check that new coordinates of time dimensions begin with the first entry. Equal on all ranks;
/// not collective.
Status Writer::check_late_times(const std::vector<FieldState>& fields) const {
  for (const FieldState& field : fields) {
    const FieldDefinition& definition = field.definition;
    if (!field.makes_dataset() || definition.dimensions.empty()) continue;
    TAILRACE_TRY(dimensions_.check_late_time(
        {definition.path, definition.dimensions, {}, definition.options.over_time}));
  }
  return Status();
}

/// Check the fixed lengths of new fields whose steps will wait for a full chunk. Equal on all
/// ranks; not collective.
Status Writer::try_dimensions(const std::vector<FieldState>& fields) const {
  std::vector<NamedDataset> datasets;
  for (const FieldState& field : fields) {
    const FieldDefinition& definition = field.definition;
    if (!field.is_new() || definition.dimensions.empty()) continue;
    datasets.push_back({definition.path,
                        {definition.dimensions.begin() + 1, definition.dimensions.end()},
                        Shape(definition.shape.begin() + 1, definition.shape.end())});
  }
  DimensionTable next = dimensions_;
  return next.add(with_coordinates(std::move(datasets), record_.coordinates));
}

/// Over-time fields put in the step whose dimensions have no names, with their lengths after it.
std::vector<NamedDataset> Writer::unnamed_over_time(std::span<FieldState* const> active) const {
  if (options_.door != Door::steps) return {};
  std::vector<NamedDataset> datasets = gathered_.unnamed_steps();
  for (const FieldState* field : active) {
    const FieldDefinition& definition = field->definition;
    if (!definition.options.over_time || !definition.dimensions.empty()) continue;
    if (gathered_.holds(field->number)) continue;
    datasets.push_back({definition.path,
                        {},
                        definition.with_entries(field->n_entries + 1, definition.shape),
                        true});
  }
  return datasets;
}

/// Check the names and lengths of a step's dimensions. Equal on all ranks; not collective.
Status Writer::plan_dimensions(std::span<FieldState* const> active) {
  new_placeholders_.clear();
  coordinates_fit_ = Status();
  const std::vector<NamedDataset> datasets =
      with_coordinates(named_datasets(active), record_.coordinates);
  const std::vector<NamedDataset> waiting = gathered_.named_steps(true);
  const std::vector<NamedDataset> unnamed = unnamed_over_time(active);
  const bool may_lack_time = !unnamed.empty() && !dimensions_.empty();
  if (datasets.empty() && waiting.empty() && !may_lack_time) return Status();
  DimensionTable next = dimensions_;
  TAILRACE_TRY(next.add(datasets));
  const std::vector<NamedDataset> earlier = gathered_.named_steps(false);
  TAILRACE_TRY(next.check_times(datasets, waiting, earlier));
  TAILRACE_TRY(next.check_unnamed(unnamed, datasets));
  coordinates_fit_ = next.check_coordinates(record_.coordinates, waiting, earlier);
  new_placeholders_ = next.new_placeholders(dimensions_);
  for (const std::string& path : new_placeholders_) {
    for (const FieldState& field : record_.fields) {
      const std::string& other = field.definition.path;
      const bool meets = other == path || other.starts_with(path + "/");
      if (field.life == FieldLife::retired || !meets) continue;
      const std::string name = path.substr(path.rfind('/') + 1);
      return Status(Code::already_exists, field.definition.name() + ": dimension \"" + name +
                                              "\" of \"" + next.user_of_placeholder(path) +
                                              "\" needs the name \"" + path +
                                              "\"; a field of this name must have \"" + name +
                                              "\" as its first dimension");
    }
  }
  return Status();
}

/// Check what only the file shows. Rank 0 only; waits for the commit of the step before.
Status Writer::check_dimensions(std::span<FieldState* const> active) {
  std::vector<NamedDataset> continued = named_datasets(active);
  std::erase_if(continued, [](const NamedDataset& dataset) { return !dataset.over_time; });
  if (!appended_) continued.clear();
  if (continued.empty() && new_placeholders_.empty() && record_.coordinates.empty()) {
    return Status();
  }
  TAILRACE_TRY(
      step_dimensions_.check(output_.file(), continued, new_placeholders_, record_.coordinates));
  return coordinates_fit_;  // Last, since a coordinate below a field has a better explanation.
}

/// Check that each attribute belongs to an object of the file or of this step. A path that ends in
/// "/" names a group, which is made if the file lacks it. Rank 0 only; waits for the commit of the
/// step before if it has to ask the file.
Status Writer::check_attributes() {
  if (options_.door != Door::steps) return Status();
  for (const PendingAttribute& attribute : record_.attributes) {
    const std::string path = plain_path(attribute.object_path);
    if (path.empty() || attribute.object_path.ends_with("/")) continue;
    const auto leads_to = [&](const std::string& other) {
      return other == path || other.starts_with(path + "/");
    };
    const bool is_of_step =
        record_.is_taken(path) || std::ranges::any_of(new_placeholders_, leads_to) ||
        std::ranges::any_of(record_.coordinates, leads_to, &Coordinate::path) ||
        std::ranges::any_of(record_.fields, [&](const FieldState& field) {
          return field.life != FieldLife::retired && leads_to(field.definition.path);
        });
    if (is_of_step || output_.file().exists(path)) continue;
    return Status(Code::not_found, "attribute \"" + attribute.name + "\" of \"" + path +
                                       "\": no field is defined at this path, and the file has no "
                                       "such object (to make a group, end its path in \"/\")" +
                                       did_you_mean(path, record_.paths()));
  }
  return Status();
}

}  // namespace tailrace
