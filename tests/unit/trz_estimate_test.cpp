// Predicted sizes of trz: close to those of encode(), independent of the memory layout, and
// sensible for chunks that are too small to sample.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "core/codec.hpp"
#include "trz/predict/choose.hpp"
#include "trz/predict/value_source.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz {
namespace {

/// Waves, and noise whose amplitude varies in space.
template <class T>
std::vector<T> field(const Shape& shape, double noise) {
  std::vector<T> values(n_elements(shape));
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t rest = i;
    double phase = 0;
    for (std::size_t d = shape.size(); d > 0; --d) {
      phase += 0.07 * static_cast<double>(d) * static_cast<double>(rest % shape[d - 1]);
      rest /= shape[d - 1];
    }
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double random = static_cast<double>(state >> 33) * 0x1p-31 - 0.5;
    values[i] = static_cast<T>(100 + 10 * std::sin(phase) + noise * random);
  }
  return values;
}

template <class T>
StridedValues dense(const std::vector<T>& values, DType dtype, const Shape& shape) {
  const Box box{Shape(shape.size(), 0), shape};
  return strided_part(box, reinterpret_cast<const std::byte*>(values.data()), dtype, box);
}

std::size_t encoded(const ChunkType& type, const Settings& settings, const void* values) {
  Workspace workspace;
  const std::size_t n_bytes = n_elements(type.shape) * dtype_bytes(type.dtype);
  std::vector<std::byte> out(encoded_bytes_max(n_bytes));
  const Result<std::size_t> n =
      encode(type, settings, {static_cast<const std::byte*>(values), n_bytes}, out, workspace);
  return n.ok() ? *n : 0;
}

double estimated(const ChunkType& type, const StridedValues& values,
                 const Settings& settings = {}) {
  Workspace workspace;
  return estimate_chunk(type, settings, values, workspace).encoded_bytes;
}

/// The box as part of a larger array: five more values before each row, three after it, two more
/// rows before each plane.
template <class T>
struct Embedded {
  std::vector<T> array;
  StridedValues view;

  Embedded(const std::vector<T>& values, DType dtype, const Shape& shape) {
    Box held{Shape(shape.size(), 0), shape};
    Box part = held;
    held.count.back() += 8;
    part.start.back() = 5;
    if (shape.size() > 1) {
      held.count[shape.size() - 2] += 2;
      part.start[shape.size() - 2] = 2;
    }
    array.assign(n_elements(held.count), T(-1e7));
    copy_box(part, part, reinterpret_cast<const std::byte*>(values.data()), held,
             reinterpret_cast<std::byte*>(array.data()), sizeof(T));
    view = strided_part(held, reinterpret_cast<const std::byte*>(array.data()), dtype, part);
  }
};

TEST(TrzEstimate, SourcesGiveTheValuesOfTheBox) {
  const Shape shape{3, 1, 5, 7};
  const std::vector<float> values = field<float>(shape, 1);
  const Embedded<float> part(values, DType::f32, shape);
  const StridedSource<float> scattered(part.view);
  const StridedSource<float> together(dense(values, DType::f32, shape));
  float buffer[kSourceRunMax];
  for (std::size_t first = 0; first < values.size(); ++first) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{9}, values.size() - first}) {
      if (first + n > values.size()) continue;
      EXPECT_EQ(together.run(first, n, buffer), values.data() + first);
      const float* run = scattered.run(first, n, buffer);
      EXPECT_EQ(std::memcmp(run, values.data() + first, n * sizeof(float)), 0) << first << " " << n;
    }
  }
}

TEST(TrzEstimate, AChunkInsideALargerArrayGetsTheSameChoiceAndSize) {
  for (const Shape& shape : {Shape{40, 48, 56}, Shape{200, 300}, Shape{20000}, Shape{6, 5, 20, 64},
                             Shape{3, 2, 4, 16, 32}}) {
    const std::vector<float> values = field<float>(shape, 0.3);
    const Embedded<float> part(values, DType::f32, shape);
    for (const double bound : {1e-1, 1e-3}) {
      const ChunkType absolute{DType::f32, shape, BoundKind::absolute, bound};
      const ChunkType pointwise{DType::f32, shape, BoundKind::pointwise, bound};
      const ChunkType exact{DType::f32, shape, BoundKind::exact};
      for (const ChunkType& type : {absolute, pointwise, exact}) {
        EXPECT_EQ(estimated(type, part.view), estimated(type, dense(values, DType::f32, shape)))
            << "rank " << shape.size() << " kind " << static_cast<int>(type.kind);
      }
    }
  }
}

TEST(TrzEstimate, IsNearWhatEncodingMakes) {
  const Shape shape{64, 64, 96};
  const std::vector<float> values = field<float>(shape, 3);
  for (const double bound : {1e-2, 1e-3, 1e-4}) {
    for (const BoundKind kind : {BoundKind::absolute, BoundKind::pointwise}) {
      const ChunkType type{DType::f32, shape, kind, bound};
      const auto actual = static_cast<double>(encoded(type, {}, values.data()));
      const double predicted = estimated(type, dense(values, DType::f32, shape));
      EXPECT_NEAR(predicted, actual, 0.1 * actual)
          << "bound " << bound << " kind " << static_cast<int>(kind);
    }
  }
}

TEST(TrzEstimate, KnowsThePresetsAndTypes) {
  const Shape shape{48, 64, 96};
  const std::vector<double> values = field<double>(shape, 3);
  for (const Preset preset : {Preset::fast, Preset::standard, Preset::ratio}) {
    for (const BoundKind kind : {BoundKind::exact, BoundKind::absolute, BoundKind::pointwise}) {
      const ChunkType type{DType::f64, shape, kind, 1e-3};
      Settings settings;
      settings.preset = preset;
      const auto actual = static_cast<double>(encoded(type, settings, values.data()));
      const double predicted = estimated(type, dense(values, DType::f64, shape), settings);
      // The low halves of 64-bit words need more than a few dozen groups for an accurate estimate.
      EXPECT_NEAR(predicted, actual, (kind == BoundKind::exact ? 0.2 : 0.1) * actual)
          << "preset " << static_cast<int>(preset) << " kind " << static_cast<int>(kind);
    }
  }
  std::vector<std::int32_t> counts(values.size());
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<int>(100 * values[i]);
  const ChunkType type{DType::i32, shape, BoundKind::exact};
  const auto actual = static_cast<double>(encoded(type, {}, counts.data()));
  EXPECT_NEAR(estimated(type, dense(counts, DType::i32, shape)), actual, 0.1 * actual);
}

TEST(TrzEstimate, TheLosslessStageGainsOnMasks) {
  // Every level has the same coastline, as in an ocean model: its positions repeat.
  const Shape shape{20, 90, 180};
  std::vector<float> values = field<float>(shape, 0.3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t x = i % 180;
    const std::size_t y = i / 180 % 90;
    if ((x / 9 * 7 + y / 5 * 13) % 11 < 4) values[i] = -1e10F;
  }
  const ChunkType type{DType::f32, shape, BoundKind::absolute, 0.5, -1e10};
  Workspace workspace;
  Settings off;
  off.lossless_stage = Choice::off;
  const StridedValues view = dense(values, DType::f32, shape);
  const Estimate with_stage = estimate_chunk(type, {}, view, workspace);
  const Estimate without = estimate_chunk(type, off, view, workspace);
  EXPECT_EQ(without.lossless_gain, 1);
  EXPECT_GT(with_stage.lossless_gain, 1.05);
  EXPECT_NEAR(with_stage.lossless_gain * with_stage.encoded_bytes, without.encoded_bytes, 1);
  EXPECT_GT(encoded(type, off, values.data()), encoded(type, {}, values.data()));
  EXPECT_GT(with_stage.spread, 0);
  // Without repeated positions nothing is gained.
  const std::vector<float> plain = field<float>(shape, 0.3);
  EXPECT_EQ(estimate_chunk(type, {}, dense(plain, DType::f32, shape), workspace).lossless_gain, 1);
}

TEST(TrzEstimate, ChunksWithLittleToSampleStayWithinTheLimits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Shape& shape : {Shape{1}, Shape{2}, Shape{3, 1, 2}, Shape{33}, Shape{20000}}) {
    std::vector<float> masked = field<float>(shape, 1);
    for (std::size_t i = 0; i < masked.size(); i += 3) masked[i] = 1e30F;
    const std::size_t n = masked.size();
    for (const std::vector<float>& values :
         {std::vector<float>(n, 2.5F), std::vector<float>(n, nan), std::vector<float>(n, 1e30F),
          masked, field<float>(shape, 1)}) {
      for (const BoundKind kind : {BoundKind::exact, BoundKind::absolute, BoundKind::pointwise}) {
        const ChunkType type{DType::f32, shape, kind, 1e-3, 1e30};
        const double predicted = estimated(type, dense(values, DType::f32, shape));
        EXPECT_GE(predicted, 1);
        EXPECT_LE(predicted, static_cast<double>(encoded_bytes_max(4 * n)));
      }
    }
  }
}

}  // namespace
}  // namespace tailrace::trz
