// Lorenzo prediction: quantisation piece by piece, encoding and decoding.
//
// A piece in which a value fails is quantised a second time by a slower loop, so that the fast loop
// has no branch.

#include "trz/predict/lorenzo.hpp"

#include <algorithm>
#include <cstring>

#include "trz/kernels/lorenzo_kernels.hpp"
#include "trz/predict/lorenzo_pieces.hpp"

namespace tailrace::trz {

namespace {

template <class T>
const LatticeKernels<T>& lattice_kernels(const LorenzoKernels& kernels) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

/// Quantises pieces, and remembers the q for a failing value.
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
      hold_marked(failed.data(), n, held_, q, [&](std::size_t i) { patches_.mark(index + i); });
    }
    held_ = q[n - 1];
  }

 private:
  const LatticeKernels<T>& kernels_;
  const Lattice<T>& lattice_;
  const T* fill_;
  PatchMap& patches_;
  std::int32_t held_ = 0;
};

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

template <class T>
void quantise_all(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                  std::int32_t* q, PatchMap& patches, Isa isa) {
  Quantiser<T> quantiser(lattice_kernels<T>(lorenzo_kernels(isa)), lattice, fill, patches);
  for (std::size_t at = 0; at < n; at += kPieceValues) {
    quantiser(values, at, std::min(kPieceValues, n - at), q + at);
  }
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
template void quantise_all<float>(const float*, std::size_t, const Lattice<float>&, const float*,
                                  std::int32_t*, PatchMap&, Isa);
template void quantise_all<double>(const double*, std::size_t, const Lattice<double>&,
                                   const double*, std::int32_t*, PatchMap&, Isa);
template bool lorenzo_decode<float>(CodeReader&, const Extents&, int, const Lattice<float>&, float*,
                                    Workspace&);
template bool lorenzo_decode<double>(CodeReader&, const Extents&, int, const Lattice<double>&,
                                     double*, Workspace&);

}  // namespace tailrace::trz
