// Finds, encodes and decodes decimals.

#include "trz/exact/decimals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>

#include "trz/predict/lorenzo_pieces.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kDecimalHeadBytesMax = 64;
constexpr std::size_t kDecimalSlack = 64;

// --- Finding the step

constexpr std::size_t kProbesMax = 512;  // Most values probed.
constexpr std::size_t kValuesPerProbe = 128;
constexpr std::size_t kProbesMin = 64;
constexpr std::size_t kFirst = 48;    // Ordinary values that decide whether to continue.
constexpr std::size_t kSample = 256;  // Ordinary values by which maps are compared.
constexpr std::size_t kInformativeMin = 8;
constexpr std::size_t kMissesPart = 16;  // One value in this many may not be a multiple.
constexpr std::size_t kFirstPart = 4;    // The same limit for the first kFirst values.
constexpr std::size_t kHard = 4;         // Values that preselect offsets.
constexpr double kNear = 1.0 / 16;       // Steps up to which a value is near a multiple. By chance,
                                         // 1 value in 8 is.
constexpr double kRoundings = 128;       // Cap on that distance: rounding errors of the largest.
constexpr int kPlacesMax = 12;
constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
constexpr double kNumberMax = 2147483000.0;

/// Offsets that programs add to or subtract from unpacked numbers, in addition to round decimals:
/// 0 degrees Celsius in kelvin. Offsets that are multiples of the step and leave no trace in the
/// bits need no offset here.
constexpr std::array<double, 2> kCelsius = {273.15, 273.16};

template <class T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr double kOrdinary = 0x1p30;     ///< Larger values count as fill values.
  static constexpr double kInformative = 0x1p20;  ///< Steps from zero up to which half an ulp is
                                                  ///< at most kNear.
  static constexpr double kRounding = 0x1p-24;
  static constexpr double kWhole = 0x1p22;  ///< Limit of numbers for from_near().
};
template <>
struct Limits<double> {
  static constexpr double kOrdinary = 0x1p51;
  static constexpr double kInformative = 0x1p48;
  static constexpr double kRounding = 0x1p-53;
  static constexpr double kWhole = 0x1p51;
};

double rounded(double y) { return (y + kRound) - kRound; }

template <class T>
class Finder {
 public:
  Finder(const T* values, std::size_t n, Isa isa)
      : values_(values), n_(n), kernels_(decimal_kernels(isa).template of<T>()) {
    n_probes_ = n <= kProbesMin ? n : std::clamp(n / kValuesPerProbe, kProbesMin, kProbesMax);
  }

  std::optional<DecimalMap> find() {
    gather(kFirst);
    for (const bool reciprocal : {false, true}) {
      double power = 1;
      for (int places = 0; places <= kPlacesMax; ++places, power *= 10) {
        const Fit fit = fit_of(power, reciprocal);
        if (fit == Fit::none_further) break;
        if (fit == Fit::misses) continue;
        if (best_map(power, reciprocal, kFirstPart)) {
          gather(kSample);
          if (const auto map = best_map(power, reciprocal, kMissesPart)) return map;
        }
        // These values are near multiples, but no map reproduces them. Then no finer step fits
        // them either, unless a fill value has caused a wrong base.
        if (2 * n_kept_ >= n_sample_ && !needs_base_) return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  /// Probe values, at irregular distances, until the sample has n_wanted ordinary ones.
  void gather(std::size_t n_wanted) {
    for (; n_sample_ < n_wanted && n_probed_ < n_probes_; ++n_probed_) {
      const std::uint64_t fraction = ((n_probed_ + 1) * 0x9E3779B97F4A7C15ULL) >> 32;
      const std::size_t reach = std::min<std::size_t>(n_, 0xFFFFFFFFU);
      const std::size_t index =
          n_ <= kProbesMin ? n_probed_ : static_cast<std::size_t>((fraction * reach) >> 32);
      const T x = values_[index];
      const double magnitude = std::abs(static_cast<double>(x));
      // Zero is a multiple of every step; a NaN fails the comparison.
      if (x != 0 && magnitude < Limits<T>::kOrdinary) sample_[n_sample_++] = x;
    }
  }

  static double steps_of(T x, double power, bool reciprocal) {
    return reciprocal ? power / static_cast<double>(x) : static_cast<double>(x) * power;
  }

  /// True if this number of steps is a nonzero whole number, up to rounding errors.
  bool near_whole(double steps) const {
    const double whole = rounded(steps);
    return whole != 0 && std::abs(steps - whole) <= near_;
  }

  static bool informative(double steps) { return std::abs(steps) <= Limits<T>::kInformative; }

  enum class Fit : std::uint8_t { misses, fits, none_further };

  /// Check if a power of ten turns nearly all values into whole numbers. One value that is not a
  /// multiple may occur any number of times: it is a fill value.
  Fit fit_of(double power, bool reciprocal) {
    double most = 0;
    for (std::size_t i = 0; i < n_sample_; ++i) {
      const double steps = std::abs(steps_of(sample_[i], power, reciprocal));
      if (informative(steps)) most = std::max(most, steps);
    }
    near_ = std::min(kNear, kRoundings * Limits<T>::kRounding * most);
    const std::size_t n_allowed = n_sample_ / kMissesPart;
    std::size_t n_informative = 0;
    std::size_t n_misses = 0;
    T missed = 0;
    for (std::size_t i = 0; i < n_sample_ && n_misses <= n_allowed; ++i) {
      const double steps = steps_of(sample_[i], power, reciprocal);
      if (!informative(steps) || sample_[i] == missed) continue;
      ++n_informative;
      if (near_whole(steps)) continue;
      if (n_misses++ == 0) missed = sample_[i];
    }
    if (n_misses > n_allowed) return Fit::misses;
    if (n_informative < std::max(kInformativeMin, n_sample_ / 4)) return Fit::none_further;
    return n_misses <= n_informative / kMissesPart ? Fit::fits : Fit::misses;
  }

  /// The map that reproduces most values of the sample; nullopt if every map misses more than one
  /// in misses_part.
  std::optional<DecimalMap> best_map(double power, bool reciprocal, std::size_t misses_part) {
    // Compare maps on multiples only, so that fill values that are not multiples have no influence.
    std::uint64_t common = 0;
    double most = 0;
    std::size_t n_kept = 0;
    for (std::size_t i = 0; i < n_sample_; ++i) {
      const double steps = steps_of(sample_[i], power, reciprocal);
      if (!informative(steps) || !near_whole(steps)) continue;
      kept_[n_kept++] = sample_[i];
      most = std::max(most, std::abs(steps));
      if (common == 1) continue;
      common = std::gcd(common, static_cast<std::uint64_t>(std::abs(rounded(steps))));
    }
    n_kept_ = n_kept;
    n_least_ = n_kept + 1;
    const auto whole_power = static_cast<std::uint64_t>(power);
    const std::uint64_t shared = std::gcd(common, whole_power);
    const std::uint64_t parts = whole_power / shared;
    const std::uint64_t multiple = common / shared;
    const auto divisor = static_cast<double>(parts);
    needs_base_ = most / static_cast<double>(shared) > kNumberMax;
    if (reciprocal) {
      consider({DecimalKind::reciprocal, divisor, 0, 0});
    } else if (parts == 1 && multiple > 1) {
      consider({DecimalKind::product, static_cast<double>(multiple), 0, 0});
    } else {
      consider({DecimalKind::quotient, divisor, 0, 0});
      const auto step = static_cast<double>(static_cast<T>(1 / divisor));
      consider({DecimalKind::product, step, 0, 0});
      if (n_least_ > 0) try_offsets(divisor, step);
    }
    if (n_least_ > n_kept_ / misses_part) return std::nullopt;
    return best_;
  }

  void try_offsets(double divisor, double step) {
    // Values that the best map so far does not reproduce discriminate best between other maps.
    std::size_t n_hard = 0;
    for (std::size_t i = 0; i < n_kept_ && n_hard < kHard; ++i) {
      if (((marks_[i / 64] >> (i % 64)) & 1) != 0) hard_[n_hard++] = kept_[i];
    }
    for (std::size_t k = n_hard; k < kHard; ++k) hard_[k] = hard_[k % n_hard];
    const auto both_signs = [&](double offset) {
      for (const double sign : {-1.0, 1.0}) {
        const auto o = static_cast<double>(static_cast<T>(sign * offset));
        const DecimalMap quotient = with_base({DecimalKind::quotient, divisor, 0, o});
        const DecimalMap product = with_base({DecimalKind::product, step, 0, o});
        if (brings_hard_back<DecimalKind::quotient>(quotient)) consider(quotient);
        if (brings_hard_back<DecimalKind::product>(product)) consider(product);
      }
    };
    for (const double offset : kCelsius) both_signs(offset);
    for (double decade = 1; decade <= 10000 && n_least_ > 0; decade *= 10) {
      for (int digit = 1; digit <= 9 && n_least_ > 0; ++digit) both_signs(digit * decade);
    }
  }

  /// True if the map reproduces all hard values but one. This is a fast preselection; consider()
  /// decides.
  template <DecimalKind kind>
  bool brings_hard_back(const DecimalMap& map) const {
    const double factor = kind == DecimalKind::product ? 1 / map.scale : map.scale;
    const auto scale = static_cast<T>(map.scale);
    const auto base = static_cast<T>(map.base);
    const auto offset = static_cast<T>(map.offset);
    std::array<T, kHard> back;
    for (std::size_t i = 0; i < kHard; ++i) {
      const double steps = (static_cast<double>(hard_[i]) - map.offset) * factor;
      const T m = static_cast<T>(rounded(steps - map.base)) + base;
      back[i] = (kind == DecimalKind::product ? m * scale : m / scale) + offset;
    }
    std::size_t n_back = 0;
    for (std::size_t i = 0; i < kHard; ++i) {
      n_back += static_cast<std::size_t>(back[i] == hard_[i]);
    }
    return n_back + 1 >= kHard;
  }

  DecimalMap with_base(DecimalMap map) const {
    if (!needs_base_) return map;
    const double x = static_cast<double>(kept_[0]) - map.offset;
    map.base = rounded(map.kind == DecimalKind::quotient  ? x * map.scale
                       : map.kind == DecimalKind::product ? x / map.scale
                                                          : map.scale / x);
    return map;
  }

  void consider(DecimalMap map) {
    if (n_least_ == 0) return;
    map = with_base(map);
    std::array<std::uint64_t, kSample / 64> marks{};
    std::array<std::int32_t, kSample> numbers;
    std::size_t n_misses = 0;
    if (kernels_.to_numbers(kept_.data(), n_kept_, map, numbers.data(), marks.data())) {
      for (std::size_t i = 0; i < (n_kept_ + 63) / 64; ++i) {
        n_misses += static_cast<std::size_t>(std::popcount(marks[i]));
      }
    }
    if (n_misses >= n_least_) return;
    n_least_ = n_misses;
    best_ = map;
    marks_ = marks;
  }

  const T* values_;
  std::size_t n_;
  const DecimalKernelsOf<T>& kernels_;
  std::size_t n_probes_;
  std::size_t n_probed_ = 0;
  std::size_t n_sample_ = 0;
  std::size_t n_kept_ = 0;
  std::size_t n_least_ = 0;  ///< Number of kept values that the best map misses.
  double near_ = kNear;
  bool needs_base_ = false;
  DecimalMap best_;
  std::array<std::uint64_t, kSample / 64> marks_{};  ///< Bits of the kept values that best_ misses.
  std::array<T, kHard> hard_;
  std::array<T, kSample> sample_;
  std::array<T, kSample> kept_;
};

// --- Encoding

/// One value in this many may be a stray: no decimal, nor the most frequent non-decimal value.
constexpr std::size_t kStrayPart = 16;
/// If the estimates of both forms are within this factor, presets that try more encode both.
constexpr double kFormsWithin = 1.15;
constexpr double kClearlySmallerInteger = 0.96;  // Other presets use a lattice below this share.

constexpr std::size_t kAgainPart = 32;  // Numbers repeat if more than 1 window in 32 recurs.

/// The numbers of a chunk in Slot::nested, with space for the numbers as T and for a patch map.
template <class T>
struct Numbers {
  std::int32_t* whole = nullptr;
  T* as_floats = nullptr;
  std::uint64_t* bits = nullptr;  ///< Words of the PatchMap.

  bool allocate(std::size_t n, Workspace& workspace) {
    const std::size_t n_bits = PatchMap::words_of(n);
    const std::size_t n_floats = (n * sizeof(T) + kDecimalSlack + 7) / 8;
    const std::size_t n_whole = (n * sizeof(std::int32_t) + kDecimalSlack + 7) / 8;
    bits = workspace.area<std::uint64_t>(Slot::nested, n_bits + n_floats + n_whole);
    if (bits == nullptr) return false;
    as_floats = reinterpret_cast<T*>(bits + n_bits);
    whole = reinterpret_cast<std::int32_t*>(bits + n_bits + n_floats);
    return true;
  }
};

/// Number of marked values that differ from the most frequent marked value.
template <class T>
std::size_t count_strays(const T* values, const PatchMap& patches) {
  using Bits = BitsOf<T>;
  Bits frequent = 0;
  std::size_t lead = 0;
  patches.for_each([&](std::size_t i) {
    const auto bits = std::bit_cast<Bits>(values[i]);
    if (lead == 0) frequent = bits;
    lead = bits == frequent ? lead + 1 : lead - 1;
  });
  std::size_t n_strays = 0;
  patches.for_each([&](std::size_t i) {
    n_strays += static_cast<std::size_t>(std::bit_cast<Bits>(values[i]) != frequent);
  });
  return n_strays;
}

/// Convert all values to numbers; a value without a number is marked and repeats the previous
/// number. False if too many values have none.
template <class T>
bool convert(const T* values, std::size_t n, const DecimalMap& map, std::int32_t* numbers,
             PatchMap& patches, Isa isa) {
  const DecimalKernelsOf<T>& kernels = decimal_kernels(isa).of<T>();
  std::int32_t held = 0;
  for (std::size_t index = 0; index < n; index += kPieceValues) {
    const std::size_t n_here = std::min(kPieceValues, n - index);
    std::array<std::uint64_t, kPieceValues / 64> marks;
    std::int32_t* q = numbers + index;
    if (kernels.to_numbers(values + index, n_here, map, q, marks.data())) {
      hold_marked(marks.data(), n_here, held, q, [&](std::size_t i) { patches.mark(index + i); });
    }
    held = q[n_here - 1];
  }
  return patches.count() <= n / kStrayPart || count_strays(values, patches) <= n / kStrayPart;
}

/// Bitwise OR of the magnitudes of n numbers; a negative number counts as its magnitude less 1.
std::uint32_t magnitude_bits(const std::int32_t* numbers, std::size_t n) {
  std::int32_t ones = 0;
  for (std::size_t i = 0; i < n; ++i) ones |= numbers[i] ^ (numbers[i] >> 31);
  return static_cast<std::uint32_t>(ones);
}

/// Estimated sizes of the two forms of the numbers; SIZE_MAX: form not possible.
struct FormBytes {
  std::size_t integers = SIZE_MAX;
  std::size_t near = SIZE_MAX;
  std::size_t least() const { return std::min(integers, near); }
};

template <class T>
FormBytes estimate_forms(const ChunkHead& head, const Numbers<T>& numbers, ZstdTrials trials,
                         const Settings& settings, Workspace& workspace) {
  const std::size_t n = head.n_values;
  FormBytes bytes;
  bytes.integers =
      choose_exact({DType::i32, numbers.whole, head.extents}, trials, workspace).estimated_bytes;
  if (magnitude_bits(numbers.whole, n) >= Limits<T>::kWhole) return bytes;
  std::copy_n(numbers.whole, n, numbers.as_floats);
  const Sampled sampled = sample_chunk<T>(numbers.as_floats, head.extents, nullptr, kWithinHalf,
                                          settings, workspace.isa());
  if (sampled.n_predictions == 0 || sampled.all_equal) return bytes;
  const double bits = sampled.best().bits_per_value * static_cast<double>(n);
  bytes.near = static_cast<std::size_t>(bits / 8) + kDecimalHeadBytesMax;
  return bytes;
}

std::span<const std::byte> bytes_at(const void* begin, std::size_t n_bytes) {
  return {static_cast<const std::byte*>(begin), n_bytes};
}

/// Encode the inner chunk and return it from its byte 8 on; empty if memory or space runs out.
template <class T>
std::span<const std::byte> encode_numbers(const ChunkHead& head, const Numbers<T>& numbers,
                                          const FormBytes& estimates, const Settings& settings,
                                          const EncodeInner& encode_inner, Workspace& workspace) {
  const std::size_t n = head.n_values;
  const std::size_t room = n * sizeof(T) + kDecimalHeadBytesMax;
  const auto within = [](std::size_t bytes, std::size_t least) {
    return static_cast<double>(bytes) <= kFormsWithin * static_cast<double>(least);
  };
  const bool both = tries_more(settings.preset) && estimates.near != SIZE_MAX &&
                    within(std::max(estimates.near, estimates.integers), estimates.least());
  auto* area = workspace.area<std::byte>(Slot::nested_bytes, both ? 2 * room : room);
  if (area == nullptr) return {};
  std::span<const std::byte> best;
  const bool near = static_cast<double>(estimates.near) <
                    kClearlySmallerInteger * static_cast<double>(estimates.integers);
  if (both || !near) {
    const Result<std::size_t> done =
        encode_inner(DType::i32, bytes_at(numbers.whole, n * sizeof(std::int32_t)), {area, room});
    if (!done.ok()) return {};
    best = {area, *done};
  }
  if (best.empty() || both) {
    std::byte* other = both ? area + room : area;
    const Result<std::size_t> done =
        encode_inner(head.dtype, bytes_at(numbers.as_floats, n * sizeof(T)), {other, room});
    if (!done.ok()) return {};
    if (best.empty() || *done < best.size()) best = {other, *done};
  }
  return best.subspan(kChecksummedFrom);
}

/// True if stretches of numbers recur at any distance. Of all windows of eight numbers, only those
/// with a rare hash are compared, so equal windows are selected wherever they lie.
bool numbers_repeat(const std::int32_t* numbers, std::size_t n) {
  constexpr int kTableBits = 12;
  std::array<std::uint32_t, std::size_t{1} << kTableBits> seen{};
  // Select few enough windows for the table, at most one in 16.
  const int rare_bits = std::clamp(static_cast<int>(std::bit_width(n)) - kTableBits + 1, 4, 30);
  std::uint32_t hash = 0;  // Hash of the last eight numbers.
  std::size_t n_windows = 0;
  std::size_t n_again = 0;
  for (std::size_t i = 0; i < n; ++i) {
    hash = (hash << 4) + static_cast<std::uint32_t>(numbers[i]) * 0x9E3779B1U;
    if ((hash >> (32 - rare_bits)) != 0 || i < 7) continue;
    std::uint32_t& at = seen[(hash * 0x85EBCA6BU) >> (32 - kTableBits)];
    ++n_windows;
    n_again += static_cast<std::size_t>(at == hash);
    at = hash;
  }
  // Fewer rare hashes than expected also indicate repeats: short ones that have no rare hash.
  return n_again > n_windows / kAgainPart || n_windows < (n >> (rare_bits + 1));
}

template <class T>
void write_map(const DecimalMap& map, ChunkWriter& out) {
  out.number(static_cast<std::uint8_t>(map.kind));
  out.number(static_cast<T>(map.scale));
  out.number(static_cast<T>(map.base));
  out.number(static_cast<T>(map.offset));
}

template <class T>
DecimalAttempt encode_as(const ChunkHead& outer, const T* values, const Settings& settings,
                         const EncodeInner& encode_inner, Workspace& workspace) {
  const std::size_t n = outer.n_values;
  const std::optional<DecimalMap> map = Finder<T>(values, n, workspace.isa()).find();
  if (!map) return {};
  Numbers<T> numbers;
  if (!numbers.allocate(n, workspace)) return {{}, true};
  PatchMap patches(numbers.bits, n);
  if (!convert(values, n, *map, numbers.whole, patches, workspace.isa())) return {};
  ChunkHead head = outer;
  head.method = Method::decimal;
  FormBytes estimates = estimate_forms(head, numbers, ZstdTrials::none, settings, workspace);
  if (estimates.near < estimates.integers) {
    // If numbers repeat, integers compressed by zstd may be far smaller than a lattice.
    const ExactValues integers{DType::i32, numbers.whole, head.extents};
    estimates.integers =
        choose_exact(integers, trials_of_encoding(settings), workspace).estimated_bytes;
  }
  const std::span<const std::byte> inner =
      encode_numbers(head, numbers, estimates, settings, encode_inner, workspace);
  if (inner.empty()) return {{}, true};
  const std::size_t room =
      2 * kDecimalHeadBytesMax + inner.size() + patches_bytes_max(n, patches.count(), sizeof(T));
  auto* chunk = workspace.area<std::uint8_t>(Slot::trial, room + kDecimalSlack);
  if (chunk == nullptr) return {{}, true};
  ChunkWriter out({chunk, room});
  write_head(head, out);
  write_map<T>(*map, out);
  out.varint(inner.size());
  out.bytes(inner.data(), inner.size());
  const ZstdUse zstd = settings.lossless_stage == Choice::off ? ZstdUse::never
                       : settings.lossless_stage == Choice::on || tries_more(settings.preset)
                           ? ZstdUse::always
                           : ZstdUse::promising;
  if (!write_patches(reinterpret_cast<const BitsOf<T>*>(values), patches, {zstd, 1, nullptr}, out,
                     workspace)) {
    return {{}, true};
  }
  return {{chunk, out.n_written()}, false, numbers_repeat(numbers.whole, n)};
}

template <class T>
std::optional<std::size_t> estimate_as(const ChunkHead& head, const T* values,
                                       const Settings& settings, Workspace& workspace) {
  const std::size_t n = head.n_values;
  const std::optional<DecimalMap> map = Finder<T>(values, n, workspace.isa()).find();
  Numbers<T> numbers;
  if (!map || !numbers.allocate(n, workspace)) return std::nullopt;
  PatchMap patches(numbers.bits, n);
  if (!convert(values, n, *map, numbers.whole, patches, workspace.isa())) return std::nullopt;
  const FormBytes bytes =
      estimate_forms(head, numbers, trials_of_estimate(settings), settings, workspace);
  std::size_t n_patch_bytes = 0;
  if (patches.any()) {
    // Positions take 1.5 bytes at each boundary between marked and other values, at most one bit
    // per value. Strays are stored in full.
    std::size_t n_runs = 0;
    std::size_t before = n;
    patches.for_each([&](std::size_t i) {
      n_runs += static_cast<std::size_t>(i != before + 1);
      before = i;
    });
    n_patch_bytes = std::min(3 * n_runs, n / 8 + 1) + sizeof(T) * count_strays(values, patches);
  }
  return bytes.least() + kDecimalHeadBytesMax + n_patch_bytes;
}

// --- Decoding

template <class T>
bool read_map(ChunkReader& in, DecimalMap& map) {
  const auto kind = in.number<std::uint8_t>();
  const T scale = in.number<T>();
  const T base = in.number<T>();
  const T offset = in.number<T>();
  const bool finite = std::isfinite(scale) && std::isfinite(base) && std::isfinite(offset);
  if (in.failed() || kind >= kDecimalKinds || !finite || scale == 0) return false;
  map = {static_cast<DecimalKind>(kind), scale, base, offset};
  return true;
}

template <class T>
DecodeFailure decode_as(ChunkReader& in, const ChunkHead& outer, T* values,
                        const DecodeInner& decode_inner, Workspace& workspace) {
  const std::size_t n = outer.n_values;
  DecimalMap map;
  if (!read_map<T>(in, map)) return DecodeFailure::corrupt;
  const std::uint64_t n_inner = in.varint();
  const std::uint8_t* inner =
      n_inner > in.rest().size() ? nullptr : in.take(static_cast<std::size_t>(n_inner));
  if (inner == nullptr) return DecodeFailure::corrupt;
  ChunkReader inner_in({inner, static_cast<std::size_t>(n_inner)});
  ChunkHead head;
  const HeadFailure head_failure = read_bare_head(inner_in, head);
  if (head_failure != HeadFailure::none) return failure_within(head_failure);
  if (head.n_values != n || head.method == Method::decimal || head.method == Method::nested ||
      (head.dtype != DType::i32 && head.dtype != outer.dtype)) {
    return DecodeFailure::corrupt;
  }
  const bool whole = head.dtype == DType::i32;
  void* to = values;
  if (whole) to = workspace.area<std::int32_t>(Slot::nested, n + kDecimalSlack);
  if (to == nullptr) return DecodeFailure::memory_out;
  const std::size_t n_bytes = n * dtype_bytes(head.dtype);
  const DecodeFailure failure =
      decode_inner(inner_in, head, {static_cast<std::byte*>(to), n_bytes});
  // The format allows no book in an inner chunk.
  if (failure == DecodeFailure::book_missing) return DecodeFailure::corrupt;
  if (failure != DecodeFailure::none) return failure;
  if (!inner_in.at_end()) return DecodeFailure::corrupt;
  const DecimalKernelsOf<T>& kernels = decimal_kernels(workspace.isa()).of<T>();
  if (whole) {
    kernels.from_numbers(static_cast<const std::int32_t*>(to), n, map, values);
  } else {
    kernels.from_near(values, n, map, values);
  }
  return DecodeFailure::none;
}

/// Text with as many digits as a decimal retains in the type (6 or 15); independent of the locale.
std::string number_text(double value, DType dtype) {
  std::array<char, 40> text;
  const std::to_chars_result end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general,
                    dtype == DType::f32 ? 6 : 15);
  return {text.data(), end.ptr};
}

/// Text of an addition: " + 3" or " - 3"; empty for 0.
std::string added_text(double value, DType dtype) {
  if (value == 0) return {};
  return (value < 0 ? " - " : " + ") + number_text(std::abs(value), dtype);
}

}  // namespace

std::optional<DecimalMap> find_decimals(const ExactValues& values, Isa isa) {
  const std::size_t n = values_in(values.extents);
  if (values.dtype == DType::f32) {
    return Finder<float>(static_cast<const float*>(values.data), n, isa).find();
  }
  if (values.dtype == DType::f64) {
    return Finder<double>(static_cast<const double*>(values.data), n, isa).find();
  }
  return std::nullopt;
}

DecimalAttempt encode_decimal_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                    const Settings& settings, const EncodeInner& encode_inner,
                                    Workspace& workspace) {
  if (head.dtype == DType::f32) {
    return encode_as(head, reinterpret_cast<const float*>(values.data()), settings, encode_inner,
                     workspace);
  }
  return encode_as(head, reinterpret_cast<const double*>(values.data()), settings, encode_inner,
                   workspace);
}

bool tries_decimals(const ChunkType& type, Preset preset) {
  return type.kind == BoundKind::exact && is_floating(type.dtype) && preset != Preset::fast;
}

std::size_t estimate_lossless_bytes(const ChunkHead& head, const ChunkType& type,
                                    std::span<const std::byte> values, const Settings& settings,
                                    Workspace& workspace) {
  const std::size_t exact = estimate_exact_bytes(head, values, settings, workspace);
  if (!tries_decimals(type, settings.preset)) return exact;
  const std::optional<std::size_t> decimals =
      head.dtype == DType::f32
          ? estimate_as(head, reinterpret_cast<const float*>(values.data()), settings, workspace)
          : estimate_as(head, reinterpret_cast<const double*>(values.data()), settings, workspace);
  return decimals ? std::min(*decimals, exact) : exact;
}

DecodeFailure decode_decimal_chunk(ChunkReader& in, const ChunkHead& head,
                                   std::span<std::byte> values, const DecodeInner& decode_inner,
                                   Workspace& workspace) {
  if (head.dtype == DType::f32) {
    return decode_as(in, head, reinterpret_cast<float*>(values.data()), decode_inner, workspace);
  }
  return decode_as(in, head, reinterpret_cast<double*>(values.data()), decode_inner, workspace);
}

std::string decimal_text(ChunkReader& in, DType dtype) {
  DecimalMap map;
  if (!(dtype == DType::f32 ? read_map<float>(in, map) : read_map<double>(in, map))) {
    return "decimals";
  }
  const std::string scale = number_text(map.scale, dtype);
  const std::string base = added_text(map.base, dtype);
  std::string text = base.empty() ? "k" : "(k" + base + ")";
  if (map.kind == DecimalKind::reciprocal) {
    text = scale + " / " + text;
  } else if (map.scale == 1) {
    text = "k" + base;
  } else {
    text += (map.kind == DecimalKind::quotient ? " / " : " * ") + scale;
  }
  return "decimals, " + text + added_text(map.offset, dtype);
}

}  // namespace tailrace::trz
