// Idle time through the C++ API: scopes, idle, idle_until, wait, and their reports.
//
// The program does the same in each mode, and the file must hold the same. Measured times are only
// checked for plausibility, never for their length.

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api_support.hpp"

namespace {

using namespace api_test;

const Shape kIdleShape{21, 34};
constexpr std::uint64_t kSteps = 4;

std::string group_of(std::uint64_t step) { return "/step_" + std::to_string(step); }

void put_step(tailrace::File& file, std::uint64_t step) {
  auto rho = file.define<float>(group_of(step) + "/rho", kIdleShape);
  put_boxes<float>(rho, mine(cut(kIdleShape, n_ranks())), step, rough_value<float>);
}

void expect_steps(const std::string& path, std::uint64_t n_steps) {
  if (!is_root()) return;
  const StockFile stock(path);
  for (std::uint64_t step = 0; step < n_steps; ++step) {
    EXPECT_EQ(differences(stock.read<float>(group_of(step) + "/rho"),
                          all_values<float>(kIdleShape, step, rough_value)),
              "");
  }
}

/// One iteration of an in-situ program, with every kind of mark and idle call.
void iterate(tailrace::File& file) {
  {
    auto outer = file.compute();
    auto inner = file.compute();
  }
  {
    auto background = file.background();
    auto moved = std::move(background);
    moved.end();
    moved.end();  // No effect.
  }
  file.idle(0.002);
  int n_asked = 0;
  file.idle_until([&] { return ++n_asked >= 3; });
  EXPECT_EQ(n_asked, 3);
}

class ApiIdle : public testing::TestWithParam<const char*> {
 protected:
  std::string options() const { return std::string("chunk=8x8,mode=") + GetParam(); }
  bool sync() const { return std::string(GetParam()) == "sync"; }
};

TEST_P(ApiIdle, EveryStepIsReportedOnceAndHeldByTheFile) {
  const std::string path = scratch();
  auto file = create(path, options());
  std::vector<std::uint64_t> reported;
  const auto note = [&](const tailrace::StepReport& report) {
    reported.push_back(report.step_index);
    EXPECT_EQ(report.raw_bytes, 21U * 34 * sizeof(float));
    ASSERT_EQ(report.fields.size(), 1U);
    EXPECT_EQ(report.fields[0].path, group_of(report.step_index) + "/rho");
    EXPECT_GE(report.exposed_s, 0);
    EXPECT_GE(report.handover_s, 0);
    EXPECT_GE(report.backpressure_s, 0);
    EXPECT_GE(report.idle_encode_s, 0);
    EXPECT_GE(report.largest_delay_s, 0);
  };
  EXPECT_FALSE(file.wait().has_value());  // Nothing is pending yet.
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    put_step(file, step);
    const tailrace::StepReport report = file.end_step();
    EXPECT_EQ(report.completed, sync() || step > 0);
    if (report.completed) note(report);
    iterate(file);
  }
  const std::optional<tailrace::StepReport> last = file.wait();
  EXPECT_EQ(last.has_value(), !sync());
  if (last) note(*last);
  EXPECT_FALSE(file.wait().has_value());
  EXPECT_EQ(reported, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  if (is_root()) {
    EXPECT_TRUE(StockFile(path).has(group_of(kSteps - 1)));
  }
  file.close();
  expect_steps(path, kSteps);
}

/// Counts a trace's events by rank and name. Events in one row must be nested to be displayed.
std::map<std::pair<int, std::string>, int> events_of(const std::string& path) {
  const auto document = nlohmann::json::parse(std::ifstream(path));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  std::map<std::pair<int, std::string>, int> counts;
  for (const auto& entry : document["traceEvents"]) {
    if (entry["ph"] != "X") continue;
    const double start = entry["ts"];
    const double end = start + static_cast<double>(entry["dur"]);
    rows[{entry["pid"], entry["tid"]}].emplace_back(start, -end);  // Longer events first.
    ++counts[{entry["pid"], entry["cat"]}];
  }
  constexpr double rounding = 0.002;  // Microseconds with three digits.
  for (auto& [row, events] : rows) {
    std::sort(events.begin(), events.end());
    std::vector<double> open_until;
    for (const auto& [start, minus_end] : events) {
      while (!open_until.empty() && open_until.back() <= start + rounding) open_until.pop_back();
      if (!open_until.empty()) {
        EXPECT_LE(-minus_end, open_until.back() + rounding) << row.second;
      }
      open_until.push_back(-minus_end);
    }
  }
  return counts;
}

TEST_P(ApiIdle, CloseWritesTheTraceOfAllRanks) {
  const std::string path = scratch();
  const std::string trace = path + ".trace.json";
  auto file = create(path, options() + ",trace-file=" + trace);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    put_step(file, step);
    file.end_step();
    iterate(file);
  }
  file.close();
  if (!is_root()) return;
  const auto counts = events_of(trace);
  const auto n_of = [&](int rank, const std::string& name) {
    const auto found = counts.find({rank, name});
    return found == counts.end() ? 0 : found->second;
  };
  int n_encodes = 0;
  for (int rank = 0; rank < n_ranks(); ++rank) {
    n_encodes += n_of(rank, "encode");
    EXPECT_EQ(n_of(rank, "end_step"), sync() ? 0 : int{kSteps});
    // Idle time divides an iteration into several application events.
    if (std::string(GetParam()) == "in_situ") {
      EXPECT_GE(n_of(rank, "application"), int{kSteps});
    }
  }
  EXPECT_EQ(n_encodes, int{kSteps} * 3 * 5);  // 21 x 34 in chunks of 8 x 8.
  EXPECT_GE(n_of(0, "commit"), int{kSteps});
}

TEST_P(ApiIdle, ATraceThatCannotBeWrittenIsAnErrorBeforeAnyWork) {
  const std::string path = scratch();
  try {
    create(path, options() + ",trace-file=" + path + ".no_folder/trace.json");
    ADD_FAILURE() << "created";
  } catch (const tailrace::Error& error) {
    EXPECT_EQ(error.code(), TAILRACE_ERROR_IO);
    EXPECT_NE(std::string(error.what()).find("no_folder/trace.json"), std::string::npos);
  }
}

TEST_P(ApiIdle, CloseCommitsWhatNobodyWaitedFor) {
  const std::string path = scratch();
  auto file = create(path, options());
  for (std::uint64_t step = 0; step < 2; ++step) {
    put_step(file, step);
    file.end_step();
  }
  put_step(file, 2);  // Left open; close() ends it.
  file.close();
  expect_steps(path, 3);
}

TEST_P(ApiIdle, WhatDoneThrowsIsThrownOnAndTheFileGoesOn) {
  const std::string path = scratch();
  auto file = create(path, options());
  put_step(file, 0);
  file.end_step();
  int n_asked = 0;
  const auto gives_up = [&]() -> bool {
    if (++n_asked == 2) throw std::out_of_range("the device is gone");
    return false;
  };
  try {
    file.idle_until(gives_up);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "the device is gone");
  }
  EXPECT_EQ(n_asked, 2);
  // An empty function throws when it is called.
  EXPECT_THROW(file.idle_until(std::function<bool()>()), std::bad_function_call);
  // An exception also ends a scope.
  EXPECT_THROW(
      {
        auto scope = file.compute();
        throw std::runtime_error("in the midst of it");
      },
      std::runtime_error);
  iterate(file);
  put_step(file, 1);
  file.end_step();
  file.close();
  expect_steps(path, 2);
}

TEST_P(ApiIdle, MarksWithoutTheirCounterpartBreakNothing) {
  const std::string path = scratch();
  auto file = create(path, options());
  tailrace_file_compute_end(file.handle());
  tailrace_file_background_end(file.handle());
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    tailrace_file_compute_begin(file.handle());
    tailrace_file_background_begin(file.handle());
    put_step(file, step);
    file.end_step();
    iterate(file);
  }
  file.close();
  expect_steps(path, kSteps);
}

INSTANTIATE_TEST_SUITE_P(Modes, ApiIdle, testing::Values("sync", "async", "in_situ"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ApiScope, IsANoteAboutItsFileOnly) {
  static_assert(!std::is_copy_constructible_v<tailrace::Scope>);
  static_assert(std::is_nothrow_move_constructible_v<tailrace::Scope>);
  auto file = create(scratch());
  auto first = file.compute();
  auto second = file.background();
  second = std::move(first);     // Ends the background scope, keeps the thread scope.
  auto moved = std::move(file);  // The handle may move while scopes exist.
  second.end();
  put_step(moved, 0);
  moved.close();
  // Marks and idle time on a closed file have no effect.
  auto of_nothing = moved.compute();
  moved.idle(10);
  bool asked = false;
  moved.idle_until([&] { return asked = true; });
  EXPECT_FALSE(asked);
}

TEST(ApiReport, EveryMemberIsCopied) {
  tailrace_step_report from{};
  from.profile = "a host";
  double next = 1;
  const auto number = [&](auto& member) {
    member = static_cast<std::remove_reference_t<decltype(member)>>(next++);
  };
  number(from.step_index), number(from.raw_bytes), number(from.encoded_bytes), number(from.ratio);
  number(from.file_bytes), number(from.n_writes), number(from.moved_bytes);
  number(from.peak_memory_bytes), number(from.step_s), number(from.encode_s);
  number(from.write_s), number(from.makespan_s), number(from.hidden_share), number(from.sync_s);
  number(from.commit_s), number(from.choose_s), number(from.predict_s);
  number(from.predicted_bytes), number(from.predicted_makespan_s), number(from.n_overflow_chunks);
  number(from.reserved_bytes), number(from.slack_bytes), number(from.wait_s);
  number(from.exposed_s), number(from.handover_s), number(from.backpressure_s);
  number(from.idle_encode_s), number(from.n_delayed_obstacles), number(from.largest_delay_s);
  number(from.n_moved_writes);
  const tailrace::StepReport to = tailrace::copy_of(from);
  EXPECT_TRUE(to.completed);
  EXPECT_TRUE(to.fields.empty());
  EXPECT_EQ(to.profile, "a host");
  const std::array<double, 30> copied = {double(to.step_index),
                                         double(to.raw_bytes),
                                         double(to.encoded_bytes),
                                         to.ratio,
                                         double(to.file_bytes),
                                         double(to.n_writes),
                                         double(to.moved_bytes),
                                         double(to.peak_memory_bytes),
                                         to.step_s,
                                         to.encode_s,
                                         to.write_s,
                                         to.makespan_s,
                                         to.hidden_share,
                                         to.sync_s,
                                         to.commit_s,
                                         to.choose_s,
                                         to.predict_s,
                                         double(to.predicted_bytes),
                                         to.predicted_makespan_s,
                                         double(to.n_overflow_chunks),
                                         double(to.reserved_bytes),
                                         double(to.slack_bytes),
                                         to.wait_s,
                                         to.exposed_s,
                                         to.handover_s,
                                         to.backpressure_s,
                                         to.idle_encode_s,
                                         double(to.n_delayed_obstacles),
                                         to.largest_delay_s,
                                         double(to.n_moved_writes)};
  for (std::size_t i = 0; i < copied.size(); ++i) EXPECT_EQ(copied[i], double(i + 1)) << i;
}

}  // namespace
