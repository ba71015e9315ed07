// A plan in a trace: planned operations share the time axis of the measured ones, in separate rows.

#include "exec/trace_file.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace tailrace {
namespace {

using nlohmann::json;

/// Two fields, the second one the writer's fifth; three chunks, two of them the first field's.
struct Step {
  std::vector<FieldPlan> plans;
  std::vector<ChunkJob> jobs;
  std::vector<JobForecast> forecasts;
  std::vector<JobCost> costs;

  Step() {
    plans.resize(2);
    plans[0].grid = {{20}, {10}};
    plans[0].field_index = 0;
    plans[1].grid = {{16}, {16}};
    plans[1].field_index = 4;
    plans[1].dtype = DType::f64;
    jobs = {{0, 0, {}, {}}, {0, 1, {}, {}}, {1, 0, {}, {}}};
    for (const double bytes : {12.4, 30.0, 7.0}) {
      JobForecast forecast;
      forecast.encoded_bytes = bytes;
      forecasts.push_back(forecast);
    }
    costs = {{2, 1}, {1, 3}, {4, 2}};
  }
};

TEST(PlanTrace, EveryJobIsPlannedOnTheStepsAxis) {
  const Step step;
  const std::vector<std::size_t> order = {1, 0, 2};
  Trace trace;
  trace_plan(trace, 3, 10.0, 1, plan_timeline(step.costs, order, 2), step.jobs, step.plans,
             step.forecasts);
  const std::vector<TraceEvent> events = trace.take();
  ASSERT_EQ(events.size(), 6U);
  for (const TraceEvent& event : events) {
    EXPECT_TRUE(is_planned(event.kind));
    EXPECT_EQ(event.rank, 3);
  }
  // Job 1 on the first thread from 0 to 1; job 0 on the second from 0 to 2; job 2 after job 1.
  EXPECT_EQ(events[0].kind, TraceEvent::Kind::plan_encode);
  EXPECT_EQ(events[0].chunk_index, 1);
  EXPECT_EQ(events[0].lane, 1);
  EXPECT_EQ(events[0].start_s, 10);
  EXPECT_EQ(events[0].end_s, 11);
  EXPECT_EQ(events[0].n_bytes, 40U);
  EXPECT_EQ(events[1].kind, TraceEvent::Kind::plan_write);
  EXPECT_EQ(events[1].lane, kIoLaneNumber);
  EXPECT_EQ(events[1].start_s, 11);
  EXPECT_EQ(events[1].end_s, 14);
  EXPECT_EQ(events[1].n_bytes, 30U);
  EXPECT_EQ(events[2].lane, 2);
  EXPECT_EQ(events[3].start_s, 14);
  EXPECT_EQ(events[3].n_bytes, 12U);
  EXPECT_EQ(events[4].field_index, 4);
  EXPECT_EQ(events[4].lane, 1);
  EXPECT_EQ(events[4].start_s, 11);
  EXPECT_EQ(events[4].n_bytes, 128U);
  EXPECT_EQ(events[5].end_s, 17);
}

TEST(PlanTrace, PlanAndMeasurementHaveRowsOfTheSameRank) {
  const Step step;
  Trace trace;
  trace.add({TraceEvent::Kind::read, 0, 0, 0, 0, 9.5, 10, 40, 0});
  trace.add({TraceEvent::Kind::encode, 0, 1, 0, 0, 10, 12.5, 40, 0});
  trace.add({TraceEvent::Kind::write, 0, kIoLaneNumber, 0, 0, 12.5, 13, 12, 4096});
  trace_plan(trace, 0, 10.0, 1,
             plan_timeline(step.costs, order_jobs(step.costs, OrderRule::given), 1), step.jobs,
             step.plans, step.forecasts);
  const std::vector<std::string> fields = {"rho", "", "", "", "vx"};
  const json document = json::parse(trace_json(trace.take(), fields));

  std::map<int, std::string> rows;
  std::map<int, int> places;
  std::map<int, std::vector<json>> events;
  for (const json& entry : document["traceEvents"]) {
    EXPECT_EQ(entry["pid"], 0);
    if (entry["ph"] == "X") {
      events[entry["tid"]].push_back(entry);
    } else if (entry["name"] == "thread_name") {
      rows[entry["tid"]] = entry["args"]["name"];
    } else if (entry["name"] == "thread_sort_index") {
      places[entry["args"]["sort_index"]] = entry["tid"];
    }
  }
  std::vector<std::string> shown;
  for (const auto& [place, row] : places) shown.push_back(rows[row]);
  EXPECT_EQ(shown,
            (std::vector<std::string>{"main", "encode 1", "I/O", "plan: encode 1", "plan: I/O"}));
  for (const auto& [row, name] : rows) {
    EXPECT_EQ(events[row].size(), name.starts_with("plan: ") ? 3U : 1U) << name;
  }
  const json& last = events.rbegin()->second.back();
  EXPECT_EQ(last["name"], "plan write vx #0");
  EXPECT_EQ(last["cat"], "plan write");
  EXPECT_EQ(last["ts"], 17e6);
  EXPECT_EQ(last["dur"], 2e6);
  EXPECT_EQ(last["args"]["bytes"], 7);
  EXPECT_FALSE(last["args"].contains("address"));
}

TEST(PlanTrace, WhatMayOverlapHasARowOfItsOwn) {
  using Kind = TraceEvent::Kind;
  const Step step;
  Trace trace;
  trace.add({Kind::end_step, 2, 0, -1, -1, 9, 10, 0, 0});
  trace.add({Kind::index, 2, 0, -1, -1, 9.2, 9.5, 0, 0});
  trace.add({Kind::application, 2, 0, -1, -1, 10, 11, 0, 0});
  trace.add({Kind::commit, 2, kCommitLaneNumber, -1, -1, 9.8, 10.5, 0, 0});
  trace.add({Kind::write, 2, kIoLaneNumber, 0, 0, 9.9, 11.5, 12, 4096});
  trace.add({Kind::application, 2, kIoLaneNumber, -1, -1, 11, 12, 0, 0});
  trace_plan(trace, 2, 10.0, 0,
             plan_timeline(step.costs, order_jobs(step.costs, OrderRule::given), 1), step.jobs,
             step.plans, step.forecasts);
  std::map<int, std::string> rows;
  std::map<std::string, int> n_events;
  const json document = json::parse(trace_json(trace.take(), {}));
  for (const json& entry : document["traceEvents"]) {
    EXPECT_EQ(entry["pid"], 2);
    if (entry["name"] == "thread_name") rows[entry["tid"]] = entry["args"]["name"];
  }
  for (const json& entry : document["traceEvents"]) {
    if (entry["ph"] == "X") ++n_events[rows[entry["tid"]]];
  }
  EXPECT_EQ(n_events, (std::map<std::string, int>{{"main", 3},
                                                  {"application's I/O", 1},
                                                  {"I/O", 1},
                                                  {"commit", 1},
                                                  {"plan: main", 3},
                                                  {"plan: I/O", 3}}));
}

}  // namespace
}  // namespace tailrace
