// Patches: the values of a chunk that are stored exactly, and their positions.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "trz/entropy/byte_section.hpp"
#include "trz/entropy/chunk_bytes.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

// --- PatchMap: marks the values of a chunk that are stored exactly, in addition to the codes.
//
// A predictor marks a value that its code cannot reproduce within the bound. It continues with the
// value that the decoder will have there (code 0: the prediction). The decoder decodes all values,
// then overwrites the marked ones. The map has one bit per value; the first mark() clears it.

class PatchMap {
 public:
  /// @param words  words_of(n_values) words, which need not be cleared.
  PatchMap(std::uint64_t* words, std::size_t n_values) : words_(words), n_values_(n_values) {}

  static constexpr std::size_t words_of(std::size_t n_values) { return (n_values + 63) / 64; }

  /// Mark the value at this row-major index. Marking a value twice is allowed.
  void mark(std::size_t index) {
    if (!any_) clear();
    words_[index / 64] |= std::uint64_t{1} << (index % 64);
  }
  bool any() const { return any_; }
  bool test(std::size_t index) const {
    return any_ && ((words_[index / 64] >> (index % 64)) & 1) != 0;
  }
  std::size_t count() const {
    std::size_t total = 0;
    if (any_) {
      for (std::size_t i = 0; i < words_of(n_values_); ++i) {
        total += static_cast<std::size_t>(std::popcount(words_[i]));
      }
    }
    return total;
  }
  /// The k-th marked index, k < count().
  std::size_t nth(std::size_t k) const {
    std::size_t word = 0;
    for (; k >= static_cast<std::size_t>(std::popcount(words_[word])); ++word) {
      k -= static_cast<std::size_t>(std::popcount(words_[word]));
    }
    std::uint64_t bits = words_[word];
    for (; k > 0; --k) bits &= bits - 1;
    return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }
  /// Call visit(index) for the marked indices in ascending order.
  template <class Visitor>
  void for_each(Visitor visit) const {
    for (std::size_t word = 0; any_ && word < words_of(n_values_); ++word) {
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  }
  const std::uint64_t* words() const { return words_; }
  std::size_t n_values() const { return n_values_; }

 private:
  void clear() {
    std::memset(words_, 0, words_of(n_values_) * sizeof(std::uint64_t));
    any_ = true;
  }

  std::uint64_t* words_;
  std::size_t n_values_;
  bool any_ = false;
};

// --- Patches: the values of a chunk that are stored exactly, and their positions.
//
// Patches form at most two sets. Values of the first set all have one bit pattern (a fill value,
// one kind of NaN), which is stored once with their positions. The second set has the other
// patches, with their values. Positions are one bit per value if more than one value in 32 is in
// the set, else the gaps between marked indices as varints. Positions and values are byte sections.

/// Upper limit of the bytes that write_patches writes.
std::size_t patches_bytes_max(std::size_t n_values, std::size_t n_patches,
                              std::size_t element_bytes);

/// The unsigned integer as wide as a floating-point element.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Write the marked values. T is an unsigned integer as wide as the elements.
/// Uses Slots section and transform. False if memory or space runs out.
template <class T>
bool write_patches(const T* values, const PatchMap& patches, const SectionPlan& plan,
                   ChunkWriter& out, Workspace& workspace);

/// Read the patches and store them in `values`. False if the input is inconsistent, or if out of
/// memory (*memory_out is then true).
template <class T>
bool apply_patches(ChunkReader& in, T* values, std::size_t n_values, Workspace& workspace,
                   bool* memory_out);

}  // namespace tailrace::trz
