// The file's shared end over MPI: node-local atomics, and one-sided operations between nodes.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "core/comm.hpp"

namespace tailrace {

/// Make the Tail of a communicator. Collective.
/// @error unsupported  the MPI library cannot give the windows it needs.
Result<std::unique_ptr<Tail>> make_mpi_tail(MPI_Comm world, MPI_Comm node, std::uint64_t address);

}  // namespace tailrace
