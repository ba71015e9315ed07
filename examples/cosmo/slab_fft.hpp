// SlabFft: the Fourier transform of a mesh in slabs, divided into phases for the lanes.
//
//   forward_planes   transform each plane (y, z)          device
//   to_lines         transpose: lines along x             MPI, main thread
//   forward_lines    transform along x                    device
//   visit(...)       read or change the modes             device
//   inverse_lines, to_planes, inverse_planes              and back
//
// The result does not depend on the number of ranks: each line and plane is transformed as a unit,
// by the same plan.

#pragma once

#include <fftw3.h>

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

#include "cosmo/slab_mesh.hpp"

namespace cosmo {

using Complex = std::complex<double>;

/// A mode's wave numbers in units of 2 pi / box.
struct Mode {
  std::array<int, 3> k{};
  int n = 0;          ///< Cells per edge.
  double weight = 1;  ///< 2 for modes that also represent their complex conjugate.

  int k2() const { return k[0] * k[0] + k[1] * k[1] + k[2] * k[2]; }
  /// The frequency, 0 for the highest of an even mesh. That one has no sign, and so no derivative.
  int odd(int dimension) const {
    const int component = k[static_cast<std::size_t>(dimension)];
    return 2 * component == n || 2 * component == -n ? 0 : component;
  }
};

class SlabFft {
 public:
  explicit SlabFft(const Slabs& slabs);
  ~SlabFft();
  SlabFft(const SlabFft&) = delete;
  SlabFft& operator=(const SlabFft&) = delete;

  void forward_planes(const Mesh& mesh);
  void to_lines();  ///< Collective.
  void forward_lines();
  void inverse_lines();
  void to_planes();  ///< Collective.
  /// Not normalised: a forward plus an inverse transform multiply by n^3.
  void inverse_planes(Mesh& mesh);

  /// Calls of(mode, value) for each of this rank's modes, between forward_lines and inverse_lines.
  template <class Of>
  void visit(Of&& of) {
    const int n = slabs_.n;
    Mode mode;
    mode.n = n;
    for (int y = 0; y < slabs_.count(); ++y) {
      mode.k[1] = signed_frequency(slabs_.first() + y);
      for (int z = 0; z < n_z_; ++z) {
        mode.k[2] = z;
        mode.weight = z == 0 || 2 * z == n ? 1 : 2;
        Complex* const line =
            lines_.data() + (std::size_t(y) * std::size_t(n_z_) + std::size_t(z)) * std::size_t(n);
        for (int x = 0; x < n; ++x) {
          mode.k[0] = signed_frequency(x);
          of(static_cast<const Mode&>(mode), line[x]);
        }
      }
    }
  }
  /// The modes in storage order, for several inverse transforms of the same modes.
  std::vector<Complex>& modes() { return lines_; }

 private:
  int signed_frequency(int index) const { return 2 * index <= slabs_.n ? index : index - slabs_.n; }
  void transpose(const std::vector<Complex>& from, std::vector<Complex>& to);

  const Slabs slabs_;
  int n_z_;                     ///< n / 2 + 1: the others are complex conjugates.
  std::vector<Complex> by_x_;   ///< [rank][our x][its y][z], the order of sending.
  std::vector<Complex> by_y_;   ///< [rank][its x][our y][z]: the order of receiving.
  std::vector<Complex> lines_;  ///< [our y][z][x]
  std::vector<int> counts_;     ///< Complex numbers per rank, equal in both directions.
  std::vector<int> places_;
  fftw_plan plane_forward_, plane_inverse_, line_forward_, line_inverse_;
};

}  // namespace cosmo
