// Two samples: equally spaced positions, and the positions of one byte value.

#include "codec/match_sample.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "trz/entropy/huffman.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kFarthestMatch = 32U << 10;

/// Looks for matches from a sample of a segment's positions, among the same sample of all
/// positions.
class MatchSample {
 public:
  explicit MatchSample(std::span<const std::uint8_t> all) : all_(all) {}

  /// True if matches in the segment at `begin` would save enough. Call for the segments in order.
  bool is_worth_it(std::size_t begin) {
    begin_ = begin;
    reaches_back_ = false;
    constexpr double enough = 1.0 / 256;  // share of the literals' bits
    trz::Histogram counts{};
    for (std::size_t i = 0; i < kNPieces; ++i) {
      trz::count_bytes(all_.subspan(begin + i * (segment_bytes / kNPieces), piece_bytes), counts);
    }
    bits_of_literal_ = entropy(counts, n_counted);
    if (bits_of_literal_ < kFewBits) return true;
    // Shorter matches than these cost more than literals, and random ones are too frequent.
    constexpr double cheapest_match = 16;
    constexpr double shortest_of_deflate = 3;
    const auto shortest = static_cast<unsigned>(
        std::ceil(std::max(cheapest_match / bits_of_literal_, shortest_of_deflate)));
    compared_ = ~std::uint64_t{0} >> (64 - 8 * shortest);
    const double to_save = enough * segment_bytes * bits_of_literal_;

    // Equally spaced positions find runs, and repeated patterns of any period that has a multiple
    // among these distances.
    double saved = 0;
    const std::size_t end = begin + segment_bytes - longest;
    constexpr std::size_t spacing = 16;
    for (std::size_t at = begin; at < end; at += spacing) {
      saved += spacing * saved_at(at, by_place_);
      if (saved >= to_save) return true;
    }
    // The positions of one byte value find single repetitions at any distance.
    choose_mark(counts);
    const double one_in = static_cast<double>(n_counted) / std::max(1U, counts[mark_]);
    for (std::size_t at = begin; at < end; ++at) {
      const void* found = std::memchr(&all_[at], mark_, end - at);
      if (found == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - all_.data());
      saved += one_in * saved_at(at, by_mark_);
      if (saved >= to_save) return true;
    }
    return false;
  }
  /// True if some of these matches refer to earlier segments.
  bool reaches_back() const { return reaches_back_; }

 private:
  /// Limit of bits per literal. Below it, a whole number of bits per literal wastes too much, and
  /// samples find too little.
  static constexpr double kFewBits = 2;
  static constexpr std::size_t longest = 32;
  static constexpr std::size_t n_slots = 4096;
  static constexpr std::size_t kNPieces = 4;  // Pieces of the segment that are counted.
  static constexpr std::size_t piece_bytes = 2048;
  static constexpr std::uint32_t n_counted = kNPieces * piece_bytes;
  using Slots = std::array<std::uint32_t, n_slots>;

  static double entropy(const trz::Histogram& counts, double n) {
    float bits = 0;
    for (const std::uint32_t count : counts) {
      if (count > 0) bits -= static_cast<float>(count) * std::log2(static_cast<float>(count));
    }
    return std::log2(n) + static_cast<double>(bits) / n;
  }

  /// Choose the mark: the byte value whose frequency is closest to one in 32. The previous
  /// segment's mark is reused while its frequency is acceptable, since only positions with the same
  /// mark are compared.
  void choose_mark(const trz::Histogram& counts) {
    constexpr std::int64_t aim = n_counted / 32;
    if (counts[mark_] >= n_counted / 1024 && counts[mark_] <= n_counted / 2) return;
    std::size_t best = 0;
    std::int64_t best_off = std::numeric_limits<std::int64_t>::max();
    for (std::size_t s = 0; s < counts.size(); ++s) {
      const std::int64_t off = std::abs(std::int64_t{counts[s]} - aim);
      if (counts[s] == 0 || off >= best_off) continue;
      best = s;
      best_off = off;
    }
    mark_ = static_cast<std::uint8_t>(best);
  }

  /// The first bytes of a possible match.
  std::uint64_t word_at(const std::uint8_t* at) const {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word & compared_;
  }

  /// Bits that a match here saves, per byte.
  double saved_at(std::size_t at, Slots& slots) {
    const std::uint8_t* here = &all_[at];
    const std::uint64_t word = word_at(here);
    std::uint32_t& slot = slots[word * 0x9E3779B97F4A7C15U >> 52];
    const std::size_t before = std::exchange(slot, static_cast<std::uint32_t>(at) + 1);
    if (before == 0 || at + 1 - before > kFarthestMatch) return 0;
    const std::uint8_t* there = &all_[before - 1];
    if (word != word_at(there)) return 0;
    const auto n = static_cast<double>(std::mismatch(here, here + longest, there).first - here);
    // Codes for length and distance, and the distance's extra bits.
    const auto bits_of_match = static_cast<double>(11 + std::bit_width(at + 1 - before));
    const double saved = bits_of_literal_ - bits_of_match / n;
    if (saved <= 0) return 0;
    reaches_back_ = reaches_back_ || before - 1 < begin_;
    return saved;
  }

  std::span<const std::uint8_t> all_;
  double bits_of_literal_ = 0;
  std::uint64_t compared_ = 0;
  std::size_t begin_ = 0;
  std::uint8_t mark_ = 0;
  bool reaches_back_ = false;
  Slots by_place_{};
  Slots by_mark_{};
};

}  // namespace

void judge_segments(std::span<const std::uint8_t> values, std::vector<bool>& by_search) {
  by_search.clear();
  MatchSample sample(values);
  for (std::size_t at = 0; values.size() - at >= segment_bytes; at += segment_bytes) {
    by_search.push_back(sample.is_worth_it(at));
    // A part that is searched cannot refer to bytes before it, so search the segments before, too.
    if (!by_search.back() || !sample.reaches_back()) continue;
    const std::size_t n_back = std::min(kFarthestMatch / segment_bytes, by_search.size() - 1);
    std::fill(by_search.end() - 1 - static_cast<std::ptrdiff_t>(n_back), by_search.end(), true);
  }
}

}  // namespace tailrace
