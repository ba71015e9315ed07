// OutputFile: the file that a Writer writes, opened on every rank, with its shared end.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "core/status.hpp"
#include "core/storage.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

/// The suffix of a new file's name until its first commit.
inline constexpr const char* partial_suffix = ".partial";

struct OutputFile {
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Tail> tail;
  std::unique_ptr<Hdf5File> file;   ///< Rank 0 only; takes its space from `tail`.
  std::uint64_t committed_end = 0;  ///< First address after the last commit; counts at rank 0.
};

/// A text that is equal on two ranks exactly if they mean the same file and options.
std::string output_text(const std::string& path, const FileOptions& options);

/// Create a file under `path` + partial_suffix; an older file of the final name stays as it is.
/// Collective. @error already_exists, invalid_argument (a folder), io_error, no_space
Status create_output(Comm& comm, const std::string& path, const FileOptions& options,
                     OutputFile& output);

/// Open an existing HDF5 file to add to it. Collective. @error not_found, corrupt, io_error
Status open_output(Comm& comm, const std::string& path, const FileOptions& options,
                   OutputFile& output);

/// Give a new file, committed under `path` + partial_suffix, its name, and make that durable; an
/// older file's journal goes. Rank 0 only; any thread. @error io_error
Status move_in_place(const std::string& path, bool sync);

}  // namespace tailrace
