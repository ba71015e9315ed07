// StructureCheck: tests that a copy of an HDF5 file contains everything that the original contains.
//
// This is the part of verify that does not concern the values of fields: user block, objects,
// links, types, fill values, orders, attributes, and the values of all other datasets.
// file_inventory.hpp defines what counts as a difference. One instance per rank; nothing is
// collective.

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
  std::function<bool(const std::string& path)> wanted;   ///< True for paths to compare.
  std::function<bool(const std::string& path)> ignored;  ///< True for paths to exclude and to
                                                         ///< count.
  std::function<bool(const std::string& name)> ignored_attribute;
  std::unordered_set<std::string> fields;  ///< Paths of fields, whose values the caller compares.
  std::unordered_set<std::string> lossy;   ///< Paths of those fields that may have losses.
  bool follow_external = false;            ///< Read values that lie in other files.
};

class StructureCheck {
 public:
  /// Open both files and list their objects. Takes the HDF5 lock, as all calls do. Cost:
  /// O(objects).
  /// @error not_found, corrupt, unsupported  names the file.
  static Result<std::unique_ptr<StructureCheck>> open(const std::string& original,
                                                      const std::string& copy,
                                                      StructureRules rules);
  virtual ~StructureCheck() = default;

  /// Compare everything except values of datasets. @returns paths of the datasets that remain for
  /// compare_values(). Cost: O(objects + attributes). @error corrupt, io_error
  virtual Result<std::vector<std::string>> compare(StructureFindings& findings) = 0;
  /// Compare the values of one of these datasets, in pieces: about 16 MiB of each file are in
  /// memory.
  virtual void compare_values(const std::string& path, StructureFindings& findings) = 0;
};

/// Serialize findings for other ranks, and back.
std::vector<std::byte> pack_findings(const StructureFindings& findings);
StructureFindings unpack_findings(std::span<const std::byte> bytes);

}  // namespace tailrace
