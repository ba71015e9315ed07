// Properties that objects and files have besides types, values and attributes.
//
// repack copies comments and names what it does not keep; verify compares all of them. Callers hold
// an Hdf5Scope.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Comment of an open object (H5Oset_comment); empty: it has none.
std::string object_comment(hid_t object);

/// How HDF5 organises a file: {property, value}, in the same order for every file. Free space,
/// addresses, nodes of B-trees, shared messages.
std::vector<std::pair<const char*, std::string>> file_properties(hid_t file);

/// HDF5's own limits between header and heap: more than the first go into a heap, fewer than the
/// second come back. All its versions have them.
inline constexpr unsigned default_compact_max = 8;
inline constexpr unsigned default_dense_min = 6;

/// True if `creation` has these numbers for attributes, so that no header states them.
bool has_usual_attribute_numbers(hid_t creation);
/// True if the chunks of a dataset are found by HDF5 1.8's index, a version 1 B-tree. @error
/// corrupt
Result<bool> has_old_chunk_index(hid_t dataset);
/// True if `creation` has HDF5's own numbers of attributes that lie in an object's header, or
/// Tailrace's.
bool has_default_attribute_form(hid_t creation);
/// True if a group of the input has numbers of links that lie in its header which are neither
/// HDF5's own nor those of its copy.
bool loses_link_form(hid_t creation, hid_t copy);

/// A dataspace of the same extents, a type of the same form. Those that HDF5 has read carry their
/// place in that file's table of shared messages into every file in which they are used.
Hdf5Id detached_space(hid_t space);
Hdf5Id detached_type(hid_t type);

/// Bytes of each address in an open file.
std::size_t address_bytes_of(hid_t file);

/// True if addresses have fewer bytes than HDF5's references in memory, of which HDF5 1.10 makes
/// others when it reads them.
bool has_short_addresses(hid_t file);

/// True if H5Ocopy can copy headers from one file into the other: it takes bytes over whose form
/// depends on the sizes of addresses, and on messages that the input's objects share.
bool headers_are_alike(hid_t input, hid_t output);

}  // namespace tailrace
