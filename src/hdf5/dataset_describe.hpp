// Describes an open HDF5 dataset as a StoredDataset: the only place that asks HDF5 for its type,
// extents and creation properties.
//
// A file of a concatenation has thousands of datasets, most of them empty, so that the few calls
// that each of them costs are all there is to the opening of a file. Types are few: each is encoded
// and put into words once. Leaves finding datasets and their chunks to whoever walks the file.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// For the datasets of one file, or of several. Call with HDF5 locked; one thread at a time.
class DatasetDescriber {
 public:
  /// What to do about datasets whose data lie in other files.
  enum class Foreign : std::uint8_t { refuse, describe };

  explicit DatasetDescriber(Foreign foreign = Foreign::refuse) : foreign_(foreign) {}

  /// Fill in everything of `described` but its path, which it has, and what only readers of fields
  /// ask for.
  /// @error corrupt  the header cannot be read, or its extents cannot be.
  /// @error unsupported  the data lie in other files (external, virtual).
  Status describe(hid_t dataset, StoredDataset& described);

 private:
  struct KnownType {
    Hdf5Id id;
    Bytes encoded;
    std::string text;
    bool by_value = true;
    bool strings = false;
    std::optional<DType> dtype;
    bool plain_number = false;
    bool swapped = false;
  };

  Result<const KnownType*> known(hid_t dataset);
  Status describe_shape(hid_t dataset, StoredDataset& described) const;

  Foreign foreign_;
  std::vector<KnownType> types_;
};

/// The file that a mapping of a virtual dataset names; "." is the file itself.
std::string virtual_source(hid_t list, std::size_t mapping);
/// The dataset in that file; empty: HDF5 cannot tell.
std::string virtual_source_dataset(hid_t list, std::size_t mapping);

/// True if `is` holds of a type, or of one that it is made of: members, elements of arrays and
/// lists.
bool any_type_within(hid_t type, bool (*is)(hid_t));
/// True of lists and of texts of variable length themselves: values own memory elsewhere.
bool has_variable_length(hid_t type);

/// Whether elements of this type hold all there is to them: no variable length, no references, but
/// for those to objects where they may be. Those are addresses in the file.
bool hdf5_type_is_by_value(hid_t type, bool with_addresses = false);

/// A type in a few words: "f32", "u16 big-endian", "string of 16 bytes".
std::string hdf5_type_text(hid_t type);

/// The text of a string attribute (fixed or variable length, first element); empty if there is no
/// such attribute or it is no text. Call with HDF5 locked.
std::string hdf5_text_attribute(hid_t object, const char* name);

/// The first number of the first of these attributes that is there, and its name; nothing: there is
/// none, or that one is no number. Call with HDF5 locked.
std::optional<NamedNumber> hdf5_number_attribute(hid_t object, std::span<const char* const> names);

}  // namespace tailrace
