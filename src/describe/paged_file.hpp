// Byte sources of the noting driver: memory, or a file behind a cache of large pages.
//
// HDF5 reads metadata in pieces of a few hundred bytes. On a parallel file system each piece would
// cost a request. Pages of 256 KiB reduce the requests; the number of cached pages is bounded.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "describe/input_bytes.hpp"
#include "hdf5/noting_driver.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

/// A file whose bytes are all in memory. The memory must outlive this object.
class ImageFile final : public NotedFile {
 public:
  explicit ImageFile(std::span<const std::byte> image);
  Status fill(std::uint64_t address, std::span<std::byte> bytes) override;

 private:
  std::span<const std::byte> image_;
};

/// A file that is read in pages. Requests of a page or more bypass the cache.
/// Memory: at most n_pages * page_bytes (8 MiB).
class PagedFile final : public NotedFile {
 public:
  static constexpr std::size_t page_bytes = std::size_t{256} << 10;
  static constexpr std::size_t n_pages = 32;

  explicit PagedFile(std::shared_ptr<InputBytes> input);
  Status fill(std::uint64_t address, std::span<std::byte> bytes) override;
  /// Number of read requests made to the file so far.
  std::uint64_t n_reads() const { return n_reads_; }

 private:
  struct Page {
    std::uint64_t index = UINT64_MAX;
    std::uint64_t last_use = 0;
    Buffer bytes;
  };

  Result<const Page*> page(std::uint64_t index);
  Status read(std::uint64_t address, std::span<std::byte> bytes);

  std::shared_ptr<InputBytes> input_;
  std::array<Page, n_pages> pages_;
  std::uint64_t n_uses_ = 0;
  std::uint64_t n_reads_ = 0;
};

}  // namespace tailrace
