// Tiers of tests (CONTRIBUTING.md, "Tiers"), as ./test and scripts/ci-full set them in the
// environment: TAILRACE_TEST_TIER is quick, merge or full. A test started by hand runs in full.

#pragma once

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "support/sanitized.hpp"

namespace tailrace::test {

/// Name of the tier that runs. Default: "full".
inline std::string_view test_tier() {
  const char* const tier = std::getenv("TAILRACE_TEST_TIER");
  return tier == nullptr ? std::string_view("full") : std::string_view(tier);
}

inline bool is_tier(std::string_view name) {
  return name == "quick" || name == "merge" || name == "full";
}

/// Increment for a loop over every point of failure or combination: 1 in the full tier, else
/// `merge_stride`, and more under a sanitizer, which asks what code does and not with which values.
/// Odd, so that it meets each choice of a grid whose inner loops have 2, 4 or 8.
inline int tier_stride(int merge_stride) {
  if (test_tier() == "full") return 1;
  return sanitized ? (3 * merge_stride) | 1 : merge_stride;
}

/// Rounds of a loop over random inputs: `n` in the full tier, else one in `merge_part`.
inline int tier_rounds(int n, int merge_part) {
  if (test_tier() == "full") return n;
  return std::max(n / (sanitized ? 3 * merge_part : merge_part), 1);
}

/// Takes every tier_stride-th of what it is asked about, the first one too.
class TierSample {
 public:
  explicit TierSample(int merge_stride) : stride_(tier_stride(merge_stride)) {}
  bool take() { return n_++ % stride_ == 0; }

 private:
  int stride_;
  int n_ = 0;
};

}  // namespace tailrace::test
