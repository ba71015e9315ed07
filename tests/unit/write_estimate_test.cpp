// Predicting a chunk's size without encoding it: the sampled part, and the accuracy of the
// prediction.

#include "field/chunk_estimator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "field/field_state.hpp"
#include "hdf5/filter_plugins.hpp"

namespace tailrace {
namespace {

/// A smooth field with texture, so that its samples are similar but not equal.
std::vector<float> waves(const Shape& shape) {
  std::vector<float> values(n_elements(shape));
  std::size_t i = 0;
  for_each_position(whole_box(shape), [&](const Shape& at) {
    double sum = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const auto x = static_cast<double>(at[d]);
      sum += std::sin(0.05 * x + static_cast<double>(d)) + 0.1 * std::sin(0.7 * x * (1 + sum));
    }
    values[i++] = static_cast<float>(sum);
  });
  return values;
}

StridedValues whole(const std::vector<float>& values, const Shape& shape) {
  const Box box = whole_box(shape);
  return strided_part(box, std::as_bytes(std::span(values)).data(), DType::f32, box);
}

double encoded_bytes(const Codec& codec, const std::vector<float>& values) {
  const Result<EncodedBytes> encoded =
      codec.encode(Buffer::copy_of(std::as_bytes(std::span(values))));
  EXPECT_TRUE(encoded.ok()) << encoded.status().message();
  return static_cast<double>(encoded->buffer.n_bytes());
}

struct Case {
  const char* codec;
  double bound;
  double error_max;  ///< Largest relative error of the estimate allowed here.
};

class Estimates : public ::testing::TestWithParam<Case> {};

TEST_P(Estimates, AreNearOnAnEvenField) {
  const Shape shape = {96, 96, 96};
  const std::vector<float> values = waves(shape);
  CodecRequest request{GetParam().codec, {}, DType::f32, shape, GetParam().bound};
  Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
  if (!codec.ok() && codec.status().code() == Code::plugin_missing) {
    GTEST_SKIP() << codec.status().message();
  }
  ASSERT_TRUE(codec.ok()) << codec.status().message();
  const auto estimator = ChunkEstimator::make(request, **codec, "");
  ASSERT_TRUE(estimator.ok()) << estimator.status().message();
  const std::uint64_t chunk_bytes = values.size() * sizeof(float);
  const Result<Estimate> estimate = (*estimator)->estimate(whole(values, shape), chunk_bytes);
  ASSERT_TRUE(estimate.ok()) << estimate.status().message();
  const double actual = encoded_bytes(**codec, values);
  EXPECT_NEAR(estimate->encoded_bytes / actual, 1, GetParam().error_max);

  // A part of the chunk in its place represents the complete chunk, even a part smaller than the
  // sample.
  for (const Shape& count : {Shape{48, 96, 96}, Shape{5, 96, 96}, Shape{2, 96, 96}}) {
    const Box box = whole_box(shape);
    const StridedValues part = strided_part(box, std::as_bytes(std::span(values)).data(),
                                            DType::f32, Box{{7, 0, 0}, count});
    const Result<Estimate> of_part = (*estimator)->estimate(part, chunk_bytes);
    ASSERT_TRUE(of_part.ok()) << of_part.status().message();
    EXPECT_GT(of_part->encoded_bytes, 0.2 * actual) << shape_text(count);
    EXPECT_LT(of_part->encoded_bytes, 5 * actual) << shape_text(count);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, Estimates,
                         ::testing::Values(Case{"none", 0, 1e-9}, Case{"deflate", 0, 0.25},
                                           Case{"portable", 1e-3, 0.15}, Case{"zstd", 0, 0.25},
                                           Case{"zfp", 1e-3, 0.05}, Case{"sz3", 1e-3, 0.3},
                                           Case{"sperr", 1e-3, 0.3}),
                         [](const auto& info) { return std::string(info.param.codec); });

TEST(Estimates, OfAChunkSmallerThanASampleAreItsEncodedSize) {
  const Shape shape = {6, 5};
  const std::vector<float> values = waves(shape);
  const CodecRequest request{"deflate", {}, DType::f32, shape};
  Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
  ASSERT_TRUE(codec.ok());
  const auto estimator = ChunkEstimator::make(request, **codec, "");
  ASSERT_TRUE(estimator.ok());
  const Result<Estimate> estimate = (*estimator)->estimate(whole(values, shape), 120);
  ASSERT_TRUE(estimate.ok());
  EXPECT_DOUBLE_EQ(estimate->encoded_bytes, encoded_bytes(**codec, values));
}

/// Chunks of a field over time are {1, 8, 16}, while the values in memory are {8, 16}. Here the
/// values are between the columns of a wider array. Their last row ends the array, and nothing
/// behind it may be read.
TEST(Estimates, OfAnEntryOverTimeAreThoseOfItsValues) {
  const Shape held = {8, 40};
  const std::vector<float> values = waves(held);
  const StridedValues entry = strided_part(whole_box(held), std::as_bytes(std::span(values)).data(),
                                           DType::f32, Box{{0, 24}, {8, 16}});
  std::vector<double> estimates;
  for (const Shape& chunk : {Shape{8, 16}, Shape{1, 8, 16}}) {
    const CodecRequest request{"deflate", {}, DType::f32, chunk};
    const Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
    ASSERT_TRUE(codec.ok());
    const auto estimator = ChunkEstimator::make(request, **codec, "");
    ASSERT_TRUE(estimator.ok());
    const Result<Estimate> estimate = (*estimator)->estimate(entry, 512);
    ASSERT_TRUE(estimate.ok());
    estimates.push_back(estimate->encoded_bytes);
  }
  EXPECT_EQ(estimates[1], estimates[0]);
}

TEST(Estimates, WorkInAnyNumberOfDimensions) {
  for (const Shape& shape : {Shape{200000}, Shape{1, 1, 300, 300}, Shape{2, 3, 40, 50},
                             Shape{1, 64, 64, 64}, Shape{1, 1}}) {
    const std::vector<float> values = waves(shape);
    for (const char* name : {"zfp", "sz3", "zstd", "deflate", "portable"}) {
      CodecRequest request{name, {}, DType::f32, shape, 1e-3};
      Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
      if (!codec.ok()) continue;  // Not installed, or the shape is not supported.
      const auto estimator = ChunkEstimator::make(request, **codec, "");
      ASSERT_TRUE(estimator.ok()) << name << shape_text(shape) << estimator.status().message();
      const Result<Estimate> estimate =
          (*estimator)->estimate(whole(values, shape), values.size() * sizeof(float));
      ASSERT_TRUE(estimate.ok()) << name << shape_text(shape) << estimate.status().message();
      EXPECT_GT(estimate->encoded_bytes, 0);
    }
  }
}

/// A part of the chunk predicts the gain of preset max. The part may be the complete chunk and have
/// any shape.
TEST(Estimates, KnowWhatPresetMaxGains) {
  for (const Shape& shape : {Shape{64, 64, 96}, Shape{1, 48, 64, 64}, Shape{7, 9, 11},
                             Shape{300, 400}, Shape{200000}, Shape{1, 1}}) {
    const std::vector<float> values = waves(shape);
    std::vector<double> estimates;
    std::vector<double> sizes;
    for (const char* preset : {"default", "max"}) {
      CodecRequest request{"trz", {{"preset", preset}}, DType::f32, shape, 1e-3};
      const Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
      ASSERT_TRUE(codec.ok());
      const auto estimate = (*codec)->estimate(whole(values, shape));
      ASSERT_TRUE(estimate.has_value());
      estimates.push_back(estimate->encoded_bytes);
      auto encoded = (*codec)->encode(Buffer::copy_of(std::as_bytes(std::span(values))));
      ASSERT_TRUE(encoded.ok());
      sizes.push_back(static_cast<double>(encoded->buffer.n_bytes()));
    }
    EXPECT_LE(estimates[1], estimates[0]);
    // Small chunks are mostly header; in a single row, max equals ratio.
    if (values.size() < 100'000 || shape.size() == 1) continue;
    EXPECT_NEAR(estimates[1] / estimates[0], sizes[1] / sizes[0], 0.1) << shape_text(shape);
  }
}

TEST(Estimates, OfARefusedSampleAreTheUncompressedBytes) {
  const Shape shape = {64, 64, 64};
  const std::vector<float> values(n_elements(shape), std::nanf(""));
  const CodecRequest request{"sperr", {}, DType::f32, shape, 1e-3};
  Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
  if (!codec.ok()) GTEST_SKIP() << codec.status().message();
  const auto estimator = ChunkEstimator::make(request, **codec, "");
  ASSERT_TRUE(estimator.ok());
  const std::uint64_t chunk_bytes = values.size() * sizeof(float);
  const Result<Estimate> estimate = (*estimator)->estimate(whole(values, shape), chunk_bytes);
  ASSERT_TRUE(estimate.ok()) << estimate.status().message();
  EXPECT_EQ(estimate->encoded_bytes, static_cast<double>(chunk_bytes));
}

TEST(Estimates, OfABrokenRequestAreRefused) {
  const CodecRequest request{"deflate", {}, DType::f32, {64, 64}};
  Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
  ASSERT_TRUE(codec.ok());
  CodecRequest broken = request;
  broken.settings = {{"nonsense", "1"}};
  EXPECT_EQ(ChunkEstimator::make(broken, **codec, "").status().code(), Code::invalid_argument);
}

TEST(ValuesInMemory, AreTheLargestLocalPart) {
  const ChunkGrid grid{{10, 10}, {4, 10}};
  const std::vector<float> left(10 * 3);
  const std::vector<float> right(10 * 7);
  std::vector<PutRecord> puts(3);
  puts[0].box = {{0, 0}, {10, 3}};
  puts[0].values = std::as_bytes(std::span(left)).data();
  puts[1].box = {{0, 3}, {10, 7}};
  puts[1].values = std::as_bytes(std::span(right)).data();
  puts[2].box = {{0, 0}, {10, 10}};  // Pulled from a source, not in memory.
  const std::vector<LocalPart> parts = {
      {0, {{8, 0}, {2, 3}}}, {1, {{8, 3}, {2, 7}}}, {2, {{8, 0}, {2, 10}}}};
  Buffer buffer;
  const Result<std::optional<StridedValues>> found =
      values_in_memory(grid, 2, DType::f32, puts, parts, buffer);
  ASSERT_TRUE(found.ok());
  const std::optional<StridedValues>& values = *found;
  ASSERT_TRUE(values);
  EXPECT_EQ(values->shape, (Shape{2, 7}));
  EXPECT_EQ(values->strides, (Shape{7, 1}));
  EXPECT_EQ(values->data, puts[1].values + 8 * 7 * sizeof(float));
  const auto others = std::span(parts).subspan(2);
  EXPECT_FALSE(*values_in_memory(grid, 2, DType::f32, puts, others, buffer));
  EXPECT_FALSE(*values_in_memory(grid, 2, DType::f32, puts, {}, buffer));
  EXPECT_FALSE(buffer.allocated());
}

}  // namespace
}  // namespace tailrace
