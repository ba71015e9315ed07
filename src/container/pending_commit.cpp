// The writing of one commit, on whichever thread has time for it.

#include "container/pending_commit.hpp"

#include <algorithm>

namespace tailrace {
namespace {

/// Bytes moved at a time when a chunk has to be copied.
constexpr std::uint64_t copy_piece_bytes = 4U << 20;

}  // namespace

// First of all, since later writes of HDF5 into the same place come after it in time, too; the sync
// that follows the fresh blocks makes the copies durable before anything refers to them.
Status PendingCommit::copy_moved_chunks() {
  std::vector<std::byte> piece;
  for (const Copy& copy : copies_) {
    for (std::uint64_t done = 0; done < copy.n_bytes;) {
      piece.resize(std::min(copy_piece_bytes, copy.n_bytes - done));
      TAILRACE_TRY(storage_->read_at(copy.from + done, piece));
      TAILRACE_TRY(storage_->write_at(copy.to + done, piece));
      done += piece.size();
    }
  }
  return Status();
}

Status PendingCommit::write_all() {
  if (storage_ == nullptr) return Status();
  TAILRACE_TRY(copy_moved_chunks());
  return write_commit(*storage_, plan_, settings_);
}

Status PendingCommit::write() {
  if (!written_) outcome_ = write_all();
  written_ = true;
  return outcome_;
}

std::uint64_t PendingCommit::metadata_bytes() const {
  std::uint64_t n_bytes = 0;
  for (const auto& [address, segment] : bytes_.segments()) n_bytes += segment.bytes.size();
  return n_bytes;
}

}  // namespace tailrace
