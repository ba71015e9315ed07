// Figure 1 of Jin et al. 2024, all four panels, and plans that the checkers refuse.

#include "schedule/flow_shop.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace tailrace {
namespace {

using Order = std::vector<std::size_t>;
using Times = std::vector<double>;

/// Panels (a) and (b). Jobs 1 ... 4 of the figure are 0 ... 3 here.
FlowShop figure_1() {
  FlowShop shop;
  shop.obstacles.main = {{3, 4}, {6, 7}};
  shop.obstacles.io = {{4, 5}};
  shop.jobs = {{1, 2}, {2, 1}, {2, 2}, {3, 2}};
  return shop;
}

std::string refusal_of(const Status& status) { return status.message(); }

// Panel (c). M1 = {1, 3} by encode time, M2 = {4, 2} by falling write time: order 1, 3, 4, 2.
//   R1 [0, 1)   R3 [1, 3)   R4 takes 3: not into [4, 6), so [7, 10)   R2 [10, 12)
//   B1 [1, 3)   B3 is ready at 3 and takes 2: not into [3, 4), so [5, 7)
//   B4 [10, 12)   B2 [12, 13): the plan ends at 13.
TEST(FlowShopFigure1, ExtJohnson) {
  const FlowShop shop = figure_1();
  ASSERT_TRUE(check_flow_shop(shop).ok());
  const FlowShopPlan plan = schedule_flow_shop(shop, Scheduler::ext_johnson);
  EXPECT_EQ(plan.encode_order, (Order{0, 2, 3, 1}));
  EXPECT_EQ(plan.write_order, (Order{0, 2, 3, 1}));
  EXPECT_EQ(plan.encode_start_s, (Times{0, 10, 1, 7}));
  EXPECT_EQ(plan.write_start_s, (Times{1, 12, 5, 10}));
  EXPECT_EQ(plan.makespan_s, 13);
  EXPECT_EQ(refusal_of(check_plan(shop, plan)), "");
}

// Panel (d). Jobs 1, 3, 4 are placed as in (c). R2 takes 2 and fits into [4, 6), which R4 left
// free. B2 is ready at 6 and takes 1; B3 occupies [5, 7), so B2 gets [7, 8). Neither moves R4 or
// B4, and the plan ends at 12.
TEST(FlowShopFigure1, ExtJohnsonBackfilled) {
  const FlowShop shop = figure_1();
  const FlowShopPlan plan = schedule_flow_shop(shop, Scheduler::ext_johnson_bf);
  EXPECT_EQ(plan.encode_order, (Order{0, 2, 1, 3}));
  EXPECT_EQ(plan.write_order, (Order{0, 2, 1, 3}));
  EXPECT_EQ(plan.encode_start_s, (Times{0, 4, 1, 7}));
  EXPECT_EQ(plan.write_start_s, (Times{1, 7, 5, 10}));
  EXPECT_EQ(plan.makespan_s, 12);
  EXPECT_EQ(refusal_of(check_plan(shop, plan)), "");
}

// In the given order: R1 [0, 1), R2 [1, 3), R3 [4, 6), R4 [7, 10); B1 [1, 3), B2 [3, 4), B3 [6, 8),
// B4 [10, 12). Every operation starts as early as possible, so backfilling finds no gap.
TEST(FlowShopFigure1, TheOrderGivenIsAsGood) {
  const FlowShop shop = figure_1();
  for (const Scheduler scheduler : {Scheduler::generation_list, Scheduler::generation_list_bf}) {
    const FlowShopPlan plan = schedule_flow_shop(shop, scheduler);
    EXPECT_EQ(plan.encode_start_s, (Times{0, 1, 4, 7}));
    EXPECT_EQ(plan.write_start_s, (Times{1, 3, 6, 10}));
    EXPECT_EQ(plan.makespan_s, 12);
  }
}

TEST(FlowShopCheck, NamesWhatIsWrongWithAnInstance) {
  FlowShop shop = figure_1();
  shop.jobs[2].write_s = -1;
  EXPECT_NE(refusal_of(check_flow_shop(shop)).find("job 2"), std::string::npos);
  shop = figure_1();
  shop.jobs[1].encode_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal_of(check_flow_shop(shop)).find("job 1"), std::string::npos);
  shop = figure_1();
  shop.obstacles.main[1] = {3.5, 7};
  EXPECT_NE(refusal_of(check_flow_shop(shop)).find("main obstacle 1"), std::string::npos);
  shop.obstacles.main[1] = {7, 7};
  EXPECT_NE(refusal_of(check_flow_shop(shop)).find("main obstacle 1"), std::string::npos);
  shop = figure_1();
  shop.obstacles.io[0].end_s = std::numeric_limits<double>::infinity();
  EXPECT_NE(refusal_of(check_flow_shop(shop)).find("I/O obstacle 0"), std::string::npos);
  shop = figure_1();
  shop.iteration_s = -1;
  EXPECT_NE(refusal_of(check_flow_shop(shop)).find("iteration"), std::string::npos);
  shop = figure_1();
  shop.obstacles.main[1] = {4, 7};  // One obstacle may directly follow another.
  EXPECT_TRUE(check_flow_shop(shop).ok());
}

TEST(FlowShopCheck, RefusesAPlanThatIsNone) {
  const FlowShop shop = figure_1();
  const FlowShopPlan good = schedule_flow_shop(shop, Scheduler::ext_johnson_bf);
  const auto refused = [&](auto&& spoil, std::string_view says) {
    FlowShopPlan plan = good;
    spoil(plan);
    const Status status = check_plan(shop, plan);
    EXPECT_EQ(status.code(), Code::internal);
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  };
  refused([](FlowShopPlan& plan) { plan.encode_start_s[0] = 0.5; }, "before its encode");
  refused([](FlowShopPlan& plan) { plan.encode_start_s[2] = 0.5; }, "overlaps");
  refused([](FlowShopPlan& plan) { plan.encode_start_s[1] = 3.5; }, "obstacle 0");
  refused([](FlowShopPlan& plan) { plan.write_start_s[1] = 6.5; }, "overlaps");
  refused([](FlowShopPlan& plan) { plan.write_start_s[2] = 4.5; }, "overlaps");
  refused([](FlowShopPlan& plan) { plan.makespan_s = 11; }, "makespan");
  refused([](FlowShopPlan& plan) { plan.encode_order = {0, 1, 2, 3}; }, "encode order");
  refused([](FlowShopPlan& plan) { plan.write_order = {0, 2, 1, 1}; }, "write order");
  refused([](FlowShopPlan& plan) { plan.write_order.pop_back(); }, "write order");
  refused([](FlowShopPlan& plan) { plan.encode_start_s.pop_back(); }, "plan");
  refused(
      [](FlowShopPlan& plan) { plan.encode_start_s[0] = std::numeric_limits<double>::quiet_NaN(); },
      "");
}

TEST(FlowShopRegistry, EveryNameIsKnown) {
  for (const SchedulerEntry& entry : scheduler_registry()) {
    const Result<Scheduler> parsed = parse_scheduler(entry.name);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, entry.scheduler);
  }
  const Result<Scheduler> unknown = parse_scheduler("fastest");
  EXPECT_EQ(unknown.status().code(), Code::invalid_argument);
  EXPECT_NE(unknown.status().message().find("two-lists-greedy"), std::string::npos);
}

}  // namespace
}  // namespace tailrace
