// Codecs compared with HDF5's own filter pipeline, and errors for a missing or foreign plug-in.
//
// The same values pass through H5Dwrite in a file in memory; H5Dread_chunk returns what HDF5
// stored. Our codec must produce those bytes and that filter mask, and must decode HDF5's.

#include <gtest/gtest.h>
#include <hdf5.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/plugin_library.hpp"
#include "unit/codec_samples.hpp"
#include "unit/memory_dataset.hpp"

namespace tailrace {
namespace {

namespace fs = std::filesystem;
using test::MemoryDataset;
using test::Sample;
using test::samples_of;

Result<std::unique_ptr<Codec>> make(const CodecRequest& request) { return make_codec(request, ""); }

void expect_same_bytes(const EncodedBytes& ours, const EncodedBytes& stored) {
  EXPECT_EQ(ours.filter_mask, stored.filter_mask);
  ASSERT_EQ(ours.buffer.n_bytes(), stored.buffer.n_bytes());
  EXPECT_EQ(std::memcmp(ours.buffer.data(), stored.buffer.data(), ours.buffer.n_bytes()), 0);
}

using Settings = std::vector<std::pair<std::string, std::string>>;
struct Case {
  const char* name;
  Settings settings;
  std::vector<DType> dtypes;
};

const std::vector<Case>& cases_with_hdf5_bytes() {
  static const std::vector<DType> floats = {DType::f32, DType::f64};
  static const std::vector<DType> any = {DType::f32, DType::f64, DType::i16, DType::i32, DType::u8};
  static const std::vector<Case> cases = {
      {"none", {}, any},
      {"deflate", {{"engine", "zlib"}}, any},
      {"deflate", {{"engine", "zlib"}, {"level", "9"}, {"shuffle", "off"}}, any},
      {"sz3", {}, floats},
      {"zfp", {}, floats},
      {"zfp", {{"reversible", "on"}}, {DType::f32, DType::f64, DType::i32}},
      {"zstd", {}, any},
      {"zstd", {{"level", "9"}, {"shuffle", "off"}}, any},
      {"lz4", {}, any},
      {"bzip2", {}, any},
      {"blosc", {}, any},
      {"blosc2", {}, any},
      {"bitshuffle", {}, any},
      {"sperr", {}, floats},
      {"id=32015", {{"cd", "5"}}, any},
      {"id=32024", {{"cd", "0:0x3f947ae1:0x47ae147b:0:0:0:0:0:0"}}, floats},
  };
  return cases;
}

TEST(PluginCodec, GivesTheBytesOfHdf5sOwnPipeline) {
  const Hdf5Scope scope;
  for (const Case& each : cases_with_hdf5_bytes()) {
    for (const DType dtype : each.dtypes) {
      for (const Shape& shape : {Shape{2048}, Shape{64, 33}, Shape{16, 9, 18}, Shape{1, 32, 32}}) {
        for (const Sample& sample : samples_of(dtype, n_elements(shape))) {
          if (!sample.ordinary && shape.size() != 3) continue;  // One shape suffices.
          SCOPED_TRACE(std::string(each.name) + " " + sample.name + " " + shape_text(shape));
          CodecRequest request;
          request.name = each.name;
          request.settings = each.settings;
          request.dtype = dtype;
          request.chunk_shape = shape;
          request.absolute_bound = 0.02;
          Result<std::unique_ptr<Codec>> codec = make(request);
          if (!codec.ok() && codec.status().code() == Code::plugin_missing) continue;
          if (!codec.ok() && codec.status().code() == Code::unsupported) continue;  // SPERR, 1-D
          ASSERT_TRUE(codec.ok()) << codec.status().message();
          if ((*codec)->lossy() && !sample.ordinary) continue;

          MemoryDataset dataset(dtype, shape, (*codec)->filters());
          ASSERT_TRUE(dataset.valid());
          for (unsigned i = 0; i < (*codec)->filters().size(); ++i) {
            EXPECT_EQ(dataset.client_data(i), (*codec)->filters()[i].final_client_data);
          }
          Result<EncodedBytes> ours = (*codec)->encode(sample.buffer());
          ASSERT_TRUE(ours.ok()) << ours.status().message();
          EncodedBytes stored = dataset.write(sample);
          expect_same_bytes(*ours, stored);

          const std::vector<std::byte> by_hdf5 = dataset.read_back(*ours, sample.bytes.size());
          Result<Buffer> by_us = (*codec)->decode(std::move(stored));
          ASSERT_TRUE(by_us.ok()) << by_us.status().message();
          EXPECT_EQ(std::memcmp(by_us->data(), by_hdf5.data(), by_hdf5.size()), 0);
        }
      }
    }
  }
}

TEST(PluginCodec, StockHdf5ReadsLibdeflateAndPortable) {
  const Hdf5Scope scope;
  for (const char* name : {"deflate", "portable"}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::i16}) {
      const Shape shape = {15, 16, 17};
      for (const Sample& sample : samples_of(dtype, n_elements(shape))) {
        SCOPED_TRACE(std::string(name) + " " + sample.name);
        CodecRequest request;
        request.name = name;
        request.dtype = dtype;
        request.chunk_shape = shape;
        request.absolute_bound = 0.5;
        request.fill_value = sample.fill_value;
        Result<std::unique_ptr<Codec>> codec = make(request);
        ASSERT_TRUE(codec.ok());
        MemoryDataset dataset(dtype, shape, (*codec)->filters());
        Result<EncodedBytes> encoded = (*codec)->encode(sample.buffer());
        ASSERT_TRUE(encoded.ok());
        const std::vector<std::byte> values = dataset.read_back(*encoded, sample.bytes.size());
        const double bound = (*codec)->lossy() ? 0.5 : 0.0;
        EXPECT_TRUE(
            compare_values(dtype, sample.bytes, values, bound, sample.fill_value).within_bound());
      }
    }
  }
}

/// If HDF5 uses zlib, its gzip makes exactly portable's chunk from the rounded values.
TEST(PluginCodec, PortableIsShuffleAndDeflateOfRoundedValues) {
  const Hdf5Scope scope;
  const Shape shape = {4096};
  for (Sample& sample : samples_of(DType::f32, 4096)) {
    SCOPED_TRACE(sample.name);
    CodecRequest request;
    request.name = "portable";
    request.settings = {{"engine", "zlib"}};
    request.chunk_shape = shape;
    request.absolute_bound = 0.25;
    request.fill_value = sample.fill_value;
    Result<std::unique_ptr<Codec>> codec = make(request);
    ASSERT_TRUE(codec.ok());
    Result<EncodedBytes> ours = (*codec)->encode(sample.buffer());
    ASSERT_TRUE(ours.ok());
    EncodedBytes again{Buffer::copy_of(std::as_const(ours->buffer).bytes()), ours->filter_mask};
    Result<Buffer> rounded = (*codec)->decode(std::move(again));
    ASSERT_TRUE(rounded.ok());
    const auto bytes = std::as_const(*rounded).bytes();
    sample.bytes.assign(bytes.begin(), bytes.end());
    MemoryDataset dataset(DType::f32, shape, (*codec)->filters());
    expect_same_bytes(*ours, dataset.write(sample));
  }
}

CodecRequest request_of(const char* name, DType dtype, Shape shape, double bound,
                        Settings settings = {}) {
  CodecRequest request;
  request.name = name;
  request.settings = std::move(settings);
  request.dtype = dtype;
  request.chunk_shape = std::move(shape);
  request.absolute_bound = bound;
  return request;
}

/// True if a plug-in is installed; tests that need it are skipped otherwise.
bool installed(const char* name) {
  return make_codec(request_of(name, DType::f32, {16, 16, 16}, 0.1), "").ok();
}

void expect_refusal(const CodecRequest& request, Code code, const std::string& words) {
  const Status status = make_codec(request, "").status();
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST(PluginCodec, RefusesAPointwiseBoundByName) {
  if (!installed("sz3") || !installed("zfp")) GTEST_SKIP() << "no SZ3 or ZFP plug-in";
  for (const char* name : {"sz3", "zfp"}) {
    CodecRequest request = request_of(name, DType::f32, {16, 16, 16}, 0);
    request.pointwise_bound = 1e-3;
    expect_refusal(request, Code::unsupported,
                   std::string("codec ") + name + ": it cannot guarantee a pw_rel");
  }
  CodecRequest rate = request_of("zfp", DType::f32, {16, 16, 16}, 0, {{"rate", "8"}});
  rate.pointwise_bound = 1e-3;
  expect_refusal(rate, Code::invalid_argument, "cannot guarantee a bound");
}

TEST(PluginCodec, RefusesWhatALossyCodecCannotPromise) {
  if (!installed("sz3") || !installed("zfp"))
    GTEST_SKIP() << "no plug-in found: set HDF5_PLUGIN_PATH";
  const Shape cube = {16, 16, 16};
  for (const char* name : {"sz3", "zfp"}) {
    expect_refusal(request_of(name, DType::i32, cube, 2.0), Code::unsupported, "i32");
    expect_refusal(request_of(name, DType::f32, cube, 0.0), Code::unsupported, "bound");
    expect_refusal(request_of(name, DType::f32, cube, 1e-60), Code::unsupported,
                   "least positive f32");
    expect_refusal(request_of(name, DType::f32, {2, 2, 2, 2, 2}, 0.1), Code::unsupported,
                   "2x2x2x2x2");
    expect_refusal(request_of(name, DType::f32, {}, 0.1), Code::unsupported, "scalar");
    expect_refusal(request_of(name, DType::f32, cube, 0.1, {{"level", "3"}}),
                   Code::invalid_argument, "level");
  }
  expect_refusal(request_of("zfp", DType::f32, {1}, 0.1), Code::unsupported, "shape 1 ");
  expect_refusal(request_of("zfp", DType::f32, cube, 0.1, {{"rate", "8"}}), Code::invalid_argument,
                 "rate");
  expect_refusal(request_of("zfp", DType::f32, cube, 0.0, {{"rate", "8"}, {"precision", "20"}}),
                 Code::invalid_argument, "cannot be combined");
  expect_refusal(request_of("zfp", DType::f32, cube, 0.0, {{"rate", "-8"}}), Code::invalid_argument,
                 "rate");
}

TEST(PluginCodec, ExpertModesOfZfpWork) {
  if (!installed("zfp")) GTEST_SKIP() << "no plug-in found: set HDF5_PLUGIN_PATH";
  const Shape cube = {16, 16, 16};
  const Sample sample = samples_of(DType::f32, 4096)[0];
  Result<std::unique_ptr<Codec>> rate =
      make_codec(request_of("zfp", DType::f32, cube, 0, {{"rate", "8"}}), "");
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_NEAR(static_cast<double>((*rate)->encode(sample.buffer())->buffer.n_bytes()), 4096, 16);
  EXPECT_TRUE(make_codec(request_of("zfp", DType::f64, cube, 0, {{"precision", "20"}}), "").ok());
}

TEST(PluginCodec, WhatIsMissingIsSaidToBeInHdf5plugin) {
  for (const std::uint32_t filter : {32024U, 32013U, 307U}) {
    const Status status = load_plugin(filter, {}, {"/no/such/folder"}).status();
    EXPECT_EQ(status.code(), Code::plugin_missing);
    EXPECT_NE(status.message().find("/no/such/folder (no such folder)"), std::string::npos);
    EXPECT_NE(status.message().find("'pip install hdf5plugin' installs it"), std::string::npos)
        << status.message();
  }
  const Status other = load_plugin(40000, {}, {"/no/such/folder"}).status();
  EXPECT_EQ(other.code(), Code::plugin_missing);
  EXPECT_EQ(other.message().find("hdf5plugin"), std::string::npos) << other.message();
}

/// SZ3's plug-in would print, or end the process, for each of these.
TEST(PluginCodec, BadClientDataNeverReachSz3) {
  if (!installed("sz3")) GTEST_SKIP() << "no plug-in found: set HDF5_PLUGIN_PATH";
  for (const char* words : {"", "1", "0:1:2", "9:0:0:0:0:0:0:0:0", "0:0:0:0:0:0:0:0:0:0",
                            "0x7fffffff:0:0:0:0:0:0:0:0"}) {
    expect_refusal(request_of("id=32024", DType::f32, {16, 16, 16}, 0.1, {{"cd", words}}),
                   Code::invalid_argument, "cd");
  }
  expect_refusal(
      request_of("id=32024", DType::f32, {2, 2, 2, 2, 2, 2}, 0.1, {{"cd", "0:0:0:0:0:0:0:0:0"}}),
      Code::unsupported, "dimensions");
  for (const char* words : {"1:", "1::2", "x", "99999999999", "1.5"}) {
    expect_refusal(request_of("id=32015", DType::f32, {64}, 0.1, {{"cd", words}}),
                   Code::invalid_argument, "cd");
  }
}

TEST(PluginCodec, SaysWhereItLookedForAMissingPlugin) {
  const std::string folder = "/nonexistent/plugins";
  const Status status = make_codec(request_of("id=31999", DType::f32, {64}, 0.0), folder).status();
  EXPECT_EQ(status.code(), Code::plugin_missing);
  EXPECT_NE(status.message().find("31999"), std::string::npos);
  for (const std::string& searched : plugin_folders(folder)) {
    EXPECT_NE(status.message().find(searched), std::string::npos) << status.message();
  }
  EXPECT_EQ(plugin_folders(folder).front(), folder);
  for (const char* name : {"id=", "id=0", "id=65536", "id=12x", "id=-1"}) {
    EXPECT_TRUE(find_codec(name)->plugin);
    EXPECT_EQ(make_codec(request_of(name, DType::f32, {64}, 0), "").status().code(),
              Code::invalid_argument);
  }
  EXPECT_FALSE(find_codec("deflate")->plugin);
  EXPECT_EQ(find_codec(""), nullptr);
}

TEST(PluginCodec, FoldersAreSearchedFirstAndTheEnvironmentStays) {
  const auto in_environment = [] {
    const char* text = std::getenv("HDF5_PLUGIN_PATH");
    return text != nullptr ? std::string(text) : "unset";
  };
  const std::string before = in_environment();
  // A folder that does not exist would end the search of HDF5 1.10 through all its folders.
  const std::string first = fs::temp_directory_path(), second = fs::current_path();
  search_plugins_in("");
  search_plugins_in(first + ":" + second);
  EXPECT_EQ(in_environment(), before);
  const std::vector<std::string> ours = plugin_folders("");
  ASSERT_GE(ours.size(), 2U);
  EXPECT_EQ(ours[0], first);
  EXPECT_EQ(ours[1], second);
  EXPECT_EQ(plugin_folders("/asked").front(), "/asked");
  const Hdf5Scope scope;
  for (unsigned i = 0; i < 2; ++i) {
    std::string folder(PATH_MAX, '\0');
    folder.resize(std::size_t(std::max<ssize_t>(0, H5PLget(i, folder.data(), folder.size()))));
    EXPECT_EQ(folder, ours[i]);
  }
}

class ForeignFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tailrace_plugins_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(ForeignFiles, AFileThatIsNoLibraryIsNamedWithTheLoadersWords) {
  std::ofstream(folder_ / "libh5nosuch.so") << "this is text";
  std::ofstream(folder_ / "libh5zfp.so") << "this is text as well";
  // This library's name would match.
  Status status = make_codec(request_of("zfp", DType::f32, {64}, 0.1), folder_.string()).status();
  if (!status.ok()) {
    EXPECT_EQ(status.code(), Code::plugin_missing);
    EXPECT_NE(status.message().find((folder_ / "libh5zfp.so").string()), std::string::npos)
        << status.message();
  }
  status = make_codec(request_of("id=31999", DType::f32, {64}, 0.1), folder_.string()).status();
  EXPECT_EQ(status.code(), Code::plugin_missing);
}

TEST_F(ForeignFiles, ALibraryThatIsNoPluginIsPassedOver) {
  // Any shared library will do; the C library of this program certainly exists.
  for (const char* library : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6",
                              "/lib64/libm.so.6"}) {
    if (!fs::exists(library)) continue;
    fs::copy_file(library, folder_ / "libh5sz3.so");
    const Status status =
        make_codec(request_of("sz3", DType::f32, {64}, 0.1), folder_.string()).status();
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::plugin_missing);
      EXPECT_NE(status.message().find("not an HDF5 filter plug-in"), std::string::npos)
          << status.message();
    }
    return;
  }
  GTEST_SKIP() << "no shared library at the usual places";
}

}  // namespace
}  // namespace tailrace
