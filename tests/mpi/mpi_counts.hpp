// Numbers of MPI calls that the library has made; api_collectives_test.cpp counts them.

#pragma once

#include <cstdint>

namespace mpi_counts {

inline std::uint64_t n_collectives = 0;
inline std::uint64_t n_sends = 0;

}  // namespace mpi_counts
