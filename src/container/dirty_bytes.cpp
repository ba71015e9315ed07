// Interval arithmetic of the metadata driver's buffer.

#include "container/dirty_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace tailrace {

void SpanSet::insert(std::uint64_t address, std::uint64_t n_bytes) {
  if (n_bytes == 0) return;
  std::uint64_t start = address;
  std::uint64_t end = address + n_bytes;
  auto at = end_of_.upper_bound(start);
  if (at != end_of_.begin() && std::prev(at)->second >= start) --at;
  while (at != end_of_.end() && at->first <= end) {
    start = std::min(start, at->first);
    end = std::max(end, at->second);
    at = end_of_.erase(at);
  }
  end_of_.emplace_hint(at, start, end);
}

bool SpanSet::contains(std::uint64_t address, std::uint64_t n_bytes) const {
  if (n_bytes == 0) return true;
  const auto after = end_of_.upper_bound(address);
  return after != end_of_.begin() && std::prev(after)->second >= address + n_bytes;
}

void DirtyBytes::put(std::uint64_t address, std::span<const std::byte> bytes, bool superblock) {
  if (bytes.empty()) return;
  const auto same = segments_.find(address);
  if (same != segments_.end() && same->second.bytes.size() == bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), same->second.bytes.begin());
    same->second.superblock = superblock;
    return;
  }
  drop(address, bytes.size());
  segments_.emplace(address, Segment{{bytes.begin(), bytes.end()}, superblock});
}

void DirtyBytes::drop(std::uint64_t address, std::uint64_t n_bytes) {
  const std::uint64_t end = address + n_bytes;
  auto at = segments_.lower_bound(address);
  if (at != segments_.begin()) {
    const auto before = std::prev(at);
    const std::uint64_t before_end = before->first + before->second.bytes.size();
    if (before_end > address) {
      if (before_end > end) {
        const auto cut = before->second.bytes.begin() + std::ptrdiff_t(end - before->first);
        Segment rest{{cut, before->second.bytes.end()}, before->second.superblock};
        at = segments_.emplace(end, std::move(rest)).first;
      }
      before->second.bytes.resize(address - before->first);
    }
  }
  while (at != segments_.end() && at->first < end) {
    const std::uint64_t at_end = at->first + at->second.bytes.size();
    if (at_end > end) {
      const auto cut = at->second.bytes.begin() + std::ptrdiff_t(end - at->first);
      Segment rest{{cut, at->second.bytes.end()}, at->second.superblock};
      segments_.emplace(end, std::move(rest));
    }
    at = segments_.erase(at);
  }
}

void DirtyBytes::overlay(std::uint64_t address, std::span<std::byte> bytes) const {
  const std::uint64_t end = address + bytes.size();
  auto at = segments_.upper_bound(address);
  if (at != segments_.begin()) --at;
  for (; at != segments_.end() && at->first < end; ++at) {
    const std::uint64_t from = std::max(at->first, address);
    const std::uint64_t to = std::min(at->first + at->second.bytes.size(), end);
    if (from >= to) continue;
    std::memcpy(bytes.data() + (from - address), at->second.bytes.data() + (from - at->first),
                to - from);
  }
}

std::uint64_t DirtyBytes::end() const {
  if (segments_.empty()) return 0;
  const auto last = std::prev(segments_.end());
  return last->first + last->second.bytes.size();
}

}  // namespace tailrace
