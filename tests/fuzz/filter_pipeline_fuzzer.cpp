// Fuzzer of the filter pipeline: any of our filters with any client data, in any order, as a
// dataset's header may have them. The chunk is either arbitrary bytes, or values that are encoded
// and then damaged in a few places. The latter reach deeper code.
//
// The input: bytes of an element, rank and extents, the filters (number, flags, client words), the
// filter mask, the method, and the block. Both ways to decode must give the same result.

#include <algorithm>
#include <cstring>
#include <vector>

#include "codec/deflate.hpp"
#include "core/filter_pipeline.hpp"
#include "fuzz/fuzz_support.hpp"
#include "hdf5/stored_codec.hpp"
#include "trz/client_data.hpp"
#include "xor/xor_chunk.hpp"

using namespace tailrace;

namespace {

constexpr std::uint64_t kChunkBytesMax = 1 << 14;
constexpr std::size_t kFiltersMax = 4;
/// codec_seeds.cpp relies on these positions.
constexpr std::uint32_t kFilters[] = {1, 2, 3, trz::filter_id, neighbour_xor::filter_id};

/// @returns true if HDF5 could have such a chunk, and the chunk is small.
bool take_form(fuzz::Input& in, StoredDataset& dataset, StoredForm& form) {
  dataset.path = "/u";
  dataset.element_bytes = 1 + in.below(16);
  form.kind = StoredForm::Kind::chunked;
  std::uint64_t n_bytes = dataset.element_bytes;
  for (unsigned rank = 1 + in.below(4); rank > 0; --rank) {
    form.chunk_shape.push_back(in.number<std::uint16_t>());
    n_bytes *= form.chunk_shape.back();
    if (n_bytes == 0 || n_bytes > kChunkBytesMax) return false;
  }
  for (std::size_t n = in.below(kFiltersMax + 1); n > 0; --n) {
    FilterSpec filter;
    filter.filter_id = kFilters[in.below(std::size(kFilters))];
    filter.flags = in.below(2);
    filter.final_client_data.resize(in.number<std::uint8_t>());
    for (std::uint32_t& word : filter.final_client_data) word = in.number<std::uint32_t>();
    filter.name = "one";
    form.filters.push_back(std::move(filter));
  }
  return true;
}

/// The block itself, or the codec's encoding of it with up to three bytes changed. The block is
/// repeated until it fills the chunk.
Buffer chunk_of(fuzz::Input& in, const Codec& codec, std::uint64_t n_bytes, std::uint32_t& mask) {
  const unsigned way = in.number<std::uint8_t>();
  if ((way & 1) == 0) return Buffer::copy_of(std::as_bytes(in.rest()));
  struct Damage {
    std::uint16_t at;
    std::uint8_t change;
  } damages[3];
  for (Damage& damage : damages) {
    damage.at = in.number<std::uint16_t>();
    damage.change = in.number<std::uint8_t>();
  }
  Buffer values(n_bytes);
  std::memset(values.data(), 0, n_bytes);
  const std::size_t n_given = in.rest().size();
  for (std::size_t at = 0; n_given > 0 && at < n_bytes; at += n_given) {
    std::memcpy(values.data() + at, in.rest().data(), std::min<std::size_t>(n_given, n_bytes - at));
  }
  const Buffer original = Buffer::copy_of(std::as_const(values).bytes());
  Result<EncodedBytes> encoded = codec.encode(std::move(values));
  if (!encoded.ok()) return Buffer::copy_of(std::as_bytes(in.rest()));
  mask = encoded->filter_mask;
  std::span<std::byte> bytes = encoded->buffer.bytes();
  if ((way & 2) != 0) {  // Undamaged: a lossless codec must return the values.
    Result<Buffer> again = codec.decode({Buffer::copy_of(bytes), mask});
    FUZZ_CHECK(again.ok());
    FUZZ_CHECK(codec.lossy() ||
               std::memcmp(again->data(), std::as_const(original).data(), n_bytes) == 0);
  }
  for (const Damage& damage : damages) {
    if (damage.at < bytes.size()) bytes[damage.at] ^= std::byte{damage.change};
  }
  return std::move(encoded->buffer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  static fuzz::Count count("decodings");
  fuzz::Input in(data, n_bytes);
  StoredDataset dataset;
  StoredForm form;
  if (!take_form(in, dataset, form)) return 0;
  std::uint32_t mask = in.number<std::uint8_t>();
  const Result<std::unique_ptr<Codec>> codec = make_stored_codec(dataset, form, "");
  if (!codec.ok()) return 0;
  const std::uint64_t chunk_bytes = n_elements(form.chunk_shape) * dataset.element_bytes;
  Buffer chunk = chunk_of(in, **codec, chunk_bytes, mask);
  static fuzz::Room room;
  const std::span<std::byte> values = room.filled(chunk_bytes, 0x5A);
  const Status into = (*codec)->decode_into(std::as_const(chunk).bytes(), mask, values);
  const Result<Buffer> apart = (*codec)->decode({std::move(chunk), mask});
  count.one_more();
  FUZZ_CHECK(into.ok() == apart.ok());
  if (!apart.ok()) return 0;
  FUZZ_CHECK(apart->n_bytes() == chunk_bytes);
  FUZZ_CHECK(std::memcmp(apart->data(), values.data(), chunk_bytes) == 0);
  return 0;
}
