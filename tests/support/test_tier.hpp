// Tiers of tests (CONTRIBUTING.md, "Tiers"), as ./test and scripts/ci-full set them in the
// environment: TAILRACE_TEST_TIER is quick, merge or full. A test started by hand runs in full.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "support/sanitized.hpp"

namespace tailrace::test {

/// Name of the tier that runs. Default: "full".
inline std::string_view test_tier() {
  const char* const tier = std::getenv("TAILRACE_TEST_TIER");
  return tier == nullptr ? std::string_view("full") : std::string_view(tier);
}

/// Factor by which the quick and merge tiers reduce points and inputs under a sanitizer.
inline constexpr int kThinnerWhenSanitized = 3;

inline bool is_tier(std::string_view name) {
  return name == "quick" || name == "merge" || name == "full";
}

/// Increment for a loop over every point of failure or combination: 1 in the full tier, else
/// `merge_stride`. Under a sanitizer the increment is larger, because a sanitizer checks which code
/// runs rather than the results for each value.
inline int tier_stride(int merge_stride) {
  if (test_tier() == "full") return 1;
  return kSanitized ? (kThinnerWhenSanitized * merge_stride) | 1 : merge_stride;
}

/// Rounds of a loop over random inputs: `n` in the full tier, else one of every `merge_part`.
inline int tier_rounds(int n, int merge_part) {
  if (test_tier() == "full") return n;
  return std::max(n / (kSanitized ? kThinnerWhenSanitized * merge_part : merge_part), 1);
}

/// Selects one of every tier_stride(merge_stride) candidates, starting with the first. Under a
/// sanitizer it selects half as many. The selection is the same in each run, and a hash keeps it
/// from following the period of a grid's inner loops.
class TierSample {
 public:
  explicit TierSample(int merge_stride)
      : part_(std::uint64_t(tier_stride(kSanitized ? 2 * merge_stride : merge_stride))) {}
  bool take() {
    std::uint64_t mixed = n_++;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return (mixed ^ (mixed >> 31)) % part_ == 0;
  }

 private:
  std::uint64_t part_;
  std::uint64_t n_ = 0;
};

}  // namespace tailrace::test
