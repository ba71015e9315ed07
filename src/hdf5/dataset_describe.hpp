// Describes an open HDF5 dataset as a StoredDataset. Only this code asks HDF5 for a dataset's type,
// extents and creation properties.
//
// An input file of a concatenation has thousands of datasets, most of them empty. The few HDF5
// calls per dataset are then the complete cost of opening the file. Types are few, so each type is
// encoded and formatted once. The caller finds the datasets and their chunks.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Describes the datasets of one file, or of several. Call with HDF5 locked; one thread at a time.
class DatasetDescriber {
 public:
  /// Treatment of datasets whose data lie in other files.
  enum class Foreign : std::uint8_t { refuse, describe };

  explicit DatasetDescriber(Foreign foreign = Foreign::refuse) : foreign_(foreign) {}

  /// Fill in every member of `described` except `path`, which the caller has set, and the members
  /// that only readers of fields use.
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

/// File name in a mapping of a virtual dataset; "." means the file itself.
std::string virtual_source(hid_t list, std::size_t mapping);
/// Path of the source dataset in that file; empty if HDF5 cannot return it.
std::string virtual_source_dataset(hid_t list, std::size_t mapping);

/// True if `is` holds for a type or for any type within it: members of compounds, elements of
/// arrays and of variable-length lists.
bool any_type_within(hid_t type, bool (*is)(hid_t));
/// True for variable-length lists and strings, whose values own memory elsewhere.
bool has_variable_length(hid_t type);

/// True if elements of this type contain all of their data: no variable length and no references.
/// `with_addresses` permits object references, which are addresses in the file.
bool hdf5_type_is_by_value(hid_t type, bool with_addresses = false);

/// A short text for a type: "f32", "u16 big-endian", "string of 16 bytes".
std::string hdf5_type_text(hid_t type);

/// The text of a string attribute (fixed or variable length, first element). Empty if the attribute
/// does not exist or is not a string. Call with HDF5 locked.
std::string hdf5_text_attribute(hid_t object, const char* name);

/// Name and first number of the first of these attributes that exists. Empty if none exists or if
/// that one is not a number. Call with HDF5 locked.
std::optional<NamedNumber> hdf5_number_attribute(hid_t object, std::span<const char* const> names);

}  // namespace tailrace
