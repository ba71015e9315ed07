// Fuzzer: arbitrary client data and bytes through the HDF5 filter, in both directions.
//
// The input: one byte of options, the number of client words, the words, and the block. Skips
// chunks whose client data request much memory, because HDF5 checks the size before it calls a
// filter.

#include <cstdlib>
#include <cstring>
#include <vector>

#include "fuzz/fuzz_support.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "trz/chunk_header.hpp"
#include "trz/client_data.hpp"

using namespace tailrace;

namespace {

constexpr std::uint64_t kChunkBytesMax = 1 << 18;
constexpr unsigned kReverse = 0x0100;  ///< H5Z_FLAG_REVERSE

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  fuzz::Input in(data, n_bytes);
  const unsigned options = in.number<std::uint8_t>();
  std::vector<unsigned> words(in.number<std::uint8_t>());
  for (unsigned& word : words) word = in.number<std::uint32_t>();
  const Result<trz::ClientData> parsed = trz::read_client_words(words);
  if (parsed.ok() && parsed->chunk && parsed->chunk->n_bytes() > kChunkBytesMax) return 0;
  const bool reverse = (options & 1) != 0;

  std::vector<std::uint8_t> bytes(in.rest().begin(), in.rest().end());
  if (!reverse && parsed.ok() && parsed->chunk) {
    bytes.resize(static_cast<std::size_t>(parsed->chunk->n_bytes()));
  }
  if (reverse && (options & 2) == 0 && bytes.size() >= trz::kChecksummedFrom) {
    fuzz::put_trz_magic(reinterpret_cast<std::byte*>(bytes.data()));
    trz::seal(bytes);
  }
  std::size_t capacity = bytes.size();
  void* block = std::malloc(capacity == 0 ? 1 : capacity);
  if (capacity != 0) std::memcpy(block, bytes.data(), capacity);
  const std::size_t n_result = hdf5::trz_filter_class().filter(
      reverse ? kReverse : 0, words.size(), words.data(), bytes.size(), &capacity, &block);
  if (n_result != 0) {
    FUZZ_CHECK(parsed.ok() && parsed->chunk);
    FUZZ_CHECK(n_result <= capacity);
    // Read every byte, so that the sanitizer checks that it exists.
    std::uint64_t digest = 0;
    for (std::size_t i = 0; i < n_result; ++i) digest += static_cast<std::uint8_t*>(block)[i];
    FUZZ_CHECK(digest < UINT64_MAX);
    if (reverse) FUZZ_CHECK(n_result == parsed->chunk->n_bytes());
  }
  std::free(block);
  return 0;
}
