// The one rule on bounds that swamp the data: whether a bound that is relative to the range of a
// field's values (rel, psnr, targets) still means something for most of them.
//
// Every door states facts of the values and does what the rule answers; none has a rule of its own.
// docs/codecs.md has the rule for users, docs/adr/one-rule-for-wide-bounds.md its reasons.

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

namespace tailrace {

/// An extreme this many times the spread of all other values away from them is no value.
inline constexpr double fill_distance_min = 100;
/// From here on it is doubted.
inline constexpr double suspect_distance_min = 10;
/// Fewer other values show no spread that could be relied on.
inline constexpr std::uint64_t fill_rest_min = 4;
/// A bound is broad if more than this share of the values other than 0 is smaller than the bound.
inline constexpr double below_share_max = 0.25;

/// Facts of the finite values that are not fill, over all ranks.
struct ValueFacts {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  std::uint64_t n_values = 0;
  std::uint64_t n_least = 0;  ///< Values that equal the least one,
  std::uint64_t n_greatest = 0;
  double next_least = std::numeric_limits<double>::infinity();  ///< and the least of the others.
  double next_greatest = -std::numeric_limits<double>::infinity();
  std::uint64_t n_nonzero = 0;  ///< Values other than 0, of all or of a sample,
  std::uint64_t n_below = 0;    ///< and those of them that are smaller than the absolute bound.
  /// At most a quarter of the values other than 0 are smaller; 0: unknown.
  double lower_quartile = 0;
};

enum class BoundWidth : std::uint8_t {
  fine,
  broad,    ///< More than a quarter of the values are smaller than the bound.
  suspect,  ///< An extreme that may be an undeclared fill value widens the range.
  fill      ///< An undeclared fill value does: refused unless allow-wide-bound is on.
};

struct BoundVerdict {
  BoundWidth width = BoundWidth::fine;
  double extreme = 0;  ///< suspect, fill: the value that is taken for a fill value,
  std::uint64_t n_extreme = 0;
  double rest_least = 0;  ///< and the range of all others.
  double rest_greatest = 0;
  double share_below = 0;     ///< broad: the share of values that are smaller than the bound.
  double lower_quartile = 0;  ///< As ValueFacts.

  bool fine() const { return width == BoundWidth::fine; }
  bool refused(bool allow_wide) const { return width == BoundWidth::fill && !allow_wide; }
};

/// The rule's answer on a bound that comes to `absolute_bound`. Bounds that are not relative to
/// the range are fine: they mean what they say, in the field's unit.
BoundVerdict judge_bound(const ErrorBound& bound, double absolute_bound, const ValueFacts& facts);

/// How the users of a door say what a refusal asks of them. VALUE and PATH stand for the field's.
struct DoorWords {
  std::string_view declare = "fill=VALUE";
  std::string_view allow = "allow-wide-bound=on";
};

/// What texts say of a field.
struct BoundSubject {
  std::string path;
  std::string name;  ///< field "/t"
  DType dtype = DType::f32;
  ErrorBound bound;
  double absolute_bound = 0;
  DoorWords words = {};
};
/// Why a field is refused, and what to do, for an error.
std::string refusal_text(const BoundSubject& subject, const BoundVerdict& verdict);
/// One sentence for a remark; empty where the bound is fine.
std::string remark_text(const BoundSubject& subject, const BoundVerdict& verdict);
/// The shortest text of a value of this type.
std::string value_text(double value, DType dtype);

/// Magnitudes of a few of the values other than 0 that pass by, evenly spread over them and always
/// the same. Not thread-safe.
class MagnitudeSample {
 public:
  /// Cost: a look at 2048 values a call at most. @param fill_value  left out, as is what is not
  /// finite.
  void add(DType dtype, std::span<const std::byte> values, std::optional<double> fill_value);
  /// Values other than 0 that stand behind the sample, about.
  std::uint64_t n_nonzero() const { return magnitudes_.size() * stride_; }
  /// Those of them that are smaller than `bound`.
  std::uint64_t n_below(double bound) const;
  /// A magnitude that at most a quarter are smaller than; infinite without values.
  double lower_quartile() const;

 private:
  template <class T>
  void take(std::span<const std::byte> values, std::optional<double> fill_value);
  void thin();
  std::uint64_t jitter();

  std::vector<double> magnitudes_;
  std::uint64_t stride_ = 1;  ///< One of so many values is looked at.
  std::uint64_t offset_ = 0;  ///< Of the last look within its stride.
  std::uint64_t skip_ = 0;    ///< Values until the next one.
  std::uint64_t state_ = 0x9E3779B97F4A7C15U;
};

}  // namespace tailrace
