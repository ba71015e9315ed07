// Lorenzo prediction: the walk over a chunk, piece by piece, around the kernels.
//
// A piece is at most kPieceValues values of one plane (order >= 2) or of anything (order 0 and 1).
// Its lattice integers go into a history that still holds the row above; planes and volumes of
// differences are kept in place, so the memory is two rows, one plane (order 3), one volume more
// (order 4). A piece in which a value fails is quantised a second time, carefully.

#include "codec/trz/lorenzo.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/trz/lorenzo_kernels.hpp"

namespace tailrace::trz {

namespace {

constexpr std::size_t kPieceValues = 2048;
constexpr std::size_t kPad = 64;  ///< Before and behind the history, in values.
static_assert(kPieceValues <= kRowCodes);

/// A chunk as the kernels see it: axes of one value left out, the others folded outside the
/// `order` predicted ones. Order 0 and 1 are one run of rows.
struct Walk {
  int order = 0;
  std::size_t row = 1;       ///< Values in a row,
  std::size_t plane = 1;     ///< in what order 2 predicts within,
  std::size_t volume = 1;    ///< in what order 3,
  std::size_t n_values = 1;  ///< and in all.
};

Walk make_walk(const Extents& extents, int order) {
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

/// Cuts a chunk into pieces and keeps the neighbours.
class Pieces {
 public:
  Pieces(const Walk& walk, Workspace& workspace) : walk_(walk) {
    piece_.order = walk.order;
    piece_.row = walk.row;
    const std::size_t n_above = walk.order >= 2 ? walk.row : 0;
    n_history_ = n_above + std::max(n_above, 2 * kPieceValues);
    const std::size_t n_plane = walk.order >= 3 ? walk.plane : 0;
    const std::size_t n_volume = walk.order >= 4 ? walk.volume : 0;
    auto* area =
        workspace.area<std::int32_t>(Slot::rows, n_history_ + 2 * kPad + n_plane + n_volume);
    if (area == nullptr) return;
    history_ = area + kPad;
    plane_ = history_ + n_history_ + kPad;
    volume_ = plane_ + n_plane;
    if (n_volume > 0) std::memset(volume_, 0, n_volume * sizeof(std::int32_t));
    ok_ = true;
  }

  bool ok() const { return ok_; }

  /// The next piece, its q to be filled in; nullptr at the end.
  LorenzoPiece* next() {
    index_ += piece_.n;
    end_ += piece_.n;
    if (index_ == walk_.n_values) return nullptr;
    const std::size_t in_plane = index_ % walk_.plane;
    if (in_plane == 0) begin_plane();
    piece_.at = index_ % walk_.row;
    piece_.n = std::min(kPieceValues, walk_.plane - in_plane);
    if (end_ + piece_.n > n_history_) {
      const std::size_t n_above = walk_.order >= 2 ? walk_.row : 0;
      std::memmove(history_, history_ + end_ - n_above, n_above * sizeof(std::int32_t));
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
  void begin_plane() {
    end_ = 0;
    if (walk_.order < 2) return;
    end_ = walk_.row;
    std::memset(history_, 0, walk_.row * sizeof(std::int32_t));
    if (walk_.order >= 3 && index_ % walk_.volume == 0) {
      std::memset(plane_, 0, walk_.plane * sizeof(std::int32_t));
    }
  }

  Walk walk_;
  LorenzoPiece piece_;
  std::int32_t* history_ = nullptr;
  std::int32_t* plane_ = nullptr;
  std::int32_t* volume_ = nullptr;
  std::size_t n_history_ = 0;
  std::size_t end_ = 0;
  std::size_t index_ = 0;
  bool ok_ = false;
};

template <class T>
const LatticeKernels<T>& lattice_kernels(const LorenzoKernels& kernels) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

/// Quantises pieces, and remembers the q that a failing value takes.
template <class T>
class Quantiser {
 public:
  Quantiser(const LatticeKernels<T>& kernels, const Lattice<T>& lattice, const T* fill,
            PatchMap& patches)
      : kernels_(kernels), lattice_(lattice), fill_(fill), patches_(patches) {}

  void operator()(const T* values, std::size_t index, std::size_t n, std::int32_t* q) {
    if (!kernels_.quantise(values + index, n, lattice_, fill_, q)) {
      std::array<std::uint64_t, kPieceValues / 64> failed;
      kernels_.quantise_careful(values + index, n, lattice_, fill_, q, failed.data());
      for (std::size_t begin = 0; begin < n; begin += 64) {
        if (failed[begin / 64] != 0) {
          hold(failed[begin / 64], index + begin, begin == 0 ? held_ : q[begin - 1], q + begin);
        }
      }
    }
    held_ = q[n - 1];
  }

 private:
  /// Give failing values of 64 the q before them, and mark them.
  void hold(std::uint64_t failed, std::size_t index, std::int32_t held, std::int32_t* q) {
    const std::int32_t before_first = held;
    for (std::uint64_t left = failed; left != 0;) {
      const auto begin = static_cast<unsigned>(std::countr_zero(left));
      const auto n_run = static_cast<unsigned>(std::countr_one(left >> begin));
      held = begin == 0 ? before_first : q[begin - 1];
      for (unsigned i = begin; i < begin + n_run; ++i) {
        q[i] = held;
        patches_.mark(index + i);
      }
      if (begin + n_run == 64) break;
      left &= ~std::uint64_t{0} << (begin + n_run);
    }
  }

  const LatticeKernels<T>& kernels_;
  const Lattice<T>& lattice_;
  const T* fill_;
  PatchMap& patches_;
  std::int32_t held_ = 0;
};

/// `put(index, n, q)` fills in the lattice integers of values index .. index + n - 1.
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
  Pieces pieces(walk, workspace);
  if (!pieces.ok()) return false;
  while (LorenzoPiece* piece = pieces.next()) {
    put(pieces.index(), piece->n, piece->q);
    kernels.difference(*piece, codes.reserve(piece->n));
    codes.commit(piece->n);
  }
  return true;
}

/// `get(index, n, q)` takes the lattice integers.
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
  Pieces pieces(walk, workspace);
  if (!pieces.ok()) return false;
  while (LorenzoPiece* piece = pieces.next()) {
    kernels.sum(*piece, codes.take(piece->n));
    get(pieces.index(), piece->n, piece->q);
  }
  return !codes.failed();
}

}  // namespace

template <class T>
bool lorenzo_encode(const T* values, const Extents& extents, int order, const Lattice<T>& lattice,
                    const T* fill, CodeWriter& codes, PatchMap& patches, Workspace& workspace) {
  Quantiser<T> quantiser(lattice_kernels<T>(lorenzo_kernels(workspace.isa())), lattice, fill,
                         patches);
  return encode_pieces(
      extents, order, codes, workspace,
      [&](std::size_t index, std::size_t n, std::int32_t* q) { quantiser(values, index, n, q); });
}

template <class T>
bool lorenzo_decode(CodeReader& codes, const Extents& extents, int order, const Lattice<T>& lattice,
                    T* values, Workspace& workspace) {
  const LatticeKernels<T>& kernels = lattice_kernels<T>(lorenzo_kernels(workspace.isa()));
  return decode_pieces(codes, extents, order, workspace,
                       [&](std::size_t index, std::size_t n, const std::int32_t* q) {
                         kernels.restore(q, n, lattice, values + index);
                       });
}

bool lorenzo_encode_integers(const std::int32_t* values, const Extents& extents, int order,
                             CodeWriter& codes, Workspace& workspace) {
  return encode_pieces(extents, order, codes, workspace,
                       [&](std::size_t index, std::size_t n, std::int32_t* q) {
                         std::memcpy(q, values + index, n * sizeof(std::int32_t));
                       });
}

bool lorenzo_decode_integers(CodeReader& codes, const Extents& extents, int order,
                             std::int32_t* values, Workspace& workspace) {
  return decode_pieces(codes, extents, order, workspace,
                       [&](std::size_t index, std::size_t n, const std::int32_t* q) {
                         std::memcpy(values + index, q, n * sizeof(std::int32_t));
                       });
}

template bool lorenzo_encode<float>(const float*, const Extents&, int, const Lattice<float>&,
                                    const float*, CodeWriter&, PatchMap&, Workspace&);
template bool lorenzo_encode<double>(const double*, const Extents&, int, const Lattice<double>&,
                                     const double*, CodeWriter&, PatchMap&, Workspace&);
template bool lorenzo_decode<float>(CodeReader&, const Extents&, int, const Lattice<float>&, float*,
                                    Workspace&);
template bool lorenzo_decode<double>(CodeReader&, const Extents&, int, const Lattice<double>&,
                                     double*, Workspace&);

}  // namespace tailrace::trz
