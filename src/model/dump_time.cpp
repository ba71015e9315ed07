// Time of a step, and the search for the codecs that minimise it.
//
// Encoding and writing overlap. So the step's time depends on two sums over the fields, all thread
// seconds and all bytes, and grows with both. The best choice therefore lies on the Pareto front of
// the pairs (bytes, seconds). The search builds the front field by field. It drops points that
// cannot beat the time of a known choice, which keeps the front short. For a few fields the search
// is exact. If the front grows beyond kFrontMost points, it is thinned, and exchanges of single
// candidates compensate.

#include "model/dump_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trz/base/status.hpp"

namespace tailrace {
namespace {

/// Maximum number of points of the front; with more the last per mille is not worth the time.
constexpr std::size_t kFrontMost = 1024;
/// Fraction by which an objective permits the call to exceed its fastest time.
constexpr double kSpeedSlack = 0.03;
constexpr double kBalancedSlack = 0.1;
/// Sums in another order differ by less than this factor.
constexpr double kRoundingSlack = 1 + 1e-12;
/// Prices of a byte that the first, quick search tries: powers of two, in seconds.
constexpr int kLeastPriceExponent = -60;
constexpr int kGreatestPriceExponent = 0;

/// Sums over the fields.
struct Load {
  double encoded_bytes = 0;
  double encode_s = 0;

  Load operator+(const Load& other) const {
    return {encoded_bytes + other.encoded_bytes, encode_s + other.encode_s};
  }
};

Load load_of(const CandidateForecast& candidate) {
  return {candidate.encoded_bytes, candidate.encode_s};
}

/// Choice for the fields so far: this field's candidate, and the point that it extends.
struct FrontPoint {
  Load load;
  std::size_t candidate = 0;
  std::size_t before = 0;  ///< Index into the front of the previous fields.
};

class Chooser {
 public:
  Chooser(std::span<const FieldForecast> fields, const DumpSetting& setting)
      : fields_(fields), setting_(setting) {
    double n_chunks = 0;
    for (const FieldForecast& field : fields) n_chunks += static_cast<double>(field.n_chunks);
    n_chunks_per_rank_ =
        n_chunks / static_cast<double>(std::max<std::uint64_t>(setting.n_ranks, 1));
    for (const FieldForecast& field : fields) usable_.push_back(usable(field));
    find_rests();
  }

  CodecChoice fastest() {
    const CodecChoice quick = by_prices();
    build_fronts(quick.predicted_s);
    CodecChoice best = quick;
    const std::vector<FrontPoint>& front = fronts_.back();
    for (std::size_t i = 0; i < front.size(); ++i) {
      if (step_s(front[i].load) < best.predicted_s) best = choice_at(i);
    }
    return improved(best);
  }

  /// Find the fewest bytes among choices that take at most limit_s.
  CodecChoice smallest_within(const CodecChoice& fastest, double limit_s) {
    build_fronts(limit_s);
    CodecChoice best = fastest;
    const std::vector<FrontPoint>& front = fronts_.back();
    for (std::size_t i = 0; i < front.size(); ++i) {
      if (step_s(front[i].load) > limit_s) continue;
      if (front[i].load.encoded_bytes < best.encoded_bytes) best = choice_at(i);
    }
    return best;
  }

  CodecChoice smallest() const {
    std::vector<std::size_t> picks;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      picks.push_back(best_of(f, [](const CandidateForecast& a, const CandidateForecast& b) {
        if (a.encoded_bytes != b.encoded_bytes) return a.encoded_bytes < b.encoded_bytes;
        return a.encode_s < b.encode_s;
      }));
    }
    return evaluated(std::move(picks));
  }

 private:
  double step_s(const Load& load) const {
    return overlapped_dump_s(load.encoded_bytes, load.encode_s, n_chunks_per_rank_, setting_);
  }

  /// Select candidates that no other candidate matches or beats in both; omits refused ones.
  static std::vector<std::size_t> usable(const FieldForecast& field) {
    std::vector<std::size_t> kept;
    for (std::size_t c = 0; c < field.candidates.size(); ++c) {
      const CandidateForecast& one = field.candidates[c];
      if (!one.refused.empty()) continue;
      const auto beats = [&](std::size_t other) {
        const CandidateForecast& two = field.candidates[other];
        if (!two.refused.empty() || other == c) return false;
        if (two.encoded_bytes > one.encoded_bytes || two.encode_s > one.encode_s) return false;
        const bool equal = two.encoded_bytes == one.encoded_bytes && two.encode_s == one.encode_s;
        return !equal || other < c;
      };
      bool beaten = false;
      for (std::size_t other = 0; other < field.candidates.size() && !beaten; ++other) {
        beaten = beats(other);
      }
      if (!beaten) kept.push_back(c);
    }
    TAILRACE_CHECK(!kept.empty());
    return kept;
  }

  /// Compute rests_[f]: the least bytes and, independently, the least seconds of fields f and
  /// later.
  void find_rests() {
    rests_.resize(fields_.size() + 1);
    for (std::size_t f = fields_.size(); f-- > 0;) {
      Load least{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
      for (const std::size_t c : usable_[f]) {
        const Load load = load_of(fields_[f].candidates[c]);
        least.encoded_bytes = std::min(least.encoded_bytes, load.encoded_bytes);
        least.encode_s = std::min(least.encode_s, load.encode_s);
      }
      rests_[f] = rests_[f + 1] + least;
    }
  }

  template <class Less>
  std::size_t best_of(std::size_t field, const Less& less) const {
    std::size_t best = usable_[field].front();
    for (const std::size_t c : usable_[field]) {
      if (less(fields_[field].candidates[c], fields_[field].candidates[best])) best = c;
    }
    return best;
  }

  CodecChoice evaluated(std::vector<std::size_t> picks) const {
    Load sum;
    for (std::size_t f = 0; f < picks.size(); ++f) {
      sum = sum + load_of(fields_[f].candidates[picks[f]]);
    }
    return {std::move(picks), step_s(sum), sum.encoded_bytes};
  }

  /// Find the best choice among those that are optimal for some price of a byte (Lagrange
  /// multipliers): close to the optimum, and cheap for any number of fields.
  CodecChoice by_prices() const {
    CodecChoice best;
    best.predicted_s = std::numeric_limits<double>::infinity();
    for (int e = kLeastPriceExponent; e <= kGreatestPriceExponent; ++e) {
      const double price = std::ldexp(1.0, e);
      std::vector<std::size_t> picks;
      for (std::size_t f = 0; f < fields_.size(); ++f) {
        const auto cost = [&](const CandidateForecast& one) {
          return one.encode_s + price * one.encoded_bytes;
        };
        picks.push_back(best_of(f, [&](const CandidateForecast& a, const CandidateForecast& b) {
          return cost(a) < cost(b);
        }));
      }
      CodecChoice choice = evaluated(std::move(picks));
      if (choice.predicted_s < best.predicted_s) best = std::move(choice);
    }
    return best;
  }

  void build_fronts(double limit_s) {
    fronts_.assign(1, {FrontPoint()});
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      std::vector<FrontPoint> points;
      for (std::size_t before = 0; before < fronts_.back().size(); ++before) {
        for (const std::size_t c : usable_[f]) {
          const Load load = fronts_.back()[before].load + load_of(fields_[f].candidates[c]);
          if (step_s(load + rests_[f + 1]) <= limit_s * kRoundingSlack)
            points.push_back({load, c, before});
        }
      }
      keep_front(points);
      fronts_.push_back(std::move(points));
    }
  }

  /// Sort by bytes and drop dominated points. If too many remain, keep the best of each interval of
  /// bytes.
  static void keep_front(std::vector<FrontPoint>& points) {
    std::stable_sort(points.begin(), points.end(), [](const FrontPoint& a, const FrontPoint& b) {
      if (a.load.encoded_bytes != b.load.encoded_bytes) {
        return a.load.encoded_bytes < b.load.encoded_bytes;
      }
      return a.load.encode_s < b.load.encode_s;
    });
    std::vector<FrontPoint> front;
    for (const FrontPoint& point : points) {
      if (front.empty() || point.load.encode_s < front.back().load.encode_s) front.push_back(point);
    }
    points.clear();
    if (front.size() <= kFrontMost) {
      points = std::move(front);
      return;
    }
    const double least = front.front().load.encoded_bytes;
    const double width = (front.back().load.encoded_bytes - least) / kFrontMost;
    double border = least;
    for (std::size_t i = 0; i < front.size(); ++i) {
      // The last point of an interval has the fewest seconds; the first point of all also stays.
      const bool last = i + 1 == front.size();
      if (i > 0 && !last && front[i + 1].load.encoded_bytes < border) continue;
      points.push_back(front[i]);
      border = front[i].load.encoded_bytes + width;
    }
  }

  CodecChoice choice_at(std::size_t index) const {
    std::vector<std::size_t> picks(fields_.size());
    for (std::size_t f = fields_.size(); f-- > 0;) {
      const FrontPoint& point = fronts_[f + 1][index];
      picks[f] = point.candidate;
      index = point.before;
    }
    return evaluated(std::move(picks));
  }

  /// Exchange single candidates while that makes the step shorter.
  CodecChoice improved(CodecChoice best) const {
    for (bool better = true; better;) {
      better = false;
      for (std::size_t f = 0; f < fields_.size(); ++f) {
        for (const std::size_t c : usable_[f]) {
          CodecChoice trial = best;
          trial.candidate[f] = c;
          trial = evaluated(std::move(trial.candidate));
          if (trial.predicted_s >= best.predicted_s) continue;
          best = std::move(trial);
          better = true;
        }
      }
    }
    return best;
  }

  std::span<const FieldForecast> fields_;
  const DumpSetting& setting_;
  double n_chunks_per_rank_ = 0;
  std::vector<std::vector<std::size_t>> usable_;  ///< One list per field.
  std::vector<Load> rests_;
  std::vector<std::vector<FrontPoint>> fronts_;  ///< [0]: nothing chosen yet.
};

}  // namespace

double encode_lane_s(double encode_s, double n_chunks_per_rank, const DumpSetting& setting) {
  const auto n_ranks = static_cast<double>(std::max<std::uint64_t>(setting.n_ranks, 1));
  const auto n_threads = static_cast<double>(std::max<std::uint64_t>(setting.n_threads, 1));
  return encode_s / (n_ranks * std::min(n_threads, std::max(n_chunks_per_rank, 1.0)));
}

double write_lane_s(double encoded_bytes, const DumpSetting& setting) {
  const auto n_ranks = static_cast<double>(std::max<std::uint64_t>(setting.n_ranks, 1));
  return setting.write.seconds(encoded_bytes / n_ranks, setting.n_ranks);
}

double serial_dump_s(double encoded_bytes, double encode_s, const DumpSetting& setting) {
  const auto n_lanes = static_cast<double>(std::max<std::uint64_t>(setting.n_ranks, 1) *
                                           std::max<std::uint64_t>(setting.n_threads, 1));
  return encode_s / n_lanes + write_lane_s(encoded_bytes, setting) + setting.sync_latency_s;
}

double overlapped_dump_s(double encoded_bytes, double encode_s, double n_chunks_per_rank,
                         const DumpSetting& setting) {
  const double encode_lane = encode_lane_s(encode_s, n_chunks_per_rank, setting);
  const double write_lane = write_lane_s(encoded_bytes, setting);
  // Writing cannot start before the first chunk is encoded, and the last write starts after all
  // encodes.
  const double exposed_s = std::min(encode_lane, write_lane) / std::max(n_chunks_per_rank, 1.0);
  return std::max(encode_lane, write_lane) + exposed_s + setting.sync_latency_s;
}

double longest_step_s(double fastest_s, const DumpSetting& setting, Objective objective) {
  if (objective == Objective::size) return std::numeric_limits<double>::infinity();
  const double slack = objective == Objective::speed ? kSpeedSlack : kBalancedSlack;
  return fastest_s + slack * (fastest_s + setting.other_s);
}

CodecChoice choose_codecs(std::span<const FieldForecast> fields, const DumpSetting& setting,
                          Objective objective) {
  Chooser chooser(fields, setting);
  if (objective == Objective::size) return chooser.smallest();
  const CodecChoice fastest = chooser.fastest();
  return chooser.smallest_within(fastest, longest_step_s(fastest.predicted_s, setting, objective));
}

// --- Searches for settings: predictors by algorithm 1, bounds by inverse models.

std::string_view predictor_setting_text(PredictorSetting setting) {
  switch (setting) {
    case PredictorSetting::dimension_1: return "predictor=lorenzo,dimension=1";
    case PredictorSetting::dimension_2: return "predictor=lorenzo,dimension=2";
    case PredictorSetting::dimension_3: return "predictor=lorenzo,dimension=3";
    case PredictorSetting::regression: return "predictor=interpolation";
  }
  return "";
}

PredictorSetting search_predictor(std::size_t n_dimensions,
                                  const std::function<double(PredictorSetting)>& seconds_of) {
  const double dimension_1_s = seconds_of(PredictorSetting::dimension_1);  // s_0, t_0
  if (n_dimensions == 0) return PredictorSetting::dimension_1;
  const double regression_s = seconds_of(PredictorSetting::regression);  // lines 1-2
  if (dimension_1_s >= regression_s) return PredictorSetting::regression;
  if (n_dimensions < 2) return PredictorSetting::dimension_1;
  const double dimension_2_s = seconds_of(PredictorSetting::dimension_2);  // lines 4-5
  if (dimension_1_s < dimension_2_s) return PredictorSetting::dimension_1;
  if (n_dimensions < 3) return PredictorSetting::dimension_2;
  const double dimension_3_s = seconds_of(PredictorSetting::dimension_3);  // lines 9-10
  return dimension_3_s < dimension_2_s ? PredictorSetting::dimension_3
                                       : PredictorSetting::dimension_2;
}

// --- The inverse models.

double bound_for_psnr(double psnr_db, double value_range, double variance_share) {
  // PSNR = 20 log10(range) - 10 log10(variance), variance = share * bound^2 / 3.
  return value_range * std::pow(10.0, -psnr_db / 20) * std::sqrt(3 / variance_share);
}

double psnr_for_bound(double absolute_bound, double value_range, double variance_share) {
  return 20 * std::log10(value_range / absolute_bound) + 10 * std::log10(3 / variance_share);
}

std::optional<double> tightest_bound(std::span<const SizeAtBound> sizes, double target_bytes) {
  if (sizes.empty() || sizes.front().encoded_bytes > target_bytes) return std::nullopt;
  SizeAtBound fits = sizes.front();
  for (const SizeAtBound& next : sizes.subspan(1)) {
    const double grown = std::max(next.encoded_bytes, fits.encoded_bytes);
    if (grown > target_bytes) {
      // Here grown > fits.encoded_bytes, so the logarithms differ.
      const double way =
          std::log(target_bytes / fits.encoded_bytes) / std::log(grown / fits.encoded_bytes);
      return fits.relative_bound * std::pow(next.relative_bound / fits.relative_bound, way);
    }
    fits = {next.relative_bound, grown};
  }
  return fits.relative_bound;
}

}  // namespace tailrace
