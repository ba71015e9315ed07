#include "hdf5/user_block.hpp"

#include <algorithm>
#include <utility>

#include "core/storage_over.hpp"
#include "hdf5/superblock.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {
namespace {

class BehindUserBlock final : public StorageOver {
 public:
  BehindUserBlock(std::unique_ptr<Storage> file, std::uint64_t n_bytes)
      : StorageOver(std::move(file)), n_bytes_(n_bytes) {}

  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (address > 0 || !has_hdf5_signature(bytes)) {
      return inner_->write_at(n_bytes_ + address, bytes);
    }
    Buffer moved(bytes.size());
    if (!moved.allocated())
      return Status(Code::out_of_memory, "not enough memory for a superblock");
    std::ranges::copy(bytes, moved.bytes().begin());
    TAILRACE_TRY(move_superblock(moved.bytes(), n_bytes_));
    return inner_->write_at(n_bytes_, std::as_const(moved).bytes());
  }
  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override {
    // A superblock is among the first bytes of the file, which are written separately.
    if (address == 0) return Storage::write_pieces_at(address, pieces);
    return inner_->write_pieces_at(n_bytes_ + address, pieces);
  }
  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    return inner_->read_at(n_bytes_ + address, bytes);
  }
  Result<std::uint64_t> file_bytes() override {
    TAILRACE_TAKE(const std::uint64_t n_bytes, inner_->file_bytes());
    return n_bytes - std::min(n_bytes, n_bytes_);
  }
  Status extend(std::uint64_t n_bytes) override { return inner_->extend(n_bytes_ + n_bytes); }
  Status resize(std::uint64_t n_bytes) override { return inner_->resize(n_bytes_ + n_bytes); }

 private:
  std::uint64_t n_bytes_;
};

}  // namespace

std::unique_ptr<Storage> behind_user_block(std::unique_ptr<Storage> file, std::uint64_t n_bytes) {
  return std::make_unique<BehindUserBlock>(std::move(file), n_bytes);
}

}  // namespace tailrace
