// The trz filter as a WebAssembly side module that h5wasm's HDF5 loads as a plug-in. Decodes only.
//
// h5wasm is HDF5 compiled by emscripten. It loads plug-ins by dlopen() from its file system, like
// any HDF5, and resolves their functions by name among its exports. HDF5's own are among these, so
// this module needs no search like that of hdf5_calls.cpp. Encoding is left out: it is most of the
// codec, and HDF5 itself refuses to write with a filter class that has no encoder.

#include "hdf5_filter/filter_support.hpp"
#include "hdf5_filter/thread_workspace.hpp"
#include "trz/chunk_header.hpp"
#include "trz/client_data.hpp"
#include "trz/trz.hpp"

// HDF5 prescribes the names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
using tailrace::hdf5::herr_t;
using tailrace::hdf5::hid_t;
extern hid_t H5E_ERR_CLS_g;
extern hid_t H5E_PLINE_g;
extern hid_t H5E_CANTFILTER_g;
herr_t H5Epush2(hid_t, const char*, const char*, unsigned, hid_t, hid_t, hid_t, const char*, ...);
void* H5allocate_memory(std::size_t n_bytes, unsigned char clear);
herr_t H5free_memory(void* block);
__attribute__((visibility("default"))) int H5PLget_plugin_type(void);
__attribute__((visibility("default"))) const void* H5PLget_plugin_info(void);
}

namespace tailrace::hdf5 {
namespace {

constexpr FilterSource kSource = {"h5trz_wasm.cpp", "trz filter"};

Hdf5Calls calls_of_h5wasm() {
  Hdf5Calls calls;
  calls.push_error = H5Epush2;
  calls.allocate = H5allocate_memory;
  calls.release = H5free_memory;
  calls.error_class = &H5E_ERR_CLS_g;
  calls.pipeline_error = &H5E_PLINE_g;
  calls.cannot_filter = &H5E_CANTFILTER_g;
  return calls;
}

/// Decode the chunk in `block` and replace it by its values.
Status decode_block(const Hdf5Calls& calls, std::span<const unsigned> words, std::size_t n_given,
                    std::size_t* capacity, void** block, std::size_t& n_result) {
  static_assert(sizeof(unsigned) == sizeof(std::uint32_t));
  TAILRACE_TAKE(
      trz::ClientData data,
      trz::read_client_words({reinterpret_cast<const std::uint32_t*>(words.data()), words.size()}));
  if (!data.chunk) return kSource.refuse("its client data lack the chunk's shape");
  const std::uint64_t n_bytes = data.chunk->n_bytes();
  if (n_bytes / dtype_bytes(data.chunk->dtype) > trz::kChunkValuesMax) {
    return kSource.refuse("a chunk of " + std::to_string(n_bytes) +
                          " bytes; 32-bit memory allows at most " +
                          std::to_string(trz::kChunkValuesMax) + " values");
  }
  TAILRACE_TAKE(const auto* book, thread_book(data.request.book_bytes));
  const auto n_plain = static_cast<std::size_t>(n_bytes);
  Block made(calls, n_plain);
  if (!made.allocated()) return kSource.no_memory(n_plain);
  TAILRACE_TRY(trz::decode({static_cast<const std::byte*>(*block), n_given}, made.bytes(), book,
                           thread_workspace()));
  n_result = n_plain;
  made.replace(capacity, block);
  return Status();
}

std::size_t filter(unsigned flags, std::size_t n_words, const unsigned* words, std::size_t n_bytes,
                   std::size_t* capacity, void** block) {
  const Hdf5Calls calls = calls_of_h5wasm();
  std::size_t n_result = 0;
  const auto work = [&] {
    if ((flags & kFlagReverse) == 0) return kSource.refuse("this module can only decode");
    return decode_block(calls, {words, n_words}, n_bytes, capacity, block, n_result);
  };
  return done(calls, calls.cannot_filter, kSource, work) ? n_result : 0;
}

constexpr FilterClass kFilterClass = {
    kClassVersion, static_cast<filter_t>(trz::filter_id), 0, 1, trz::filter_name, nullptr, nullptr,
    filter};

}  // namespace
}  // namespace tailrace::hdf5

int H5PLget_plugin_type(void) { return tailrace::hdf5::kPluginTypeFilter; }
const void* H5PLget_plugin_info(void) { return &tailrace::hdf5::kFilterClass; }
// NOLINTEND(readability-identifier-naming)
