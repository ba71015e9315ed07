#include "core/losses.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/encoding_notes.hpp"
#include "trz/base/near_names.hpp"

namespace tailrace {
namespace {

constexpr std::string_view kThen = " then ";
/// Limit on the losses read from a file, because a file may contain anything.
constexpr std::size_t kMostLosses = 64;

/// Registered filters that may change values; a codec's error adds to theirs. Scale-offset (6),
/// FPZIP (32014), ZFP (32013), SZ (32017), FCIDECOMP (32018), JPEG (32019), SZ3 (32024), SPERR
/// (32028), granular bit round (32022), bit round (37373), EBCC (308).
constexpr std::array<std::uint32_t, 11> kLossyFilters = {6,     32013, 32014, 32017, 32018, 32019,
                                                         32022, 32024, 32028, 37373, 308};

/// Return the least double that is at least a + b (Knuth's TwoSum yields the rounding error).
double sum_rounded_up(double a, double b) {
  const double sum = a + b;
  const double b_virtual = sum - a;
  const double a_virtual = sum - b_virtual;
  const double residual = (a - a_virtual) + (b - b_virtual);
  return residual > 0 ? std::nextafter(sum, std::numeric_limits<double>::infinity()) : sum;
}

double pointwise_rounded_up(double a, double b) {
  const long double exact = static_cast<long double>(a) + b + static_cast<long double>(a) * b;
  const auto total = static_cast<double>(exact);
  return total < exact ? std::nextafter(total, 1.0) : total;
}

}  // namespace

std::string losses_text(const Losses& losses) {
  std::string text;
  for (const ErrorBound& loss : losses) {
    if (!text.empty()) text += kThen;
    text += loss.lossless() ? std::string(kUnknownWord) : error_bound_text(loss);
  }
  return text;
}

Result<Losses> parse_losses(std::string_view text) {
  Losses losses;
  while (!text.empty()) {
    const std::size_t end = text.find(kThen);
    const std::string_view one = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + kThen.size());
    ErrorBound loss;
    if (one != kUnknownWord) {
      constexpr std::array<std::string_view, 3> names = {"abs", "pw_rel", kUnknownWord};
      const std::string_view mode = trimmed(one.substr(0, one.find('=')));
      if (mode != names[0] && mode != names[1]) {
        return Status(Code::invalid_argument, "loss \"" + std::string(one) +
                                                  "\": expected abs=X, pw_rel=X or unknown" +
                                                  did_you_mean(mode, names));
      }
      TAILRACE_TAKE(loss, parse_error_bound(one));
    }
    if (losses.size() == kMostLosses) {
      return Status(Code::invalid_argument,
                    "too many losses, at most " + std::to_string(kMostLosses) + " are possible");
    }
    losses.push_back(loss);
  }
  return losses;
}

std::optional<ErrorBound> total_of(const Losses& losses) {
  ErrorBound total;
  for (const ErrorBound& loss : losses) {
    if (loss.lossless() || (!total.lossless() && total.mode != loss.mode)) return std::nullopt;
    if (total.lossless()) {
      total = loss;
    } else {
      total.value = loss.mode == BoundMode::abs ? sum_rounded_up(total.value, loss.value)
                                                : pointwise_rounded_up(total.value, loss.value);
    }
    const bool bounded =
        total.mode == BoundMode::abs ? std::isfinite(total.value) : total.value < 1;
    if (!bounded) return std::nullopt;
  }
  return total;
}

std::optional<Losses> losses_since(const Losses& all, const Losses& earlier) {
  if (earlier.size() > all.size()) return std::nullopt;
  if (!std::equal(earlier.begin(), earlier.end(), all.begin())) return std::nullopt;
  return Losses(all.begin() + static_cast<std::ptrdiff_t>(earlier.size()), all.end());
}

bool always_lossy(std::uint32_t filter_id) {
  return std::ranges::find(kLossyFilters, filter_id) != kLossyFilters.end();
}

Losses losses_of(const LossFacts& facts) {
  const Losses unknown{ErrorBound()};
  if (!facts.recorded.empty()) {
    Result<Losses> recorded = parse_losses(facts.recorded);
    return recorded.ok() ? *recorded : unknown;
  }
  const bool silent = facts.mode.empty() || facts.mode == kUnknownWord;
  if (silent) return facts.lossy_filter ? unknown : Losses();
  if (facts.mode == bound_mode_name(BoundMode::pw_rel)) {
    const double share = facts.requested.value_or(0);
    return share > 0 && share < 1 ? Losses{{BoundMode::pw_rel, share}} : unknown;
  }
  const bool exact = facts.mode == bound_mode_name(BoundMode::none);
  const double bound = facts.absolute_bound.value_or(exact ? 0 : -1);
  if (bound == 0) return {};
  return bound > 0 && std::isfinite(bound) ? Losses{{BoundMode::abs, bound}} : unknown;
}

}  // namespace tailrace
