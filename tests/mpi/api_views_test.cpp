// Memory selections of the public API: views of arrays with halos, in other orders, backwards.

#include <array>

#include "api_support.hpp"

namespace {

using namespace api_test;
using tailrace::View;
using tailrace::view;

/// A class like std::mdspan, which the compilers of the tests lack.
template <class T>
class SpanOfThree {
 public:
  using value_type = std::remove_cv_t<T>;
  SpanOfThree(T* data, Shape extents, std::array<std::size_t, 3> strides)
      : data_(data), extents_(std::move(extents)), strides_(strides) {}
  static constexpr std::size_t rank() { return 3; }
  std::size_t extent(std::size_t d) const { return extents_[d]; }
  std::size_t stride(std::size_t d) const { return strides_[d]; }
  T* data_handle() const { return data_; }

 private:
  T* data_;
  Shape extents_;
  std::array<std::size_t, 3> strides_;
};

const Shape kCuboid{13, 11, 17};

/// The memory of one box in some layout, and a view of the box.
struct Block {
  std::vector<double> memory;
  Shape extents;
  std::vector<std::int64_t> strides;
  std::int64_t first = 0;

  View<double> whole() const { return view(memory.data() + first, extents, strides); }
  /// Writes the values of a box of the field.
  void fill(const Box& box, std::uint64_t seed) {
    const std::vector<double> values = box_values<double>(kCuboid, box, seed, smooth_value<double>);
    std::size_t i = 0;
    for (std::uint64_t z = 0; z < box.count[0]; ++z) {
      for (std::uint64_t y = 0; y < box.count[1]; ++y) {
        for (std::uint64_t x = 0; x < box.count[2]; ++x) {
          const auto at = first + static_cast<std::int64_t>(z) * strides[0] +
                          static_cast<std::int64_t>(y) * strides[1] +
                          static_cast<std::int64_t>(x) * strides[2];
          memory[static_cast<std::size_t>(at)] = values[i++];
        }
      }
    }
  }
};

enum class MemoryOrder { halo, thin_halo, fortran, backwards, every_second };

Block block_of(const Box& box, MemoryOrder memory) {
  const auto n = [&](std::size_t d) { return static_cast<std::int64_t>(box.count[d]); };
  Block block;
  block.extents = box.count;
  std::int64_t size = 0;
  if (memory == MemoryOrder::halo) {
    block.strides = {(n(1) + 2) * (n(2) + 2), n(2) + 2, 1};
    block.first = block.strides[0] + block.strides[1] + 1;
    size = (n(0) + 2) * block.strides[0];
  } else if (memory == MemoryOrder::thin_halo) {  // rows of any pitch
    block.strides = {n(1) * (n(2) + 5) + 3, n(2) + 5, 1};
    size = (n(0) + 1) * block.strides[0];
  } else if (memory == MemoryOrder::fortran) {
    block.strides = {1, n(0), n(0) * n(1)};
    size = n(0) * n(1) * n(2);
  } else if (memory == MemoryOrder::backwards) {
    block.strides = {-n(1) * n(2), n(2), -1};
    block.first = n(0) * n(1) * n(2) - (n(1) - 1) * n(2) - 1;
    size = n(0) * n(1) * n(2);
  } else {
    block.strides = {2 * n(1) * n(2), 2 * n(2), 2};
    size = 2 * n(0) * n(1) * n(2);
  }
  block.memory.assign(static_cast<std::size_t>(size), 1e30);  // A wrong value breaks every bound.
  return block;
}

void check_values(const std::string& path, std::uint64_t n_steps, double bound) {
  if (!is_root()) return;
  const StockFile stock(path);
  std::vector<double> expected;
  for (std::uint64_t step = 0; step < n_steps; ++step) {
    const auto values = all_values<double>(kCuboid, step, smooth_value<double>);
    expected.insert(expected.end(), values.begin(), values.end());
  }
  const std::vector<double> found = stock.read<double>("/u");
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  EXPECT_LE(worst, bound);
}

TEST(ApiViews, EveryLayoutInEveryMode) {
  for (const MemoryOrder memory : {MemoryOrder::halo, MemoryOrder::thin_halo, MemoryOrder::fortran,
                                   MemoryOrder::backwards, MemoryOrder::every_second}) {
    for (const char* options :
         {"codec=none", "codec=deflate,chunk=1x5x6x7",
          "codec=portable,bound=rel=1e-3,chunk=1x13x4x17", "mode=async",
          "mode=in_situ,hold=promise", "chunk=2x13x11x17", "layout=predictive"}) {
      SCOPED_TRACE(std::string(options) + ", memory " + std::to_string(static_cast<int>(memory)));
      const std::string path = scratch();
      std::string of_file = options;
      std::string of_field = "over-time=on";
      if (const auto chunk = of_file.find("chunk="); chunk != std::string::npos) {
        of_field += "," + of_file.substr(chunk);
        of_file.erase(chunk > 0 ? chunk - 1 : 0);
      }
      auto file = create(path, "replace=on" + (of_file.empty() ? "" : "," + of_file));
      auto u = file.define<double>("/u", kCuboid, of_field);
      std::vector<std::vector<Block>> blocks(3);  // one list a step: hold=promise
      for (std::uint64_t step = 0; step < blocks.size(); ++step) {
        for (const Box& box : mine(cut(kCuboid, 2 * n_ranks()))) {
          Block& block = blocks[step].emplace_back(block_of(box, memory));
          block.fill(box, step);
          if (blocks[step].size() % 2 == 0) {
            u.put_copy(box, block.whole());
            std::fill(block.memory.begin(), block.memory.end(), 1e30);
          } else {
            u.put(box, block.whole());
          }
        }
        file.end_step();
      }
      file.close();
      check_values(path, blocks.size(), of_file.find("bound") == std::string::npos ? 0 : 0.1);
    }
  }
}

TEST(ApiViews, InteriorPartsAndSpans) {
  const std::string path = scratch();
  auto file = create(path);
  const Box box = mine(cut(kCuboid, n_ranks())).front();
  const Shape padded{box.count[0] + 4, box.count[1] + 2, box.count[2]};
  std::vector<double> memory(Box({0, 0, 0}, padded).n_elements(), 1e30);
  Block block = {memory, box.count, {}, 0};
  block.strides = {static_cast<std::int64_t>(padded[1] * padded[2]),
                   static_cast<std::int64_t>(padded[2]), 1};
  block.first = 2 * block.strides[0] + block.strides[1];
  block.fill(box, 0);
  auto u = file.define<double>("/u", kCuboid);
  auto v = file.define<double>("/v", kCuboid);
  auto w = file.define<double>("/w", kCuboid);
  u.put(box, view(block.memory, padded).interior({2, 1, 0}));
  v.put(box, view(std::span(block.memory), padded).sub({2, 1, 0}, box.count));
  const SpanOfThree<const double> span(block.memory.data() + block.first, box.count,
                                       {padded[1] * padded[2], padded[2], 1});
  w.put(box, span);
  file.close();
  check_values(path, 1, 0);
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(differences(stock.read<double>("/v"), stock.read<double>("/u")), "");
  EXPECT_EQ(differences(stock.read<double>("/w"), stock.read<double>("/u")), "");
}

/// A put with strides packs nothing: end_step reads what the memory then holds.
TEST(ApiViews, ValuesAreReadWhenTheStepEnds) {
  for (const MemoryOrder memory : {MemoryOrder::halo, MemoryOrder::fortran}) {
    const std::string path = scratch();
    auto file = create(path, "replace=on");
    auto u = file.define<double>("/u", kCuboid);
    const Box box = mine(cut(kCuboid, n_ranks())).front();
    Block block = block_of(box, memory);
    u.put(box, block.whole());
    block.fill(box, 0);
    file.end_step();
    file.close();
    check_values(path, 1, 0);
  }
}

TEST(ApiViews, MistakesAreNamedOnEveryRank) {
  auto file = create(scratch());
  const std::vector<double> memory(400, 1.0);
  const auto expect = [&](const char* why, auto&& put) {
    auto u = file.define<double>("/u", {10, 10});
    if (rank() == n_ranks() - 1) put(u);
    expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                      {"field \"/u\"", why});
  };
  const Box whole({0, 0}, {10, 10});
  expect("the view has 18x18 values, the box 10x10", [&](auto& u) {
    u.put(whole, view(memory, {20, 20}).interior(1));
  });
  expect("its extents need 420 values, 400 were given", [&](auto& u) {
    u.put(whole, view(memory, {20, 21}).interior({5, 5}));
  });
  expect("a part of 10 values from 11 along dimension 1, which has 20", [&](auto& u) {
    u.put(whole, view(memory, {20, 20}).sub({0, 11}, {10, 10}));
  });
  expect("a part of 0 values from 11 along dimension 0", [&](auto& u) {
    u.put(whole, view(memory.data(), {10, 20}).interior(11));
  });
  expect("1 strides for 2 dimensions", [&](auto& u) {
    u.put_copy(whole, view(memory.data(), {10, 10}, {20}));
  });
  expect("the box has start -1 in dimension 1", [&](auto& u) {
    u.put(Box({0, -1}, {10, 10}), memory);
  });
  expect("the box has count -3 in dimension 0", [&](auto& u) {
    const int start[2] = {5, 0};
    const int end[2] = {2, 10};
    u.put(Box::from_start_end(start, end), memory);
  });
  file.abandon();
}

TEST(ApiViews, BoxesFromAnyIntegers) {
  const int start[2] = {2, 3};
  const std::vector<long> end{5, 9};
  const Box box = Box::from_start_end(start, end);
  EXPECT_EQ(box.start, (Shape{2, 3}));
  EXPECT_EQ(box.count, (Shape{3, 6}));
  EXPECT_EQ(Box::from_start_count(start, std::array<short, 2>{3, 6}).count, box.count);
}

template <class Values>
concept CanBeViewed = requires(tailrace::Field<double> field, Values&& values) {
  field.put(Box(), view(std::forward<Values>(values), {1, 1}));
};
static_assert(!CanBeViewed<std::vector<double>> && !CanBeViewed<std::array<double, 1>>);
static_assert(!CanBeViewed<std::vector<float>&>);
static_assert(CanBeViewed<std::vector<double>&> && CanBeViewed<const std::vector<double>&>);
static_assert(CanBeViewed<std::span<const double>> && CanBeViewed<const double*>);

}  // namespace
