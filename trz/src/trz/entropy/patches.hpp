// Patches: the values of a chunk that are stored exactly, and where they lie.

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

// --- PatchMap: which values of a chunk are stored exactly, beside the codes.
//
// A predictor marks a value that its code cannot bring back within the bound, and goes on with the
// value that the decoder will have there (code 0: the prediction). The decoder decodes everything,
// then overwrites the marked values. One bit per value, cleared when the first one is marked.

class PatchMap {
 public:
  /// `words` has room for words_of(n_values); it need not be cleared.
  PatchMap(std::uint64_t* words, std::size_t n_values) : words_(words), n_values_(n_values) {}

  static constexpr std::size_t words_of(std::size_t n_values) { return (n_values + 63) / 64; }

  /// Mark the value at this row-major index. Marking twice is fine.
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
  /// Visit the marked indices in ascending order.
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

// --- Patches: the values of a chunk that are stored exactly, and where they lie.
//
// At most two sets. The first holds values of one and the same bit pattern (a fill value, one kind
// of NaN), so only positions are stored; the second the others, with their values. Positions are
// the gaps between marked indices as varints, or one bit per value, whichever is shorter; both are
// byte sections, and so are the values.

/// Upper limit of write_patches' bytes.
std::size_t patches_bytes_max(std::size_t n_values, std::size_t n_patches,
                              std::size_t element_bytes);

/// The unsigned integer as wide as a floating-point element.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Write the marked values. T: an unsigned integer as wide as the elements.
/// Uses Slots patch_values and transform. False when memory or room is out.
template <class T>
bool write_patches(const T* values, const PatchMap& patches, const SectionPlan& plan,
                   ChunkWriter& out, Workspace& workspace);

/// Read the patches and put them into `values`. False on anything inconsistent, or when memory is
/// out (then *memory_out).
template <class T>
bool apply_patches(ChunkReader& in, T* values, std::size_t n_values, Workspace& workspace,
                   bool* memory_out);

}  // namespace tailrace::trz
