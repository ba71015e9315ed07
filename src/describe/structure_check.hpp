// StructureCheck: does a copy of an HDF5 file hold everything that the original holds?
//
// The part of verify that is not about the values of fields: user block, objects, links, types,
// fill values, orders, attributes, and the values of all other datasets. What counts as a
// difference: file_inventory.hpp. One object per rank; nothing is collective.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "describe/file_inventory.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

struct StructureRules {
  std::function<bool(const std::string& path)> wanted;   ///< Part of the comparison.
  std::function<bool(const std::string& path)> ignored;  ///< Left out, and counted.
  std::function<bool(const std::string& name)> ignored_attribute;
  std::unordered_set<std::string> fields;  ///< Values that the caller compares; by path.
  std::unordered_set<std::string> lossy;   ///< Those of them that may lose something.
  bool follow_external = false;            ///< Read values that lie in other files.
};

class StructureCheck {
 public:
  /// Open and walk both files. Takes the HDF5 lock, as all calls do. Cost: O(objects).
  /// @error not_found, corrupt, unsupported  names the file.
  static Result<std::unique_ptr<StructureCheck>> open(const std::string& original,
                                                      const std::string& copy,
                                                      StructureRules rules);
  virtual ~StructureCheck() = default;

  /// Compare everything but values of datasets. @returns paths of the datasets whose values are
  /// left to compare_values(). Cost: O(objects + attributes). @error corrupt, io_error
  virtual Result<std::vector<std::string>> compare(StructureFindings& findings) = 0;
  /// Compare the values of one of these, piece by piece: about 16 MiB of each file are in memory.
  virtual void compare_values(const std::string& path, StructureFindings& findings) = 0;
};

/// To be sent to other ranks, and back.
std::vector<std::byte> pack_findings(const StructureFindings& findings);
StructureFindings unpack_findings(std::span<const std::byte> bytes);

}  // namespace tailrace
