// Eq. 1-6 of Liang et al. 2019, and the way from one number of ranks to another.
//
// Case i puts the turning point at the i-th size x_i: points before it make the line, x_i and those
// behind it the constant (eq. 2, 3). Eq. 5 then moves the turning point to where line and constant
// meet. The paper compares cases by the error of eq. 3 (eq. 4); we compare them by that of eq. 6,
// the curve that is used in the end. Both are equal where eq. 5 stays between x_i-1 and x_i.

#include "model/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace tailrace {
namespace {

struct XY {
  double x = 0;
  double y = 0;
};

/// y = slope * x + intercept by least squares; nothing where all x are equal.
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

/// The repair: c >= a * x_t + b binds, so c = a * x_t + b with the turning point at the line's last
/// size, and all parameters are fitted anew: f(x) = c + a * min(x - x_t, 0).
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

/// The curve with the first n_line points on the line. Nothing where the line does not rise: a file
/// system that is slower for larger writes is a constant to this model.
std::optional<Roofline> fit_case(std::span<const XY> points, std::size_t n_line) {
  const double ceiling = mean(points.subspan(n_line));
  const double line_end = points[n_line - 1].x;
  std::optional<Line> line = fit_line(points.first(n_line));
  if (!line) {
    // One size alone makes no line: it runs to the first point of the constant.
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
  if (points.empty()) return Status(Code::invalid_argument, "roofline: no point to fit");
  for (const BandwidthPoint& point : points) {
    const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
    if (point.n_ranks == 0 || !positive(point.bytes_per_rank) || !positive(point.bytes_per_s)) {
      return Status(Code::invalid_argument,
                    fmt::format("roofline: point of {} ranks, {} bytes each, {} bytes/s: all must "
                                "be positive and finite",
                                point.n_ranks, point.bytes_per_rank, point.bytes_per_s));
    }
    if (point.n_ranks != points.front().n_ranks) {
      return Status(Code::invalid_argument,
                    fmt::format("roofline: points of {} and of {} ranks, must be one number",
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

  Roofline best;  // all constant: the turning point is the first size
  best.ceiling = best.intercept = mean(sorted);
  best.turning_x = sorted.front().x;
  const double slowest =
      std::min_element(sorted.begin(), sorted.end(), [](const XY& a, const XY& b) {
        return a.y < b.y;
      })->y;
  double least_error = squared_error(best, sorted);
  for (std::size_t n_line = 1; n_line < sorted.size(); ++n_line) {
    if (sorted[n_line].x <= sorted[n_line - 1].x) continue;  // repeats of one size stay together
    const std::optional<Roofline> curve = fit_case(sorted, n_line);
    // Outliers can turn the line so steep that it promises next to nothing for small sizes.
    if (!curve || curve_at(*curve, sorted.front().x) < slowest / 2) continue;
    const double error = squared_error(*curve, sorted);
    // A turning point that explains no more than rounding is none.
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
  // Of no certain number of ranks; 1, so that fewer ranks cannot be asked for.
  return of({roofline});
}

Result<BandwidthModel> BandwidthModel::fit(std::span<const BandwidthPoint> points) {
  if (points.empty()) return Status(Code::invalid_argument, "roofline: no point to fit");
  std::map<std::uint64_t, std::vector<BandwidthPoint>> by_ranks;
  for (const BandwidthPoint& point : points) by_ranks[point.n_ranks].push_back(point);
  std::vector<Roofline> rooflines;
  for (const auto& [n_ranks, group] : by_ranks) {
    Result<Roofline> roofline = fit_roofline(group);
    if (!roofline.ok()) return roofline.status();
    rooflines.push_back(*roofline);
  }
  return of(std::move(rooflines));
}

BandwidthModel BandwidthModel::of(std::vector<Roofline> rooflines) {
  BandwidthModel model;
  model.rooflines_ = std::move(rooflines);
  std::sort(model.rooflines_.begin(), model.rooflines_.end(),
            [](const Roofline& a, const Roofline& b) { return a.n_ranks < b.n_ranks; });
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

}  // namespace tailrace
