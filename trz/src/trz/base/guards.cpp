// Parses guards and derives limits on values from them.

#include "trz/base/guards.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <utility>

#include "trz/base/error_bound.hpp"
#include "trz/base/near_names.hpp"

namespace tailrace {
namespace {

Status bad_guard(std::string_view text, const std::string& why) {
  return Status(Code::invalid_argument, "guard \"" + std::string(text) + "\": " + why);
}

/// Parse the number after "threshold=" or "gradient=". @error invalid_argument  not a finite number
Result<double> guard_number(std::string_view text, std::string_view number) {
  double value = 0;
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value)) {
    return bad_guard(text, "\"" + std::string(number) + "\" is not a finite number");
  }
  return value;
}

/// Parse a number that limits errors and must therefore be > 0. @error invalid_argument
Result<double> guard_limit(std::string_view text, std::string_view number) {
  constexpr double kParts = 4 * kMaxRank;  // The most by which bound_within() divides a limit.
  TAILRACE_TAKE(const double value, guard_number(text, number));
  if (value > 0 && value / kParts > 0) return value;
  return bad_guard(text, "\"" + std::string(number) + "\" must be > 0");
}

/// Remove the first guard from `rest` and return it. The '+' in "1e+3" is not a separator.
std::string_view next_guard(std::string_view& rest) {
  std::size_t end = rest.find('+');
  const auto is_exponent = [&](std::size_t at) {
    return at > 0 && (rest[at - 1] == 'e' || rest[at - 1] == 'E') &&
           rest.substr(0, at).find('=') != std::string_view::npos;
  };
  const auto is_sign = [&](std::size_t at) {
    return at > 0 && (rest[at - 1] == '=' || rest[at - 1] == ':');
  };
  while (end != std::string_view::npos && (is_exponent(end) || is_sign(end))) {
    end = rest.find('+', end + 1);
  }
  const std::string_view guard = trimmed(rest.substr(0, end));
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return guard;
}

constexpr std::size_t kMostOfOneKind = 64;

Status add_threshold(std::string_view guard, std::string_view number, Guards& guards) {
  TAILRACE_TAKE(const double value, guard_number(guard, number));
  if (guards.thresholds.size() == kMostOfOneKind) {
    return bad_guard(guard, "more than 64 thresholds");
  }
  guards.thresholds.push_back(value == 0 ? 0.0 : value);
  return Status();
}

Status add_limit(std::string_view guard, std::string_view number, double& limit) {
  if (limit > 0) return bad_guard(guard, "is given twice");
  TAILRACE_TAKE(limit, guard_limit(guard, number));
  return Status();
}

Status add_function(std::string_view guard, FunctionGuard function, std::string_view limit,
                    Guards& guards) {
  constexpr double kMostOfLogarithm = 100;  // A ratio beyond e^100 is not a useful bound.
  const auto same = [&](const FunctionGuard& other) { return other.exponent == function.exponent; };
  if (std::ranges::any_of(guards.functions, same)) return bad_guard(guard, "is given twice");
  TAILRACE_TAKE(function.most, guard_limit(guard, limit));
  if (function.logarithm() && function.most > kMostOfLogarithm) {
    return bad_guard(guard, "the limit must be at most 100");
  }
  guards.functions.push_back(function);
  return Status();
}

Status add_power(std::string_view guard, std::string_view numbers, Guards& guards) {
  constexpr double kMostExponent = 8;
  const std::size_t colon = numbers.find(':');
  if (colon == std::string_view::npos) {
    return bad_guard(guard, "it needs an exponent and a number: power=P:X");
  }
  TAILRACE_TAKE(const double exponent, guard_number(guard, numbers.substr(0, colon)));
  const bool whole = exponent == std::floor(exponent) && std::fabs(exponent) <= kMostExponent;
  if (exponent == 0 || !(whole || exponent == 0.5)) {
    return bad_guard(guard,
                     "the exponent must be 0.5, or a whole number from -8 to 8 other than 0");
  }
  return add_function(guard, {exponent, 0}, numbers.substr(colon + 1), guards);
}

Status add_axis(std::string_view guard, std::string_view number, Guards& guards) {
  TAILRACE_TAKE(const double axis, guard_number(guard, number));
  if (!(axis >= 0) || axis >= static_cast<double>(kMaxRank) || axis != std::floor(axis)) {
    return bad_guard(guard, "the axis must be a whole number from 0 (the slowest) to " +
                                std::to_string(kMaxRank - 1));
  }
  guards.monotone.push_back(static_cast<int>(axis));
  return Status();
}

Status add_region(std::string_view guard, std::string_view text, Guards& guards) {
  if (guards.regions.size() == kMostOfOneKind) return bad_guard(guard, "more than 64 regions");
  Result<RegionGuard> region = parse_region(text);
  if (!region.ok()) return bad_guard(guard, region.status().message());
  guards.regions.push_back(std::move(*region));
  return Status();
}

Status add_flag(std::string_view guard, std::string_view name, bool has_number, Guards& guards) {
  bool* const flag = name == "sign"     ? &guards.sign
                     : name == "zero"   ? &guards.zero
                     : name == "minmax" ? &guards.minmax
                     : name == "sum"    ? &guards.sum
                                        : nullptr;
  if (flag == nullptr) {
    constexpr std::array<std::string_view, 12> names = {
        "none",      "sign", "zero",  "threshold", "minmax",   "gradient",
        "laplacian", "log",  "power", "sum",       "monotone", "region"};
    return bad_guard(
        guard,
        "expected none, or one or more of sign, zero, threshold=X, minmax, gradient=X, "
        "laplacian=X, log=X, power=P:X, sum, monotone=AXIS, region=WHERE:X, joined by +" +
            did_you_mean(name, names));
  }
  if (has_number) return bad_guard(guard, "it takes no number");
  *flag = true;
  return Status();
}

Status add_guard(std::string_view guard, Guards& guards) {
  const std::size_t equals = guard.find('=');
  const bool has_number = equals != std::string_view::npos;
  const std::string_view name = trimmed(guard.substr(0, equals));
  const std::string_view number = has_number ? trimmed(guard.substr(equals + 1)) : "";
  const auto needs = [&](const char* form) {
    return has_number ? Status() : bad_guard(guard, "it needs a number: " + std::string(form));
  };
  if (name == "threshold") {
    TAILRACE_TRY(needs("threshold=X"));
    return add_threshold(guard, number, guards);
  }
  if (name == "gradient") {
    TAILRACE_TRY(needs("gradient=X"));
    return add_limit(guard, number, guards.gradient);
  }
  if (name == "laplacian") {
    TAILRACE_TRY(needs("laplacian=X"));
    return add_limit(guard, number, guards.laplacian);
  }
  if (name == "log") {
    TAILRACE_TRY(needs("log=X"));
    return add_function(guard, {0, 0}, number, guards);
  }
  if (name == "power") {
    TAILRACE_TRY(needs("power=P:X"));
    return add_power(guard, number, guards);
  }
  if (name == "monotone") {
    TAILRACE_TRY(needs("monotone=AXIS"));
    return add_axis(guard, number, guards);
  }
  if (name == "region") {
    TAILRACE_TRY(needs("region=WHERE:X"));
    return add_region(guard, number, guards);
  }
  return add_flag(guard, name, has_number, guards);
}

template <class T>
void sort_out(std::vector<T>& some) {
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
}

/// e^x - 1 for 0 < x <= 100, in arithmetic that gives the same result on every machine. The
/// relative error is below 2^-44.
double exponential_less_1(double x) {
  int n_halved = 0;
  for (; x > 0.5; x /= 2) ++n_halved;
  double term = x;
  double sum = 0;
  for (int k = 2; term > sum * 0x1p-60; ++k) {
    sum += term;
    term *= x / k;
  }
  for (; n_halved > 0; --n_halved) sum *= sum + 2;
  return sum;
}

double raised(double x, double exponent) {
  if (exponent == 0.5) return std::sqrt(x);
  double power = x;
  for (int k = 1; k < static_cast<int>(std::fabs(exponent)); ++k) power *= x;
  return exponent < 0 ? 1 / power : power;
}

template <class T>
double half_ulp(T greatest_magnitude) {
  // The largest finite number has an infinite successor; the spacing below it has the same size.
  constexpr T kGreatest = std::numeric_limits<T>::max();
  const T at = std::min(greatest_magnitude, std::nextafter(kGreatest, T(0)));
  return (static_cast<double>(std::nextafter(at, kGreatest)) - static_cast<double>(at)) / 2;
}

}  // namespace

double Guards::bound_within(double absolute_bound, std::size_t n_axes) const {
  double bound = absolute_bound;
  if (gradient > 0) bound = std::min(bound, gradient / 2);
  if (laplacian > 0 && n_axes > 0) {
    // A second difference along one axis adds up 1, 2 and 1 times an error.
    const double n_errors = 4 * static_cast<double>(n_axes);
    const double share = laplacian / n_errors;
    const bool rounded_up = std::fma(share, n_errors, -laplacian) > 0;
    bound = std::min(bound, rounded_up ? std::nextafter(share, 0.0) : share);
  }
  return bound;
}

Result<Guards> parse_guards(std::string_view text) {
  text = trimmed(text);
  Guards guards;
  if (text == "none") return guards;
  if (text.empty() || text.back() == '+') {
    return bad_guard(text, "a guard is missing");
  }
  for (std::string_view rest = text; !rest.empty();) {
    TAILRACE_TRY(add_guard(next_guard(rest), guards));
  }
  sort_out(guards.thresholds);
  sort_out(guards.monotone);
  sort_out(guards.regions);
  std::ranges::sort(guards.functions, {}, &FunctionGuard::exponent);
  if (guards_text(guards).size() > kGuardsTextBytesMax) {
    return bad_guard(text.substr(0, 80),
                     "longer than " + std::to_string(kGuardsTextBytesMax) + " bytes");
  }
  return guards;
}

std::string guards_text(const Guards& guards) {
  std::string text;
  const auto add = [&](const std::string& guard) { text += (text.empty() ? "" : "+") + guard; };
  if (guards.sign) add("sign");
  if (guards.zero) add("zero");
  for (const double threshold : guards.thresholds) add("threshold=" + number_text(threshold));
  if (guards.minmax) add("minmax");
  if (guards.gradient > 0) add("gradient=" + number_text(guards.gradient));
  if (guards.laplacian > 0) add("laplacian=" + number_text(guards.laplacian));
  for (const auto& [exponent, most] : guards.functions) {
    add(exponent == 0 ? "log=" + number_text(most)
                      : "power=" + number_text(exponent) + ":" + number_text(most));
  }
  if (guards.sum) add("sum");
  for (const int axis : guards.monotone) add("monotone=" + std::to_string(axis));
  for (const RegionGuard& region : guards.regions) add("region=" + region_text(region));
  return text.empty() ? "none" : text;
}

Result<Guards> guards_to_continue(std::string_view recorded) {
  if (recorded.empty()) return Guards();
  Result<Guards> guards = parse_guards(recorded);
  if (guards.ok() && !guards->of_all() && !has_masks(guards->regions)) return guards;
  return Status(Code::unsupported, "its values keep guard=" + std::string(recorded.substr(0, 80)) +
                                       ", which added values could break");
}

FunctionLimit::FunctionLimit(const FunctionGuard& guard)
    : exponent_(guard.exponent), most_(guard.most) {
  if (!guard.logarithm()) return;
  up_ = exponential_less_1(guard.most);
  down_ = up_ / (1 + up_);
}

/// Bound on the excess of f's change over the limit; <= 0: within the limit.
/// @param side  1: an upper bound on the excess; -1: a lower bound.
double FunctionLimit::least_excess(double x, double y, double side) const {
  constexpr double kTooFar = 1;
  if (exponent_ == 0) {
    if (!(x > 0) || !(y > 0)) return kTooFar;
    const double allowed = x * (y > x ? up_ : down_);
    const double rounding = allowed * 0x1p-40 + std::numeric_limits<double>::denorm_min();
    return std::fabs(y - x) - allowed + side * rounding;
  }
  // At most eight multiplications, a division and a subtraction, each with an error below 2^-53.
  const double before = raised(x, exponent_);
  const double after = raised(y, exponent_);
  if (!(std::fabs(before) < 0x1p1022) || !std::isfinite(after)) return kTooFar;
  const double rounding = (std::fabs(before) + std::fabs(after)) * 0x1p-48 + 0x1p-1000;
  return std::fabs(after - before) - most_ + side * rounding;
}

ValueGuards::ValueGuards(const Guards& guards, double least_value, double greatest_value)
    : zeros(guards.sign || guards.zero),
      thresholds(guards.thresholds),
      functions(guards.functions.begin(), guards.functions.end()),
      extremes(guards.minmax),
      least(least_value),
      greatest(greatest_value),
      sum(guards.sum) {
  if (guards.sign && !std::ranges::binary_search(thresholds, 0.0)) thresholds.push_back(0);
  for (const int axis : guards.monotone) orders.push_back({static_cast<std::size_t>(axis), false});
}

// The factor 1.01 allows an encoder to lose a hundredth of it to rounding while it sums.
double sum_tolerance(float greatest_magnitude) { return 1.01 * half_ulp(greatest_magnitude); }
double sum_tolerance(double greatest_magnitude) { return 1.01 * half_ulp(greatest_magnitude); }

}  // namespace tailrace
