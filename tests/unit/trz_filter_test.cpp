// The trz filter with HDF5 itself: the binary interface that hdf5_abi.hpp declares, the words of
// set_local, the bytes in the file, and refusals with their texts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstddef>
#include <cstdlib>
#include <thread>
#include <type_traits>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "trz/client_data.hpp"
#include "unit/memory_dataset.hpp"

namespace tailrace {
namespace {

using test::all_dtypes;
using test::MemoryDataset;
using test::Sample;
using test::samples_of;
using ::testing::HasSubstr;

// Declarations of hdf5_abi.hpp match this HDF5.
static_assert(std::is_same_v<hdf5::hid_t, ::hid_t> && sizeof(hdf5::hsize_t) == sizeof(::hsize_t));
static_assert(std::is_same_v<hdf5::herr_t, ::herr_t> && sizeof(hdf5::htri_t) == sizeof(::htri_t));
static_assert(sizeof(hdf5::FilterClass) == sizeof(H5Z_class2_t));
static_assert(offsetof(hdf5::FilterClass, id) == offsetof(H5Z_class2_t, id));
static_assert(offsetof(hdf5::FilterClass, name) == offsetof(H5Z_class2_t, name));
static_assert(offsetof(hdf5::FilterClass, can_apply) == offsetof(H5Z_class2_t, can_apply));
static_assert(offsetof(hdf5::FilterClass, set_local) == offsetof(H5Z_class2_t, set_local));
static_assert(offsetof(hdf5::FilterClass, filter) == offsetof(H5Z_class2_t, filter));
static_assert(hdf5::kClassVersion == H5Z_CLASS_T_VERS && hdf5::kFlagReverse == H5Z_FLAG_REVERSE);
static_assert(int{hdf5::type_integer} == H5T_INTEGER && int{hdf5::type_float} == H5T_FLOAT);
static_assert(int{hdf5::order_little} == H5T_ORDER_LE && int{hdf5::order_big} == H5T_ORDER_BE);
static_assert(int{hdf5::sign_two} == H5T_SGN_2 && int{hdf5::sign_none} == H5T_SGN_NONE);
static_assert(int{hdf5::fill_user} == H5D_FILL_VALUE_USER_DEFINED);
static_assert(hdf5::kDefaultStack == H5E_DEFAULT);

CodecRequest request_of(DType dtype, const Shape& shape, double bound) {
  CodecRequest request;
  request.name = "trz";
  request.dtype = dtype;
  request.chunk_shape = shape;
  request.absolute_bound = bound;
  return request;
}

std::unique_ptr<Codec> made_codec(const CodecRequest& request) {
  Result<std::unique_ptr<Codec>> codec = make_codec(request);
  EXPECT_TRUE(codec.ok()) << codec.status().message();
  return codec.ok() ? std::move(*codec) : nullptr;
}

class TrzFilter : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(register_filter_class(&hdf5::trz_filter_class()).ok()); }
};

TEST_F(TrzFilter, WritesTheRegistrysClientDataAndBytes) {
  const Hdf5Scope scope;
  const Shape shapes[] = {{100}, {7, 33}, {16, 16, 16}, {2, 3, 5, 7}, {2, 1, 3, 2, 9}};
  for (const DType dtype : all_dtypes) {
    for (const Shape& shape : shapes) {
      for (const Sample& sample : samples_of(dtype, n_elements(shape))) {
        SCOPED_TRACE(sample.name + " " + shape_text(shape));
        CodecRequest request = request_of(dtype, shape, 0.01);
        request.fill_value = sample.fill_value;
        const std::unique_ptr<Codec> codec = made_codec(request);
        ASSERT_NE(codec, nullptr);
        MemoryDataset dataset(dtype, shape, codec->filters(), request.fill_value);
        ASSERT_TRUE(dataset.valid()) << hdf5_error_text();
        EXPECT_EQ(dataset.client_data(0), codec->filters()[0].final_client_data);
        const EncodedBytes stored = dataset.write(sample);
        Result<EncodedBytes> encoded = codec->encode(sample.buffer());
        ASSERT_TRUE(encoded.ok()) << encoded.status().message();
        ASSERT_EQ(encoded->buffer.n_bytes(), stored.buffer.n_bytes());
        EXPECT_EQ(
            std::memcmp(encoded->buffer.data(), stored.buffer.data(), stored.buffer.n_bytes()), 0);
        const std::vector<std::byte> decoded = dataset.read_back(*encoded, sample.bytes.size());
        const double bound = codec->lossy() ? 0.01 : 0;
        EXPECT_TRUE(
            compare_values(dtype, sample.bytes, decoded, bound, sample.fill_value).within_bound());
      }
    }
  }
}

TEST_F(TrzFilter, CopiedCreationListsAreMadeToFit) {
  const Hdf5Scope scope;
  const std::unique_ptr<Codec> small = made_codec(request_of(DType::f32, {8, 8}, 0.5));
  const std::unique_ptr<Codec> large = made_codec(request_of(DType::f64, {4, 5, 6}, 0.5));
  FilterSpec copied = small->filters()[0];
  copied.client_data = copied.final_client_data;  // Like H5Pcopy of another dataset's list.
  MemoryDataset dataset(DType::f64, {4, 5, 6}, {copied});
  ASSERT_TRUE(dataset.valid()) << hdf5_error_text();
  EXPECT_EQ(dataset.client_data(0), large->filters()[0].final_client_data);
}

/// HDF5's error text for a dataset that could not be created; empty if it was created.
std::string refusal(hid_t type, const std::vector<std::uint32_t>& words, unsigned flags) {
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 1U << 16, false);
  const Hdf5Id file(H5Fcreate("in_memory_only.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t extents[] = {8, 8};
  H5Pset_chunk(creation.get(), 2, extents);
  H5Pset_filter(creation.get(), static_cast<H5Z_filter_t>(trz::filter_id), flags, words.size(),
                words.data());
  const Hdf5Id space(H5Screate_simple(2, extents, nullptr));
  const Hdf5Id dataset(
      H5Dcreate2(file.get(), "d", type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  return dataset.valid() ? "" : hdf5_error_text();
}

TEST_F(TrzFilter, SaysWhatItCannotServe) {
  const Hdf5Scope scope;
  const std::vector<std::uint32_t> exact = trz::client_words(trz::FilterRequest{});
  trz::FilterRequest pointwise;
  pointwise.kind = trz::BoundKind::pointwise;
  pointwise.bound = 0.01;
  const Hdf5Id text(H5Tcopy(H5T_C_S1));
  const Hdf5Id compound(H5Tcreate(H5T_COMPOUND, 8));
  H5Tinsert(compound.get(), "re", 0, H5T_NATIVE_FLOAT);
  H5Tinsert(compound.get(), "im", 4, H5T_NATIVE_FLOAT);
  const Hdf5Id other_float(H5Tcopy(H5T_NATIVE_FLOAT));
  H5Tset_ebias(other_float.get(), 100);
  for (const unsigned flags : {unsigned{H5Z_FLAG_MANDATORY}, unsigned{H5Z_FLAG_OPTIONAL}}) {
    EXPECT_EQ(refusal(H5T_NATIVE_FLOAT, exact, flags), "");
    EXPECT_EQ(refusal(H5T_NATIVE_FLOAT, {}, flags), "");
    EXPECT_THAT(refusal(text.get(), exact, flags), HasSubstr("neither an integer nor"));
    EXPECT_THAT(refusal(compound.get(), exact, flags), HasSubstr("neither an integer nor"));
    EXPECT_THAT(refusal(H5T_IEEE_F32BE, exact, flags), HasSubstr("byte order"));
    EXPECT_THAT(refusal(H5T_STD_I16BE, exact, flags), HasSubstr("byte order"));
    EXPECT_EQ(refusal(H5T_STD_I8BE, exact, flags), "");  // One byte has no order.
    EXPECT_THAT(refusal(H5T_NATIVE_LDOUBLE, exact, flags),
                HasSubstr("expected IEEE numbers of 32 or 64 bits"));
    EXPECT_THAT(refusal(other_float.get(), exact, flags),
                HasSubstr("expected IEEE numbers of 32 or 64 bits"));
    EXPECT_THAT(refusal(H5T_NATIVE_INT, trz::client_words(pointwise), flags), HasSubstr("pw_rel"));
    EXPECT_THAT(refusal(H5T_NATIVE_FLOAT, {7}, flags), HasSubstr("word 0 is 7"));
    EXPECT_THAT(refusal(H5T_NATIVE_FLOAT, {1, 0, 0}, flags), HasSubstr("end too early"));
  }
}

/// A direct call of the filter with a block from malloc, like H5Z.
struct FilterCall {
  std::size_t capacity = 0;
  void* block = nullptr;
  std::size_t n_result = 0;

  FilterCall(unsigned flags, const std::vector<std::uint32_t>& words,
             std::span<const std::byte> bytes)
      : capacity(bytes.size()), block(std::malloc(bytes.size() + 1)) {
    std::memcpy(block, bytes.data(), bytes.size());
    n_result = hdf5::trz_filter_class().filter(flags, words.size(), words.data(), bytes.size(),
                                               &capacity, &block);
  }
  FilterCall(const FilterCall&) = delete;
  FilterCall& operator=(const FilterCall&) = delete;
  ~FilterCall() { std::free(block); }
};

TEST_F(TrzFilter, HostileBytesAndWordsLeaveTheBlockAlone) {
  const Hdf5Scope scope;
  const Shape shape = {16, 16, 16};
  const Sample sample = samples_of(DType::f32, n_elements(shape))[0];
  const std::unique_ptr<Codec> codec = made_codec(request_of(DType::f32, shape, 0.1));
  Result<EncodedBytes> encoded = codec->encode(sample.buffer());
  ASSERT_TRUE(encoded.ok());
  const std::vector<std::uint32_t>& words = codec->filters()[0].final_client_data;
  const std::span<const std::byte> whole = std::as_const(encoded->buffer).bytes();
  EXPECT_EQ(FilterCall(H5Z_FLAG_REVERSE, words, whole).n_result, sample.bytes.size());

  for (std::size_t n = 0; n < whole.size(); n += 37) {
    const FilterCall cut(H5Z_FLAG_REVERSE, words, whole.first(n));
    EXPECT_EQ(cut.n_result, 0U);
    EXPECT_EQ(cut.capacity, n);
  }
  // The bytes are right, but the dataset's header describes another chunk.
  for (const Shape& other : {Shape{16, 16, 15}, Shape{4097}, Shape{1}, Shape{2, 16, 16, 16}}) {
    const std::unique_ptr<Codec> wrong = made_codec(request_of(DType::f32, other, 0.1));
    EXPECT_EQ(FilterCall(H5Z_FLAG_REVERSE, wrong->filters()[0].final_client_data, whole).n_result,
              0U);
  }
  std::vector<std::uint32_t> bent = words;
  for (std::size_t n = 0; n < words.size(); ++n) {
    bent.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(FilterCall(H5Z_FLAG_REVERSE, bent, whole).n_result, 0U);
    EXPECT_EQ(FilterCall(0, bent, sample.bytes).n_result, 0U);
  }
  for (std::uint32_t& word : bent = words) word = 0xFFFFFFFF;
  EXPECT_EQ(FilterCall(H5Z_FLAG_REVERSE, bent, whole).n_result, 0U);
  // 2^96 values: more than any machine's memory.
  trz::FilterChunk huge;
  huge.shape = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  EXPECT_EQ(
      FilterCall(H5Z_FLAG_REVERSE, trz::client_words(trz::FilterRequest{}, huge), whole).n_result,
      0U);
}

TEST_F(TrzFilter, ManyThreadsGiveTheSameBytes) {
  const Shape shape = {16, 16, 16};
  const Sample sample = samples_of(DType::f64, n_elements(shape))[0];
  const std::unique_ptr<Codec> codec = made_codec(request_of(DType::f64, shape, 0.1));
  Result<EncodedBytes> expected = codec->encode(sample.buffer());
  ASSERT_TRUE(expected.ok());
  std::vector<int> n_wrong(8, 0);
  std::vector<std::thread> threads;
  for (int& wrong : n_wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const FilterCall call(0, codec->filters()[0].final_client_data, sample.bytes);
        wrong += call.n_result != expected->buffer.n_bytes() ||
                 std::memcmp(call.block, expected->buffer.data(), call.n_result) != 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_wrong, std::vector<int>(8, 0));
}

}  // namespace
}  // namespace tailrace
