// FFTW for planes and lines; the transposition between them by MPI.

#include "cosmo/slab_fft.hpp"

#include <algorithm>

namespace cosmo {
namespace {

fftw_complex* fftw(Complex* values) { return reinterpret_cast<fftw_complex*>(values); }

// Estimated plans for any alignment: the same instructions, and so the same bits, on every rank and
// in every run.
constexpr unsigned kFlags = FFTW_ESTIMATE | FFTW_UNALIGNED;

}  // namespace

SlabFft::SlabFft(const Slabs& slabs) : slabs_(slabs), n_z_(slabs.n / 2 + 1) {
  const int n = slabs_.n;
  const std::size_t n_mine = std::size_t(slabs_.count()) * std::size_t(n) * std::size_t(n_z_);
  by_x_.resize(n_mine);
  by_y_.resize(n_mine);
  lines_.resize(n_mine);
  int place = 0;
  for (int r = 0; r < slabs_.n_ranks; ++r) {
    counts_.push_back(slabs_.count() * slabs_.count(r) * n_z_);
    places_.push_back(place);
    place += counts_.back();
  }
  std::vector<double> plane(slabs_.plane_cells());
  std::vector<Complex> modes(std::size_t(n) * std::size_t(n_z_));
  plane_forward_ = fftw_plan_dft_r2c_2d(n, n, plane.data(), fftw(modes.data()), kFlags);
  plane_inverse_ = fftw_plan_dft_c2r_2d(n, n, fftw(modes.data()), plane.data(), kFlags);
  line_forward_ = fftw_plan_dft_1d(n, fftw(modes.data()), fftw(modes.data()), FFTW_FORWARD, kFlags);
  line_inverse_ =
      fftw_plan_dft_1d(n, fftw(modes.data()), fftw(modes.data()), FFTW_BACKWARD, kFlags);
}

SlabFft::~SlabFft() {
  for (fftw_plan plan : {plane_forward_, plane_inverse_, line_forward_, line_inverse_}) {
    fftw_destroy_plan(plan);
  }
}

void SlabFft::forward_planes(const Mesh& mesh) {
  const auto n_z = static_cast<std::size_t>(n_z_);
  std::vector<double> plane(slabs_.plane_cells());
  std::vector<Complex> modes(std::size_t(slabs_.n) * n_z);
  for (int x = 0; x < slabs_.count(); ++x) {
    std::copy_n(mesh.plane(x), plane.size(), plane.begin());
    fftw_execute_dft_r2c(plane_forward_, plane.data(), fftw(modes.data()));
    for (int r = 0; r < slabs_.n_ranks; ++r) {
      const std::size_t n_rows = std::size_t(slabs_.count(r)) * n_z;
      std::copy_n(modes.data() + std::size_t(slabs_.first(r)) * n_z, n_rows,
                  by_x_.data() + std::size_t(places_[std::size_t(r)]) + std::size_t(x) * n_rows);
    }
  }
}

void SlabFft::transpose(const std::vector<Complex>& from, std::vector<Complex>& to) {
  MPI_Alltoallv(from.data(), counts_.data(), places_.data(), MPI_C_DOUBLE_COMPLEX, to.data(),
                counts_.data(), places_.data(), MPI_C_DOUBLE_COMPLEX, slabs_.comm);
}

void SlabFft::to_lines() { transpose(by_x_, by_y_); }
void SlabFft::to_planes() { transpose(by_y_, by_x_); }

void SlabFft::forward_lines() {
  const auto n = static_cast<std::size_t>(slabs_.n);
  const auto n_z = static_cast<std::size_t>(n_z_);
  const auto n_y = static_cast<std::size_t>(slabs_.count());
  // by_y_ is [x][our y][z] in total, because the ranks' slabs of x are consecutive.
  for (std::size_t y = 0; y < n_y; ++y) {
    for (std::size_t x = 0; x < n; ++x) {
      const Complex* const row = by_y_.data() + (x * n_y + y) * n_z;
      for (std::size_t z = 0; z < n_z; ++z) lines_[(y * n_z + z) * n + x] = row[z];
    }
    for (std::size_t z = 0; z < n_z; ++z) {
      fftw_complex* const line = fftw(lines_.data() + (y * n_z + z) * n);
      fftw_execute_dft(line_forward_, line, line);
    }
  }
}

void SlabFft::inverse_lines() {
  const auto n = static_cast<std::size_t>(slabs_.n);
  const auto n_z = static_cast<std::size_t>(n_z_);
  const auto n_y = static_cast<std::size_t>(slabs_.count());
  for (std::size_t y = 0; y < n_y; ++y) {
    for (std::size_t z = 0; z < n_z; ++z) {
      fftw_complex* const line = fftw(lines_.data() + (y * n_z + z) * n);
      fftw_execute_dft(line_inverse_, line, line);
    }
    for (std::size_t x = 0; x < n; ++x) {
      Complex* const row = by_y_.data() + (x * n_y + y) * n_z;
      for (std::size_t z = 0; z < n_z; ++z) row[z] = lines_[(y * n_z + z) * n + x];
    }
  }
}

void SlabFft::inverse_planes(Mesh& mesh) {
  const auto n_z = static_cast<std::size_t>(n_z_);
  std::vector<Complex> modes(std::size_t(slabs_.n) * n_z);
  for (int x = 0; x < slabs_.count(); ++x) {
    for (int r = 0; r < slabs_.n_ranks; ++r) {
      const std::size_t n_rows = std::size_t(slabs_.count(r)) * n_z;
      std::copy_n(by_x_.data() + std::size_t(places_[std::size_t(r)]) + std::size_t(x) * n_rows,
                  n_rows, modes.data() + std::size_t(slabs_.first(r)) * n_z);
    }
    fftw_execute_dft_c2r(plane_inverse_, fftw(modes.data()), mesh.plane(x));
  }
}

}  // namespace cosmo
