// The two stencils, plane by plane.

#include "cosmo/stencils.hpp"

namespace cosmo {
namespace {

std::size_t wrapped(int index, int n) {
  return static_cast<std::size_t>(index < 0 ? index + n : (index >= n ? index - n : index));
}

/// Applies (1, 2, 1) / 4 along one direction of a plane: `n` cells `stride` apart, for each `line`.
void smooth_lines(const std::vector<double>& from, std::vector<double>& to, int n,
                  std::size_t stride, std::size_t line_stride) {
  for (int line = 0; line < n; ++line) {
    const std::size_t base = static_cast<std::size_t>(line) * line_stride;
    for (int i = 0; i < n; ++i) {
      to[base + static_cast<std::size_t>(i) * stride] =
          0.5 * from[base + static_cast<std::size_t>(i) * stride] +
          0.25 *
              (from[base + wrapped(i - 1, n) * stride] + from[base + wrapped(i + 1, n) * stride]);
    }
  }
}

}  // namespace

void negative_gradient(const Slabs& slabs, const Mesh& potential, VectorMesh& field) {
  const int n = slabs.n;
  const auto row = static_cast<std::size_t>(n);
  const double far = n / 12.0;
  const double near = -8 * far;
  for (int x = 0; x <= slabs.count(); ++x) {
    const double* const here = potential.plane(x);
    for (int y = 0; y < n; ++y) {
      const std::size_t y0 = wrapped(y, n) * row;
      const std::size_t up1 = wrapped(y + 1, n) * row, up2 = wrapped(y + 2, n) * row;
      const std::size_t down1 = wrapped(y - 1, n) * row, down2 = wrapped(y - 2, n) * row;
      for (int z = 0; z < n; ++z) {
        const auto z0 = static_cast<std::size_t>(z);
        const std::size_t cell = y0 + z0;
        field[0].plane(x)[cell] =
            near * (potential.plane(x + 1)[cell] - potential.plane(x - 1)[cell]) +
            far * (potential.plane(x + 2)[cell] - potential.plane(x - 2)[cell]);
        field[1].plane(x)[cell] =
            near * (here[up1 + z0] - here[down1 + z0]) + far * (here[up2 + z0] - here[down2 + z0]);
        field[2].plane(x)[cell] =
            near * (here[y0 + wrapped(z + 1, n)] - here[y0 + wrapped(z - 1, n)]) +
            far * (here[y0 + wrapped(z + 2, n)] - here[y0 + wrapped(z - 2, n)]);
      }
    }
  }
}

void smooth(const Slabs& slabs, const Mesh& from, Mesh& to, int first, int end) {
  const std::size_t n_cells = slabs.plane_cells();
  const auto row = static_cast<std::size_t>(slabs.n);
  std::vector<double> along_x(n_cells), along_y(n_cells), all(n_cells);
  for (int x = first; x < end; ++x) {
    for (std::size_t cell = 0; cell < n_cells; ++cell) {
      along_x[cell] =
          0.5 * from.plane(x)[cell] + 0.25 * (from.plane(x - 1)[cell] + from.plane(x + 1)[cell]);
    }
    smooth_lines(along_x, along_y, slabs.n, row, 1);
    smooth_lines(along_y, all, slabs.n, 1, row);
    for (std::size_t cell = 0; cell < n_cells; ++cell) to.plane(x)[cell] = all[cell];
  }
}

}  // namespace cosmo
