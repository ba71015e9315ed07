// Named dimensions for files that have none.

#include "container/netcdf_dimension_names.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "container/hdf5_links.hpp"
#include "container/input_conventions.hpp"
#include "container/netcdf_attributes.hpp"
#include "container/netcdf_names.hpp"
#include "container/netcdf_scales.hpp"
#include "container/netcdf_texts.hpp"

namespace tailrace {
namespace {

using Lines = std::vector<std::string>;

/// The file without its anonymous dimensions, and what each variable's dimensions were.
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
    TAILRACE_TRY(scales.settle(model_, std::vector<bool>(changed_.size(), true)));
    TAILRACE_TRY(flatten_attributes());
    return std::move(lines_);
  }

 private:
  static constexpr std::size_t kAnonymous = static_cast<std::size_t>(-1);

  const ModelDimension& was(std::size_t v, std::size_t d) const {
    return read_.model.dimensions[read_.model.variables[v].dimensions[d]];
  }
  /// Whether a dimension can stand for the d-th of a variable.
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
      return Status(Code::invalid_argument,
                    what + ": " + std::to_string(names.names.size()) + " names for " +
                        std::to_string(variable.dimensions.size()) + " dimensions");
    }
    for (std::size_t d = 0; d < names.names.size(); ++d) {
      const std::string& name = names.names[d];
      TAILRACE_TRY(check_netcdf_name(name).within(what + ", \"" + name + "\""));
      const std::size_t now = variable.dimensions[d];
      if (now != kAnonymous) {
        if (model_.dimensions[now].name == name) continue;
        return Status(Code::invalid_argument, what + ": \"" + name +
                                                  "\" has a dimension scale, \"" +
                                                  model_.dimensions[now].name + "\", already");
      }
      const std::optional<std::size_t> known = model_.find_dimension(variable.group, name);
      // Whether it can grow is no matter: what stands for it in the file says so.
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

  /// A list whose name and length are a dimension's of its group.
  void take_coordinate(std::size_t v) {
    const ModelVariable& variable = model_.variables[v];
    if (variable.dimensions.size() != 1 || variable.dimensions[0] != kAnonymous) return;
    for (std::size_t d = 0; d < model_.dimensions.size(); ++d) {
      const ModelDimension& dimension = model_.dimensions[d];
      if (dimension.group != variable.group || dimension.name != variable.name) continue;
      // A coordinate may grow or not, whatever its dimension does; its length counts.
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

  /// A new dimension's scale takes its name in the group, unless its coordinate variable has it.
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
                      " cannot have this name: \"" + path + "\" has it and is not its coordinate");
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
  NetcdfFile base_;            ///< What the file has: named dimensions only.
  NetcdfModel model_;          ///< What it is to have.
  std::vector<bool> changed_;  ///< Per variable.
  Lines lines_;
};

}  // namespace

Result<Lines> name_dimensions(Hdf5File& file, std::span<const DimensionNames> given) {
  const Hdf5Scope scope;
  const hid_t id = file.hdf5_id();
  Result<NetcdfFile> read = read_netcdf_file(id);
  if (!read.ok()) return read.status();
  const Hdf5Id root(H5Gopen2(id, "/", H5P_DEFAULT));
  TAILRACE_TRY(write_netcdf_properties(root.get()));
  return Naming(id, std::move(*read)).run(given);
}

}  // namespace tailrace
