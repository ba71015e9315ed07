// Slabs: checks against overflow, parts within boxes, and copies compared with plain loops.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "container_support.hpp"
#include "core/slab.hpp"

namespace tailrace {
namespace {

TEST(Slab, SaysWhatItIs) {
  const Slab slab{{0, 32}, {64, 16}, {1, 2}};
  EXPECT_EQ(slab_text(slab), "[0:64, 32:63:2]");
  EXPECT_EQ(slab_text(Slab{}), "[]");
  EXPECT_FALSE(slab.dense());
  EXPECT_TRUE((Slab{{3}, {1}, {7}}.dense()));
  EXPECT_EQ(slab.bounding_box(), (Box{{0, 32}, {64, 31}}));
  EXPECT_EQ((Slab{{5}, {0}, {3}}.bounding_box().count), Shape{0});
  EXPECT_EQ(Slab{}.n_elements(), 1U);
}

TEST(Slab, KnowsWhereItsElementsFollowOneAnother) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t rank = random() % 4;
    Shape shape;
    Slab slab;
    for (std::size_t d = 0; d < rank; ++d) {
      shape.push_back(1 + random() % 4);
      const std::uint64_t stride = 1 + random() % 2;
      slab.start.push_back(random() % 2 == 0 ? 0 : random() % shape[d]);
      slab.count.push_back(random() % ((shape[d] - 1 - slab.start[d]) / stride + 2));
      slab.stride.push_back(stride);
    }
    std::vector<std::uint64_t> numbers(n_elements(shape));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
    std::vector<std::uint64_t> taken(slab.n_elements());
    const Box all{Shape(rank, 0), shape};
    gather_part(part_within(slab, all), all, reinterpret_cast<const std::byte*>(numbers.data()),
                slab, reinterpret_cast<std::byte*>(taken.data()), sizeof(std::uint64_t));
    bool runs = !taken.empty();
    for (std::size_t i = 1; i < taken.size(); ++i) runs = runs && taken[i] == taken[i - 1] + 1;
    const std::optional<std::uint64_t> first = slab.first_of_run(shape);
    ASSERT_EQ(first.has_value(), runs) << slab_text(slab);
    if (!runs) continue;
    EXPECT_EQ(*first, taken[0]) << slab_text(slab);
  }
}

TEST(Slab, IsCheckedWithoutOverflow) {
  const auto code = [](const Slab& slab, const Shape& shape) {
    return check_slab(slab, shape).code();
  };
  EXPECT_EQ(code({{0}, {10}, {}}, {10}), Code::ok);
  EXPECT_EQ(code({{1}, {10}, {}}, {10}), Code::bad_coverage);
  EXPECT_EQ(code({{1}, {5}, {2}}, {10}), Code::ok);
  EXPECT_EQ(code({{2}, {5}, {2}}, {10}), Code::bad_coverage);
  EXPECT_EQ(code({{10}, {0}, {}}, {10}), Code::ok);
  EXPECT_EQ(code({{11}, {0}, {}}, {10}), Code::bad_coverage);
  EXPECT_EQ(code({{0}, {2}, {UINT64_MAX}}, {10}), Code::bad_coverage);
  EXPECT_EQ(code({{0}, {UINT64_MAX}, {UINT64_MAX}}, {10}), Code::bad_coverage);
  EXPECT_EQ(code({{UINT64_MAX}, {1}, {}}, {10}), Code::bad_coverage);
  EXPECT_EQ(code({{9}, {1}, {UINT64_MAX}}, {10}), Code::ok);
  EXPECT_EQ(code({{0}, {1}, {0}}, {10}), Code::invalid_argument);
  EXPECT_EQ(code({{0, 0}, {1, 1}, {}}, {10}), Code::invalid_argument);
  EXPECT_EQ(code({{0}, {1}, {1, 1}}, {10}), Code::invalid_argument);
  EXPECT_EQ(code({}, {}), Code::ok);
  EXPECT_EQ(code({{0}, {0}, {}}, {0}), Code::ok);
}

TEST(Slab, PartsOfAllChunksMakeTheWhole) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::size_t rank = random() % 5;
    ChunkGrid grid;
    Slab slab;
    for (std::size_t d = 0; d < rank; ++d) {
      grid.shape.push_back(1 + random() % 9);
      grid.chunk_shape.push_back(1 + random() % 5);
      const std::uint64_t stride = 1 + random() % 4;
      slab.start.push_back(random() % grid.shape[d]);
      slab.count.push_back(random() % ((grid.shape[d] - 1 - slab.start[d]) / stride + 2));
      slab.stride.push_back(stride);
    }
    ASSERT_DONE(check_slab(slab, grid.shape));
    // Elements of 3 bytes take the general path, of 4 the fast one.
    for (const std::size_t element_bytes : {std::size_t{3}, std::size_t{4}}) {
      const std::size_t n_bytes = n_elements(grid.shape) * element_bytes;
      std::vector<std::byte> whole(n_bytes);
      for (std::byte& byte : whole) byte = std::byte(random() % 256);
      std::vector<std::byte> gathered(slab.n_elements() * element_bytes);
      std::vector<std::byte> scattered(n_bytes);
      for (std::uint64_t chunk = 0; chunk < grid.n_chunks(); ++chunk) {
        const Box box = grid.full_box(chunk);
        std::vector<std::byte> values(box.n_elements() * element_bytes);
        const Box inside = grid.clipped_box(chunk);
        copy_box(inside, whole_box(grid.shape), whole.data(), box, values.data(), element_bytes);
        const SlabPart part = part_within(slab, box);
        gather_part(part, box, values.data(), slab, gathered.data(), element_bytes);
        std::vector<std::byte> back(values.size());
        scatter_part(part, slab, gathered.data(), box, back.data(), element_bytes);
        copy_box(inside, box, back.data(), whole_box(grid.shape), scattered.data(), element_bytes);
      }
      // Element by element.
      std::size_t position = 0;
      std::vector<std::byte> expected_back(n_bytes);
      for_each_position(Box{Shape(rank, 0), slab.count}, [&](const Shape& at) {
        std::size_t element = 0;
        for (std::size_t d = 0; d < rank; ++d) {
          element = element * grid.shape[d] + slab.start[d] + at[d] * slab.stride[d];
        }
        const std::byte* value = whole.data() + element * element_bytes;
        ASSERT_EQ(std::memcmp(gathered.data() + position, value, element_bytes), 0);
        std::memcpy(expected_back.data() + element * element_bytes, value, element_bytes);
        position += element_bytes;
      });
      EXPECT_EQ(scattered, expected_back);
    }
  }
}

}  // namespace
}  // namespace tailrace
