// Pieces of a chunk: the loop around the kernels that all Lorenzo predictors share.
//
// A piece is at most kPieceValues values, of one plane for order >= 2, of any rows for order 0 and
// 1. Its integers go into a history buffer that still contains the row above. Planes and volumes of
// differences are updated in place, so the memory is two rows, plus one plane (order 3) and one
// volume (order 4). Words are 32 bits for quantised and most exact values, 64 bits for exact ones
// that need it.

#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "trz/kernels/lorenzo_kernels.hpp"
#include "trz/predict/lorenzo.hpp"

namespace tailrace::trz {

static_assert(kPieceValues <= kRowCodes && kPieceValues % 64 == 0);

/// Geometry of a chunk for the kernels: axes of one value omitted, all axes beyond the `order`
/// predicted ones folded. Orders 0 and 1 process one run of rows.
struct Walk {
  int order = 0;
  std::size_t row = 1;       ///< Values in a row.
  std::size_t plane = 1;     ///< Values within which order 2 predicts.
  std::size_t volume = 1;    ///< Values within which order 3 predicts.
  std::size_t n_values = 1;  ///< Values in all.
};

inline Walk make_walk(const Extents& extents, int order) {
  std::array<std::size_t, 4> predicted{};  // Fastest first.
  Walk walk;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::size_t extent = extents[extents.size() - 1 - axis];
    walk.n_values *= extent;
    if (axis < static_cast<std::size_t>(order) && extent > 1) {
      predicted[static_cast<std::size_t>(walk.order++)] = extent;
    }
  }
  walk.row = walk.order >= 1 ? predicted[0] : walk.n_values;
  walk.plane = walk.order >= 2 ? walk.row * predicted[1] : walk.n_values;
  walk.volume = walk.order >= 3 ? walk.plane * predicted[2] : walk.n_values;
  return walk;
}

/// Splits a chunk into pieces and stores the neighbours in Slot::rows. Word: int32_t, int64_t.
template <class Word>
class Pieces {
 public:
  Pieces(const Walk& walk, Workspace& workspace) : walk_(walk) {
    piece_.order = walk.order;
    piece_.row = walk.row;
    const std::size_t n_above = walk.order >= 2 ? walk.row : 0;
    n_history_ = n_above + std::max(n_above, 2 * kPieceValues);
    const std::size_t n_plane = walk.order >= 3 ? walk.plane : 0;
    const std::size_t n_volume = walk.order >= 4 ? walk.volume : 0;
    auto* area = workspace.area<Word>(Slot::rows, n_history_ + 2 * kPad + n_plane + n_volume);
    if (area == nullptr) return;
    history_ = area + kPad;
    plane_ = history_ + n_history_ + kPad;
    volume_ = plane_ + n_plane;
    if (n_volume > 0) std::memset(volume_, 0, n_volume * sizeof(Word));
    ok_ = true;
  }

  bool ok() const { return ok_; }

  /// Return the next piece, whose q the caller fills in; nullptr at the end.
  PieceOf<Word>* next() {
    index_ += piece_.n;
    end_ += piece_.n;
    if (index_ == walk_.n_values) return nullptr;
    const std::size_t in_plane = index_ % walk_.plane;
    if (in_plane == 0) begin_plane();
    piece_.at = index_ % walk_.row;
    piece_.n = std::min(kPieceValues, walk_.plane - in_plane);
    if (end_ + piece_.n > n_history_) {
      const std::size_t n_above = walk_.order >= 2 ? walk_.row : 0;
      std::memmove(history_, history_ + end_ - n_above, n_above * sizeof(Word));
      end_ = n_above;
    }
    piece_.q = history_ + end_;
    if (walk_.order >= 3) piece_.plane = plane_ + in_plane;
    if (walk_.order >= 4) piece_.volume = volume_ + index_ % walk_.volume;
    return &piece_;
  }

  /// Row-major index of the piece's first value.
  std::size_t index() const { return index_; }

 private:
  static constexpr std::size_t kPad = 64;  ///< Padding before and after the history, in values.

  void begin_plane() {
    end_ = 0;
    if (walk_.order < 2) return;
    end_ = walk_.row;
    std::memset(history_, 0, walk_.row * sizeof(Word));
    if (walk_.order >= 3 && index_ % walk_.volume == 0) {
      std::memset(plane_, 0, walk_.plane * sizeof(Word));
    }
  }

  Walk walk_;
  PieceOf<Word> piece_;
  Word* history_ = nullptr;
  Word* plane_ = nullptr;
  Word* volume_ = nullptr;
  std::size_t n_history_ = 0;
  std::size_t end_ = 0;
  std::size_t index_ = 0;
  bool ok_ = false;
};

/// Replace each marked word of n by the value before it (`before` precedes q[0]), and call mark(i)
/// for it. Bit i % 64 of marks[i / 64] belongs to q[i].
template <class Word, class Mark>
void hold_marked(const std::uint64_t* marks, std::size_t n, Word before, Word* q, Mark&& mark) {
  for (std::size_t begin = 0; begin < n; begin += 64) {
    for (std::uint64_t left = marks[begin / 64]; left != 0;) {
      const auto first = begin + static_cast<std::size_t>(std::countr_zero(left));
      const auto n_run = static_cast<std::size_t>(std::countr_one(left >> (first - begin)));
      const Word held = first == 0 ? before : q[first - 1];
      for (std::size_t i = first; i < first + n_run; ++i) {
        q[i] = held;
        mark(i);
      }
      if (first + n_run == begin + 64) break;
      left &= ~std::uint64_t{0} << (first + n_run - begin);
    }
  }
}

/// @param put  `put(index, n, q)` writes the lattice integers of values index .. index + n - 1 to
/// q.
template <class Put>
bool encode_pieces(const Extents& extents, int order, CodeWriter& codes, Workspace& workspace,
                   Put&& put) {
  const Walk walk = make_walk(extents, order);
  if (walk.order == 0) {
    for (std::size_t index = 0; index < walk.n_values;) {
      const std::size_t n = std::min(kPieceValues, walk.n_values - index);
      put(index, n, codes.reserve(n));
      codes.commit(n);
      index += n;
    }
    return true;
  }
  const LorenzoKernels& kernels = lorenzo_kernels(workspace.isa());
  Pieces<std::int32_t> pieces(walk, workspace);
  if (!pieces.ok()) return false;
  while (LorenzoPiece* piece = pieces.next()) {
    put(pieces.index(), piece->n, piece->q);
    kernels.difference(*piece, codes.reserve(piece->n));
    codes.commit(piece->n);
  }
  return true;
}

/// @param get  `get(index, n, q)` consumes the lattice integers.
template <class Get>
bool decode_pieces(CodeReader& codes, const Extents& extents, int order, Workspace& workspace,
                   Get&& get) {
  const Walk walk = make_walk(extents, order);
  if (walk.order == 0) {
    for (std::size_t index = 0; index < walk.n_values;) {
      const std::size_t n = std::min(kPieceValues, walk.n_values - index);
      get(index, n, codes.take(n));
      index += n;
    }
    return !codes.failed();
  }
  const LorenzoKernels& kernels = lorenzo_kernels(workspace.isa());
  Pieces<std::int32_t> pieces(walk, workspace);
  if (!pieces.ok()) return false;
  while (LorenzoPiece* piece = pieces.next()) {
    kernels.sum(*piece, codes.take(piece->n));
    get(pieces.index(), piece->n, piece->q);
  }
  return !codes.failed();
}

}  // namespace tailrace::trz
