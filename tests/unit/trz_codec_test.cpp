// trz as its users call it: types, shapes, settings, and the costs of calls other than time.
//
// trz_bound_test.cpp has values that are difficult to keep within a bound. trz_hostile_test.cpp has
// bytes that the encoder never wrote. trz_machines_test.cpp has instruction sets and modes of the
// processor.

#include "trz/trz.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Data;
using trz_cases::Random;
using whole::round_trip;

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::i8,  DType::i16, DType::i32,
                             DType::i64, DType::u8,  DType::u16, DType::u32, DType::u64};

Case case_of(DType dtype, Shape shape, Data data, BoundKind kind, double bound,
             std::uint64_t seed = 1) {
  Case chunk;
  chunk.type.dtype = dtype;
  chunk.type.shape = std::move(shape);
  chunk.type.kind = kind;
  chunk.type.bound = bound;
  chunk.data = data;
  Random random(seed);
  trz_cases::make_values(chunk, random);
  return chunk;
}

TEST(TrzCodec, EveryTypeAndSize) {
  Workspace workspace;
  for (const DType dtype : kDTypes) {
    for (const std::uint64_t n : {0, 1, 2, 3, 5, 63, 64, 65, 127, 997, 4095, 4096, 4097, 10007}) {
      for (const Data data : {Data::smooth, Data::noise, Data::constant, Data::random_bits}) {
        Case chunk = case_of(dtype, {n}, data, BoundKind::absolute, 1e-3);
        EXPECT_TRUE(round_trip(chunk, workspace));
        chunk.type.kind = BoundKind::exact;
        EXPECT_TRUE(round_trip(chunk, workspace));
      }
    }
  }
}

TEST(TrzCodec, EveryShape) {
  const std::vector<Shape> shapes = {{},
                                     {1},
                                     {1, 1, 1},
                                     {0},
                                     {7, 0, 3},
                                     {1, 5003},
                                     {5003, 1},
                                     {2, 2503},
                                     {2503, 2},
                                     {3, 1, 1009},
                                     {1009, 1, 3},
                                     {13, 17},
                                     {17, 13, 11},
                                     {5, 5, 5},
                                     {4, 4, 4},
                                     {3, 3, 3},
                                     {2, 2, 2},
                                     {16, 16, 16},
                                     {1, 64, 65},
                                     {64, 1, 65},
                                     {7, 6, 5, 9},
                                     {2, 3, 2, 3, 5},
                                     {3, 2, 2, 3, 2, 5},
                                     {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}};
  Workspace workspace;
  for (const Shape& shape : shapes) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const Predictor predictor :
           {Predictor::automatic, Predictor::none, Predictor::lorenzo, Predictor::interpolation}) {
        for (int last_axis = -1; last_axis <= 3; ++last_axis) {
          Case chunk = case_of(dtype, shape, Data::rough, BoundKind::absolute, 0.25);
          chunk.settings.predictor = predictor;
          chunk.settings.last_axis = last_axis;
          EXPECT_TRUE(round_trip(chunk, workspace));
        }
      }
    }
  }
}

TEST(TrzCodec, EveryCombinationOfSettings) {
  Workspace workspace;
  Case chunk = case_of(DType::f32, {6, 19, 23}, Data::rough, BoundKind::absolute, 0.5);
  Case masked = case_of(DType::f64, {3, 5, 7, 11}, Data::masked, BoundKind::absolute, 0.5);
  masked.type.fill_value = -1e34;
  for (int index = 0; index < 3 * 4 * 5 * 4 * 5 * 3; index += test::tier_stride(7)) {
    int left = index;
    const auto next = [&left](int n) {
      const int digit = left % n;
      left /= n;
      return digit;
    };
    Settings settings;
    settings.preset = static_cast<Preset>(next(3));
    settings.predictor = static_cast<Predictor>(next(4));
    settings.dimensions = next(5);
    settings.spline = static_cast<Spline>(next(4));
    settings.last_axis = next(5) - 1;
    settings.lossless_stage = static_cast<Choice>(next(3));
    for (Case* subject : {&chunk, &masked}) {
      subject->settings = settings;
      ASSERT_TRUE(round_trip(*subject, workspace));
    }
  }
}

TEST(TrzCodec, PredictorsAreTheOnesAskedFor) {
  Workspace workspace;
  const auto method = [&](Settings settings) {
    Case chunk = case_of(DType::f32, {24, 32, 40}, Data::rough, BoundKind::absolute, 0.5);
    chunk.settings = settings;
    std::vector<std::byte> encoded;
    EXPECT_TRUE(round_trip(chunk, workspace, &encoded));
    return describe(encoded)->method;
  };
  Settings settings;
  settings.predictor = Predictor::none;
  EXPECT_NE(method(settings).find("no prediction"), std::string::npos);
  settings.predictor = Predictor::lorenzo;
  settings.dimensions = 2;
  EXPECT_NE(method(settings).find("Lorenzo of order 2"), std::string::npos) << method(settings);
  settings = {};
  settings.predictor = Predictor::interpolation;
  settings.last_axis = 1;
  settings.spline = Spline::natural;
  EXPECT_NE(method(settings).find("interpolation natural"), std::string::npos) << method(settings);
  EXPECT_NE(method(settings).find("last axis 1"), std::string::npos) << method(settings);
  settings.preset = Preset::fast;
  EXPECT_NE(method(settings).find("packed"), std::string::npos) << method(settings);
}

TEST(TrzCodec, ConstantChunksAreTiny) {
  Workspace workspace;
  for (const DType dtype : kDTypes) {
    const Case chunk = case_of(dtype, {64, 1024}, Data::constant, BoundKind::absolute, 0.1);
    std::vector<std::byte> encoded;
    EXPECT_TRUE(round_trip(chunk, workspace, &encoded));
    EXPECT_LE(encoded.size(), 32U) << chunk.text();
  }
}

TEST(TrzCodec, RandomBitsDoNotGrowByMoreThanAHead) {
  Workspace workspace;
  for (const DType dtype : kDTypes) {
    for (const double bound : {0.0, 1e-30, 1e-3}) {
      const Case chunk = case_of(dtype, {100003}, Data::random_bits, BoundKind::absolute, bound);
      std::vector<std::byte> encoded;
      EXPECT_TRUE(round_trip(chunk, workspace, &encoded));
      EXPECT_LE(encoded.size(), chunk.values.size() + 64);
    }
  }
}

TEST(TrzCodec, ArgumentsThatMakeNoSense) {
  Workspace workspace;
  const Case good = case_of(DType::f32, {100}, Data::smooth, BoundKind::absolute, 0.1);
  std::vector<std::byte> out(encoded_bytes_max(good.values.size()));
  const auto code_of = [&](const ChunkType& type, const Settings& settings, std::size_t n_in,
                           std::size_t n_out) {
    return encode(type, settings, std::span(good.values).first(n_in), std::span(out).first(n_out),
                  workspace)
        .status()
        .code();
  };
  EXPECT_EQ(code_of(good.type, {}, 400, out.size()), Code::ok);
  EXPECT_EQ(code_of(good.type, {}, 396, out.size()), Code::invalid_argument);
  EXPECT_EQ(code_of(good.type, {}, 400, out.size() - 1), Code::invalid_argument);
  ChunkType type = good.type;
  type.shape = {std::uint64_t{1} << 62, 4};
  EXPECT_EQ(code_of(type, {}, 400, out.size()), Code::invalid_argument);
  for (const double bound : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    type = good.type;
    type.bound = bound;
    EXPECT_EQ(code_of(type, {}, 400, out.size()), Code::invalid_argument);
  }
  type = good.type;
  type.dtype = DType::i32;
  type.kind = BoundKind::pointwise;
  EXPECT_EQ(code_of(type, {}, 400, out.size()), Code::unsupported);
  for (const int wrong : {-1, 5}) {
    Settings settings;
    settings.dimensions = wrong;
    EXPECT_EQ(code_of(good.type, settings, 400, out.size()), Code::invalid_argument);
  }
  for (const int wrong : {-2, 4}) {
    Settings settings;
    settings.last_axis = wrong;
    EXPECT_EQ(code_of(good.type, settings, 400, out.size()), Code::invalid_argument);
  }
}

TEST(TrzCodec, AWorkspaceServesEveryKindOfChunk) {
  // The encoded bytes do not depend on earlier contents of the workspace.
  Workspace used;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const Case chunk =
        trz_cases::random_case(random, {seed % 10 == 0 ? 50000U : 2000U, true, true});
    std::vector<std::byte> with_used;
    std::vector<std::byte> with_new;
    EXPECT_TRUE(round_trip(chunk, used, &with_used)) << "seed " << seed;
    Workspace fresh;
    EXPECT_TRUE(round_trip(chunk, fresh, &with_new)) << "seed " << seed;
    EXPECT_EQ(with_used, with_new) << "seed " << seed << ": " << chunk.text();
  }
}

TEST(TrzCodec, ThreadsWithAWorkspaceEach) {
  const auto digests_of = [] {
    Workspace workspace;
    std::vector<std::uint64_t> digests;
    for (std::uint64_t seed = 1000; seed < 1120; ++seed) {
      Random random(seed);
      const Case chunk = trz_cases::random_case(random, {3000, true, true});
      std::vector<std::byte> encoded;
      EXPECT_TRUE(round_trip(chunk, workspace, &encoded));
      digests.push_back(trz_cases::digest_of(encoded));
    }
    return digests;
  };
  const std::vector<std::uint64_t> alone = digests_of();
  std::vector<std::future<std::vector<std::uint64_t>>> others;
  for (int k = 0; k < 3; ++k) others.push_back(std::async(std::launch::async, digests_of));
  for (auto& other : others) EXPECT_EQ(other.get(), alone);
}

TEST(TrzCodec, InputNeedsNoAlignment) {
  // HDF5 passes memory from malloc, and readers pass parts of larger buffers.
  Workspace workspace;
  const Case chunk = case_of(DType::f64, {11, 13, 17}, Data::rough, BoundKind::absolute, 0.5);
  std::vector<std::byte> aligned(encoded_bytes_max(chunk.values.size()));
  const Result<std::size_t> n =
      encode(chunk.type, chunk.settings, chunk.values, aligned, workspace);
  ASSERT_TRUE(n.ok());
  std::vector<std::byte> shifted(*n + 1);
  std::copy_n(aligned.begin(), *n, shifted.begin() + 1);
  std::vector<std::byte> decoded(chunk.values.size());
  ASSERT_TRUE(decode(std::span(shifted).subspan(1), decoded, nullptr, workspace).ok());
  EXPECT_EQ(trz_cases::count_violations(chunk.type, chunk.values, decoded), 0U);
}

}  // namespace
}  // namespace tailrace::trz
