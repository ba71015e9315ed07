// Exact values of partly written chunks, kept in memory.

#include "array/kept_originals.hpp"

#include <functional>
#include <string_view>
#include <utility>

namespace tailrace {

std::uint64_t KeptOriginals::bytes_of(const Chunk& chunk) {
  return chunk.values.n_bytes() + chunk.put.size() * sizeof(chunk.put[0]) + sizeof(Kept);
}

KeptOriginals::Stored KeptOriginals::identity(std::span<const std::byte> stored) {
  const std::string_view text(reinterpret_cast<const char*>(stored.data()), stored.size());
  return {stored.size(), std::hash<std::string_view>()(text)};
}

KeptOriginals::Map::iterator KeptOriginals::drop(Map::iterator kept) {
  held_bytes_ -= bytes_of(kept->second.chunk);
  return kept_.erase(kept);
}

void KeptOriginals::start_flush(std::uint64_t bytes_max) {
  const std::scoped_lock lock(mutex_);
  ++flush_;
  searched_ = false;
  bytes_max_ = bytes_max;
  if (held_bytes_ <= bytes_max_) return;
  kept_.clear();
  held_bytes_ = 0;
}

std::uint64_t KeptOriginals::held_bytes() const {
  const std::scoped_lock lock(mutex_);
  return held_bytes_;
}

void KeptOriginals::keep(const ChunkKey& key, std::span<const std::byte> values,
                         std::vector<std::uint64_t> put) {
  const std::scoped_lock lock(mutex_);
  if (const auto old = kept_.find(key); old != kept_.end()) drop(old);
  const std::uint64_t n_bytes =
      values.size() + put.size() * sizeof(put[0]) + sizeof(Kept);  // bytes_of() counts them so
  if (held_bytes_ + n_bytes > bytes_max_ && !searched_) {
    searched_ = true;
    for (auto at = kept_.begin(); at != kept_.end();) {
      at = at->second.flush + 1 < flush_ ? drop(at) : std::next(at);
    }
  }
  if (held_bytes_ + n_bytes > bytes_max_) return;
  Buffer copy = Buffer::copy_of(values);
  if (!copy.allocated()) return;
  kept_[key] = {{std::move(copy), std::move(put)}, std::nullopt, flush_};
  held_bytes_ += n_bytes;
}

void KeptOriginals::confirm(const ChunkKey& key, std::span<const std::byte> stored) {
  const std::scoped_lock lock(mutex_);
  const auto kept = kept_.find(key);
  // Earlier values, of which this flush has replaced all, stay as they are and do not match.
  if (kept != kept_.end() && !kept->second.stored) kept->second.stored = identity(stored);
}

std::optional<KeptOriginals::Chunk> KeptOriginals::take(const ChunkKey& key,
                                                        std::span<const std::byte> stored) {
  const std::scoped_lock lock(mutex_);
  const auto kept = kept_.find(key);
  if (kept == kept_.end()) return std::nullopt;
  const bool same = kept->second.stored == identity(stored);
  held_bytes_ -= bytes_of(kept->second.chunk);
  Chunk chunk = std::move(kept->second.chunk);
  kept_.erase(kept);
  if (!same) return std::nullopt;
  return chunk;
}

}  // namespace tailrace
