// List of decoded chunks in the order of their use.

#include "chunk/chunk_cache.hpp"

#include <utility>

namespace tailrace {

void ChunkCache::drop(std::unordered_map<ChunkKey, Kept, ChunkKeyHash>::iterator kept) {
  n_bytes_ -= kept->second.entry->values.capacity();
  uses_.erase(kept->second.use);
  kept_.erase(kept);
}

void ChunkCache::drop(const ChunkKey& id) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(id);
  if (found != kept_.end() && found->second.entry->ready) drop(found);
}

ChunkCache::Entry ChunkCache::find(const ChunkKey& id) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(id);
  if (found == kept_.end()) return nullptr;
  uses_.splice(uses_.end(), uses_, found->second.use);
  return found->second.entry;
}

bool ChunkCache::wait(const Entry& entry) {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return entry->ready; });
  return entry->failure.ok();
}

bool ChunkCache::holds(const ChunkKey& id) {
  const std::scoped_lock lock(mutex_);
  return kept_.contains(id);
}

/// Evict ready entries until a new one fits. @returns false if it does not, or is cached already
bool ChunkCache::make_room(const ChunkKey& id, std::uint64_t n_bytes) {
  if (n_bytes > bytes_max_ || kept_.contains(id)) return false;
  for (auto use = uses_.begin(); use != uses_.end() && n_bytes_ + n_bytes > bytes_max_;) {
    const auto oldest = kept_.find(*use++);
    if (oldest->second.entry->ready) drop(oldest);
  }
  return n_bytes_ + n_bytes <= bytes_max_;
}

void ChunkCache::insert(const ChunkKey& id, const Entry& entry) {
  std::list<ChunkKey> use{id};
  kept_.emplace(id, Kept{entry, use.begin()});
  uses_.splice(uses_.end(), use);
  n_bytes_ += entry->values.capacity();
}

ChunkCache::Entry ChunkCache::begin(const ChunkKey& id, std::uint64_t n_bytes) {
  const std::scoped_lock lock(mutex_);
  if (!make_room(id, n_bytes)) return nullptr;
  Entry entry;
  const Status made = local_part([&] {
    auto chunk = std::make_shared<CachedChunk>();
    chunk->values = Buffer(n_bytes);
    if (!chunk->values.allocated())
      return Status(Code::out_of_memory, "not enough memory to cache a chunk");
    insert(id, chunk);
    entry = std::move(chunk);
    return Status();
  });
  return made.ok() ? entry : nullptr;
}

void ChunkCache::add(const ChunkKey& id, Buffer values) {
  const std::scoped_lock lock(mutex_);
  if (!make_room(id, values.capacity())) return;
  // Without memory for the entry, the chunk is not cached.
  static_cast<void>(local_part([&] {
    auto chunk = std::make_shared<CachedChunk>();
    chunk->values = std::move(values);
    chunk->ready = true;
    insert(id, chunk);
    return Status();
  }));
}

void ChunkCache::finish(const ChunkKey& id, const Entry& entry, Status failure) {
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

void ChunkCache::drop_field(std::size_t field) {
  const std::scoped_lock lock(mutex_);
  for (auto use = uses_.begin(); use != uses_.end();) {
    const ChunkKey id = *use++;
    if (id.field == field) drop(kept_.find(id));
  }
}

void ChunkCache::clear() {
  const std::scoped_lock lock(mutex_);
  kept_.clear();
  uses_.clear();
  n_bytes_ = 0;
}

std::uint64_t ChunkCache::bytes_free() {
  const std::scoped_lock lock(mutex_);
  return bytes_max_ - n_bytes_;
}

}  // namespace tailrace
