// PrivateStorage: a file that one rank has for itself, in memory, perhaps over one that exists.
//
// Where a program makes the metadata itself, every rank makes all of it (docs/hdf5.md): rank 0's
// goes to the file, the others' into this and nowhere else. Over a file that was opened it reads
// what that file held when it was opened: its length then is all of it that is looked at, and what
// is written here covers what lies there.

#pragma once

#include <memory>
#include <string>

#include "core/status.hpp"
#include "core/storage.hpp"

namespace tailrace {

/// An empty file. `path` is for messages.
std::unique_ptr<Storage> make_private_storage(const std::string& path);
/// Over the file at `path`. @error not_found, io_error
Result<std::unique_ptr<Storage>> open_private_storage(const std::string& path);

}  // namespace tailrace
