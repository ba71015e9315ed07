// An HDF5 filter plug-in whose encoding takes a known time on any machine, because it sleeps.
// Filter 300 (HDF5 reserves 256 to 511 for tests); client data: microseconds per chunk.
//
// The filter removes the zeros at a chunk's end. Encoded chunk: the length, 8 bytes, then the rest.

#include <hdf5.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

std::size_t encode(std::size_t n_bytes, std::size_t* buffer_bytes, void** buffer) {
  auto* bytes = static_cast<char*>(*buffer);
  std::size_t kept = n_bytes;
  while (kept > 0 && bytes[kept - 1] == 0) --kept;
  const std::uint64_t length = n_bytes;
  void* encoded = std::malloc(sizeof length + kept);
  if (encoded == nullptr) return 0;
  std::memcpy(encoded, &length, sizeof length);
  std::memcpy(static_cast<char*>(encoded) + sizeof length, bytes, kept);
  std::free(*buffer);
  *buffer = encoded;
  *buffer_bytes = sizeof length + kept;
  return *buffer_bytes;
}

std::size_t decode(std::size_t n_bytes, std::size_t* buffer_bytes, void** buffer) {
  std::uint64_t length = 0;
  if (n_bytes < sizeof length) return 0;
  std::memcpy(&length, *buffer, sizeof length);
  const std::size_t kept = n_bytes - sizeof length;
  void* decoded = length < kept ? nullptr : std::calloc(length, 1);
  if (decoded == nullptr) return 0;
  std::memcpy(decoded, static_cast<char*>(*buffer) + sizeof length, kept);
  std::free(*buffer);
  *buffer = decoded;
  *buffer_bytes = length;
  return length;
}

std::size_t run(unsigned flags, std::size_t n_settings, const unsigned settings[],
                std::size_t n_bytes, std::size_t* buffer_bytes, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) != 0) return decode(n_bytes, buffer_bytes, buffer);
  if (n_settings > 0) usleep(settings[0]);
  return encode(n_bytes, buffer_bytes, buffer);
}

const H5Z_class2_t sleeping_filter = {
    H5Z_CLASS_T_VERS, 300,     1,  1, "sleeps, then takes the zeros from the end",
    nullptr,          nullptr, run};

}  // namespace

// The project hides all other symbols from other libraries; HDF5 looks up these two.
#pragma GCC visibility push(default)
extern "C" {
H5PL_type_t H5PLget_plugin_type() { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info() { return &sleeping_filter; }
}
#pragma GCC visibility pop
