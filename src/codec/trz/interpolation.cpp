// Interpolation: the walk over levels, planes and rows, the same for encoder and decoder.
//
// LevelWalk knows the order of rows and where their neighbours lie; a Coder turns one row into
// codes (EncodingRows) or codes into a row (DecodingRows). So both directions cannot disagree about
// the order. Reconstructed rows that serve as even rows of a pass along x carry ghosts: values
// beyond both ends, chosen such that the ordinary formula gives the edge's own prediction.

#include "codec/trz/interpolation.hpp"

#include "codec/trz/interpolation_kernels.hpp"
#include "codec/trz/pyramid.hpp"

namespace tailrace::trz {
namespace {

template <class T>
const InterpolationRowKernels<T>& row_kernels(Isa isa) {
  if constexpr (sizeof(T) == 4) {
    return interpolation_kernels(isa).f32;
  } else {
    return interpolation_kernels(isa).f64;
  }
}

template <class T>
RowWeights<T> weights_of(RowSpline spline) {
  RowWeights<T> weights;
  switch (spline) {
    case RowSpline::linear: weights.near = T(0.5); break;
    case RowSpline::cubic:
      weights.near = T(0.5625);
      weights.far = T(-0.0625);
      break;
    case RowSpline::natural:
      weights.near = T(0.575);
      weights.far = T(-0.075);
      break;
  }
  return weights;
}

// --- coders: a row to codes, codes to a row
// -------------------------------------------------------

/// A row of work and where its values lie in the chunk (finest level) or the pyramid.
template <class T>
struct Task {
  InterpolationRow<T> row;
  std::size_t first_index = 0;   ///< Row-major index in the chunk of the row's first value ...
  std::size_t index_stride = 1;  ///< ... and the distance to the next.
};

template <class T>
class EncodingRows {
 public:
  static constexpr bool encoding = true;

  EncodingRows(const Lattice<T>& lattice, const T* fill, CodeWriter& codes, PatchMap& patches,
               Isa isa)
      : kernels_(row_kernels<T>(isa)),
        lattice_(lattice),
        fill_(fill),
        codes_(codes),
        patches_(patches) {}

  void set_step(T step) {
    lattice_.step = step;
    lattice_.inverse_step = T(1) / step;
  }

  void run(const Task<T>& task, const RowWeights<T>& weights) {
    for (std::size_t begin = 0; begin < task.row.n; begin += kRowCodes) {
      InterpolationRow<T> part = task.row;
      part.n = std::min(kRowCodes, task.row.n - begin);
      part.x += begin * part.stride;
      part.a += begin;
      part.b += begin;
      part.c += begin;
      part.d += begin;
      if (part.where == Reconstruct::plain) part.recon += begin;
      if (part.where == Reconstruct::interleave) part.recon += 2 * begin;
      std::int32_t* codes = codes_.reserve(part.n);
      if (!kernels_.encode(part, weights, lattice_, fill_, codes)) {
        carefully(part, weights, codes, task.first_index + begin * task.index_stride,
                  task.index_stride);
      }
      codes_.commit(part.n);
    }
  }

  /// One value by itself: the top level.
  T one(T value, T prediction, std::size_t index) {
    InterpolationRow<T> row;
    T recon = prediction;
    row.x = &value;
    row.a = row.b = row.c = row.d = &prediction;
    row.recon = &recon;
    row.n = 1;
    RowWeights<T> weights;
    weights.edge = true;
    weights.four[1] = T(1);
    run({row, index, 1}, weights);
    return recon;
  }

 private:
  void carefully(const InterpolationRow<T>& part, const RowWeights<T>& weights, std::int32_t* codes,
                 std::size_t index, std::size_t index_stride) {
    kernels_.encode_careful(part, weights, lattice_, fill_, codes, failed_);
    for (std::size_t i = 0; i < part.n; ++i) {
      if (failed_[i] != 0) patches_.mark(index + i * index_stride);
    }
  }

  const InterpolationRowKernels<T>& kernels_;
  Lattice<T> lattice_;
  const T* fill_;
  CodeWriter& codes_;
  PatchMap& patches_;
  std::uint8_t failed_[kRowCodes];
};

template <class T>
class DecodingRows {
 public:
  static constexpr bool encoding = false;

  DecodingRows(CodeReader& codes, Isa isa) : kernels_(row_kernels<T>(isa)), codes_(codes) {}

  void set_step(T step) { step_ = step; }

  void run(const Task<T>& task, const RowWeights<T>& weights) {
    for (std::size_t begin = 0; begin < task.row.n; begin += kRowCodes) {
      InterpolationRow<T> part = task.row;
      part.n = std::min(kRowCodes, task.row.n - begin);
      part.a += begin;
      part.b += begin;
      part.c += begin;
      part.d += begin;
      part.recon += part.where == Reconstruct::interleave ? 2 * begin : begin;
      kernels_.decode(part, weights, step_, codes_.take(part.n));
    }
  }

  T one(T, T prediction, std::size_t) {
    T recon = prediction;
    InterpolationRow<T> row;
    row.a = row.b = row.c = row.d = &prediction;
    row.recon = &recon;
    row.n = 1;
    RowWeights<T> weights;
    weights.edge = true;
    weights.four[1] = T(1);
    run({row, 0, 1}, weights);
    return recon;
  }

 private:
  const InterpolationRowKernels<T>& kernels_;
  CodeReader& codes_;
  T step_ = 0;
};

// --- ghosts and edges
// -----------------------------------------------------------------------------

/// Give a row of n_even points the values beyond its ends that make prediction along it uniform:
/// row[-1] from a parabola; row[n_even] likewise and, where the last odd point lies beyond the last
/// even one, row[n_even + 1] such that its prediction is the straight line's.
template <class T>
void set_ghosts(T* row, std::size_t n_even, bool odd_at_end, const RowWeights<T>& w) {
  T* const end = row + n_even;
  if (n_even == 1) {
    row[-1] = end[0] = end[1] = row[0];
    return;
  }
  const T last = end[-1];
  const T slope = last - end[-2];
  if (n_even == 2) {
    row[-1] = row[0] - slope;
    end[0] = last + slope;
  } else {
    row[-1] = (row[0] - row[1]) * T(3) + row[2];
    end[0] = slope * T(3) + end[-3];
  }
  end[1] = end[0];
  if (!odd_at_end) return;
  const T line = last + slope * T(0.5);
  if (w.far == T(0)) {
    end[0] = last + slope;
  } else {
    end[1] = (line - (last + end[0]) * w.near) / w.far - end[-2];
  }
}

/// Weights for odd position k (between even positions k and k + 1) of an axis with n_even points,
/// and which neighbours exist: a missing one is replaced by b with weight 0.
template <class T>
struct EdgeChoice {
  RowWeights<T> weights;
  std::size_t a, b, c, d;
};

template <class T>
EdgeChoice<T> choose_edge(std::size_t k, std::size_t n_even, const RowWeights<T>& uniform) {
  const bool has_a = k >= 1;
  const bool has_c = k + 1 < n_even;
  const bool has_d = k + 2 < n_even;
  EdgeChoice<T> edge{uniform, has_a ? k - 1 : k, k, has_c ? k + 1 : k, has_d ? k + 2 : k};
  if (has_a && has_d) return edge;
  RowWeights<T>& w = edge.weights;
  w.edge = true;
  const auto set = [&w](T a, T b, T c, T d) {
    w.four[0] = a;
    w.four[1] = b;
    w.four[2] = c;
    w.four[3] = d;
  };
  if (!has_c) {
    if (has_a) {
      set(T(-0.5), T(1.5), T(0), T(0));
    } else {
      set(T(0), T(1), T(0), T(0));
    }
  } else if (uniform.far == T(0) || (!has_a && !has_d)) {
    set(T(0), T(0.5), T(0.5), T(0));
  } else if (has_d) {
    set(T(0), T(0.375), T(0.75), T(-0.125));
  } else {
    set(T(-0.125), T(0.75), T(0.375), T(0));
  }
  return edge;
}

// --- one level
// ------------------------------------------------------------------------------------

/// Everything that the walk over one level needs.
template <class T>
struct LevelWork {
  LevelExtents extents;
  const T* original = nullptr;  ///< Dense, this level's; encoder only.
  Planes<T> coarse;             ///< Next coarser level's reconstruction, rows with ghost room.
  Planes<T> even_rows;          ///< Scratch: one plane of even-x rows, with ghost room.
  Planes<T> recon;              ///< This level's reconstruction, or scratch for what is needed.
  bool keep_all = true;         ///< Whether all of recon is wanted afterwards.
  T* discard = nullptr;
  int last_axis = 0;
  std::size_t index_scale = 1;  ///< 2^level: distance of this level's points in the chunk.
  std::size_t chunk_row = 0, chunk_plane = 0;  ///< Strides of the chunk.
};

template <class T, class Coder>
class LevelWalk {
 public:
  LevelWalk(const LevelWork<T>& work, const InterpolationPlan& plan, Coder& coder)
      : work_(work),
        coder_(coder),
        along_x_(weights_of<T>(plan.spline[0])),
        along_y_(weights_of<T>(plan.spline[1])),
        along_z_(weights_of<T>(plan.spline[2])) {}

  void run() {
    const LevelExtents& e = work_.extents;
    if (work_.last_axis != 2 || e.z == 1) {
      for (std::size_t z = 0; z < e.z; ++z) plane(z);
      return;
    }
    for (std::size_t z = 0; z < e.z; z += 2) {
      plane(z);
      if (z >= 4) whole_plane(z - 3);
    }
    const std::size_t last_even = (e.z - 1) / 2 * 2;
    const std::size_t first_missing = last_even >= 4 ? last_even - 1 : 1;
    for (std::size_t z = first_missing; z < e.z; z += 2) whole_plane(z);
  }

 private:
  std::size_t n_even_x() const { return (work_.extents.x + 1) / 2; }
  std::size_t n_odd_x() const { return work_.extents.x / 2; }
  bool odd_x_at_end() const { return work_.extents.x % 2 == 0; }

  const T* original(std::size_t z, std::size_t y) const {
    return work_.original + (z * work_.extents.y + y) * work_.extents.x;
  }

  Task<T> task(std::size_t z, std::size_t y, std::size_t x, std::size_t stride, std::size_t n) {
    Task<T> t;
    if constexpr (Coder::encoding) t.row.x = original(z, y) + x;
    t.row.stride = stride;
    t.row.n = n;
    t.first_index = (z * work_.chunk_plane + y * work_.chunk_row + x) * work_.index_scale;
    t.index_stride = stride * work_.index_scale;
    return t;
  }

  /// The even-x values of row (z, y), once known.
  T* even_row(std::size_t z, std::size_t y) const {
    return z % 2 == 0 && y % 2 == 0 ? work_.coarse.row(z / 2, y / 2) : work_.even_rows.row(0, y);
  }

  /// Predict a row from rows of `source(k)`, at odd position k, and put it where `to` says.
  template <class Source>
  void predict(Task<T> t, std::size_t k, std::size_t n_even, const RowWeights<T>& uniform,
               Source source, T* to) {
    const EdgeChoice<T> edge = choose_edge<T>(k, n_even, uniform);
    t.row.a = source(edge.a);
    t.row.b = source(edge.b);
    t.row.c = source(edge.c);
    t.row.d = source(edge.d);
    t.row.recon = to;
    t.row.where = to == nullptr ? Reconstruct::discard : Reconstruct::plain;
    coder_.run(t, edge.weights);
  }

  /// Odd x of row (z, y) from its even ones; the whole row goes to recon if it is wanted.
  void odd_x(std::size_t z, std::size_t y, bool wanted) {
    T* even = even_row(z, y);
    set_ghosts(even, n_even_x(), odd_x_at_end(), along_x_);
    T* to = wanted ? work_.recon.row(z, y) : nullptr;
    if (to != nullptr && !odd_x_at_end()) to[work_.extents.x - 1] = even[n_even_x() - 1];
    if (n_odd_x() == 0) return;
    Task<T> t = task(z, y, 1, 2, n_odd_x());
    t.row.a = even - 1;
    t.row.b = even;
    t.row.c = even + 1;
    t.row.d = even + 2;
    t.row.recon = to;
    t.row.where = to == nullptr ? Reconstruct::discard : Reconstruct::interleave;
    coder_.run(t, along_x_);
  }

  void plane(std::size_t z) {
    const LevelExtents& e = work_.extents;
    const std::size_t n_even_y = (e.y + 1) / 2;
    const std::size_t n_even_z = (e.z + 1) / 2;
    if (z % 2 == 1) {
      for (std::size_t y = 0; y < e.y; y += 2) {
        predict(
            task(z, y, 0, 2, n_even_x()), z / 2, n_even_z, along_z_,
            [&](std::size_t k) { return work_.coarse.row(k, y / 2); }, even_row(z, y));
      }
    }
    if (work_.last_axis == 0) {
      for (std::size_t y = 1; y < e.y; y += 2) {
        predict(
            task(z, y, 0, 2, n_even_x()), y / 2, n_even_y, along_y_,
            [&](std::size_t k) { return even_row(z, 2 * k); }, even_row(z, y));
      }
      for (std::size_t y = 0; y < e.y; ++y) odd_x(z, y, work_.keep_all);
      return;
    }
    for (std::size_t y = 0; y < e.y; y += 2) odd_x(z, y, true);
    const bool wanted = work_.keep_all || work_.last_axis == 2;
    for (std::size_t y = 1; y < e.y; y += 2) {
      predict(
          task(z, y, 0, 1, e.x), y / 2, n_even_y, along_y_,
          [&](std::size_t k) { return work_.recon.row(z, 2 * k); },
          wanted ? work_.recon.row(z, y) : nullptr);
    }
  }

  /// Odd plane z from the whole even planes around it.
  void whole_plane(std::size_t z) {
    const LevelExtents& e = work_.extents;
    const std::size_t n_even_z = (e.z + 1) / 2;
    const bool dense = work_.recon.row_stride == e.x;
    const std::size_t n_rows = dense ? 1 : e.y;
    const std::size_t n = dense ? e.x * e.y : e.x;
    for (std::size_t y = 0; y < n_rows; ++y) {
      predict(
          task(z, y, 0, 1, n), z / 2, n_even_z, along_z_,
          [&](std::size_t k) { return work_.recon.row(2 * k, y); },
          work_.keep_all ? work_.recon.row(z, y) : nullptr);
    }
  }

  const LevelWork<T>& work_;
  Coder& coder_;
  RowWeights<T> along_x_, along_y_, along_z_;
};

// --- the pyramid
// ----------------------------------------------------------------------------------

/// Every second point of every axis.
template <class T>
void subsample(const T* fine, const LevelExtents& from, T* coarse) {
  const LevelExtents to = from.coarser();
  for (std::size_t z = 0; z < to.z; ++z) {
    for (std::size_t y = 0; y < to.y; ++y) {
      const T* row = fine + (2 * z * from.y + 2 * y) * from.x;
      for (std::size_t x = 0; x < to.x; ++x) coarse[x] = row[2 * x];
      coarse += to.x;
    }
  }
}

template <class T>
struct PyramidMemory {
  std::array<const T*, kLevelsMax> original{};
  std::array<Planes<T>, kLevelsMax> recon{};
  Planes<T> even_rows;
  Planes<T> finest_scratch;  ///< The encoder's planes of the finest level.
};

/// Lay out all that the levels need; false when memory is out.
template <class T>
bool lay_out(const Levels& levels, const InterpolationPlan& plan, bool encoding,
             Workspace& workspace, PyramidMemory<T>& memory) {
  std::size_t n_original = 0;
  std::size_t n_recon = 0;
  for (int l = 1; l < levels.n_levels; ++l) {
    const LevelExtents& e = levels.at(l);
    n_original += e.count();
    n_recon += e.z * e.y * padded_row(e.x);
  }
  const LevelExtents& finest = levels.at(0);
  const std::size_t even_row = padded_row((finest.x + 1) / 2);
  const std::size_t n_ring = plan.last_axis == 2 ? 4 : 1;
  const std::size_t n_scratch = encoding && plan.last_axis != 0 ? n_ring * finest.y * finest.x : 0;
  T* original = encoding ? workspace.area<T>(Slot::pyramid, n_original + 1) : nullptr;
  T* recon = workspace.area<T>(Slot::coarse, n_recon + 1);
  T* rows = workspace.area<T>(Slot::rows, finest.y * even_row + n_scratch);
  if ((encoding && original == nullptr) || recon == nullptr || rows == nullptr) return false;
  for (int l = 1; l < levels.n_levels; ++l) {
    const LevelExtents& e = levels.at(l);
    const auto at = static_cast<std::size_t>(l);
    memory.original[at] = original;
    if (encoding) original += e.count();
    memory.recon[at] = {recon + kGhosts, padded_row(e.x), e.y * padded_row(e.x), 0};
    recon += e.z * e.y * padded_row(e.x);
  }
  memory.even_rows = {rows + kGhosts, even_row, finest.y * even_row, 0};
  memory.finest_scratch = {rows + finest.y * even_row, finest.x, finest.y * finest.x,
                           plan.last_axis == 2 ? n_ring : 0};
  if (plan.last_axis != 2) memory.finest_scratch.plane_stride = 0;  // One plane serves all.
  return true;
}

/// The top level, value by value: each predicted by the one before.
template <class T, class Coder>
void code_top(const LevelExtents& e, const T* original, const LevelWork<T>& work, T first,
              Coder& coder) {
  T prediction = first;
  for (std::size_t z = 0; z < e.z; ++z) {
    for (std::size_t y = 0; y < e.y; ++y) {
      T* row = work.recon.row(z, y);
      for (std::size_t x = 0; x < e.x; ++x) {
        const T value = Coder::encoding ? original[(z * e.y + y) * e.x + x] : T(0);
        const std::size_t index =
            (z * work.chunk_plane + y * work.chunk_row + x) * work.index_scale;
        row[x] = prediction = coder.one(value, prediction, index);
      }
    }
  }
}

template <class T, class Coder>
void code_levels(const Levels& levels, const PyramidMemory<T>& memory, const T* values,
                 const Planes<T>& finest, const InterpolationPlan& plan, const Lattice<T>& lattice,
                 Coder& coder) {
  const LevelExtents& chunk = levels.at(0);
  for (int l = levels.top(); l >= 0; --l) {
    const auto at = static_cast<std::size_t>(l);
    LevelWork<T> work;
    work.extents = levels.at(l);
    work.original = l == 0 ? values : memory.original[at];
    work.recon = l == 0 ? finest : memory.recon[at];
    work.even_rows = memory.even_rows;
    work.keep_all = l > 0 || !Coder::encoding;
    work.last_axis = plan.last_axis;
    if (work.extents.y == 1 && work.last_axis == 1) work.last_axis = 0;
    if (work.extents.z == 1 && work.last_axis == 2) work.last_axis = 0;
    work.index_scale = std::size_t{1} << l;
    work.chunk_row = chunk.x;
    work.chunk_plane = chunk.x * chunk.y;
    coder.set_step(level_step(lattice.step, plan, l));
    if (l == levels.top()) {
      code_top(work.extents, work.original, work, lattice.offset, coder);
    } else {
      work.coarse = memory.recon[at + 1];
      LevelWalk<T, Coder>(work, plan, coder).run();
    }
  }
}

}  // namespace

template <class T>
T level_step(T finest_step, const InterpolationPlan& plan, int level) {
  double divisor = 1;
  const double beta = plan.beta_16 / 16.0;
  for (int l = 0; l < level && divisor < beta; ++l) divisor *= plan.alpha_16 / 16.0;
  if (divisor > beta) divisor = beta;
  return static_cast<T>(static_cast<double>(finest_step) / divisor);
}

template <class T>
bool interpolation_encode(const T* values, const Extents& extents, const InterpolationPlan& plan,
                          const Lattice<T>& lattice, const T* fill, CodeWriter& codes,
                          PatchMap& patches, Workspace& workspace) {
  const Levels levels(extents);
  PyramidMemory<T> memory;
  if (!lay_out(levels, plan, true, workspace, memory)) return false;
  const T* fine = values;
  for (int l = 1; l < levels.n_levels; ++l) {
    T* coarse = const_cast<T*>(memory.original[static_cast<std::size_t>(l)]);
    subsample(fine, levels.at(l - 1), coarse);
    fine = coarse;
  }
  EncodingRows<T> coder(lattice, fill, codes, patches, workspace.isa());
  Planes<T> finest = memory.finest_scratch;
  T top[kTopExtent * kTopExtent * kTopExtent];
  if (levels.n_levels == 1) {
    finest = {top, levels.at(0).x, levels.at(0).x * levels.at(0).y, 0};
  }
  code_levels(levels, memory, values, finest, plan, lattice, coder);
  return true;
}

template <class T>
bool interpolation_decode(CodeReader& codes, const Extents& extents, const InterpolationPlan& plan,
                          const Lattice<T>& lattice, T* values, Workspace& workspace) {
  const Levels levels(extents);
  PyramidMemory<T> memory;
  if (!lay_out(levels, plan, false, workspace, memory)) return false;
  DecodingRows<T> coder(codes, workspace.isa());
  const LevelExtents& e = levels.at(0);
  const Planes<T> finest = {values, e.x, e.x * e.y, 0};
  code_levels<T>(levels, memory, nullptr, finest, plan, lattice, coder);
  return !codes.failed();
}

template float level_step(float, const InterpolationPlan&, int);
template double level_step(double, const InterpolationPlan&, int);
template bool interpolation_encode(const float*, const Extents&, const InterpolationPlan&,
                                   const Lattice<float>&, const float*, CodeWriter&, PatchMap&,
                                   Workspace&);
template bool interpolation_encode(const double*, const Extents&, const InterpolationPlan&,
                                   const Lattice<double>&, const double*, CodeWriter&, PatchMap&,
                                   Workspace&);
template bool interpolation_decode(CodeReader&, const Extents&, const InterpolationPlan&,
                                   const Lattice<float>&, float*, Workspace&);
template bool interpolation_decode(CodeReader&, const Extents&, const InterpolationPlan&,
                                   const Lattice<double>&, double*, Workspace&);

}  // namespace tailrace::trz
