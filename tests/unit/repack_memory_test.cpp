// Repack of stored chunks that exceed the memory limit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <vector>

#include "container_support.hpp"
#include "core/option_table.hpp"
#include "exec/comm_factory.hpp"
#include "verbs/repack.hpp"
#include "verbs/repack_memory.hpp"

namespace tailrace {
namespace {

using test::TestFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RepackMemory : public ::testing::Test {
 protected:
  /// A file whose one chunk has 8 MiB of values, deflated.
  RepackMemory() {
    std::vector<float> values(std::size_t{2048} * 1024);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(float(i) * 0.01F);
    std::ofstream(folder_ / "in.raw", std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(4 * values.size()));
    EXPECT_TRUE(repack("in.raw", "in.h5", "chunk=2048x1024", false).ok());
  }

  Result<verbs::RepackReport> repack(const char* input, const char* output, const char* options,
                                     bool memory_given) {
    const std::unique_ptr<Comm> comm = make_self_comm();
    verbs::RepackRequest request;
    request.input = folder_ / input;
    request.output = folder_ / output;
    if (std::string_view(input).ends_with(".raw")) request.raw_format = "f32:2048x1024";
    request.fields.codec = "deflate,level=1";
    request.options.sync = false;
    request.chunk_given = true;
    request.memory_given = memory_given;
    TAILRACE_TRY(apply_file_options(options, request.options));
    return verbs::repack({*comm, make_self_comm, {}, {}}, request);
  }

  TestFolder folder_;
};

TEST_F(RepackMemory, WhatTheUserAskedForIsKeptToOrRefused) {
  const auto refused = repack("in.h5", "out.h5", "memory=16MB,chunk=64x64", true);
  EXPECT_EQ(refused.status().code(), Code::out_of_memory);
  EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("/in"), HasSubstr("are needed")));
  EXPECT_FALSE(std::ifstream(folder_ / "out.h5").good());
  const auto done = repack("in.h5", "out.h5", "memory=32MB,chunk=64x64", true);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_THAT(done->remarks, IsEmpty());
  // Less the encoded bytes, which the peak does not include.
  EXPECT_LE(done->step.peak_memory_bytes, 32'000'000U - (4U << 20));
}

TEST_F(RepackMemory, WhereNobodyAskedItGoesOnAndSaysSo) {
  const auto done = repack("in.h5", "out.h5", "memory=16MB,chunk=64x64", false);
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_THAT(done->remarks, ElementsAre(AllOf(HasSubstr("/in"), HasSubstr("8"))));
}

/// Maps of one chunk each, which become series of all times.
struct MapsToSeries {
  MapsToSeries() {
    StoredDataset maps;
    maps.dtype = DType::f32;
    maps.shape = {400, 256, 256};
    maps.storage = {StoredForm::Kind::chunked, {1, 256, 256}, {FilterSpec{}}};
    maps.stored_bytes = 50U << 20;
    stored.push_back(maps);
    verbs::PlannedField series;
    series.definition.dtype = DType::f32;
    series.definition.shape = maps.shape;
    series.definition.options.chunk_shape = Shape{400, 16, 16};
    plan.push_back(series);
  }
  verbs::MemoryDivision divided(bool scratch, int n_ranks = 1) const {
    const auto division = verbs::divide_memory({.plan = plan,
                                                .stored = stored,
                                                .n_ranks = n_ranks,
                                                .all_bytes = 128U << 20,
                                                .memory_given = true,
                                                .scratch = scratch});
    EXPECT_TRUE(division.ok()) << division.status().message();
    return *division;
  }
  std::vector<StoredDataset> stored;
  std::vector<verbs::PlannedField> plan;
};

TEST(DivideMemory, ScratchFilesTakeALittleMoreAndWithoutThemNothingIsSetAside) {
  const MapsToSeries job;
  const verbs::MemoryDivision with = job.divided(true);
  const verbs::MemoryDivision without = job.divided(false);
  EXPECT_TRUE(with.scratch_whole_bytes.has_value());
  EXPECT_FALSE(without.scratch_whole_bytes.has_value());
  EXPECT_EQ(with.held_bytes, without.held_bytes);
  EXPECT_EQ(without.set_aside_bytes, without.held_bytes);
  EXPECT_EQ(with.set_aside_bytes,
            without.set_aside_bytes + verbs::TileReader::pack_bytes(with.held_bytes));
  EXPECT_GE(with.held_bytes, 32U << 20);
  EXPECT_LT(with.set_aside_bytes, 128U << 20);
}

TEST(DivideMemory, NoMoreIsHeldThanARanksRunHasUseFor) {
  MapsToSeries job;
  const std::uint64_t chunk_bytes = 400 * 16 * 16 * sizeof(float);
  EXPECT_LE(job.divided(false, 16).held_bytes, 256 / 16 * chunk_bytes);
  job.stored.front().storage.chunk_shape = *job.plan.front().definition.options.chunk_shape;
  EXPECT_EQ(job.divided(true).held_bytes, 0U);  // Each stored chunk is read for one output chunk.
  EXPECT_EQ(job.divided(true).set_aside_bytes, 0U);
}

}  // namespace
}  // namespace tailrace
