// Which Comm this process gets: MPI's world, somebody's communicator, or just itself.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "core/storage.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// A single rank. Always available.
std::unique_ptr<Comm> make_self_comm();

/// A duplicate of the caller's MPI communicator. Collective over it. `mpi_comm` points to an
/// MPI_Comm of `handle_bytes` bytes (checked against this build's MPI); MPI must be initialised.
/// @error unsupported  built without MPI, or with another MPI.
Result<std::unique_ptr<Comm>> make_mpi_comm(const void* mpi_comm, std::size_t handle_bytes);

/// Name and version of the MPI library, for instance "Open MPI v4.1.4"; "none (built without MPI)"
/// without one. Not collective. Callable before MPI_Init.
std::string mpi_library_version();

/// For programs (CLI, bench): initialise MPI when the process was started by mpiexec, and finalise
/// it at scope end. Without MPI, or outside mpiexec, world() is a single rank.
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

/// Open `path` for reading and writing as Storage. `create` makes a new empty file, never through a
/// link. Not collective. @error io_error, not_found, no_space, already_exists (with `create`)
Result<std::unique_ptr<Storage>> open_posix_storage(const std::string& path, bool create,
                                                    bool direct_io);

/// An open file as Storage, which closes it. `name` is for messages.
std::unique_ptr<Storage> storage_of_descriptor(int descriptor, const std::string& name);

// --- Making a file longer while others write to it.
//
// A commit states how long the file is, and in the background it runs beside writers of the next
// step. To look at the length and then set it by ftruncate would cut off what one of them has
// written behind that length in between.

/// Make the file at least `n_bytes` long. Never shrinks it and changes no byte that was written,
/// whoever writes meanwhile. Thread-safe. Allocates the last block alone; where the file system
/// cannot, append_zeros() does it. `path` is for messages. @error no_space, io_error
Status extend_file(int descriptor, std::uint64_t n_bytes, const std::string& path);

/// The same by writing zeros behind the end, wherever that is at the moment. On a network file
/// system that does not append atomically, other clients must not write meanwhile.
Status append_zeros(int descriptor, std::uint64_t n_bytes, const std::string& path);

}  // namespace tailrace
