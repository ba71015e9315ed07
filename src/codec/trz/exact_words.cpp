// Exact coding: values to predicted words and back, piece by piece.

#include <bit>

#include "codec/trz/exact.hpp"
#include "codec/trz/lorenzo_pieces.hpp"

namespace tailrace::trz {
namespace {

const WordKernels& kernels_of(DType dtype, const Workspace& workspace) {
  return exact_kernels(workspace.isa()).of_dtype[static_cast<std::size_t>(dtype)];
}

/// Fills in the words of pieces; special values hold the word before them.
template <class Word>
class WordSource {
 public:
  WordSource(const ExactValues& values, const ExactPlan& plan, PatchMap& patches,
             const Workspace& workspace)
      : kernels_(kernels_of(values.dtype, workspace)),
        data_(static_cast<const std::byte*>(values.data)),
        element_bytes_(dtype_bytes(values.dtype)),
        map_(word_map(plan.origin, plan.factor)),
        plan_(plan),
        patches_(patches) {}

  void operator()(std::size_t index, std::size_t n, Word* q) {
    const std::byte* from = data_ + index * element_bytes_;
    if constexpr (sizeof(Word) == 4) {
      kernels_.to_words(from, n, map_, q);
    } else {
      kernels_.to_wide(from, n, map_, q);
    }
    if (plan_.has_special) {
      std::array<std::uint64_t, kPieceValues / 64> marks;
      if (kernels_.find(from, n, plan_.special, marks.data())) {
        hold_marked(marks.data(), n, held_, q, [&](std::size_t i) { patches_.mark(index + i); });
      }
      held_ = q[n - 1];
    }
  }

 private:
  const WordKernels& kernels_;
  const std::byte* data_;
  std::size_t element_bytes_;
  WordMap map_;
  const ExactPlan& plan_;
  PatchMap& patches_;
  Word held_ = 0;
};

}  // namespace

WordMap word_map(std::uint64_t origin, std::uint64_t factor) {
  WordMap map;
  map.origin = origin;
  map.factor = factor;
  map.shift = static_cast<unsigned>(std::countr_zero(factor));
  const std::uint64_t odd = factor >> map.shift;
  // Newton's iteration: an inverse modulo 2^3 to start with, twice the bits in each round.
  map.inverse = odd;
  for (int round = 0; round < 5; ++round) map.inverse *= 2 - odd * map.inverse;
  return map;
}

bool encode_words(const ExactValues& values, const ExactPlan& plan, CodeWriter& codes,
                  PatchMap& patches, Workspace& workspace) {
  return encode_pieces(values.extents, plan.order, codes, workspace,
                       WordSource<std::int32_t>(values, plan, patches, workspace));
}

bool decode_words(CodeReader& codes, const ExactPlan& plan, DType dtype, const Extents& extents,
                  void* values, Workspace& workspace) {
  const WordKernels& kernels = kernels_of(dtype, workspace);
  const WordMap map = word_map(plan.origin, plan.factor);
  auto* to = static_cast<std::byte*>(values);
  return decode_pieces(codes, extents, plan.order, workspace,
                       [&](std::size_t index, std::size_t n, const std::int32_t* q) {
                         kernels.from_words(q, n, map, to + index * dtype_bytes(dtype));
                       });
}

bool encode_wide(const ExactValues& values, const ExactPlan& plan, std::int32_t* low,
                 std::int32_t* high, PatchMap& patches, Workspace& workspace) {
  const LorenzoKernels& kernels = lorenzo_kernels(workspace.isa());
  WordSource<std::int64_t> source(values, plan, patches, workspace);
  Pieces<std::int64_t> pieces(make_walk(values.extents, plan.order), workspace);
  if (!pieces.ok()) return false;
  while (WidePiece* piece = pieces.next()) {
    const std::size_t index = pieces.index();
    source(index, piece->n, piece->q);
    kernels.difference_wide(*piece, low + index, high + index);
  }
  return true;
}

bool decode_wide(const std::int32_t* low, const std::int32_t* high, const ExactPlan& plan,
                 DType dtype, const Extents& extents, void* values, Workspace& workspace) {
  const LorenzoKernels& kernels = lorenzo_kernels(workspace.isa());
  const WordKernels& words = kernels_of(dtype, workspace);
  const WordMap map = word_map(plan.origin, plan.factor);
  auto* to = static_cast<std::byte*>(values);
  Pieces<std::int64_t> pieces(make_walk(extents, plan.order), workspace);
  if (!pieces.ok()) return false;
  while (WidePiece* piece = pieces.next()) {
    const std::size_t index = pieces.index();
    kernels.sum_wide(*piece, low + index, high + index);
    words.from_wide(piece->q, piece->n, map, to + index * dtype_bytes(dtype));
  }
  return true;
}

}  // namespace tailrace::trz
