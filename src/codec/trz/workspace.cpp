// Workspace: areas that grow, and zstd's contexts.

#include "codec/trz/workspace.hpp"

#include <zstd.h>

namespace tailrace::trz {

namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSlackBytes = 64;
}  // namespace

Workspace::~Workspace() {
  for (const Area& area : areas_) std::free(area.begin);
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(zstd_compressor_));
  ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(zstd_decompressor_));
}

void* Workspace::bytes_of(Slot slot, std::size_t n_bytes) {
  Area& area = areas_[static_cast<std::size_t>(slot)];
  if (area.begin != nullptr && n_bytes <= area.n_bytes) return area.begin;
  if (n_bytes > SIZE_MAX - 4 * kAlignment) return nullptr;
  // A quarter more than asked, so that chunks of slowly growing size do not allocate each time.
  const std::size_t wanted = n_bytes + n_bytes / 4;
  const std::size_t rounded = (wanted + kSlackBytes + kAlignment - 1) / kAlignment * kAlignment;
  std::free(area.begin);
  area.begin = std::aligned_alloc(kAlignment, rounded);
  area.n_bytes = area.begin == nullptr ? 0 : rounded - kSlackBytes;
  return area.begin;
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
