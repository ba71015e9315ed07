// The C interface of the codec xor: checks arguments, converts Status to numbers and text.

#include "trz_xor.h"

#include <limits>
#include <span>
#include <string>

#include "hdf5_filter/c_result.hpp"
#include "trz/base/box.hpp"
#include "xor/xor_chunk.hpp"

namespace {

using namespace tailrace;

Status bad_argument(const std::string& why) {
  return Status(Code::invalid_argument, "xor: " + why);
}

Result<neighbour_xor::ChunkType> type_of(const xor_array* array, std::size_t n_bytes) {
  if (array == nullptr || array->extents == nullptr)
    return bad_argument("the array and its extents must not be NULL");
  if (array->element_bytes == 0) return bad_argument("element_bytes is 0, must be at least 1");
  if (array->dimension < 0 || array->dimension > 3) {
    return bad_argument("dimension " + std::to_string(array->dimension) + ", must be 0 to 3");
  }
  if (array->rank < 1 || array->rank > static_cast<int>(kMaxRank)) {
    return bad_argument("rank " + std::to_string(array->rank) + ", must be 1 to 32");
  }
  neighbour_xor::ChunkType type;
  type.element_bytes = array->element_bytes;
  type.dimension = array->dimension;
  type.shape.assign(array->extents, array->extents + array->rank);
  std::uint64_t left = n_bytes;
  for (const std::uint64_t extent : type.shape) {
    if (extent == 0 || left % extent != 0) left = 0;
    if (left > 0) left /= extent;
  }
  if (left != array->element_bytes) {
    return bad_argument("an array of shape " + shape_text(type.shape) + " with elements of " +
                        std::to_string(array->element_bytes) + " bytes does not have " +
                        std::to_string(n_bytes) + " bytes");
  }
  return type;
}

Result<std::int64_t> encode(const xor_array* array, std::span<const std::byte> values,
                            std::span<std::byte> encoded) {
  TAILRACE_TAKE(const neighbour_xor::ChunkType type, type_of(array, values.size()));
  if (encoded.size() < neighbour_xor::encoded_bytes_max(values.size())) {
    return bad_argument("the output has room for " + std::to_string(encoded.size()) +
                        " bytes, xor_encoded_bytes_max() returns " +
                        std::to_string(neighbour_xor::encoded_bytes_max(values.size())));
  }
  TAILRACE_TAKE(const std::size_t n_encoded,
                neighbour_xor::encode(type, values, encoded, neighbour_xor::best_build()));
  return static_cast<std::int64_t>(n_encoded);
}

}  // namespace

#define XOR_API __attribute__((visibility("default")))

extern "C" {

XOR_API uint32_t xor_filter_id(void) { return neighbour_xor::filter_id; }

XOR_API size_t xor_encoded_bytes_max(size_t n_bytes) {
  return static_cast<size_t>(neighbour_xor::encoded_bytes_max(n_bytes));
}

XOR_API int64_t xor_encode(const xor_array* array, const void* values, size_t n_bytes,
                           void* encoded, size_t capacity, xor_message* message) {
  return c_result("xor", message, [&] {
    return encode(array, {static_cast<const std::byte*>(values), n_bytes},
                  {static_cast<std::byte*>(encoded), capacity});
  });
}

XOR_API int64_t xor_decode(const void* encoded, size_t n_encoded, void* values, size_t n_bytes,
                           xor_message* message) {
  return c_result("xor", message, [&]() -> Result<std::int64_t> {
    TAILRACE_TRY(neighbour_xor::decode({static_cast<const std::byte*>(encoded), n_encoded},
                                       {static_cast<std::byte*>(values), n_bytes},
                                       neighbour_xor::best_build()));
    return std::int64_t{0};
  });
}

}  // extern "C"
