// Memory selections of the public API: views of arrays with halos, in other orders, backwards.

#include <array>

#include "api_support.hpp"
#include "tailrace/reader.hpp"

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

  View<const double> whole() const { return view(memory.data() + first, extents, strides); }
  View<double> place() { return view(memory.data() + first, extents, strides); }
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

/// A restart reads into the memory from which a step was put; all else in it stays.
TEST(ApiViews, ReadsFillEveryLayout) {
  const std::string path = scratch();
  auto file = create(path, "replace=on");
  auto u = file.define<double>("/u", kCuboid, "over-time=on,chunk=5x6x7");
  const Box box = mine(cut(kCuboid, n_ranks())).front();
  for (std::uint64_t step = 0; step < 2; ++step) {
    u.put_copy(box, box_values<double>(kCuboid, box, step, smooth_value<double>));
    file.end_step();
  }
  file.close();
  auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD));
  tailrace::Selection slab(Shape{1}, Shape{1});
  slab.start.insert(slab.start.end(), box.start.begin(), box.start.end());
  slab.count.insert(slab.count.end(), box.count.begin(), box.count.end());
  for (const MemoryOrder memory : {MemoryOrder::halo, MemoryOrder::thin_halo, MemoryOrder::fortran,
                                   MemoryOrder::backwards, MemoryOrder::every_second}) {
    SCOPED_TRACE("memory " + std::to_string(static_cast<int>(memory)));
    Block expected = block_of(box, memory);
    expected.fill(box, 1);
    const auto with_time = [](Block& block) {
      Shape extents = block.extents;
      std::vector<std::int64_t> strides = block.strides;
      extents.insert(extents.begin(), 1);
      strides.insert(strides.begin(), 0);
      return view(block.memory.data() + block.first, extents, strides);
    };
    Block of_step = block_of(box, memory);
    reader.step(1).read_all("/u", box, of_step.place());
    EXPECT_EQ(of_step.memory, expected.memory);
    Block of_slab = block_of(box, memory);
    reader.read_all("/u", slab, with_time(of_slab));
    EXPECT_EQ(of_slab.memory, expected.memory);
    Block alone = block_of(box, memory);
    reader.read("/u", slab, with_time(alone));
    EXPECT_EQ(alone.memory, expected.memory);
    Block in_c = block_of(box, memory);
    const std::vector<std::int64_t> bytes = in_c.place().byte_strides();
    EXPECT_EQ(tailrace_reader_read_step_strided(reader.handle(), "/u", 1, box.start.data(),
                                                box.count.data(), in_c.memory.data() + in_c.first,
                                                box.n_elements() * sizeof(double), bytes.data()),
              TAILRACE_OK);
    EXPECT_EQ(in_c.memory, expected.memory);
  }
  reader.close();
}

TEST(ApiViews, MembersOfStructsInOneDimension) {
  struct Atom {
    double x, y;
    float charge;
    int id;
  };
  constexpr std::uint64_t kOfRank = 5;
  const auto first = kOfRank * static_cast<std::uint64_t>(rank());
  std::vector<Atom> atoms(kOfRank);
  for (std::uint64_t i = 0; i < kOfRank; ++i) {
    const auto id = static_cast<int>(first + i);
    atoms[i] = {0.5 * id, -1.0 * id, 0.25F * static_cast<float>(id), id};
  }
  const auto all = kOfRank * static_cast<std::uint64_t>(n_ranks());
  const auto member = [](auto& of_first) {
    return view(&of_first, {kOfRank}, {std::int64_t{sizeof(Atom) / sizeof of_first}});
  };
  const std::string path = scratch();
  auto file = create(path, "replace=on");
  auto y = file.define<double>("/y", {all});
  auto charge = file.define<float>("/charge", {all}, "over-time=on");
  auto id = file.define<int>("/id", {all});
  y.put({first, kOfRank}, member(atoms[0].y));
  charge.put({first, kOfRank}, member(atoms[0].charge));
  id.put({first, kOfRank}, member(atoms[0].id));
  file.close();
  std::vector<Atom> read(kOfRank, Atom{7, 7, 7, 7});
  auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD));
  reader.read_all("/y", {first, kOfRank}, member(read[0].y));
  reader.step(0).read_all("/charge", {first, kOfRank}, member(read[0].charge));
  reader.read("/id", {first, kOfRank}, member(read[0].id));
  EXPECT_EQ(reader.read<int>("/id", {first, 1}), std::vector<int>{atoms[0].id});
  std::vector<double> dense(kOfRank);
  reader.read_all("/y", {first, kOfRank}, dense);
  reader.close();
  for (std::uint64_t i = 0; i < kOfRank; ++i) {
    EXPECT_EQ(read[i].x, 7);
    EXPECT_EQ(read[i].y, atoms[i].y);
    EXPECT_EQ(dense[i], atoms[i].y);
    EXPECT_EQ(read[i].charge, atoms[i].charge);
    EXPECT_EQ(read[i].id, atoms[i].id);
  }
}

/// One rank's view is wrong: every rank fails, and none waits.
TEST(ApiViews, WrongViewsOfReadsFailEverywhere) {
  const std::string path = scratch();
  auto file = create(path, "replace=on");
  auto u = file.define<double>("/u", {4, 4}, "over-time=on");
  std::vector<double> memory(36, 1.5);
  if (is_root()) u.put({{0, 0}, {4, 4}}, view(memory, {6, 6}).interior(1));
  file.end_step();
  file.close();
  auto reader = tailrace::Reader::open(path, tailrace::mpi(MPI_COMM_WORLD));
  const bool wrong = rank() == n_ranks() - 1;
  const Box box({0, 0}, {4, 4});
  expect_everywhere(
      outcome_of([&] {
        reader.step(0).read_all("/u", box, view(memory, {6, 6}).interior(wrong ? 2 : 1));
      }),
      TAILRACE_ERROR_INVALID_ARGUMENT, {"dataset \"/u\": the view has 2x2 values, the box 4x4"});
  expect_everywhere(outcome_of([&] {
                      reader.read_all(
                          "/u", {{0, 0, 0}, {1, 4, 4}},
                          view(memory, {1, 6, wrong ? 7 : 6}).sub({0, 1, 1}, {1, 4, 4}));
                    }),
                    TAILRACE_ERROR_INVALID_ARGUMENT, {"its extents need 42 values, 36 were given"});
  reader.close();
}

TEST(ApiViews, APutAfterCloseThrows) {
  auto file = create(scratch());
  auto u = file.define<double>("/u", {4}, "over-time=on");
  const std::vector<double> values(4, 1.5);
  if (is_root()) u.put(values);
  file.close();
  const auto put_whole = [&] { u.put(values); };
  EXPECT_THROW(put_whole(), tailrace::Error);
  EXPECT_THROW(u.put_copy({0, 4}, view(values, {4})), tailrace::Error);
  EXPECT_THROW(u.put({0, 3}, values), tailrace::Error);  // A wrong size, too.
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
