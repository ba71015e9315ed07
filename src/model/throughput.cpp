// Fits of the three models.

#include "model/throughput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace tailrace {

// --- The fit of eq. 1 (Jin et al. 2022, III-B).
//
// For a given exponent and pivot the curve is linear in Cmin and Cmax:
//   S(B) = Cmin * (1 - g) + Cmax * g,  g = min(1, (B / pivot)^a)
// So least squares need no start values; a grid search finds the two other parameters.

namespace {

constexpr double kPaperPivot = 3;
constexpr double kPaperExponent = -1.716;  // IV-B: Cmin, Cmax, a = 101.7, 240.6, -1.716
// A curve flatter than the first is a constant, one steeper than the last a step.
constexpr double kFlattest = -0.1;
constexpr double kSteepest = -6;
constexpr int kExponentSteps = 48;
// Rates that are closer together show noise, not a curve.
constexpr double kLeastSpan = 1.25;
constexpr int kPivotSteps = 64;

/// g of the fit described above.
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

/// Constant with the least relative squares.
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

/// Extremes of the measured throughputs.
struct Extremes {
  double slowest = std::numeric_limits<double>::infinity();
  double fastest = 0;
};

/// Fit Cmin and Cmax by least squares at this pivot and exponent. False if the points do not
/// determine both, or if throughput would rise with the bit rate.
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
  // A limit that lies where nothing was measured is clamped; the other one then follows from it.
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

/// Values from `from` to `to` in equal ratios, both included.
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
  if (points.empty()) return Status(Code::invalid_argument, "throughput: no points to fit");
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

// --- Eq. 1-6 of Liang et al. 2019, and interpolation between numbers of ranks.
//
// Case i puts the turning point at the i-th size x_i: points before it determine the line, x_i and
// later points the constant (eq. 2, 3). Eq. 5 then moves the turning point to the intersection of
// line and constant. The paper compares cases by the error of eq. 3 (eq. 4); we compare them by the
// error of eq. 6, the final curve. Both are equal if eq. 5 stays between x_i-1 and x_i.

namespace {

struct XY {
  double x = 0;
  double y = 0;
};

/// Line y = slope * x + intercept by least squares; nothing if all x are equal.
struct Line {
  double slope = 0;
  double intercept = 0;
};
std::optional<Line> fit_line(std::span<const XY> points) {
  double mean_x = 0;
  double mean_y = 0;
  for (const XY& point : points) {
    mean_x += point.x / static_cast<double>(points.size());
    mean_y += point.y / static_cast<double>(points.size());
  }
  double xx = 0;
  double xy = 0;
  for (const XY& point : points) {
    xx += (point.x - mean_x) * (point.x - mean_x);
    xy += (point.x - mean_x) * (point.y - mean_y);
  }
  if (xx <= 0) return std::nullopt;
  return Line{xy / xx, mean_y - xy / xx * mean_x};
}

double mean(std::span<const XY> points) {
  double sum = 0;
  for (const XY& point : points) sum += point.y;
  return sum / static_cast<double>(points.size());
}

double curve_at(const Roofline& curve, double x) {
  return x < curve.turning_x ? curve.slope * x + curve.intercept : curve.ceiling;
}

double squared_error(const Roofline& curve, std::span<const XY> points) {
  double sum = 0;
  for (const XY& point : points) sum += std::pow(curve_at(curve, point.x) - point.y, 2);
  return sum;
}

/// Fit under the constraint c >= a * x_t + b, which is active. So c = a * x_t + b, the turning
/// point is the line's last size, and all parameters are fitted again: f(x) = c + a * min(x - x_t,
/// 0).
std::optional<Roofline> repaired(double turning_x, std::span<const XY> points) {
  std::vector<XY> hinge(points.begin(), points.end());
  for (XY& point : hinge) point.x = std::min(point.x - turning_x, 0.0);
  const std::optional<Line> line = fit_line(hinge);
  if (!line || line->slope <= 0) return std::nullopt;
  Roofline curve;
  curve.slope = line->slope;
  curve.intercept = line->intercept - line->slope * turning_x;
  curve.ceiling = line->intercept;
  curve.turning_x = turning_x;
  curve.repaired = true;
  return curve;
}

/// Fit the curve whose first n_line points are on the line. Nothing if the line does not rise: this
/// model treats a file system that is slower for larger writes as a constant.
std::optional<Roofline> fit_case(std::span<const XY> points, std::size_t n_line) {
  const double ceiling = mean(points.subspan(n_line));
  const double line_end = points[n_line - 1].x;
  std::optional<Line> line = fit_line(points.first(n_line));
  if (!line) {
    // A single size determines no line: the line runs to the first point of the constant.
    const double rise = (ceiling - mean(points.first(n_line))) / (points[n_line].x - line_end);
    line = Line{rise, ceiling - rise * points[n_line].x};
  }
  if (line->slope <= 0) return std::nullopt;
  if (ceiling < line->slope * line_end + line->intercept) return repaired(line_end, points);
  Roofline curve;
  curve.slope = line->slope;
  curve.intercept = line->intercept;
  curve.ceiling = ceiling;
  curve.turning_x = (ceiling - line->intercept) / line->slope;  // eq. 5
  return curve;
}

Status check(std::span<const BandwidthPoint> points) {
  if (points.empty()) return Status(Code::invalid_argument, "roofline: no points to fit");
  for (const BandwidthPoint& point : points) {
    const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
    if (point.n_ranks == 0 || !positive(point.bytes_per_rank) || !positive(point.bytes_per_s)) {
      return Status(Code::invalid_argument,
                    fmt::format("roofline: point of {} ranks, {} bytes each, {} bytes/s: all must "
                                "be positive and finite",
                                point.n_ranks, point.bytes_per_rank, point.bytes_per_s));
    }
    if (point.n_ranks != points.front().n_ranks) {
      return Status(
          Code::invalid_argument,
          fmt::format(
              "roofline: points of {} and of {} ranks, all must have the same number of ranks",
              points.front().n_ranks, point.n_ranks));
    }
  }
  return Status();
}

}  // namespace

double Roofline::bytes_per_s(double bytes_per_rank) const {
  const double x = std::log2(bytes_per_rank);
  if (x >= least_x) return curve_at(*this, x);
  const double by_latency = curve_at(*this, least_x) * std::exp2(x - least_x);
  return std::max(curve_at(*this, x), by_latency);
}

Result<Roofline> fit_roofline(std::span<const BandwidthPoint> points) {
  TAILRACE_TRY(check(points));
  std::vector<XY> sorted;
  for (const BandwidthPoint& point : points) {
    sorted.push_back({std::log2(point.bytes_per_rank), point.bytes_per_s});
  }
  std::sort(sorted.begin(), sorted.end(), [](const XY& a, const XY& b) { return a.x < b.x; });

  Roofline best;  // constant: the turning point is the first size
  best.ceiling = best.intercept = mean(sorted);
  best.turning_x = sorted.front().x;
  const double slowest = std::ranges::min_element(sorted, {}, &XY::y)->y;
  double least_error = squared_error(best, sorted);
  for (std::size_t n_line = 1; n_line < sorted.size(); ++n_line) {
    if (sorted[n_line].x <= sorted[n_line - 1].x) continue;  // repeats of one size stay together
    const std::optional<Roofline> curve = fit_case(sorted, n_line);
    // Outliers can make the line so steep that it is almost zero for small sizes.
    if (!curve || curve_at(*curve, sorted.front().x) < slowest / 2) continue;
    const double error = squared_error(*curve, sorted);
    // Ignore a turning point that improves only by rounding.
    if (error < least_error * (1 - 1e-9)) {
      best = *curve;
      least_error = error;
    }
  }
  best.n_ranks = points.front().n_ranks;
  best.least_x = sorted.front().x;
  double relative = 0;
  for (const XY& point : sorted) relative += std::pow(curve_at(best, point.x) / point.y - 1, 2);
  best.relative_residual = std::sqrt(relative / static_cast<double>(sorted.size()));
  return best;
}

BandwidthModel BandwidthModel::constant(double bytes_per_s) {
  Roofline roofline;
  roofline.intercept = roofline.ceiling = bytes_per_s;
  // The number of ranks is arbitrary; 1, so that no request has fewer ranks.
  return of({roofline});
}

Result<BandwidthModel> BandwidthModel::fit(std::span<const BandwidthPoint> points) {
  if (points.empty()) return Status(Code::invalid_argument, "roofline: no points to fit");
  std::map<std::uint64_t, std::vector<BandwidthPoint>> by_ranks;
  for (const BandwidthPoint& point : points) by_ranks[point.n_ranks].push_back(point);
  std::vector<Roofline> rooflines;
  for (const auto& [n_ranks, group] : by_ranks) {
    TAILRACE_TAKE(Roofline roofline, fit_roofline(group));
    rooflines.push_back(roofline);
  }
  return of(std::move(rooflines));
}

BandwidthModel BandwidthModel::of(std::vector<Roofline> rooflines) {
  BandwidthModel model;
  model.rooflines_ = std::move(rooflines);
  std::ranges::sort(model.rooflines_, {}, &Roofline::n_ranks);
  return model;
}

double BandwidthModel::bytes_per_s(double bytes_per_rank, std::uint64_t n_ranks) const {
  if (rooflines_.empty()) return 0;
  const auto above = std::find_if(rooflines_.begin(), rooflines_.end(),
                                  [&](const Roofline& r) { return r.n_ranks >= n_ranks; });
  if (above == rooflines_.end()) return rooflines_.back().bytes_per_s(bytes_per_rank);
  const double high = above->bytes_per_s(bytes_per_rank);
  if (above == rooflines_.begin()) {
    return high * static_cast<double>(n_ranks) / static_cast<double>(above->n_ranks);
  }
  const Roofline& below = *std::prev(above);
  const double low = below.bytes_per_s(bytes_per_rank);
  const auto log_of = [](std::uint64_t n) { return std::log2(static_cast<double>(n)); };
  const double at =
      (log_of(n_ranks) - log_of(below.n_ranks)) / (log_of(above->n_ranks) - log_of(below.n_ranks));
  return low + (high - low) * at;
}

double BandwidthModel::seconds(double bytes_per_rank, std::uint64_t n_ranks) const {
  if (bytes_per_rank <= 0 || n_ranks == 0 || !known()) return 0;
  return bytes_per_rank * static_cast<double>(n_ranks) / bytes_per_s(bytes_per_rank, n_ranks);
}

// --- messages
// ----------------------------------------------------------------------------------------

namespace {

/// Number of levels of a binomial tree over n_ranks.
double tree_depth(std::uint64_t n_ranks) {
  return n_ranks > 1 ? static_cast<double>(std::bit_width(n_ranks - 1)) : 0;
}

double others(std::uint64_t n_ranks) { return n_ranks > 1 ? static_cast<double>(n_ranks - 1) : 0; }

}  // namespace

double MessageCosts::allreduce_s(std::uint64_t n_ranks, double n_bytes) const {
  return n_ranks > 1 ? wait_s + tree_depth(n_ranks) * message_s(n_bytes) : 0;
}

double MessageCosts::gather_s(std::uint64_t n_ranks, double n_bytes) const {
  constexpr double size_bytes = 8;
  if (n_ranks < 2) return 0;
  // Two messages per level. In total the root receives the parts of all other ranks.
  return wait_s + 2 * tree_depth(n_ranks) * message_s(0) +
         others(n_ranks) * (n_bytes + size_bytes) * byte_s;
}

double MessageCosts::allgather_s(std::uint64_t n_ranks, double n_bytes) const {
  return tree_depth(n_ranks) * message_s(0) + others(n_ranks) * n_bytes * byte_s;
}

Result<MessageCosts> fit_messages(std::span<const MessagePoint> points, double overhead_s) {
  // t = m + n G over the messages, each weighted by 1 / t: two linear equations for m and G.
  double w = 0;
  double wn = 0;
  double wnn = 0;
  double wt = 0;
  double wnt = 0;
  for (const MessagePoint& point : points) {
    if (!(point.seconds > 0) || !std::isfinite(point.seconds) || !(point.n_bytes >= 0)) {
      return Status(Code::invalid_argument,
                    fmt::format("messages: {} bytes in {} s: the time must be positive and finite, "
                                "the size >= 0",
                                point.n_bytes, point.seconds));
    }
    if (point.kind != MessagePoint::Kind::message) continue;
    const double weight = 1 / (point.seconds * point.seconds);
    w += weight;
    wn += weight * point.n_bytes;
    wnn += weight * point.n_bytes * point.n_bytes;
    wt += weight * point.seconds;
    wnt += weight * point.n_bytes * point.seconds;
  }
  if (w == 0) return Status(Code::invalid_argument, "messages: no messages to fit");
  const double determinant = w * wnn - wn * wn;  // 0 except for rounding if all sizes are equal
  MessageCosts costs;
  if (determinant > 1e-9 * w * wnn) costs.byte_s = std::max((w * wnt - wn * wt) / determinant, 0.0);
  const double empty_s = std::max((wt - costs.byte_s * wn) / w, 0.0);
  costs.overhead_s = std::clamp(overhead_s, 0.0, empty_s / 2);
  costs.latency_s = empty_s - 2 * costs.overhead_s;
  std::vector<double> beyond_s;
  for (const MessagePoint& point : points) {
    if (point.kind == MessagePoint::Kind::message || point.n_ranks < 2) continue;
    const double modelled_s = point.kind == MessagePoint::Kind::gather
                                  ? costs.gather_s(point.n_ranks, point.n_bytes)
                                  : costs.allreduce_s(point.n_ranks, point.n_bytes);
    beyond_s.push_back(point.seconds - modelled_s);
  }
  if (!beyond_s.empty()) {
    // Median, so that a single delayed call has no influence.
    const auto middle = beyond_s.begin() + static_cast<std::ptrdiff_t>(beyond_s.size() / 2);
    std::nth_element(beyond_s.begin(), middle, beyond_s.end());
    costs.wait_s = std::max(*middle, 0.0);
  }
  return costs;
}

}  // namespace tailrace
