// References, attributes and whole datasets from one HDF5 file to another.

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
// A reference is an address inside its own file and means nothing in another one. Each is resolved
// to the path of its object in the input, and made anew for the object of that path in the output.
// References may lie anywhere in a value: in compounds, arrays and variable-length lists.

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

// --- Copies attributes and whole datasets from one HDF5 file to another with their exact types.
//
// H5Ocopy does most of it, but loses references, keeps storage outside the file outside, and stops
// at filters that it cannot undo where it must; what it cannot copy is read and written here.

class Hdf5Copier {
 public:
  /// Lines for the user go to `lines`. Call all members with HDF5 locked.
  /// @param old_forms  of the output, as Hdf5File::Settings has it.
  Hdf5Copier(hid_t input, hid_t output, Hdf5References& references, std::vector<std::string>& lines,
             bool old_forms = false)
      : input_(input),
        output_(output),
        references_(references),
        lines_(lines),
        old_forms_(old_forms),
        headers_alike_(headers_are_alike(input, output)),
        short_addresses_(has_short_addresses(input)) {}

  /// Copy the attributes of one object, in their order, to the object of the same path. Left out:
  /// what describes dimension scales by address (they are attached anew), what Tailrace has said of
  /// its own writing but for what holds on in the copy (null: nothing), and what the output's
  /// object has already.
  void copy_attributes(const std::string& path, const CopiedNotes* notes);
  /// Copy the comment of one object to the object of the same path.
  void copy_comment(const std::string& path);
  /// copy_attributes() from one open object to another, without attributes that hold references:
  /// what these lead to may not exist yet. Where input and output are one file, references stay as
  /// they are and only what belongs to dimension scales is left out. @returns whether any attribute
  /// was.
  bool copy_plain_attributes(hid_t from, hid_t to, const std::string& path);

  /// The output's form of an input's type: a named type's copy of the same path, else itself.
  Hdf5Id type_for_output(hid_t type);

  /// Create a dataset of the same type, shape and storage, and copy its values unless they hold
  /// references: those are for copy_reference_values, when all objects exist.
  /// @error corrupt, plugin_missing, io_error, out_of_memory  a value cannot be read; internal
  Status copy_dataset(const std::string& path);

  /// Create a virtual dataset with the same mappings: relative names of source files, which count
  /// from the folder of the file that has them, lead from the output's folder to the same files.
  /// @error corrupt, internal
  Status copy_virtual_dataset(const std::string& path);

  /// The values of a dataset that holds references. @error as copy_dataset
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

/// The folder from which relative names of other files in an open file count.
std::filesystem::path folder_of_hdf5_file(hid_t file);

// --- What is no field, carried from an input HDF5 file into the output.
//
// In two passes around the creation of the fields: what fields may lie in or refer to comes first
// (groups, named types, foreign datasets); what refers to fields comes last (attributes with
// references, dimension scales, second hard links, the order of links). A dataset whose values
// cannot be read is an error, as a field is. What else cannot be carried over becomes a line for
// the user and never stops the rest; failing storage shows at the commit.

/// Before the fields exist: groups, other datasets, named types, links. Call with HDF5 locked.
/// @returns lines about what could not be carried over.  @error as Hdf5Copier::copy_dataset
Result<std::vector<std::string>> carry_over_hdf5_objects(hid_t input, const Hdf5Catalog& catalog,
                                                         Hdf5File& output);

/// Set what a copy says in the place of its source's attributes. @error as Hdf5File::set_attribute
Status set_instead(Hdf5File& output, const std::string& path, const CopiedNotes& notes);

/// After the fields exist: attributes, dimension scales, further hard links, the order of links.
/// Call with HDF5 locked. @param copied  as InputFile::carry_over_attributes().
Result<std::vector<std::string>> carry_over_hdf5_attributes(hid_t input, const Hdf5Catalog& catalog,
                                                            Hdf5File& output,
                                                            const CopiedObjects& copied);

}  // namespace tailrace
