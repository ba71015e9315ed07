// Objects and attributes of two files, side by side, for `tailrace verify --concat`.
//
// Callers hold an Hdf5Scope.

#pragma once

#include <string>
#include <vector>

#include "container/concat_check.hpp"
#include "container/hdf5_handle.hpp"
#include "core/status.hpp"

namespace tailrace {

/// An object of a file by the first of its paths.
struct CheckedObject {
  std::string path;  ///< "/" for the root.
  H5O_type_t type = H5O_TYPE_UNKNOWN;
};

/// All objects that hard links lead to, each once. @error corrupt  names `file_name`.
Result<std::vector<CheckedObject>> list_checked_objects(hid_t file, const std::string& file_name);

/// Open for reading. @error not_found, corrupt
Result<Hdf5Id> open_checked_file(const std::string& path);

/// An open object and its file.
struct CheckedSide {
  hid_t object = H5I_INVALID_HID;
  hid_t file = H5I_INVALID_HID;
};

/// Compare the attributes of an object of the first input with those of its like in the output.
/// What netCDF-4 and dimension scales must write anew (references between objects, lengths within
/// names) is compared by what it means. @param who  "group "/g"", for the findings.
void compare_attributes(const CheckedSide& input, const CheckedSide& output, const std::string& who,
                        ConcatFindings& findings);

/// The bytes of all elements of an attribute or dataset, and their type as in memory; gives back
/// what HDF5 has allocated for them.
class CheckedElements {
 public:
  /// Take over `type` and read with `read(type, bytes)`, which is negative where it fails.
  template <class Read>
  CheckedElements(Hdf5Id type, Hdf5Id space, Read&& read)
      : type_(std::move(type)), space_(std::move(space)) {
    const hssize_t n = H5Sget_select_npoints(space_.get());
    n_elements_ = n > 0 ? static_cast<std::size_t>(n) : 0;
    bytes_.resize(n_elements_ * H5Tget_size(type_.get()));
    read_ = n_elements_ == 0 || read(type_.get(), bytes_.data()) >= 0;
  }
  CheckedElements(const CheckedElements&) = delete;
  CheckedElements& operator=(const CheckedElements&) = delete;
  ~CheckedElements();

  bool read() const { return read_; }
  hid_t type() const { return type_.get(); }
  std::size_t n_elements() const { return n_elements_; }
  const std::byte* at(std::size_t index) const {
    return bytes_.data() + index * H5Tget_size(type_.get());
  }

 private:
  Hdf5Id type_;
  Hdf5Id space_;
  std::size_t n_elements_ = 0;
  std::vector<std::byte> bytes_;
  bool read_ = false;
};

}  // namespace tailrace
