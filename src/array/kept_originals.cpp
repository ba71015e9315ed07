// Exact values of partly written chunks, kept in memory.

#include "array/kept_originals.hpp"

#include <functional>
#include <string_view>
#include <utility>

namespace tailrace {
namespace {

std::size_t hash_of(std::span<const std::byte> bytes) {
  return std::hash<std::string_view>()(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

std::optional<KeptOriginals::Chunk> KeptOriginals::Kept::if_stored(
    std::uint64_t address, std::span<const std::byte> stored) && {
  const bool there = address_ == address && hash_ && n_stored_ == stored.size();
  if (!there || *hash_ != hash_of(stored)) return std::nullopt;
  return std::move(chunk_);
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

/// Count bytes of a chunk to be kept. @returns false if it has no room
bool KeptOriginals::reserve(std::uint64_t n_bytes) {
  const std::scoped_lock lock(mutex_);
  if (held_bytes_ + n_bytes > bytes_max_ && !searched_) {
    searched_ = true;
    for (auto at = kept_.begin(); at != kept_.end();) {
      const bool old = at->second.flush_ + 1 < flush_;
      if (old) held_bytes_ -= at->second.n_bytes_;
      at = old ? kept_.erase(at) : std::next(at);
    }
  }
  if (held_bytes_ + n_bytes > bytes_max_) return false;
  held_bytes_ += n_bytes;
  return true;
}

void KeptOriginals::keep(const ChunkKey& key, std::span<const std::byte> values,
                         std::vector<std::uint64_t> put) {
  Kept kept;
  kept.n_bytes_ = values.size() + put.size() * sizeof(put[0]) + sizeof(Kept);
  if (!reserve(kept.n_bytes_)) return;
  kept.chunk_ = {Buffer::copy_of(values), std::move(put)};  // Without the lock: it takes longest.
  const std::scoped_lock lock(mutex_);
  kept.flush_ = flush_;
  const std::uint64_t n_bytes = kept.n_bytes_;
  if (!kept.chunk_.values.allocated() || !kept_.try_emplace(key, std::move(kept)).second) {
    held_bytes_ -= n_bytes;
  }
}

void KeptOriginals::confirm(const ChunkKey& key, std::span<const std::byte> stored) {
  const std::size_t hash = hash_of(stored);
  const std::scoped_lock lock(mutex_);
  const auto kept = kept_.find(key);
  if (kept == kept_.end()) return;
  kept->second.hash_ = hash;
  kept->second.n_stored_ = stored.size();
}

void KeptOriginals::place(const ChunkKey& key, std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  const auto kept = kept_.find(key);
  if (kept != kept_.end()) kept->second.address_ = address;
}

std::optional<KeptOriginals::Kept> KeptOriginals::take(const ChunkKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return std::nullopt;
  Kept kept = std::move(found->second);
  kept_.erase(found);
  held_bytes_ -= kept.n_bytes_;
  return kept;
}

}  // namespace tailrace
