// netCDF classic inputs: the three versions, record layouts, and inconsistent headers.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "netcdf_classic_builder.hpp"

namespace tailrace::test {
namespace {

template <class T>
std::string values_of(const std::vector<T>& values) {
  std::string bytes;
  for (const T value : values) bytes += big_endian(value);
  return bytes;
}

/// time (record), y = 2, x = 3: a fixed field, a coordinate, a scalar, text, two record variables.
ClassicFile example(int version) {
  ClassicFile file(version);
  file.dimensions = {{"time", 0}, {"y", 2}, {"x", 3}};
  file.attributes = {file.text_attribute("title", "a title"),
                     file.attribute("numbers", 3, 3, values_of<std::int16_t>({1, -2, 3})),
                     file.text_attribute("empty", "")};
  file.variables = {
      {"x", {2}, {file.text_attribute("units", "m")}, 6, 24, values_of<double>({0.5, 1.5, 2.5})},
      {"field",
       {1, 2},
       {file.attribute("_FillValue", 5, 1, values_of<float>({-1e34F}))},
       5,
       24,
       values_of<float>({1, 2, 3, 4, 5, -1e34F})},
      {"scalar", {}, {}, 4, 4, values_of<std::int32_t>({-7})},
      {"text", {2}, {}, 2, 4, "abc"},
      {"small",
       {0, 2},
       {file.text_attribute("coordinates", "x lost")},
       3,
       8,
       values_of<std::int16_t>({10, 11, 12}) + std::string(2, '\0')},
      {"large", {0, 1}, {}, 6, 16, values_of<double>({-1, -2})},
  };
  file.n_records = 4;
  return file;
}

class InputNetcdfClassic : public ::testing::TestWithParam<int> {};

TEST_P(InputNetcdfClassic, ReadsFixedAndRecordVariables) {
  const TestFolder folder;
  const std::string path = folder / "example.nc";
  write_file(path, example(GetParam()).build());
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->format(), "netCDF classic");

  std::vector<std::string> paths;
  for (const StoredDataset& field : input->fields()) paths.push_back(field.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"/x", "/field", "/scalar", "/small", "/large"}));

  EXPECT_EQ(read_whole<double>(*input, "/x"), (std::vector<double>{0.5, 1.5, 2.5}));
  EXPECT_EQ(read_whole<float>(*input, "/field"), (std::vector<float>{1, 2, 3, 4, 5, -1e34F}));
  EXPECT_EQ(read_whole<std::int32_t>(*input, "/scalar"), std::vector<std::int32_t>{-7});
  const std::vector<std::int16_t> small = read_whole<std::int16_t>(*input, "/small");
  // The first byte of each record counts the records: 10 + 256 r.
  EXPECT_EQ(small, (std::vector<std::int16_t>{10, 11, 12, 266, 11, 12, 522, 11, 12, 778, 11, 12}));
  EXPECT_EQ(read_whole<double>(*input, "/large"),
            (std::vector<double>{-1, -2, -1, -2, -1, -2, -1, -2}));
  expect_boxes_match(*input, 1, {1, 2});
  expect_boxes_match(*input, 3, {1, 2});
  expect_boxes_match(*input, 3, {3, 1});
  expect_boxes_match(*input, 4, {2, 2});
}

TEST_P(InputNetcdfClassic, KnowsFillCoordinatesAndTheRecordDimension) {
  const TestFolder folder;
  const std::string path = folder / "example.nc";
  write_file(path, example(GetParam()).build());
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  const std::vector<StoredDataset>& fields = input->fields();
  EXPECT_TRUE(fields[0].coordinate);
  EXPECT_FALSE(fields[1].coordinate);
  EXPECT_EQ(fields[1].missing_value, std::optional<double>(static_cast<double>(-1e34F)));
  EXPECT_FALSE(fields[1].extendable);
  EXPECT_TRUE(fields[3].extendable);
  EXPECT_EQ(fields[3].shape, (Shape{4, 3}));
  EXPECT_EQ(fields[3].missing_value, std::optional<double>(-32767));
  EXPECT_EQ(fields[3].stored_bytes, 24U);
}

TEST_P(InputNetcdfClassic, RefusesEveryPrefixWithoutACrash) {
  const TestFolder folder;
  const std::string whole = example(GetParam()).build();
  const std::string path = folder / "cut.nc";
  write_file(path, whole);
  for (std::size_t n = whole.size(); n-- > 0;) {
    std::filesystem::resize_file(path, n);
    EXPECT_EQ(open_status(path).code(), Code::corrupt) << n;
  }
}

TEST_P(InputNetcdfClassic, SurvivesEveryChangedByteOfTheHeader) {
  const TestFolder folder;
  const ClassicFile file = example(GetParam());
  const std::string whole = file.build();
  const std::string path = folder / "changed.nc";
  write_file(path, whole);
  std::fstream patched(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, char byte) {
    patched.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
  };
  for (std::size_t at = 4; at < file.header_bytes(); ++at) {
    for (const int value : {0, 0x7f, 0xff}) {
      put(at, static_cast<char>(value));
      const Result<std::unique_ptr<InputFile>> input = open_input_file(path);
      if (!input.ok()) continue;
      for (std::size_t i = 0; i < (*input)->fields().size(); ++i) {
        const StoredDataset& field = (*input)->fields()[i];
        const std::uint64_t n_bytes = n_elements(field.shape) * field.value_bytes();
        ASSERT_LE(n_bytes, whole.size()) << "byte " << at << " value " << value;
        std::vector<std::byte> values(n_bytes);
        EXPECT_TRUE((*input)->read(i, whole_box(field.shape), values).ok());
      }
    }
    put(at, whole[at]);
  }
}

TEST_P(InputNetcdfClassic, CountsTheRecordsOfAStreamedFile) {
  const TestFolder folder;
  const std::string path = folder / "streamed.nc";
  ClassicFile file = example(GetParam());
  file.streaming = true;
  write_file(path, file.build() + "half a record");
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->fields()[3].shape, (Shape{4, 3}));
}

TEST_P(InputNetcdfClassic, ASingleRecordVariableIsNotPadded) {
  const TestFolder folder;
  const std::string path = folder / "single.nc";
  ClassicFile file(GetParam());
  file.dimensions = {{"t", 0}, {"x", 3}};
  file.variables = {{"v", {0, 1}, {}, 3, 8, values_of<std::int16_t>({0, 1, 2})}};
  file.n_records = 3;
  write_file(path, file.build());
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(read_whole<std::int16_t>(*input, "/v"),
            (std::vector<std::int16_t>{0, 1, 2, 256, 1, 2, 512, 1, 2}));
}

TEST_P(InputNetcdfClassic, AcceptsNoRecordsAndNothingAtAll) {
  const TestFolder folder;
  const std::string path = folder / "empty.nc";
  ClassicFile file = example(GetParam());
  file.n_records = 0;
  write_file(path, file.build());
  std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->fields()[4].shape, (Shape{0, 2}));
  EXPECT_TRUE(read_whole<double>(*input, "/large").empty());

  write_file(path, ClassicFile(GetParam()).build());
  input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_TRUE(input->fields().empty());
}

INSTANTIATE_TEST_SUITE_P(Versions, InputNetcdfClassic, ::testing::Values(1, 2, 5),
                         [](const auto& test) { return "CDF" + std::to_string(test.param); });

/// Expects that a file is refused with a message that contains `why`.
void expect_refused(const ClassicFile& file, const std::string& why, Code code = Code::corrupt) {
  const TestFolder folder;
  const std::string path = folder / "bad.nc";
  write_file(path, file.build());
  const Status status = open_status(path);
  EXPECT_EQ(status.code(), code) << text_of(status);
  EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
}

TEST(InputNetcdfHeader, RefusesWhatCannotBe) {
  ClassicFile file = example(1);
  file.dimensions.push_back({"t2", 0});
  expect_refused(file, "two record dimensions");

  file = example(1);
  file.dimensions[2].first = "y";
  expect_refused(file, "defined twice");

  file = example(2);
  file.variables[1].name = "x";
  expect_refused(file, "defined twice");

  file = example(2);
  file.variables[1].name = "a/b";
  expect_refused(file, "invalid name");

  file = example(5);
  file.variables[3].type = 12;
  expect_refused(file, "type 12");

  file = example(2);
  file.variables[1].type = 11;
  expect_refused(file, "type 11");

  file = example(1);
  file.variables[5].dimension_ids = {1, 0};
  expect_refused(file, "must be its first dimension");

  file = example(1);
  file.variables[5].dimension_ids = std::vector<std::uint64_t>(33, 1);
  expect_refused(file, "33 dimensions", Code::unsupported);
}

TEST(InputNetcdfHeader, RefusesSizesBeyondTheFileWithoutTakingMemory) {
  ClassicFile file(5);
  file.dimensions = {{"a", 1ULL << 40}, {"b", 1ULL << 40}};
  file.variables = {{"v", {0, 1}, {}, 6, 0, "12345678"}};
  expect_refused(file, "2^64 and more");

  file = example(5);
  file.attributes.push_back(file.name("big") + big_endian(std::uint32_t{6}) +
                            file.count(1ULL << 60));
  expect_refused(file, "truncated");
}

TEST(InputNetcdfClassicTools, AgreesWithWhatNcgenWrites) {
  const TestFolder folder;
  const std::string cdl = folder / "in.cdl";
  write_file(cdl,
             "netcdf in {\ndimensions:\n t = UNLIMITED ;\n x = 4 ;\nvariables:\n"
             " byte b(x) ;\n short s(t, x) ;\n s:missing_value = -99s ;\n double d(t) ;\n"
             "data:\n b = -1, 2, 3, 4 ;\n s = 1, 2, 3, 4, 5, 6, 7, -99 ;\n d = 0.25, 0.5 ;\n}\n");
  for (const char* kind : {"classic", "64-bit-offset", "cdf5"}) {
    const std::string path = folder / (std::string(kind) + ".nc");
    tool_output("ncgen -k " + std::string(kind) + " -o " + path + " " + cdl);
    if (read_file(path).empty()) GTEST_SKIP() << "ncgen is not installed";
    const std::unique_ptr<InputFile> input = open_or_fail(path);
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(read_whole<std::int8_t>(*input, "/b"), (std::vector<std::int8_t>{-1, 2, 3, 4}));
    EXPECT_EQ(read_whole<std::int16_t>(*input, "/s"),
              (std::vector<std::int16_t>{1, 2, 3, 4, 5, 6, 7, -99}));
    EXPECT_EQ(read_whole<double>(*input, "/d"), (std::vector<double>{0.25, 0.5}));
    EXPECT_EQ(input->fields()[1].missing_value, std::optional<double>(-99));
  }
}

}  // namespace
}  // namespace tailrace::test
