// BoxIndex: which of many numbered boxes touch a given one, without a look at each.
//
// The boxes are sorted by their first corners; around each 16 neighbours lies a box, around each 16
// of these another. Boxes that come later are sorted by themselves, and joined with those before
// once they are as many, so that n boxes cost O(n log n) however often one asks in between. Left to
// others: which boxes there are, what they mean, and whether a box that may touch really does.
// Boxes are given by their words: starts, then counts. Pure; main thread only.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tailrace {

/// Whether two boxes have elements in common; both by their words.
bool boxes_touch(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);
/// Whether every element of `inner` is one of `outer`.
bool box_holds(std::span<const std::uint64_t> outer, std::span<const std::uint64_t> inner);

class BoxIndex {
 public:
  /// Copies the words of box `number` into `words`.
  using BoxOf = std::function<void(std::size_t number, std::span<std::uint64_t> words)>;

  /// Take up the boxes from n_boxes() to `end`, all of this rank (number of dimensions).
  void extend(std::size_t end, std::size_t rank, const BoxOf& box_of);
  /// Boxes from `first` on have changed, or are no more: they, and maybe others, are forgotten.
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
    std::vector<std::uint32_t> order;  ///< Their numbers less `first`, by their first corners.
    /// By level, the boxes around 16, 256, ... of them; the last level has at most 16.
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
