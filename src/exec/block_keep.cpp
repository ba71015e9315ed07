// Cache of blocks by size, and the cap over held and cached bytes.

#include "exec/block_keep.hpp"

#include <iterator>
#include <new>

namespace tailrace {
namespace {

/// Smallest block that malloc maps from the system separately (glibc's M_MMAP_THRESHOLD).
constexpr std::uint64_t kLeastBytes = 128U << 10;

}  // namespace

Buffer BlockKeep::take(std::uint64_t n_bytes) {
  if (n_bytes < kLeastBytes) return Buffer(n_bytes);
  {
    const std::scoped_lock lock(mutex_);
    const auto behind = blocks_.upper_bound(n_bytes);
    if (behind != blocks_.begin() && std::prev(behind)->first == n_bytes) {
      const auto last = std::prev(behind);
      Buffer block = std::move(last->second.block);
      kept_bytes_ -= last->first;
      blocks_.erase(last);
      block.set_n_bytes(n_bytes);  // A codec may have shortened it.
      return block;
    }
    ++n_new_;
  }
  return Buffer(n_bytes);
}

void BlockKeep::give(Buffer block) {
  const std::uint64_t n_bytes = block.capacity();
  if (n_bytes < kLeastBytes) return;
  const std::scoped_lock lock(mutex_);
  try {
    blocks_.emplace(n_bytes, Kept{std::move(block), step_});
    kept_bytes_ += n_bytes;
  } catch (const std::bad_alloc&) {
    // The block is freed. I/O threads call this function, and nothing above them catches
    // exceptions.
  }
}

BlockKeep::Blocks::iterator BlockKeep::drop(Blocks::iterator place) {
  kept_bytes_ -= place->first;
  return blocks_.erase(place);
}

void BlockKeep::shrink_to(std::uint64_t n_bytes) {
  const std::scoped_lock lock(mutex_);
  while (kept_bytes_ > n_bytes) drop(blocks_.begin());
}

void BlockKeep::end_step() {
  const std::scoped_lock lock(mutex_);
  for (auto place = blocks_.begin(); place != blocks_.end();) {
    place = place->second.step < step_ ? drop(place) : std::next(place);
  }
  ++step_;
}

std::uint64_t BlockKeep::kept_bytes() const {
  const std::scoped_lock lock(mutex_);
  return kept_bytes_;
}

std::uint64_t BlockKeep::n_new() const {
  const std::scoped_lock lock(mutex_);
  return n_new_;
}

// --- The budget. Lock order: its mutex before that of the blocks.

bool MemoryBudget::try_take(std::uint64_t n_bytes, std::uint64_t keep_free_bytes) {
  const std::scoped_lock lock(mutex_);
  if (held_bytes_ + n_bytes + keep_free_bytes > cap_bytes_) return false;
  add(n_bytes);
  return true;
}

void MemoryBudget::take(std::uint64_t n_bytes) {
  const std::scoped_lock lock(mutex_);
  add(n_bytes);
}

/// Requires mutex_.
void MemoryBudget::add(std::uint64_t n_bytes) {
  held_bytes_ += n_bytes;
  const std::uint64_t room_bytes = cap_bytes_ - std::min(cap_bytes_, held_bytes_);
  if (kept_bytes() > room_bytes) blocks_->shrink_to(room_bytes);
  peak_bytes_ = std::max(peak_bytes_, held_bytes_ + kept_bytes());
}

void MemoryBudget::give_back(std::uint64_t n_bytes) {
  const std::scoped_lock lock(mutex_);
  held_bytes_ -= n_bytes;
}

void MemoryBudget::keep(Buffer block) {
  if (blocks_ == nullptr || !block.allocated()) return;
  const std::scoped_lock lock(mutex_);
  if (held_bytes_ + kept_bytes() + block.capacity() > cap_bytes_) return;
  blocks_->give(std::move(block));
  peak_bytes_ = std::max(peak_bytes_, held_bytes_ + kept_bytes());
}

}  // namespace tailrace
