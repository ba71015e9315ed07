// The least-recently-used list of decoded chunks.

#include "read/read_cache.hpp"

#include <utility>

namespace tailrace {

void ReadCache::drop(std::unordered_map<ChunkKey, Kept, ChunkKeyHash>::iterator kept) {
  n_bytes_ -= kept->second.entry->values.capacity();
  uses_.erase(kept->second.use);
  kept_.erase(kept);
}

ReadCache::Entry ReadCache::find(const ChunkKey& id) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(id);
  if (found == kept_.end()) return nullptr;
  uses_.splice(uses_.end(), uses_, found->second.use);
  return found->second.entry;
}

bool ReadCache::wait(const Entry& entry) {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return entry->ready; });
  return entry->failure.ok();
}

bool ReadCache::holds(const ChunkKey& id) {
  const std::scoped_lock lock(mutex_);
  return kept_.contains(id);
}

ReadCache::Entry ReadCache::begin(const ChunkKey& id, std::uint64_t n_bytes) {
  const std::scoped_lock lock(mutex_);
  if (n_bytes > bytes_max_ || kept_.contains(id)) return nullptr;
  for (auto use = uses_.begin(); use != uses_.end() && n_bytes_ + n_bytes > bytes_max_;) {
    const auto oldest = kept_.find(*use++);
    if (oldest->second.entry->ready) drop(oldest);
  }
  if (n_bytes_ + n_bytes > bytes_max_) return nullptr;
  auto entry = std::make_shared<CachedChunk>();
  entry->values = Buffer(n_bytes);
  if (!entry->values.allocated()) return nullptr;
  n_bytes_ += n_bytes;
  kept_[id] = {entry, uses_.insert(uses_.end(), id)};
  return entry;
}

void ReadCache::finish(const ChunkKey& id, const Entry& entry, Status failure) {
  {
    const std::scoped_lock lock(mutex_);
    entry->failure = std::move(failure);
    entry->ready = true;
    const auto found = kept_.find(id);
    const bool drops = !entry->failure.ok() && found != kept_.end();
    if (drops && found->second.entry == entry) drop(found);
  }
  ready_.notify_all();
}

void ReadCache::clear() {
  const std::scoped_lock lock(mutex_);
  kept_.clear();
  uses_.clear();
  n_bytes_ = 0;
}

std::uint64_t ReadCache::bytes_free() {
  const std::scoped_lock lock(mutex_);
  return bytes_max_ - n_bytes_;
}

}  // namespace tailrace
