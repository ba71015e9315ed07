// Plotfiles as AMReX and Chombo write them: what lies in a level's dataset.
//
// The dataset has one dimension, box by box, and in each box component by component; the file's
// root names the components, the level's group has the boxes and where each begins. The boxes are
// values that rank 0 alone has written, as a rule just before the dataset is created, so rank 0
// says what it finds. All of it must fit together, down to the number of elements; else nothing is
// known. Ghost cells that are written, too, do not fit.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_stream.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"

namespace tailrace::hdf5_programs {
namespace {

constexpr std::string_view data_name = "data:datatype=";
constexpr std::uint64_t most_boxes = std::uint64_t{1} << 22;
constexpr std::uint64_t most_components = 1U << 16;
/// Of such a list; three times as much is needed to read it.
constexpr std::uint64_t most_bytes = 256U << 20;

/// "data:datatype=3" of "/level_0/data:datatype=3"; empty: another dataset.
std::string_view level_data_name(const char* path) {
  if (path == nullptr) return {};
  std::string_view name(path);
  name.remove_prefix(std::min(name.find_last_of('/') + 1, name.size()));  // npos + 1 is 0.
  return name.starts_with(data_name) ? name : std::string_view();
}

/// A whole number that an object has as attribute; nothing: it has none.
std::optional<std::int64_t> whole_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return std::nullopt;
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : -1);
  const Hdf5Id type(attribute.valid() ? H5Aget_type(attribute.get()) : -1);
  std::int64_t value = 0;
  if (!space.valid() || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      H5Tget_class(type.get()) != H5T_INTEGER ||
      H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0) {
    return std::nullopt;
  }
  return value;
}

/// A text of fixed length that an object has as attribute; empty: it has none.
std::string text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return "";
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : -1);
  const Hdf5Id type(attribute.valid() ? H5Aget_type(attribute.get()) : -1);
  if (!space.valid() || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) > 0) {
    return "";
  }
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) return "";
  return text.substr(0, text.find('\0'));
}

/// All elements of a dataset of one dimension, as this rank has staged them or the last flush has
/// left them, `n_numbers` of type `memory_type` each; nothing: there is none like that.
std::optional<std::vector<std::int64_t>> elements_of(Session& session, hid_t location,
                                                     const std::string& path, hid_t memory_type,
                                                     std::size_t n_numbers) {
  if (H5Lexists(location, path.c_str(), H5P_DEFAULT) <= 0) return std::nullopt;
  const Hdf5Id dataset(H5Dopen2(location, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(dataset.valid() ? H5Dget_type(dataset.get()) : -1);
  bool known = false;
  const std::optional<Target> target =
      type.valid() ? target_of(dataset.get(), known) : std::nullopt;
  if (!target || !known || target->session != &session) return std::nullopt;
  const Result<DatasetArray::Facts> facts = session.array->facts(target->dataset);
  if (!facts.ok() || !facts->by_value || facts->shape->size() != 1) return std::nullopt;
  if (H5Tget_size(type.get()) != facts->element_bytes) return std::nullopt;
  if (H5Tget_class(type.get()) != H5Tget_class(memory_type)) return std::nullopt;
  const std::uint64_t n = facts->shape->front();
  if (n == 0 || n > most_boxes + 1) return std::nullopt;
  const std::size_t wide = std::max(facts->element_bytes, n_numbers * sizeof(std::int64_t));
  if (wide > most_bytes / n) return std::nullopt;
  std::vector<std::byte> room(n * wide);
  if (!session.array
           ->get(target->dataset, {{0}, {n}, {}}, std::span(room).first(n * facts->element_bytes))
           .ok()) {
    return std::nullopt;
  }
  std::vector<std::byte> background(room.size());
  if (H5Tconvert(type.get(), memory_type, n, room.data(), background.data(), H5P_DEFAULT) < 0) {
    return std::nullopt;
  }
  std::vector<std::int64_t> numbers(n * n_numbers);
  std::memcpy(numbers.data(), room.data(), numbers.size() * sizeof(std::int64_t));
  return numbers;
}

/// The compound of a box's corners, as numbers of 64 bits: lo_i, lo_j, lo_k, hi_i, hi_j, hi_k.
/// @returns how many dimensions boxes have: what the stored type has members for; 0: no boxes
std::size_t corners_of(hid_t location, const std::string& path, Hdf5Id& type) {
  constexpr const char* kNames[2][3] = {{"lo_i", "lo_j", "lo_k"}, {"hi_i", "hi_j", "hi_k"}};
  if (H5Lexists(location, path.c_str(), H5P_DEFAULT) <= 0) return 0;
  const Hdf5Id dataset(H5Dopen2(location, path.c_str(), H5P_DEFAULT));
  const Hdf5Id stored(dataset.valid() ? H5Dget_type(dataset.get()) : -1);
  if (!stored.valid() || H5Tget_class(stored.get()) != H5T_COMPOUND) return 0;
  const int n_members = H5Tget_nmembers(stored.get());
  if (n_members != 2 && n_members != 4 && n_members != 6) return 0;
  const auto n_dimensions = static_cast<std::size_t>(n_members) / 2;
  type = Hdf5Id(H5Tcreate(H5T_COMPOUND, 2 * n_dimensions * sizeof(std::int64_t)));
  for (std::size_t corner = 0; corner < 2; ++corner) {
    for (std::size_t d = 0; d < n_dimensions; ++d) {
      const char* const name = kNames[corner][d];
      const int at = H5Tget_member_index(stored.get(), name);
      if (at < 0 || H5Tget_member_class(stored.get(), unsigned(at)) != H5T_INTEGER) return 0;
      if (H5Tinsert(type.get(), name, (corner * n_dimensions + d) * sizeof(std::int64_t),
                    H5T_NATIVE_INT64) < 0) {
        return 0;
      }
    }
  }
  return n_dimensions;
}

/// Cells of a box, slowest axis first: i is the fastest in the file. Empty: no box.
Shape cells_of(const std::int64_t* corners, std::size_t n_dimensions) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  Shape cells(n_dimensions);
  for (std::size_t d = 0; d < n_dimensions; ++d) {
    const std::int64_t low = corners[d];
    const std::int64_t high = corners[n_dimensions + d];
    if (low < -kMost || high > kMost || low > high) return {};
    cells[n_dimensions - 1 - d] = static_cast<std::uint64_t>(high - low + 1);
  }
  return cells;
}

/// What this rank finds; no runs: nothing that fits.
BoxSeries find_boxes(Session& session, const CreateCall& call) {
  const BoxSeries nothing;
  const std::string_view name = level_data_name(call.name);
  const std::string number(name.substr(data_name.size()));
  std::string group(call.name);
  group.resize(group.size() - name.size());
  hsize_t n_elements_asked = 0;
  if (H5Sget_simple_extent_ndims(call.space) != 1 ||
      H5Sget_simple_extent_dims(call.space, &n_elements_asked, nullptr) < 0) {
    return nothing;
  }
  const std::optional<std::int64_t> n_names = whole_attribute(session.file(), "num_components");
  if (!n_names || *n_names < 1 || std::uint64_t(*n_names) > most_components) return nothing;
  Hdf5Id box_type;
  const std::size_t n_dimensions = corners_of(call.location, group + "boxes", box_type);
  if (n_dimensions == 0) return nothing;
  const auto corners =
      elements_of(session, call.location, group + "boxes", box_type.get(), 2 * n_dimensions);
  auto offsets =
      elements_of(session, call.location, group + "data:offsets=" + number, H5T_NATIVE_INT64, 1);
  // AMReX has one list of offsets for the datasets of all components.
  if (!offsets) {
    offsets = elements_of(session, call.location, group + "data:offsets=0", H5T_NATIVE_INT64, 1);
  }
  if (!corners || !offsets) return nothing;
  const std::size_t n_boxes = corners->size() / (2 * n_dimensions);
  if (offsets->size() != n_boxes + 1 || offsets->front() != 0 || offsets->back() < 1 ||
      std::uint64_t(offsets->back()) != n_elements_asked) {
    return nothing;
  }
  BoxSeries boxes;
  std::uint64_t n_components = 0;
  for (std::size_t b = 0; b < n_boxes; ++b) {
    const Shape cells = cells_of(&(*corners)[b * 2 * n_dimensions], n_dimensions);
    const std::uint64_t n_cells = cells.empty() ? 0 : n_elements(cells);
    if (n_cells == 0 || (*offsets)[b + 1] <= (*offsets)[b]) return nothing;
    const auto n_values = std::uint64_t((*offsets)[b + 1] - (*offsets)[b]);
    if (n_values % n_cells != 0 || (b > 0 && n_values / n_cells != n_components)) return nothing;
    n_components = n_values / n_cells;
    if (boxes.runs.empty() || boxes.runs.back().cells != cells) boxes.runs.push_back({0, cells});
    ++boxes.runs.back().n_boxes;
  }
  // All of them, or one that has a dataset of its own and is named by its number.
  std::uint64_t first = 0;
  if (n_components != std::uint64_t(*n_names)) {
    const bool digits = !number.empty() && number.size() < 6 &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    first = digits ? std::stoul(number) : most_components;
    if (n_components != 1 || first >= std::uint64_t(*n_names)) return nothing;
  }
  for (std::uint64_t c = first; c < first + n_components; ++c) {
    boxes.components.push_back(
        text_attribute(session.file(), ("component_" + std::to_string(c)).c_str()));
  }
  return boxes;
}

}  // namespace

bool names_level_data(const char* path) { return !level_data_name(path).empty(); }

Result<std::shared_ptr<const BoxSeries>> hear_boxes(Session& session, const CreateCall& call) {
  // By the name alone: that is the same on all ranks, whatever each of them lacks.
  if (!names_level_data(call.name)) return std::shared_ptr<const BoxSeries>();
  // Another rank may have begun something else, which is heard of here.
  TAILRACE_TRY(session.array->meet());
  const Result<Bytes> heard = hear_rank_0(session.array->comm(), [&](ByteWriter& words) {
    const Hdf5Scope scope;
    BoxSeries boxes;
    // Without memory for it the dataset is stored as others are.
    const Status found = local_part([&] {
      boxes = find_boxes(session, call);
      return Status();
    });
    if (!found.ok()) boxes = BoxSeries();
    words.add(static_cast<std::uint64_t>(boxes.components.size()));
    for (const std::string& component : boxes.components) words.add_text(component);
    for (const BoxSeries::Run& run : boxes.runs) {
      words.add(run.n_boxes);
      words.add(run.cells);
    }
    return Status();
  });
  TAILRACE_TRY(heard.status());
  std::shared_ptr<const BoxSeries> taken;
  const Status took = local_part([&] {
    auto boxes = std::make_shared<BoxSeries>();
    ByteReader reader(*heard);
    const auto n_components = reader.take<std::uint64_t>();
    if (n_components == 0) return Status();
    while (boxes->components.size() < n_components) boxes->components.push_back(reader.take_text());
    while (!reader.at_end()) {
      BoxSeries::Run& run = boxes->runs.emplace_back();
      run.n_boxes = reader.take<std::uint64_t>();
      run.cells = reader.take_shape();
    }
    taken = std::move(boxes);
    return Status();
  });
  if (took.ok()) return taken;
  session.array->lose(took);  // The others have chunks that this rank has not.
  return took;
}

}  // namespace tailrace::hdf5_programs
