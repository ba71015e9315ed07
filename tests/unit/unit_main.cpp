// main() of the unit tests: GoogleTest's, with fewer rank counts in the lower tiers.
//
// Tests that differ only in rank counts end in "_3", "/3ranks" and the like. The merge tier runs
// each of them on 1 rank and on 3, the quick tier on 3, the full tier on all counts. A test without
// 3 runs on 2, 4 or 7. TAILRACE_TEST_RANKS=n (sanitizers) runs each on n ranks, or on the nearest
// of these. A misspelt tier ends the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5/recover.hpp"
#include "support/test_tier.hpp"

namespace {

/// Full names of tests by rank count, for each test that has several.
std::map<std::string, std::map<int, std::string>> tests_by_ranks() {
  const std::regex with_ranks("(OfRanks/.*[/_]|.*_on_)([0-9])|(.*[/_])([0-9])ranks");
  std::map<std::string, std::map<int, std::string>> found;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(k)->name();
      std::smatch match;
      if (!std::regex_match(name, match, with_ranks)) continue;
      const bool first = match[1].matched;
      found[match[first ? 1 : 3]][std::stoi(match[first ? 2 : 4])] = name;
    }
  }
  return found;
}

/// The rank counts on which a test runs, among those that it has. `wanted` has priority.
std::set<int> chosen_ranks(const std::map<int, std::string>& tests, int wanted, bool also_one) {
  std::set<int> chosen;
  for (const int n : {wanted, 3, 2, 4, 7, 1}) {
    if (chosen.empty() && tests.count(n) > 0) chosen.insert(n);
  }
  if (also_one && tests.count(1) > 0) chosen.insert(1);
  return chosen;
}

/// GoogleTest patterns of the tests that the tier omits.
std::string left_out() {
  const std::string_view tier = tailrace::test::test_tier();
  const char* const ranks = std::getenv("TAILRACE_TEST_RANKS");
  if (tier == "full" && ranks == nullptr) return "";
  std::string patterns;
  for (const auto& [prefix, tests] : tests_by_ranks()) {
    const std::set<int> chosen = ranks == nullptr ? chosen_ranks(tests, 3, tier == "merge")
                                                  : chosen_ranks(tests, std::atoi(ranks), false);
    for (const auto& [n, name] : tests) {
      if (chosen.count(n) == 0) patterns += ":" + name;
    }
  }
  return patterns;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (!tailrace::test::is_tier(tailrace::test::test_tier())) {
    std::fprintf(stderr, "TAILRACE_TEST_TIER is not quick, merge or full\n");
    return 2;
  }
  const std::string patterns = left_out();
  std::string& filter = testing::GTEST_FLAG(filter);
  if (!patterns.empty()) filter += (filter.find('-') == std::string::npos ? "-" : "") + patterns;
  const int result = RUN_ALL_TESTS();
  tailrace::silence_hdf5();
  return result;
}
