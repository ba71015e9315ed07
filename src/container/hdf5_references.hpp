// Hdf5References: turns object and region references of the input into references of the output.
//
// A reference is an address inside its own file and means nothing in another one. Each is resolved
// to the path of its object in the input, and made anew for the object of that path in the output.
// References may lie anywhere in a value: in compounds, arrays and variable-length lists.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "container/hdf5_catalog.hpp"
#include "container/hdf5_compat.hpp"

namespace tailrace {

class Hdf5References {
 public:
  /// Call with HDF5 locked; both files must stay open. Cost: O(objects), once, at the first use.
  Hdf5References(hid_t input, const Hdf5Catalog& catalog, hid_t output)
      : input_(input), catalog_(catalog), output_(output) {}

  /// The path of an open object of the input; none if it is not in the catalog.
  std::optional<std::string> path_of(hid_t input_object);
  /// The path of what an object reference of the input points to.
  std::optional<std::string> path_of_reference(const void* reference);

  /// Whether values of this type hold references somewhere.
  static bool holds_references(hid_t type);
  /// Rewrite all references in `n_values` values of `type` that were read from the input. Those
  /// that cannot be resolved become null. @returns how many these are (null ones do not count).
  std::uint64_t rewrite(hid_t type, void* values, std::uint64_t n_values);

 private:
  std::uint64_t rewrite_members(hid_t type, std::byte* value);
  std::uint64_t rewrite_one(hid_t type, void* reference);
  void learn_paths();

  hid_t input_;
  const Hdf5Catalog& catalog_;
  hid_t output_;
  bool learnt_ = false;
  std::unordered_map<ObjectKey, std::string> paths_;
};

}  // namespace tailrace
