// The rule on wide bounds, its texts, and the sample of magnitudes.

#include "policy/bound_width.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "core/utf8.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kMostSampled = 2048;

/// One end of the range. Differences are of 128ths, so that those of the largest numbers do not
/// overflow.
struct RangeEnd {
  double value = 0;
  std::uint64_t n = 0;
  double beyond = 0;  ///< Distance from the nearest other value.
  double rest_least = 0;
  double rest_greatest = 0;

  /// Return the distance from all other values, as a multiple of their spread.
  double distance() const {
    const double spread = rest_greatest / 128 - rest_least / 128;
    return spread > 0 ? beyond / spread : 0;
  }
};

std::array<RangeEnd, 2> ends_of(const ValueFacts& facts) {
  return {{{facts.least, facts.n_least, facts.next_least / 128 - facts.least / 128,
            facts.next_least, facts.greatest},
           {facts.greatest, facts.n_greatest, facts.greatest / 128 - facts.next_greatest / 128,
            facts.least, facts.next_greatest}}};
}

/// Classify one end of the range. A fill value is repeated. 0 is an ordinary value in most fields,
/// and users of rel expect a range that begins at it, so it is at most suspect.
BoundWidth width_by_end(const RangeEnd& end, std::uint64_t n_values) {
  if (end.n < 2 || !(end.distance() >= kSuspectDistanceMin)) return BoundWidth::fine;
  const bool is_fill =
      end.distance() >= kFillDistanceMin && end.value != 0 && n_values - end.n >= kFillRestMin;
  return is_fill ? BoundWidth::fill : BoundWidth::suspect;
}

std::string digits_text(double number, int n_digits) {
  std::array<char, 32> digits{};
  const auto printed = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                     std::chars_format::general, n_digits);
  return std::string(digits.data(), printed.ptr);
}

/// Round down to one significant digit, for a proposed bound.
double one_digit_below(double number) {
  const double power = std::pow(10.0, std::floor(std::log10(number)));
  const double rounded = std::floor(number / power * (1 + 1e-12)) * power;
  return std::isfinite(rounded) ? rounded : number;
}

std::string extreme_text(const BoundSubject& subject, const BoundVerdict& verdict) {
  const auto text = [&](double value) { return value_text(value, subject.dtype); };
  return "bound " + error_bound_text(subject.bound) + " allows errors up to " +
         digits_text(subject.absolute_bound, 3) + " because " + text(verdict.extreme) + " occurs " +
         std::to_string(verdict.n_extreme) + " times, while all other values lie between " +
         text(verdict.rest_least) + " and " + text(verdict.rest_greatest);
}

std::string erasing_text(const BoundSubject& subject, const BoundVerdict& verdict) {
  constexpr double usual = 1e-3;
  const double least = verdict.rest_least;
  const double greatest = verdict.rest_greatest;
  const double proposed = absolute_bound({BoundMode::rel, usual}, least, greatest);
  return subject.name + ": bound " + error_bound_text(subject.bound) +
         " is at least half of the range of its values, " + value_text(least, subject.dtype) +
         " to " + value_text(greatest, subject.dtype) +
         ", and may erase their differences; bound=rel=1e-3 would be abs=" +
         digits_text(proposed, 2) + " here";
}

std::string filled_in(std::string_view pattern, const BoundSubject& subject,
                      const BoundVerdict& verdict) {
  std::string text(pattern);
  const auto put = [&](std::string_view name, const std::string& value) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size()) {
      text.replace(at, name.size(), value);
    }
  };
  put("VALUE", value_text(verdict.extreme, subject.dtype));
  put("PATH", subject.path);
  return text;
}

}  // namespace

bool judged_by_range(const ErrorBound& bound, const Guards& guards) {
  return bound.mode == BoundMode::abs && guards.functions.empty() && guards.regions.empty();
}

bool spans_range(double absolute_bound, double least, double greatest) {
  return !(greatest / 2 - least / 2 > absolute_bound);
}

BoundVerdict judge_bound(const ErrorBound& bound, double absolute_bound, const ValueFacts& facts) {
  BoundVerdict verdict;
  if (!(absolute_bound > 0)) return verdict;
  if (bound.mode == BoundMode::abs && facts.greatest > facts.least &&
      spans_range(absolute_bound, facts.least, facts.greatest)) {
    verdict.width = BoundWidth::erasing;
    verdict.rest_least = facts.least;
    verdict.rest_greatest = facts.greatest;
  }
  if (!bound.needs_range()) return verdict;
  for (const RangeEnd& end : ends_of(facts)) {
    const BoundWidth width = width_by_end(end, facts.n_values);
    // A file's recorded bound may be relative to a range without that value.
    const bool widened =
        absolute_bound > tailrace::absolute_bound(bound, end.rest_least, end.rest_greatest);
    if (width <= verdict.width || !widened) continue;
    verdict = {width, end.value, end.n, end.rest_least, end.rest_greatest, 0, 0};
  }
  const auto n_nonzero = static_cast<double>(facts.n_nonzero);
  if (facts.n_nonzero > 0) verdict.share_below = static_cast<double>(facts.n_below) / n_nonzero;
  if (std::isfinite(facts.lower_quartile)) verdict.lower_quartile = facts.lower_quartile;
  if (verdict.fine() && verdict.share_below > kBelowShareMax) verdict.width = BoundWidth::broad;
  return verdict;
}

std::string refusal_text(const BoundSubject& subject, const BoundVerdict& verdict) {
  return subject.name + ": " + extreme_text(subject, verdict) +
         "; this is an undeclared fill value: declare it (" +
         filled_in(subject.syntax.declare, subject, verdict) + ") or allow the bound (" +
         filled_in(subject.syntax.allow, subject, verdict) + ")";
}

std::string remark_text(const BoundSubject& subject, const BoundVerdict& verdict) {
  switch (verdict.width) {
    case BoundWidth::fine: return "";
    case BoundWidth::suspect:
    case BoundWidth::fill:
      return subject.name + ": " + extreme_text(subject, verdict) +
             "; if it is a fill value, declare it (" +
             filled_in(subject.syntax.declare, subject, verdict) +
             "), otherwise give bound=abs= in the unit of the field";
    case BoundWidth::erasing: return erasing_text(subject, verdict);
    case BoundWidth::broad: break;
  }
  const bool of_decibels = subject.bound.mode == BoundMode::psnr;
  const double share =
      of_decibels ? std::pow(10.0, -subject.bound.value / 20) : subject.bound.value;
  const std::string share_text = digits_text(std::min(share, 0.5), 3);
  std::string text = subject.name + ": bound " + error_bound_text(subject.bound) +
                     " allows errors up to " + digits_text(subject.absolute_bound, 3) + ", and " +
                     digits_text(100 * verdict.share_below, 3) +
                     " % of the nonzero values are smaller than that; bound=pw_rel=" + share_text +
                     " or guard=log=" + share_text + " limits the error relative to each value";
  if (verdict.lower_quartile > 0) {
    text += ", bound=abs=" + digits_text(one_digit_below(verdict.lower_quartile), 1) +
            " is smaller than three quarters of them";
  }
  return text;
}

std::string unused_bound_text(std::string_view codec, const ErrorBound& bound) {
  return "codec " + std::string(codec) + " has no loss, so bound " + error_bound_text(bound) +
         " does nothing";
}

std::string raw_chunks_text(std::uint64_t n_raw, std::uint64_t n_chunks, std::string_view codec) {
  return std::to_string(n_raw) + " of " + counted(n_chunks, "chunk") +
         " stored without compression, because codec " + std::string(codec) +
         " could not keep the bound, NaN or fill values there (codec portable can)";
}

std::string value_text(double value, DType dtype) {
  if (dtype != DType::f32) return number_text(value);
  std::array<char, 32> digits{};
  const auto printed =
      std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(value));
  return std::string(digits.data(), printed.ptr);
}

// --- The sample.

std::uint64_t MagnitudeSample::jitter() {
  state_ = state_ * 6364136223846793005U + 1442695040888963407U;
  return (state_ >> 33U) % stride_;
}

void MagnitudeSample::thin() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < magnitudes_.size(); i += 2) magnitudes_[kept++] = magnitudes_[i];
  magnitudes_.resize(kept);
  stride_ *= 2;
}

template <class T>
void MagnitudeSample::take(std::span<const std::byte> bytes, std::optional<double> fill_value) {
  const T* const values = reinterpret_cast<const T*>(bytes.data());
  const std::uint64_t n = bytes.size() / sizeof(T);
  while (n / stride_ > kMostSampled) thin();
  std::uint64_t at = skip_;
  while (at < n) {
    const auto value = static_cast<double>(values[at]);
    const bool counts = std::isfinite(value) && value != 0 &&
                        !(fill_value && value == static_cast<double>(static_cast<T>(*fill_value)));
    if (counts) magnitudes_.push_back(std::fabs(value));
    if (magnitudes_.size() > kMostSampled) thin();
    const std::uint64_t next = jitter();
    at += stride_ - std::min(offset_, stride_ - 1) + next;
    offset_ = next;
  }
  skip_ = at - n;
}

void MagnitudeSample::add(DType dtype, std::span<const std::byte> values,
                          std::optional<double> fill_value) {
  visit_dtype(dtype, [&]<class T>() {
    std::optional<double> fill = fill_value;
    if constexpr (std::is_integral_v<T>) {
      // A fill value that the type cannot represent equals no value.
      const double past = std::ldexp(1.0, std::numeric_limits<T>::digits);
      if (fill && !(*fill >= static_cast<double>(std::numeric_limits<T>::min()) && *fill < past)) {
        fill.reset();
      }
    }
    take<T>(values, fill);
  });
}

std::uint64_t MagnitudeSample::n_below(double bound) const {
  const auto below = [&](double magnitude) { return magnitude < bound; };
  return static_cast<std::uint64_t>(std::ranges::count_if(magnitudes_, below)) * stride_;
}

double MagnitudeSample::lower_quartile() const {
  if (magnitudes_.empty()) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = magnitudes_;
  const std::size_t at = sorted.size() / 4;
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(at));
  return sorted[at];
}

}  // namespace tailrace
