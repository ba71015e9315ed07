// The callbacks of the xor filter.
//
// set_local appends to the client data what the encoder needs: bytes of an element and the chunk's
// extents (xor/xor_chunk.hpp). The filter accepts any type of fixed size, since it is lossless.
// Decoding needs only the chunk.

#include "hdf5_filter/xor_filter.hpp"

#include <array>
#include <string>
#include <vector>

#include "hdf5_filter/filter_support.hpp"
#include "hdf5_filter/hdf5_calls.hpp"
#include "xor/xor_chunk.hpp"

namespace tailrace::hdf5 {
namespace {

constexpr FilterSource kSource = {"xor_filter.cpp", "xor filter"};

Status complete_client_data(const Hdf5Calls& calls, hid_t creation_list, hid_t type) {
  if (!calls.complete()) {
    return kSource.refuse("cannot find the functions of the calling HDF5 library");
  }
  const auto id = static_cast<filter_t>(neighbour_xor::filter_id);
  unsigned flags = 0;
  unsigned config = 0;
  std::array<char, 8> name = {};
  // The words may already be complete, from another chunk: allow twice the maximum number.
  std::array<unsigned, 2 * (2 + kMaxRank)> words = {};
  std::size_t n_words = words.size();
  if (calls.get_filter_by_id(creation_list, id, &flags, &n_words, words.data(), name.size(),
                             name.data(), &config) < 0 ||
      n_words > words.size()) {
    return kSource.refuse("its client data cannot be read");
  }
  TAILRACE_TAKE(auto data, neighbour_xor::read_client_words({words.data(), n_words}));
  neighbour_xor::ChunkType chunk;
  chunk.dimension = data.dimension;
  chunk.element_bytes = calls.type_bytes(type);
  if (chunk.element_bytes == 0 || chunk.element_bytes > UINT32_MAX) {
    return kSource.refuse("the dataset's elements have " + std::to_string(chunk.element_bytes) +
                          " bytes, expected 1 to 2^32 - 1");
  }
  TAILRACE_TAKE(chunk.shape, chunk_shape_of(calls, creation_list, kSource));
  const std::vector<unsigned> all = neighbour_xor::client_words(chunk);
  if (calls.modify_filter(creation_list, id, flags, all.size(), all.data()) < 0) {
    return kSource.refuse("its client data cannot be stored");
  }
  return Status();
}

herr_t set_local(hid_t creation_list, hid_t type, hid_t) {
  const Hdf5Calls& calls = hdf5_calls_of(__builtin_return_address(0));
  const auto work = [&] { return complete_client_data(calls, creation_list, type); };
  return done(calls, calls.cannot_set_local, kSource, work) ? 0 : -1;
}

/// Encode or decode `n_given` bytes; sets `n_result` to the size of the result in `block`.
Status run_filter(const Hdf5Calls& calls, bool reverse, std::span<const unsigned> words,
                  std::size_t n_given, std::size_t* capacity, void** block, std::size_t& n_result) {
  TAILRACE_TAKE(neighbour_xor::ClientData data, neighbour_xor::read_client_words(words));
  if (!data.chunk) {
    return kSource.refuse("its client data lack the chunk's shape; set_local never ran");
  }
  const std::uint64_t n_values_bytes = n_elements(data.chunk->shape) * data.chunk->element_bytes;
  if (n_values_bytes > SIZE_MAX / 2) return kSource.no_memory(SIZE_MAX);
  const auto n_plain = static_cast<std::size_t>(n_values_bytes);
  const std::span<const std::byte> given(static_cast<const std::byte*>(*block), n_given);
  Block made(calls, reverse ? n_plain
                            : static_cast<std::size_t>(neighbour_xor::encoded_bytes_max(n_given)));
  if (!made.allocated()) return kSource.no_memory(n_plain);
  if (reverse) {
    TAILRACE_TRY(neighbour_xor::decode(given, made.bytes(), neighbour_xor::best_build()));
    n_result = n_plain;
  } else {
    TAILRACE_TAKE(n_result, neighbour_xor::encode(*data.chunk, given, made.bytes(),
                                                  neighbour_xor::best_build()));
  }
  made.replace(capacity, block);
  return Status();
}

std::size_t filter(unsigned flags, std::size_t n_words, const unsigned* words, std::size_t n_bytes,
                   std::size_t* capacity, void** block) {
  const Hdf5Calls& calls = hdf5_calls_of(__builtin_return_address(0));
  std::size_t n_result = 0;
  const bool reverse = (flags & kFlagReverse) != 0;
  const auto work = [&] {
    return run_filter(calls, reverse, {words, n_words}, n_bytes, capacity, block, n_result);
  };
  return done(calls, calls.cannot_filter, kSource, work) ? n_result : 0;
}

}  // namespace

const FilterClass& xor_filter_class() {
  static constexpr FilterClass filter_class = {kClassVersion,
                                               static_cast<filter_t>(neighbour_xor::filter_id),
                                               1,
                                               1,
                                               neighbour_xor::filter_name,
                                               nullptr,
                                               set_local,
                                               filter};
  return filter_class;
}

}  // namespace tailrace::hdf5
