// Chunks of trz's format 1 must decode forever, to the same bits.
//
// trz/tests/golden/trz-1 holds chunks of every method (NAME.trz) and their values (NAME.npy). The
// decoder in plain Python reads the same files (test_trz_format.py). That test also covers chunks
// with a shared book (NAME.trzb), because a codec takes its book from the client data of a file.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "core/codec_registry.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Type and values of an array in a .npy file of version 1.
struct NumpyArray {
  DType dtype = DType::f32;
  std::string values;
};

NumpyArray numpy_array(const std::filesystem::path& path) {
  static const std::map<std::string, DType> types = {{"<f4", DType::f32}, {"<f8", DType::f64},
                                                     {"<i2", DType::i16}, {"<i4", DType::i32},
                                                     {"<i8", DType::i64}, {"<u4", DType::u32}};
  const std::string file = bytes_of(path);
  const std::size_t n_header = 10 + static_cast<unsigned char>(file.at(8)) +
                               std::size_t{256} * static_cast<unsigned char>(file.at(9));
  const std::string key = "'descr': '";
  return {types.at(file.substr(file.find(key) + key.size(), 3)), file.substr(n_header)};
}

TEST(TrzGolden, ChunksDecodeToTheirValues) {
  const std::filesystem::path here = std::filesystem::path(__FILE__).parent_path();
  int n_chunks = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(here / "../../trz/tests/golden/trz-1")) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".trz" ||
        std::filesystem::exists(std::filesystem::path(path).replace_extension(".trzb"))) {
      continue;
    }
    SCOPED_TRACE(path.filename().string());
    const std::string stored = bytes_of(path);
    const NumpyArray wanted = numpy_array(path.replace_extension(".npy"));
    CodecRequest request;
    request.name = "trz";
    request.dtype = wanted.dtype;
    request.chunk_shape = {wanted.values.size() / dtype_bytes(wanted.dtype)};
    Result<std::unique_ptr<Codec>> codec = make_codec(request);
    ASSERT_TRUE(codec.ok()) << codec.status().message();
    EncodedBytes encoded{Buffer::copy_of(std::as_bytes(std::span(stored))), 0};
    const Result<Buffer> decoded = (*codec)->decode(std::move(encoded));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    const auto values = std::as_bytes(std::span(wanted.values));
    EXPECT_TRUE(std::ranges::equal(decoded->bytes(), values));
    ++n_chunks;
  }
  EXPECT_GE(n_chunks, 52);
}

}  // namespace
}  // namespace tailrace
