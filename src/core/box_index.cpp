// The index of boxes: sorts each group once, and encloses it level by level.

#include "core/box_index.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "trz/base/status.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kFanOut = 16;

/// Grow the box `around` so that it also contains `words`.
void widen(std::span<std::uint64_t> around, std::span<const std::uint64_t> words) {
  const std::size_t rank = words.size() / 2;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t end = std::max(around[d] + around[rank + d], words[d] + words[rank + d]);
    around[d] = std::min(around[d], words[d]);
    around[rank + d] = end - around[d];
  }
}

}  // namespace

bool boxes_touch(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  const std::size_t rank = a.size() / 2;
  for (std::size_t d = 0; d < rank; ++d) {
    if (a[d] >= b[d] + b[rank + d] || b[d] >= a[d] + a[rank + d]) return false;
  }
  return true;
}

bool box_holds(std::span<const std::uint64_t> outer, std::span<const std::uint64_t> inner) {
  const std::size_t rank = outer.size() / 2;
  for (std::size_t d = 0; d < rank; ++d) {
    if (inner[d] < outer[d]) return false;
    if (inner[d] + inner[rank + d] > outer[d] + outer[rank + d]) return false;
  }
  return true;
}

void BoxIndex::extend(std::size_t end, std::size_t rank, const BoxOf& box_of) {
  rank_ = rank;
  if (end <= n_boxes()) return;
  TAILRACE_CHECK(end - n_boxes() <= std::numeric_limits<std::uint32_t>::max());
  const auto sorted = [&](std::size_t first, std::size_t behind) {
    // Copy the corners: looking them up at every comparison takes several times as long.
    std::vector<std::uint64_t> words((behind - first) * 2 * rank);
    for (std::size_t i = 0; i < behind - first; ++i) {
      box_of(first + i, std::span(words).subspan(i * 2 * rank, 2 * rank));
    }
    std::vector<std::uint32_t> order(behind - first);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const auto corner = [&](std::size_t i) {
        return std::span(words).subspan(i * 2 * rank, rank);
      };
      const auto differ = std::ranges::mismatch(corner(a), corner(b));
      if (differ.in1 != corner(a).end()) return *differ.in1 < *differ.in2;
      return a > b;  // equal corners: the latest first, because it may contain the others
    });
    return order;
  };
  Group group{n_boxes(), end, {}, {}};
  while (!groups_.empty() && groups_.back().end - groups_.back().first <= 2 * (end - group.first)) {
    group.first = groups_.back().first;
    forget_from(group.first);
  }
  group.order = sorted(group.first, end);
  enclose(group, box_of);
  held_bytes_ += bytes_of(group);
  groups_.push_back(std::move(group));
}

void BoxIndex::enclose(Group& group, const BoxOf& box_of) const {
  const std::size_t n_words = 2 * rank_;
  std::vector<std::uint64_t> words(n_words);
  std::size_t n = group.order.size();
  for (bool lowest = true; lowest || n > kFanOut; lowest = false) {
    std::vector<std::uint64_t> level((n + kFanOut - 1) / kFanOut * n_words);
    for (std::size_t i = 0; i < n; ++i) {
      if (lowest) {
        box_of(group.first + group.order[i], words);
      } else {
        std::copy_n(group.around.back().begin() + static_cast<std::ptrdiff_t>(i * n_words), n_words,
                    words.begin());
      }
      const auto around = std::span(level).subspan(i / kFanOut * n_words, n_words);
      if (i % kFanOut == 0) {
        std::ranges::copy(words, around.begin());
      } else {
        widen(around, words);
      }
    }
    n = (n + kFanOut - 1) / kFanOut;
    group.around.push_back(std::move(level));
  }
}

void BoxIndex::forget_from(std::size_t first) {
  while (!groups_.empty() && groups_.back().end > first) {
    held_bytes_ -= bytes_of(groups_.back());
    groups_.pop_back();
  }
}

std::uint64_t BoxIndex::bytes_of(const Group& group) {
  std::uint64_t n_bytes = sizeof(Group) + group.order.size() * sizeof(std::uint32_t);
  for (const auto& level : group.around) n_bytes += level.size() * sizeof(std::uint64_t);
  return n_bytes;
}

void BoxIndex::visit(std::span<const std::uint64_t> box,
                     const std::function<bool(std::size_t number)>& visit) const {
  for (const Group& group : groups_) {
    const std::size_t top = group.around.size() - 1;
    const std::size_t n_nodes = rank_ == 0 ? (group.order.size() + kFanOut - 1) / kFanOut
                                           : group.around[top].size() / (2 * rank_);
    for (std::size_t node = 0; node < n_nodes; ++node) {
      if (!visit_node(group, rank_ == 0 ? 0 : top, node, box, visit)) return;
    }
  }
}

bool BoxIndex::visit_node(const Group& group, std::size_t level, std::size_t node,
                          std::span<const std::uint64_t> box,
                          const std::function<bool(std::size_t number)>& visit) const {
  const std::size_t n_words = 2 * rank_;
  if (!boxes_touch(std::span(group.around[level]).subspan(node * n_words, n_words), box)) {
    return true;
  }
  const std::size_t n_below =
      level == 0 ? group.order.size() : (rank_ == 0 ? 0 : group.around[level - 1].size() / n_words);
  const std::size_t end = std::min((node + 1) * kFanOut, n_below);
  for (std::size_t i = node * kFanOut; i < end; ++i) {
    const bool go_on = level == 0 ? visit(group.first + group.order[i])
                                  : visit_node(group, level - 1, i, box, visit);
    if (!go_on) return false;
  }
  return true;
}

}  // namespace tailrace
