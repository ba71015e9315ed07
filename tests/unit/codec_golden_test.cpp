// Chunks written by earlier versions must decode forever.
//
// tests/golden/codec_NAME_V.bin is one chunk of the values below, written by version V. A file is
// never rewritten; a change of a codec's bytes adds a file. test_chunk_bytes.py reads them with
// h5py.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

constexpr double kBound = 0.5;

/// A triangular wave in single precision: the same on every machine.
std::vector<float> golden_values() {
  std::vector<float> values(4096);
  for (int i = 0; i < 4096; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(std::abs(i % 2000 - 1000)) * 0.37F;
  }
  return values;
}

std::vector<std::string> built_in_names() {
  std::vector<std::string> names;
  for (const CodecEntry* entry : codec_registry()) {
    if (!entry->plugin) names.emplace_back(entry->name);
  }
  return names;
}

class CodecGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(CodecGolden, DecodesWithinTheBound) {
  const std::filesystem::path folder =
      std::filesystem::path(__FILE__).parent_path() / ".." / "golden";
  const std::string name = GetParam();
  std::ifstream file(folder / ("codec_" + name + "_0.1.0.bin"), std::ios::binary);
  ASSERT_TRUE(file) << "no golden file for " << name;
  const std::string stored((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());

  CodecRequest request;
  request.name = name;
  request.chunk_shape = {4096};
  request.absolute_bound = kBound;
  Result<std::unique_ptr<Codec>> codec = make_codec(request);
  ASSERT_TRUE(codec.ok());
  EncodedBytes encoded{Buffer::copy_of(std::as_bytes(std::span(stored))), 0};
  Result<Buffer> decoded = (*codec)->decode(std::move(encoded));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  const std::vector<float> values = golden_values();
  const ChunkComparison found =
      compare_values(DType::f32, std::as_bytes(std::span(values)), std::as_const(*decoded).bytes(),
                     (*codec)->lossy() ? kBound : 0.0);
  EXPECT_TRUE(found.within_bound());
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, CodecGolden, ::testing::ValuesIn(built_in_names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace tailrace
