// BoxIndex: finds which of many numbered boxes touch a given one, without testing each.
//
// The boxes of a group are sorted by their first corners. Each 16 neighbours are enclosed by a box,
// each 16 of these by another. Later boxes form a new group, which merges with earlier groups once
// it has at least half their size. n boxes therefore cost O(n log n), however often visit() is
// called in between. The caller checks whether a box that may touch really does. Boxes are given as
// words: starts, then counts. Pure; main thread only.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tailrace {

/// Return true if two boxes, given as words, have elements in common.
bool boxes_touch(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);
/// Return true if `outer` contains every element of `inner`.
bool box_holds(std::span<const std::uint64_t> outer, std::span<const std::uint64_t> inner);

class BoxIndex {
 public:
  /// Copies the words of box `number` into `words`.
  using BoxOf = std::function<void(std::size_t number, std::span<std::uint64_t> words)>;

  /// Add the boxes from n_boxes() to `end`, all of this rank (number of dimensions).
  void extend(std::size_t end, std::size_t rank, const BoxOf& box_of);
  /// Remove boxes from `first` on, because they have changed or were deleted. May also remove
  /// earlier ones; n_boxes() tells the new end.
  void forget_from(std::size_t first);
  std::size_t n_boxes() const { return groups_.empty() ? 0 : groups_.back().end; }
  std::uint64_t held_bytes() const { return held_bytes_; }

  /// Call `visit(number)` for every box that may touch `box`, until it returns false.
  void visit(std::span<const std::uint64_t> box,
             const std::function<bool(std::size_t number)>& visit) const;

 private:
  /// Boxes [first, end).
  struct Group {
    std::size_t first = 0;
    std::size_t end = 0;
    std::vector<std::uint32_t> order;  ///< Box numbers minus `first`, sorted by first corner.
    /// Enclosing boxes of 16, 256, ... boxes, by level; the last level has at most 16.
    std::vector<std::vector<std::uint64_t>> around;
  };
  static std::uint64_t bytes_of(const Group& group);
  void enclose(Group& group, const BoxOf& box_of) const;
  bool visit_node(const Group& group, std::size_t level, std::size_t node,
                  std::span<const std::uint64_t> box,
                  const std::function<bool(std::size_t number)>& visit) const;

  std::size_t rank_ = 0;
  std::uint64_t held_bytes_ = 0;
  std::vector<Group> groups_;
};

}  // namespace tailrace
