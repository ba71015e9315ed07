// Walk over the objects of an HDF5 file: the visitor sees each object once.
//
// Depth first, parents before their members. An object with several hard links is visited at the
// first link and named at the others. So cycles end even if the file states a wrong link count.
// Soft, external and user-defined links are reported and not followed. Objects are opened by
// address, not by a path from the root.
//
// Files may come from untrusted sources, and a link of a few bytes can add a path of any length.
// Single paths and all paths together have limits, far above those of any useful file.
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
  /// Called for each group at its first link, open. The root's path is "/".
  virtual Status group(hid_t group, const std::string& path);
  virtual Status dataset(hid_t dataset, const std::string& path) = 0;
  /// Called for a named datatype, or for an object kind of a newer HDF5.
  virtual Status other_object(hid_t object, const std::string& path);
  /// Called for a further hard link to the object that was visited as `first_path`.
  virtual Status again(const std::string& path, const std::string& first_path);
  /// Called for a link that is not a hard link. `info` states its kind and the size of its value.
  virtual Status other_link(const std::string& path, const LinkInfo& info);
  /// Called for an object that HDF5 cannot open, or a group whose members it cannot list. If this
  /// returns OK, the walk continues; the default implementation returns `why`.
  virtual Status unreadable(const std::string& path, const Status& why);
};

/// Path limits: bytes of one path, and of all paths together unless their mean length is at most
/// kMeanPathBytesMax. HDF5 opens every group on a path when it opens an object by that path.
inline constexpr std::size_t kPathBytesMax = 4096;
inline constexpr std::size_t kAllPathsBytesMax = std::size_t{256} << 20;
inline constexpr std::size_t kMeanPathBytesMax = 256;

enum class WalkOrder : std::uint8_t {
  file,  ///< Members of a group in creation order if the group tracks it (as netCDF-4 does).
  names  ///< Members ordered by name everywhere.
};

/// Report all objects of an open file to `visitor`; stops at the first failure.
/// @error corrupt  an object that HDF5 cannot open or list, named; any error of the visitor
/// @error unsupported  paths beyond the limits above.
Status walk_hdf5(hid_t file, Hdf5Visitor& visitor, WalkOrder order = WalkOrder::file);

/// Read the stored value of a soft or external link. @error corrupt
Result<std::string> read_link_value(hid_t file, const std::string& path, const LinkInfo& info);

}  // namespace tailrace
