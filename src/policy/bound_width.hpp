// The single rule on bounds that exceed the data. A bound relative to the range of a field's values
// (rel, psnr, targets) must be meaningful for most values. An absolute bound (abs) must leave
// differences between them.
//
// Every door passes facts about the values and follows the verdict; no door has another rule.
// docs/codecs.md has the rule for users, docs/adr/0027-one-rule-for-wide-bounds.md its reasons.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/dtype.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"

namespace tailrace {

/// An extreme at this many times the spread of all other values away from them is taken for a fill
/// value.
inline constexpr double kFillDistanceMin = 100;
/// An extreme at this distance or more is suspect.
inline constexpr double kSuspectDistanceMin = 10;
/// Fewer other values than this have no reliable spread.
inline constexpr std::uint64_t kFillRestMin = 4;
/// A bound is broad if more than this share of the nonzero values is smaller than the bound.
inline constexpr double kBelowShareMax = 0.25;

/// Facts about the finite values, without fill values, over all ranks.
struct ValueFacts {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  std::uint64_t n_values = 0;
  std::uint64_t n_least = 0;  ///< Number of values that equal the least one.
  std::uint64_t n_greatest = 0;
  double next_least = std::numeric_limits<double>::infinity();  ///< Least of the other values.
  double next_greatest = -std::numeric_limits<double>::infinity();
  std::uint64_t n_nonzero = 0;  ///< Nonzero values, of all or of a sample.
  std::uint64_t n_below = 0;    ///< Nonzero values that are smaller than the absolute bound.
  /// Magnitude that at most a quarter of the nonzero values are smaller than; 0: unknown.
  double lower_quartile = 0;
};

enum class BoundWidth : std::uint8_t {
  fine,
  broad,    ///< More than a quarter of the values are smaller than the bound.
  erasing,  ///< An absolute bound is at least half of the range of the values.
  suspect,  ///< An extreme that may be an undeclared fill value widens the range.
  fill      ///< An undeclared fill value widens the range: refused unless allow-wide-bound is on.
};

struct BoundVerdict {
  BoundWidth width = BoundWidth::fine;
  double extreme = 0;  ///< suspect, fill: the presumed fill value.
  std::uint64_t n_extreme = 0;
  double rest_least = 0;  ///< Range of all other values.
  double rest_greatest = 0;
  double share_below = 0;     ///< broad: share of the values that are smaller than the bound.
  double lower_quartile = 0;  ///< ValueFacts::lower_quartile.

  bool fine() const { return width == BoundWidth::fine; }
  bool refused(bool allow_wide) const { return width == BoundWidth::fill && !allow_wide; }
};

/// True if the rule judges this bound although it is not relative to the range: mode abs, unless a
/// guard limits the errors of a function of the values, or those in regions.
bool judged_by_range(const ErrorBound& bound, const Guards& guards);
/// True if one number is within `absolute_bound` of all values of a range, so that an encoder may
/// erase their differences. Also true of an empty range and of one value.
bool spans_range(double absolute_bound, double least, double greatest);

/// Judge a bound that equals `absolute_bound` in the field's unit. Bounds of mode abs need only the
/// least and the greatest value. A constant field is fine, and so is mode pw_rel.
BoundVerdict judge_bound(const ErrorBound& bound, double absolute_bound, const ValueFacts& facts);

/// Syntax of a door's options in refusal texts. VALUE and PATH are placeholders for the field's.
struct OptionSyntax {
  std::string_view declare = "fill=VALUE";
  std::string_view allow = "allow-wide-bound=on";
};

/// Facts about a field for texts.
struct BoundSubject {
  std::string path;
  std::string name;  ///< field "/t"
  DType dtype = DType::f32;
  ErrorBound bound;
  double absolute_bound = 0;
  OptionSyntax syntax = {};
};
/// Explain for an error why a field is refused, and what to do.
std::string refusal_text(const BoundSubject& subject, const BoundVerdict& verdict);
/// Return one sentence for a remark; empty if the bound is fine.
std::string remark_text(const BoundSubject& subject, const BoundVerdict& verdict);
/// Return the remark on a bound that a codec without loss makes useless.
std::string unused_bound_text(std::string_view codec, const ErrorBound& bound);
/// Return the remark on chunks stored unfiltered because the codec broke its bound.
std::string raw_chunks_text(std::uint64_t n_raw, std::uint64_t n_chunks, std::string_view codec);
/// Return the shortest text of a value of this type.
std::string value_text(double value, DType dtype);

/// Deterministic sample of the magnitudes of nonzero values in a stream, evenly spread. Not
/// thread-safe.
class MagnitudeSample {
 public:
  /// Sample from `values`, at most 2048 per call. Skips values that are not finite.
  /// @param fill_value  skipped, too
  void add(DType dtype, std::span<const std::byte> values, std::optional<double> fill_value);
  /// Return the approximate number of nonzero values that the sample represents.
  std::uint64_t n_nonzero() const { return magnitudes_.size() * stride_; }
  /// Return the number of represented values that are smaller than `bound`.
  std::uint64_t n_below(double bound) const;
  /// Return a magnitude that at most a quarter of the values are smaller than; infinite without
  /// values.
  double lower_quartile() const;

 private:
  template <class T>
  void take(std::span<const std::byte> values, std::optional<double> fill_value);
  void thin();
  std::uint64_t jitter();

  std::vector<double> magnitudes_;
  std::uint64_t stride_ = 1;  ///< One in this many values is sampled.
  std::uint64_t offset_ = 0;  ///< Offset of the last sampled value within its stride.
  std::uint64_t skip_ = 0;    ///< Values until the next sampled one.
  std::uint64_t state_ = 0x9E3779B97F4A7C15U;
};

}  // namespace tailrace
