// NetcdfScales: the dataset that represents each dimension, and the datasets attached to it.
//
// In HDF5 a dimension is a dimension scale: the dataset of its coordinate variable if it has one,
// or else a placeholder without values. A dimension can change between the two while a model is
// laid out: a coordinate variable is defined after its dimension, or renamed. So a dimension is
// *released* before such a change (nothing is attached to it, no dataset represents it), and
// *attached* before a commit.
//
// Invariants (netcdf_layout_test.cpp cites the numbers):
//  1. The attachments in the file equal attached_, except for datasets outside the model.
//  2. A released dimension has no dataset, and no dataset is its scale.
//  3. After attach_scales() every dimension except anonymous ones has a scale. Every variable that
//     has a dataset and is not a scale is attached to the scales of its dimensions.

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

// --- The layout of an opened file, which NetcdfLayout needs in addition to the model.

/// A model, and the location of its dimensions and attachments in HDF5.
struct NetcdfFile {
  NetcdfModel model;
  std::vector<int> dimension_ids;        ///< Numbers of the dimensions in _Netcdf4Coordinates.
  std::vector<std::string> scale_paths;  ///< Path per dimension; empty: anonymous.
  std::vector<bool> tied;                ///< Per variable: its dataset has a DIMENSION_LIST.
};

/// Treatment of groups with several hard links.
enum class GroupNames : std::uint8_t {
  all,   ///< List every name, with all members of the group.
  first  ///< List only the first name: for changes that apply once per object.
};

/// read_netcdf_model() including the layout. Call with HDF5 locked.
Result<NetcdfFile> read_netcdf_file(hid_t file, GroupNames names);

/// Cache of open datasets, by variable number; may close older ones. Call with HDF5 locked.
class OpenDatasets {
 public:
  void add(std::size_t variable, Hdf5Id dataset);
  /// Open the dataset unless it is open. This object owns the id. @error internal
  Result<hid_t> find(hid_t file, std::size_t variable, const std::string& path);
  void clear() { open_.clear(); }

 private:
  std::map<std::size_t, Hdf5Id> open_;
};

/// Creates, attaches and releases dimension scales. Rank 0 only; call with HDF5 locked.
class NetcdfScales {
 public:
  explicit NetcdfScales(hid_t file) : file_(file) {}
  /// Start from the scales of an opened file.
  NetcdfScales(hid_t file, const NetcdfFile& opened);

  /// Add entries for the new dimensions and variables of `model`.
  void grow(const NetcdfModel& model);
  /// Detach all datasets from a dimension's scale, and make it an ordinary dataset; a placeholder
  /// is deleted. `model` and its dataset paths describe the current file.
  Status release(const NetcdfModel& model, std::size_t dimension);
  /// Register a variable's new dataset, which attach_scales() will attach.
  void add(std::size_t variable) { new_[variable] = true; }
  /// Let attach_scales() attach a variable of the opened file again, to other dimensions.
  void renew(std::size_t variable) {
    std::fill(attached_[variable].begin(), attached_[variable].end(), false);
    add(variable);
  }
  /// Establish invariant 3. `has_dataset` is per variable.
  Status attach_scales(const NetcdfModel& model, const std::vector<bool>& has_dataset,
                       OpenDatasets& open);

 private:
  struct Scale {
    int id = 0;
    std::string path;  ///< Empty: released.
    bool placeholder = false;
    std::uint64_t length = 0;  ///< Length of the placeholder.
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
  std::vector<bool> new_;                    ///< Per variable: created here, not yet attached.
  bool ids_written_ = true;
  int next_id_ = 0;
};

}  // namespace tailrace
