// Stored codecs compared with HDF5's own pipeline, in files in memory.
//
// HDF5 writes a chunk with a pipeline, and our codec must decode its stored bytes and mask to the
// values. HDF5 must read back what we encode. Covers pipelines of ours, plug-ins, and those that
// only HDF5 can run.

#include "hdf5/stored_codec.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <random>
#include <thread>

#include "codec/deflate.hpp"
#include "core/codec_registry.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "unit/stock_dataset.hpp"

namespace tailrace {
namespace {

using test::ListSetup;
using test::StockDataset;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

Bytes counted(std::size_t n) {
  std::vector<std::int32_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::int32_t>(i / 3 * 17);
  return bytes_of(values);
}

Bytes random_bytes(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(n);
  for (std::byte& byte : bytes) byte = std::byte(random() & 0xFF);
  return bytes;
}

/// HDF5 to Tailrace, and Tailrace to HDF5.
void expect_same(StockDataset& stock, const Bytes& values, const std::string& plugin_path = "") {
  ASSERT_TRUE(stock.valid());
  Result<std::unique_ptr<Codec>> codec = stock.codec(plugin_path);
  ASSERT_TRUE(codec.ok()) << codec.status().message();
  const auto [stored, mask] = stock.store(values);
  Bytes decoded(values.size(), std::byte(0xEE));
  const Status status = (*codec)->decode_into(stored, mask, decoded);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(decoded, values);

  Result<EncodedBytes> encoded = (*codec)->encode(Buffer::copy_of(values));
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_LE(encoded->buffer.n_bytes(), (*codec)->encoded_bytes_max(values.size()));
  EXPECT_EQ(stock.read(std::as_const(encoded->buffer).bytes(), encoded->filter_mask), values);
  Result<Buffer> again = (*codec)->decode(std::move(*encoded));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(std::memcmp(again->data(), values.data(), values.size()), 0);
}

void shuffle(hid_t list) { H5Pset_shuffle(list); }
void deflate(hid_t list) { H5Pset_deflate(list, 6); }
void fletcher(hid_t list) { H5Pset_fletcher32(list); }

ListSetup in_order(std::vector<ListSetup> steps) {
  return [steps = std::move(steps)](hid_t list) {
    for (const ListSetup& step : steps) step(list);
  };
}

TEST(StoredCodec, every_order_of_the_built_in_filters_agrees_with_hdf5) {
  const Hdf5Scope scope;
  const std::vector<ListSetup> orders = {
      in_order({}),
      in_order({shuffle}),
      in_order({deflate}),
      in_order({fletcher}),
      in_order({shuffle, deflate}),
      in_order({deflate, shuffle}),
      in_order({shuffle, deflate, fletcher}),
      in_order({fletcher, shuffle, deflate}),
      in_order({shuffle, fletcher, deflate}),
      in_order({fletcher, deflate, fletcher}),
      in_order({deflate, deflate}),
      in_order({deflate, fletcher, shuffle}),
  };
  for (std::size_t o = 0; o < orders.size(); ++o) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{128}, std::size_t{100003}}) {
      SCOPED_TRACE("order " + std::to_string(o) + ", " + std::to_string(n) + " elements");
      StockDataset stock(H5T_STD_I32LE, {n}, orders[o]);
      expect_same(stock, counted(n));
      expect_same(stock, random_bytes(4 * n, unsigned(o)));
    }
  }
}

TEST(StoredCodec, elements_of_any_size_and_byte_order) {
  const Hdf5Scope scope;
  const ListSetup all = in_order({shuffle, deflate, fletcher});
  const Hdf5Id text(H5Tcopy(H5T_C_S1));
  H5Tset_size(text.get(), 13);
  const Hdf5Id pair(H5Tcreate(H5T_COMPOUND, 11));
  H5Tinsert(pair.get(), "a", 0, H5T_STD_I16BE);
  H5Tinsert(pair.get(), "b", 3, H5T_IEEE_F64LE);
  for (const hid_t type :
       {hid_t(H5T_STD_U8LE), hid_t(H5T_STD_I16BE), hid_t(H5T_IEEE_F64BE), text.get(), pair.get()}) {
    StockDataset stock(type, {7, 33}, all);
    SCOPED_TRACE(stock.schema().element_bytes);
    Bytes values(stock.n_bytes());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::byte(i / 5 % 7);
    if (type == pair.get()) {
      // HDF5 also writes the bytes between members, because it converts nothing.
      std::fill(values.begin(), values.end(), std::byte{3});
    }
    expect_same(stock, values);
  }
}

TEST(StoredCodec, filters_that_were_skipped_are_not_undone) {
  const Hdf5Scope scope;
  StockDataset stock(H5T_STD_I32LE, {500}, in_order({shuffle, deflate, fletcher}));
  Result<std::unique_ptr<Codec>> codec = stock.codec();
  ASSERT_TRUE(codec.ok());
  const Bytes values = counted(500);
  // All filters skipped; then all except the checksum.
  Bytes decoded(values.size());
  ASSERT_TRUE((*codec)->decode_into(values, 7, decoded).ok());
  EXPECT_EQ(decoded, values);
  Bytes summed = values;
  summed.resize(values.size() + 4);
  store_fletcher32(fletcher32(values), summed.data() + values.size());
  EXPECT_EQ(stock.read(summed, 3), values);
  ASSERT_TRUE((*codec)->decode_into(summed, 3, decoded).ok());
  EXPECT_EQ(decoded, values);
}

/// Optional or not: the chunk must be readable by readers that ignore the filter mask.
class DeflateOfNoise : public ::testing::TestWithParam<unsigned> {};

TEST_P(DeflateOfNoise, grows_and_is_read_by_hdf5) {
  const Hdf5Scope scope;
  StockDataset stock(H5T_STD_I32LE, {500}, [](hid_t list) {
    const unsigned level = 6;
    H5Pset_filter(list, H5Z_FILTER_DEFLATE, GetParam(), 1, &level);
  });
  Result<std::unique_ptr<Codec>> codec = stock.codec();
  ASSERT_TRUE(codec.ok());
  const Bytes noise = random_bytes(2000, 6);
  Result<EncodedBytes> encoded = (*codec)->encode(Buffer::copy_of(noise));
  ASSERT_TRUE(encoded.ok()) << encoded.status().message();
  EXPECT_EQ(encoded->filter_mask, 0U);
  EXPECT_GT(encoded->buffer.n_bytes(), 2000U);
  EXPECT_LT(encoded->buffer.n_bytes(), 2016U);
  EXPECT_EQ(stock.read(std::as_const(encoded->buffer).bytes(), 0), noise);
}

INSTANTIATE_TEST_SUITE_P(Flags, DeflateOfNoise,
                         ::testing::Values(H5Z_FLAG_MANDATORY, H5Z_FLAG_OPTIONAL));

TEST(StoredCodec, damaged_chunks_are_refused) {
  const Hdf5Scope scope;
  StockDataset stock(H5T_STD_I32LE, {500}, in_order({shuffle, deflate, fletcher}));
  Result<std::unique_ptr<Codec>> codec = stock.codec();
  ASSERT_TRUE(codec.ok());
  const Bytes values = counted(500);
  const auto [stored, mask] = stock.store(values);
  Bytes decoded(values.size());
  const auto refused = [&](std::span<const std::byte> bytes, std::uint32_t with_mask) {
    return (*codec)->decode_into(bytes, with_mask, decoded).code() == Code::codec_failed;
  };
  for (std::size_t i = 0; i < stored.size(); i += 7) {
    Bytes damaged = stored;
    damaged[i] ^= std::byte{16};
    EXPECT_TRUE(refused(damaged, mask)) << "byte " << i;
    // The checksum is skipped: deflate's own checksum finds the damage, except in the skipped
    // checksum's bytes.
    EXPECT_EQ(refused(damaged, mask | 4U), i + 4 < stored.size()) << "byte " << i;
  }
  for (const std::size_t n : {std::size_t{0}, std::size_t{3}, stored.size() - 1}) {
    EXPECT_TRUE(refused(std::span(stored).first(n), mask)) << n << " bytes";
  }
  EXPECT_TRUE(refused(std::span(values).first(1999), 7));
  // Streams of a longer and a shorter chunk.
  for (const std::size_t n : {std::size_t{499}, std::size_t{501}}) {
    StockDataset other(H5T_STD_I32LE, {n}, in_order({shuffle, deflate, fletcher}));
    EXPECT_TRUE(refused(other.store(counted(n)).first, 0)) << n;
  }
  Bytes too_small(values.size() - 1);
  EXPECT_EQ((*codec)->decode_into(stored, mask, too_small).code(), Code::codec_failed);
}

TEST(StoredCodec, checksum_of_old_versions_is_accepted) {
  Bytes values = counted(100);
  const std::uint32_t sum = fletcher32(values);
  Bytes summed = values;
  summed.resize(values.size() + 4);
  store_fletcher32((sum & 0xFF00FFU) << 8 | (sum >> 8 & 0xFF00FFU), summed.data() + values.size());
  EXPECT_TRUE(ends_in_fletcher32(summed));
  store_fletcher32(sum + 1, summed.data() + values.size());
  EXPECT_FALSE(ends_in_fletcher32(summed));
}

TEST(StoredCodec, checksum_equals_hdf5s_for_every_length) {
  const Hdf5Scope scope;
  for (const std::size_t n : {1, 2, 3, 359, 360, 361, 719, 721, 2047, 2048, 2049, 5001}) {
    for (const int kind : {0, 1, 2}) {
      StockDataset stock(H5T_STD_U8LE, {n}, fletcher);
      const Bytes values = kind == 0   ? Bytes(n, std::byte{0})
                           : kind == 1 ? Bytes(n, std::byte{0xFF})
                                       : random_bytes(n, unsigned(n));
      const Bytes stored = stock.store(values).first;
      Bytes ours = values;
      ours.resize(n + 4);
      store_fletcher32(fletcher32(values), ours.data() + n);
      EXPECT_EQ(ours, stored) << n << " bytes, kind " << kind;
    }
  }
}

TEST(StoredCodec, plugins_alone_and_in_a_row) {
  const Hdf5Scope scope;
  const auto filter = [](const std::string& name, bool with_shuffle, bool with_sum) {
    CodecRequest request;
    request.name = name;
    request.dtype = DType::i32;
    request.chunk_shape = {1000};
    request.settings = {{"shuffle", with_shuffle ? "on" : "off"}};
    if (name == "bitshuffle") request.settings.clear();
    Result<std::unique_ptr<Codec>> codec = make_codec(request, "");
    std::vector<FilterSpec> filters;
    if (codec.ok()) filters = (*codec)->filters();
    if (with_sum) filters.push_back({kFletcher32FilterId, 0, {}, {}, "fletcher32"});
    return filters;
  };
  std::vector<std::vector<FilterSpec>> pipelines = {
      filter("zstd", false, false), filter("zstd", true, true), filter("lz4", false, true),
      filter("bzip2", true, false), filter("bitshuffle", false, false)};
  std::vector<FilterSpec> row = filter("lz4", true, true);
  for (const FilterSpec& more : filter("zstd", false, true)) row.push_back(more);
  pipelines.push_back(row);
  row.push_back({kDeflateFilterId, 1, {5}, {5}, "deflate"});
  pipelines.push_back(row);
  for (const std::vector<FilterSpec>& filters : pipelines) {
    if (filters.empty() || filters.back().filter_id == 0) GTEST_SKIP() << "no plug-ins here";
    StockDataset stock(H5T_STD_I32LE, {1000}, [&](hid_t list) {
      for (const FilterSpec& spec : filters) {
        H5Pset_filter(list, H5Z_filter_t(spec.filter_id), spec.flags, spec.client_data.size(),
                      spec.client_data.data());
      }
    });
    SCOPED_TRACE("first filter " + std::to_string(filters.front().filter_id) + " of " +
                 std::to_string(filters.size()));
    expect_same(stock, counted(1000));
    expect_same(stock, random_bytes(4000, 9));
  }
}

TEST(StoredCodec, a_lossy_filter_is_decoded_but_never_loses_again) {
  const Hdf5Scope scope;
  for (const std::string name : {"zfp", "sz3"}) {
    CodecRequest request;
    request.name = name;
    request.dtype = DType::f32;
    request.chunk_shape = {64, 64};
    request.absolute_bound = 1e-2;
    Result<std::unique_ptr<Codec>> lossy = make_codec(request, "");
    if (!lossy.ok()) GTEST_SKIP() << lossy.status().message();
    std::vector<float> values(64 * 64);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(float(i) * 0.37F);
    Result<EncodedBytes> stored = (*lossy)->encode(Buffer::copy_of(bytes_of(values)));
    ASSERT_TRUE(stored.ok());
    StockDataset stock(H5T_IEEE_F32LE, {64, 64}, in_order({}));
    StoredForm form = stock.schema().storage;
    form.filters = (*lossy)->filters();
    Result<std::unique_ptr<Codec>> codec = make_stored_codec(stock.schema(), form, "");
    ASSERT_TRUE(codec.ok()) << codec.status().message();
    EXPECT_TRUE((*codec)->lossy());
    Bytes decoded(stock.n_bytes());
    ASSERT_TRUE(
        (*codec)
            ->decode_into(std::as_const(stored->buffer).bytes(), stored->filter_mask, decoded)
            .ok());
    Result<Buffer> expected = (*lossy)->decode(std::move(*stored));
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ(std::memcmp(expected->data(), decoded.data(), decoded.size()), 0);
    // A loss of full precision; SZ3 is not even tried, because it never returns for a NaN.
    values[0] = NAN;
    Result<EncodedBytes> again = (*codec)->encode(Buffer::copy_of(bytes_of(values)));
    ASSERT_FALSE(again.ok());
    EXPECT_NE(again.status().message().find("choose another codec"), std::string::npos);
  }
}

TEST(StoredCodec, filters_that_only_hdf5_has) {
  const Hdf5Scope scope;
  const Hdf5Id twelve_bits(H5Tcopy(H5T_STD_U16LE));
  H5Tset_precision(twelve_bits.get(), 12);
  StockDataset nbit(twelve_bits.get(), {640}, [](hid_t list) { H5Pset_nbit(list); });
  std::vector<std::uint16_t> small(640);
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = std::uint16_t(i * 7 % 4096);
  expect_same(nbit, bytes_of(small));

  const ListSetup scale_offset = [](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_INT, 0); };
  StockDataset offset(H5T_STD_I32LE, {500}, scale_offset);
  expect_same(offset, counted(500));
  StockDataset no_fill(H5T_STD_I32LE, {500}, [](hid_t list) {
    H5Pset_scaleoffset(list, H5Z_SO_INT, 0);
    H5Pset_fill_value(list, H5T_STD_I32LE, nullptr);
    H5Pset_deflate(list, 4);
    H5Pset_fletcher32(list);
  });
  expect_same(no_fill, counted(500));

  unsigned config = 0;
  H5Zget_filter_info(H5Z_FILTER_SZIP, &config);
  if ((config & H5Z_FILTER_CONFIG_ENCODE_ENABLED) != 0) {
    StockDataset szip(H5T_IEEE_F32LE, {40, 64}, [](hid_t list) {
      H5Pset_szip(list, H5_SZIP_NN_OPTION_MASK, 16);
      H5Pset_fletcher32(list);
    });
    expect_same(szip, counted(40 * 64));
    expect_same(szip, random_bytes(40 * 64 * 4, 3));
    // Stored without szip, as HDF5 does if szip saves nothing.
    Result<std::unique_ptr<Codec>> codec = szip.codec();
    ASSERT_TRUE(codec.ok());
    const Bytes noise = random_bytes(40 * 64 * 4, 4);
    Bytes decoded(noise.size());
    ASSERT_TRUE((*codec)->decode_into(noise, 3, decoded).ok());
    EXPECT_EQ(decoded, noise);
    EXPECT_EQ((*codec)->decode_into(std::span(noise).first(77), 3, decoded).code(),
              Code::codec_failed);
    // Alternately the raw bytes with only their checksum, and a complete chunk: the mask of one
    // must not affect the other.
    const auto [stored, mask] = szip.store(counted(40 * 64));
    Bytes summed = noise;
    summed.resize(noise.size() + 4);
    store_fletcher32(fletcher32(noise), summed.data() + noise.size());
    for (int turn = 0; turn < 3; ++turn) {
      ASSERT_TRUE((*codec)->decode_into(summed, 1, decoded).ok());
      EXPECT_EQ(decoded, noise);
      ASSERT_TRUE((*codec)->decode_into(stored, mask, decoded).ok());
      EXPECT_EQ(decoded, counted(40 * 64));
    }
    EXPECT_EQ((*codec)->decode_into(std::span(noise).first(77), 0, decoded).code(),
              Code::codec_failed);
  }
}

TEST(StoredCodec, lossy_scale_offset_does_not_lose_again) {
  const Hdf5Scope scope;
  StockDataset stock(H5T_IEEE_F32LE, {100},
                     [](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_FLOAT_DSCALE, 1); });
  ASSERT_TRUE(stock.valid());
  Result<std::unique_ptr<Codec>> codec = stock.codec();
  ASSERT_TRUE(codec.ok()) << codec.status().message();
  std::vector<float> values(100);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i) * 1.2345F;
  const Result<EncodedBytes> lost = (*codec)->encode(Buffer::copy_of(bytes_of(values)));
  EXPECT_EQ(lost.status().code(), Code::codec_failed);
}

TEST(StoredCodec, filters_that_nobody_has_are_named) {
  const Hdf5Scope scope;
  StockDataset stock(H5T_STD_I32LE, {10}, in_order({}));
  StoredForm form = stock.schema().storage;
  form.filters = {{511, 0, {}, {1}, "nobody's"}};
  const Result<std::unique_ptr<Codec>> codec = make_stored_codec(stock.schema(), form, "");
  EXPECT_EQ(codec.status().code(), Code::plugin_missing);
  EXPECT_NE(codec.status().message().find("511"), std::string::npos);
  EXPECT_NE(codec.status().message().find("/d"), std::string::npos);
  StoredDataset pointers = stock.schema();
  pointers.by_value = false;
  EXPECT_EQ(make_stored_codec(pointers, stock.schema().storage, "").status().code(),
            Code::unsupported);
}

TEST(StoredCodec, threads_share_codecs) {
  std::unique_ptr<Codec> fast;
  std::unique_ptr<Codec> slow;
  {
    const Hdf5Scope scope;
    StockDataset ours(H5T_STD_I32LE, {3000}, in_order({shuffle, deflate, fletcher}));
    StockDataset hdf5s(H5T_STD_I32LE, {3000},
                       [](hid_t list) { H5Pset_scaleoffset(list, H5Z_SO_INT, 0); });
    fast = std::move(ours.codec().value());
    slow = std::move(hdf5s.codec().value());
  }
  const auto turn = [&](int seed) {
    Bytes values = counted(3000);
    values[0] = std::byte(seed);
    for (int k = 0; k < 20; ++k) {
      for (const Codec* codec : {fast.get(), slow.get()}) {
        Result<EncodedBytes> encoded = codec->encode(Buffer::copy_of(values));
        ASSERT_TRUE(encoded.ok());
        Bytes decoded(values.size());
        ASSERT_TRUE(
            codec
                ->decode_into(std::as_const(encoded->buffer).bytes(), encoded->filter_mask, decoded)
                .ok());
        ASSERT_EQ(decoded, values);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(turn, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(StoredCodec, deflate_filters_stand_as_hdf5_writes_them) {
  const Hdf5Scope scope;
  StockDataset stock(H5T_IEEE_F64LE, {10}, in_order({shuffle, deflate}));
  const auto filters_of = [](const char* shuffle, DType dtype) {
    const CodecRequest request{"deflate", {{"level", "6"}, {"shuffle", shuffle}}, dtype, {10}};
    return (*make_codec(request))->filters();
  };
  const std::vector<FilterSpec> ours = filters_of("on", DType::f64);
  const std::vector<FilterSpec>& hdf5s = stock.schema().storage.filters;
  ASSERT_EQ(ours.size(), hdf5s.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].filter_id, hdf5s[i].filter_id);
    EXPECT_EQ(ours[i].flags, hdf5s[i].flags);
    EXPECT_EQ(ours[i].final_client_data, hdf5s[i].final_client_data);
    EXPECT_EQ(ours[i].name, hdf5s[i].name);
  }
  EXPECT_EQ(filters_of("on", DType::u8).size(), 1U);
  EXPECT_EQ(filters_of("off", DType::f64).size(), 1U);
}

}  // namespace
}  // namespace tailrace
