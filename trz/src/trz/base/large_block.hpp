// allocate_block: malloc, with large pages for large blocks.
//
// Memory costs more when it is first touched than when it is copied: the kernel hands it out and
// clears it page by page. 50 MiB of values copied into a new block took 31 ms of processor time in
// pages of 4 KiB, 12 in pages of 2 MiB, and 7 into a block that was there before.

#pragma once

#include <cstddef>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tailrace {

inline constexpr std::size_t large_page_bytes = std::size_t{2} << 20;
/// From this size on a block begins at a large page, and its whole pages are asked for as such.
inline constexpr std::size_t large_block_bytes = 2 * large_page_bytes;

/// @param alignment  a power of two.
/// @returns a block that free() takes; nullptr if memory is short. Where the system has no large
/// pages to give, it has small ones. No more is taken than is touched, but for what shares a page.
inline void* allocate_block(std::size_t n_bytes,
                            std::size_t alignment = alignof(std::max_align_t)) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (n_bytes >= large_block_bytes) {
    void* block = nullptr;
    if (::posix_memalign(&block, large_page_bytes, n_bytes) != 0) return nullptr;
    static_cast<void>(
        ::madvise(block, n_bytes / large_page_bytes * large_page_bytes, MADV_HUGEPAGE));
    return block;
  }
#endif
  if (alignment <= alignof(std::max_align_t)) return std::malloc(n_bytes > 0 ? n_bytes : 1);
  return std::aligned_alloc(alignment, (n_bytes + alignment - 1) / alignment * alignment);
}

}  // namespace tailrace
