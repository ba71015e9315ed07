// What our HDF5 filters share: errors on HDF5's stack, exceptions kept in, blocks that change
// hands.

#pragma once

#include <cstdlib>
#include <exception>
#include <span>
#include <string>

#include "core/status.hpp"
#include "hdf5_filter/hdf5_calls.hpp"

namespace tailrace::hdf5 {

/// Who speaks on the error stack.
struct FilterSource {
  const char* file;
  const char* name;
};

/// Put one entry on HDF5's error stack. Must be the callback's last call of HDF5: most others clear
/// the stack when they are entered.
inline void push_error(const Hdf5Calls& calls, const hid_t* minor, const FilterSource& source,
                       const Status& status, unsigned line) {
  if (calls.push_error == nullptr || calls.error_class == nullptr || minor == nullptr ||
      calls.pipeline_error == nullptr) {
    return;
  }
  calls.push_error(default_stack, source.file, source.name, line, *calls.error_class,
                   *calls.pipeline_error, *minor, "%s", status.message().c_str());
}

/// Run `work`; an exception (there is no memory left) becomes a Status.
template <class Work>
Status guarded(const char* name, Work&& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return Status(Code::out_of_memory, std::string(name) + ": " + exception.what());
  }
}

/// A block that HDF5 will free: its own memory functions where it has them, else malloc.
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

  /// Put this block in the place of HDF5's, which is freed.
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
