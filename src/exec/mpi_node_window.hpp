// Memory that the ranks of a node share, over MPI.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "core/comm.hpp"

namespace tailrace {

/// Make the windows of a communicator's nodes, `bytes_per_rank` from every rank. Collective.
/// @error unsupported  some node's MPI library cannot give it; the same answer on every rank.
Result<std::unique_ptr<NodeWindow>> make_mpi_node_window(MPI_Comm world, MPI_Comm node,
                                                         std::uint64_t bytes_per_rank);

}  // namespace tailrace
