// Workspace: areas that grow, and zstd's contexts.

#include "codec/trz/workspace.hpp"

#include <zstd.h>

#include <cstdlib>

// g++ defines a macro, clang has a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRZ_WITH_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TRZ_WITH_ADDRESS_SANITIZER 1
#endif
#if defined(TRZ_WITH_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace tailrace::trz {

namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSlackBytes = 64;

/// Under the address sanitizer, what lies behind the bytes asked for and their slack is out of
/// bounds, although the area may be longer.
void* limited_to(void* begin, [[maybe_unused]] std::size_t n_bytes,
                 [[maybe_unused]] std::size_t n_held) {
#if defined(TRZ_WITH_ADDRESS_SANITIZER)
  if (begin != nullptr) {
    auto* bytes = static_cast<char*>(begin);
    __asan_unpoison_memory_region(bytes, n_held + kSlackBytes);
    __asan_poison_memory_region(bytes + n_bytes + kSlackBytes, n_held - n_bytes);
  }
#endif
  return begin;
}
}  // namespace

Workspace::~Workspace() {
  for (const Area& area : areas_) std::free(area.begin);
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(zstd_compressor_));
  ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(zstd_decompressor_));
}

void* Workspace::bytes_of(Slot slot, std::size_t n_bytes) {
  Area& area = areas_[static_cast<std::size_t>(slot)];
  if (area.begin != nullptr && n_bytes <= area.n_bytes) {
    return limited_to(area.begin, n_bytes, area.n_bytes);
  }
  if (n_bytes > SIZE_MAX - 4 * kAlignment) return nullptr;
  // What has grown once gets a quarter more than asked, so that chunks of slowly growing size do
  // not allocate each time.
  const std::size_t wanted = area.begin == nullptr ? n_bytes : n_bytes + n_bytes / 4;
  const std::size_t rounded = (wanted + kSlackBytes + kAlignment - 1) / kAlignment * kAlignment;
  std::free(area.begin);
  area.begin = std::aligned_alloc(kAlignment, rounded);
  area.n_bytes = area.begin == nullptr ? 0 : rounded - kSlackBytes;
  return limited_to(area.begin, n_bytes, area.n_bytes);
}

std::size_t Workspace::held_bytes() const {
  std::size_t total = 0;
  for (const Area& area : areas_) total += area.n_bytes;
  return total;
}

void* Workspace::zstd_compressor() {
  if (zstd_compressor_ == nullptr) zstd_compressor_ = ZSTD_createCCtx();
  return zstd_compressor_;
}

void* Workspace::zstd_decompressor() {
  if (zstd_decompressor_ == nullptr) zstd_decompressor_ = ZSTD_createDCtx();
  return zstd_decompressor_;
}

}  // namespace tailrace::trz
