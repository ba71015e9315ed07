// Values, objects and attributes of two files, side by side, for `tailrace verify --concat`.
// Callers hold an Hdf5Scope.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "concat/check/concat_check.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- Comparison and text of elements of any HDF5 type.
//
// Used by `tailrace verify --concat`. Elements of plain types are compared as bytes, so that NaN
// equals the same NaN. Strings and sequences of variable length are compared by content, object
// references by the path that they lead to, since addresses differ between files. Callers hold an
// Hdf5Scope.

/// Unique names of a file's objects. An object with several hard links is named by the first path
/// in name order. HDF5 would walk the file for each reference, and find another path in each file.
class CheckedPaths {
 public:
  /// @param other  names of the file that this one is compared with. An object that one of its
  /// paths finds there gets its name there. Outlives this.
  explicit CheckedPaths(hid_t file, CheckedPaths* other = nullptr) : file_(file), other_(other) {}
  /// Name of the object that a reference leads to; empty if it leads nowhere. Cost: O(objects) at
  /// the first call.
  std::string of(const std::byte* reference);
  /// The first error while names were collected. All names are empty then, in both files: a
  /// comparison that has used them is invalid.
  const Status& failure() const { return failure_; }

 private:
  struct Names {
    std::vector<std::string> paths;  ///< Paths of all hard links, in walk order.
    std::string name;                ///< Set at the first request.
  };
  Status learn();
  std::string name_of(hid_t object);

  hid_t file_;
  CheckedPaths* other_;
  bool learnt_ = false;
  Status failure_;
  std::unordered_map<ObjectKey, Names> names_;
};

/// An open file, and the names of its objects.
struct CheckedFile {
  CheckedFile() = default;
  CheckedFile(hid_t file_id, CheckedPaths& file_paths) : id(file_id), paths(&file_paths) {}
  operator hid_t() const { return id; }
  hid_t id = H5I_INVALID_HID;
  CheckedPaths* paths = nullptr;
};

/// An element in memory and the file that its references point into.
struct CheckedValue {
  const std::byte* bytes = nullptr;
  CheckedFile file;
};

/// True if elements of `type` consist of their bytes: no variable length, no reference.
bool is_plain_type(hid_t type);

/// True if two elements of `type` (its memory type) have the same content. A reference of `a`, the
/// original, to an object that the other file lacks matches anything.
bool same_value(hid_t type, CheckedValue a, CheckedValue b);

/// Text of an element for a message: "3", "-1.5", "nan (7fc00000)", "\"text\"", "{1, 2}".
std::string checked_value_text(hid_t type, CheckedValue value);

// --- Objects and attributes of two files, side by side, for `tailrace verify --concat`.
//
// Callers hold an Hdf5Scope.

/// An object of a file, with the first of its paths.
struct CheckedObject {
  std::string path;  ///< "/" for the root.
  H5O_type_t type = H5O_TYPE_UNKNOWN;
};

/// List all objects that hard links lead to, each once. @error corrupt  names `file_name`.
Result<std::vector<CheckedObject>> list_checked_objects(hid_t file, const std::string& file_name);

/// Open for reading. @error not_found, corrupt
Result<Hdf5Id> open_checked_file(const std::string& path);

/// An open object and its file.
struct CheckedSide {
  hid_t object = H5I_INVALID_HID;
  CheckedFile file;
};

/// Compare the attributes of an object with those of the corresponding output object. Attributes
/// that netCDF-4 and dimension scales must rewrite (references between objects, lengths within
/// names) are compared by meaning.
/// @param who  "group "/g"", for the findings.
void compare_attributes(const CheckedSide& input, const CheckedSide& output, const std::string& who,
                        ConcatFindings& findings);

/// The bytes of all elements of an attribute or dataset, and their memory type. Frees what HDF5 has
/// allocated for them.
class CheckedElements {
 public:
  /// Take over `type` and read with `read(type, bytes)`, which returns a negative number on
  /// failure.
  template <class Read>
  CheckedElements(Hdf5Id type, Hdf5Id space, Read&& read)
      : type_(std::move(type)), space_(std::move(space)) {
    // A damaged file may state any number, and HDF5's arithmetic wraps too.
    const hssize_t n = H5Sget_select_npoints(space_.get());
    std::size_t n_bytes = 0;
    if (n < 0 ||
        __builtin_mul_overflow(static_cast<std::size_t>(n), H5Tget_size(type_.get()), &n_bytes) ||
        n_bytes > n_bytes_max) {
      return;
    }
    n_elements_ = static_cast<std::size_t>(n);
    bytes_.resize(n_bytes);
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
  static constexpr std::size_t n_bytes_max = std::size_t{1}
                                             << 32;  ///< HDF5's own, of an attribute.
  Hdf5Id type_;
  Hdf5Id space_;
  std::size_t n_elements_ = 0;
  std::vector<std::byte> bytes_;
  bool read_ = false;
};

}  // namespace tailrace
