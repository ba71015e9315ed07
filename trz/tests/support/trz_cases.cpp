// Random chunks for the codec trz: shapes, settings and bounds.

#include "support/trz_cases.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "trz/chunk_header.hpp"

namespace tailrace::trz_cases {

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

const char* data_name(Data data) {
  static constexpr const char* names[] = {
      "smooth",    "rough",   "walk",     "noise",    "constant",    "nearly",
      "ties",      "offset",  "masked",   "specials", "random_bits", "huge",
      "denormals", "decades", "repeated", "decimals", "mixture"};
  static_assert(std::size(names) == static_cast<std::size_t>(Data::n_kinds));
  return names[static_cast<std::size_t>(data)];
}

std::string Case::text() const {
  static constexpr const char* kinds[] = {"exact", "absolute", "pointwise"};
  static constexpr const char* kPresets[] = {"fast", "default", "ratio", "max"};
  static constexpr const char* kPredictors[] = {"automatic", "none", "lorenzo", "interpolation"};
  static constexpr const char* kSplines[] = {"automatic", "linear", "cubic", "natural"};
  char bound[64];
  std::snprintf(bound, sizeof bound, "%a", type.bound);
  std::string text = std::string(dtype_name(type.dtype)) + " " + shape_text(type.shape) + " " +
                     kinds[static_cast<std::size_t>(type.kind)] + " " + bound + " " +
                     data_name(data) + ", " + kPresets[static_cast<std::size_t>(settings.preset)] +
                     " " + kPredictors[static_cast<std::size_t>(settings.predictor)] +
                     " dimensions " + std::to_string(settings.dimensions) + " " +
                     kSplines[static_cast<std::size_t>(settings.spline)] + " last axis " +
                     std::to_string(settings.last_axis) + " lossless " +
                     std::to_string(static_cast<int>(settings.lossless_stage)) + " views " +
                     std::to_string(settings.coarse_views) + " planes " +
                     std::to_string(settings.bit_planes);
  if (type.fill_value) {
    std::snprintf(bound, sizeof bound, " fill %a", *type.fill_value);
    text += bound;
  }
  if (type.book != nullptr) text += " book";
  return text;
}

Shape random_shape(Random& random, std::uint64_t n_max) {
  static constexpr std::uint64_t kLikely[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 65, 127};
  const std::uint64_t rank = random.below(7);
  Shape shape(rank, 1);
  std::uint64_t left = std::max<std::uint64_t>(n_max, 1);
  // One axis may be long; the axes get their extents in random order.
  const std::uint64_t first = rank == 0 ? 0 : random.below(rank);
  for (std::uint64_t k = 0; k < rank; ++k) {
    std::uint64_t& extent = shape[(first + k) % rank];
    switch (random.below(5)) {
      case 0: extent = 1 + random.below(left); break;
      case 1: extent = 1 + random.below(std::min<std::uint64_t>(left, 70)); break;
      case 2: extent = left; break;
      default: extent = kLikely[random.below(std::size(kLikely))]; break;
    }
    extent = std::min(extent, left);
    left /= extent;
  }
  if (rank > 0 && random.chance(0.005)) shape[random.below(rank)] = 0;
  return shape;
}

trz::Settings random_settings(Random& random) {
  trz::Settings settings;
  settings.preset = static_cast<trz::Preset>(random.below(4));
  if (random.chance(0.4)) return settings;
  settings.predictor = static_cast<trz::Predictor>(random.below(4));
  settings.dimensions = static_cast<int>(random.below(5));
  settings.spline = static_cast<trz::Spline>(random.below(4));
  settings.last_axis = static_cast<int>(random.below(5)) - 1;
  settings.lossless_stage = static_cast<trz::Choice>(random.below(3));
  if (random.chance(0.5)) {
    settings.coarse_views = static_cast<int>(random.below(trz::kCoarseViewsMax + 1));
    if (settings.coarse_views == 0) {
      settings.bit_planes = static_cast<int>(random.below(trz::kBitPlanesMax + 1));
    }
  }
  return settings;
}

namespace {

double power_of_two(int exponent) { return std::ldexp(1.0, exponent); }

double random_bound(Random& random, const trz::ChunkType& type, bool odd) {
  if (type.kind == trz::BoundKind::exact) return 0;
  if (type.kind == trz::BoundKind::pointwise) {
    static constexpr double kOften[] = {0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 0.999, 2.0};
    if (random.chance(0.7)) return kOften[random.below(odd ? std::size(kOften) : 7)];
    return power_of_two(-static_cast<int>(random.below(30)) - 1) * (1 + random.unit());
  }
  if (odd && random.chance(0.08)) {
    static constexpr double kStrange[] = {0.0,
                                          std::numeric_limits<double>::denorm_min(),
                                          std::numeric_limits<double>::min(),
                                          std::numeric_limits<float>::denorm_min(),
                                          std::numeric_limits<float>::min(),
                                          1e-40,
                                          1e-30,
                                          1e30,
                                          3.4e38,
                                          std::numeric_limits<double>::max(),
                                          std::numeric_limits<double>::infinity()};
    return kStrange[random.below(std::size(kStrange))];
  }
  const int reach = type.dtype == DType::f32 ? 20 : 60;
  const int exponent =
      static_cast<int>(random.below(static_cast<std::uint64_t>(2 * reach))) - reach;
  // Every third bound is a power of two, for which sums and ties are exact.
  return power_of_two(random.chance(0.7) ? exponent / 6 : exponent) *
         (random.chance(0.3) ? 1 : 1 + random.unit());
}

std::optional<double> random_fill(Random& random) {
  static constexpr double kUsual[] = {0.0, -1.0, 1e20, -1e34, 9.969209968386869e36, 1e300, -9999.0};
  if (random.chance(0.05)) return std::numeric_limits<double>::quiet_NaN();
  if (random.chance(0.05)) return std::numeric_limits<double>::infinity();
  return kUsual[random.below(std::size(kUsual))];
}

/// Make a book from random histograms, or an empty one.
std::shared_ptr<trz::Book> random_book(Random& random) {
  if (random.chance(0.1)) return std::make_shared<trz::Book>();
  trz::BookHistograms histograms;
  const auto fill = [&](trz::Histogram& histogram) {
    if (random.chance(0.2)) return;
    const std::uint64_t spread = 1 + random.below(16);
    for (std::uint64_t k = 0; k < 256; ++k) {
      const std::uint64_t distance = std::min(k, 256 - k) / spread;
      histogram[k] = distance >= 20 ? 0 : std::uint32_t{1} << (20 - distance);
    }
  };
  fill(histograms.class_ids);
  for (trz::Histogram& histogram : histograms.class_bytes) fill(histogram);
  fill(histograms.exceptions);
  return std::make_shared<trz::Book>(trz::Book::from_histograms(histograms));
}

}  // namespace

Case random_case(Random& random, const Limits& limits) {
  Case chunk;
  trz::ChunkType& type = chunk.type;
  type.dtype = static_cast<DType>(random.below(2));
  if (limits.integers && random.chance(0.2)) type.dtype = static_cast<DType>(2 + random.below(8));
  const std::uint64_t kind = random.below(10);
  type.kind = kind == 0                             ? trz::BoundKind::exact
              : kind < 4 && is_floating(type.dtype) ? trz::BoundKind::pointwise
                                                    : trz::BoundKind::absolute;
  const std::uint64_t n_max =
      random.chance(0.5) ? limits.n_values_max : 1 + random.below(limits.n_values_max);
  type.shape = random_shape(random, n_max);
  type.bound = random_bound(random, type, limits.odd_bounds);
  chunk.data = static_cast<Data>(random.below(static_cast<std::uint64_t>(Data::n_kinds)));
  if (chunk.data == Data::masked || random.chance(0.1)) type.fill_value = random_fill(random);
  chunk.settings = random_settings(random);
  if (random.chance(0.15)) {
    chunk.book = random_book(random);
    type.book = chunk.book.get();
  }
  make_values(chunk, random);
  return chunk;
}

void damage(std::vector<std::byte>& chunk, std::size_t n_telling, Random& random) {
  constexpr std::size_t from = trz::kChecksummedFrom;
  for (std::uint64_t k = 1 + random.below(3); k > 0; --k) {
    const std::size_t reach = std::min(chunk.size() - from, n_telling);
    const std::uint64_t where = random.below(4);
    const std::size_t at = where == 0   ? random.below(chunk.size())
                           : where == 1 ? chunk.size() - 1 - random.below(reach)
                                        : from + random.below(reach);
    chunk[at] =
        random.chance(0.5) ? static_cast<std::byte>(random.next()) : chunk[at] ^ std::byte{1};
  }
  if (random.chance(0.2)) chunk.resize(from + random.below(chunk.size() - from));
  trz::seal({reinterpret_cast<std::uint8_t*>(chunk.data()), chunk.size()});
}

std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t digest = 0xCBF29CE484222325ULL ^ bytes.size();
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    digest = (digest ^ word) * 0x100000001B3ULL;
    digest ^= digest >> 32;
  }
  for (; at < bytes.size(); ++at) {
    digest = (digest ^ static_cast<std::uint64_t>(bytes[at])) * 0x100000001B3ULL;
  }
  return digest;
}

}  // namespace tailrace::trz_cases
