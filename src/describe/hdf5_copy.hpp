// Copies references, attributes and complete datasets from one HDF5 file to another.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/copied_notes.hpp"
#include "describe/file_properties.hpp"
#include "describe/hdf5_catalog.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_file.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- Hdf5References: turns object and region references of the input into references of the
// output.
//
// A reference is an address inside its file and means nothing in another file. Each reference is
// resolved to the path of its object in the input, then recreated for the object with that path in
// the output. References may occur anywhere in a value: in compounds, arrays and variable-length
// lists.

class Hdf5References {
 public:
  /// Call with HDF5 locked; both files must stay open. Cost: O(objects), once, at the first use.
  Hdf5References(hid_t input, const Hdf5Catalog& catalog, hid_t output)
      : input_(input), catalog_(catalog), output_(output) {}

  /// Path of an open object of the input; none if the object is not in the catalog.
  std::optional<std::string> path_of(hid_t input_object);
  /// Path of the target of an object reference of the input.
  std::optional<std::string> path_of_reference(const void* reference);

  /// True if values of this type contain references at any depth.
  static bool holds_references(hid_t type);
  /// Rewrite all references in `n_values` values of `type` that were read from the input.
  /// References that cannot be resolved become null. @returns the number of these; references that
  /// were null before do not count.
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

// --- Copies attributes and complete datasets from one HDF5 file to another with their exact types.
//
// H5Ocopy does most of the work, but it loses references, keeps external storage external, and
// fails at filters that it has to undo but cannot. This class reads and writes what H5Ocopy cannot
// copy.

class Hdf5Copier {
 public:
  /// Appends messages for the user to `lines`. Call all members with HDF5 locked.
  /// @param old_forms  property of the output, see Hdf5File::Settings.
  Hdf5Copier(hid_t input, hid_t output, Hdf5References& references, std::vector<std::string>& lines,
             bool old_forms = false)
      : input_(input),
        output_(output),
        references_(references),
        lines_(lines),
        old_forms_(old_forms),
        headers_alike_(headers_are_alike(input, output)),
        short_addresses_(has_short_addresses(input)) {}

  /// Copy the attributes of one object, in their order, to the object of the same path. Left out
  /// are: references between dimension scales, which are attached again; attributes that the
  /// output's object already has; Tailrace's own attributes, except those that remain true for the
  /// copy.
  /// @param notes  which of Tailrace's attributes remain true; null: none.
  void copy_attributes(const std::string& path, const CopiedNotes* notes);
  /// Copy the comment of one object to the object of the same path.
  void copy_comment(const std::string& path);
  /// Copy attributes from one open object to another, except those that hold references, whose
  /// targets may not exist yet. If input and output are one file, references stay as they are, and
  /// only the attributes of dimension scales are left out.
  /// @returns true if any attribute was left out.
  bool copy_plain_attributes(hid_t from, hid_t to, const std::string& path);

  /// The output's equivalent of an input's type: the copy of a named type with the same path, else
  /// the type itself.
  Hdf5Id type_for_output(hid_t type);

  /// Create a dataset of the same type, shape and storage, and copy its values. Values that hold
  /// references are left to copy_reference_values(), when all objects exist.
  /// @error corrupt, plugin_missing, io_error, out_of_memory  a value cannot be read; internal
  Status copy_dataset(const std::string& path);

  /// Create a virtual dataset with the same mappings. Relative names of source files are resolved
  /// from the folder of the virtual dataset's file; they are rewritten so that they reach the same
  /// files from the output's folder.
  /// @error corrupt, internal
  Status copy_virtual_dataset(const std::string& path);

  /// Copy the values of a dataset that holds references. @error as copy_dataset
  Status copy_reference_values(const std::string& path);

  /// Copy a named datatype.
  void copy_named_type(const std::string& path);

 private:
  bool within_file() const { return input_ == output_; }
  std::vector<std::string> attribute_names(hid_t object, const std::string& path);
  void copy_attribute(hid_t from, hid_t to, const std::string& path, const std::string& name);
  bool copy_object(const std::string& path);
  bool create_like(hid_t from, const std::string& path);
  Status copy_values(hid_t from, hid_t to, const std::string& path);
  void adapt(hid_t creation, const std::string& path);
  void report(const std::string& what);

  hid_t input_;
  hid_t output_;
  Hdf5References& references_;
  std::vector<std::string>& lines_;
  bool old_forms_;
  bool headers_alike_;
  bool short_addresses_;
};

/// Folder against which an open file's relative file names are resolved.
std::filesystem::path folder_of_hdf5_file(hid_t file);

// --- Objects other than fields, carried over from an input HDF5 file into the output.
//
// Carrying over takes two passes, before and after the fields are created. The first pass copies
// what fields may lie in or refer to: groups, named types, foreign datasets. The last pass copies
// what refers to fields: attributes with references, dimension scales, second hard links, the order
// of links. A dataset whose values cannot be read is an error, as for a field. Anything else that
// cannot be carried over becomes a line for the user and never stops the rest. A storage failure is
// reported at the commit.

/// Pass before the fields exist: groups, other datasets, named types, links. Call with HDF5 locked.
/// @returns lines about what could not be carried over.  @error as Hdf5Copier::copy_dataset
Result<std::vector<std::string>> carry_over_hdf5_objects(hid_t input, const Hdf5Catalog& catalog,
                                                         Hdf5File& output);

/// Set the attributes that a copy has in place of its source's. @error as Hdf5File::set_attribute
Status set_instead(Hdf5File& output, const std::string& path, const CopiedNotes& notes);

/// Pass after the fields exist: attributes, dimension scales, further hard links, the order of
/// links. Call with HDF5 locked. @param copied  see InputFile::carry_over_attributes().
Result<std::vector<std::string>> carry_over_hdf5_attributes(hid_t input, const Hdf5Catalog& catalog,
                                                            Hdf5File& output,
                                                            const CopiedObjects& copied);

}  // namespace tailrace
