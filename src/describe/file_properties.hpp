// Properties of objects and files other than types, values and attributes.
//
// repack copies comments and reports the properties that it does not preserve; verify compares all
// of them. Callers hold an Hdf5Scope.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Comment of an open object (H5Oset_comment); empty: no comment.
std::string object_comment(hid_t object);

/// Read the properties of an HDF5 file's organization as {property, value}, in the same order for
/// every file: file space, address sizes, B-tree nodes, shared message tables.
std::vector<std::pair<const char*, std::string>> file_properties(hid_t file);

/// HDF5's default limits between header and heap, the same in all versions. More messages than the
/// first limit move to a heap; fewer than the second move back.
inline constexpr unsigned kDefaultCompactMax = 8;
inline constexpr unsigned kDefaultDenseMin = 6;

/// True if `creation` has these limits for attributes, so that object headers do not store them.
bool has_usual_attribute_numbers(hid_t creation);
/// True if a dataset's chunks are indexed as in HDF5 1.8, by a version 1 B-tree. @error corrupt
Result<bool> has_old_chunk_index(hid_t dataset);
/// True if `creation` limits the attributes in an object header to HDF5's default numbers or to
/// Tailrace's.
bool has_default_attribute_form(hid_t creation);
/// True if the limits for links in a group's header are lost: they are neither HDF5's defaults nor
/// Tailrace's, and the copy has others.
bool loses_link_form(hid_t creation, hid_t copy);

/// Copy of a dataspace's extents, or of a type's form, that is independent of its file. A space or
/// type that HDF5 has read carries its index in that file's table of shared messages into every
/// file that uses it.
Hdf5Id detached_space(hid_t space);
Hdf5Id detached_type(hid_t type);

/// Bytes of an address in an open file.
std::size_t address_bytes_of(hid_t file);

/// True if addresses are shorter than HDF5's references in memory. HDF5 1.10 corrupts such
/// references when it reads them.
bool has_short_addresses(hid_t file);

/// True if H5Ocopy can copy headers from one file into the other. H5Ocopy copies bytes whose form
/// depends on the address size and on messages that the input's objects share.
bool headers_are_alike(hid_t input, hid_t output);

}  // namespace tailrace
