// Consistency checks of a level's metadata.

#include "describe/plotfile.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>
#include <vector>

#include "hdf5/hdf5_handle.hpp"

namespace tailrace {
namespace {

constexpr std::string_view data_name = "data:datatype=";
constexpr std::uint64_t most_components = 1U << 16;

/// Integer attribute of an object; nothing: the object does not have it.
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

/// Refinement ratio to the next finer level, i first: finer cells along an edge of this level's
/// cells. Empty: the level's group does not state it. A single number applies to all axes.
std::vector<std::int64_t> ref_ratio(hid_t file, const std::string& group, std::size_t n_axes) {
  constexpr std::int64_t kMost = 1U << 16;
  const Hdf5Id level(H5Gopen2(file, group.c_str(), H5P_DEFAULT));
  if (!level.valid() || H5Aexists(level.get(), "ref_ratio") <= 0) return {};
  const Hdf5Id attribute(H5Aopen(level.get(), "ref_ratio", H5P_DEFAULT));
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : -1);
  const Hdf5Id type(attribute.valid() ? H5Aget_type(attribute.get()) : -1);
  const hssize_t n = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : 0;
  if (n != 1 && n != static_cast<hssize_t>(n_axes)) return {};
  std::vector<std::int64_t> ratio(static_cast<std::size_t>(n));
  if (H5Tget_class(type.get()) != H5T_INTEGER ||
      H5Aread(attribute.get(), H5T_NATIVE_INT64, ratio.data()) < 0) {
    return {};
  }
  const auto fits = [](std::int64_t each) { return each >= 1 && each <= kMost; };
  if (!std::ranges::all_of(ratio, fits)) return {};
  ratio.resize(n_axes, ratio.front());
  return ratio;
}

/// N of a group "/level_N"; nothing: the group has another name.
std::optional<std::int64_t> level_number(std::string_view group) {
  constexpr std::string_view kPrefix = "level_";
  group.remove_prefix(group.find_last_of('/') + 1);
  if (!group.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = group.substr(kPrefix.size());
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  constexpr std::int64_t kMost = 1000;
  if (read.ec != std::errc() || read.ptr != end || number < 0 || number > kMost) {
    return std::nullopt;
  }
  return number;
}

/// Fixed-length text attribute of an object; empty: the object does not have it.
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

/// Create the memory type of a box's corners, as 64-bit integers: lo_i, lo_j, lo_k, hi_i, hi_j,
/// hi_k.
/// @returns the number of dimensions for which the stored type has members; 0: not a list of boxes
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

/// Cells of a box, slowest axis first: i varies fastest in the file. Empty: an invalid box.
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

/// Read a level's list of boxes; nothing: it does not exist or is invalid.
std::optional<LevelCorners> corners_in(hid_t file, const std::string& group,
                                       const WholeNumbers& numbers_of) {
  Hdf5Id type;
  LevelCorners corners;
  const std::string list = group + "/boxes";
  corners.n_dimensions = corners_of(file, list, type);
  if (corners.n_dimensions == 0) return std::nullopt;
  auto numbers = numbers_of(list, type.get(), 2 * corners.n_dimensions);
  if (!numbers) return std::nullopt;
  corners.numbers = std::move(*numbers);
  for (std::size_t b = 0; b < corners.n_boxes(); ++b) {
    const std::int64_t* const first = &corners.numbers[b * 2 * corners.n_dimensions];
    if (cells_of(first, corners.n_dimensions).empty()) return std::nullopt;
  }
  return corners;
}

/// True if the listed boxes are those of the dataset.
bool are_boxes_of(const LevelCorners& corners, const BoxSeries& boxes) {
  std::uint64_t b = 0;
  for (const BoxSeries::Run& run : boxes.runs) {
    if (run.n_boxes > corners.n_boxes() - b || run.cells.size() != corners.n_dimensions) {
      return false;
    }
    for (const std::uint64_t end = b + run.n_boxes; b < end; ++b) {
      const std::int64_t* const first = &corners.numbers[b * 2 * corners.n_dimensions];
      if (cells_of(first, corners.n_dimensions) != run.cells) return false;
    }
  }
  return b == corners.n_boxes();
}

/// True if a box is listed twice. This happens if the list was created but not yet written (zeros).
bool has_twins(const LevelCorners& corners) {
  const std::size_t n = 2 * corners.n_dimensions;
  std::set<std::vector<std::int64_t>> seen;
  for (std::size_t b = 0; b < corners.n_boxes(); ++b) {
    const std::int64_t* const first = &corners.numbers[b * n];
    const bool zeros = std::all_of(first, first + n, [](std::int64_t x) { return x == 0; });
    if (zeros || !seen.emplace(first, first + n).second) return true;
  }
  return false;
}

/// Read all elements of a dataset of one dimension with HDF5.
std::optional<std::vector<std::int64_t>> read_numbers(hid_t location, const std::string& path,
                                                      hid_t memory_type, std::size_t n_numbers) {
  if (H5Lexists(location, path.c_str(), H5P_DEFAULT) <= 0) return std::nullopt;
  const Hdf5Id dataset(H5Dopen2(location, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(dataset.valid() ? H5Dget_type(dataset.get()) : -1);
  const Hdf5Id space(dataset.valid() ? H5Dget_space(dataset.get()) : -1);
  hsize_t n = 0;
  if (!space.valid() || H5Tget_class(type.get()) != H5Tget_class(memory_type) ||
      H5Sget_simple_extent_ndims(space.get()) != 1 ||
      H5Sget_simple_extent_dims(space.get(), &n, nullptr) < 0 || n == 0 || n > most_boxes + 1) {
    return std::nullopt;
  }
  std::vector<std::int64_t> numbers(n * n_numbers);
  if (H5Dread(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()) < 0) {
    return std::nullopt;
  }
  return numbers;
}

}  // namespace

std::string_view level_data_name(std::string_view path) {
  path.remove_prefix(std::min(path.find_last_of('/') + 1, path.size()));  // npos + 1 is 0.
  return path.starts_with(data_name) ? path : std::string_view();
}

BoxSeries find_level_boxes(std::int64_t file, std::int64_t location, const std::string& path,
                           std::uint64_t length, const WholeNumbers& numbers_of) {
  const BoxSeries nothing;
  const std::string_view name = level_data_name(path);
  const std::string number(name.substr(data_name.size()));
  const std::string group = path.substr(0, path.size() - name.size());
  const std::optional<std::int64_t> n_names = whole_attribute(file, "num_components");
  if (!n_names || *n_names < 1 || std::uint64_t(*n_names) > most_components) return nothing;
  Hdf5Id box_type;
  const std::size_t n_dimensions = corners_of(location, group + "boxes", box_type);
  if (n_dimensions == 0) return nothing;
  const auto corners = numbers_of(group + "boxes", box_type.get(), 2 * n_dimensions);
  auto offsets = numbers_of(group + "data:offsets=" + number, H5T_NATIVE_INT64, 1);
  // AMReX writes one list of offsets for the datasets of all components.
  if (!offsets) offsets = numbers_of(group + "data:offsets=0", H5T_NATIVE_INT64, 1);
  if (!corners || !offsets) return nothing;
  const std::size_t n_boxes = corners->size() / (2 * n_dimensions);
  if (offsets->size() != n_boxes + 1 || offsets->front() != 0 || offsets->back() < 1 ||
      std::uint64_t(offsets->back()) != length) {
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
  // Either all components, or one component in a dataset that is named by its number.
  std::uint64_t first = 0;
  if (n_components != std::uint64_t(*n_names)) {
    const bool digits = !number.empty() && number.size() < 6 &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    first = digits ? std::stoul(number) : most_components;
    if (n_components != 1 || first >= std::uint64_t(*n_names)) return nothing;
  }
  for (std::uint64_t c = first; c < first + n_components; ++c) {
    boxes.components.push_back(text_attribute(file, ("component_" + std::to_string(c)).c_str()));
  }
  return boxes;
}

BoxSeries read_level_boxes(std::int64_t file, const std::string& path, std::uint64_t length) {
  return find_level_boxes(
      file, file, path, length,
      [&](const std::string& list, std::int64_t memory_type, std::size_t n_numbers) {
        return read_numbers(file, list, memory_type, n_numbers);
      });
}

LevelCover find_level_cover(std::int64_t file, const std::string& path,
                            std::shared_ptr<const BoxSeries> boxes,
                            const WholeNumbers& numbers_of) {
  LevelCover cover;
  const auto unknown = [&](std::string why) {
    cover.unknown = std::move(why);
    return cover;
  };
  const std::string group = path.substr(0, path.find_last_of('/'));
  const std::optional<std::int64_t> level = level_number(group);
  if (!level) return unknown("the level's group is not named level_N");
  const std::optional<std::int64_t> n_levels = whole_attribute(file, "num_levels");
  if (!n_levels) return unknown("the file has no attribute num_levels");
  if (*level + 1 >= *n_levels) return cover;  // No level is finer.
  const std::string finer_name = "level_" + std::to_string(*level + 1);
  const std::string finer_group = group.substr(0, group.find_last_of('/') + 1) + finer_name;
  const bool there = H5Lexists(file, finer_group.c_str(), H5P_DEFAULT) > 0;
  const auto finer = there ? corners_in(file, finer_group, numbers_of) : std::nullopt;
  if (!finer || has_twins(*finer)) {
    return unknown("the boxes of the next finer level are missing or duplicated");
  }
  const std::optional<LevelCorners> own = corners_in(file, group, numbers_of);
  if (!own || !are_boxes_of(*own, *boxes) || own->n_dimensions != finer->n_dimensions) {
    return unknown("the boxes of the level do not match its data");
  }
  const std::vector<std::int64_t> ratio = ref_ratio(file, group, own->n_dimensions);
  if (ratio.empty())
    return unknown("the attribute ref_ratio of the level is missing or not supported");
  std::vector<CoveredPart> parts = covered_parts(*own, *finer, ratio);
  if (parts.empty()) return cover;
  cover.cells = std::make_shared<const CoveredCells>(std::move(boxes), std::move(parts));
  return cover;
}

LevelCover read_level_cover(std::int64_t file, const std::string& path,
                            std::shared_ptr<const BoxSeries> boxes) {
  return find_level_cover(
      file, path, std::move(boxes),
      [&](const std::string& list, std::int64_t memory_type, std::size_t n_numbers) {
        return read_numbers(file, list, memory_type, n_numbers);
      });
}

}  // namespace tailrace
