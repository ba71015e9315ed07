// Which Comm this process gets: MPI's world, somebody's communicator, or just itself.

#pragma once

#include <cstddef>
#include <memory>

#include "core/comm.hpp"
#include "core/storage.hpp"

namespace tailrace {

/// A single rank. Always available.
std::unique_ptr<Comm> make_self_comm();

/// A duplicate of the caller's MPI communicator. Collective over it. `mpi_comm` points to an
/// MPI_Comm of `handle_bytes` bytes (checked against this build's MPI); MPI must be initialised.
/// @error unsupported  built without MPI, or with another MPI.
Result<std::unique_ptr<Comm>> make_mpi_comm(const void* mpi_comm, std::size_t handle_bytes);

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

/// Open `path` for reading and writing as Storage. `create` makes a new empty file (replacing a
/// left-over of the same name). Not collective. @error io_error, not_found, no_space
Result<std::unique_ptr<Storage>> open_posix_storage(const std::string& path, bool create,
                                                    bool direct_io);

}  // namespace tailrace
