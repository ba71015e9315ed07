// PutRecord: boxes gathered from memory with any strides.

#include "exec/field_plan.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace tailrace {
namespace {

TEST(PutRecord, AnyStridesGatherWhatTheyAddress) {
  std::mt19937 random(7);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  std::vector<std::int32_t> memory(20000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::int32_t>(i);
  int n_in_rows = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto rank = static_cast<std::size_t>(draw(1, 3));
    PutRecord put;
    Shape padded;
    std::vector<std::int64_t> strides(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      put.box.start.push_back(static_cast<std::uint64_t>(draw(0, 9)));
      put.box.count.push_back(static_cast<std::uint64_t>(draw(1, 5)));
      padded.push_back(put.box.count[d] + static_cast<std::uint64_t>(draw(0, 2)));
    }
    std::int64_t stride = 4;
    for (std::size_t d = rank; d-- > 0;) {
      strides[d] = draw(0, 3) == 0 ? 4 * draw(-9, 300) : stride;
      stride *= static_cast<std::int64_t>(padded[d]);
    }
    put.values = reinterpret_cast<const std::byte*>(memory.data() + 10000);
    put.set_strides(strides.data(), 4);
    n_in_rows += put.strides.empty() ? 1 : 0;
    Box part = put.box;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto cut = static_cast<std::uint64_t>(draw(0, static_cast<int>(part.count[d]) - 1));
      part.start[d] += cut;
      part.count[d] -= cut;
    }
    Buffer buffer;
    const Result<StridedValues> view = put.view(part, DType::i32, buffer);
    ASSERT_TRUE(view.ok());
    std::vector<std::int32_t> seen(part.n_elements());
    gather(*view, reinterpret_cast<std::byte*>(seen.data()));
    std::vector<std::int32_t> copied(part.n_elements());
    put.copy_to(part, part, reinterpret_cast<std::byte*>(copied.data()), 4);
    std::size_t i = 0;
    for_each_position(part, [&](const Shape& at) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        offset += static_cast<std::int64_t>(at[d] - put.box.start[d]) * strides[d];
      }
      const std::int32_t expected = memory[static_cast<std::size_t>(10000 + offset / 4)];
      ASSERT_EQ(copied[i], expected) << "round " << round;
      ASSERT_EQ(seen[i], expected) << "round " << round;
      ++i;
    });
  }
  EXPECT_GT(n_in_rows, 500);
  EXPECT_LT(n_in_rows, 2900);
}

TEST(PutRecord, AHaloIsPartOfALargerRowMajorArray) {
  PutRecord put;
  put.box = {{4, 4, 4}, {3, 5, 7}};
  const std::vector<std::int64_t> halo{8 * 7 * 9, 8 * 9, 8};
  put.set_strides(halo.data(), 8);
  EXPECT_EQ(put.held, (Shape{3, 7, 9}));
  EXPECT_TRUE(put.strides.empty());
  const std::vector<std::int64_t> dense{8 * 5 * 7, 8 * 7, 8};
  put.set_strides(dense.data(), 8);
  EXPECT_TRUE(put.dense());
  const std::vector<std::int64_t> backwards{-8 * 5 * 7, 8 * 7, 8};
  put.set_strides(backwards.data(), 8);
  EXPECT_EQ(put.strides, backwards);
}

}  // namespace
}  // namespace tailrace
