// The words of a vocabulary: the lattice points at which a chunk's values lie, and their ranks.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "trz/workspace.hpp"

namespace tailrace::trz {

/// Up to this many points have a table of their ranks, which stays in a core's cache.
inline constexpr std::uint64_t kPointsOfTable = 65536;

/// Sorted lattice points of a chunk, and the rank of each. Stores a bit for every point between the
/// least and the greatest, and a count per 64 points; for few points, a table.
class Words {
 public:
  /// Collect the words of n codes. False if there are too many for a vocabulary, if they lie too
  /// far apart, or if out of memory.
  bool collect(const std::int32_t* q, std::size_t n, std::size_t points_max, Workspace& workspace) {
    std::int32_t least = q[0];
    std::int32_t greatest = q[0];
    for (std::size_t i = 1; i < n; ++i) {  // Vectorised, unlike minmax_element.
      least = std::min(least, q[i]);
      greatest = std::max(greatest, q[i]);
    }
    least_ = least;
    const auto n_points = static_cast<std::uint64_t>(std::int64_t{greatest} - least_) + 1;
    if (n_points > points_max) return false;
    n_parts_ = static_cast<std::size_t>(n_points / 64 + 1);
    bits_ = workspace.area<std::uint64_t>(Slot::pyramid, n_parts_ + 1);
    const bool with_table = n_points <= kPointsOfTable;
    before_ =
        workspace.area<std::uint32_t>(Slot::coarse, n_parts_ + (with_table ? n_points / 2 + 1 : 0));
    if (bits_ == nullptr || before_ == nullptr) return false;
    std::fill_n(bits_, n_parts_ + 1, std::uint64_t{0});
    table_ = with_table ? reinterpret_cast<std::uint16_t*>(before_ + n_parts_) : nullptr;
    if (with_table) {
      // Marks in bytes first: successive values often fall into one word of bits.
      std::fill_n(table_, n_points, std::uint16_t{0});
      for (std::size_t i = 0; i < n; ++i) table_[place(q[i])] = 1;
      for (std::uint64_t p = 0; p < n_points; ++p) {
        bits_[p / 64] |= std::uint64_t{table_[p]} << (p % 64);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) bits_[part_of(q[i])] |= bit_of(q[i]);
    }
    n_words_ = 0;
    for (std::size_t part = 0; part < n_parts_; ++part) {
      before_[part] = static_cast<std::uint32_t>(n_words_);
      n_words_ += static_cast<std::size_t>(std::popcount(bits_[part]));
    }
    std::uint16_t rank = 0;
    for (std::uint64_t p = 0; with_table && p < n_points; ++p) {
      rank = static_cast<std::uint16_t>(rank + std::exchange(table_[p], rank));
    }
    return true;
  }
  std::size_t size() const { return n_words_; }
  std::size_t rank(std::int32_t q) const {
    if (table_ != nullptr) return table_[place(q)];
    return before_[part_of(q)] +
           static_cast<std::size_t>(std::popcount(bits_[part_of(q)] & (bit_of(q) - 1)));
  }
  /// True if neither neighbouring point occurs.
  bool alone(std::int64_t q) const {
    return (q == least_ || !has(q - 1)) && !has(q + 1);  // bits_ has an extra part at the end.
  }
  void list(std::int32_t* words) const {
    for (std::size_t part = 0; part < n_parts_; ++part) {
      for (std::uint64_t bits = bits_[part]; bits != 0; bits &= bits - 1) {
        *words++ = static_cast<std::int32_t>(least_ + static_cast<std::int64_t>(64 * part) +
                                             std::countr_zero(bits));
      }
    }
  }

 private:
  std::uint64_t place(std::int64_t q) const { return static_cast<std::uint64_t>(q - least_); }
  std::size_t part_of(std::int64_t q) const { return static_cast<std::size_t>(place(q) / 64); }
  std::uint64_t bit_of(std::int64_t q) const { return std::uint64_t{1} << (place(q) % 64); }
  bool has(std::int64_t q) const { return (bits_[part_of(q)] & bit_of(q)) != 0; }

  std::int64_t least_ = 0;
  std::uint64_t* bits_ = nullptr;
  std::uint32_t* before_ = nullptr;
  std::uint16_t* table_ = nullptr;  ///< Table of the ranks, or null.
  std::size_t n_parts_ = 0;
  std::size_t n_words_ = 0;
};

}  // namespace tailrace::trz
