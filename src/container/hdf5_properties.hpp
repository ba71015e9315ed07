// Property lists of a new file's objects: what is set on each, and why.
//
// Helpers of hdf5_file.cpp; callers hold an Hdf5Scope. docs/format.md says what each setting does
// to the file.

#pragma once

#include <cstdint>
#include <span>

#include "container/hdf5_file.hpp"
#include "container/hdf5_handle.hpp"
#include "container/hdf5_pipeline.hpp"
#include "core/status.hpp"

namespace tailrace {

/// The creation list of a file whose root group is to hold `expected_steps` links, one by one; or
/// `expected_links` at once, which go into a heap if they are many.
Result<Hdf5Id> file_creation_list(bool track_order, std::uint64_t expected_steps,
                                  std::uint64_t expected_links);

/// The creation list of any other group.
Result<Hdf5Id> group_creation_list(bool track_order);

/// Refuse what HDF5 would refuse with less telling words.
/// @error invalid_argument, unsupported
Status check_definition(const DatasetDefinition& definition);

/// The creation list of a checked dataset; stub filters that it needs are added to `stubs`.
Result<Hdf5Id> dataset_creation_list(const DatasetDefinition& definition, bool track_order,
                                     StubFilters& stubs);

/// The creation list of a dataset that is stored as `storage` says; see Hdf5File::creation_list.
Result<Hdf5Id> stored_creation_list(const StoredForm& storage, hid_t type,
                                    std::span<const std::byte> fill_value, bool planned, bool bare,
                                    bool track_order, StubFilters& stubs);

}  // namespace tailrace
