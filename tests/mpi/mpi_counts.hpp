// Calls of MPI that the library has made: counted in api_collectives_test.cpp.

#pragma once

#include <cstdint>

namespace mpi_counts {

inline std::uint64_t n_collectives = 0;
inline std::uint64_t n_sends = 0;

}  // namespace mpi_counts
