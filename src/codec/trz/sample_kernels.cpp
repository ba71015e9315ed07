// Sampling: the loops of sample_kernels.hpp, compiled once per instruction set.

#include "codec/trz/sample_kernels.hpp"

#include "codec/trz/lattice.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

constexpr double kClip = 1048576.0;

inline double rounded(double u) { return (u + kRoundF64) - kRoundF64; }
inline double magnitude(double v) { return v < 0 ? -v : v; }

/// |round(difference)|, clipped; a small integer in a double, so sums are exact in any order.
inline double code_size(double difference) {
  const double size = magnitude(rounded(difference));
  return size < kClip ? size : kClip;
}

template <class Difference>
inline std::uint64_t sum_of(Difference difference) {
  double sum = 0;
  double partial[8] = {};
  for (std::size_t i = 0; i < kRunValues; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) partial[k] += code_size(difference(i + k));
  }
  for (std::size_t k = 0; k < 8; ++k) sum += partial[k];
  return static_cast<std::uint64_t>(sum);
}

void interpolate(const double* u, const double* a, const double* b, const double* c,
                 const double* d, std::uint64_t* sums) {
  sums[0] = sum_of([=](std::size_t i) { return u[i] - (b[i] + c[i]) * 0.5; });
  sums[1] = sum_of(
      [=](std::size_t i) { return u[i] - ((b[i] + c[i]) * 0.5625 + (a[i] + d[i]) * -0.0625); });
  sums[2] = sum_of(
      [=](std::size_t i) { return u[i] - ((b[i] + c[i]) * 0.575 + (a[i] + d[i]) * -0.075); });
}

void measure(const double (*rows)[kRowValues], std::uint64_t* sums) {
  double q[n_sample_rows][kRowValues];
  for (std::size_t r = 0; r < n_sample_rows; ++r) {
    for (std::size_t i = 0; i < kRowValues; ++i) q[r][i] = rounded(rows[r][i]);
  }
  const double* u = rows[kRowHere] + kRunMargin;
  const double* h = q[kRowHere] + kRunMargin;
  const auto run_of = [&q](std::size_t row) { return q[row] + kRunMargin; };
  const auto dx = [&](std::size_t row, std::size_t i) {
    return q[row][kRunMargin + i] - q[row][kRunMargin + i - 1];
  };
  const auto dxy = [&](std::size_t row, std::size_t row_y, std::size_t i) {
    return dx(row, i) - dx(row_y, i);
  };
  const auto dxyz = [&](std::size_t i) {
    return dxy(kRowHere, kRowY1, i) - dxy(kRowZ1, kRowZ1Y1, i);
  };
  sums[kNone] = sum_of([=](std::size_t i) { return h[i]; });
  sums[kLorenzo1] = sum_of([&](std::size_t i) { return dx(kRowHere, i); });
  sums[kLorenzo2] = sum_of([&](std::size_t i) { return dxy(kRowHere, kRowY1, i); });
  sums[kLorenzo3] = sum_of([&](std::size_t i) { return dxyz(i); });
  sums[kLorenzo4] = sum_of([&](std::size_t i) {
    return dxyz(i) - (dxy(kRowT1, kRowT1Y1, i) - dxy(kRowT1Z1, kRowT1Z1Y1, i));
  });
  interpolate(u, h - 3, h - 1, h + 1, h + 3, sums + kLinearX);
  interpolate(u, run_of(kRowY3), run_of(kRowY1), run_of(kRowYp1), run_of(kRowYp3), sums + kLinearY);
  interpolate(u, run_of(kRowZ3), run_of(kRowZ1), run_of(kRowZp1), run_of(kRowZp3), sums + kLinearZ);
  const auto along = [](const double* a, const double* b, const double* c, const double* d,
                        std::size_t i) { return (b[i] + c[i]) * 0.5625 + (a[i] + d[i]) * -0.0625; };
  const auto x = [&](std::size_t i) { return along(h - 3, h - 1, h + 1, h + 3, i); };
  const auto y = [&](std::size_t i) {
    return along(run_of(kRowY3), run_of(kRowY1), run_of(kRowYp1), run_of(kRowYp3), i);
  };
  const auto z = [&](std::size_t i) {
    return along(run_of(kRowZ3), run_of(kRowZ1), run_of(kRowZp1), run_of(kRowZp3), i);
  };
  sums[kJointXY] = sum_of([&](std::size_t i) { return u[i] - (x(i) + y(i)) * 0.5; });
  sums[kJointXZ] = sum_of([&](std::size_t i) { return u[i] - (x(i) + z(i)) * 0.5; });
  sums[kJointYZ] = sum_of([&](std::size_t i) { return u[i] - (y(i) + z(i)) * 0.5; });
  sums[kJointXYZ] = sum_of([&](std::size_t i) { return u[i] - (x(i) + y(i) + z(i)) * (1.0 / 3); });
  sums[kCoarseX] = sum_of([=](std::size_t i) {
    const double* at = h + i;
    return u[i] - ((at[-2] + at[2]) * 0.5625 + (at[-6] + at[6]) * -0.0625);
  });
}

}  // namespace

extern const SampleKernels sample_kernels_table;
const SampleKernels sample_kernels_table = {measure};

}  // namespace tailrace::trz::TRZ_ISA
