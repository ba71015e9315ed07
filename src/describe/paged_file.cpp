// Byte sources of the noting driver: memory, or cached pages.

#include "describe/paged_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tailrace {

ImageFile::ImageFile(std::span<const std::byte> image) : image_(image) {
  end_of_file = bytes_there = image.size();
}

Status ImageFile::fill(std::uint64_t address, std::span<std::byte> bytes) {
  const std::uint64_t n_there =
      address < image_.size() ? std::min<std::uint64_t>(bytes.size(), image_.size() - address) : 0;
  if (n_there > 0) std::memcpy(bytes.data(), image_.data() + address, n_there);
  const std::span<std::byte> behind = bytes.subspan(static_cast<std::size_t>(n_there));
  if (!behind.empty()) std::memset(behind.data(), 0, behind.size());
  return Status();
}

PagedFile::PagedFile(std::shared_ptr<InputBytes> input) : input_(std::move(input)) {
  end_of_file = bytes_there = input_->file_bytes();
}

Status PagedFile::read(std::uint64_t address, std::span<std::byte> bytes) {
  const std::uint64_t n_there =
      address < end_of_file ? std::min<std::uint64_t>(bytes.size(), end_of_file - address) : 0;
  const std::span<std::byte> behind = bytes.subspan(static_cast<std::size_t>(n_there));
  if (!behind.empty()) std::memset(behind.data(), 0, behind.size());
  if (n_there == 0) return Status();
  ++n_reads_;
  return input_->read_at(address, bytes.first(static_cast<std::size_t>(n_there)));
}

Result<const PagedFile::Page*> PagedFile::page(std::uint64_t index) {
  Page* oldest = pages_.data();
  for (Page& page : pages_) {
    if (page.index == index) {
      page.last_use = ++n_uses_;
      return &page;
    }
    if (page.last_use < oldest->last_use) oldest = &page;
  }
  if (!oldest->bytes.allocated()) oldest->bytes = Buffer(page_bytes);
  if (!oldest->bytes.allocated()) {
    return Status(Code::out_of_memory,
                  input_->path() + ": not enough memory for a page of metadata");
  }
  oldest->index = UINT64_MAX;
  TAILRACE_TRY(read(index * page_bytes, oldest->bytes.bytes()));
  oldest->index = index;
  oldest->last_use = ++n_uses_;
  return oldest;
}

Status PagedFile::fill(std::uint64_t address, std::span<std::byte> bytes) {
  if (bytes.size() >= page_bytes) return read(address, bytes);
  while (!bytes.empty()) {
    TAILRACE_TAKE(const auto* found, page(address / page_bytes));
    const auto at = static_cast<std::size_t>(address % page_bytes);
    const std::size_t n_bytes = std::min(bytes.size(), page_bytes - at);
    std::memcpy(bytes.data(), found->bytes.data() + at, n_bytes);
    address += n_bytes;
    bytes = bytes.subspan(n_bytes);
  }
  return Status();
}

}  // namespace tailrace
