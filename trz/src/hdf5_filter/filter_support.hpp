// Support for our HDF5 filters: errors on HDF5's stack, catching of exceptions, and blocks whose
// ownership moves between HDF5 and the filter.

#pragma once

#include <array>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>

#include "hdf5_filter/hdf5_calls.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace::hdf5 {

/// Origin of entries on the error stack.
struct FilterSource {
  const char* file;
  const char* name;

  Status refuse(const std::string& why) const {
    return Status(Code::unsupported, std::string(name) + ": " + why);
  }
  Status no_memory(std::size_t n_bytes) const {
    return Status(Code::out_of_memory,
                  std::string(name) + ": no memory for " + std::to_string(n_bytes) + " bytes");
  }
};

/// Push one entry on HDF5's error stack. Must be the callback's last call of HDF5, since most other
/// functions clear the stack on entry.
inline void push_error(const Hdf5Calls& calls, const hid_t* minor, const FilterSource& source,
                       const Status& status, unsigned line) {
  if (calls.push_error == nullptr || calls.error_class == nullptr || minor == nullptr ||
      calls.pipeline_error == nullptr) {
    return;
  }
  calls.push_error(kDefaultStack, source.file, source.name, line, *calls.error_class,
                   *calls.pipeline_error, *minor, "%s", status.message().c_str());
}

/// Run a callback's work. Pushes a failure or an exception (out of memory) on the error stack, with
/// the caller's line. @returns true on success.
template <class Work>
bool done(const Hdf5Calls& calls, const hid_t* minor, const FilterSource& source, Work&& work,
          unsigned line = __builtin_LINE()) {
  Status status;
  try {
    status = work();
  } catch (const std::exception& exception) {
    status = Status(Code::out_of_memory,
                    std::string(source.name) + ": out of memory (" + exception.what() + ")");
  }
  if (!status.ok()) push_error(calls, minor, source, status, line);
  return status.ok();
}

/// Shape of a dataset's chunks; fails if an extent does not fit a 32-bit word of the client data.
inline Result<Shape> chunk_shape_of(const Hdf5Calls& calls, hid_t creation_list,
                                    const FilterSource& source) {
  std::array<hsize_t, kMaxRank> extents = {};
  const int rank = calls.get_chunk(creation_list, static_cast<int>(extents.size()), extents.data());
  if (rank < 1 || rank > static_cast<int>(kMaxRank)) {
    return source.refuse("the dataset is not chunked");
  }
  Shape shape(extents.begin(), extents.begin() + rank);
  for (const std::uint64_t extent : shape) {
    if (extent > 0 && extent <= UINT32_MAX) continue;
    return source.refuse("cannot encode chunks of shape " + shape_text(shape) +
                         "; each extent must be 1 to 2^32 - 1");
  }
  return shape;
}

/// Block that HDF5 will free: allocated by HDF5's memory functions if available, else by malloc.
class Block {
 public:
  Block(const Hdf5Calls& calls, std::size_t n_bytes)
      : calls_(calls),
        n_bytes_(n_bytes),
        data_(owned_by_hdf5() ? calls.allocate(n_bytes, 0) : std::malloc(n_bytes)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { free_block(data_); }

  bool allocated() const { return data_ != nullptr; }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(data_), n_bytes_}; }

  /// Replace HDF5's block by this one and free HDF5's.
  void replace(std::size_t* capacity, void** block) {
    free_block(*block);
    *block = data_;
    *capacity = n_bytes_;
    data_ = nullptr;
  }

 private:
  bool owned_by_hdf5() const { return calls_.allocate != nullptr && calls_.release != nullptr; }
  void free_block(void* data) const {
    if (data == nullptr) return;
    if (owned_by_hdf5()) {
      calls_.release(data);
    } else {
      std::free(data);
    }
  }

  const Hdf5Calls& calls_;
  std::size_t n_bytes_;
  void* data_;
};

}  // namespace tailrace::hdf5
