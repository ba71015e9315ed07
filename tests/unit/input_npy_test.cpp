// .npy and raw inputs, and format detection of open_input_file.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>

#include "describe/input_flat.hpp"
#include "input_support.hpp"

namespace tailrace::test {
namespace {

/// A .npy file of the given version (1 to 3) with `values`.
std::string npy_bytes(int version, const std::string& literal, const std::string& values) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += version == 1 ? little_endian(static_cast<std::uint16_t>(literal.size()))
                        : little_endian(static_cast<std::uint32_t>(literal.size()));
  return bytes + literal + values;
}

std::string little_floats(std::size_t n) {
  std::string bytes;
  for (std::size_t i = 0; i < n; ++i) bytes += little_endian(static_cast<float>(i));
  return bytes;
}

std::vector<float> counting(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(InputNpy, ReadsEveryVersionInCOrder) {
  const TestFolder folder;
  for (const int version : {1, 2, 3}) {
    const std::string path = folder / "density.v.npy";
    write_file(
        path, npy_bytes(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }\n",
                        little_floats(24)));
    const std::unique_ptr<InputFile> input = open_or_fail(path);
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(input->format(), "npy");
    ASSERT_EQ(input->fields().size(), 1U);
    EXPECT_EQ(input->fields()[0].path, "/density.v");
    EXPECT_EQ(input->fields()[0].stored_bytes, 96U);
    EXPECT_EQ(read_whole<float>(*input, "/density.v"), counting(24));
    expect_boxes_match(*input, 0, {1, 2, 3});
    expect_boxes_match(*input, 0, {2, 1, 4});
  }
}

TEST(InputNpy, TransposesFortranOrder) {
  const TestFolder folder;
  const std::string path = folder / "f.npy";
  // The file's own order is (4, 3, 2): element (i, j, k) is number i + 2 j + 6 k.
  write_file(path, npy_bytes(1, "{'shape': (2, 3, 4), 'fortran_order': True, 'descr': '<f4'}",
                             little_floats(24)));
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  const std::vector<float> values = read_whole<float>(*input, "/f");
  for (std::size_t at = 0; at < 24; ++at) {
    const std::size_t i = at / 12;
    const std::size_t j = at / 4 % 3;
    const std::size_t k = at % 4;
    EXPECT_EQ(values[at], static_cast<float>(i + 2 * j + 6 * k));
  }
  expect_boxes_match(*input, 0, {1, 2, 3});
}

TEST(InputNpy, TransposesInSlabsWhenTheBoxIsLargerThanTheScratch) {
  const TestFolder folder;
  const std::string path = folder / "f.npy";
  const std::size_t n_rows = 3;
  const std::size_t n_columns = 700000;  // 8.4 MB: three slabs of 4 MiB
  write_file(path, npy_bytes(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 700000)}",
                             little_floats(n_rows * n_columns)));
  const std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  const std::vector<float> values = read_whole<float>(*input, "/f");
  bool all_right = true;
  for (std::size_t i = 0; i < n_rows; ++i) {
    for (std::size_t j = 0; j < n_columns; ++j) {
      all_right = all_right && values[i * n_columns + j] == static_cast<float>(j * n_rows + i);
    }
  }
  EXPECT_TRUE(all_right);
}

TEST(InputNpy, ReadsBigEndianScalarsEmptyArraysAndLongIntegers) {
  const TestFolder folder;
  const std::string path = folder / "a.npy";
  write_file(path, npy_bytes(1, "{'descr': '>i8', 'fortran_order': False, 'shape': ()}",
                             big_endian(std::int64_t{-5})));
  std::unique_ptr<InputFile> input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(read_whole<std::int64_t>(*input, "/a"), std::vector<std::int64_t>{-5});

  write_file(path, npy_bytes(1, "{'descr': '>u2', 'fortran_order': True, 'shape': (3L,)}",
                             big_endian(std::uint16_t{1}) + big_endian(std::uint16_t{515}) +
                                 big_endian(std::uint16_t{65535})));
  input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(read_whole<std::uint16_t>(*input, "/a"), (std::vector<std::uint16_t>{1, 515, 65535}));

  write_file(path,
             npy_bytes(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 0, 2)}", ""));
  input = open_or_fail(path);
  ASSERT_NE(input, nullptr);
  EXPECT_TRUE(read_whole<std::uint8_t>(*input, "/a").empty());
}

TEST(InputNpy, RefusesOtherTypesByName) {
  for (const char* descr :
       {"'<f2'", "'|b1'", "'<c8'", "'<U10'", "'|O'", "'<M8[ns]'", "'<f16'", "'f4'", "''"}) {
    const Result<NpyHeader> header = parse_npy_literal(std::string("{'descr': ") + descr +
                                                       ", 'fortran_order': False, 'shape': (2,)}");
    EXPECT_EQ(header.status().code(), Code::unsupported) << descr;
  }
  const Result<NpyHeader> record = parse_npy_literal(
      "{'descr': [('x', '<f4'), ('y', '<f4')], 'fortran_order': False, 'shape': (2,)}");
  EXPECT_EQ(record.status().code(), Code::unsupported);
}

TEST(InputNpy, RefusesEveryPrefixAndTrailingBytes) {
  const TestFolder folder;
  const std::string whole = npy_bytes(
      2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", little_floats(4));
  const std::string path = folder / "cut.npy";
  for (std::size_t n = 0; n < whole.size(); ++n) {
    write_file(path, whole.substr(0, n));
    EXPECT_EQ(open_status(path).code(), Code::corrupt) << n;
  }
  write_file(path, whole + "x");
  EXPECT_EQ(open_status(path).code(), Code::corrupt);
}

TEST(InputNpy, RefusesHeadsThatAreNoSuchLiteral) {
  for (const char* literal :
       {"", "{", "}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} tail"}) {
    EXPECT_EQ(parse_npy_literal(literal).status().code(), Code::corrupt) << literal;
  }
}

TEST(InputNpy, RefusesShapesWhoseBytesOverflow) {
  const TestFolder folder;
  const std::string path = folder / "huge.npy";
  write_file(path, npy_bytes(1,
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, "
                             "4294967296)}",
                             "12345678"));
  EXPECT_EQ(open_status(path).code(), Code::corrupt);
}

TEST(InputRaw, ReadsExactlyItsSizeAndGivesBothNumbersOtherwise) {
  const TestFolder folder;
  const std::string path = folder / "field.bin";
  std::string bytes;
  for (int i = 0; i < 6; ++i) bytes += std::string(2, static_cast<char>(i));
  write_file(path, bytes);
  const std::unique_ptr<InputFile> input = open_or_fail(path, RawFormat{DType::i16, {2, 3}});
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->format(), "raw");
  EXPECT_EQ(read_whole<std::int16_t>(*input, "/field"),
            (std::vector<std::int16_t>{0, 0x0101, 0x0202, 0x0303, 0x0404, 0x0505}));
  expect_boxes_match(*input, 0, {1, 2});

  const Status wrong = open_status(path, RawFormat{DType::f32, {2, 3}});
  EXPECT_EQ(wrong.code(), Code::invalid_argument);
  EXPECT_NE(wrong.message().find("24"), std::string::npos) << wrong.message();
  EXPECT_NE(wrong.message().find("12"), std::string::npos) << wrong.message();
}

TEST(InputRaw, RefusesBoxesOutsideTheShapeAndBuffersOfAnotherSize) {
  const TestFolder folder;
  const std::string path = folder / "field.bin";
  write_file(path, std::string(16, 'x'));
  const std::unique_ptr<InputFile> input = open_or_fail(path, RawFormat{DType::u8, {4, 4}});
  ASSERT_NE(input, nullptr);
  std::vector<std::byte> values(4);
  EXPECT_EQ(input->read(0, Box{{3, 0}, {2, 2}}, values).code(), Code::invalid_argument);
  EXPECT_EQ(input->read(0, Box{{0}, {4}}, values).code(), Code::invalid_argument);
  EXPECT_EQ(input->read(0, Box{{0, 0}, {1, 3}}, values).code(), Code::invalid_argument);
  EXPECT_EQ(input->read(1, Box{{0, 0}, {1, 4}}, values).code(), Code::invalid_argument);
  EXPECT_TRUE(input->read(0, Box{{0, 0}, {1, 4}}, values).ok());
}

TEST(InputOpen, SaysWhatIsWrongWithFilesThatAreNone) {
  const TestFolder folder;
  EXPECT_EQ(open_status(folder / "absent").code(), Code::not_found);
  EXPECT_EQ(open_status(folder / "").code(), Code::invalid_argument);
  write_file(folder / "empty", "");
  EXPECT_EQ(open_status(folder / "empty").code(), Code::corrupt);
  write_file(folder / "text", "hello, world\n");
  const Status foreign = open_status(folder / "text");
  EXPECT_EQ(foreign.code(), Code::corrupt);
  EXPECT_NE(foreign.message().find("hello, w"), std::string::npos) << foreign.message();
  write_file(folder / "short", "\x89HD");
  EXPECT_EQ(open_status(folder / "short").code(), Code::corrupt);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(open_status(folder / "pipe").code(), Code::invalid_argument);
}

}  // namespace
}  // namespace tailrace::test
