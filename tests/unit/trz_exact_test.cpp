// Exact coding of trz: conversion of every type to words and back, and the choice of a form. Round
// trips are exact with the same bytes from every instruction set, and inconsistent content is
// refused.

#include "trz/exact/exact.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "trz/trz.hpp"
#include "unit/trz_isas.hpp"

namespace tailrace::trz {
namespace {

constexpr DType kAllTypes[] = {DType::f32, DType::f64, DType::i8,  DType::i16, DType::i32,
                               DType::i64, DType::u8,  DType::u16, DType::u32, DType::u64};

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Elements of a type with the given 64-bit patterns, truncated to its width.
Bytes cut(const std::vector<std::uint64_t>& patterns, DType dtype) {
  Bytes bytes(patterns.size() * dtype_bytes(dtype));
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    std::memcpy(bytes.data() + i * dtype_bytes(dtype), &patterns[i], dtype_bytes(dtype));
  }
  return bytes;
}

std::vector<std::uint64_t> random_patterns(std::size_t n) {
  std::mt19937_64 random(n);
  std::vector<std::uint64_t> patterns(n);
  for (auto& pattern : patterns) pattern = random();
  // The extremes of every width.
  std::size_t at = 0;
  for (unsigned bit : {7U, 8U, 15U, 16U, 31U, 32U, 63U}) {
    for (std::uint64_t around : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
      if (at < n) patterns[at++] = (std::uint64_t{1} << bit) + around;
    }
  }
  return patterns;
}

const WordKernels& kernels_of(DType dtype, Isa isa) {
  return exact_kernels(isa).of_dtype[static_cast<std::size_t>(dtype)];
}

TEST(TrzExact, EveryPatternOfEveryTypeReturnsFromItsWord) {
  const auto patterns = random_patterns(1003);
  for (const DType dtype : kAllTypes) {
    const Bytes values = cut(patterns, dtype);
    for (const std::uint64_t factor : {1ULL, 3ULL, 1000003ULL}) {
      const WordMap map = word_map(0x123456789ABCDEF0ULL, factor);
      std::vector<std::int64_t> reference;
      for (const Isa isa : isas()) {
        const WordKernels& kernels = kernels_of(dtype, isa);
        Bytes back(values.size());
        std::vector<std::int64_t> words(patterns.size());
        if (dtype_bytes(dtype) == 8) {
          kernels.to_wide(values.data(), words.size(), map, words.data());
          kernels.from_wide(words.data(), words.size(), map, back.data());
        } else {
          std::vector<std::int32_t> narrow(words.size());
          kernels.to_words(values.data(), words.size(), map, narrow.data());
          kernels.from_words(narrow.data(), words.size(), map, back.data());
          words.assign(narrow.begin(), narrow.end());
        }
        ASSERT_EQ(back, values) << dtype_name(dtype) << " " << isa_name(isa);
        if (reference.empty()) reference = words;
        ASSERT_EQ(words, reference) << dtype_name(dtype) << " " << isa_name(isa);
      }
    }
  }
}

TEST(TrzExact, WordsAreInTheOrderOfTheValues) {
  const std::vector<double> values = {
      -std::numeric_limits<double>::infinity(), -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1.5,
      std::numeric_limits<double>::infinity()};
  std::vector<std::int64_t> words(values.size());
  kernels_of(DType::f64, best_isa())
      .to_wide(values.data(), values.size(), word_map(0, 1), words.data());
  for (std::size_t i = 1; i < words.size(); ++i) EXPECT_LT(words[i - 1], words[i]) << i;
  EXPECT_EQ(words[4], 0);
  EXPECT_EQ(words[2], -words[6]);
}

/// Encodes with every instruction set, compares the bytes, decodes with every one, and compares the
/// values.
std::size_t check_round_trip(const Bytes& values, DType dtype, const Shape& shape,
                             const Settings& settings = {}) {
  ChunkType type;
  type.dtype = dtype;
  type.shape = shape;
  type.kind = BoundKind::exact;
  Bytes reference;
  for (const Isa isa : isas()) {
    Workspace workspace(isa);
    Bytes encoded(encoded_bytes_max(values.size()));
    const auto n_bytes = encode(type, settings, values, encoded, workspace);
    EXPECT_TRUE(n_bytes.ok()) << dtype_name(dtype);
    if (!n_bytes.ok()) return 0;
    encoded.resize(*n_bytes);
    if (reference.empty()) reference = encoded;
    EXPECT_EQ(encoded, reference) << dtype_name(dtype) << " " << isa_name(isa);
    Bytes back(values.size());
    EXPECT_TRUE(decode(encoded, back, nullptr, workspace).ok()) << dtype_name(dtype);
    EXPECT_EQ(back, values) << dtype_name(dtype) << " " << isa_name(isa);
  }
  return reference.size();
}

/// A smooth field of any type, within the type's range.
Bytes smooth(DType dtype, const Shape& shape) {
  std::vector<std::uint64_t> patterns;
  std::vector<double> field;
  const std::size_t row = static_cast<std::size_t>(shape.back());
  for (std::size_t i = 0; i < n_elements(shape); ++i) {
    const auto x = static_cast<double>(i % row);
    const auto y = static_cast<double>(i / row);
    field.push_back(50 * std::sin(0.05 * x) * std::cos(0.03 * y) + 60);
  }
  for (const double value : field) {
    switch (dtype) {
      case DType::f32:
        patterns.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
        break;
      case DType::f64: patterns.push_back(std::bit_cast<std::uint64_t>(value)); break;
      case DType::i64:
      case DType::u64: patterns.push_back(static_cast<std::uint64_t>(value * 1e15)); break;
      default: patterns.push_back(static_cast<std::uint64_t>(value)); break;
    }
  }
  return cut(patterns, dtype);
}

TEST(TrzExact, AllTypesAndShapesReturnBitForBit) {
  const std::vector<Shape> shapes = {{2},          {63},          {5000},  {70, 70},
                                     {17, 19, 23}, {3, 5, 7, 11}, {900, 6}};
  for (const DType dtype : kAllTypes) {
    for (const Shape& shape : shapes) {
      const auto n = static_cast<std::size_t>(n_elements(shape));
      SCOPED_TRACE(std::string(dtype_name(dtype)) + ", " + std::to_string(n) + " values");
      const std::size_t n_bytes = n * dtype_bytes(dtype);
      EXPECT_LE(check_round_trip(cut(random_patterns(n), dtype), dtype, shape), n_bytes + 64);
      const std::size_t encoded = check_round_trip(smooth(dtype, shape), dtype, shape);
      if (n > 4000) {
        EXPECT_LT(encoded, n_bytes * 9 / 10);
      }
    }
  }
}

TEST(TrzExact, AllPresetsReturnBitForBit) {
  const Shape shape = {40, 50, 30};
  for (const DType dtype : {DType::f32, DType::f64, DType::u16}) {
    for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio}) {
      for (const Choice stage : {Choice::automatic, Choice::off, Choice::on}) {
        Settings settings;
        settings.preset = preset;
        settings.lossless_stage = stage;
        static_cast<void>(check_round_trip(smooth(dtype, shape), dtype, shape, settings));
      }
    }
  }
}

TEST(TrzExact, MasksAndSpecialValuesReturnBitForBit) {
  const Shape shape = {60, 100};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double fill : {-1e34, 1e30, nan}) {
      std::vector<double> field;
      for (std::size_t i = 0; i < 6000; ++i) {
        const bool masked = (i / 37) % 3 == 0;
        field.push_back(masked ? fill : std::sin(0.01 * static_cast<double>(i)));
      }
      field[1000] = -0.0;
      field[2000] = -std::numeric_limits<double>::infinity();
      const std::vector<float> narrow(field.begin(), field.end());
      const Bytes values = dtype == DType::f32 ? bytes_of(narrow) : bytes_of(field);
      static_cast<void>(check_round_trip(values, dtype, shape));
      Workspace workspace;
      const ExactPlan plan =
          choose_exact({dtype, values.data(), {1, 1, 60, 100}}, ZstdTrials::none, workspace);
      EXPECT_TRUE(plan.has_special) << fill;
    }
  }
}

TEST(TrzExact, ChoosesByWhatTheValuesAreLike) {
  Workspace workspace;
  std::mt19937_64 random(3);
  const std::size_t n = 60000;
  const Extents extents = {1, 1, 200, 300};
  const auto choose = [&](DType dtype, const Bytes& values) {
    return choose_exact({dtype, values.data(), extents}, ZstdTrials::thorough, workspace);
  };
  EXPECT_EQ(choose(DType::f32, cut(random_patterns(n), DType::f32)).form, ExactForm::stored);
  EXPECT_EQ(choose(DType::f64, cut(random_patterns(n), DType::f64)).form, ExactForm::stored);
  EXPECT_EQ(choose(DType::f32, smooth(DType::f32, {200, 300})).form, ExactForm::words);
  EXPECT_GE(choose(DType::f32, smooth(DType::f32, {200, 300})).order, 2);

  // Times in milliseconds, stored as nanoseconds: a common factor, after which 32 bits suffice.
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < n; ++i) {
    times.push_back(1700000000000000000 + 1000000 * static_cast<std::int64_t>(random() % 90000));
  }
  const ExactPlan timed = choose(DType::i64, bytes_of(times));
  EXPECT_EQ(timed.form, ExactForm::words);
  EXPECT_EQ(timed.factor, 1000000U);

  // One value that the sample will hardly see prevents a larger power of two.
  std::vector<float> counts(n);
  for (auto& count : counts) count = static_cast<float>(random() % 4);
  counts[n / 3] = 1.0F + 0x1p-20F;
  static_cast<void>(check_round_trip(bytes_of(counts), DType::f32, {200, 300}));

  // A few values in random order, repeated.
  std::vector<double> few;
  for (std::size_t i = 0; i < n; ++i) few.push_back(std::sqrt(static_cast<double>(random() % 20)));
  EXPECT_EQ(choose(DType::f64, bytes_of(few)).form, ExactForm::zstd);
}

/// Velocities: smooth, of both signs, so that exponents change within every row.
template <class T>
std::vector<T> waves(std::size_t nz, std::size_t ny, std::size_t nx) {
  std::vector<T> field;
  for (std::size_t z = 0; z < nz; ++z) {
    for (std::size_t y = 0; y < ny; ++y) {
      for (std::size_t x = 0; x < nx; ++x) {
        const double value = std::sin(0.11 * static_cast<double>(x)) *
                             std::cos(0.13 * static_cast<double>(y)) *
                             std::sin(0.17 * static_cast<double>(z) + 0.2);
        field.push_back(static_cast<T>(1e7 * value));
      }
    }
  }
  return field;
}

Settings ratio_preset() {
  Settings settings;
  settings.preset = Preset::ratio;
  return settings;
}

/// First byte of an exact body.
std::uint8_t form_byte(const ExactAttempt& attempt, const ChunkHead& head) {
  ChunkHead copy = head;
  std::uint8_t bytes[64];
  ChunkWriter measure(bytes);
  write_head(copy, measure);
  return attempt.chunk[measure.n_written()];
}

TEST(TrzExact, FloatsArePredictedInFloatingPointWhereThatIsSmaller) {
  const Shape shape = {30, 32, 40};
  const Bytes narrow = bytes_of(waves<float>(30, 32, 40));
  const Bytes wide = bytes_of(waves<double>(30, 32, 40));
  EXPECT_LT(check_round_trip(narrow, DType::f32, shape, ratio_preset()),
            check_round_trip(narrow, DType::f32, shape) * 95 / 100);
  EXPECT_LT(check_round_trip(wide, DType::f64, shape, ratio_preset()),
            check_round_trip(wide, DType::f64, shape));
  ChunkHead head;
  head.method = Method::exact;
  head.extents = {1, 30, 32, 40};
  head.n_values = 30 * 32 * 40;
  Workspace workspace;
  const ExactAttempt attempt = encode_exact_chunk(head, narrow, ratio_preset(), nullptr, workspace);
  EXPECT_EQ(form_byte(attempt, head), 0x14);  // Form 4, floats.
}

TEST(TrzExact, FloatPredictionsThatOverflowReturnBitForBit) {
  // Sums of neighbours become infinite, and differences of infinite neighbours NaN.
  for (const double large : {3e38, 1.7e308}) {
    for (const Shape& shape : {Shape{24, 26, 30}, Shape{150, 140}, Shape{3, 10, 20, 30}}) {
      const auto n = static_cast<std::size_t>(n_elements(shape));
      std::vector<double> field = waves<double>(1, 1, n);
      for (std::size_t i = 0; i < n; ++i) {
        field[i] *= large / 1e7;
        if (i % 97 == 5) field[i] = i % 2 == 0 ? large : -large;
        if (i % 501 == 7) field[i] = std::numeric_limits<double>::infinity();
        if (i % 503 == 9) field[i] = -std::numeric_limits<double>::quiet_NaN();
        if (i % 211 == 3) field[i] = -0.0;
      }
      const std::vector<float> narrow(field.begin(), field.end());
      static_cast<void>(check_round_trip(bytes_of(field), DType::f64, shape, ratio_preset()));
      static_cast<void>(check_round_trip(bytes_of(narrow), DType::f32, shape, ratio_preset()));
    }
  }
}

TEST(TrzExact, FloatKernelsAgreeOnAnyBits) {
  const auto patterns = random_patterns(4 * 1021);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::size_t row = 1021 * dtype_bytes(dtype);
    const Bytes values = cut(patterns, dtype);
    const FloatRows rows{values.data(), values.data() + row, values.data() + 2 * row};
    const std::byte* from = values.data() + 3 * row;
    Bytes reference;
    for (const Isa isa : isas()) {
      Bytes codes(row);
      Bytes back(row);
      kernels_of(dtype, isa).difference_floats(from, rows, 1021, codes.data());
      kernels_of(dtype, isa).sum_floats(codes.data(), rows, 1021, back.data());
      EXPECT_EQ(0, std::memcmp(back.data(), from, row)) << isa_name(isa);
      if (reference.empty()) reference = codes;
      EXPECT_EQ(codes, reference) << isa_name(isa);
    }
  }
}

TEST(TrzExact, ModelledParametersThatMakeNoSenseAreRefused) {
  ChunkHead head;
  head.method = Method::exact;
  head.extents = {1, 30, 32, 40};
  head.n_values = 30 * 32 * 40;
  const Bytes values = bytes_of(waves<float>(30, 32, 40));
  Workspace workspace;
  const ExactAttempt attempt = encode_exact_chunk(head, values, ratio_preset(), nullptr, workspace);
  ChunkWriter measure(attempt.chunk);
  write_head(head, measure);
  const std::vector<std::uint8_t> content(
      attempt.chunk.begin() + static_cast<std::ptrdiff_t>(measure.n_written()),
      attempt.chunk.end());
  ASSERT_EQ(content[0], 0x14);
  ASSERT_EQ(content[2], 80);  // The distance of two rows.
  Bytes back(values.size());
  const auto outcome = [&](const std::vector<std::uint8_t>& bytes, const ChunkHead& with) {
    ChunkReader in(bytes);
    const DecodeFailure failure = decode_exact_chunk(in, with, nullptr, back, workspace);
    return failure == DecodeFailure::none && !in.at_end() ? DecodeFailure::corrupt : failure;
  };
  EXPECT_EQ(outcome(content, head), DecodeFailure::none);
  EXPECT_EQ(back, values);
  const std::pair<std::size_t, std::uint8_t> changes[] = {
      {0, 0x54}, {0, 0x94}, {0, 0x34}, {0, 0x15}, {0, 0x12}, {1, 0}, {1, 4}, {2, 63}, {2, 0}};
  for (const auto& [at, byte] : changes) {
    std::vector<std::uint8_t> changed = content;
    changed[at] = byte;
    EXPECT_EQ(outcome(changed, head), DecodeFailure::corrupt) << at << " " << int{byte};
  }
  ChunkHead integers = head;
  integers.dtype = DType::i32;
  EXPECT_EQ(outcome(content, integers), DecodeFailure::corrupt);
}

/// n values of n_words, in random order; they include NaN, -0.0 and infinity.
template <class T>
std::vector<T> few_values(std::size_t n, std::size_t n_words) {
  std::mt19937_64 random(n_words);
  std::vector<T> words(n_words);
  for (std::size_t i = 0; i < n_words; ++i) {
    words[i] = static_cast<T>(std::sqrt(static_cast<double>(random() % 1000003 + 1)) - 500);
  }
  words[0] = std::numeric_limits<T>::quiet_NaN();
  words[1] = T(-0.0);
  words[2 % n_words] = std::numeric_limits<T>::infinity();
  std::vector<T> values(n);
  for (T& value : values) value = words[random() % n_words];
  return values;
}

TEST(TrzExact, FewValuesTakeLittleMoreThanTheirRanks) {
  for (const std::size_t n_words : {2U, 3U, 255U, 256U, 257U, 3000U}) {
    const double bits = std::log2(static_cast<double>(n_words));
    const std::size_t n = n_words == 3000 ? 60000 : 12000;
    const auto narrow = bytes_of(few_values<float>(n, n_words));
    const auto wide = bytes_of(few_values<double>(n, n_words));
    const auto most = [&](std::size_t element_bytes) {
      return 1.06 * (bits + 0.1) * static_cast<double>(n) / 8 +
             static_cast<double>(n_words * element_bytes) + 100;
    };
    const Shape shape = {n / 100, 100};
    EXPECT_LT(static_cast<double>(check_round_trip(narrow, DType::f32, shape, ratio_preset())),
              most(4))
        << n_words;
    EXPECT_LT(static_cast<double>(check_round_trip(wide, DType::f64, shape, ratio_preset())),
              most(8))
        << n_words;
  }
}

/// The sanitizer sees a sample that goes beyond the values.
TEST(TrzExact, ASampleStaysWithinAnyNumberOfValues) {
  for (const std::size_t n : {4096U, 4097U, 4100U, 8191U, 8192U, 8194U, 12288U}) {
    const auto values = bytes_of(few_values<double>(n, 200));
    EXPECT_LT(check_round_trip(values, DType::f64, {n}, ratio_preset()), 2 * n) << n;
  }
}

TEST(TrzExact, DictionariesThatMakeNoSenseAreRefused) {
  ChunkHead head;
  head.method = Method::exact;
  head.extents = {1, 1, 40, 100};
  head.n_values = 4000;
  const Bytes values = bytes_of(few_values<float>(4000, 200));
  Workspace workspace;
  const ExactAttempt attempt = encode_exact_chunk(head, values, ratio_preset(), nullptr, workspace);
  ChunkWriter measure(attempt.chunk);
  write_head(head, measure);
  const std::vector<std::uint8_t> content(
      attempt.chunk.begin() + static_cast<std::ptrdiff_t>(measure.n_written()),
      attempt.chunk.end());
  ASSERT_EQ(content[0], 5);
  Bytes back(values.size());
  const auto outcome = [&](const std::vector<std::uint8_t>& bytes, const ChunkHead& with) {
    ChunkReader in(bytes);
    const DecodeFailure failure = decode_exact_chunk(in, with, nullptr, back, workspace);
    return failure == DecodeFailure::none && !in.at_end() ? DecodeFailure::corrupt : failure;
  };
  EXPECT_EQ(outcome(content, head), DecodeFailure::none);
  EXPECT_EQ(back, values);
  // A flag, one word, fewer words than ranks.
  const std::pair<std::size_t, std::uint8_t> changes[] = {{0, 0x15}, {0, 0x45}, {1, 1}, {1, 0}};
  for (const auto& [at, byte] : changes) {
    std::vector<std::uint8_t> changed = content;
    changed[at] = byte;
    EXPECT_EQ(outcome(changed, head), DecodeFailure::corrupt) << at << " " << int{byte};
  }
  // A dictionary as the ranks or the words of another, and of narrow values.
  std::vector<std::uint8_t> within = {5, 2, 200, 30};
  within.insert(within.end(), content.begin(), content.end());
  EXPECT_EQ(outcome(within, head), DecodeFailure::corrupt);
  ChunkHead narrow = head;
  narrow.dtype = DType::i16;
  EXPECT_EQ(outcome(content, narrow), DecodeFailure::corrupt);
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint8_t> changed = content;
    for (int k = 0; k < 3; ++k) {
      changed[random() % (round % 2 == 0 ? changed.size() : 24)] =
          static_cast<std::uint8_t>(random());
    }
    static_cast<void>(outcome(changed, head));  // Any result except a crash.
  }
}

TEST(TrzExact, ContentThatMakesNoSenseIsRefused) {
  const Shape shape = {40, 50};
  for (const auto& [dtype, preset] : {std::pair{DType::f32, Preset::standard},
                                      {DType::f64, Preset::standard},
                                      {DType::i16, Preset::standard},
                                      {DType::f32, Preset::ratio},
                                      {DType::f64, Preset::ratio},
                                      {DType::u16, Preset::ratio}}) {
    Settings settings;
    settings.preset = preset;
    ChunkHead head;
    head.dtype = dtype;
    head.method = Method::exact;
    head.extents = {1, 1, 40, 50};
    head.n_values = 2000;
    const Bytes values = smooth(dtype, shape);
    Workspace workspace;
    const ExactAttempt attempt = encode_exact_chunk(head, values, settings, nullptr, workspace);
    ASSERT_FALSE(attempt.chunk.empty());
    ChunkWriter measure(attempt.chunk);
    write_head(head, measure);
    const std::vector<std::uint8_t> content(
        attempt.chunk.begin() + static_cast<std::ptrdiff_t>(measure.n_written()),
        attempt.chunk.end());
    ASSERT_GT(content.size(), 4U);
    Bytes back(values.size());
    std::mt19937 random(7);
    for (std::size_t n = 0; n < content.size(); n += 1 + n / 16) {
      const std::vector<std::uint8_t> truncated(content.begin(),
                                                content.begin() + static_cast<std::ptrdiff_t>(n));
      ChunkReader in(truncated);
      EXPECT_NE(decode_exact_chunk(in, head, nullptr, back, workspace), DecodeFailure::none);
    }
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::uint8_t> changed = content;
      for (int k = 0; k < 3; ++k) {
        const std::size_t at = round % 2 == 0 ? random() % changed.size() : random() % 16;
        changed[at] = static_cast<std::uint8_t>(random());
      }
      ChunkReader in(changed);  // Any result except a crash.
      static_cast<void>(decode_exact_chunk(in, head, nullptr, back, workspace));
    }
  }
}

}  // namespace
}  // namespace tailrace::trz
