// Parsing of error bounds and their resolution to an absolute one.

#include "core/error_bound.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace tailrace {
namespace {

constexpr std::array<std::pair<BoundMode, std::string_view>, 5> kModes = {{
    {BoundMode::none, "none"},
    {BoundMode::abs, "abs"},
    {BoundMode::rel, "rel"},
    {BoundMode::psnr, "psnr"},
    {BoundMode::pw_rel, "pw_rel"},
}};

Status bad_bound(std::string_view text, std::string_view why) {
  return Status(Code::invalid_argument, "bound \"" + std::string(text) + "\": " + std::string(why));
}

}  // namespace

std::string_view bound_mode_name(BoundMode mode) {
  return kModes[static_cast<std::size_t>(mode)].second;
}

Result<ErrorBound> parse_error_bound(std::string_view text) {
  if (text == "none") return ErrorBound{};
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return bad_bound(text, "expected abs=VALUE, rel=VALUE, psnr=VALUE, pw_rel=VALUE or none");
  }
  ErrorBound bound;
  for (const auto& [mode, name] : kModes) {
    if (name == text.substr(0, equals)) bound.mode = mode;
  }
  if (bound.mode == BoundMode::none) {
    return bad_bound(text, "the mode is unknown; expected abs, rel, psnr or pw_rel");
  }
  const std::string_view number = text.substr(equals + 1);
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, bound.value);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return bad_bound(text, "\"" + std::string(number) + "\" is not a number");
  }
  if (!(bound.value > 0) || !std::isfinite(bound.value)) {
    return bad_bound(text, "the value must be finite and > 0");
  }
  if (bound.mode == BoundMode::pw_rel && bound.value >= 1) {
    return bad_bound(text, "the value must be < 1; from 1 on, every value may become 0");
  }
  return bound;
}

namespace {

/// The shortest text that is this number.
std::string shortest(double number) {
  std::array<char, 32> digits{};
  const auto printed = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return std::string(digits.data(), printed.ptr);
}

}  // namespace

std::string error_bound_text(const ErrorBound& bound) {
  if (bound.lossless()) return "none";
  return std::string(bound_mode_name(bound.mode)) + "=" + shortest(bound.value);
}

double absolute_bound(const ErrorBound& bound, double least, double greatest) {
  const double range = greatest > least ? greatest - least : 0.0;
  switch (bound.mode) {
    case BoundMode::none:
    case BoundMode::pw_rel: return 0;
    case BoundMode::abs: return bound.value;
    case BoundMode::rel:  // the range of huge values of both signs may overflow; its share does not
      return std::isfinite(range) ? bound.value * range
                                  : bound.value * greatest - bound.value * least;
    case BoundMode::psnr: return range * std::pow(10.0, -bound.value / 20.0);
  }
  return 0;
}

// --- Guards

namespace {

Status bad_guard(std::string_view text, const std::string& why) {
  return Status(Code::invalid_argument, "guard \"" + std::string(text) + "\": " + why);
}

/// What stands behind "threshold=" or "gradient=". @error invalid_argument
Result<double> guard_number(std::string_view text, std::string_view number) {
  double value = 0;
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value)) {
    return bad_guard(text, "\"" + std::string(number) + "\" is no finite number");
  }
  return value;
}

/// The first of several guards; `rest` keeps what follows. The '+' of "1e+3" joins nothing.
std::string_view next_guard(std::string_view& rest) {
  std::size_t end = rest.find('+');
  const auto is_exponent = [&](std::size_t at) {
    return at > 0 && (rest[at - 1] == 'e' || rest[at - 1] == 'E') &&
           rest.substr(0, at).find('=') != std::string_view::npos;
  };
  const auto is_sign = [&](std::size_t at) { return at > 0 && rest[at - 1] == '='; };
  while (end != std::string_view::npos && (is_exponent(end) || is_sign(end))) {
    end = rest.find('+', end + 1);
  }
  const std::string_view guard = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return guard;
}

Status add_guard(std::string_view guard, Guards& guards) {
  const std::string_view name = guard.substr(0, guard.find('='));
  const bool has_number = name.size() < guard.size();
  if (name == "threshold" || name == "gradient") {
    if (!has_number) return bad_guard(guard, "it needs a number: " + std::string(name) + "=X");
    TAILRACE_TAKE(const double number, guard_number(guard, guard.substr(name.size() + 1)));
    if (name == "threshold") {
      constexpr std::size_t kMost = 64;
      if (guards.thresholds.size() == kMost) return bad_guard(guard, "more than 64 thresholds");
      guards.thresholds.push_back(number == 0 ? 0.0 : number);
      return Status();
    }
    if (!(number > 0) || number / 2 == 0) return bad_guard(guard, "the gradient must be > 0");
    if (guards.gradient > 0) return bad_guard(guard, "there is a gradient already");
    guards.gradient = number;
    return Status();
  }
  bool* const flag = name == "sign"     ? &guards.sign
                     : name == "zero"   ? &guards.zero
                     : name == "minmax" ? &guards.minmax
                                        : nullptr;
  if (flag == nullptr) {
    return bad_guard(
        guard, "there are sign, zero, threshold=X, minmax, gradient=X, joined by +, and none");
  }
  if (has_number) return bad_guard(guard, "it takes no number");
  *flag = true;
  return Status();
}

}  // namespace

Result<Guards> parse_guards(std::string_view text) {
  Guards guards;
  if (text == "none") return guards;
  if (text.empty() || text.back() == '+') {
    return bad_guard(text, "a guard is missing");
  }
  for (std::string_view rest = text; !rest.empty();) {
    TAILRACE_TRY(add_guard(next_guard(rest), guards));
  }
  std::ranges::sort(guards.thresholds);
  guards.thresholds.erase(std::unique(guards.thresholds.begin(), guards.thresholds.end()),
                          guards.thresholds.end());
  return guards;
}

std::string guards_text(const Guards& guards) {
  std::string text;
  const auto add = [&](const std::string& guard) { text += (text.empty() ? "" : "+") + guard; };
  if (guards.sign) add("sign");
  if (guards.zero) add("zero");
  for (const double threshold : guards.thresholds) add("threshold=" + shortest(threshold));
  if (guards.minmax) add("minmax");
  if (guards.gradient > 0) add("gradient=" + shortest(guards.gradient));
  return text.empty() ? "none" : text;
}

Result<Guards> guards_to_continue(std::string_view recorded) {
  if (recorded.empty()) return Guards();
  Result<Guards> guards = parse_guards(recorded);
  if (guards.ok() && !guards->minmax) return guards;
  return Status(Code::unsupported, "its values keep guard=" + std::string(recorded.substr(0, 80)) +
                                       ", which values that are added could break");
}

ValueGuards::ValueGuards(const Guards& guards, double least_value, double greatest_value)
    : zeros(guards.sign || guards.zero),
      thresholds(guards.thresholds),
      extremes(guards.minmax),
      least(least_value),
      greatest(greatest_value) {
  if (guards.sign && !std::ranges::binary_search(thresholds, 0.0)) thresholds.push_back(0);
}

}  // namespace tailrace
