// Sample values for codecs: ordinary ones, and ones that break codecs.
//
// Integer arithmetic makes all of them from a fixed seed, so that every machine tests the same
// bytes.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "codec/value_lanes.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace::test {

inline constexpr DType all_dtypes[] = {DType::f32, DType::f64, DType::i8,  DType::i16, DType::i32,
                                       DType::i64, DType::u8,  DType::u16, DType::u32, DType::u64};

/// SplitMix64: a good generator in three lines.
struct Random {
  std::uint64_t state = 42;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

/// One array and its description.
struct Sample {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::byte> bytes;
  bool ordinary = true;  ///< Finite values without a fill value: every lossy codec must cope.
  std::optional<double> fill_value = std::nullopt;

  Buffer buffer() const { return Buffer::copy_of(bytes); }
};

template <class T>
Sample make_sample(std::string name, DType dtype, const std::vector<T>& values) {
  Sample sample;
  sample.name = std::move(name) + "/" + std::string(dtype_name(dtype));
  sample.dtype = dtype;
  sample.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(sample.bytes.data(), values.data(), sample.bytes.size());
  return sample;
}

/// A smooth field with a little noise, within +-100 (0..100 for unsigned).
template <class T>
std::vector<T> smooth_values(std::size_t n) {
  Random random;
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i);
    const double wave = 60 * std::sin(x * 0.01) + 30 * std::sin(x * 0.0007) + 9 * random.unit();
    values[i] = static_cast<T>(std::is_unsigned_v<T> ? std::fabs(wave) : wave);
  }
  return values;
}

/// Samples of one floating type with values that are difficult for codecs.
template <class T>
void add_odd_floats(DType dtype, std::size_t n, std::vector<Sample>& samples) {
  using Limits = std::numeric_limits<T>;
  const auto add = [&](const char* name, std::vector<T> values, std::optional<double> fill = {}) {
    samples.push_back(make_sample(name, dtype, values));
    samples.back().ordinary = false;
    samples.back().fill_value = fill;
  };
  std::vector<T> values = smooth_values<T>(n);
  for (std::size_t i = 0; i < n; i += 7) values[i] = Limits::quiet_NaN();
  for (std::size_t i = 3; i < n; i += 50) values[i] = std::copysign(Limits::quiet_NaN(), T(-1));
  add("nan", values);
  add("all nan", std::vector<T>(n, Limits::quiet_NaN()));
  values = smooth_values<T>(n);
  for (std::size_t i = 0; i < n; i += 11)
    values[i] = i % 2 == 0 ? Limits::infinity() : -Limits::infinity();
  add("inf", values);
  values.assign(n, 0);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = static_cast<T>(static_cast<double>(i % 100) - 50) * Limits::denorm_min();
  add("denormal", values);
  values = smooth_values<T>(n);
  for (std::size_t i = 0; i < n; i += 2) values[i] = T(-1e34);
  add("fill", values, -1e34);
  values = smooth_values<T>(n);
  for (std::size_t i = 0; i < n; i += 3) values[i] = T(0.25);
  add("fill among the values", values, 0.25);
  values.assign(n, T(0));
  for (std::size_t i = 0; i < n; i += 2) values[i] = -T(0);
  add("both zeros", values);
  values.assign(n, Limits::max());
  for (std::size_t i = 0; i < n; i += 2) values[i] = Limits::lowest();
  add("huge", values);
  Random random;
  for (T& value : values) {
    const std::uint64_t bits = random.next();
    std::memcpy(&value, &bits, sizeof value);
  }
  add("random bits", values);
}

/// All samples of one type for a chunk of n values.
inline std::vector<Sample> samples_of(DType dtype, std::size_t n) {
  std::vector<Sample> samples;
  visit_dtype(dtype, [&]<class T>() {
    samples.push_back(make_sample("smooth", dtype, smooth_values<T>(n)));
    samples.push_back(make_sample("constant", dtype, std::vector<T>(n, T(7))));
    samples.push_back(make_sample("zero", dtype, std::vector<T>(n, T(0))));
    Random random;
    std::vector<T> values(n);
    for (T& value : values) value = static_cast<T>(random.unit() * 100);
    samples.push_back(make_sample("random", dtype, values));
    if constexpr (std::is_floating_point_v<T>) {
      add_odd_floats<T>(dtype, n, samples);
    } else {
      for (T& value : values) value = static_cast<T>(random.next());
      samples.push_back(make_sample("random bits", dtype, values));
      samples.push_back(make_sample("random bits with fill", dtype, values));
      samples.back().fill_value = static_cast<double>(static_cast<std::int8_t>(7));
      values.assign(n, std::numeric_limits<T>::max());
      for (std::size_t i = 0; i < n; i += 2) values[i] = std::numeric_limits<T>::min();
      samples.push_back(make_sample("limits", dtype, values));
    }
  });
  return samples;
}

}  // namespace tailrace::test
