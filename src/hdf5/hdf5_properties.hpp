// Types, filters, property lists and attributes of the objects in a new file. Helpers of
// hdf5_file.cpp; callers hold an Hdf5Scope.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/stub_filters.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- Contents of a dataset's creation list: element types, fill values and the filter pipeline.
//
// Helpers of hdf5_file.cpp; callers hold an Hdf5Scope.

/// HDF5's native type for `dtype`; a constant of the library, which must not be closed.
hid_t hdf5_native_type(DType dtype);

/// Set the fill value of `creation_list`. @error invalid_argument  `dtype` cannot hold it exactly.
Status set_fill_value(hid_t creation_list, DType dtype, double fill_value);

/// Append `filters` to the pipeline of `creation_list`; filters without a plug-in get stubs.
/// @error internal  HDF5 refuses.
Status append_filters(hid_t creation_list, const std::vector<FilterSpec>& filters,
                      StubFilters& stubs);

/// Filters of a creation list as in the dataset's header: numbers, flags, names and final client
/// data. Empty: HDF5 cannot return them.
std::optional<std::vector<FilterSpec>> stored_filters(hid_t creation_list);

/// Check that the dataset's header names the client data with which the chunks are encoded.
/// @error unsupported  a plug-in's set_local chose client data that differ from the codec's.
Status check_stored_filters(hid_t dataset, std::span<const FilterSpec> filters);

// --- Property lists of a new file's objects: the properties set on each, and why.
//
// Helpers of hdf5_file.cpp; callers hold an Hdf5Scope. docs/format.md describes the effect of each
// setting on the file.

/// Largest number of expected links that a group stores in its header. More go into a heap and a
/// B-tree, which later commits can only change under the journal.
inline constexpr unsigned kCompactLinksMax = 512;
/// Largest number of attributes in an object header. HDF5's default is 8; beyond it, HDF5 spends 4
/// KiB and more on a heap and B-trees per dataset.
inline constexpr unsigned kCompactAttributesMax = 64;
/// Number of unexpected links that a header takes before all links move into a heap. Each has a
/// block of its own, and HDF5's time to move them grows with the cube of their number: 2 ms for 48,
/// a minute and a half for 512 (1.10.8).
inline constexpr unsigned kUnexpectedLinksMax = 32;

/// Properties common to all objects of a new file.
struct ObjectForms {
  bool track_order = true;  ///< Track the creation order of links and attributes.
  bool old = false;         ///< See Hdf5File::Settings::old_forms.
};

/// Make the creation list of a file whose root group will hold `expected_links` links; 0: few, or
/// unknown. `shares_chunks`: later writers also allocate new space only, since other chunks may
/// still use freed space.
Result<Hdf5Id> file_creation_list(ObjectForms forms, std::uint64_t expected_links,
                                  bool shares_chunks);

/// Copy a program's own file creation list without the properties that a safe commit does not
/// support: paged allocation, and free space recorded in the file.
Result<Hdf5Id> program_creation_list(hid_t program);

/// Make the creation list of any other group, which will soon hold `expected_links` links.
Result<Hdf5Id> group_creation_list(ObjectForms forms, std::uint64_t expected_links = 0);

/// Refuse definitions that HDF5 would refuse with a less helpful message.
/// @error invalid_argument, unsupported
Status check_definition(const DatasetDefinition& definition);

/// Element type of a new dataset in `file`: a named type there, or the definition's own.
/// @error internal  HDF5 refuses.
Result<Hdf5Id> dataset_type(hid_t file, const DatasetDefinition& definition);

/// True if an index of all chunks that a dataset could have would be much larger than an index of
/// its actual chunks. If a dimension grows, HDF5 allocates the index as chunks arrive.
/// @param n_chunks  number of chunks inserted at creation.
bool has_few_chunks(const DatasetDefinition& definition, std::uint64_t n_chunks);

/// True if HDF5 writes fill values into a dataset's space when it allocates the space.
bool fills_at_creation(hid_t creation_list);

/// Make the creation list of a checked dataset; stub filters that it needs are added to `stubs`.
Result<Hdf5Id> dataset_creation_list(const DatasetDefinition& definition, ObjectForms forms,
                                     StubFilters& stubs);

/// Set when space is allocated and filled, as far as the layout permits. Chunks are allocated when
/// written; contiguous data at a `planned` address, when the dataset is created.
/// @returns false if HDF5 failed.
bool set_creation_times(hid_t list, CreationTimes times, bool planned);

/// Make the creation list for storage `storage`; see Hdf5File::creation_list.
Result<Hdf5Id> stored_creation_list(const StoredForm& storage, hid_t type,
                                    std::span<const std::byte> fill_value, bool planned, bool bare,
                                    ObjectForms forms, StubFilters& stubs);

/// Change a program's creation list; see Hdf5File::adapt_creation_list.
Status adapt_program_list(hid_t list, const StoredForm& storage, StubFilters& stubs);

/// Make link creation properties with UTF-8 names, as netCDF-4 and h5py write them.
Hdf5Id utf8_link_properties();
/// Link creation properties for a name: UTF-8 if it is not ASCII, else HDF5's default.
Hdf5Id link_properties_of(const std::string& name);

// --- Attributes: writing strings and numbers. Helper of hdf5_file.cpp; callers hold an Hdf5Scope.

/// Create or replace the attribute `name` of an open object. Strings become fixed-length UTF-8
/// scalars; one number a scalar, several a 1-D array, none an empty (null) dataspace. `is_new`: the
/// object has no attribute of this name.
/// @error internal  HDF5 refuses, for instance more than 64 KiB in an object header of HDF5 1.6.
Status write_attribute(hid_t object, const std::string& name, const AttributeValue& value,
                       bool is_new = false);

}  // namespace tailrace
