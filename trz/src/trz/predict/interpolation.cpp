// Interpolation: the pyramid's memory, and the walk from its top to the finest level.

#include "trz/predict/interpolation.hpp"

#include <algorithm>
#include <optional>

#include "trz/kernels/interpolation_rows.hpp"
#include "trz/predict/joint_walk.hpp"
#include "trz/predict/level_walk.hpp"

namespace tailrace::trz {
namespace {

// --- the pyramid -------------------------------------------------------------------------------

template <class T>
struct PyramidMemory {
  std::array<const T*, kLevelsMax> original{};
  std::array<Planes<T>, kLevelsMax> recon{};
  Planes<T> even_rows;
  JointHalves<T> halves;
  Planes<T> finest_scratch;  ///< The encoder's planes of the finest level.
};

/// Allocate the memory of all levels; false if out of memory.
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
  const std::size_t half_plane = finest.y * even_row;
  const std::size_t n_ring = plan.last_axis == 2 ? 4 : 1;
  const std::size_t n_halves = JointHalves<T>::planes(finest.z);
  // Joint prediction needs halves; other predictions need even rows, and their encoder a few
  // planes.
  std::size_t n_scratch = half_plane;
  if (plan.last_axis == kJoint) {
    n_scratch = 2 * n_halves * half_plane;
  } else if (encoding && plan.last_axis != 0) {
    n_scratch += n_ring * finest.y * finest.x;
  }
  T* original = encoding ? workspace.area<T>(Slot::pyramid, n_original + 1) : nullptr;
  T* recon = workspace.area<T>(Slot::coarse, n_recon + 1);
  T* rows = workspace.area<T>(Slot::rows, n_scratch);
  if ((encoding && original == nullptr) || recon == nullptr || rows == nullptr) return false;
  for (int l = 1; l < levels.n_levels; ++l) {
    const LevelExtents& e = levels.at(l);
    const auto at = static_cast<std::size_t>(l);
    memory.original[at] = original;
    if (encoding) original += e.count();
    memory.recon[at] = {recon + ghost_room(e.x), padded_row(e.x), e.y * padded_row(e.x), 0};
    recon += e.z * e.y * padded_row(e.x);
  }
  const std::size_t room = ghost_room((finest.x + 1) / 2);
  memory.even_rows = {rows + room, even_row, half_plane, 0};
  memory.halves = {rows + room, rows + n_halves * half_plane + room, even_row, half_plane,
                   JointHalves<T>::even_planes(finest.z)};
  T* const behind = rows + half_plane;
  memory.finest_scratch = {behind, finest.x, finest.y * finest.x, plan.last_axis == 2 ? n_ring : 0};
  if (plan.last_axis != 2) memory.finest_scratch.plane_stride = 0;  // All planes share one buffer.
  return true;
}

/// Code the top level value by value, each predicted by the previous one.
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

/// Code the levels from `first` down to the finest.
template <class T, class Coder>
void code_levels(const Levels& levels, int first, const PyramidMemory<T>& memory, const T* values,
                 const Planes<T>& finest, const InterpolationPlan& plan, const Lattice<T>& lattice,
                 Coder& coder) {
  const LevelExtents& chunk = levels.at(0);
  for (int l = first; l >= 0; --l) {
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
      if (plan.last_axis == kJoint) {
        JointWalk<T, Coder>(work, memory.halves, plan, coder).run();
      } else {
        LevelWalk<T, Coder>(work, plan, coder).run();
      }
    }
  }
}

/// Allocate the finest level and the next coarser one, whose values are given.
template <class T>
std::optional<Levels> lay_out_refinement(const Extents& extents, const InterpolationPlan& plan,
                                         bool encoding, const T* coarse, Workspace& workspace,
                                         PyramidMemory<T>& memory) {
  Levels levels(extents);
  levels.n_levels = 2;
  if (!lay_out(levels, plan, encoding, workspace, memory)) return std::nullopt;
  const LevelExtents& e = levels.at(1);
  for (std::size_t z = 0; z < e.z; ++z) {
    for (std::size_t y = 0; y < e.y; ++y) {
      std::copy_n(coarse + (z * e.y + y) * e.x, e.x, memory.recon[1].row(z, y));
    }
  }
  return levels;
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
  code_levels(levels, levels.top(), memory, values, finest, plan, lattice, coder);
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
  code_levels<T>(levels, levels.top(), memory, nullptr, finest, plan, lattice, coder);
  return !codes.failed();
}

template <class T>
bool refinement_encode(const T* values, const Extents& extents, const InterpolationPlan& plan,
                       const Lattice<T>& lattice, const T* fill, const T* coarse, CodeWriter& codes,
                       PatchMap& patches, Workspace& workspace) {
  PyramidMemory<T> memory;
  const auto levels = lay_out_refinement(extents, plan, true, coarse, workspace, memory);
  if (!levels) return false;
  EncodingRows<T> coder(lattice, fill, codes, patches, workspace.isa());
  code_levels(*levels, 0, memory, values, memory.finest_scratch, plan, lattice, coder);
  return true;
}

template <class T>
bool refinement_decode(CodeReader& codes, const Extents& extents, const InterpolationPlan& plan,
                       const Lattice<T>& lattice, const T* coarse, T* values,
                       Workspace& workspace) {
  PyramidMemory<T> memory;
  const auto levels = lay_out_refinement(extents, plan, false, coarse, workspace, memory);
  if (!levels) return false;
  DecodingRows<T> coder(codes, workspace.isa());
  const LevelExtents& e = levels->at(0);
  const Planes<T> finest = {values, e.x, e.x * e.y, 0};
  code_levels<T>(*levels, 0, memory, nullptr, finest, plan, lattice, coder);
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
template bool refinement_encode(const float*, const Extents&, const InterpolationPlan&,
                                const Lattice<float>&, const float*, const float*, CodeWriter&,
                                PatchMap&, Workspace&);
template bool refinement_encode(const double*, const Extents&, const InterpolationPlan&,
                                const Lattice<double>&, const double*, const double*, CodeWriter&,
                                PatchMap&, Workspace&);
template bool refinement_decode(CodeReader&, const Extents&, const InterpolationPlan&,
                                const Lattice<float>&, const float*, float*, Workspace&);
template bool refinement_decode(CodeReader&, const Extents&, const InterpolationPlan&,
                                const Lattice<double>&, const double*, double*, Workspace&);

}  // namespace tailrace::trz
