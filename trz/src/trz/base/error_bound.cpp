// Parses error bounds and resolves them to absolute bounds.

#include "trz/base/error_bound.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "trz/base/near_names.hpp"

namespace tailrace {
namespace {

constexpr std::array<std::pair<BoundMode, std::string_view>, 5> kModes = {{
    {BoundMode::none, "none"},
    {BoundMode::abs, "abs"},
    {BoundMode::rel, "rel"},
    {BoundMode::psnr, "psnr"},
    {BoundMode::pw_rel, "pw_rel"},
}};

std::string hint_of_mode(std::string_view text) {
  std::array<std::string_view, kModes.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kModes[i].second;
  return did_you_mean(text, names);
}

Status bad_bound(std::string_view text, std::string_view why) {
  return Status(Code::invalid_argument, "bound \"" + std::string(text) + "\": " + std::string(why));
}

}  // namespace

std::string_view bound_mode_name(BoundMode mode) {
  return kModes[static_cast<std::size_t>(mode)].second;
}

Result<ErrorBound> parse_error_bound(std::string_view text) {
  text = trimmed(text);
  if (text == "none") return ErrorBound{};
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return bad_bound(text, "expected abs=VALUE, rel=VALUE, psnr=VALUE, pw_rel=VALUE or none" +
                               hint_of_mode(text));
  }
  ErrorBound bound;
  const std::string_view given = trimmed(text.substr(0, equals));
  for (const auto& [mode, name] : kModes) {
    if (name == given) bound.mode = mode;
  }
  if (bound.mode == BoundMode::none) {
    return bad_bound(
        text, "the mode is unknown; expected abs, rel, psnr or pw_rel" + hint_of_mode(given));
  }
  const std::string_view number = trimmed(text.substr(equals + 1));
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, bound.value);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return bad_bound(text, "\"" + std::string(number) + "\" is not a number");
  }
  if (!(bound.value > 0) || !std::isfinite(bound.value)) {
    return bad_bound(text, "the value must be finite and > 0");
  }
  if (bound.mode == BoundMode::pw_rel && bound.value >= 1) {
    return bad_bound(text, "the value must be < 1; with 1 or more, every value may become 0");
  }
  if (bound.mode == BoundMode::rel && bound.value >= 1) {
    return bad_bound(text,
                     "the value must be < 1; with 1 or more, every value may become any other");
  }
  return bound;
}

std::string number_text(double number) {
  std::array<char, 32> digits{};
  const auto printed = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return std::string(digits.data(), printed.ptr);
}

std::string error_bound_text(const ErrorBound& bound) {
  if (bound.lossless()) return "none";
  return std::string(bound_mode_name(bound.mode)) + "=" + number_text(bound.value);
}

double absolute_bound(const ErrorBound& bound, double least, double greatest) {
  const double range = greatest > least ? greatest - least : 0.0;
  switch (bound.mode) {
    case BoundMode::none:
    case BoundMode::pw_rel: return 0;
    case BoundMode::abs: return bound.value;
    case BoundMode::rel:  // the range of huge values of both signs may overflow; the product cannot
      return std::isfinite(range) ? bound.value * range
                                  : bound.value * greatest - bound.value * least;
    case BoundMode::psnr: return range * std::pow(10.0, -bound.value / 20.0);
  }
  return 0;
}

}  // namespace tailrace
