// Tiers of tests (CONTRIBUTING.md, "Tiers"), as ./test and scripts/ci-full set them in the
// environment: TAILRACE_TEST_TIER is quick, merge or full. A test started by hand runs in full.

#pragma once

#include <cstdlib>
#include <string_view>

namespace tailrace::test {

/// Name of the tier that runs. Default: "full".
inline std::string_view test_tier() {
  const char* const tier = std::getenv("TAILRACE_TEST_TIER");
  return tier == nullptr ? std::string_view("full") : std::string_view(tier);
}

inline bool is_tier(std::string_view name) {
  return name == "quick" || name == "merge" || name == "full";
}

/// Increment for a loop over every point of failure: 1 in the full tier, else `merge_stride`.
inline int tier_stride(int merge_stride) { return test_tier() == "full" ? 1 : merge_stride; }

}  // namespace tailrace::test
