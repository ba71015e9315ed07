// The reading APIs of C and C++, as programs use them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tailrace/reader.hpp"

namespace {

/// A temporary folder; the destructor removes it.
class TestFolder {
 public:
  TestFolder() : path_(::testing::TempDir() + "c_reader." + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string written_file(const TestFolder& folder, std::vector<float>& values) {
  std::string path = folder / "f.h5";
  values.resize(64 * 48);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i % 97) * 0.5F;
  auto file = tailrace::File::create(path, tailrace::serial(), "codec=deflate,chunk=16x16");
  auto field = file.define<float>("/g/t", {64, 48});
  field.put({{0, 0}, {64, 48}}, values);
  file.close();
  return path;
}

TEST(CReader, ReadsSlabsAndSaysWhatDatasetsAre) {
  const TestFolder folder;
  std::vector<float> values;
  const std::string path = written_file(folder, values);
  tailrace_reader* reader = nullptr;
  ASSERT_EQ(tailrace_reader_open(path.c_str(), TAILRACE_SERIAL, "threads=2", &reader), TAILRACE_OK)
      << tailrace_thread_error();
  std::size_t number = 99;
  ASSERT_EQ(tailrace_reader_find(reader, "/g/t", &number), TAILRACE_OK);
  tailrace_dataset_info info;
  ASSERT_EQ(tailrace_reader_dataset(reader, number, &info), TAILRACE_OK);
  EXPECT_STREQ(info.path, "/g/t");
  EXPECT_STREQ(info.type_text, "f32");
  EXPECT_EQ(info.dtype, TAILRACE_F32);
  EXPECT_EQ(info.n_dims, 2U);
  EXPECT_EQ(info.shape[1], 48U);
  EXPECT_EQ(info.chunk_shape[0], 16U);
  const std::uint64_t start[] = {1, 2};
  const std::uint64_t count[] = {10, 20};
  const std::uint64_t stride[] = {3, 2};
  std::vector<float> part(200);
  ASSERT_EQ(tailrace_reader_read(reader, number, start, count, stride, part.data(), 800),
            TAILRACE_OK)
      << tailrace_thread_error();
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t k = 0; k < 20; ++k) {
      ASSERT_EQ(part[i * 20 + k], values[(1 + 3 * i) * 48 + 2 + 2 * k]);
    }
  }
  const tailrace_read_request request{number, start, count, nullptr, part.data(), 800};
  ASSERT_EQ(tailrace_reader_read_all(reader, 1, &request), TAILRACE_OK);
  EXPECT_EQ(part[21], values[2 * 48 + 3]);
  tailrace_read_report report;
  ASSERT_EQ(tailrace_reader_report(reader, &report), TAILRACE_OK);
  EXPECT_EQ(report.n_slabs, 2U);
  EXPECT_EQ(report.value_bytes, 1600U);
  EXPECT_GT(report.n_chunks + report.n_chunk_hits, 0U);
  ASSERT_EQ(tailrace_reader_refresh(reader), TAILRACE_OK);
  ASSERT_EQ(tailrace_reader_close(reader), TAILRACE_OK);
}

/// A file of four steps with attributes of each type.
std::string file_of_steps(const TestFolder& folder) {
  std::string path = folder / "steps.h5";
  auto file = tailrace::File::create(path, tailrace::serial(), "codec=deflate,replace=on");
  auto u = file.define<float>("/u", {3, 4}, "over-time=on");
  auto often = file.define<double>("/g/often", {}, "over-time=on");
  file.define<int>("/once", {2}).put_copy(std::vector{5, 6});
  file.set_attribute("/", "title", std::string_view("a run"));
  file.set_attribute("/", "time", 0.1);
  file.set_attribute("/u", "flags", std::vector<std::int16_t>{-1, 300});
  file.set_attribute("/g", "large", std::uint64_t{1} << 63);
  file.set_attribute("/u", "half", 0.5F);
  for (int step = 0; step < 4; ++step) {
    std::vector<float> values(12);
    for (std::size_t i = 0; i < 12; ++i) values[i] = float(step) * 100 + float(i);
    if (step < 3) u.put(values);
    const double time = step * 0.25;
    often.put(std::span(&time, 1));
    file.end_step();
  }
  file.close();
  return path;
}

TEST(CReader, AttributesHaveTheirTypes) {
  const TestFolder folder;
  auto reader = tailrace::Reader::open(file_of_steps(folder));
  EXPECT_EQ(reader.attribute<std::string>("/", "title"), "a run");
  EXPECT_EQ(reader.attribute<double>("/", "time"), 0.1);
  EXPECT_EQ(reader.attribute<float>("/", "time"), 0.1F);
  EXPECT_EQ(reader.attribute<std::vector<int>>("/u", "flags"), (std::vector{-1, 300}));
  EXPECT_EQ(reader.attribute<std::vector<double>>("/u", "flags"), (std::vector{-1.0, 300.0}));
  EXPECT_EQ(reader.attribute<std::uint64_t>("/g", "large"), std::uint64_t{1} << 63);
  EXPECT_EQ(reader.attribute<std::vector<std::string>>("/", "title"),
            std::vector<std::string>{"a run"});
  std::vector<std::string> names;
  for (const tailrace::AttributeInfo& info : reader.attributes("/u")) names.push_back(info.name);
  EXPECT_NE(std::ranges::find(names, "flags"), names.end());
  const auto code_of = [](auto&& call) {
    try {
      call();
    } catch (const tailrace::Error& error) {
      EXPECT_NE(std::string(error.what()), "");
      return error.code();
    }
    return tailrace_error(TAILRACE_OK);
  };
  EXPECT_EQ(code_of([&] { reader.attribute<std::int64_t>("/g", "large"); }),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { reader.attribute<signed char>("/g", "large"); }),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { reader.attribute<std::vector<unsigned>>("/u", "flags"); }),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { reader.attribute<int>("/u", "half"); }), TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { reader.attribute<int>("/u", "flags"); }),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { reader.attribute<double>("/", "title"); }),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { reader.attribute<std::string>("/", "time"); }),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { reader.attribute<double>("/none", "time"); }), TAILRACE_ERROR_NOT_FOUND);
  EXPECT_EQ(code_of([&] { reader.attribute<double>("/", "tiem"); }), TAILRACE_ERROR_NOT_FOUND);
  EXPECT_NE(std::string(tailrace_thread_error()).find("did you mean \"time\"?"), std::string::npos);
  reader.close();
}

TEST(CReader, StepsAreThoseOfAllFields) {
  const TestFolder folder;
  const std::string path = file_of_steps(folder);
  auto reader = tailrace::Reader::open(path);
  EXPECT_EQ(reader.paths().size(), 3U);
  EXPECT_EQ(reader.last_step(), 2U);
  EXPECT_EQ(reader.steps().size(), 3U);
  EXPECT_EQ(reader.steps("/g/often").size(), 4U);
  std::uint64_t n = 0;
  for (const tailrace::Step step : reader.steps()) {
    EXPECT_EQ(step.index(), n);
    const float first = float(n++) * 100;
    EXPECT_EQ(step.read<float>("/u")[11], first + 11);
    EXPECT_EQ(step.read_all<float>("/u", {{1, 2}, {2, 1}}), (std::vector{first + 6, first + 10}));
    EXPECT_EQ(step.read<double>("/g/often")[0], double(step.index()) * 0.25);
  }
  EXPECT_EQ(n, 3U);
  EXPECT_THROW(reader.step(3).read<float>("/u"), tailrace::Error);
  EXPECT_THROW(reader.steps("/once"), tailrace::Error);
  reader.close();

  tailrace_reader* c = nullptr;
  ASSERT_EQ(tailrace_reader_open(path.c_str(), TAILRACE_SERIAL, nullptr, &c), TAILRACE_OK);
  EXPECT_EQ(tailrace_reader_last_step(c), 2);
  float whole[12] = {};
  EXPECT_EQ(tailrace_reader_read_step(c, "/u", 1, nullptr, nullptr, whole, sizeof whole),
            TAILRACE_OK);
  EXPECT_EQ(whole[11], 111);
  EXPECT_EQ(tailrace_reader_read_step(c, "/u", 1, nullptr, nullptr, whole, 44),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_read_step(c, "/u", 3, nullptr, nullptr, whole, sizeof whole),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tailrace_thread_error()).find("it has 3 steps, counted from 0"),
            std::string::npos);
  tailrace_attribute_info info;
  ASSERT_EQ(tailrace_reader_find_attribute(c, "/", "title", &info), TAILRACE_OK);
  EXPECT_STREQ(info.texts[0], "a run");
  EXPECT_EQ(tailrace_reader_close(c), TAILRACE_OK);
  EXPECT_EQ(tailrace_reader_last_step(c), -1);

  auto empty = tailrace::File::create(folder / "none.h5");
  empty.close();
  EXPECT_EQ(tailrace::Reader::open(folder / "none.h5").last_step(), std::nullopt);
}

TEST(CReader, ReadsWithinACoarserBound) {
  const TestFolder folder;
  const std::string path = folder / "f.h5";
  std::vector<float> values(256 * 192);
  std::mt19937 random(1);
  for (float& value : values) value = static_cast<float>(random()) * 0x1p-32F;
  auto file = tailrace::File::create(path, tailrace::serial(), "codec=trz,refine=4,bound=abs=1e-4");
  file.define<float>("/g/t", {256, 192}).put({{0, 0}, {256, 192}}, values);
  file.close();
  const std::uint64_t start[] = {0, 0};
  const std::uint64_t count[] = {256, 192};
  std::uint64_t fetched_bytes[2] = {};
  for (const double bound : {1e-4, 8e-4}) {
    tailrace_reader* reader = nullptr;
    const std::string options = "abs=" + std::to_string(bound);
    ASSERT_EQ(tailrace_reader_open(path.c_str(), TAILRACE_SERIAL, options.c_str(), &reader),
              TAILRACE_OK);
    std::size_t number = 99;
    ASSERT_EQ(tailrace_reader_find(reader, "/g/t", &number), TAILRACE_OK);
    std::vector<float> found(values.size());
    ASSERT_EQ(
        tailrace_reader_read(reader, number, start, count, nullptr, found.data(), 4 * found.size()),
        TAILRACE_OK)
        << tailrace_thread_error();
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(found[i], values[i], bound);
    tailrace_read_report report;
    ASSERT_EQ(tailrace_reader_report(reader, &report), TAILRACE_OK);
    fetched_bytes[bound > 5e-4 ? 1 : 0] = report.fetched_bytes;
    ASSERT_EQ(tailrace_reader_close(reader), TAILRACE_OK);
  }
  EXPECT_LT(fetched_bytes[1], fetched_bytes[0] - 1000);
}

TEST(CReader, RefusesNullsAndWrongSizesWithTexts) {
  const TestFolder folder;
  std::vector<float> values;
  const std::string path = written_file(folder, values);
  tailrace_reader* reader = nullptr;
  EXPECT_EQ(tailrace_reader_open(nullptr, TAILRACE_SERIAL, nullptr, &reader),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_open(path.c_str(), TAILRACE_SERIAL, nullptr, nullptr),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_open(path.c_str(), TAILRACE_SERIAL, "speed=1", &reader),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_open((folder / "no").c_str(), TAILRACE_SERIAL, nullptr, &reader),
            TAILRACE_ERROR_NOT_FOUND);
  EXPECT_EQ(reader, nullptr);
  EXPECT_EQ(tailrace_reader_close(nullptr), TAILRACE_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(tailrace_reader_open(path.c_str(), TAILRACE_SERIAL, nullptr, &reader), TAILRACE_OK);
  std::size_t number = 0;
  EXPECT_EQ(tailrace_reader_find(reader, "/t", &number), TAILRACE_ERROR_NOT_FOUND);
  EXPECT_NE(std::string(tailrace_thread_error()).find("/t"), std::string::npos);
  const std::uint64_t start[] = {0, 0};
  const std::uint64_t count[] = {64, 48};
  EXPECT_EQ(tailrace_reader_read(reader, 0, start, nullptr, nullptr, values.data(), 4),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_read(reader, 0, start, count, nullptr, values.data(), 4),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_read(reader, 0, start, count, nullptr, nullptr, 64 * 48 * 4),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_read(reader, 1, start, count, nullptr, values.data(), 4),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_dataset(reader, 0, nullptr), TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_read_all(reader, 1, nullptr), TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_fail_read_all(reader, TAILRACE_ERROR_NOT_FOUND, "no /t here"),
            TAILRACE_ERROR_NOT_FOUND);
  EXPECT_NE(std::string(tailrace_thread_error()).find("no /t here"), std::string::npos);
  EXPECT_EQ(tailrace_reader_fail_read_all(reader, TAILRACE_OK, nullptr),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tailrace_reader_fail_read_all(nullptr, TAILRACE_ERROR_IO, ""),
            TAILRACE_ERROR_INVALID_ARGUMENT);
  tailrace_reader_abandon(reader);
  tailrace_reader_abandon(nullptr);
  // A closed reader stays closed, however it is closed and however often.
  tailrace_reader* next = nullptr;
  ASSERT_EQ(tailrace_reader_open(path.c_str(), TAILRACE_SERIAL, nullptr, &next), TAILRACE_OK);
  EXPECT_EQ(tailrace_reader_close(next), TAILRACE_OK);
  for (tailrace_reader* closed : {reader, next}) {
    EXPECT_EQ(tailrace_reader_n_datasets(closed), 0U);
    EXPECT_EQ(tailrace_reader_find(closed, "/g/t", &number), TAILRACE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tailrace_reader_read_all(closed, 0, nullptr), TAILRACE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tailrace_reader_close(closed), TAILRACE_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tailrace_thread_error(), "the reader is closed");
    tailrace_reader_abandon(closed);
  }
}

TEST(CppReader, ReadsTypedVectorsAndThrows) {
  const TestFolder folder;
  std::vector<float> values;
  const std::string path = written_file(folder, values);
  tailrace::Reader reader = tailrace::Reader::open(path);
  EXPECT_EQ(reader.n_datasets(), 1U);
  EXPECT_EQ(reader.read<float>("/g/t"), values);
  std::vector<float> row(48);
  reader.read_all("/g/t", {{5, 0}, {1, 48}}, std::span(row));
  EXPECT_TRUE(std::equal(row.begin(), row.end(), values.begin() + 5 * 48));
  EXPECT_EQ(reader.read<float>("/g/t", {{5, 1}, {1, 2}, {1, 40}}),
            (std::vector<float>{values[5 * 48 + 1], values[5 * 48 + 41]}));
  EXPECT_THROW(reader.read<double>("/g/t"), tailrace::Error);
  EXPECT_THROW(reader.read<float>("/g/t", {{0}, {4}}), tailrace::Error);
  EXPECT_THROW(reader.read<float>("/no"), tailrace::Error);
  EXPECT_EQ(reader.dataset(0).whole().count, (std::vector<std::uint64_t>{64, 48}));
  reader.close();
}

TEST(CppReader, ChunksOfTrzNeedNoPlugin) {
  const TestFolder folder;
  const std::string path = folder / "trz.h5";
  std::vector<double> values(40 * 50);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = double(i % 50) + double(i) * 0.01;
  auto file = tailrace::File::create(path, tailrace::serial(), "codec=trz,chunk=16x16");
  file.define<double>("/exact", {40, 50}).put({{0, 0}, {40, 50}}, values);
  file.define<double>("/bounded", {40, 50}, "bound=abs=0.001").put({{0, 0}, {40, 50}}, values);
  file.close();
  // The first folder has no plug-ins; the reader registers none in this process.
  tailrace::Reader reader =
      tailrace::Reader::open(path, tailrace::serial(), "threads=2,plugin-path=" + (folder / ""));
  EXPECT_EQ(reader.read<double>("/exact"), values);
  const std::vector<double> bounded = reader.read<double>("/bounded");
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(bounded[i], values[i], 0.001);
  reader.close();
}

}  // namespace
