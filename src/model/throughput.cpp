// The fit of eq. 1 (Jin et al. 2022, III-B).
//
// For a given exponent and pivot the curve is linear in Cmin and Cmax:
//   S(B) = Cmin * (1 - g) + Cmax * g,  g = min(1, (B / pivot)^a)
// so that least squares need no start values; the two other parameters are searched on a grid.

#include "model/throughput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tailrace {
namespace {

constexpr double kPaperPivot = 3;
constexpr double kPaperExponent = -1.716;  // IV-B: Cmin, Cmax, a = 101.7, 240.6, -1.716
// Flatter than the first is a constant, steeper than the last a step.
constexpr double kFlattest = -0.1;
constexpr double kSteepest = -6;
constexpr int kExponentSteps = 48;
// Rates that lie closer tell noise, not a curve.
constexpr double kLeastSpan = 1.25;
constexpr int kPivotSteps = 64;

/// g of the head comment.
double share_of_greatest(double bit_rate, double pivot, double exponent) {
  return bit_rate <= pivot ? 1 : std::pow(bit_rate / pivot, exponent);
}

/// Root mean square of the relative errors.
double residual_of(const ThroughputCurve& curve, std::span<const ThroughputPoint> points) {
  double sum = 0;
  for (const ThroughputPoint& point : points) {
    const double error = curve.bytes_per_s(point.bit_rate) / point.bytes_per_s - 1;
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(points.size()));
}

/// The constant with the least relative squares.
ThroughputCurve fit_constant(std::span<const ThroughputPoint> points) {
  double inverse = 0;
  double inverse_squares = 0;
  for (const ThroughputPoint& point : points) {
    inverse += 1 / point.bytes_per_s;
    inverse_squares += 1 / (point.bytes_per_s * point.bytes_per_s);
  }
  ThroughputCurve curve;
  curve.least_bytes_per_s = curve.greatest_bytes_per_s = inverse / inverse_squares;
  curve.relative_residual = residual_of(curve, points);
  return curve;
}

/// Of the measured throughputs.
struct Extremes {
  double slowest = std::numeric_limits<double>::infinity();
  double fastest = 0;
};

/// Least squares for Cmin and Cmax at this pivot and exponent. False where the points do not tell
/// them apart or throughput would rise with the bit rate.
bool fit_limits(std::span<const ThroughputPoint> points, const Extremes& measured,
                ThroughputCurve& curve) {
  // Normal equations of relative errors: rows (1 - g, g) / y, right-hand side 1.
  double ll = 0;
  double lg = 0;
  double gg = 0;
  double l1 = 0;
  double g1 = 0;
  for (const ThroughputPoint& point : points) {
    const double g = share_of_greatest(point.bit_rate, curve.pivot_bit_rate, curve.exponent);
    const double low = (1 - g) / point.bytes_per_s;
    const double high = g / point.bytes_per_s;
    ll += low * low;
    lg += low * high;
    gg += high * high;
    l1 += low;
    g1 += high;
  }
  const double determinant = ll * gg - lg * lg;
  if (gg <= 0 || determinant <= 1e-9 * ll * gg) return false;
  curve.least_bytes_per_s = (l1 * gg - g1 * lg) / determinant;
  curve.greatest_bytes_per_s = (g1 * ll - l1 * lg) / determinant;
  // Either limit may lie where nothing was measured; then the other one follows from it.
  if (curve.greatest_bytes_per_s > 2 * measured.fastest) {
    curve.greatest_bytes_per_s = 2 * measured.fastest;
    curve.least_bytes_per_s = (l1 - curve.greatest_bytes_per_s * lg) / ll;
  }
  if (curve.least_bytes_per_s < measured.slowest / 2) {
    curve.least_bytes_per_s = measured.slowest / 2;
    curve.greatest_bytes_per_s =
        std::min((g1 - curve.least_bytes_per_s * lg) / gg, 2 * measured.fastest);
  }
  return curve.greatest_bytes_per_s > curve.least_bytes_per_s;
}

/// From `from` to `to` in equal ratios, both included.
std::vector<double> geometric_grid(double from, double to, int n_steps) {
  std::vector<double> grid;
  for (int i = 0; i <= n_steps; ++i)
    grid.push_back(from * std::pow(to / from, i / double(n_steps)));
  return grid;
}

}  // namespace

double ThroughputCurve::bytes_per_s(double bit_rate) const {
  const double g = share_of_greatest(bit_rate, pivot_bit_rate, exponent);
  return least_bytes_per_s + (greatest_bytes_per_s - least_bytes_per_s) * g;
}

double ThroughputCurve::seconds(double n_bytes, double encoded_bytes) const {
  if (n_bytes <= 0) return 0;
  if (greatest_bytes_per_s <= 0) return std::numeric_limits<double>::infinity();
  return n_bytes / bytes_per_s(32 * encoded_bytes / n_bytes);
}

Result<ThroughputCurve> fit_throughput(std::span<const ThroughputPoint> points) {
  if (points.empty()) return Status(Code::invalid_argument, "throughput: no point to fit");
  std::vector<double> rates;
  Extremes measured;
  for (const ThroughputPoint& point : points) {
    const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
    if (!positive(point.bit_rate) || !positive(point.bytes_per_s)) {
      return Status(Code::invalid_argument,
                    fmt::format("throughput: point of {} bits a value and {} bytes/s, both must be "
                                "positive and finite",
                                point.bit_rate, point.bytes_per_s));
    }
    rates.push_back(point.bit_rate);
    measured.slowest = std::min(measured.slowest, point.bytes_per_s);
    measured.fastest = std::max(measured.fastest, point.bytes_per_s);
  }
  std::sort(rates.begin(), rates.end());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());

  std::vector<double> pivots = {std::min(kPaperPivot, rates.front())};
  if (rates.size() >= 4)
    pivots = geometric_grid(rates.front(), rates[rates.size() - 2], kPivotSteps);
  std::vector<double> exponents = {kPaperExponent};
  if (rates.size() >= 3) exponents = geometric_grid(kFlattest, kSteepest, kExponentSteps);
  ThroughputCurve best = fit_constant(points);
  if (rates.back() < kLeastSpan * rates.front()) return best;
  for (const double pivot : pivots) {
    for (const double exponent : exponents) {
      ThroughputCurve curve;
      curve.pivot_bit_rate = pivot;
      curve.exponent = exponent;
      if (!fit_limits(points, measured, curve)) continue;
      curve.relative_residual = residual_of(curve, points);
      if (curve.relative_residual < best.relative_residual) best = curve;
    }
  }
  return best;
}

}  // namespace tailrace
