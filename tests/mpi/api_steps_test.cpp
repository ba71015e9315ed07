// The lifetime of a file through the public API: steps, growth over time, append, attributes,
// copies, callbacks, reports.

#include <array>
#include <filesystem>

#include "api_support.hpp"

namespace {

using namespace api_test;

const Shape kStepShape{21, 34};

TEST(ApiSteps, AGroupPerStep) {
  const std::string path = scratch();
  auto file = create(path);
  for (std::uint64_t step = 0; step < 4; ++step) {
    const std::string group = "/run/step_" + std::to_string(step);
    auto rho = file.define<float>(group + "/rho", kStepShape);
    auto id = file.define<std::int64_t>(group + "/cells/id", kStepShape, "chunk=8x8");
    put_boxes<float>(rho, mine(cut(kStepShape, n_ranks())), step, rough_value<float>);
    put_boxes<std::int64_t>(id, mine(cut(kStepShape, 2 * n_ranks()), 1), step + 10,
                            rough_value<std::int64_t>);
    file.set_attribute(group, "step", step);
    const tailrace::StepReport report = file.end_step();
    EXPECT_EQ(report.step_index, step);
    ASSERT_EQ(report.fields.size(), 2U);
    EXPECT_EQ(report.fields[1].path, group + "/cells/id");
    if (!is_root()) continue;
    const StockFile stock(path);  // each step is there as soon as end_step returns
    EXPECT_EQ(stock.numbers<std::uint64_t>(group, "step"), std::vector<std::uint64_t>{step});
  }
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  for (std::uint64_t step = 0; step < 4; ++step) {
    const std::string group = "/run/step_" + std::to_string(step);
    EXPECT_EQ(differences(stock.read<float>(group + "/rho"),
                          all_values<float>(kStepShape, step, rough_value)),
              "");
    EXPECT_EQ(differences(stock.read<std::int64_t>(group + "/cells/id"),
                          all_values<std::int64_t>(kStepShape, step + 10, rough_value)),
              "");
  }
}

/// Between nodes, file space for the expected bytes of a step is claimed ahead. Unneeded space
/// becomes a gap of at most 1/128 of the claim if steps are similar.
TEST(ApiSteps, GapsAreFewerThanWhatIsWritten) {
  for (const char* options : {"codec=none", "codec=deflate", "codec=deflate,mode=async",
                              "codec=deflate,mode=in_situ", "codec=none,mode=in_situ"}) {
    const std::string path = scratch();
    auto file = create(path, std::string("replace=on,over-time=on,") + options);
    const Shape shape{64 * static_cast<std::uint64_t>(n_ranks()), 2048};
    const Box box({64 * static_cast<std::uint64_t>(rank()), 0}, {64, 2048});
    auto field = file.define<double>("/u", shape, "chunk=16x2048");
    std::uint64_t encoded_bytes = 0;
    std::uint64_t file_bytes = 0;
    const auto add = [&](const tailrace::StepReport& report) {
      encoded_bytes += report.encoded_bytes;
      file_bytes = report.file_bytes;
    };
    for (std::uint64_t step = 0; step < 5; ++step) {
      put_boxes<double>(field, {box}, step, rough_value<double>);
      const tailrace::StepReport report = file.end_step();
      if (report.completed) add(report);
    }
    if (const auto last = file.wait()) add(*last);
    file.close();
    const std::uint64_t n_chunks = 5 * 4 * static_cast<std::uint64_t>(n_ranks());
    const std::uint64_t metadata_bytes = (16U << 10) + 64 * n_chunks;
    EXPECT_LE(file_bytes, encoded_bytes + encoded_bytes / 100 + metadata_bytes) << options;
  }
}

/// Expected values of an over-time field of `n_steps` entries: entry t has the seed first_seed + t.
template <class T>
std::vector<T> entries(const Shape& shape, std::uint64_t n_steps, std::uint64_t first_seed) {
  std::vector<T> all;
  for (std::uint64_t t = 0; t < n_steps; ++t) {
    const auto entry = all_values<T>(shape, first_seed + t, rough_value<T>);
    all.insert(all.end(), entry.begin(), entry.end());
  }
  return all;
}

TEST(ApiSteps, FieldsThatGrowOverTime) {
  const std::string path = scratch();
  auto file = create(path, "over-time=on");
  auto height = file.define<double>("/height", kStepShape, "chunk=9x9");
  auto time = file.define<double>("/time", {});
  auto level = file.define<std::int16_t>("/level", {301}, "codec=none");
  for (std::uint64_t step = 0; step < 5; ++step) {
    put_boxes<double>(height, mine(cut(kStepShape, n_ranks() + 1)), step, rough_value<double>);
    put_boxes<std::int16_t>(level, mine(cut({301}, n_ranks())), step + 3,
                            rough_value<std::int16_t>);
    if (is_last()) time.put_copy(std::array{0.5 * static_cast<double>(step)});
    EXPECT_EQ(file.end_step().fields.size(), 3U);
    if (is_root()) {
      EXPECT_EQ(StockFile(path).shape("/height"), (Shape{step + 1, 21, 34}));
    }
  }
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(differences(stock.read<double>("/height"), entries<double>(kStepShape, 5, 0)), "");
  EXPECT_EQ(differences(stock.read<std::int16_t>("/level"), entries<std::int16_t>({301}, 5, 3)),
            "");
  EXPECT_EQ(stock.read<double>("/time"), (std::vector<double>{0, 0.5, 1, 1.5, 2}));
}

TEST(ApiSteps, FailedStepLeavesGrowingFieldsUsable) {
  const std::string path = scratch();
  auto file = create(path, "over-time=on");
  auto height = file.define<float>("/height", kStepShape);
  const auto boxes = mine(cut(kStepShape, n_ranks()));
  put_boxes<float>(height, boxes, 0, rough_value<float>);
  file.end_step();
  if (is_root()) height.put_copy(Box({0, 0}, {1, 1}), std::array{77.0F});
  expect_everywhere(outcome_of([&] { file.end_step(); }), TAILRACE_ERROR_BAD_COVERAGE, {"/height"});
  put_boxes<float>(height, boxes, 1, rough_value<float>);
  file.end_step();
  file.close();
  if (!is_root()) return;
  EXPECT_EQ(differences(StockFile(path).read<float>("/height"), entries<float>(kStepShape, 2, 0)),
            "");
}

TEST(ApiSteps, AppendToAnExistingFile) {
  const std::string path = scratch();
  for (std::uint64_t part = 0; part < 3; ++part) {
    auto file = part == 0 ? create(path) : open(path);
    const std::string name = "/part_" + std::to_string(part) + "/rho";
    auto rho = file.define<float>(name, kStepShape);
    auto height = file.define<double>("/height", kStepShape, "over-time=on,chunk=9x9");
    put_boxes<float>(rho, mine(cut(kStepShape, n_ranks())), part, rough_value<float>);
    for (std::uint64_t step = 0; step < 2; ++step) {
      put_boxes<double>(height, mine(cut(kStepShape, n_ranks())), 2 * part + step,
                        rough_value<double>);
      file.end_step();
    }
    file.close();
  }
  if (!is_root()) return;
  const StockFile stock(path);
  for (std::uint64_t part = 0; part < 3; ++part) {
    EXPECT_EQ(differences(stock.read<float>("/part_" + std::to_string(part) + "/rho"),
                          all_values<float>(kStepShape, part, rough_value)),
              "");
  }
  EXPECT_EQ(differences(stock.read<double>("/height"), entries<double>(kStepShape, 6, 0)), "");
}

TEST(ApiSteps, ContinuationMustMeanTheSame) {
  const std::string path = scratch();
  const auto boxes = mine(cut(kStepShape, n_ranks()));
  auto first = create(path, "over-time=on");
  auto rough = first.define<float>("/rough", kStepShape, "codec=portable,bound=abs=0.25");
  auto level = first.define<std::int32_t>("/level", kStepShape, "chunk=7x9");
  // An explicit codec: `auto` might choose an exact one, and then the file fixes no bound.
  auto each = first.define<float>("/each", kStepShape, "codec=trz,bound=pw_rel=0.25");
  put_boxes<float>(each, boxes, 0, rough_value<float>);
  put_boxes<float>(rough, boxes, 0, rough_value<float>);
  put_boxes<std::int32_t>(level, boxes, 0, rough_value<std::int32_t>);
  first.close();
  auto again = open(path, "over-time=on");
  using Define = void (*)(tailrace::File&);
  const std::vector<std::pair<Define, const char*>> cases = {
      {[](auto& f) { f.template define<double>("/level", kStepShape); }, "i32 1x21x34"},
      {[](auto& f) {
         f.template define<std::int32_t>("/level", {21, 35});
       },
       "21x35"},
      {[](auto& f) { f.template define<std::int32_t>("/level", kStepShape, "chunk=8x9"); }, "7x9"},
      {[](auto& f) { f.template define<std::int32_t>("/level", kStepShape, "codec=none"); },
       "filters"},
      {[](auto& f) { f.template define<float>("/rough", kStepShape, "bound=abs=0.5"); },
       "abs=0.25"},
      {[](auto& f) { f.template define<float>("/each", kStepShape, "bound=abs=0.25"); },
       "pw_rel=0.25"}};
  for (const auto& [define, part] : cases) {
    const Outcome outcome = outcome_of([&, call = define] {
      call(again);
      again.end_step();
    });
    expect_everywhere(outcome, TAILRACE_ERROR_INVALID_ARGUMENT, {part});
  }
  auto more = again.define<float>("/rough", kStepShape, "codec=portable,bound=abs=0.25");
  put_boxes<float>(more, boxes, 1, rough_value<float>);
  auto more_of_each = again.define<float>("/each", kStepShape, "bound=pw_rel=0.25");
  put_boxes<float>(more_of_each, boxes, 1, rough_value<float>);
  again.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(stock.shape("/rough"), (Shape{2, 21, 34}));
  EXPECT_EQ(stock.shape("/each"), (Shape{2, 21, 34}));
  EXPECT_EQ(stock.shape("/level"), (Shape{1, 21, 34}));
  EXPECT_EQ(stock.numbers<double>("/rough", "tailrace_absolute_bound"), std::vector<double>{0.25});
}

TEST(ApiSteps, OpenRefusesToRedefineADataset) {
  const std::string path = scratch();
  auto first = create(path);
  auto field = first.define<float>("/rho", kStepShape);
  put_boxes<float>(field, mine(cut(kStepShape, n_ranks())), 1, rough_value<float>);
  first.close();
  auto again = open(path);
  const Outcome outcome = outcome_of([&] {
    auto rho = again.define<float>("/rho", kStepShape);
    put_boxes<float>(rho, mine(cut(kStepShape, n_ranks())), 2, rough_value<float>);
    again.end_step();
  });
  expect_everywhere(outcome, TAILRACE_ERROR_ALREADY_EXISTS, {"/rho"});
  again.close();
  if (!is_root()) return;
  EXPECT_EQ(differences(StockFile(path).read<float>("/rho"),
                        all_values<float>(kStepShape, 1, rough_value)),
            "");
}

TEST(ApiSteps, AttributesOfEveryKind) {
  const std::string path = scratch();
  auto file = create(path);
  auto rho = file.define<float>("/group/rho", kStepShape);
  put_boxes<float>(rho, mine(cut(kStepShape, n_ranks())), 1, rough_value<float>);
  file.set_attribute("/", "title", "a title with an \u00e4 in it");
  file.set_attribute("/", "empty", "");
  file.set_attribute("/group", "count", -5);
  file.set_attribute("/group", "big", ~std::uint64_t{0});
  rho.set_attribute("units", "kg/m3");
  rho.set_attribute("scale", 0.1);
  rho.set_attribute("spacing", std::array{0.5, 0.25, 0.125});
  rho.set_attribute("origin", std::vector<int>{-1, 0, 1});
  rho.set_attribute("extent", std::vector<std::uint32_t>{7, 8});
  file.end_step();
  file.set_attribute("/", "title", "replaced");  // a step with only attributes
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(stock.text("/", "title"), "replaced");
  EXPECT_EQ(stock.text("/", "empty"), "");
  EXPECT_EQ(stock.numbers<std::int64_t>("/group", "count"), std::vector<std::int64_t>{-5});
  EXPECT_EQ(stock.numbers<std::uint64_t>("/group", "big"),
            std::vector<std::uint64_t>{~std::uint64_t{0}});
  EXPECT_EQ(stock.text("/group/rho", "units"), "kg/m3");
  EXPECT_EQ(stock.numbers<double>("/group/rho", "scale"), std::vector<double>{0.1});
  EXPECT_EQ(stock.numbers<double>("/group/rho", "spacing"),
            (std::vector<double>{0.5, 0.25, 0.125}));
  EXPECT_EQ(stock.numbers<std::int64_t>("/group/rho", "origin"),
            (std::vector<std::int64_t>{-1, 0, 1}));
  EXPECT_EQ(stock.numbers<std::uint64_t>("/group/rho", "extent"),
            (std::vector<std::uint64_t>{7, 8}));
}

TEST(ApiSteps, CopiesAndCallersMemory) {
  const std::string path = scratch();
  auto file = create(path, "chunk=8x8");
  auto copied = file.define<float>("/copied", kStepShape);
  auto lent = file.define<float>("/lent", kStepShape);
  std::vector<std::vector<float>> kept;
  for (const Box& box : mine(cut(kStepShape, 2 * n_ranks()))) {
    auto values = box_values<float>(kStepShape, box, 6, rough_value<float>);
    copied.put_copy(box, values);
    kept.push_back(values);
    lent.put(box, kept.back());
    std::fill(values.begin(), values.end(), -1.0F);  // must not be read
  }
  file.end_step();
  for (auto& values : kept) std::fill(values.begin(), values.end(), -2.0F);  // allowed again
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  const auto expected = all_values<float>(kStepShape, 6, rough_value<float>);
  EXPECT_EQ(differences(stock.read<float>("/copied"), expected), "");
  EXPECT_EQ(differences(stock.read<float>("/lent"), expected), "");
}

TEST(ApiSteps, CloseEndsTheOpenStep) {
  const std::string path = scratch();
  auto file = create(path);
  auto rho = file.define<float>("/rho", kStepShape);
  put_boxes<float>(rho, mine(cut(kStepShape, n_ranks())), 1, rough_value<float>);
  EXPECT_FALSE(exists(path));
  file.close();
  EXPECT_TRUE(exists(path));
  EXPECT_FALSE(exists(path + ".partial"));
  EXPECT_FALSE(static_cast<bool>(file));
  if (!is_root()) return;
  EXPECT_EQ(differences(StockFile(path).read<float>("/rho"),
                        all_values<float>(kStepShape, 1, rough_value)),
            "");
}

TEST(ApiSteps, AFileWithoutFields) {
  const std::string path = scratch();
  auto file = create(path);
  file.set_attribute("/", "title", "nothing but this");
  file.end_step();
  file.end_step();  // an empty step is ordinary
  file.close();
  if (is_root()) {
    EXPECT_EQ(StockFile(path).text("/", "title"), "nothing but this");
  }
}

TEST(ApiSteps, CallbacksAreCalled) {
  auto file = create(scratch(), "chunk=4x4");
  std::uint64_t last_done = 0;
  std::uint64_t last_total = 0;
  int n_calls = 0;
  file.on_progress([&](std::uint64_t bytes_done, std::uint64_t bytes_total) {
    EXPECT_GE(bytes_done, last_done);
    EXPECT_LE(bytes_done, bytes_total);
    last_done = bytes_done;
    last_total = bytes_total;
    ++n_calls;
  });
  file.on_log([](std::string_view line) { EXPECT_EQ(line.find('\n'), std::string_view::npos); });
  tailrace::File moved = std::move(file);  // the callbacks move along
  auto rho = moved.define<float>("/rho", {210, 340});
  put_boxes<float>(rho, mine(cut(rho.shape(), n_ranks())), 1, rough_value<float>);
  moved.end_step();
  MPI_Allreduce(MPI_IN_PLACE, &n_calls, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_GT(n_calls, 0);
  if (last_total != 0) {
    EXPECT_LE(last_total, 210U * 340 * sizeof(float));
  }
  moved.on_progress(nullptr);
  moved.on_log(nullptr);
  moved.close();
}

TEST(ApiSteps, AnExceptionOfACallbackArrivesAfterTheStep) {
  const std::string path = scratch();
  auto file = create(path, "chunk=4x4");
  bool thrown = false;
  file.on_progress([&](std::uint64_t, std::uint64_t) {
    thrown = true;
    throw std::runtime_error("from the callback");
  });
  auto rho = file.define<float>("/rho", kStepShape);
  put_boxes<float>(rho, mine(cut(kStepShape, n_ranks())), 1, rough_value<float>);
  bool arrived = false;
  try {
    file.end_step();
  } catch (const std::runtime_error& error) {
    arrived = error.what() == std::string("from the callback");
  }
  EXPECT_EQ(arrived, thrown);
  file.on_progress(nullptr);
  file.close();
  if (is_root()) {
    EXPECT_TRUE(StockFile(path).has("/rho"));
  }
}

TEST(ApiSteps, ReportsAreTheSameOnAllRanks) {
  const std::string path = scratch();
  auto file = create(path, "chunk=8x8,codec=deflate");
  auto rho = file.define<float>("/rho", kStepShape);
  put_boxes<float>(rho, mine(cut(kStepShape, 3 * n_ranks())), 1, rough_value<float>);
  const tailrace::StepReport report = file.end_step();
  file.close();
  const std::uint64_t raw_bytes = 21 * 34 * sizeof(float);
  EXPECT_EQ(report.raw_bytes, raw_bytes);
  ASSERT_EQ(report.fields.size(), 1U);
  const tailrace::FieldReport& field = report.fields[0];
  EXPECT_EQ(field.path, "/rho");
  EXPECT_EQ(field.codec, "deflate");
  EXPECT_EQ(field.bound, "none");
  EXPECT_EQ(field.absolute_bound, 0);
  EXPECT_EQ(field.n_chunks, 15U);
  EXPECT_EQ(field.raw_bytes, raw_bytes);
  EXPECT_GT(field.encoded_bytes, 0U);
  EXPECT_DOUBLE_EQ(field.ratio,
                   static_cast<double>(raw_bytes) / static_cast<double>(field.encoded_bytes));
  EXPECT_GE(report.step_s, 0);
  std::array<std::uint64_t, 6> mine_here = {report.encoded_bytes,     report.file_bytes,
                                            report.n_writes,          report.moved_bytes,
                                            report.peak_memory_bytes, field.encoded_bytes};
  auto of_root = mine_here;
  MPI_Bcast(of_root.data(), static_cast<int>(of_root.size()), MPI_UINT64_T, 0, MPI_COMM_WORLD);
  EXPECT_EQ(mine_here, of_root);
  if (is_root()) {
    EXPECT_EQ(std::filesystem::file_size(path), report.file_bytes);
  }
}

TEST(ApiSteps, ACommunicatorOfSomeRanks) {
  const std::string path = scratch(rank() % 2 == 0 ? "even.h5" : "odd.h5");
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &half);
  int half_rank = 0;
  int n_half = 0;
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &n_half);
  auto file = tailrace::File::create(path, tailrace::mpi(half));
  MPI_Comm_free(&half);  // Tailrace works on a duplicate
  auto rho = file.define<float>("/rho", kStepShape);
  const std::vector<Box> boxes = cut(kStepShape, n_half);
  if (static_cast<std::size_t>(half_rank) < boxes.size()) {
    put_boxes<float>(rho, {boxes[static_cast<std::size_t>(half_rank)]}, 1, rough_value<float>);
  }
  file.close();
  if (half_rank != 0) return;
  EXPECT_EQ(differences(StockFile(path).read<float>("/rho"),
                        all_values<float>(kStepShape, 1, rough_value)),
            "");
}

TEST(ApiSteps, EveryRankAFileOfItsOwn) {
  const std::string path = scratch("rank_" + std::to_string(rank()) + ".h5");
  auto file = tailrace::File::create(path);
  auto rho = file.define<double>("/rho", kStepShape);
  rho.put_copy(all_values<double>(kStepShape, 3, rough_value));
  file.close();
  EXPECT_EQ(differences(StockFile(path).read<double>("/rho"),
                        all_values<double>(kStepShape, 3, rough_value)),
            "");
}

TEST(ApiSteps, TwoFilesAtOnce) {
  auto a = create(scratch("a.h5"));
  auto b = create(scratch("b.h5"));
  for (std::uint64_t step = 0; step < 2; ++step) {
    const std::string name = "/step_" + std::to_string(step);
    auto in_a = a.define<float>(name, kStepShape);
    auto in_b = b.define<std::int32_t>(name, kStepShape);
    put_boxes<float>(in_a, mine(cut(kStepShape, n_ranks())), step, rough_value<float>);
    put_boxes<std::int32_t>(in_b, mine(cut(kStepShape, n_ranks())), step,
                            rough_value<std::int32_t>);
    a.end_step();
    b.end_step();
  }
  b.close();
  a.close();
  if (!is_root()) return;
  EXPECT_EQ(differences(StockFile(scratch("a.h5")).read<float>("/step_1"),
                        all_values<float>(kStepShape, 1, rough_value)),
            "");
  EXPECT_EQ(differences(StockFile(scratch("b.h5")).read<std::int32_t>("/step_1"),
                        all_values<std::int32_t>(kStepShape, 1, rough_value)),
            "");
}

TEST(ApiSteps, EveryDatasetSaysHowItWasMade) {
  const std::string path = scratch();
  auto file = create(path);
  auto rho = file.define<float>("/rho", kStepShape, "codec=portable,bound=abs=0.5");
  put_boxes<float>(rho, mine(cut(kStepShape, n_ranks())), 1, rough_value<float>);
  file.close();
  if (!is_root()) return;
  const StockFile stock(path);
  EXPECT_EQ(stock.text("/rho", "tailrace_codec"), "portable");
  EXPECT_EQ(stock.text("/rho", "tailrace_bound_mode"), "abs");
  EXPECT_EQ(stock.numbers<double>("/rho", "tailrace_bound_asked"), std::vector<double>{0.5});
}

}  // namespace
