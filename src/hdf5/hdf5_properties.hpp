// What the objects of a new file are created with: types, filters, property lists, attributes.
// Helpers of hdf5_file.cpp; callers hold an Hdf5Scope.

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

// --- What a dataset's creation list needs: element types, fill values and the filter pipeline.
//
// Helpers of hdf5_file.cpp; callers hold an Hdf5Scope.

/// HDF5's native type for `dtype`; a constant of the library, not to be closed.
hid_t hdf5_native_type(DType dtype);

/// Set the fill value of `creation_list`. @error invalid_argument  `dtype` cannot hold it exactly.
Status set_fill_value(hid_t creation_list, DType dtype, double fill_value);

/// Append `filters` to the pipeline of `creation_list`, stubs where HDF5 finds no plug-in.
/// @error internal  HDF5 refuses.
Status append_filters(hid_t creation_list, const std::vector<FilterSpec>& filters,
                      StubFilters& stubs);

/// The filters of a dataset's creation list as its header has them: numbers, flags, names and final
/// client data. Nothing: HDF5 cannot tell.
std::optional<std::vector<FilterSpec>> stored_filters(hid_t creation_list);

/// Check that the dataset's header names the client data with which the chunks are encoded.
/// @error unsupported  a plug-in's set_local decided otherwise than the codec was told.
Status check_stored_filters(hid_t dataset, std::span<const FilterSpec> filters);

// --- Property lists of a new file's objects: what is set on each, and why.
//
// Helpers of hdf5_file.cpp; callers hold an Hdf5Scope. docs/format.md says what each setting does
// to the file.

/// Up to this number the links that a group is made for lie in its header; more go into a heap and
/// a B-tree, which later commits can only change under the journal.
inline constexpr unsigned compact_links_max = 512;
/// Attributes up to this number stay in the object header; HDF5's own limit is 8, after which it
/// spends 4 KiB and more on a heap and B-trees per dataset.
inline constexpr unsigned compact_attributes_max = 64;
/// Links beyond these that a header takes before all go into a heap. Each has a block of its own,
/// and moving them takes HDF5 time that grows with the cube of their number: 2 ms for 48, a minute
/// and a half for 512 (1.10.8).
inline constexpr unsigned unexpected_links_max = 32;

/// What all objects of a new file have in common.
struct ObjectForms {
  bool track_order = true;  ///< Of links and attributes.
  bool old = false;         ///< As Hdf5File::Settings::old_forms.
};

/// The creation list of a file whose root group is to hold `expected_links` links; 0: few, or
/// unknown. `shares_chunks`: later writers, too, take new space and none that was freed, which
/// other chunks may still use.
Result<Hdf5Id> file_creation_list(ObjectForms forms, std::uint64_t expected_links,
                                  bool shares_chunks);

/// A program's own list, without what a commit of ours cannot keep safe: pages that are given out
/// as a whole, and free space that is written into the file.
Result<Hdf5Id> program_creation_list(hid_t program);

/// The creation list of any other group, which is to hold `expected_links` soon.
Result<Hdf5Id> group_creation_list(ObjectForms forms, std::uint64_t expected_links = 0);

/// Refuse what HDF5 would refuse with less telling words.
/// @error invalid_argument, unsupported
Status check_definition(const DatasetDefinition& definition);

/// Element type of a new dataset in `file`: a named type there, or the definition's own.
/// @error internal  HDF5 refuses.
Result<Hdf5Id> dataset_type(hid_t file, const DatasetDefinition& definition);

/// True if an index of all chunks that a dataset could have would take much more space than one of
/// those that it gets. Where a dimension grows, HDF5 takes the space as chunks come.
/// @param n_chunks  that it gets at once.
bool has_few_chunks(const DatasetDefinition& definition, std::uint64_t n_chunks);

/// True if HDF5 writes fill values into a dataset's space when it allocates that.
bool fills_at_creation(hid_t creation_list);

/// The creation list of a checked dataset; stub filters that it needs are added to `stubs`.
Result<Hdf5Id> dataset_creation_list(const DatasetDefinition& definition, ObjectForms forms,
                                     StubFilters& stubs);

/// Take over when space is allocated and filled, as far as the layout permits: chunks are allocated
/// as they are written, data in one piece at a `planned` address when the dataset is created.
/// @returns false if HDF5 failed.
bool set_creation_times(hid_t list, CreationTimes times, bool planned);

/// The creation list of a dataset that is stored as `storage` says; see Hdf5File::creation_list.
Result<Hdf5Id> stored_creation_list(const StoredForm& storage, hid_t type,
                                    std::span<const std::byte> fill_value, bool planned, bool bare,
                                    ObjectForms forms, StubFilters& stubs);

/// Change a program's creation list; see Hdf5File::adapt_creation_list.
Status adapt_program_list(hid_t list, const StoredForm& storage, StubFilters& stubs);

/// Link creation properties: names in UTF-8, as netCDF-4 and h5py write them.
Hdf5Id utf8_link_properties();
/// HDF5's default properties, and UTF-8 where the name is not the same in both character sets.
Hdf5Id link_properties_of(const std::string& name);

// --- Writing of plain attributes: texts and numbers. Helper of hdf5_file.cpp; callers hold an
// Hdf5Scope.

/// Create or replace the attribute `name` of an open object. Texts become fixed-length UTF-8
/// scalars; one number a scalar, several a 1-D array, none an empty (null) dataspace.
/// `is_new`: the object has no such attribute.
/// @error internal  HDF5 refuses, for instance more than 64 KiB in an object header of HDF5 1.6.
Status write_attribute(hid_t object, const std::string& name, const AttributeValue& value,
                       bool is_new = false);

}  // namespace tailrace
