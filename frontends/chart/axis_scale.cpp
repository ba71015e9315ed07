// Intervals and ticks of axes.

#include "chart/axis_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace tailrace::chart {
namespace {

constexpr int kFewDecades = 3;         ///< Up to this number, 2 and 5 of a decade may have labels.
constexpr int kMinorDecades = 8;       ///< Up to this number, 2...9 of each decade have ticks.
constexpr int kPlainExponentLow = -3;  ///< Decades outside these are written as powers of ten.
constexpr int kPlainExponentHigh = 4;

/// 10^exponent, correctly rounded (pow of a negative integer may not be).
double ten_to(int exponent) {
  return exponent < 0 ? 1 / std::pow(10.0, -exponent) : std::pow(10.0, exponent);
}

/// digit * 10^exponent.
double decimal(double digit, int exponent) {
  return exponent < 0 ? digit / std::pow(10.0, -exponent) : digit * std::pow(10.0, exponent);
}

/// A step of 1, 2 or 5 times a power of ten, as a digit and an exponent.
struct Step {
  double digit = 1;
  int exponent = 0;
  double value() const { return decimal(digit, exponent); }
};

/// Smallest Step of which `span` contains at most `n_labels`.
Step nice_step(double span, std::size_t n_labels) {
  const double wanted = span / static_cast<double>(std::max<std::size_t>(n_labels, 1));
  Step step;
  step.exponent = static_cast<int>(std::floor(std::log10(wanted)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    step.digit = digit;
    if (step.value() >= wanted * (1 - 1e-9)) return step;
  }
  return {1, step.exponent + 1};
}

/// Largest number of the form 1, 2 or 5 times a power of ten that is at most `value`.
double round_below(double value) {
  const int exponent = static_cast<int>(std::floor(std::log10(value)));
  for (const double digit : {5.0, 2.0, 1.0}) {
    if (decimal(digit, exponent) <= value * (1 + 1e-9)) return decimal(digit, exponent);
  }
  return decimal(5, exponent - 1);
}

double round_above(double value) {
  const int exponent = static_cast<int>(std::floor(std::log10(value)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (decimal(digit, exponent) >= value * (1 - 1e-9)) return decimal(digit, exponent);
  }
  return ten_to(exponent + 1);
}

/// Power of ten that all labels share, a multiple of 3; 0 if the numbers are short without it.
int label_exponent(double least, double greatest) {
  const double size = std::max(std::abs(least), std::abs(greatest));
  if (size == 0 || (size >= 1e-2 && size < 1e6)) return 0;
  return static_cast<int>(std::floor(std::log10(size * (1 + 1e-9)) / 3)) * 3;
}

std::vector<Tick> linear_ticks(const AxisScale& scale, std::size_t n_labels) {
  const double low = std::min(scale.least, scale.greatest);
  const double high = std::max(scale.least, scale.greatest);
  const Step step = nice_step(high - low, n_labels);
  const int n_decimals = std::max(0, scale.exponent - step.exponent);
  std::vector<Tick> ticks;
  const double slack = (high - low) * 1e-9;
  // Count in steps, so that ticks far from 0 do not accumulate rounding errors.
  const double first = std::ceil((low - slack) / step.value());
  const double last = std::floor((high + slack) / step.value());
  for (double n = first; n <= last; ++n) {
    const double value = decimal(n * step.digit, step.exponent);
    const double shown = decimal(n * step.digit, step.exponent - scale.exponent);
    ticks.push_back({value, fmt::format("{:.{}f}", shown + 0.0, n_decimals)});
  }
  return ticks;
}

std::string log_label(int digit, int exponent, bool as_power) {
  if (!as_power) return fmt::format("{:g}", decimal(digit, exponent));
  if (digit == 1) return power_of_ten(exponent);
  return fmt::format("{}×{}", digit, power_of_ten(exponent));
}

std::vector<Tick> log_ticks(const AxisScale& scale, std::size_t n_labels) {
  const int low = static_cast<int>(std::floor(std::log10(scale.least) + 1e-9));
  const int high = static_cast<int>(std::ceil(std::log10(scale.greatest) - 1e-9));
  const int n_decades = std::max(high - low, 1);
  const bool as_power = low < kPlainExponentLow || high > kPlainExponentHigh;
  const auto wanted = static_cast<int>(std::max<std::size_t>(n_labels, 1));
  const int stride = n_decades / wanted + 1;
  const bool halves = n_decades <= kFewDecades && 3 * n_decades <= 2 * wanted + 1;
  std::vector<Tick> ticks;
  for (int exponent = low; exponent <= high; ++exponent) {
    for (int digit = 1; digit <= 9; ++digit) {
      const double value = decimal(digit, exponent);
      if (value < scale.least * (1 - 1e-9) || value > scale.greatest * (1 + 1e-9)) continue;
      const bool labelled =
          digit == 1 ? exponent % stride == 0 : halves && (digit == 2 || digit == 5);
      if (labelled) {
        ticks.push_back({value, log_label(digit, exponent, as_power)});
      } else if (digit == 1 || n_decades <= kMinorDecades) {
        ticks.push_back({value, ""});
      }
    }
  }
  return ticks;
}

/// Widen an interval of width 0, so that a single value lies in the middle.
void give_width(AxisScale& scale) {
  if (scale.logarithmic) {
    scale.least /= 2;
    scale.greatest *= 2;
  } else {
    const double margin = scale.least == 0 ? 1 : std::abs(scale.least) / 2;
    scale.least -= margin;
    scale.greatest += margin;
  }
}

}  // namespace

bool AxisScale::can_show(double value) const {
  return std::isfinite(value) && (!logarithmic || value > 0);
}

double AxisScale::position(double value) const {
  if (logarithmic) {
    return (std::log(value) - std::log(least)) / (std::log(greatest) - std::log(least));
  }
  // Halve the operands, because the difference of the ends may overflow.
  return (value / 2 - least / 2) / (greatest / 2 - least / 2);
}

void extend(DataRange& range, double value, bool logarithmic) {
  if (!std::isfinite(value) || (logarithmic && value <= 0)) return;
  // Numbers near the ends of double's range would leave no room for round limits.
  constexpr double smallest = 1e-280;
  value = std::clamp(value, -1 / smallest, 1 / smallest);
  if (std::abs(value) < smallest) value = logarithmic ? smallest : 0;
  range.least = std::min(range.least, value);
  range.greatest = std::max(range.greatest, value);
}

AxisScale fit_axis(const Axis& axis, const DataRange& data, std::size_t n_labels) {
  AxisScale scale;
  scale.logarithmic = axis.logarithmic;
  if (data.empty()) {
    scale.least = axis.logarithmic ? 1 : 0;
    scale.greatest = axis.logarithmic ? 10 : 1;
  } else {
    scale.least = data.least;
    scale.greatest = data.greatest;
  }
  const bool least_given = axis.least && scale.can_show(*axis.least);
  const bool greatest_given = axis.greatest && scale.can_show(*axis.greatest);
  if (least_given) scale.least = *axis.least;
  if (greatest_given) scale.greatest = *axis.greatest;
  if (!axis.logarithmic && !least_given && scale.least > 0 && scale.least <= scale.greatest / 4) {
    scale.least = 0;
  }
  // Rounding would make the count of steps meaningless in a narrower interval.
  const double size = std::max(std::abs(scale.least), std::abs(scale.greatest));
  if (!(scale.greatest - scale.least > 1e-12 * size)) {
    if (greatest_given && !least_given) scale.least = scale.greatest;
    scale.greatest = scale.least;
    give_width(scale);
  }
  if (axis.logarithmic) {
    if (!least_given) scale.least = round_below(scale.least);
    if (!greatest_given) scale.greatest = round_above(scale.greatest);
  } else {
    const double step = nice_step(scale.greatest - scale.least, n_labels).value();
    if (!least_given) scale.least = std::floor(scale.least / step + 1e-9) * step;
    if (!greatest_given) scale.greatest = std::ceil(scale.greatest / step - 1e-9) * step;
    scale.exponent = label_exponent(scale.least, scale.greatest);
  }
  return scale;
}

std::vector<Tick> axis_ticks(const AxisScale& scale, std::size_t n_labels) {
  return scale.logarithmic ? log_ticks(scale, n_labels) : linear_ticks(scale, n_labels);
}

std::string power_of_ten(int exponent) {
  static constexpr std::array<std::string_view, 10> raised = {"⁰", "¹", "²", "³", "⁴",
                                                              "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) {
    text += raised[static_cast<std::size_t>(digit - '0')];
  }
  return text;
}

std::string short_number(double value, int n_digits) {
  if (!std::isfinite(value)) return "";
  const double size = std::abs(value);
  if (size == 0 || (size >= 1e-4 && size < 1e6)) {
    // "{:g}" switches to powers of ten if the integer part has more digits than the precision.
    const int before = size < 1 ? 1 : static_cast<int>(std::floor(std::log10(size))) + 1;
    return fmt::format("{:.{}g}", value, std::max(n_digits, before));
  }
  const int exponent = static_cast<int>(std::floor(std::log10(size)));
  return fmt::format("{:.{}g}×{}", decimal(value, -exponent), n_digits, power_of_ten(exponent));
}

}  // namespace tailrace::chart
