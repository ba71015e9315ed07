// The rules, in their order: attributes of other objects, the layouts of communities, the dataset's
// own attributes, and last its name. The first rule that applies decides.

#include "policy/roles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/options.hpp"
#include "policy/role_layouts.hpp"

namespace tailrace {
namespace {

// --- Attributes by which a node of a tree states its kind.

struct LabelRule {
  std::string_view label;
  Role role;
};
// CGNS SIDS and HDF5 file mapping, https://cgns.github.io. The nearest labelled ancestor decides.
constexpr LabelRule kCgnsLabels[] = {
    {"GridCoordinates_t", Role::geometry},
    {"FlowSolution_t", Role::value},
    {"DiscreteData_t", Role::value},
    {"BCData_t", Role::value},
    {"ConvergenceHistory_t", Role::value},
    {"IntegralData_t", Role::value},
    {"ZoneSubRegion_t", Role::value},
    {"UserDefinedData_t", Role::value},
    {"RigidGridMotion_t", Role::geometry},
    {"ArbitraryGridMotion_t", Role::geometry},
    {"Elements_t", Role::connectivity},
    {"BaseIterativeData_t", Role::time},
    {"ZoneIterativeData_t", Role::time},
    {"IndexArray_t", Role::index},
    {"IndexRange_t", Role::index},
    {"BC_t", Role::geometry},  // Normals
    {"ZoneBC_t", Role::index},
    {"GridConnectivity_t", Role::index},
    {"GridConnectivity1to1_t", Role::index},
    {"GridConnectivityProperty_t", Role::geometry},
    {"OversetHoles_t", Role::index},
    {"Rind_t", Role::index},
    {"Zone_t", Role::count},
};

struct ClassRule {
  std::string_view of_class;
  std::string_view glob;  ///< Over the dataset's name.
  Role role;
};
// NeXus base classes, https://manual.nexusformat.org/classes/base_classes
constexpr ClassRule kNexusRules[] = {
    {"NXevent_data", "event_id", Role::id},
    {"NXevent_data", "event_time_*", Role::time},
    {"NXevent_data", "cue_*", Role::index},
    {"NXevent_data", "event_index", Role::index},
    {"NXlog", "time", Role::time},
    {"NXlog", "cue_*", Role::time},
    {"NXlog", "*value*", Role::value},
    {"NXtransformations", "*", Role::geometry},
    {"NXoff_geometry", "vertices", Role::geometry},
    {"NXoff_geometry", "*", Role::connectivity},
    {"NXcylindrical_geometry", "vertices", Role::geometry},
    {"NXcylindrical_geometry", "*", Role::connectivity},
    {"NXdetector", "*_pixel_offset", Role::geometry},
    {"NXdetector", "*_pixel_size", Role::geometry},
    {"NXdetector", "distance", Role::geometry},
    {"NXdetector", "*_angle", Role::geometry},
    {"NXdetector", "detector_number", Role::id},
    {"NXdetector", "pixel_id", Role::id},
    {"NXdetector", "pixel_mask", Role::mask},
    {"NXdetector", "time_of_flight", Role::time},
    {"NXdetector", "data", Role::value},
    {"NXmonitor", "time_of_flight", Role::time},
    {"NXmonitor", "data", Role::value},
};

// AnnData and 10x: a sparse matrix or a categorical column is a group.
constexpr ClassRule kEncodingRules[] = {
    {"csr_matrix", "data", Role::value},   {"csr_matrix", "*", Role::index},
    {"csc_matrix", "data", Role::value},   {"csc_matrix", "*", Role::index},
    {"csr", "data", Role::value},          {"csr", "*", Role::index},
    {"csc", "data", Role::value},          {"csc", "*", Role::index},
    {"categorical", "codes", Role::index},
};

// HDMF, the basis of NWB: classes of columns, as attributes of datasets.
constexpr LabelRule kHdmfTypes[] = {
    {"VectorIndex", Role::index},
    {"ElementIdentifiers", Role::id},
    {"DynamicTableRegion", Role::index},
};

/// An attribute whose text names other datasets, in the group of the attribute's object or in an
/// ancestor.
struct NamingRule {
  std::string_view glob;  ///< Over the attribute's name.
  Role role;
};
// CF 5 (coordinates, grid mappings), 7.1 (bounds), 7.2 (cell measures), 7.4 (climatologies), 7.5
// (geometries); UGRID 1.0 (node_coordinates, face_node_connectivity, ...).
constexpr NamingRule kNamingRules[] = {
    {"coordinates", Role::coordinate},      {"bounds", Role::coordinate},
    {"climatology", Role::coordinate},      {"grid_mapping", Role::coordinate},
    {"cell_measures", Role::weight},        {"node_coordinates", Role::geometry},
    {"edge_coordinates", Role::geometry},   {"face_coordinates", Role::geometry},
    {"volume_coordinates", Role::geometry}, {"node_count", Role::count},
    {"part_node_count", Role::count},       {"interior_ring", Role::mask},
    {"*_connectivity", Role::connectivity},
};

// --- Names with the same meaning everywhere. Each rule has a largest number of dimensions.

constexpr std::size_t kAnyRank = SIZE_MAX;

enum class At : std::uint8_t {
  all,   ///< The complete name.
  last,  ///< Its last word, without trailing axis letters and numbers.
  any    ///< One of its words.
};
struct WordRule {
  At at;
  Role role;
  std::size_t rank_max;
  std::string_view words;  ///< Lower case, separated by blanks.
};
constexpr WordRule kWordRules[] = {
    {At::any, Role::coordinate, kAnyRank,
     "latitude latitudes longitude longitudes geolat geolon xlat xlong xlon nav_lat nav_lon"},
    {At::all, Role::coordinate, kAnyRank,
     "lat lats lon lons lng tlat tlon tlong ulat ulon ulong nlat nlon rlat rlon glat glon "
     "clat clon elat elon vlat vlon"},
    {At::all, Role::time, kAnyRank,
     "time times timestamp timestamps datetime date dates delta_time time_bnds time_bounds "
     "time_counter time_instant time_centered time_utc time_tai time_of_flight time_whole xtime "
     "ocean_time julian julian_day julian_date mjd jd"},
    {At::last, Role::time, 1, "time times timestamp timestamps datetime date dates"},
    {At::all, Role::time, 1, "t"},
    {At::last, Role::geometry, kAnyRank,
     "position positions pos coord coords coordinate coordinates vertices xyz centroid centroids "
     "centre centres center centers"},
    {At::all, Role::geometry, kAnyRank,
     "points nodes mesh_points grid_points geometry center_of_mass xc yc zc xf yf zf xh yh zh "
     "xq yq xgrid ygrid zgrid coordx coordy coordz xcoord ycoord zcoord box_edges cell_edges x1f "
     "x2f x3f x1v x2v x3v bounding_box bbox"},
    {At::all, Role::coordinate, 1,
     "depth depths height heights altitude altitudes lev levs level levels plev plevs "
     "pressure_level pressure_levels frequency frequencies freq freqs wavelength wavelengths "
     "wavenumber wavenumbers zl zi edges bins"},
    {At::last, Role::coordinate, 1, "edges bins"},
    {At::last, Role::coordinate, kAnyRank, "bnds bounds"},
    {At::all, Role::connectivity, kAnyRank,
     "connectivity topology triangles tetrahedra edges faces_nodes"},
    {At::last, Role::connectivity, kAnyRank, "connectivity"},
    {At::all, Role::index, kAnyRank,
     "index indices indexes idx indptr offsets segment_index row_index column_index"},
    {At::last, Role::index, kAnyRank, "indices indptr idx offsets"},
    {At::all, Role::id, kAnyRank, "tag tags pid uid guid uuid gid"},
    {At::last, Role::id, kAnyRank, "id ids"},
    {At::all, Role::weight, kAnyRank, "weight weights weighting areacella areacello volcello"},
    {At::last, Role::weight, 1, "weight weights"},
    {At::any, Role::mask, kAnyRank, "mask masks landmask flag flags"},
    {At::all, Role::mask, kAnyRank, "lsm tmask umask vmask fmask qc wet"},
    {At::last, Role::mask, kAnyRank, "qc"},
    {At::all, Role::count, 1, "count counts nobs"},
    {At::last, Role::count, 1, "count"},
};

// Words that may follow or precede x, y and z in the name of a grid's coordinate: x_rho, xCell.
constexpr std::string_view kAxisCompanions =
    "rho psi u v vert atc node nodes cell cells face faces edge edges corner corners vertex grid "
    "mesh axis stag bnds bounds";

// Groups of a vector's components, {x, y, z}, which are values.
constexpr std::string_view vector_words =
    "velocity velocities vel momentum momenta mom force forces acceleration accelerations acc "
    "magnetic electric field current flux gradient grad curl vorticity displacement displacements "
    "spin dipole polarization stress strain charge wind";

// Groups whose members are all geometry.
constexpr std::string_view kGeometryGroups =
    "locations volumelocations coordinates coords cell_coords node_coords position positions "
    "vertices";

// CF standard names of coordinates; names that end with one of these, or begin likewise, count too.
constexpr std::string_view kStandardCoordinates =
    "latitude longitude altitude height depth height_above_reference_ellipsoid "
    "height_above_mean_sea_level model_level_number radiation_wavelength radiation_frequency "
    "realization region sensor_band_central_radiation_wavelength";
constexpr std::string_view kStandardTimes =
    "time forecast_reference_time forecast_period reference_epoch";

constexpr std::string_view kUnidataTimeTypes = "Time RunTime";

constexpr std::string_view kExtremesNames =
    "minimum maximum actual_range actual_min actual_max data_min data_max data_range min max "
    "valid_data_min valid_data_max statistics_minimum statistics_maximum";

// --- Texts

bool is_word_of(std::string_view words, std::string_view word) {
  if (word.empty()) return false;
  for (std::size_t at = words.find(word); at != std::string_view::npos;
       at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return made;
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash);
}

/// Split "particle_position_x" and "ParticlePositionX" into words in lower case.
std::vector<std::string> words_of(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_letter = [&](char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); };
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!is_letter(c) && !is_digit(c)) {
      end_word();
      continue;
    }
    const bool apart =
        i > 0 && ((is_upper(c) && is_letter(name[i - 1]) && !is_upper(name[i - 1])) ||
                  is_digit(c) != is_digit(name[i - 1]));
    if (apart) end_word();
    word += lower(std::string_view(&c, 1));
  }
  end_word();
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "_") + word;
  return text;
}

bool is_axis(std::string_view word) { return word == "x" || word == "y" || word == "z"; }

/// Return the last word that is not an axis, a number or "3D".
std::string_view last_word(const std::vector<std::string>& words) {
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const bool number = (*word)[0] >= '0' && (*word)[0] <= '9';
    if (!number && !is_axis(*word) && *word != "d") return *word;
  }
  return {};
}

const StatedAttribute* find_attribute(const StatedObject* object, std::string_view name) {
  if (object == nullptr) return nullptr;
  const auto found = std::ranges::find(object->attributes, name, &StatedAttribute::name);
  return found == object->attributes.end() ? nullptr : &*found;
}

std::string text_of(const StatedObject* object, std::string_view name) {
  const StatedAttribute* found = find_attribute(object, name);
  return found != nullptr && !found->texts.empty() ? found->texts.front() : std::string();
}

/// Split an attribute's texts into words at blanks, commas and brackets; words that end in ':' are
/// keys.
std::vector<std::string> names_in(const StatedAttribute& attribute, bool at_colons = false) {
  std::vector<std::string> names;
  for (const std::string& text : attribute.texts) {
    // One of several texts is one name, which may contain blanks.
    if (attribute.texts.size() > 1) {
      names.push_back(text);
      continue;
    }
    std::string name;
    for (const char c : text + " ") {
      const bool apart = c == ' ' || c == ',' || c == '[' || c == ']' || c == '\n' || c == '\0';
      if (!apart && !(at_colons && c == ':')) {
        name += c;
      } else if (!name.empty()) {
        if (name.back() != ':') names.push_back(name);
        name.clear();
      }
    }
  }
  return names;
}

// --- One file

/// Datasets and groups by path, and the roles that some objects' attributes give to others.
class Scene {
 public:
  explicit Scene(const RoleFacts& facts) : facts_(facts) {
    for (const StatedObject& group : facts.groups) groups_.emplace(group.path, &group);
    for (std::size_t d = 0; d < facts.datasets.size(); ++d) {
      const StatedObject& dataset = facts.datasets[d];
      datasets_.emplace(dataset.path, d);
      siblings_[std::string(folder_of(dataset.path))].push_back(d);
      words_.insert(std::string(folder_of(dataset.path)) + "/" + joined(words(dataset)));
    }
    for (const std::string& path : facts.others) others_.insert(path);
    verdicts_.resize(facts.datasets.size());
    for (const Community& community : kCommunities) {
      if (has_marker(community.marker)) activate(community, active_);
    }
    for (const Community& community : kPositiveQuantities) {
      if (has_marker(community.marker)) activate(community, positive_);
    }
    for (const StatedObject& group : facts.groups) read_group_names(group);
    for (const StatedObject& dataset : facts.datasets) read_dataset_names(dataset);
  }

  RoleVerdict verdict(std::size_t d) const {
    const StatedObject& dataset = facts_.datasets[d];
    RoleVerdict found = role_of(d, dataset);
    if (found.role == Role::value && dataset.floating) find_limits(dataset, found);
    return found;
  }

 private:
  using Verdict = std::optional<RoleVerdict>;
  static RoleVerdict verdict_of(Role role, std::string because) {
    RoleVerdict verdict;
    verdict.role = role;
    verdict.because = std::move(because);
    return verdict;
  }

  static std::vector<std::string> words(const StatedObject& dataset) {
    // netCDF-4 adds this prefix to a variable with the name of another's dimension.
    constexpr std::string_view prefix = "_nc4_non_coord_";
    std::string_view name = name_of(dataset.path);
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    return words_of(name);
  }

  const StatedObject* group(std::string_view path) const {
    const auto found = groups_.find(std::string(path));
    return found == groups_.end() ? nullptr : found->second;
  }

  bool has_marker(std::string_view marker) const {
    if (marker.empty()) return true;
    if (marker[0] == '@') return find_attribute(group("/"), marker.substr(1)) != nullptr;
    const std::string path(marker);
    return groups_.contains(path) || datasets_.contains(path) || others_.contains(path);
  }

  struct ActiveRule {
    std::string_view glob;
    Role role;
    std::string_view community;
  };
  static void activate(const Community& community, std::vector<ActiveRule>& active) {
    for (const PathRule& rule : community.rules) {
      for (std::string_view globs = rule.globs; !globs.empty();) {
        const std::size_t end = std::min(globs.find(','), globs.size());
        active.push_back({globs.substr(0, end), rule.role, community.name});
        globs.remove_prefix(std::min(end + 1, globs.size()));
      }
    }
  }

  /// @param upwards  true: also search groups above, like CF and netCDF-4.
  void note(std::string_view folder, const std::string& name, const RoleVerdict& verdict,
            bool upwards = true) {
    for (;; folder = folder_of(folder)) {
      const std::string path = name[0] == '/'  ? name
                               : folder == "/" ? "/" + name
                                               : std::string(folder) + "/" + name;
      const auto found = datasets_.find(path);
      if (found != datasets_.end()) {
        Verdict& noted = verdicts_[found->second];
        if (!noted || noted->role == Role::value) noted = verdict;
        return;
      }
      if (!upwards || folder == "/" || name[0] == '/') return;
    }
  }

  /// Read the roles that a group gives its members: NXdata's signal, axes and AXISNAME_indices, and
  /// others.
  void read_group_names(const StatedObject& group) {
    const std::string frame = text_of(&group, "_index");  // AnnData: the column of row names.
    if (!frame.empty()) note(group.path, frame, verdict_of(Role::id, "AnnData _index"), false);
    if (const StatedAttribute* const named = find_attribute(&group, "coordinates")) {  // xarray
      for (const std::string& name : names_in(*named)) {
        note(group.path, name, verdict_of(Role::coordinate, "CF coordinates"), false);
      }
    }
    if (text_of(&group, "NX_class") != "NXdata") return;
    for (const StatedAttribute& attribute : group.attributes) {
      if (attribute.name == "signal" || attribute.name == "auxiliary_signals") {
        for (const std::string& name : names_in(attribute)) {
          note(group.path, name, verdict_of(Role::value, "NXdata signal"), false);
        }
      } else if (attribute.name == "axes") {
        for (const std::string& name : names_in(attribute, true)) {
          note(group.path, name, verdict_of(Role::coordinate, "NXdata axes"), false);
        }
      } else if (attribute.name.ends_with("_indices")) {
        const std::string name = attribute.name.substr(0, attribute.name.size() - 8);
        note(group.path, name, verdict_of(Role::coordinate, "NXdata axes"), false);
      }
    }
  }

  void read_dataset_names(const StatedObject& dataset) {
    const std::string_view folder = folder_of(dataset.path);
    for (const StatedAttribute& attribute : dataset.attributes) {
      if (attribute.name == "axes") {  // NeXus before 2014
        const StatedObject* const above = group(folder);
        if (text_of(above, "NX_class") != "NXdata") continue;
        for (const std::string& name : names_in(attribute, true)) {
          note(folder, name, verdict_of(Role::coordinate, "NXdata axes"), false);
        }
      }
      if (attribute.name == "formula_terms") {
        for (const std::string& name : names_in(attribute)) note_term(folder, name);
      }
      for (const NamingRule& rule : kNamingRules) {
        if (!glob_matches(rule.glob, attribute.name)) continue;
        for (const std::string& name : names_in(attribute)) {
          note(folder, name, verdict_of(rule.role, "CF " + attribute.name));
        }
      }
    }
  }

  /// Note a term of CF 4.3.3. Coefficients and the ground below are geometry; a surface pressure
  /// over time is computed by the model.
  void note_term(std::string_view folder, const std::string& name) {
    const std::string path = folder == "/" ? "/" + name : std::string(folder) + "/" + name;
    const auto found = datasets_.find(path);
    if (found == datasets_.end() || facts_.datasets[found->second].shape.size() > 2) return;
    note(folder, name, verdict_of(Role::coordinate, "CF formula_terms"));
  }

  RoleVerdict role_of(std::size_t d, const StatedObject& dataset) const {
    if (dataset.coordinate) {
      return verdict_of(Role::coordinate, "dimension scale or CF coordinates");
    }
    if (verdicts_[d]) return *verdicts_[d];
    if (Verdict found = by_tree(dataset)) return *found;
    for (const ActiveRule& rule : active_) {
      if (glob_matches(rule.glob, dataset.path))
        return verdict_of(rule.role, std::string(rule.community));
    }
    if (Verdict found = by_attributes(dataset)) return *found;
    if (Verdict found = by_name(dataset)) return *found;
    return RoleVerdict();
  }

  /// Apply CGNS, NeXus, AnnData, HDMF: groups that state their kind.
  Verdict by_tree(const StatedObject& dataset) const {
    const std::string_view name = name_of(dataset.path);
    for (std::string_view folder = folder_of(dataset.path); folder != "/";
         folder = folder_of(folder)) {
      const std::string label = text_of(group(folder), "label");
      const auto rule = std::ranges::find(kCgnsLabels, label, &LabelRule::label);
      if (rule != std::end(kCgnsLabels)) return verdict_of(rule->role, "CGNS " + label);
    }
    const StatedObject* const above = group(folder_of(dataset.path));
    const std::string nexus = text_of(above, "NX_class");
    std::string encoding = text_of(above, "encoding-type");
    if (encoding.empty()) encoding = text_of(above, "h5sparse_format");
    for (const ClassRule& rule : kNexusRules) {
      if (rule.of_class == nexus && glob_matches(rule.glob, name)) {
        return verdict_of(rule.role, nexus);
      }
    }
    for (const ClassRule& rule : kEncodingRules) {
      if (rule.of_class == encoding && glob_matches(rule.glob, name)) {
        return verdict_of(rule.role, "AnnData " + encoding);
      }
    }
    const std::string type = text_of(&dataset, "neurodata_type");
    const auto rule = std::ranges::find(kHdmfTypes, type, &LabelRule::label);
    if (rule != std::end(kHdmfTypes)) return verdict_of(rule->role, "HDMF " + type);
    return std::nullopt;
  }

  /// Apply CF 4 and 3.1, NUG and Unidata's conventions; NeXus before 2014.
  static Verdict by_attributes(const StatedObject& dataset) {
    const std::size_t rank = dataset.shape.size();
    const std::string units = lower(text_of(&dataset, "units"));
    if (is_degrees(units)) return verdict_of(Role::coordinate, "CF units");
    if (units.find(" since ") != std::string::npos) return verdict_of(Role::time, "CF units");
    const std::string axis = text_of(&dataset, "axis");
    if (axis == "T") return verdict_of(Role::time, "CF axis");
    if (axis.size() == 1 && is_axis(lower(axis))) return verdict_of(Role::coordinate, "CF axis");
    const auto has = [&](std::string_view name) {
      const StatedAttribute* const found = find_attribute(&dataset, name);
      return found != nullptr && !(found->texts.empty() && found->numbers.empty());
    };
    const auto has_text = [&](std::string_view name) { return !text_of(&dataset, name).empty(); };
    if (const std::string type = text_of(&dataset, "_CoordinateAxisType"); !type.empty()) {
      return verdict_of(is_word_of(kUnidataTimeTypes, type) ? Role::time : Role::coordinate,
                        "_CoordinateAxisType");
    }
    if (has_text("bounds") || has_text("climatology") || has_text("formula_terms")) {
      return verdict_of(Role::coordinate, "CF bounds or formula_terms");
    }
    if (has_text("cf_role")) return verdict_of(Role::id, "CF cf_role");
    if (has_text("compress")) return verdict_of(Role::index, "CF compress");
    if (has_text("sample_dimension")) return verdict_of(Role::count, "CF sample_dimension");
    if (has_text("instance_dimension")) return verdict_of(Role::index, "CF instance_dimension");
    if (has("flag_values") || has("flag_masks")) return verdict_of(Role::mask, "CF flags");
    if (rank == 1 && has_text("positive")) return verdict_of(Role::coordinate, "CF positive");
    if (has("signal")) return verdict_of(Role::value, "NeXus signal");
    const StatedAttribute* const nexus_axis = find_attribute(&dataset, "axis");
    if (nexus_axis != nullptr && !nexus_axis->numbers.empty()) {
      return verdict_of(Role::coordinate, "NeXus axis");
    }
    return by_standard_name(text_of(&dataset, "standard_name"), rank);
  }

  static Verdict by_standard_name(const std::string& standard, std::size_t rank) {
    if (standard.empty()) return std::nullopt;
    constexpr const char* because = "CF standard_name";
    if (is_word_of(kStandardTimes, standard)) return verdict_of(Role::time, because);
    if (is_word_of(kStandardCoordinates, standard) || standard.starts_with("projection_") ||
        standard.ends_with("_latitude") || standard.ends_with("_longitude") ||
        standard.ends_with("_coordinate")) {
      return verdict_of(Role::coordinate, because);
    }
    if (standard == "cell_area" || standard == "ocean_volume") {
      return verdict_of(Role::weight, because);
    }
    if (standard.ends_with("_binary_mask") || standard.ends_with("_flag")) {
      return verdict_of(Role::mask, because);
    }
    if (standard == "number_of_observations") return verdict_of(Role::count, because);
    // The unit is another quantity, whatever the array's name; an array of one dimension may be an
    // axis.
    if (rank > 1) return verdict_of(Role::value, because);
    return std::nullopt;
  }

  /// Recognise all spellings of CF 4.1 and 4.2.
  static bool is_degrees(const std::string& units) {
    for (const std::string_view start : {"degrees_", "degree_", "degrees", "degree"}) {
      if (!units.starts_with(start)) continue;
      const std::string_view rest = std::string_view(units).substr(start.size());
      return rest == "n" || rest == "e" || rest == "north" || rest == "east" || rest == "s" ||
             rest == "w" || rest == "south" || rest == "west";
    }
    return false;
  }

  Verdict by_name(const StatedObject& dataset) const {
    std::vector<std::string> own = words(dataset);
    const std::string_view folder = folder_of(dataset.path);
    std::string whole = joined(own);
    std::string plain = lower(name_of(dataset.path));
    // Names like "position/value": the group has the meaningful name.
    if (is_word_of("value values data array", whole) && folder != "/") {
      own = words_of(name_of(folder));
      whole = joined(own);
      plain = lower(name_of(folder));
    }
    const std::size_t rank = dataset.shape.size();
    if (const Verdict found = by_axis_letter(dataset, own)) return *found;
    const std::string_view last = last_word(own);
    for (const WordRule& rule : kWordRules) {
      if (rank > rule.rank_max) continue;
      const bool applies =
          rule.at == At::all    ? is_word_of(rule.words, whole) || is_word_of(rule.words, plain)
          : rule.at == At::last ? is_word_of(rule.words, last)
                                : std::ranges::any_of(own, [&](const std::string& word) {
                                    return is_word_of(rule.words, word);
                                  });
      if (applies) return verdict_of(rule.role, "name");
    }
    if (has_counterpart(dataset, own)) return verdict_of(Role::coordinate, "name");
    if (is_word_of(kGeometryGroups, lower(name_of(folder)))) {
      return verdict_of(Role::geometry, "group");
    }
    return std::nullopt;
  }

  /// Apply to datasets named just x, y or z. Components of vectors and fields of three dimensions
  /// have these names, too.
  Verdict by_axis_letter(const StatedObject& dataset, const std::vector<std::string>& own) const {
    if (own.size() != 1 || !is_axis(own[0])) return std::nullopt;
    const std::string_view folder = folder_of(dataset.path);
    if (folder != "/" && is_vector(name_of(folder))) {
      return verdict_of(Role::value, "vector's component");
    }
    if (dataset.shape.size() <= 1) return verdict_of(Role::geometry, "name");
    // More than one dimension: a mesh has as many coordinates of one shape.
    const auto& others = siblings_.at(std::string(folder));
    const std::ptrdiff_t n_alike = std::ranges::count_if(others, [&](std::size_t d) {
      const StatedObject& other = facts_.datasets[d];
      const std::vector<std::string> name = words(other);
      return name.size() == 1 && is_axis(name[0]) && other.shape == dataset.shape;
    });
    if (n_alike > 1) return verdict_of(Role::geometry, "name");
    return verdict_of(Role::value, "name without a mesh's other coordinates");
  }

  static bool is_vector(std::string_view group_name) {
    if (group_name.size() == 1) return true;  // E, B, J
    return std::ranges::any_of(words_of(group_name), [](const std::string& word) {
      return is_word_of(vector_words, word);
    });
  }

  /// Return true if a counterpart exists: lat_ph next to lon_ph, x_rho next to y_rho.
  bool has_counterpart(const StatedObject& dataset, const std::vector<std::string>& own) const {
    const bool companion = own.size() == 2 && std::ranges::any_of(own, [](const auto& word) {
                             return is_word_of(kAxisCompanions, word);
                           });
    for (std::size_t w = 0; w < own.size(); ++w) {
      std::vector<std::string_view> counterparts;
      if (own[w] == "lat") counterparts = {"lon", "long", "lng"};
      if (own[w] == "lon" || own[w] == "long" || own[w] == "lng") counterparts = {"lat"};
      if (own[w] == "clat" || own[w] == "elat" || own[w] == "vlat") counterparts = {"clon", "elon"};
      if (own[w] == "clon" || own[w] == "elon" || own[w] == "vlon") counterparts = {"clat", "elat"};
      if (companion && own[w] == "x") counterparts = {"y"};
      if (companion && (own[w] == "y" || own[w] == "z")) counterparts = {"x"};
      for (const std::string_view counterpart : counterparts) {
        std::vector<std::string> other = own;
        other[w] = counterpart;
        if (words_.contains(std::string(folder_of(dataset.path)) + "/" + joined(other)))
          return true;
      }
    }
    return false;
  }

  void find_limits(const StatedObject& dataset, RoleVerdict& verdict) const {
    for (const StatedAttribute& attribute : dataset.attributes) {
      if (is_word_of(kExtremesNames, lower(attribute.name)) && !attribute.numbers.empty()) {
        verdict.extremes_stated += (verdict.extremes_stated.empty() ? "" : ", ") + attribute.name;
      }
      if (attribute.name != "valid_range" && attribute.name != "valid_min" &&
          attribute.name != "valid_max") {
        continue;
      }
      if (attribute.numbers.size() > 2) continue;
      for (const double limit : attribute.numbers) {
        if (std::isfinite(limit)) verdict.limits.push_back(limit);
      }
      verdict.limits_because += (verdict.limits_because.empty() ? "" : ", ") + attribute.name;
    }
    // CF standard names: fractions are of 1 unless the unit is percent.
    const std::string standard = text_of(&dataset, "standard_name");
    const std::string units = text_of(&dataset, "units");
    const bool fraction =
        standard.ends_with("_fraction") || standard.find("_fraction_") != std::string::npos;
    if (verdict.limits.empty() && fraction && (units.empty() || units == "1" || units == "%")) {
      verdict.limits = {0, units == "%" ? 100.0 : 1.0};
      verdict.limits_because = "standard_name: fraction";
    }
    for (const ActiveRule& rule : positive_) {
      if (!verdict.limits.empty() || !glob_matches(rule.glob, dataset.path)) continue;
      verdict.limits = {0};
      verdict.limits_because = std::string(rule.community) + ": positive";
    }
    std::ranges::sort(verdict.limits);
    verdict.limits.erase(std::unique(verdict.limits.begin(), verdict.limits.end()),
                         verdict.limits.end());
    if (verdict.limits.empty()) verdict.limits_because.clear();
  }

  const RoleFacts& facts_;
  std::unordered_map<std::string, const StatedObject*> groups_;
  std::unordered_map<std::string, std::size_t> datasets_;
  std::unordered_map<std::string, std::vector<std::size_t>> siblings_;
  std::unordered_set<std::string> words_;  ///< Group and words of each dataset's name.
  std::unordered_set<std::string> others_;
  std::vector<ActiveRule> active_;    ///< Rules of communities whose markers the file has.
  std::vector<ActiveRule> positive_;  ///< Rules on limits of these communities.
  std::vector<Verdict> verdicts_;     ///< Verdicts from attributes of other objects.
};

}  // namespace

std::string_view role_name(Role role) {
  constexpr std::array<std::string_view, 10> names = {
      "value", "coordinate", "geometry", "index",        "id",
      "time",  "weight",     "mask",     "connectivity", "count"};
  return names[static_cast<std::size_t>(role)];
}

std::vector<std::string_view> role_markers() {
  std::vector<std::string_view> paths;
  for (const Community& community : kCommunities) {
    if (community.marker.starts_with('/')) paths.push_back(community.marker);
  }
  return paths;
}

bool chunks_have_meaning(std::string_view path) { return glob_matches("*/_i_*/*", path); }

bool states_role(std::string_view attribute_name) {
  constexpr std::string_view names =
      "units standard_name axis axes signal auxiliary_signals formula_terms cf_role positive "
      "compress sample_dimension instance_dimension flag_values flag_masks _CoordinateAxisType "
      "valid_range valid_min valid_max label NX_class encoding-type h5sparse_format _index "
      "neurodata_type openPMD nwb_version RootGridX1 PYTABLES_FORMAT_VERSION MMINLU "
      "floating_point_word_size";
  if (is_word_of(names, attribute_name) || attribute_name.ends_with("_indices")) return true;
  if (is_word_of(kExtremesNames, lower(attribute_name))) return true;
  return std::ranges::any_of(kNamingRules, [&](const NamingRule& rule) {
    return glob_matches(rule.glob, attribute_name);
  });
}

std::vector<RoleVerdict> decide_roles(const RoleFacts& facts) {
  std::vector<std::size_t> all(facts.datasets.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return decide_roles(facts, all);
}

std::vector<RoleVerdict> decide_roles(const RoleFacts& facts, std::span<const std::size_t> some) {
  const Scene scene(facts);
  std::vector<RoleVerdict> verdicts;
  verdicts.reserve(some.size());
  for (const std::size_t d : some) verdicts.push_back(scene.verdict(d));
  return verdicts;
}

}  // namespace tailrace
