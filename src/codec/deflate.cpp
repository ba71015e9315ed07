// deflate: byte shuffle and zlib streams, the pipeline that every HDF5 installation can read.
//
// Two engines write the same format. zlib produces the same bytes as HDF5's filter. libdeflate, the
// default, is two to three times as fast at the same level and ratio (lab/bench/results/README.md
// has the numbers); it skips bytes in which it would find no matches (zlib_stream.hpp). Readers
// see no difference. Decoding always uses libdeflate, which also checks the Adler-32 sum.

#include "codec/deflate.hpp"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "codec/registry.hpp"
#include "codec/zlib_stream.hpp"
#include "trz/base/byte_shuffle.hpp"
#include "trz/base/kept_by_thread.hpp"

namespace tailrace {

namespace {

enum class Engine : std::size_t { libdeflate, zlib };

struct CompressorDeleter {
  void operator()(libdeflate_compressor* compressor) const {
    libdeflate_free_compressor(compressor);
  }
};
struct DecompressorDeleter {
  void operator()(libdeflate_decompressor* decompressor) const {
    libdeflate_free_decompressor(decompressor);
  }
};

/// This thread's compressor. One is cached: that of the most recent level (up to 9 MB at level 12,
/// under 1 MB up to level 9). Making one costs far less than compressing a chunk.
libdeflate_compressor* thread_compressor(int level) {
  struct Last {
    std::unique_ptr<libdeflate_compressor, CompressorDeleter> compressor;
    int level = -1;
  };
  Last& last = kept_by_thread<Last>();
  if (!last.compressor || last.level != level) {
    last.compressor.reset(libdeflate_alloc_compressor(level));
    last.level = level;
  }
  return last.compressor.get();
}

libdeflate_decompressor* thread_decompressor() {
  struct Last {
    std::unique_ptr<libdeflate_decompressor, DecompressorDeleter> decompressor{
        libdeflate_alloc_decompressor()};
  };
  return kept_by_thread<Last>().decompressor.get();
}

FilterSpec deflate_spec(int level) {
  const std::vector<std::uint32_t> words = {static_cast<std::uint32_t>(level)};
  // Optional, like in H5Pset_deflate.
  return {kDeflateFilterId, kOptionalFilter, words, words, "deflate"};
}

class DeflateStage final : public OwnStage {
 public:
  DeflateStage(FilterSpec spec, int level, Engine engine)
      : OwnStage(std::move(spec)), level_(level), engine_(engine) {}

  /// The libdeflate engine never fails: if deflate saves nothing, it writes the bytes as stored
  /// blocks of a zlib stream. Some readers do not check if a chunk skips a filter.
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return engine_ == Engine::zlib ? hdf5_bytes_max(n_bytes) : stored_bytes_max(n_bytes);
  }
  std::uint64_t stored_bytes_max(std::uint64_t n_bytes) const override {
    return std::max(libdeflate_zlib_compress_bound(nullptr, n_bytes), hdf5_bytes_max(n_bytes));
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    // Measured: libdeflate 1.14 takes 202,759 bytes up to level 1, 668,295 from 2 to 9; zlib 268
    // KB.
    const bool small = engine_ == Engine::zlib || level_ <= 1;
    const std::uint64_t compressor_bytes = small ? 288U << 10 : 768U << 10;
    const std::uint64_t parts_bytes = engine_ == Engine::zlib ? 0 : zlib_parts_bytes(n_bytes);
    return encoded_bytes_max(n_bytes) + compressor_bytes + parts_bytes;
  }

  Result<std::size_t> encode_into(std::span<const std::byte> values,
                                  std::span<std::byte> to) const override {
    std::size_t n_packed = 0;
    if (engine_ == Engine::libdeflate) {
      libdeflate_compressor* compressor = thread_compressor(level_);
      if (compressor == nullptr) return no_memory(0);
      n_packed = level_ == 0 ? libdeflate_zlib_compress(compressor, values.data(), values.size(),
                                                        to.data(), to.size())
                             : encode_zlib_stream(*compressor, level_, values, to);
    } else {
      uLongf n_written = to.size();
      const int rc =
          compress2(reinterpret_cast<Bytef*>(to.data()), &n_written,
                    reinterpret_cast<const Bytef*>(values.data()), values.size(), level_);
      if (rc == Z_MEM_ERROR) return no_memory(values.size());
      if (rc == Z_OK) n_packed = n_written;
    }
    if (n_packed == 0) return failed("does not shrink these bytes");
    return n_packed;
  }

  Result<std::size_t> decode_into(std::span<const std::byte> encoded,
                                  std::span<std::byte> to) const override {
    libdeflate_decompressor* decompressor = thread_decompressor();
    if (decompressor == nullptr) return no_memory(to.size());
    std::size_t n_read = 0;
    std::size_t n_plain = 0;
    if (libdeflate_zlib_decompress_ex(decompressor, encoded.data(), encoded.size(), to.data(),
                                      to.size(), &n_read, &n_plain) != LIBDEFLATE_SUCCESS) {
      return failed("the stream is damaged, or decodes to more than " + std::to_string(to.size()) +
                    " bytes");
    }
    return n_plain;
  }

 private:
  /// HDF5's limit (H5Z_DEFLATE_SIZE_ADJUST): beyond it HDF5's filter fails, and the chunk is stored
  /// without the filter.
  static std::uint64_t hdf5_bytes_max(std::uint64_t n_bytes) {
    return static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(n_bytes) * static_cast<double>(1.001F)) + 12);
  }

  int level_;
  Engine engine_;
};

class Fletcher32Stage final : public OwnStage {
 public:
  using OwnStage::OwnStage;
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return n_bytes + kFletcher32Bytes;
  }
  Result<std::size_t> encode_into(std::span<const std::byte> values,
                                  std::span<std::byte> to) const override {
    std::copy(values.begin(), values.end(), to.begin());
    store_fletcher32(fletcher32(values), to.data() + values.size());
    return values.size() + kFletcher32Bytes;
  }
  Result<std::size_t> decode_into(std::span<const std::byte> encoded,
                                  std::span<std::byte> to) const override {
    if (!ends_in_fletcher32(encoded)) {
      return failed("the checksum does not match the chunk's bytes");
    }
    const auto values = encoded.first(encoded.size() - kFletcher32Bytes);
    if (values.size() > to.size()) {
      return failed("expected at most " + std::to_string(to.size()) + " bytes, got " +
                    std::to_string(values.size()));
    }
    std::copy(values.begin(), values.end(), to.begin());
    return values.size();
  }
};

}  // namespace

std::vector<std::unique_ptr<FilterStage>> make_deflate_stages(CodecSettings& settings,
                                                              const CodecRequest& request) {
  const std::size_t element_bytes =
      request.element_bytes > 0 ? request.element_bytes : dtype_bytes(request.dtype);
  const int level = static_cast<int>(settings.integer("level", 0, 9, 4));
  const bool shuffle = settings.flag("shuffle", true);
  const auto engine = static_cast<Engine>(settings.choice("engine", {"libdeflate", "zlib"}, 0));
  std::vector<std::unique_ptr<FilterStage>> stages;
  if (shuffle && element_bytes > 1) stages.push_back(make_shuffle_stage(element_bytes));
  stages.push_back(std::make_unique<DeflateStage>(deflate_spec(level), level, engine));
  if (settings.flag("checksum", false)) {
    // Mandatory, like in H5Pset_fletcher32.
    stages.push_back(std::make_unique<Fletcher32Stage>(
        FilterSpec{kFletcher32FilterId, 0, {}, {}, "fletcher32"}));
  }
  return stages;
}

std::vector<std::pair<std::string, std::string>> deflate_settings_of(
    const std::vector<FilterSpec>& filters) {
  std::vector<std::pair<std::string, std::string>> settings = {{"shuffle", "off"}};
  for (const FilterSpec& filter : filters) {
    if (filter.filter_id == kShuffleFilterId) settings.front().second = "on";
    if (filter.filter_id == kFletcher32FilterId) settings.emplace_back("checksum", "on");
    const auto& words =
        filter.final_client_data.empty() ? filter.client_data : filter.final_client_data;
    if (filter.filter_id == kDeflateFilterId && words.size() == 1) {
      settings.emplace_back("level", std::to_string(words[0]));
    }
  }
  return settings;
}

Result<std::unique_ptr<Codec>> make_deflate_codec(const CodecRequest& request, const std::string&) {
  CodecSettings settings(request);
  std::vector<std::unique_ptr<FilterStage>> stages = make_deflate_stages(settings, request);
  TAILRACE_TRY(settings.finish());
  return make_pipeline_codec({.name = "deflate"}, request, std::move(stages));
}

/// Stage of a stored deflate filter. For encoding, libdeflate's levels replace zlib's. At level 6
/// the sizes are within 6 % of zlib's on the worst column tried, and 4 % below on real ones
/// (docs/concat.md). The time is a fifth to a half of zlib's.
StoredStage stored_deflate_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t) {
  constexpr std::uint32_t level_max = 9;
  const auto& words = stored.final_client_data;
  const auto level = static_cast<int>(words.empty() ? 6 : std::min(words.front(), level_max));
  return std::unique_ptr<FilterStage>(
      std::make_unique<DeflateStage>(stored, level, Engine::libdeflate));
}

StoredStage stored_fletcher32_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t) {
  return std::unique_ptr<FilterStage>(std::make_unique<Fletcher32Stage>(stored));
}

// --- The sums, block by block: in a block the second sum is a weighted sum of the words.

namespace {

/// Reduce modulo 65535, but never a nonzero sum to 0, like end-around carries.
std::uint64_t fold(std::uint64_t sum) {
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

std::uint32_t byte_at(std::span<const std::byte> bytes, std::size_t index) {
  return std::to_integer<std::uint32_t>(bytes[index]);
}

/// Swap the bytes of each 16-bit half: the checksum for words of the other byte order.
std::uint32_t swap_halves(std::uint32_t sum) {
  return (sum & 0x00FF00FFU) << 8 | (sum >> 8 & 0x00FF00FFU);
}

}  // namespace

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  // The first sum grows by the sum of w in a block of n words w. The second grows by n times the
  // first and by the sum of (n - i) w[i]. 1024 words keep that below 2^36.
  constexpr std::size_t words_per_block = 1024;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::size_t at = 0;
  for (std::size_t n_left = bytes.size() / 2; n_left > 0;) {
    const std::size_t n = std::min(n_left, words_per_block);
    std::uint64_t plain = 0;
    std::uint64_t weighted = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t word = byte_at(bytes, at + 2 * i) << 8 | byte_at(bytes, at + 2 * i + 1);
      plain += word;
      weighted += (n - i) * word;
    }
    second = fold(second + n * first + weighted);
    first = fold(first + plain);
    at += 2 * n;
    n_left -= n;
  }
  if (bytes.size() % 2 != 0) {
    first = fold(first + (byte_at(bytes, at) << 8));
    second = fold(second + first);
  }
  return static_cast<std::uint32_t>(second << 16 | first);
}

void store_fletcher32(std::uint32_t sum, std::byte* to) {
  for (std::size_t i = 0; i < kFletcher32Bytes; ++i) to[i] = std::byte(sum >> 8 * i & 0xFF);
}

bool ends_in_fletcher32(std::span<const std::byte> bytes) {
  if (bytes.size() < kFletcher32Bytes) return false;
  const std::size_t n_summed = bytes.size() - kFletcher32Bytes;
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kFletcher32Bytes; ++i) {
    stored |= byte_at(bytes, n_summed + i) << 8 * i;
  }
  const std::uint32_t sum = fletcher32(bytes.first(n_summed));
  return stored == sum || stored == swap_halves(sum);
}

}  // namespace tailrace
