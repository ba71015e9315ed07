// Rounding within a bound, and the byte shuffle: the two transformations of codec portable.

#include <gtest/gtest.h>

#include "codec/rounding.hpp"
#include "trz/base/byte_shuffle.hpp"
#include "unit/codec_samples.hpp"

namespace tailrace {
namespace {

using test::Random;

constexpr Rounding kRoundings[] = {Rounding::nearest, Rounding::coarse, Rounding::held};

/// Values around everything special to a lattice of step 2^k: multiples, halves, both zeros,
/// neighbours of all of these, and random bits.
template <class T>
std::vector<T> awkward_values(double step) {
  std::vector<T> values = {T(0),
                           -T(0),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::lowest(),
                           std::numeric_limits<T>::denorm_min(),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::quiet_NaN()};
  for (const double factor : {0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 1e3, 4194303.5, 4194304.0,
                              8388607.5, 16777216.0, 0x1p50, 0x1p52, 0x1p53}) {
    for (const double sign : {1.0, -1.0}) {
      const auto x = static_cast<T>(sign * factor * step);
      values.push_back(x);
      values.push_back(std::nextafter(x, std::numeric_limits<T>::infinity()));
      values.push_back(std::nextafter(x, -std::numeric_limits<T>::infinity()));
    }
  }
  Random random;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bits = random.next();
    T value;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
    values.push_back(static_cast<T>((random.unit() - 0.5) * 1e4 * step));
  }
  return values;
}

template <class T>
void check_floats() {
  for (int exponent = std::numeric_limits<T>::min_exponent - 60;
       exponent < std::numeric_limits<T>::max_exponent; exponent += 7) {
    for (const double mantissa : {1.0, 1.0000000000000002, 1.3, 1.9999999999999998}) {
      const double bound = std::ldexp(mantissa, exponent);
      const std::optional<Lattice<T>> lattice = Lattice<T>::within(bound);
      if (!lattice) continue;
      const std::vector<T> original = awkward_values<T>(bound);
      for (const Rounding rounding : kRoundings) {
        std::vector<T> rounded = original;
        round_values(*lattice, rounding, std::optional<T>(), rounded.data(), rounded.size());
        for (std::size_t i = 0; i < original.size(); ++i) {
          const T x = original[i];
          const T y = rounded[i];
          if (Lattice<T>::special(x)) {
            ASSERT_EQ(std::memcmp(&x, &y, sizeof x), 0) << x;
          } else {
            ASSERT_FALSE(exceeds_bound(double{x}, double{y}, bound))
                << x << " " << y << " " << bound;
          }
        }
      }
    }
  }
}

TEST(RoundingTest, FloatsStayWithinEveryBound) {
  check_floats<float>();
  check_floats<double>();
}

template <class T>
void check_integers() {
  std::vector<T> original = {std::numeric_limits<T>::max(),
                             std::numeric_limits<T>::min(),
                             T(0),
                             T(1),
                             static_cast<T>(std::numeric_limits<T>::max() - 1),
                             static_cast<T>(std::numeric_limits<T>::min() + 1)};
  Random random;
  for (int i = 0; i < 3000; ++i) original.push_back(static_cast<T>(random.next()));
  for (const double bound : {1.0, 1.99, 2.0, 3.0, 31.0, 1000.0, 1e9, 1e30}) {
    const std::optional<Lattice<T>> lattice = Lattice<T>::within(bound);
    ASSERT_TRUE(lattice.has_value());
    for (const Rounding rounding : kRoundings) {
      std::vector<T> rounded = original;
      round_values(*lattice, rounding, std::optional<T>(T(9)), rounded.data(), rounded.size());
      for (std::size_t i = 0; i < original.size(); ++i) {
        const T x = original[i];
        const T y = rounded[i];
        const auto gap = x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
                               : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
        ASSERT_LE(static_cast<double>(gap), bound) << +x << " " << +y;
        ASSERT_EQ(x == T(9), y == T(9));
      }
    }
  }
  EXPECT_FALSE(Lattice<T>::within(0.99).has_value());
}

TEST(RoundingTest, IntegersStayWithinEveryBound) {
  check_integers<std::int8_t>();
  check_integers<std::int16_t>();
  check_integers<std::int32_t>();
  check_integers<std::int64_t>();
  check_integers<std::uint8_t>();
  check_integers<std::uint16_t>();
  check_integers<std::uint32_t>();
  check_integers<std::uint64_t>();
}

TEST(RoundingTest, TheFillValueIsKeptAndNeverMade) {
  const float fill = 2.0F;  // On the lattice; values near it would round to it.
  std::vector<float> original;
  for (int i = 0; i < 1000; ++i) original.push_back(1.0F + 0.002F * static_cast<float>(i));
  original.push_back(fill);
  for (const Rounding rounding : kRoundings) {
    std::vector<float> rounded = original;
    round_values(*Lattice<float>::within(0.3), rounding, std::optional<float>(fill), rounded.data(),
                 rounded.size());
    for (std::size_t i = 0; i < original.size(); ++i) {
      EXPECT_EQ(original[i] == fill, rounded[i] == fill);
    }
  }
}

TEST(RoundingTest, NearestGivesMultiplesOfAPowerOfTwo) {
  std::vector<float> values = test::smooth_values<float>(1000);
  round_values(*Lattice<float>::within(0.3), Rounding::nearest, std::optional<float>(),
               values.data(), values.size());
  for (const float value : values) EXPECT_EQ(value, std::nearbyint(value * 2) / 2);
}

TEST(ByteShuffle, MatchesTheDefinitionForEveryLength) {
  Random random;
  for (const std::size_t element_bytes : {1U, 2U, 3U, 4U, 5U, 8U, 16U}) {
    for (std::size_t n_bytes = 0; n_bytes < 700; n_bytes += 1 + n_bytes / 40) {
      std::vector<std::byte> from(n_bytes);
      for (std::byte& byte : from) byte = static_cast<std::byte>(random.next());
      std::vector<std::byte> expected = from;
      const std::size_t n = n_bytes / element_bytes;
      if (element_bytes > 1 && n > 1) {
        for (std::size_t i = 0; i < n; ++i) {
          for (std::size_t k = 0; k < element_bytes; ++k) {
            expected[k * n + i] = from[i * element_bytes + k];
          }
        }
      }
      std::vector<std::byte> shuffled(n_bytes);
      shuffle_bytes(element_bytes, from, shuffled);
      ASSERT_EQ(shuffled, expected) << element_bytes << " " << n_bytes;
      std::vector<std::byte> back(n_bytes);
      unshuffle_bytes(element_bytes, shuffled, back);
      ASSERT_EQ(back, from) << element_bytes << " " << n_bytes;
    }
  }
}

}  // namespace
}  // namespace tailrace
