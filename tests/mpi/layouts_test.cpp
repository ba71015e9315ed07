// Every layout through the public API. Stock HDF5 reads the same values, even if the layout
// reserved too much or too little space. A rank that fails in a step makes the step fail on all
// ranks.

#include "api_support.hpp"

namespace {

using namespace api_test;

const Shape kFieldShape{37, 53};

/// Options of a field under one layout.
struct LayoutCase {
  const char* name;
  const char* options;
};

std::ostream& operator<<(std::ostream& out, const LayoutCase& test) { return out << test.name; }

constexpr LayoutCase kCases[] = {
    {"claimed", "layout=claimed"},
    {"dense", "layout=dense"},
    {"sparse", "layout=sparse"},
    {"hybrid", "layout=hybrid:2:0.5"},
    {"hybrid_10x_too_small", "layout=hybrid:50"},
    {"predictive", "layout=predictive"},
    {"predictive_without_space", "layout=predictive:1"},
    {"predictive_storage", "layout=predictive:storage"},
    {"arena", "layout=arena"},
    {"arena_performance", "layout=arena:performance"},
    {"arena_wide", "layout=arena:3"},
};

class Layouts : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Layouts, StockHdf5ReadsAllFieldsOfAllSteps) {
  const std::string path = scratch();
  const std::string options = GetParam().options;
  {
    auto file = create(path, "chunk=5x7," + options);
    auto grown = file.define<double>("/grown", kFieldShape, "over-time=on");
    for (std::uint64_t step = 0; step < 3; ++step) {
      const std::string group = "/step_" + std::to_string(step);
      auto rough = file.define<float>(group + "/rough", kFieldShape);
      auto smooth = file.define<double>(group + "/smooth", kFieldShape);
      auto counts = file.define<std::int16_t>(group + "/counts", {1001}, "chunk=100x,codec=none");
      auto pinned = file.define<float>(group + "/pinned", {64}, "chunk=16x,layout=claimed");
      put_boxes<float>(rough, mine(cut(kFieldShape, n_ranks())), step, rough_value<float>);
      put_boxes<double>(smooth, mine(cut(kFieldShape, 2 * n_ranks()), 1), step,
                        smooth_value<double>);
      put_boxes<std::int16_t>(counts, mine(cut({1001}, 3)), step, rough_value<std::int16_t>);
      put_boxes<float>(pinned, mine(cut({64}, n_ranks())), step, rough_value<float>);
      put_boxes<double>(grown, mine(cut(kFieldShape, n_ranks())), step, rough_value<double>);
      file.end_step();
    }
    file.close();
  }
  {
    auto file = open(path, options);
    auto last = file.define<float>("/appended", kFieldShape, "chunk=8x53");
    put_boxes<float>(last, mine(cut(kFieldShape, n_ranks())), 9, rough_value<float>);
    file.end_step();
    file.close();
  }
  if (!is_root()) return;
  const StockFile stock(path);
  std::vector<double> grown;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const std::string group = "/step_" + std::to_string(step);
    EXPECT_EQ(differences(stock.read<float>(group + "/rough"),
                          all_values<float>(kFieldShape, step, rough_value)),
              "");
    EXPECT_EQ(differences(stock.read<double>(group + "/smooth"),
                          all_values<double>(kFieldShape, step, smooth_value)),
              "");
    EXPECT_EQ(differences(stock.read<std::int16_t>(group + "/counts"),
                          all_values<std::int16_t>({1001}, step, rough_value)),
              "");
    EXPECT_EQ(differences(stock.read<float>(group + "/pinned"),
                          all_values<float>({64}, step, rough_value)),
              "");
    const auto entry = all_values<double>(kFieldShape, step, rough_value<double>);
    grown.insert(grown.end(), entry.begin(), entry.end());
  }
  EXPECT_EQ(differences(stock.read<double>("/grown"), grown), "");
  EXPECT_EQ(
      differences(stock.read<float>("/appended"), all_values<float>(kFieldShape, 9, rough_value)),
      "");
}

TEST_P(Layouts, ARankThatFailsFailsTheStepOnAllAndTheNextOneWrites) {
  // The last rank's memory suffices for no chunk of the first step. It fails after places are
  // assigned, while the others work.
  const std::string path = scratch();
  const std::string options = GetParam().options;
  auto file = create(path, options + (is_last() ? ",memory=2MiB" : ",memory=64MiB"));
  const Shape shape{static_cast<std::uint64_t>(n_ranks()) * 2 * 400000};
  auto large = file.define<float>("/large", shape, "chunk=400000x");
  const auto share = shape[0] / static_cast<std::uint64_t>(n_ranks());
  const Box own({static_cast<std::uint64_t>(rank()) * share}, {share});
  put_boxes<float>(large, {own}, 1, rough_value<float>);
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_OUT_OF_MEMORY,
                    {"/large", "memory"});
  auto small = file.define<float>("/small", kFieldShape, "chunk=5x7");
  put_boxes<float>(small, mine(cut(kFieldShape, n_ranks())), 2, rough_value<float>);
  file.end_step();
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_FALSE(stock.has("/large"));
  EXPECT_EQ(
      differences(stock.read<float>("/small"), all_values<float>(kFieldShape, 2, rough_value)), "");
}

INSTANTIATE_TEST_SUITE_P(All, Layouts, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(LayoutOptions, HybridWithoutARatioIsRefusedEverywhere) {
  auto file = create(scratch());
  (void)outcome_of([&] { file.define<float>("/f", kFieldShape, "layout=hybrid"); });
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_INVALID_ARGUMENT,
                    {"/f", "hybrid:3.5"});
}

TEST(LayoutOptions, RanksMustAgreeOnSpace) {
  if (n_ranks() == 1) return;
  auto file = create(scratch());
  file.define<float>("/f", kFieldShape, is_last() ? "layout=arena:2" : "layout=arena");
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_DISAGREEMENT, {"/f"});
}

}  // namespace
