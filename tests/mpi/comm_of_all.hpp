// The engine's communicator of all ranks, for tests that need nothing else.

#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "exec/comm_factory.hpp"
#include "rank_support.hpp"

namespace api_test {

inline std::unique_ptr<tailrace::Comm> comm_of_all() {
  const MPI_Comm everybody = MPI_COMM_WORLD;
  auto made = tailrace::make_mpi_comm(&everybody, sizeof everybody);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : nullptr;
}

}  // namespace api_test
