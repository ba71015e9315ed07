// Named dimensions for files without scales, and strings in a form that netCDF-4 can read.

#include "netcdf/netcdf_dimension_names.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/utf8.hpp"
#include "describe/hdf5_copy.hpp"
#include "hdf5/hdf5_links.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "netcdf/netcdf_attributes.hpp"
#include "netcdf/netcdf_model.hpp"
#include "netcdf/netcdf_scales.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

namespace {

/// Limit for strings in memory; a larger dataset stays unchanged.
constexpr std::uint64_t kTextBytesMax = std::uint64_t{1} << 28;

std::string what_of(const std::string& path) { return "strings of \"" + path + "\""; }

/// Read the strings of a dataset whose type is `type`.
Result<std::vector<std::string>> read_texts(hid_t dataset, hid_t type, std::uint64_t n_texts,
                                            const std::string& path) {
  const std::size_t text_bytes = H5Tget_size(type);
  std::vector<char> bytes(n_texts * text_bytes);
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
    return hdf5_failure(Code::corrupt, what_of(path) + " cannot be read");
  }
  const bool blanks = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < n_texts; ++i) {
    std::string text(bytes.data() + i * text_bytes, text_bytes);
    text.resize(std::min(text.size(), text.find('\0')));
    while (blanks && !text.empty() && text.back() == ' ') text.pop_back();
    texts.push_back(std::move(text));
  }
  return texts;
}

/// Create an empty dataset like `old`, of variable-length strings.
Hdf5Id create_like(hid_t file, hid_t old, hid_t type, const std::string& path) {
  const Hdf5Id space(H5Dget_space(old));
  const Hdf5Id given(H5Dget_create_plist(old));
  const Hdf5Id list(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(list.get(), false);
  H5Pset_attr_creation_order(list.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  if (H5Pget_layout(given.get()) == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(kMaxRank);
    const int rank = H5Pget_chunk(given.get(), static_cast<int>(chunk.size()), chunk.data());
    H5Pset_chunk(list.get(), rank, chunk.data());
  }
  const Hdf5Id links = utf8_link_properties();
  return Hdf5Id(
      H5Dcreate2(file, path.c_str(), type, space.get(), links.get(), list.get(), H5P_DEFAULT));
}

/// Replace a dataset of fixed-length strings by one of variable-length strings. Values, attributes,
/// scales and link order are preserved. The netCDF-4 library treats the former as the latter and
/// returns garbage (4.9), or crashes. Does nothing to other datasets. Call with HDF5 locked. Cost:
/// all strings in memory. A dataset that is too large for that stays unchanged, with a line in
/// `lines`.
Status make_texts_variable(hid_t file, const std::string& path, std::vector<std::string>& lines) {
  Hdf5Id old(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(H5Dget_type(old.get()));
  const Hdf5Id space(H5Dget_space(old.get()));
  const bool fixed = H5Tget_class(type.get()) == H5T_STRING && H5Tget_size(type.get()) > 1 &&
                     H5Tis_variable_str(type.get()) <= 0;
  const hssize_t n_texts = H5Sget_simple_extent_npoints(space.get());
  if (!fixed || n_texts < 0) return Status();
  if (static_cast<std::uint64_t>(n_texts) > kTextBytesMax / H5Tget_size(type.get())) {
    lines.push_back(what_of(path) +
                    " have a fixed length, which netCDF cannot read, and are too large to convert");
    return Status();
  }
  TAILRACE_TAKE(const auto texts,
                read_texts(old.get(), type.get(), static_cast<std::uint64_t>(n_texts), path));
  const std::string group = parent_path(path);
  TAILRACE_TAKE(const std::vector<std::string> order, link_names(file, group));
  std::string aside = child_path(group, "tailrace_moving");
  while (link_exists(file, aside)) aside += "_";

  const Hdf5Id text_type = hdf5_memory_type(ModelType::text);
  H5Tset_cset(text_type.get(), H5Tget_cset(type.get()));
  const Hdf5Id made = create_like(file, old.get(), text_type.get(), aside);
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  if (!made.valid() || (!pointers.empty() && H5Dwrite(made.get(), text_type.get(), H5S_ALL, H5S_ALL,
                                                      H5P_DEFAULT, pointers.data()) < 0)) {
    return hdf5_failure(Code::internal, what_of(path) + " cannot be converted to variable length");
  }
  const Hdf5Catalog no_catalog;  // Within one file references stay unchanged.
  Hdf5References references(file, no_catalog, file);
  Hdf5Copier(file, file, references, lines).copy_plain_attributes(old.get(), made.get(), path);
  TAILRACE_TAKE(const ScaleTies ties, untie_scales(file, old.get(), path));
  old.reset();
  if (H5Ldelete(file, path.c_str(), H5P_DEFAULT) < 0 ||
      H5Lmove(file, aside.c_str(), file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0) {
    return hdf5_failure(Code::internal, what_of(path) + " cannot be replaced");
  }
  TAILRACE_TRY(tie_scales(file, path, ties));
  return order_links(file, group, order);
}

// --- Dimensions

using Lines = std::vector<std::string>;

/// The file without its anonymous dimensions, and the original dimensions of each variable.
class Naming {
 public:
  Naming(hid_t file, NetcdfFile read) : file_(file), read_(std::move(read)) {
    std::vector<std::size_t> kept(read_.model.dimensions.size(), kAnonymous);
    base_.model = read_.model;
    base_.model.dimensions.clear();
    base_.tied = read_.tied;
    for (std::size_t d = 0; d < kept.size(); ++d) {
      if (read_.model.dimensions[d].anonymous) continue;
      kept[d] = base_.model.dimensions.size();
      base_.model.dimensions.push_back(read_.model.dimensions[d]);
      base_.dimension_ids.push_back(read_.dimension_ids[d]);
      base_.scale_paths.push_back(read_.scale_paths[d]);
    }
    for (ModelVariable& variable : base_.model.variables) {
      for (std::size_t& d : variable.dimensions) d = kept[d];
    }
    model_ = base_.model;
    changed_.assign(model_.variables.size(), false);
  }

  Result<Lines> run(std::span<const DimensionNames> given) {
    for (std::size_t v = 0; v < model_.variables.size(); ++v) {
      const DimensionNames* const names = names_of(v, given);
      if (names != nullptr) TAILRACE_TRY(take_given(v, *names));
    }
    for (std::size_t v = 0; v < model_.variables.size(); ++v) take_coordinate(v);
    for (std::size_t v = 0; v < model_.variables.size(); ++v) take_shared(v);
    for (std::size_t d = base_.model.dimensions.size(); d < model_.dimensions.size(); ++d) {
      TAILRACE_TRY(check_free(d));
    }
    for (const ModelVariable& variable : model_.variables) {
      if (variable.type != ModelType::text) continue;
      TAILRACE_TRY(make_texts_variable(file_, variable.dataset_path, lines_));
    }
    NetcdfScales scales(file_, base_);
    scales.grow(model_);
    for (std::size_t v = 0; v < changed_.size(); ++v) {
      if (changed_[v]) scales.renew(v);
    }
    OpenDatasets open;
    TAILRACE_TRY(scales.attach_scales(model_, std::vector<bool>(changed_.size(), true), open));
    TAILRACE_TRY(flatten_attributes());
    return std::move(lines_);
  }

 private:
  static constexpr std::size_t kAnonymous = static_cast<std::size_t>(-1);

  const ModelDimension& was(std::size_t v, std::size_t d) const {
    return read_.model.dimensions[read_.model.variables[v].dimensions[d]];
  }
  /// True if a dimension can replace the d-th of a variable.
  bool fits(std::size_t v, std::size_t d, std::size_t dimension) const {
    const ModelDimension& candidate = model_.dimensions[dimension];
    return candidate.length == was(v, d).length && candidate.unlimited == was(v, d).unlimited;
  }

  const DimensionNames* names_of(std::size_t v, std::span<const DimensionNames> given) const {
    const std::string path = model_.path_of(model_.variables[v]);
    const auto found = std::find_if(given.rbegin(), given.rend(), [&](const DimensionNames& names) {
      return names.matches(path);
    });
    return found == given.rend() ? nullptr : &*found;
  }

  std::size_t add(std::size_t v, std::size_t d, std::string name) {
    const ModelDimension& old = was(v, d);
    model_.dimensions.push_back(
        {std::move(name), model_.variables[v].group, old.length, old.unlimited, false});
    return model_.dimensions.size() - 1;
  }

  void set(std::size_t v, std::size_t d, std::size_t dimension) {
    model_.variables[v].dimensions[d] = dimension;
    changed_[v] = true;
  }

  Status take_given(std::size_t v, const DimensionNames& names) {
    const ModelVariable& variable = model_.variables[v];
    const std::string what =
        "dimensions '" + names.pattern + "' of \"" + variable.dataset_path + "\"";
    if (names.names.size() != variable.dimensions.size()) {
      return Status(Code::invalid_argument, what + ": " + counted(names.names.size(), "name") +
                                                " for " +
                                                counted(variable.dimensions.size(), "dimension"));
    }
    for (std::size_t d = 0; d < names.names.size(); ++d) {
      const std::string& name = names.names[d];
      TAILRACE_TRY(check_netcdf_name(name).within(what + ", \"" + name + "\""));
      const std::size_t now = variable.dimensions[d];
      if (now != kAnonymous) {
        if (model_.dimensions[now].name == name) continue;
        return Status(Code::invalid_argument,
                      what + ": \"" + name + "\" cannot name a dimension that has the scale \"" +
                          model_.dimensions[now].name + "\" already");
      }
      const std::optional<std::size_t> known = model_.find_dimension(variable.group, name);
      // Unlimited or not makes no difference here: its scale in the file determines that.
      if (known && model_.dimensions[*known].length != was(v, d).length) {
        return Status(Code::invalid_argument, what + ": dimension \"" + name + "\" has length " +
                                                  std::to_string(model_.dimensions[*known].length) +
                                                  " elsewhere, here " +
                                                  std::to_string(was(v, d).length) +
                                                  (was(v, d).unlimited ? " (unlimited)" : ""));
      }
      set(v, d, known ? *known : add(v, d, name));
    }
    return Status();
  }

  /// Make a list the coordinate variable of the dimension with its name and length in its group.
  void take_coordinate(std::size_t v) {
    const ModelVariable& variable = model_.variables[v];
    if (variable.dimensions.size() != 1 || variable.dimensions[0] != kAnonymous) return;
    for (std::size_t d = 0; d < model_.dimensions.size(); ++d) {
      const ModelDimension& dimension = model_.dimensions[d];
      if (dimension.group != variable.group || dimension.name != variable.name) continue;
      // Only the length must match: a coordinate may be unlimited or not, whatever its dimension
      // is.
      if (dimension.length == was(v, 0).length) return set(v, 0, d);
    }
  }

  void take_shared(std::size_t v) {
    const std::size_t rank = model_.variables[v].dimensions.size();
    for (std::size_t d = 0; d < rank; ++d) {
      const std::vector<std::size_t>& dimensions = model_.variables[v].dimensions;
      if (dimensions[d] != kAnonymous) continue;
      std::optional<std::size_t> shared;
      for (std::size_t i = 0; i < model_.dimensions.size() && !shared; ++i) {
        const bool used = std::find(dimensions.begin(), dimensions.end(), i) != dimensions.end();
        const bool same_group = model_.dimensions[i].group == model_.variables[v].group;
        if (!used && same_group && fits(v, d, i)) shared = i;
      }
      set(v, d, shared ? *shared : add(v, d, new_name(v, d)));
    }
  }

  std::string new_name(std::size_t v, std::size_t d) const {
    const ModelDimension& old = was(v, d);
    const std::string start =
        "dim_" + (old.unlimited ? std::string("unlimited") : std::to_string(old.length));
    const std::size_t group = model_.variables[v].group;
    std::string name = start;
    for (int n = 2; model_.find_dimension(group, name) ||
                    link_exists(file_, child_path(model_.groups[group].path, name));
         ++n) {
      name = start + "_" + std::to_string(n);
    }
    return name;
  }

  /// Check that a new dimension's scale can have its name in the group: no link has it, unless that
  /// is the coordinate variable.
  Status check_free(std::size_t dimension) const {
    const ModelDimension& made = model_.dimensions[dimension];
    const std::string path = child_path(model_.groups[made.group].path, made.name);
    const bool has_variable = std::any_of(
        model_.variables.begin(), model_.variables.end(), [&](const ModelVariable& variable) {
          return variable.dataset_path == path && coordinate_of(model_, variable) == dimension;
        });
    if (has_variable || !link_exists(file_, path)) return Status();
    return Status(Code::invalid_argument,
                  "dimension \"" + made.name + "\" of length " + std::to_string(made.length) +
                      " cannot have this name: \"" + path + "\" exists and is not its coordinate");
  }

  Status flatten_attributes() {
    for (const ModelGroup& group : model_.groups) {
      const Hdf5Id object(H5Gopen2(file_, group.path.c_str(), H5P_DEFAULT));
      TAILRACE_TRY(flatten_wide_attributes(object.get(), group.path, lines_));
    }
    for (const ModelVariable& variable : model_.variables) {
      const Hdf5Id object(H5Dopen2(file_, variable.dataset_path.c_str(), H5P_DEFAULT));
      TAILRACE_TRY(flatten_wide_attributes(object.get(), variable.dataset_path, lines_));
    }
    return Status();
  }

  hid_t file_;
  NetcdfFile read_;
  NetcdfFile base_;            ///< Current model of the file: named dimensions only.
  NetcdfModel model_;          ///< Model to be written.
  std::vector<bool> changed_;  ///< Per variable.
  Lines lines_;
};

}  // namespace

Result<Lines> name_dimensions(Hdf5File& file, std::span<const DimensionNames> given) {
  const Hdf5Scope scope;
  const hid_t id = file.hdf5_id();
  TAILRACE_TAKE(NetcdfFile read, read_netcdf_file(id, GroupNames::first));
  const Hdf5Id root(H5Gopen2(id, "/", H5P_DEFAULT));
  TAILRACE_TRY(write_netcdf_properties(root.get()));
  return Naming(id, std::move(read)).run(given);
}

}  // namespace tailrace
