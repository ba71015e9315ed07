// NetcdfScales: which dataset stands for each dimension, and what is attached to it.
//
// A dimension is a dimension scale in HDF5: the dataset of its coordinate variable where it has
// one, else a placeholder without values. Variables come and go between these two while a model
// is laid out (a coordinate variable is defined later than its dimension, or renamed away), so a
// dimension is *released* (nothing is attached to it, no dataset stands for it) before such a
// change, and *settled* before a commit.
//
// Invariants (netcdf_layout_test.cpp cites the numbers):
//  1. What is attached in the file is what attached_ says, but for datasets outside the model.
//  2. A released dimension has no dataset of its own, and no dataset is its scale.
//  3. After settle() every dimension but the anonymous ones has a scale, and every variable that
//     has a dataset and is no scale is attached to those of its dimensions.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_links.hpp"
#include "netcdf/netcdf_model.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- What NetcdfLayout needs to know of an opened file beside its model: how it is laid out.

/// A model and where its dimensions and ties lie in HDF5.
struct NetcdfFile {
  NetcdfModel model;
  std::vector<int> dimension_ids;        ///< As _Netcdf4Coordinates spells dimensions.
  std::vector<std::string> scale_paths;  ///< Per dimension; empty: anonymous.
  std::vector<bool> tied;                ///< Per variable: it has a DIMENSION_LIST.
};

/// Names by which groups are listed that have several hard links.
enum class GroupNames : std::uint8_t {
  all,   ///< Each name, with all members of the group.
  first  ///< The first name alone: for changes that concern each object once.
};

/// read_netcdf_model() with the layout. Call with HDF5 locked.
Result<NetcdfFile> read_netcdf_file(hid_t file, GroupNames names);

/// Datasets of variables that are open, by the variables' numbers; of many the latest.
/// Call with HDF5 locked.
class OpenDatasets {
 public:
  void add(std::size_t variable, Hdf5Id dataset);
  /// Open it, if it is not. The id stays this object's. @error internal
  Result<hid_t> find(hid_t file, std::size_t variable, const std::string& path);
  void clear() { open_.clear(); }

 private:
  std::map<std::size_t, Hdf5Id> open_;
};

/// Rank 0 only; call with HDF5 locked.
class NetcdfScales {
 public:
  explicit NetcdfScales(hid_t file) : file_(file) {}
  /// What an opened file has.
  NetcdfScales(hid_t file, const NetcdfFile& opened);

  /// Make room for the dimensions and variables that `model` has more than before.
  void grow(const NetcdfModel& model);
  /// Detach everything from a dimension's scale and end its being one; a placeholder is deleted.
  /// `model` and `paths` (of datasets) are those that the file has now.
  Status release(const NetcdfModel& model, std::size_t dimension);
  /// A variable has got its dataset: it is to be attached by settle().
  void add(std::size_t variable) { new_[variable] = true; }
  /// A variable of the opened file is to be attached anew, to other dimensions than before.
  void renew(std::size_t variable) {
    std::fill(attached_[variable].begin(), attached_[variable].end(), false);
    add(variable);
  }
  /// Invariant 3. `has_dataset` is per variable.
  Status settle(const NetcdfModel& model, const std::vector<bool>& has_dataset, OpenDatasets& open);

 private:
  struct Scale {
    int id = 0;
    std::string path;  ///< Empty: released.
    bool placeholder = false;
    std::uint64_t length = 0;  ///< Of the placeholder.
  };
  Status make_scale(const NetcdfModel& model, std::size_t dimension,
                    std::optional<std::size_t> coordinate_variable);
  Status grow_placeholder(const NetcdfModel& model, std::size_t dimension);
  Status attach(const NetcdfModel& model, std::size_t variable, hid_t dataset,
                ScaleAttacher& attacher);
  Status write_coordinates(const NetcdfModel& model, std::size_t variable, hid_t dataset);

  hid_t file_;
  std::vector<Scale> scales_;                ///< Per dimension.
  std::vector<std::vector<bool>> attached_;  ///< Per variable and dimension of it.
  std::vector<bool> new_;                    ///< Per variable: created here, not yet settled.
  bool ids_written_ = true;
  int next_id_ = 0;
};

}  // namespace tailrace
