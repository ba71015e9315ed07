// MPI operations that the engine needs, with their required results. MPI implementations differ in
// corner cases.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "comm_of_all.hpp"
#include "rank_support.hpp"

namespace {

using namespace api_test;
using namespace tailrace;

TEST(MpiComm, NumbersBeyondTheLargestWithASignAreTheLargest) {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 63;
  const std::unique_ptr<Comm> comm = api_test::comm_of_all();
  const auto me = static_cast<std::uint64_t>(rank());
  const std::uint64_t mine = rank() == n_ranks() - 1 ? kNone : me;
  std::array<std::uint64_t, 3> least = {mine, kBeyond + me, kNone};
  comm->allreduce(std::span<std::uint64_t>(least), Reduction::min);
  EXPECT_EQ(least[0], n_ranks() == 1 ? kNone : 0);
  EXPECT_EQ(least[1], kBeyond);
  EXPECT_EQ(least[2], kNone);
  std::array<std::uint64_t, 3> largest = {mine, kBeyond - 1 + (rank() == 0 ? 1 : 0), 0};
  comm->allreduce(std::span<std::uint64_t>(largest), Reduction::max);
  EXPECT_EQ(largest[0], kNone);
  EXPECT_EQ(largest[1], kBeyond);
  EXPECT_EQ(largest[2], 0U);
}

}  // namespace
