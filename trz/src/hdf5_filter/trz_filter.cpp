// The three callbacks of the trz filter.
//
// can_apply and set_local examine the dataset through the calling HDF5 (hdf5_calls.hpp) and report
// errors on its error stack. set_local completes the client data (trz/client_data.hpp). The filter
// callback needs no HDF5. It follows H5Zpublic.h on blocks: on success it frees and replaces the
// input, on failure it leaves the input unchanged and returns 0.

#include "hdf5_filter/trz_filter.hpp"

#include <array>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "hdf5_filter/filter_support.hpp"
#include "hdf5_filter/hdf5_calls.hpp"
#include "hdf5_filter/thread_workspace.hpp"
#include "trz/client_data.hpp"
#include "trz/trz.hpp"

namespace tailrace::hdf5 {
namespace {

constexpr FilterSource kSource = {"trz_filter.cpp", "trz filter"};

Status no_calls() {
  return kSource.refuse("cannot find the functions of the calling HDF5 library");
}

/// True if a floating-point type has the layout of IEEE's f32 or f64.
bool is_ieee(const Hdf5Calls& calls, hid_t type, std::size_t n_bytes) {
  std::size_t sign = 0;
  std::size_t exponent = 0;
  std::size_t n_exponent = 0;
  std::size_t mantissa = 0;
  std::size_t n_mantissa = 0;
  if (calls.float_fields(type, &sign, &exponent, &n_exponent, &mantissa, &n_mantissa) < 0) {
    return false;
  }
  const std::size_t bias = calls.float_bias(type);
  if (n_bytes == 4) {
    return sign == 31 && exponent == 23 && n_exponent == 8 && mantissa == 0 && n_mantissa == 23 &&
           bias == 127;
  }
  return n_bytes == 8 && sign == 63 && exponent == 52 && n_exponent == 11 && mantissa == 0 &&
         n_mantissa == 52 && bias == 1023;
}

Result<DType> dtype_of(const Hdf5Calls& calls, hid_t type) {
  const int type_class = calls.type_class(type);
  const std::size_t n_bytes = calls.type_bytes(type);
  if (type_class != type_integer && type_class != type_float) {
    return kSource.refuse("the dataset's type is neither an integer nor a floating-point number");
  }
  constexpr int native_order =
      std::endian::native == std::endian::little ? order_little : order_big;
  if (n_bytes > 1 && calls.type_order(type) != native_order) {
    return kSource.refuse(
        "the dataset's byte order is not this machine's; create it in native order");
  }
  if (type_class == type_float) {
    if (is_ieee(calls, type, n_bytes)) return n_bytes == 4 ? DType::f32 : DType::f64;
    return kSource.refuse("cannot encode floating-point numbers of " + std::to_string(8 * n_bytes) +
                          " bits in this format; expected IEEE numbers of 32 or 64 bits");
  }
  const auto integer = find_dtype(calls.type_sign(type) == sign_two ? 'i' : 'u', n_bytes);
  if (integer) return *integer;
  return kSource.refuse("cannot encode integers of " + std::to_string(n_bytes) + " bytes");
}

std::optional<double> fill_of(const Hdf5Calls& calls, hid_t creation_list, hid_t type,
                              DType dtype) {
  int state = fill_undefined;
  if (!is_floating(dtype) || calls.fill_value_defined(creation_list, &state) < 0 ||
      state != fill_user) {
    return std::nullopt;
  }
  double value = 0;
  if (dtype == DType::f64) {
    if (calls.get_fill_value(creation_list, type, &value) < 0) return std::nullopt;
  } else {
    float narrow = 0;
    if (calls.get_fill_value(creation_list, type, &narrow) < 0) return std::nullopt;
    value = static_cast<double>(narrow);
  }
  return trz::recorded_fill(dtype, value);
}

/// Dataset's filter entry: its flags, and the request in its client data.
struct FilterEntry {
  unsigned flags = 0;
  trz::FilterRequest request;
};

Result<FilterEntry> entry_of(const Hdf5Calls& calls, hid_t creation_list) {
  FilterEntry entry;
  const auto id = static_cast<filter_t>(trz::filter_id);
  // HDF5 returns the true number of words even if the buffer is too small: query twice.
  std::size_t n_words = 0;
  unsigned config = 0;
  std::array<char, 8> name = {};
  if (calls.get_filter_by_id(creation_list, id, &entry.flags, &n_words, nullptr, name.size(),
                             name.data(), &config) < 0) {
    return kSource.refuse("it is not in the dataset's creation list");
  }
  std::vector<unsigned> words(n_words);
  if (calls.get_filter_by_id(creation_list, id, &entry.flags, &n_words, words.data(), name.size(),
                             name.data(), &config) < 0) {
    return kSource.refuse("its client data cannot be read");
  }
  TAILRACE_TAKE(trz::ClientData data, trz::read_client_words(words));
  entry.request = std::move(data.request);
  return entry;
}

/// Collect the dataset's properties except its fill value; fails if the filter does not support it.
Result<trz::FilterChunk> chunk_of(const Hdf5Calls& calls, hid_t creation_list, hid_t type,
                                  const trz::FilterRequest& request) {
  trz::FilterChunk chunk;
  TAILRACE_TAKE(chunk.dtype, dtype_of(calls, type));
  if (request.kind == trz::BoundKind::pointwise && !is_floating(chunk.dtype)) {
    return kSource.refuse("a pw_rel bound is for floating-point numbers, and the dataset holds " +
                          std::string(dtype_name(chunk.dtype)));
  }
  TAILRACE_TAKE(chunk.shape, chunk_shape_of(calls, creation_list, kSource));
  return chunk;
}

Status check_dataset(const Hdf5Calls& calls, hid_t creation_list, hid_t type) {
  if (!calls.complete()) return no_calls();
  TAILRACE_TAKE(FilterEntry entry, entry_of(calls, creation_list));
  return chunk_of(calls, creation_list, type, entry.request).status();
}

Status complete_client_data(const Hdf5Calls& calls, hid_t creation_list, hid_t type) {
  if (!calls.complete()) return no_calls();
  TAILRACE_TAKE(FilterEntry entry, entry_of(calls, creation_list));
  TAILRACE_TAKE(trz::FilterChunk chunk, chunk_of(calls, creation_list, type, entry.request));
  // Not in chunk_of(): HDF5 1.10 crashes if can_apply asks for it on an opened dataset.
  chunk.fill_value = fill_of(calls, creation_list, type, chunk.dtype);
  const std::vector<unsigned> words = trz::client_words(entry.request, chunk);
  if (calls.modify_filter(creation_list, static_cast<filter_t>(trz::filter_id), entry.flags,
                          words.size(), words.data()) < 0) {
    return kSource.refuse("its client data cannot be stored");
  }
  return Status();
}

htri_t can_apply(hid_t creation_list, hid_t type, hid_t) {
  const Hdf5Calls& calls = hdf5_calls_of(__builtin_return_address(0));
  const auto work = [&] { return check_dataset(calls, creation_list, type); };
  return done(calls, calls.cannot_apply, kSource, work) ? 1 : 0;
}

herr_t set_local(hid_t creation_list, hid_t type, hid_t) {
  const Hdf5Calls& calls = hdf5_calls_of(__builtin_return_address(0));
  const auto work = [&] { return complete_client_data(calls, creation_list, type); };
  return done(calls, calls.cannot_set_local, kSource, work) ? 0 : -1;
}

/// Encode or decode `n_given` bytes; sets `n_result` to the size of the result in `block`.
Status run_filter(const Hdf5Calls& calls, bool reverse, std::span<const unsigned> words,
                  std::size_t n_given, std::size_t* capacity, void** block, std::size_t& n_result) {
  TAILRACE_TAKE(trz::ClientData data, trz::read_client_words(words));
  if (!data.chunk) {
    return kSource.refuse("its client data lack the chunk's shape; set_local never ran");
  }
  const std::uint64_t n_values_bytes = data.chunk->n_bytes();
  if (!reverse && n_given != n_values_bytes) {
    return kSource.refuse("got a chunk of " + std::to_string(n_given) +
                          " bytes, its client data expect " + std::to_string(n_values_bytes));
  }
  if (n_values_bytes > SIZE_MAX / 2) return kSource.no_memory(SIZE_MAX);
  TAILRACE_TAKE(const auto* book, thread_book(data.request.book_bytes));
  const auto n_plain = static_cast<std::size_t>(n_values_bytes);
  const std::span<const std::byte> given(static_cast<const std::byte*>(*block), n_given);
  Block made(calls, reverse ? n_plain : trz::encoded_bytes_max(n_plain));
  if (!made.allocated()) return kSource.no_memory(n_plain);
  if (reverse) {
    TAILRACE_TRY(trz::decode(given, made.bytes(), book, thread_workspace()));
    n_result = n_plain;
  } else {
    trz::ChunkType type;
    type.dtype = data.chunk->dtype;
    type.shape = data.chunk->shape;
    type.kind = data.request.kind;
    type.bound = data.request.bound;
    type.fill_value = data.chunk->fill_value;
    type.book = book;
    TAILRACE_TAKE(n_result, trz::encode(type, data.request.settings, given, made.bytes(),
                                        thread_workspace()));
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

const FilterClass& trz_filter_class() {
  static constexpr FilterClass filter_class = {kClassVersion,
                                               static_cast<filter_t>(trz::filter_id),
                                               1,
                                               1,
                                               trz::filter_name,
                                               can_apply,
                                               set_local,
                                               filter};
  return filter_class;
}

}  // namespace tailrace::hdf5
