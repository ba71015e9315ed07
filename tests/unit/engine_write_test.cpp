// The engine from put() to a file that HDF5 reads, on 1 to 7 ranks that are threads.
// Cites the invariants of src/write/write.cpp and src/exec/executor.hpp.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "container_support.hpp"
#include "core/option_table.hpp"
#include "engine_support.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "output/output.hpp"
#include "policy/door_rules.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

struct Case {
  int n_ranks;
  std::string layout;
  std::string codec;
};

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.layout + "_" + info.param.codec + "_" + std::to_string(info.param.n_ranks) +
         "ranks";
}

class EngineWrite : public ::testing::TestWithParam<Case> {};

/// Counts the attributes of an object.
int n_attributes(const std::string& path, const char* object) {
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Hdf5Id opened(H5Oopen(file.get(), object, H5P_DEFAULT));
  ObjectFacts facts;
  return get_object_facts(opened.get(), facts) ? static_cast<int>(facts.n_attributes) : -1;
}

bool has_file_attribute(const std::string& path) {
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  return H5Aexists(file.get(), kFileNoteAttribute) > 0;
}

/// Writes one field in a random decomposition and compares every value.
void write_and_compare(const Case& test, const Shape& shape, DType dtype, const std::string& chunk,
                       unsigned seed) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  std::mt19937 random(seed);
  const std::vector<Box> boxes =
      random_boxes(shape, static_cast<std::size_t>(test.n_ranks) * 2, random);
  std::vector<int> owners;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    owners.push_back(static_cast<int>(random() % static_cast<unsigned>(test.n_ranks)));
  }
  run_ranks(test.n_ranks, [&](std::unique_ptr<Comm> comm) {
    const int rank = comm->rank();
    FileOptions options;
    options.sync = false;
    options.n_threads = 2;
    ASSERT_TRUE(apply_file_options("codec=" + test.codec + ",layout=" + test.layout, options).ok());
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    FieldDefinition field{"/group/field", dtype, shape, options.field_defaults, false};
    if (!chunk.empty()) {
      ASSERT_TRUE(apply_field_options("chunk=" + chunk, field.options).ok());
    }
    auto index = (*writer)->define_field(field);
    ASSERT_TRUE(index.ok()) << index.status().message();
    std::vector<std::vector<std::byte>> held;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (owners[i] != rank) continue;
      held.push_back(values_of(shape, boxes[i], dtype));
      ASSERT_TRUE((*writer)->put(*index, boxes[i], held.back().data()).ok());
    }
    auto report = (*writer)->end_step();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->raw_bytes, n_elements(shape) * dtype_bytes(dtype));
    const Status closed = (*writer)->close();
    EXPECT_TRUE(closed.ok()) << closed.message();
  });
  EXPECT_EQ(read_field(path, "/group/field"), values_of(shape, whole_box(shape), dtype));
  EXPECT_FALSE(std::filesystem::exists(path + kPartialSuffix));
  EXPECT_EQ(n_attributes(path, "/"), 0) << "nothing is lossy, and HDF5 has the filters";
  EXPECT_EQ(n_attributes(path, "/group/field"), 0);
}

TEST_P(EngineWrite, RandomBoxesThatCrossChunkBorders) {
  write_and_compare(GetParam(), {23, 17, 19}, DType::f32, "7x5x19", 1);
}
TEST_P(EngineWrite, ChunksFromTheDecomposition) {
  write_and_compare(GetParam(), {64, 32}, DType::f64, "", 2);
}
TEST_P(EngineWrite, ParticlesWithAnotherCountOnEachRank) {
  write_and_compare(GetParam(), {10007}, DType::i32, "1000x", 3);
}
TEST_P(EngineWrite, FourDimensions) {
  write_and_compare(GetParam(), {3, 5, 7, 11}, DType::u16, "2x2x4x8", 4);
}
TEST_P(EngineWrite, ScalarsAndEmptyFields) {
  write_and_compare(GetParam(), {}, DType::i64, "", 5);
  write_and_compare(GetParam(), {0}, DType::f32, "", 6);
  write_and_compare(GetParam(), {4, 0, 3}, DType::f32, "", 7);
}
TEST_P(EngineWrite, OneElement) { write_and_compare(GetParam(), {1}, DType::u8, "", 8); }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int n_ranks : {1, 2, 3, 4, 7}) {
    cases.push_back({n_ranks, "claimed", "deflate"});
    cases.push_back({n_ranks, "dense", "deflate"});
    cases.push_back({n_ranks, "dense", "none"});
    cases.push_back({n_ranks, "contiguous", "none"});
    cases.push_back({n_ranks, "sparse", "deflate"});
    cases.push_back({n_ranks, "predictive", "deflate"});
    cases.push_back({n_ranks, "arena", "deflate"});
    cases.push_back({n_ranks, "front", "deflate"});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Layouts, EngineWrite, ::testing::ValuesIn(all_cases()), case_name);

/// Expects that layout=front refuses the field with the same message on every rank.
void expect_refused(const Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

FileOptions front_options(const std::string& more = "") {
  FileOptions options;
  options.sync = false;
  EXPECT_TRUE(apply_file_options("layout=front,chunk=8x8" + more, options).ok());
  return options;
}

TEST(EngineFront, OneStepOfANewFileInSyncModeIsServed) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const Shape shape = {64, 64};
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    const FileOptions options = front_options();
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    const Box half{{rank * 32, 0}, {32, 64}};
    const std::vector<std::byte> values = values_of(shape, half, DType::f32);
    for (const char* name : {"/first", "/second"}) {
      auto index =
          (*writer)->define_field({name, DType::f32, shape, options.field_defaults, false});
      ASSERT_TRUE(index.ok());
      ASSERT_TRUE((*writer)->put(*index, half, values.data()).ok());
      const auto report = (*writer)->end_step();
      EXPECT_EQ(report.ok(), std::string(name) == "/first");
      if (!report.ok()) expect_refused(report.status(), "has one");
    }
    EXPECT_TRUE((*writer)->close().ok());
  });
  EXPECT_EQ(read_field(path, "/first"), values_of(shape, whole_box(shape), DType::f32));
  const auto chunks = read_chunk_index(path, "/first");
  ASSERT_TRUE(chunks.ok());
  std::uint64_t end = 0;
  std::uint64_t n_bytes = 0;
  std::uint64_t first = UINT64_MAX;
  for (const StoredChunk& chunk : *chunks) {
    first = std::min(first, chunk.extent.address);
    end = std::max(end, chunk.extent.address + chunk.extent.encoded_bytes);
    n_bytes += chunk.extent.encoded_bytes;
  }
  EXPECT_EQ(chunks->size(), 64U);
  EXPECT_EQ(end - first, n_bytes);                       // nothing between two chunks
  EXPECT_EQ(std::filesystem::file_size(path), end + 8);  // nor after them
  EXPECT_LT(first, 16384U);                              // and little before them
}

TEST(EngineFront, OtherFilesAreRefused) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const auto refused = Writer::create(std::move(comm), path, front_options(",mode=async"));
    ASSERT_FALSE(refused.ok());
    expect_refused(refused.status(), "mode=sync");
  });
  EXPECT_FALSE(std::filesystem::exists(path));
  auto writer = Writer::create(make_self_comm(), path, FileOptions());
  ASSERT_TRUE(writer.ok());
  const auto field =
      (*writer)->define_field({"/f", DType::f32, {8, 8}, front_options().field_defaults, false});
  EXPECT_EQ(field.status().code(), Code::invalid_argument);
  ASSERT_TRUE((*writer)->close().ok());
  const auto opened = Writer::open(make_self_comm(), path, front_options());
  ASSERT_FALSE(opened.ok());
  expect_refused(opened.status(), "opened for appending");
  for (const Door door : {Door::python, Door::hdf5}) {
    const Status served = check_door(front_options(), door);
    EXPECT_EQ(served.code(), Code::unsupported);
    EXPECT_NE(served.message().find("layout=front"), std::string::npos) << served.message();
  }
}

/// A source that computes its values on request.
class CountingSource final : public BoxSource {
 public:
  explicit CountingSource(Shape shape) : shape_(std::move(shape)) {}
  Status read(const Box& box, std::span<std::byte> values) override {
    starts.push_back(box.start);
    const std::vector<std::byte> made = values_of(shape_, box, DType::f32);
    std::memcpy(values.data(), made.data(), made.size());
    return Status();
  }
  std::vector<Shape> starts;  ///< Starts of the boxes that were read.

 private:
  Shape shape_;
};

/// A source that continues only after other ranks have been served meanwhile.
class LongSource final : public BoxSource {
 public:
  bool reads_more(const Box& box) override { return box.start[0] == 0; }
  Status read(const Box& box, std::span<std::byte> values) override {
    std::memset(values.data(), 7, values.size());
    if (!reads_more(box)) return Status();
    const std::uint64_t n_before = test::TailsWantService::n_served();
    for (int i = 0; i < 10'000; ++i) {
      if (test::TailsWantService::n_served() > n_before + 2) return Status();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return Status(Code::internal, "nobody is served");
  }
};

/// Ranks of other nodes may wait for the place of a chunk while this rank reads for a minute.
TEST(EngineWrite, OthersAreServedWhileASourceReadsForLong) {
  const TestFolder folder;
  const test::TailsWantService several_nodes;
  run_ranks(1, [&](std::unique_ptr<Comm> ranks) {
    FileOptions options;
    ASSERT_TRUE(apply_file_options("chunk=2x3,codec=none", options).ok());
    auto writer = Writer::create(std::move(ranks), folder / "out.h5", options);
    ASSERT_TRUE(writer.ok());
    auto index = (*writer)->define_field({"/f", DType::f32, {8, 3}, options.field_defaults, false});
    ASSERT_TRUE(index.ok());
    LongSource source;
    ASSERT_TRUE((*writer)->put_source(*index, whole_box({8, 3}), source).ok());
    const auto written = (*writer)->end_step();
    EXPECT_TRUE(written.ok()) << written.status().message();
    EXPECT_TRUE((*writer)->close().ok());
  });
}

/// Places on other nodes are requested before they are needed: as many bytes as the same number of
/// values took in the last step.
TEST(EngineWrite, AStepExpectsToClaimWhatAsManyValuesTookInTheLast) {
  const TestFolder folder;
  for (const char* mode : {"sync", "async"}) {
    run_ranks(2, [&](std::unique_ptr<Comm> ranks) {
      Comm& comm = *ranks;
      const auto rank = static_cast<std::uint64_t>(comm.rank());
      FileOptions options;
      const std::string text = std::string("chunk=2x3,codec=none,threads=1,mode=") + mode;
      ASSERT_TRUE(apply_file_options(text, options).ok());
      auto writer = Writer::create(std::move(ranks), folder / mode, options);
      ASSERT_TRUE(writer.ok());
      std::uint64_t before = test::TailsWantService::expected_bytes();
      const std::vector<std::uint64_t> n_fields = {2, 2, 5, 1, 5};
      const std::vector<std::uint64_t> n_known = {0, 2, 2, 1, 5};
      for (std::size_t step = 0; step < n_fields.size(); ++step) {
        const std::vector<float> values(12, 1.0F);
        for (std::uint64_t f = 0; f < n_fields[step]; ++f) {
          const std::string name = "/s" + std::to_string(step) + "/f" + std::to_string(f);
          auto index =
              (*writer)->define_field({name, DType::f32, {8, 3}, options.field_defaults, false});
          ASSERT_TRUE(index.ok());
          ASSERT_TRUE((*writer)->put(*index, {{4 * rank, 0}, {4, 3}}, values.data()).ok());
        }
        ASSERT_TRUE((*writer)->end_step().ok());
        ASSERT_TRUE((*writer)->wait().ok());
        comm.barrier();
        const std::uint64_t now = test::TailsWantService::expected_bytes();
        comm.barrier();
        const std::uint64_t of_field = 2 * 12 * sizeof(float);
        EXPECT_EQ(now - before, n_known[step] * of_field) << mode << ' ' << step;
        before = now;
      }
      EXPECT_TRUE((*writer)->close().ok());
    });
  }
}

/// The order of reads may matter to a source: in order, it decodes fewer stored chunks twice.
TEST(EngineWrite, PulledChunksAreReadInTheOrderOfTheirPuts) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const Shape shape = {8, 12};
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    FileOptions options;
    ASSERT_TRUE(apply_file_options("chunk=2x3,threads=2", options).ok());
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    auto index = (*writer)->define_field({"/f", DType::f32, shape, options.field_defaults, false});
    ASSERT_TRUE(index.ok());
    CountingSource source(shape);
    const ChunkGrid grid{shape, {2, 3}};
    std::vector<Shape> wanted;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const Box box = grid.clipped_box(8 * rank + (5 * i + 3) % 8);
      ASSERT_TRUE((*writer)->put_source(*index, box, source).ok());
      wanted.push_back(box.start);
    }
    ASSERT_TRUE((*writer)->end_step().ok());
    EXPECT_EQ(source.starts, wanted);
    EXPECT_TRUE((*writer)->close().ok());
  });
  EXPECT_EQ(read_field(path, "/f"), values_of(shape, whole_box(shape), DType::f32));
}

TEST(EngineMemory, PulledFieldStaysUnderTheCap) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const Shape shape = {256, 128, 70};  // 9.2 MB, edge chunks in the last dimension
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    FileOptions options;
    options.sync = false;
    ASSERT_TRUE(apply_file_options("memory=2MiB,chunk=32x32x32,threads=2", options).ok());
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    auto index = (*writer)->define_field({"/f", DType::f32, shape, options.field_defaults, false});
    ASSERT_TRUE(index.ok());
    CountingSource source(shape);
    const ChunkGrid grid{shape, {32, 32, 32}};
    for (std::uint64_t c = rank; c < grid.n_chunks(); c += 2) {
      ASSERT_TRUE((*writer)->put_source(*index, grid.clipped_box(c), source).ok());
    }
    auto report = (*writer)->end_step();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_LE(report->peak_memory_bytes, 2U << 20);
    EXPECT_TRUE((*writer)->close().ok());
  });
  EXPECT_EQ(read_field(path, "/f"), values_of(shape, whole_box(shape), DType::f32));
}

TEST(EngineMemory, CapBelowOneChunkIsAnErrorOnEveryRank) {
  const TestFolder folder;
  run_ranks(3, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    FileOptions options;
    ASSERT_TRUE(apply_file_options("memory=1MiB,chunk=1x1024x1024", options).ok());
    auto writer = Writer::create(std::move(comm), folder / "out.h5", options);
    ASSERT_TRUE(writer.ok());
    const Shape shape = {3, 1024, 1024};
    auto index = (*writer)->define_field({"/f", DType::f32, shape, options.field_defaults, false});
    const Box box{{rank, 0, 0}, {1, 1024, 1024}};
    const std::vector<float> values(1 << 20, 1.0F);
    ASSERT_TRUE((*writer)->put(*index, box, values.data()).ok());
    auto report = (*writer)->end_step();
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().code(), Code::out_of_memory);
    EXPECT_NE(report.status().message().find("memory cap"), std::string::npos);
    EXPECT_TRUE((*writer)->close().ok());
  });
}

TEST(EngineSteps, FieldOverTimeGrowsByOneEntryAStep) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const Shape shape = {8, 6};
  run_ranks(2, [&](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    FileOptions options;
    options.sync = false;
    ASSERT_TRUE(apply_file_options("over-time=on,chunk=4x3", options).ok());
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    auto index = (*writer)->define_field({"/f", DType::i32, shape, options.field_defaults, false});
    for (std::int32_t step = 0; step < 5; ++step) {
      const std::vector<std::int32_t> values(24, step);
      ASSERT_TRUE((*writer)->put(*index, {{4 * rank, 0}, {4, 6}}, values.data(), true).ok());
      auto report = (*writer)->end_step();
      ASSERT_TRUE(report.ok()) << report.status().message();
    }
    EXPECT_TRUE((*writer)->close().ok());
  });
  const std::vector<std::byte> bytes = read_field(path, "/f");
  ASSERT_EQ(bytes.size(), std::size_t{5} * 48 * sizeof(std::int32_t));
  for (std::size_t i = 0; i < std::size_t{5} * 48; ++i) {
    std::int32_t value = -1;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    EXPECT_EQ(value, static_cast<std::int32_t>(i / 48));
  }
}

// --- Definitions that a codec cannot serve.

/// A field that its codec cannot encode is refused when it is defined. The refusal does not fail
/// the step and does not occupy the name.
TEST(EngineSteps, OnlyAFileWithLossesHasItsAttribute) {
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const Shape shape = {64, 128};
  const std::vector<std::byte> values = values_of(shape, whole_box(shape), DType::f32);
  const auto write = [&](Writer& writer, const std::string& name, const std::string& options) {
    FieldDefinition field{name, DType::f32, shape, {}, false};
    ASSERT_TRUE(apply_field_options(options, field.options).ok());
    const auto index = writer.define_field(field);
    ASSERT_TRUE(index.ok()) << index.status().message();
    ASSERT_TRUE(writer.put(*index, whole_box(shape), values.data()).ok());
    ASSERT_TRUE(writer.end_step().ok());
  };
  FileOptions options;
  options.sync = false;
  const auto job = [&](bool opens, const std::vector<std::pair<std::string, std::string>>& fields) {
    run_ranks(1, [&](std::unique_ptr<Comm> comm) {
      auto writer = opens ? Writer::open(std::move(comm), path, options)
                          : Writer::create(std::move(comm), path, options);
      ASSERT_TRUE(writer.ok()) << writer.status().message();
      for (const auto& [name, text] : fields) write(**writer, name, text);
      EXPECT_TRUE((*writer)->close().ok());
    });
  };
  const std::string lossy = "codec=portable,bound=abs=10";
  job(false, {{"/exact", "codec=deflate"}, {"/lossy", lossy}});
  EXPECT_TRUE(has_file_attribute(path)) << "the first step was this Writer's own, too";
  EXPECT_EQ(n_attributes(path, "/exact"), 0);
  EXPECT_GT(n_attributes(path, "/lossy"), 0);

  options.replace = true;
  job(false, {{"/exact", "codec=deflate"}});
  job(true, {{"/more", "codec=deflate"}});
  EXPECT_EQ(n_attributes(path, "/"), 0);
  EXPECT_EQ(n_attributes(path, "/more"), 0);
  job(true, {{"/lossy", lossy}, {"/again", "codec=deflate"}});
  EXPECT_EQ(n_attributes(path, "/"), 0) << "the file's datasets may be another program's";
  EXPECT_GT(n_attributes(path, "/lossy"), 0);
  EXPECT_EQ(n_attributes(path, "/again"), 0);
}

TEST(EngineDefinitions, ACodecThatCannotServeAFieldIsRefusedBeforeTheStep) {
  const std::vector<std::string> refused = {"codec=trz,bound=abs=1,chunk=8x,guard=monotone=3",
                                            "codec=sperr,bound=abs=0.1"};
  for (const int n_ranks : {1, 3}) {
    for (const std::string& options : refused) {
      const TestFolder folder;
      const std::string path = folder / "out.h5";
      const std::vector<float> values(8, 3);
      run_ranks(n_ranks, [&](std::unique_ptr<Comm> comm) {
        const bool root = comm->rank() == 0;
        auto writer = Writer::create(std::move(comm), path, FileOptions());
        ASSERT_TRUE(writer.ok()) << writer.status().message();
        const auto define = [&](const std::string& name, const std::string& text) {
          FieldDefinition field{name, DType::f32, {8}, FieldOptions(), false};
          EXPECT_TRUE(apply_field_options(text, field.options).ok()) << text;
          return (*writer)->define_field(field);
        };
        const auto first = define("/first", "codec=deflate");
        const auto wrong = define("/second", options);
        if (wrong.ok() && options.find("sperr") != std::string::npos) return;  // Not installed.
        EXPECT_FALSE(wrong.ok()) << options;
        const auto second = define("/second", "codec=deflate");
        ASSERT_TRUE(first.ok() && second.ok()) << options;
        const Box mine = root ? Box{{0}, {8}} : Box{{0}, {0}};
        EXPECT_TRUE((*writer)->put(*first, mine, values.data()).ok());
        EXPECT_TRUE((*writer)->put(*second, mine, values.data()).ok());
        const auto report = (*writer)->end_step();
        EXPECT_TRUE(report.ok()) << options << ": " << report.status().message();
        EXPECT_TRUE((*writer)->close().ok());
      });
    }
  }
}

}  // namespace
}  // namespace tailrace::test
