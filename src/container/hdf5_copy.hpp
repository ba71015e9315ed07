// Copies attributes and whole datasets from one HDF5 file to another with their exact types.
//
// H5Ocopy does most of it, but loses references, keeps storage outside the file outside, and stops
// at filters that it cannot undo where it must; what it cannot copy is read and written here.

#pragma once

#include <string>
#include <vector>

#include "container/hdf5_handle.hpp"
#include "container/hdf5_references.hpp"
#include "core/status.hpp"

namespace tailrace {

class Hdf5Copier {
 public:
  /// Lines for the user go to `lines`. Call all members with HDF5 locked.
  Hdf5Copier(hid_t input, hid_t output, Hdf5References& references, std::vector<std::string>& lines)
      : input_(input), output_(output), references_(references), lines_(lines) {}

  /// Copy the attributes of one object, in their order, to the object of the same path. Left out:
  /// what describes dimension scales by address (they are attached anew), what Tailrace says of its
  /// own writing, and what the output's object has already.
  void copy_attributes(const std::string& path);
  /// The same from one open object to another, without attributes that hold references: what these
  /// lead to may not exist yet. Where input and output are one file, references stay as they are
  /// and only what belongs to dimension scales is left out. @returns whether any attribute was.
  bool copy_plain_attributes(hid_t from, hid_t to, const std::string& path);

  /// The output's form of an input's type: a named type's copy of the same path, else itself.
  Hdf5Id type_for_output(hid_t type);

  /// Create a dataset of the same type, shape and storage, and copy its values unless they hold
  /// references: those are for copy_reference_values, when all objects exist.
  void copy_dataset(const std::string& path);

  /// The values of a dataset that holds references.
  void copy_reference_values(const std::string& path);

  /// Copy a named datatype.
  void copy_named_type(const std::string& path);

 private:
  bool within_file() const { return input_ == output_; }
  std::vector<std::string> attribute_names(hid_t object, const std::string& path);
  void copy_attribute(hid_t from, hid_t to, const std::string& path, const std::string& name);
  bool copy_object(const std::string& path);
  bool create_like(hid_t from, const std::string& path);
  bool copy_values(hid_t from, hid_t to, const std::string& path);
  void report(const std::string& what);

  hid_t input_;
  hid_t output_;
  Hdf5References& references_;
  std::vector<std::string>& lines_;
};

/// Link creation properties: names in UTF-8, as netCDF-4 and h5py write them.
Hdf5Id utf8_link_properties();

}  // namespace tailrace
