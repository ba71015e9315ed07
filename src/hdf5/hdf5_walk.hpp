// The one walk over the objects of an HDF5 file: who visits, sees each object once.
//
// Depth first, parents before their members. An object with several hard links is visited at the
// first and named at the others, so cycles end, whatever the file says of the number of its links;
// soft, external and user-defined links are shown and not followed. Objects are opened by where
// they lie, not by a path from the root.
//
// Files come from anywhere, and a link of a few bytes adds a path of any length: paths have limits,
// alone and together, that no file of use comes near.
//
// Callers hold an Hdf5Scope. Cost: O(links); memory: the paths of all objects.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hdf5/hdf5_compat.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class Hdf5Visitor {
 public:
  virtual ~Hdf5Visitor() = default;
  /// An object that is met for the first time, open. The root's path is "/".
  virtual Status group(hid_t group, const std::string& path);
  virtual Status dataset(hid_t dataset, const std::string& path) = 0;
  /// A named datatype, or what a newer HDF5 has besides.
  virtual Status other_object(hid_t object, const std::string& path);
  /// A further hard link to the object that was visited as `first_path`.
  virtual Status again(const std::string& path, const std::string& first_path);
  /// A link that is not a hard one. `info` tells its kind and the size of its value.
  virtual Status other_link(const std::string& path, const LinkInfo& info);
  /// An object that HDF5 cannot open, or a group whose members it cannot list. The walk goes on
  /// where this returns OK; by default it returns `why`.
  virtual Status unreadable(const std::string& path, const Status& why);
};

/// Bytes of one path (HDF5 takes a step for each of its groups whenever an object is opened by it),
/// and of all paths together unless they are short: this many on average.
inline constexpr std::size_t path_bytes_max = 4096;
inline constexpr std::size_t all_paths_bytes_max = std::size_t{256} << 20;
inline constexpr std::size_t mean_path_bytes_max = 256;

enum class WalkOrder : std::uint8_t {
  file,  ///< Members of a group in creation order where it tracks that (as netCDF-4 does).
  names  ///< By name everywhere.
};

/// Show all of an open file to `visitor`; ends at the first failure.
/// @error corrupt  an object that HDF5 cannot open or list, named; and what the visitor returns.
/// @error unsupported  paths beyond the limits above.
Status walk_hdf5(hid_t file, Hdf5Visitor& visitor, WalkOrder order = WalkOrder::file);

/// The value of a soft link, or of an external one, as it is stored. @error corrupt
Result<std::string> read_link_value(hid_t file, const std::string& path, const LinkInfo& info);

}  // namespace tailrace
