// Decimals of trz: floats made of integers are detected, return bit for bit, and take the bytes of
// their integers. Other values keep their form, and inconsistent chunks are refused.

#include "trz/exact/decimals.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "support/test_tier.hpp"
#include "trz/base/large_block.hpp"
#include "trz/chunk_header.hpp"
#include "trz/predict/choose.hpp"
#include "unit/trz_isas.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Random;
using whole::case_of;
using whole::round_trip;
using Bytes = std::vector<std::byte>;

/// Integers on a random walk that starts at 1.
std::vector<std::int64_t> walk(std::size_t n, std::int64_t from, std::uint64_t reach = 9) {
  std::vector<std::int64_t> k(n);
  Random random(n);
  for (std::int64_t& number : k) {
    from +=
        static_cast<std::int64_t>(random.below(2 * reach + 1)) - static_cast<std::int64_t>(reach);
    number = from = std::max<std::int64_t>(from, 1);
  }
  return k;
}

template <class T, class Make>
std::vector<T> made_of(const std::vector<std::int64_t>& k, Make make) {
  std::vector<T> values(k.size());
  std::ranges::transform(k, values.begin(),
                         [&](std::int64_t number) { return make(static_cast<T>(number)); });
  return values;
}

template <class T>
T power_of_ten(int places) {
  T power = 1;
  for (int i = 0; i < places; ++i) power *= 10;
  return power;
}

/// The chunk's bytes, after a bit-for-bit round trip.
template <class T>
Bytes encoded(const std::vector<T>& values, const Shape& shape, Preset preset = Preset::standard) {
  Workspace workspace;
  Bytes bytes;
  EXPECT_TRUE(round_trip(case_of(values, shape, 0, preset), workspace, &bytes));
  return bytes;
}

std::string method_of(const Bytes& bytes) {
  const Result<ChunkSummary> summary = describe(bytes);
  return summary.ok() ? summary->method : summary.status().message();
}

bool is_decimal(const Bytes& bytes) { return (bytes[8] >> 4) == std::byte{8}; }

template <class T>
std::vector<std::int32_t> narrow(const std::vector<T>& k) {
  return {k.begin(), k.end()};
}

/// The encoded bytes of the integers alone.
std::size_t bytes_of_numbers(const std::vector<std::int64_t>& k, const Shape& shape) {
  Case chunk;
  const std::vector<std::int32_t> numbers = narrow(k);
  chunk.type = {DType::i32, shape, BoundKind::exact, 0};
  chunk.values.resize(numbers.size() * sizeof(std::int32_t));
  std::memcpy(chunk.values.data(), numbers.data(), chunk.values.size());
  Workspace workspace;
  Bytes bytes;
  EXPECT_TRUE(round_trip(chunk, workspace, &bytes));
  return bytes.size();
}

template <class T>
class TrzDecimals : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TrzDecimals, Floats);

TYPED_TEST(TrzDecimals, EveryPowerOfTenTakesTheBytesOfItsNumbers) {
  using T = TypeParam;
  const int most = sizeof(T) == 4 ? 6 : 10;
  for (int places = 1; places <= most; ++places) {
    const T power = power_of_ten<T>(places);
    const std::vector<std::int64_t> k = walk(20000, 30000);
    const std::size_t of_numbers = bytes_of_numbers(k, {20000});
    for (const bool product : {false, true}) {
      const T step = T(1) / power;
      const std::vector<T> values =
          made_of<T>(k, [&](T number) { return product ? number * step : number / power; });
      const Bytes bytes = encoded(values, {20000});
      EXPECT_TRUE(is_decimal(bytes)) << places << ": " << method_of(bytes);
      EXPECT_LE(bytes.size(), of_numbers + of_numbers / 20 + 60)
          << places << ": " << method_of(bytes);
    }
  }
}

TYPED_TEST(TrzDecimals, OffsetsAndReciprocalsAreFound) {
  using T = TypeParam;
  const std::vector<std::int64_t> k = walk(9000, 20000);
  const auto step = static_cast<T>(0.001);
  struct {
    std::vector<T> values;
    std::string method;
  } const cases[] = {
      {made_of<T>(k, [&](T n) { return n * step - T(10); }), "decimals, k * 0.001 - "},
      {made_of<T>(k, [](T n) { return n / T(100) - T(273.15); }), "decimals, k / 100 - 273.15"},
      {made_of<T>(k, [](T n) { return n * 5 / T(100); }), "decimals, k / 20"},
      {made_of<T>(walk(9000, 200), [](T n) { return T(8000) / n; }), "decimals, 8000 / k"},
      {made_of<T>(walk(9000, 200), [](T n) { return T(1) / n; }), "decimals, 1 / k"},
  };
  for (const auto& one : cases) {
    const Bytes bytes = encoded(one.values, {9000});
    EXPECT_TRUE(is_decimal(bytes)) << one.method;
    // Several offsets may restore the values.
    EXPECT_EQ(method_of(bytes).rfind(one.method, 0), 0U) << method_of(bytes);
  }
}

TYPED_TEST(TrzDecimals, MultiplesAreFound) {
  // The exact form also uses common factors; this test does not compare their sizes.
  using T = TypeParam;
  const std::vector<T> values = made_of<T>(walk(9000, 5000), [](T n) { return n * T(75); });
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  const auto map = find_decimals({dtype, values.data(), {1, 1, 1, 9000}}, Isa::plain);
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->kind, DecimalKind::product);
  EXPECT_EQ(map->scale, 75);
}

TEST(TrzDecimal, NumbersBeyond32BitsHaveABase) {
  // Seconds since 1970 in thousandths: 41 bits.
  const std::vector<std::int64_t> k = walk(5000, 1'700'000'000'123, 400);
  const std::vector<double> values = made_of<double>(k, [](double n) { return n / 1000; });
  const Bytes bytes = encoded(values, {5000});
  EXPECT_TRUE(is_decimal(bytes)) << method_of(bytes);
  EXPECT_NE(method_of(bytes).find("decimals, (k + 1"), std::string::npos) << method_of(bytes);
  const std::vector<std::int64_t> parts = walk(5000, 5'000'000'000, 400);
  const std::vector<double> rates = made_of<double>(parts, [](double n) { return 1e9 / n; });
  const Bytes of_rates = encoded(rates, {5000});
  EXPECT_TRUE(is_decimal(of_rates));
  EXPECT_EQ(method_of(of_rates).rfind("decimals, 1000000000 / (k + ", 0), 0U)
      << method_of(of_rates);
}

TYPED_TEST(TrzDecimals, WhatIsNoDecimalAmongThemComesBackBitForBit) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  const std::vector<std::int64_t> k = walk(12000, 25000);
  const std::vector<T> plain = made_of<T>(k, [](T n) { return n / T(100); });
  const std::size_t n_plain = encoded(plain, {12000}).size();
  const T specials[] = {Limits::quiet_NaN(),  Limits::infinity(), -Limits::infinity(), T(-0.0),
                        Limits::denorm_min(), Limits::max(),      T(3.14159265),       T(-1e10)};
  for (const T special : specials) {
    // A mask over a third, one value in 300, and the ends.
    std::vector<T> masked = plain;
    std::fill(masked.begin() + 3000, masked.begin() + 7000, special);
    std::vector<T> strewn = plain;
    for (std::size_t i = 5; i < strewn.size(); i += 300) strewn[i] = special;
    std::vector<T> ends = plain;
    ends.front() = ends.back() = special;
    for (const std::vector<T>& values : {masked, strewn, ends}) {
      const Bytes bytes = encoded(values, {12000});
      EXPECT_TRUE(is_decimal(bytes)) << special << ": " << method_of(bytes);
      EXPECT_LE(bytes.size(), n_plain + 400) << special;
    }
  }
  // All kinds combined; a NaN keeps its payload.
  std::vector<T> mixed = plain;
  for (std::size_t i = 0; i < mixed.size(); i += 40) mixed[i] = specials[i / 40 % 8];
  BitsOf<T> bits = std::bit_cast<BitsOf<T>>(Limits::quiet_NaN()) | 0x1234;
  mixed[777] = std::bit_cast<T>(bits);
  EXPECT_TRUE(is_decimal(encoded(mixed, {12000})));
}

TYPED_TEST(TrzDecimals, WhatIsNoneKeepsItsForm) {
  using T = TypeParam;
  Random random(3);
  std::vector<T> noise(8000);
  for (T& value : noise) value = static_cast<T>(100 * random.unit());
  // Decimals with noise in the last bits, one in ten not a decimal, and multiples of 2^-7.
  const std::vector<std::int64_t> k = walk(8000, 25000);
  std::vector<T> shaken = made_of<T>(k, [](T n) { return n / T(100); });
  for (T& value : shaken) {
    value = std::bit_cast<T>(
        static_cast<BitsOf<T>>(std::bit_cast<BitsOf<T>>(value) + random.below(100)));
  }
  std::vector<T> mixed = made_of<T>(k, [](T n) { return n / T(100); });
  for (std::size_t i = 0; i < mixed.size(); i += 10) mixed[i] = noise[i];
  for (const std::vector<T>* each : {&noise, &shaken, &mixed}) {
    const std::vector<T>& values = *each;
    EXPECT_FALSE(is_decimal(encoded(values, {8000})));
    const ExactValues exact{
        sizeof(T) == 4 ? DType::f32 : DType::f64, values.data(), {1, 1, 1, 8000}};
    if (each != &mixed) {
      EXPECT_FALSE(find_decimals(exact, Isa::plain).has_value());
    }
  }
  // Unit conversions of decimals: some ulps away from integer multiples of hundredths.
  const std::vector<std::int64_t> small = walk(4096, 400, 30);
  for (const std::vector<T>& values :
       {made_of<T>(small, [](T n) { return n / T(10) * T(3.6); }),
        made_of<T>(small, [](T n) { return n * T(0.01) * T(25.4); })}) {
    EXPECT_FALSE(is_decimal(encoded(values, {4096})));
  }
  const std::vector<T> found = made_of<T>(k, [](T n) { return n / T(100); });
  EXPECT_FALSE(is_decimal(encoded(found, {8000}, Preset::fast)));
}

TYPED_TEST(TrzDecimals, EveryShapeAndPreset) {
  using T = TypeParam;
  const Shape shapes[] = {{2},       {3},          {63},       {64},          {65},
                          {2047},    {2048, 1},    {2049},     {1, 70, 90},   {31, 17},
                          {5, 1000}, {16, 16, 16}, {7, 9, 65}, {3, 5, 7, 11}, {2, 2, 2, 2, 3}};
  for (const Shape& shape : shapes) {
    const std::vector<std::int64_t> k = walk(n_elements(shape), 12345);
    const std::vector<T> values = made_of<T>(k, [](T n) { return n / T(1000); });
    for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
      const Bytes bytes = encoded(values, shape, preset);
      if (values.size() > 1000) {
        EXPECT_EQ(is_decimal(bytes), preset != Preset::fast) << method_of(bytes);
      }
    }
  }
}

TYPED_TEST(TrzDecimals, InstructionSetsAgreeOnNumbersAndValues) {
  using T = TypeParam;
  const std::vector<std::int64_t> k = walk(3001, 4000, 500);
  for (const DecimalMap& map :
       {DecimalMap{DecimalKind::quotient, 1000, 0, 0},
        DecimalMap{DecimalKind::product, static_cast<double>(T(0.01)), 0, -273},
        DecimalMap{DecimalKind::reciprocal, 8000, 0, 0},
        DecimalMap{DecimalKind::quotient, 10, 1 << 20, 5}}) {
    std::vector<std::int32_t> numbers = narrow(k);
    numbers[5] = 0;
    std::vector<T> values(k.size());
    decimal_kernels(Isa::plain).of<T>().from_numbers(numbers.data(), k.size(), map, values.data());
    values[77] = std::numeric_limits<T>::quiet_NaN();
    values[130] = T(1e30);
    for (const Isa isa : isas()) {
      const DecimalKernelsOf<T>& kernels = decimal_kernels(isa).of<T>();
      std::vector<std::int32_t> found(k.size());
      std::vector<std::uint64_t> marks(k.size() / 64 + 1);
      EXPECT_TRUE(kernels.to_numbers(values.data(), k.size(), map, found.data(), marks.data()));
      for (std::size_t i = 0; i < k.size(); ++i) {
        const bool stray = i == 77 || i == 130;
        const bool marked = ((marks[i / 64] >> (i % 64)) & 1) != 0;
        // 1 / 0 is infinite, and so is its integer.
        if (i == 5 && map.kind == DecimalKind::reciprocal) continue;
        ASSERT_EQ(marked, stray) << isa_name(isa) << " " << i;
        if (!stray) {
          ASSERT_EQ(found[i], numbers[i]) << isa_name(isa) << " " << i;
        }
      }
      std::vector<T> near(k.size());
      std::ranges::transform(numbers, near.begin(),
                             [](std::int32_t n) { return static_cast<T>(n) + T(0.375); });
      std::vector<T> wanted(k.size());
      kernels.from_numbers(numbers.data(), k.size(), map, wanted.data());
      kernels.from_near(near.data(), k.size(), map, near.data());
      EXPECT_EQ(std::memcmp(near.data(), wanted.data(), k.size() * sizeof(T)), 0) << isa_name(isa);
    }
  }
}

/// Head of the inner chunk of an f32 chunk.
ChunkHead inner_head_of(const Bytes& bytes) {
  ChunkReader in({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  ChunkHead head;
  EXPECT_EQ(read_head_alone(in, head), HeadFailure::none);
  in.take(1 + 3 * sizeof(float));  // Skips the map.
  static_cast<void>(in.varint());
  EXPECT_EQ(read_bare_head(in, head), HeadFailure::none);
  return head;
}

TEST(TrzDecimal, SmoothNumbersAreInterpolated) {
  // A smooth field in tenths: the lattice predicts it better than differences.
  constexpr std::size_t n_plane = std::size_t{96} * 128;
  std::vector<float> values(64 * n_plane);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i % 128);
    const double y = static_cast<double>(i / 128 % 96);
    const std::size_t plane = i / n_plane;
    const auto z = static_cast<double>(plane);
    const double height = 5000 + 0.01 * (x * x + 2 * y * x - z * y) + 0.0004 * x * x * z;
    values[i] = std::nearbyint(static_cast<float>(height * 10)) / 10.0F;
  }
  const Bytes bytes = encoded(values, {64, 96, 128});
  ASSERT_TRUE(is_decimal(bytes));
  const ChunkHead head = inner_head_of(bytes);
  EXPECT_EQ(head.method, Method::lattice);
  EXPECT_EQ(head.dtype, DType::f32);
}

TEST(TrzDecimal, EstimatesKnowDecimals) {
  const std::vector<std::int64_t> k = walk(200000, 30000);
  const std::vector<float> values = made_of<float>(k, [](float n) { return n / 100; });
  ChunkType type{DType::f32, {200, 1000}, BoundKind::exact, 0};
  const Box box{{0, 0}, type.shape};
  Workspace workspace;
  const Estimate estimate = estimate_chunk(
      type, {},
      strided_part(box, reinterpret_cast<const std::byte*>(values.data()), type.dtype, box),
      workspace);
  const auto n = static_cast<double>(encoded(values, type.shape).size());
  EXPECT_NEAR(estimate.encoded_bytes, n, 0.1 * n);
}

/// Size of the exact form, or of the raw values if that is smaller.
template <class T>
std::size_t exact_bytes(const std::vector<T>& values, const Shape& shape, Preset preset) {
  const Case chunk = case_of(values, shape, 0, preset);
  ChunkHead head;
  head.dtype = chunk.type.dtype;
  head.method = Method::exact;
  head.n_values = values.size();
  head.extents = extents_of(shape, 0);
  Workspace workspace;
  const ExactAttempt attempt =
      encode_exact_chunk(head, chunk.values, chunk.settings, nullptr, workspace);
  EXPECT_FALSE(attempt.memory_out);
  return attempt.chunk.empty() ? chunk.values.size() : attempt.chunk.size();
}

template <class T>
void expect_not_above_exact(const std::vector<T>& values, const Shape& shape,
                            const std::string& what) {
  for (const Preset preset : {Preset::standard, Preset::ratio, Preset::max}) {
    const Bytes bytes = encoded(values, shape, preset);
    const std::size_t exact = exact_bytes(values, shape, preset);
    EXPECT_LE(bytes.size(), exact + exact / 100 + 16)
        << what << ", preset " << static_cast<int>(preset) << ": " << method_of(bytes);
  }
}

TYPED_TEST(TrzDecimals, RepeatedOnesAreNotLargerThanExact) {
  using T = TypeParam;
  std::vector<T> wave(65536);
  for (std::size_t i = 0; i < wave.size(); ++i) {
    const double x = static_cast<double>(i % 1000) * 6.283 / 1000 * 3;
    wave[i] = static_cast<T>(std::nearbyint((5000 + 300 * std::sin(x)) * 10)) / T(10);
  }
  expect_not_above_exact(wave, {wave.size()}, "wave");
  std::vector<T> tiles(96 * 128 * 64);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const double x = static_cast<double>(i % 128);
    const double y = static_cast<double>(i / 128 % 96);
    const double height = 500 + 40 * std::sin(x / 17) * std::cos(y / 13) + 0.01 * x * y;
    tiles[i] = static_cast<T>(std::nearbyint(height * 10)) / T(10);
  }
  expect_not_above_exact(tiles, {tiles.size()}, "tiles");
  std::vector<T> years(180 * 360 * 16);
  const std::vector<std::int64_t> year = walk(std::size_t{180} * 360, 27000, 40);
  for (std::size_t i = 0; i < years.size(); ++i) {
    years[i] = static_cast<T>(year[i % year.size()]) / T(100);
  }
  expect_not_above_exact(years, {2880, 360}, "years");
  std::vector<T> stairs(262144);
  for (std::size_t i = 0; i < stairs.size(); ++i) {
    stairs[i] = static_cast<T>(i / 64 % 97) + (i % 64 < 3 ? T(0.5) : T(0));
  }
  expect_not_above_exact(stairs, {stairs.size()}, "stairs");
}

TYPED_TEST(TrzDecimals, RandomRepeatsAreNotLargerThanExact) {
  using T = TypeParam;
  Random random(99);
  for (int round = 0; round < test::tier_rounds(60, 5); ++round) {
    const std::size_t n = 3000 + random.below(150000);
    const std::size_t period = 2 + random.below(std::size_t{1} << (2 + random.below(15)));
    const std::uint64_t reach = 1 + random.below(std::uint64_t{1} << random.below(12));
    const std::int64_t from = 1 + static_cast<std::int64_t>(random.below(100000));
    std::vector<std::int64_t> k = walk(period, from, reach);
    const double bend = random.unit() * 500;
    const bool smooth = random.chance(0.5);
    for (std::size_t i = 0; smooth && i < period; ++i) {
      const double x = static_cast<double>(i) / static_cast<double>(period);
      k[i] = from + std::lround(bend * std::sin(6.28 * x * static_cast<double>(1 + reach % 9)));
    }
    const T power = power_of_ten<T>(static_cast<int>(random.below(4)));
    const double changed = random.chance(0.5) ? 0 : random.unit() * 0.01;
    std::vector<T> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t more = random.chance(changed) ? 1 : 0;
      values[i] = static_cast<T>(k[i % period] + more) / power;
    }
    const bool plane = random.chance(0.3);
    const Shape shape = plane ? Shape{n / 50, 50} : Shape{n};
    if (plane) values.resize(n / 50 * 50);
    expect_not_above_exact(values, shape, "round " + std::to_string(round));
  }
}

TYPED_TEST(TrzDecimals, NoChunkUnderABoundIsOne) {
  using T = TypeParam;
  const std::vector<T> values = made_of<T>(walk(30000, 30000), [](T n) { return n / T(100); });
  for (const Preset preset : {Preset::standard, Preset::ratio, Preset::max}) {
    for (const BoundKind kind : {BoundKind::absolute, BoundKind::pointwise}) {
      for (const double bound : {1e-30, 1e-15, 1e-9, 1e-5, 0.005, 0.4}) {
        Workspace workspace;
        Bytes bytes;
        ASSERT_TRUE(round_trip(case_of(values, {30000}, bound, preset, kind), workspace, &bytes));
        EXPECT_NE(method_of(bytes).rfind("decimals", 0), 0U) << bound;
        EXPECT_FALSE(is_decimal(bytes)) << bound;
      }
    }
    Case none = case_of(values, {30000}, 0, preset);
    none.type.kind = BoundKind::absolute;
    Workspace workspace;
    Bytes bytes;
    ASSERT_TRUE(round_trip(none, workspace, &bytes));
    EXPECT_FALSE(is_decimal(bytes));
    EXPECT_TRUE(is_decimal(encoded(values, {30000}, preset)));
  }
}

// --- Memory

// A sanitizer uses additional memory for every byte.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::size_t resident_bytes() {
  std::ifstream pages("/proc/self/statm");
  std::size_t n_all = 0;
  std::size_t n_resident = 0;
  pages >> n_all >> n_resident;
  return n_resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(TrzDecimal, WorkingMemoryIsWithinWhatBudgetsAreTold) {
  // Smooth tenths that recur, for which the forms touch most memory: lattice, integers, zstd.
  std::vector<float> recurring(6'000'000);
  for (std::size_t i = 0; i < recurring.size(); ++i) {
    const double x = 0.001 * static_cast<double>(i % 200000);
    recurring[i] = std::nearbyint(static_cast<float>(50000 + 3000 * std::sin(x))) / 10.0F;
  }
  const std::vector<float> wandering =
      made_of<float>(walk(recurring.size(), 30'000), [](float n) { return n / 100; });
  std::size_t most = 0;
  for (const Preset preset : {Preset::standard, Preset::ratio}) {
    for (const std::vector<float>* values : {&std::as_const(recurring), &wandering}) {
      const Case chunk = case_of(*values, {values->size()}, 0, preset);
      Bytes out(encoded_bytes_max(chunk.values.size()), std::byte{1});
      const std::size_t before = resident_bytes();
      Workspace workspace;
      ASSERT_TRUE(encode(chunk.type, chunk.settings, chunk.values, out, workspace).ok());
      const std::size_t touched = resident_bytes() - before;
      // The last large page of an area also holds untouched bytes.
      const std::size_t pages = static_cast<std::size_t>(Slot::n_slots) * kLargePageBytes / 2;
      EXPECT_LE(touched,
                working_bytes_max(chunk.values.size(), chunk.type, chunk.settings) + pages);
      most = std::max(most, touched);
    }
  }
  EXPECT_GT(most, recurring.size() * sizeof(float));  // Otherwise nothing was measured.
}
#endif

TEST(TrzDecimal, EstimatesOfPatchesKnowTheirBitmap) {
  // Every second value is a fill value: the positions cost one bit each, not three bytes per run.
  std::vector<float> values = made_of<float>(walk(200000, 30000), [](float n) { return n / 100; });
  for (std::size_t i = 0; i < values.size(); i += 2) values[i] = -1e10F;
  const ChunkType type{DType::f32, {200000}, BoundKind::exact, 0};
  const Box box{{0}, type.shape};
  Workspace workspace;
  const Estimate estimate = estimate_chunk(
      type, {},
      strided_part(box, reinterpret_cast<const std::byte*>(values.data()), type.dtype, box),
      workspace);
  const Bytes bytes = encoded(values, type.shape);
  ASSERT_TRUE(is_decimal(bytes)) << method_of(bytes);
  EXPECT_LT(estimate.encoded_bytes, 1.5 * static_cast<double>(bytes.size()));
}

TEST(TrzDecimal, OnlyFloatsWithoutABoundAreToldToTakeTheirMemory) {
  constexpr std::size_t n = std::size_t{1} << 24;
  const auto copies = [](DType dtype, BoundKind kind, Preset preset) {
    ChunkType type;
    type.dtype = dtype;
    type.kind = kind;
    Settings settings;
    settings.preset = preset;
    return working_bytes_max(n, type, settings) / n;
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(copies(dtype, BoundKind::exact, Preset::fast), 3U);
    EXPECT_EQ(copies(dtype, BoundKind::exact, Preset::standard), 6U);
    EXPECT_EQ(copies(dtype, BoundKind::exact, Preset::ratio), 7U);
    EXPECT_EQ(copies(dtype, BoundKind::exact, Preset::max), 12U);
    EXPECT_EQ(copies(dtype, BoundKind::absolute, Preset::standard), 3U);
    EXPECT_EQ(copies(dtype, BoundKind::absolute, Preset::max), 6U);
    EXPECT_EQ(copies(dtype, BoundKind::pointwise, Preset::standard), 7U);
  }
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio, Preset::max}) {
    EXPECT_EQ(copies(DType::i32, BoundKind::exact, preset), 3U);
    EXPECT_EQ(copies(DType::u8, BoundKind::exact, preset), 3U);
  }
}

// --- Bytes that no encoder wrote

struct Parts {
  std::uint8_t method = 8;
  DType dtype = DType::f32;
  std::uint8_t kind = 0;
  float scale = 10;
  float base = 0;
  float offset = 0;
  DType inner_dtype = DType::i32;
  Method inner_method = Method::stored;
  std::vector<std::int32_t> numbers = {1, 2, 3, 4};
  Bytes behind_inner;
  std::vector<std::uint8_t> patches = {0};
};

Bytes chunk_of(const Parts& parts) {
  std::vector<std::uint8_t> inner(200);
  ChunkWriter in(inner);
  ChunkHead head{
      parts.inner_dtype, parts.inner_method, {1, 1, 1, parts.numbers.size()}, parts.numbers.size()};
  write_head(head, in);
  in.bytes(parts.numbers.data(), parts.numbers.size() * sizeof(std::int32_t));
  in.bytes(parts.behind_inner.data(), parts.behind_inner.size());
  const std::size_t n_inner = in.n_written() - kChecksummedFrom;
  std::vector<std::uint8_t> room(400);
  ChunkWriter out(room);
  write_head({parts.dtype, Method::decimal, {1, 1, 1, 4}, 4}, out);
  out.number(parts.kind);
  for (const float number : {parts.scale, parts.base, parts.offset}) out.number(number);
  out.varint(n_inner);
  out.bytes(inner.data() + kChecksummedFrom, n_inner);
  out.bytes(parts.patches.data(), parts.patches.size());
  room.resize(out.n_written());
  room[8] = static_cast<std::uint8_t>((room[8] & 0x0F) | parts.method << 4);
  seal(room);
  const auto bytes = std::as_bytes(std::span(room));
  return {bytes.begin(), bytes.end()};
}

Code code_of(const Bytes& bytes, std::vector<float>* values = nullptr) {
  Workspace workspace;
  std::vector<float> decoded(4);
  const Status status =
      decode(bytes, std::as_writable_bytes(std::span(decoded)), nullptr, workspace);
  if (values != nullptr) *values = decoded;
  static_cast<void>(describe(bytes));
  return status.code();
}

template <class Change>
Code code_after(Change change) {
  Parts parts;
  change(parts);
  return code_of(chunk_of(parts));
}

TEST(TrzDecimalHostile, WhatMakesNoSenseIsRefused) {
  std::vector<float> values;
  ASSERT_EQ(code_of(chunk_of({}), &values), Code::ok);
  EXPECT_EQ(values, (std::vector<float>{0.1F, 0.2F, 0.3F, 0.4F}));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(code_after([](Parts& p) { p.kind = 3; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.kind = 0x80; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.scale = 0; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.scale = -0.0F; }), Code::corrupt);
  for (const float strange : {kInfinity, -kInfinity, kNan}) {
    EXPECT_EQ(code_after([&](Parts& p) { p.scale = strange; }), Code::corrupt);
    EXPECT_EQ(code_after([&](Parts& p) { p.base = strange; }), Code::corrupt);
    EXPECT_EQ(code_after([&](Parts& p) { p.offset = strange; }), Code::corrupt);
  }
  EXPECT_EQ(code_after([](Parts& p) { p.numbers.push_back(5); }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.numbers.pop_back(); }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.inner_dtype = DType::u32; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.inner_dtype = DType::f64; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.inner_method = Method::nested; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.inner_method = Method::decimal; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.behind_inner.push_back(std::byte{0}); }), Code::corrupt);
  // Patches: no end marker; a position beyond the values; positions that stop too early.
  EXPECT_EQ(code_after([](Parts& p) { p.patches = {}; }), Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.patches = {5, 1, 1, 0, 4, 0, 0, 0, 0, 0}; }),
            Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.patches = {5, 2, 1, 0, 1, 0, 0, 0, 0, 0}; }),
            Code::corrupt);
  EXPECT_EQ(code_after([](Parts& p) { p.patches = {5, 1, 1, 0, 1, 0, 0, 0, 0, 0}; }), Code::ok);
}

/// An f32 decimal chunk with another complete and valid chunk inside.
Bytes with_inner(const Bytes& inner, std::size_t n) {
  std::vector<std::uint8_t> room(inner.size() + 200);
  ChunkWriter out(room);
  write_head({DType::f32, Method::decimal, {1, 1, 1, n}, n}, out);
  out.number(std::uint8_t{0});
  for (const float number : {10.0F, 0.0F, 0.0F}) out.number(number);
  out.varint(inner.size() - kChecksummedFrom);
  out.bytes(inner.data() + kChecksummedFrom, inner.size() - kChecksummedFrom);
  out.number(std::uint8_t{0});  // No patches.
  room.resize(out.n_written());
  seal(room);
  const auto bytes = std::as_bytes(std::span(room));
  return {bytes.begin(), bytes.end()};
}

template <class T>
Bytes encoded_as(DType dtype, BoundKind kind, const std::vector<T>& values, int coarse_views = 0) {
  Case chunk;
  chunk.type = {dtype, {values.size()}, kind, kind == BoundKind::exact ? 0.0 : 0.4};
  chunk.settings.coarse_views = coarse_views;
  if (coarse_views > 0) chunk.settings.predictor = Predictor::interpolation;
  chunk.values.resize(values.size() * sizeof(T));
  std::memcpy(chunk.values.data(), values.data(), chunk.values.size());
  Workspace workspace;
  Bytes bytes;
  EXPECT_TRUE(round_trip(chunk, workspace, &bytes));
  return bytes;
}

TEST(TrzDecimalHostile, ValidChunksOfOtherKindsWithinAreRefused) {
  const std::vector<std::int64_t> k = walk(4096, 9000);
  const auto code_within = [](const Bytes& inner, std::size_t n) {
    const Bytes whole = with_inner(inner, n);
    Workspace workspace;
    // Room for twice as many values, so that an error is not hidden by a crash.
    std::vector<float> decoded(2 * n + 64);
    const auto to = std::as_writable_bytes(std::span(decoded)).first(n * sizeof(float));
    return decode(whole, to, nullptr, workspace).code();
  };
  const std::vector<float> smooth = made_of<float>(k, [](float n) { return 5 * n; });
  const std::vector<float> tenths = made_of<float>(k, [](float n) { return n / 10; });
  const std::vector<std::uint32_t> naturals(k.begin(), k.end());
  const std::vector<double> doubles(k.begin(), k.end());
  // Valid inner chunks.
  EXPECT_EQ(code_within(encoded_as(DType::i32, BoundKind::exact, narrow(k)), k.size()), Code::ok);
  const Bytes lattice = encoded_as(DType::f32, BoundKind::absolute, smooth);
  EXPECT_EQ(lattice[8] >> 4, std::byte{static_cast<std::uint8_t>(Method::lattice)});
  EXPECT_EQ(code_within(lattice, k.size()), Code::ok);
  // Invalid inner chunks, although each has as many values.
  const Bytes decimals = encoded(tenths, {tenths.size()});
  ASSERT_TRUE(is_decimal(decimals));
  EXPECT_EQ(code_within(decimals, k.size()), Code::corrupt);
  Random random(8);
  std::vector<float> wave(65536);
  for (std::size_t i = 0; i < wave.size(); ++i) {
    const auto noise = static_cast<float>(random.unit());
    wave[i] = 3000 * std::sin(0.01F * static_cast<float>(i)) + 40 * noise;
  }
  const Bytes nested = encoded_as(DType::f32, BoundKind::absolute, wave, 1);
  ASSERT_EQ(nested[8] >> 4, std::byte{static_cast<std::uint8_t>(Method::nested)});
  EXPECT_EQ(code_within(nested, wave.size()), Code::corrupt);
  for (const Bytes& other : {encoded_as(DType::u32, BoundKind::exact, naturals),
                             encoded_as(DType::f64, BoundKind::exact, doubles),
                             encoded_as(DType::f64, BoundKind::absolute, doubles)}) {
    EXPECT_EQ(code_within(other, k.size()), Code::corrupt);
  }
  // Fewer or more values than the chunk has.
  const Bytes integers = encoded_as(DType::i32, BoundKind::exact, narrow(k));
  EXPECT_EQ(code_within(integers, k.size() - 1), Code::corrupt);
  EXPECT_EQ(code_within(integers, k.size() + 1), Code::corrupt);
  EXPECT_EQ(code_within(lattice, k.size() - 1), Code::corrupt);
  EXPECT_EQ(code_within(lattice, k.size() + 1), Code::corrupt);
}

TEST(TrzDecimalHostile, IsOfItsMethodAlone) {
  for (const unsigned method : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 9U, 15U}) {
    EXPECT_EQ(code_after([&](Parts& p) { p.method = static_cast<std::uint8_t>(method); }),
              Code::corrupt)
        << method;
  }
  EXPECT_EQ(code_after([](Parts& p) { p.dtype = DType::i32; }), Code::corrupt);
}

TEST(TrzDecimalHostile, NumbersInALaterFormAreRefusedByName) {
  Parts parts;
  parts.inner_method = static_cast<Method>(kMethods);
  Workspace workspace;
  Bytes values(4 * sizeof(float));
  EXPECT_EQ(decode(chunk_of(parts), values, nullptr, workspace).message(),
            "trz chunk: needs a newer trz: unknown form of a chunk within it");
}

TEST(TrzDecimalHostile, TheMapAsText) {
  const auto text_after = [](auto change) {
    Parts parts;
    change(parts);
    return method_of(chunk_of(parts));
  };
  EXPECT_EQ(text_after([](Parts&) {}), "decimals, k / 10");
  EXPECT_EQ(text_after([](Parts& p) { p.scale = 1; }), "decimals, k");
  EXPECT_EQ(text_after([](Parts& p) { p.base = -17; }), "decimals, (k - 17) / 10");
  EXPECT_EQ(text_after([](Parts& p) {
              p.base = 17;
              p.scale = 1;
            }),
            "decimals, k + 17");
  EXPECT_EQ(text_after([](Parts& p) {
              p.kind = 1;
              p.scale = 0.001F;
              p.offset = -10;
            }),
            "decimals, k * 0.001 - 10");
  EXPECT_EQ(text_after([](Parts& p) {
              p.kind = 2;
              p.scale = 1;
              p.base = -1.5F;
              p.offset = 0.5F;
            }),
            "decimals, 1 / (k - 1.5) + 0.5");
}

TEST(TrzDecimalHostile, ExtremeNumbersGiveValuesAndNothingElse) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  for (const unsigned kind : {0U, 1U, 2U}) {
    for (const float scale : {kMost, -kMost, kLeast, 1.0F}) {
      for (const float base : {0.0F, kMost, -kMost}) {
        Parts parts;
        parts.kind = static_cast<std::uint8_t>(kind);
        parts.scale = scale;
        parts.base = parts.offset = base;
        parts.numbers = {0, -1, std::numeric_limits<std::int32_t>::min(),
                         std::numeric_limits<std::int32_t>::max()};
        EXPECT_EQ(code_of(chunk_of(parts)), Code::ok);
        // Integers replaced by arbitrary nearby numbers, including a NaN.
        parts.inner_dtype = DType::f32;
        parts.numbers = {0x7FC00000, 0x7F7FFFFF, static_cast<std::int32_t>(0xFF800000), 1};
        EXPECT_EQ(code_of(chunk_of(parts)), Code::ok);
      }
    }
  }
}

template <class T>
void expect_sane_mutants(const std::vector<T>& values, const Shape& shape, std::uint64_t seed) {
  const Bytes chunk = encoded(values, shape);
  ASSERT_TRUE(is_decimal(chunk));
  Random random(seed);
  // Map, inner head and parameters are at the front, patches at the end.
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes = chunk;
    trz_cases::damage(bytes, 60, random);
    EXPECT_TRUE(whole::stays_in_bounds(bytes, values.size() * sizeof(T), nullptr));
  }
}

TEST(TrzDecimalHostile, MutatedWithAFittingChecksum) {
  std::vector<float> singles = made_of<float>(walk(2500, 9000), [](float n) { return n / 100; });
  singles[700] = std::nanf("");
  expect_sane_mutants(singles, {2500}, 12);
  std::vector<double> doubles =
      made_of<double>(walk(2500, 9000), [](double n) { return n * 0.01 - 10; });
  doubles[30] = 1e300;
  expect_sane_mutants(doubles, {2500}, 13);
  // The integers on a lattice.
  std::vector<float> smooth(std::size_t{48} * 64);
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    const auto x = static_cast<float>(i % 64);
    const std::size_t row = i / 64;
    const auto y = static_cast<float>(row);
    smooth[i] = std::nearbyint(50000 + x * x + 2 * y * x + 0.05F * y * y * x) / 10;
  }
  EXPECT_EQ(inner_head_of(encoded(smooth, {48, 64})).method, Method::lattice);
  expect_sane_mutants(smooth, {48, 64}, 14);
}

}  // namespace
}  // namespace tailrace::trz
