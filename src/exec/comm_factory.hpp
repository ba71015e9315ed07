// Factories of Comm and Storage: MPI's world, a caller's communicator, or a single rank; POSIX
// files.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "core/storage.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Make a communicator of a single rank. Always available.
std::unique_ptr<Comm> make_self_comm();

/// Duplicate the caller's MPI communicator. Collective over it. `mpi_comm` points to an MPI_Comm of
/// `handle_bytes` bytes (checked against this build's MPI); MPI must be initialised. Duplicates are
/// kept for the next call. Cost of the first call for a communicator: two new communicators and a
/// broadcast; of later ones: nothing.
/// @param lasting  false: the caller frees the communicator at once. Then all communicators of the
/// same ranks share the kept duplicates until MPI_Finalize. Otherwise they are freed together with
/// the communicator.
/// @error unsupported  built without MPI, or with another MPI.
Result<std::unique_ptr<Comm>> make_mpi_comm(const void* mpi_comm, std::size_t handle_bytes,
                                            bool lasting = true);

/// Name and version of the MPI library, for example "Open MPI v4.1.4"; "none (built without MPI)"
/// in a build without MPI. Not collective. Callable before MPI_Init.
std::string mpi_library_version();

/// Number of ranks of MPI_COMM_WORLD; 1 without MPI, before MPI_Init and after MPI_Finalize. Not
/// collective.
int n_ranks_of_program();

/// Number of ranks that a launcher (Open MPI, MPICH) has started, from its environment variables;
/// 1 after MPI_Init, and without a launcher or MPI. Not collective.
int n_ranks_launched();

/// MPI for programs (CLI, bench). Initialises MPI if the process was started by mpiexec, and
/// finalises it at the end of the scope. Without MPI, or outside mpiexec, world() is a single rank.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  std::unique_ptr<Comm> world();

 private:
  bool initialised_ = false;
};

/// Open `path` for reading and writing as Storage. `create` makes a new empty file and never
/// follows a link. Not collective. @error io_error, not_found, no_space, already_exists (with
/// `create`)
Result<std::unique_ptr<Storage>> open_posix_storage(const std::string& path, bool create,
                                                    bool direct_io);

/// Wrap an open file as Storage, which closes it. `name` is for messages.
std::unique_ptr<Storage> storage_of_descriptor(int descriptor, const std::string& name);

// --- Extending a file while other threads or ranks write to it.
//
// A commit sets the length of the file. In the background it runs concurrently with writers of the
// next step. Reading the length and then setting it with ftruncate would cut off bytes that a
// writer appended in between.

/// Make the file at least `n_bytes` long. Never shrinks the file or changes a written byte, even
/// with concurrent writers. Thread-safe. Allocates only the last block; falls back to
/// append_zeros() where the file system cannot. `path` is for messages. @error no_space, io_error
Status extend_file(int descriptor, std::uint64_t n_bytes, const std::string& path);

/// Make the file at least `n_bytes` long by appending zeros at its current end. On a network file
/// system without atomic appends, other clients must not write meanwhile.
Status append_zeros(int descriptor, std::uint64_t n_bytes, const std::string& path);

}  // namespace tailrace
