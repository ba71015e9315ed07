// Sampling: the loops of sample_kernels.hpp, compiled once per instruction set.

#include "trz/kernels/sample_kernels.hpp"

#include "trz/predict/lattice.hpp"

namespace tailrace::trz::TRZ_ISA {

namespace {

constexpr double kClip = 1048576.0;

inline double rounded(double u) { return (u + kRoundF64) - kRoundF64; }
inline double magnitude(double v) { return __builtin_fabs(v); }

template <class T>
inline bool load(const T* from, double offset, double inverse_step, T fill, double* row) {
  std::uint64_t bad = 0;
  for (std::size_t i = 0; i < kRowValues; ++i) {
    const T value = from[i];
    const double u = (static_cast<double>(value) - offset) * inverse_step;
    row[i] = u;
    // A NaN fails the comparison, too.
    bad |= static_cast<std::uint64_t>(!(magnitude(u) < kSampleLimit)) |
           static_cast<std::uint64_t>(value == fill);
  }
  return bad == 0;
}

bool load_f32(const float* from, double offset, double inverse_step, float fill, double* row) {
  return load(from, offset, inverse_step, fill, row);
}
bool load_f64(const double* from, double offset, double inverse_step, double fill, double* row) {
  return load(from, offset, inverse_step, fill, row);
}

/// |round(difference)|, clipped: a small integer in a double, so sums are exact in any order.
inline double code_size(double difference) {
  const double size = magnitude(rounded(difference));
  return size < kClip ? size : kClip;
}

template <class Difference>
inline std::uint64_t sum_of(Difference difference) {
  double partial[8] = {};
  for (std::size_t i = 0; i < kRunValues; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) partial[k] += code_size(difference(i + k));
  }
  double sum = 0;
  for (std::size_t k = 0; k < 8; ++k) sum += partial[k];
  return static_cast<std::uint64_t>(sum);
}

/// Measure the three splines between b and c, and return the cubic predictions in `cubic`.
void interpolate(const double* u, const double* a, const double* b, const double* c,
                 const double* d, double* cubic, std::uint64_t* sums) {
  for (std::size_t i = 0; i < kRunValues; ++i) {
    cubic[i] = (b[i] + c[i]) * 0.5625 + (a[i] + d[i]) * -0.0625;
  }
  sums[0] = sum_of([=](std::size_t i) { return u[i] - (b[i] + c[i]) * 0.5; });
  sums[1] = sum_of([=](std::size_t i) { return u[i] - cubic[i]; });
  sums[2] = sum_of(
      [=](std::size_t i) { return u[i] - ((b[i] + c[i]) * 0.575 + (a[i] + d[i]) * -0.075); });
}

/// Compute the differences of a row along x.
void differences(const double* row, double* dx) {
  for (std::size_t i = 0; i < kRunValues; ++i) {
    dx[i] = row[kRunMargin + i] - row[kRunMargin + i - 1];
  }
}

using Values = double[kRunValues];

void measure(const double (*rows)[kRowValues], std::size_t n_axes, std::uint64_t* sums) {
  double q[n_sample_rows][kRowValues];
  for (std::size_t r = 0; r < kRowsOfAxes[n_axes]; ++r) {
    for (std::size_t i = 0; i < kRowValues; ++i) q[r][i] = rounded(rows[r][i]);
  }
  const double* u = rows[row_here] + kRunMargin;
  const double* h = q[row_here] + kRunMargin;
  const auto run_of = [&q](std::size_t row) { return q[row] + kRunMargin; };
  Values here;
  Values x;
  differences(q[row_here], here);
  sums[unpredicted] = sum_of([=](std::size_t i) { return h[i]; });
  sums[lorenzo1] = sum_of([&](std::size_t i) { return here[i]; });
  interpolate(u, h - 3, h - 1, h + 1, h + 3, x, sums + linear_x);
  sums[coarse_x] = sum_of([=](std::size_t i) {
    const double* at = h + i;
    return u[i] - ((at[-2] + at[2]) * 0.5625 + (at[-6] + at[6]) * -0.0625);
  });
  if (n_axes < 2) return;
  Values above;
  Values y;
  differences(q[row_y1], above);
  sums[lorenzo2] = sum_of([&](std::size_t i) { return here[i] - above[i]; });
  interpolate(u, run_of(row_y3), run_of(row_y1), run_of(row_yp1), run_of(row_yp3), y,
              sums + linear_y);
  const double* y_before = run_of(row_y3);
  const double* y_behind = run_of(row_yp3);
  sums[far_y] = sum_of([=](std::size_t i) { return u[i] - (y_before[i] + y_behind[i]) * 0.5; });
  sums[joint_xy] = sum_of([&](std::size_t i) { return u[i] - (x[i] + y[i]) * 0.5; });
  if (n_axes < 3) return;
  Values behind;
  Values behind_above;
  Values z;
  differences(q[row_z1], behind);
  differences(q[row_z1y1], behind_above);
  sums[lorenzo2_xz] = sum_of([&](std::size_t i) { return here[i] - behind[i]; });
  for (std::size_t i = 0; i < kRunValues; ++i) {
    here[i] = (here[i] - above[i]) - (behind[i] - behind_above[i]);
  }
  sums[lorenzo3] = sum_of([&](std::size_t i) { return here[i]; });
  interpolate(u, run_of(row_z3), run_of(row_z1), run_of(row_zp1), run_of(row_zp3), z,
              sums + linear_z);
  const double* z_before = run_of(row_z3);
  const double* z_behind = run_of(row_zp3);
  sums[far_z] = sum_of([=](std::size_t i) { return u[i] - (z_before[i] + z_behind[i]) * 0.5; });
  sums[joint_xz] = sum_of([&](std::size_t i) { return u[i] - (x[i] + z[i]) * 0.5; });
  sums[joint_yz] = sum_of([&](std::size_t i) { return u[i] - (y[i] + z[i]) * 0.5; });
  sums[joint_xyz] = sum_of([&](std::size_t i) { return u[i] - (x[i] + y[i] + z[i]) * (1.0 / 3); });
  if (n_axes < 4) return;
  Values before[4];
  for (std::size_t k = 0; k < 4; ++k) differences(q[row_t1 + k], before[k]);
  sums[lorenzo4] = sum_of([&](std::size_t i) {
    return here[i] - ((before[0][i] - before[1][i]) - (before[2][i] - before[3][i]));
  });
}

std::uint64_t sum_of_differences(const double* row, const double* row_before) {
  double here[kRowValues];
  double before[kRowValues];
  for (std::size_t i = 0; i < kRowValues; ++i) {
    here[i] = rounded(row[i]);
    before[i] = rounded(row_before[i]);
  }
  const double* h = here + kRunMargin;
  const double* b = before + kRunMargin;
  return sum_of([=](std::size_t i) { return (h[i] - (h + i)[-1]) - (b[i] - (b + i)[-1]); });
}

}  // namespace

extern const SampleKernels sample_kernels_table;
const SampleKernels sample_kernels_table = {load_f32, load_f64, measure, sum_of_differences};

// --- group samples

namespace {

constexpr double kCodeMax = 0x1p30;

template <class T>
inline bool load(const T* from, std::size_t n, std::size_t stride, double offset,
                 double inverse_step, T fill, double* u) {
  std::uint64_t bad = 0;
  const auto one = [&](T value, std::size_t i) {
    u[i] = (static_cast<double>(value) - offset) * inverse_step;
    bad |= static_cast<std::uint64_t>(!(__builtin_fabs(u[i]) < kSampleLimit)) |
           static_cast<std::uint64_t>(value == fill);
  };
  if (stride == 1) {
    for (std::size_t i = 0; i < n; ++i) one(from[i], i);
  } else {
    for (std::size_t i = 0; i < n; ++i) one(from[i * stride], i);
  }
  return bad == 0;
}

bool load_f32(const float* from, std::size_t n, std::size_t stride, double offset,
              double inverse_step, float fill, double* u) {
  return load(from, n, stride, offset, inverse_step, fill, u);
}
bool load_f64(const double* from, std::size_t n, std::size_t stride, double offset,
              double inverse_step, double fill, double* u) {
  return load(from, n, stride, offset, inverse_step, fill, u);
}

void quantise(double* u, std::size_t n, double divisor) {
  const double unit = 1 / divisor;
  for (std::size_t i = 0; i < n; ++i) u[i] = rounded(u[i] * divisor) * unit;
}

void predict(const double* a, const double* b, const double* c, const double* d, double near,
             double far, std::size_t n, double* predicted) {
  for (std::size_t i = 0; i < n; ++i) predicted[i] += (b[i] + c[i]) * near + (a[i] + d[i]) * far;
}

void code(const double* u, const double* predicted, double divisor, std::size_t n,
          std::int32_t* codes) {
  for (std::size_t i = 0; i < n; ++i) {
    double difference = (u[i] - predicted[i]) * divisor;
    difference = difference < kCodeMax ? difference : kCodeMax;
    difference = difference > -kCodeMax ? difference : -kCodeMax;
    codes[i] = static_cast<std::int32_t>(rounded(difference));
  }
}

}  // namespace

extern const GroupSampleKernels group_sample_kernels_table;
const GroupSampleKernels group_sample_kernels_table = {load_f32, load_f64, quantise, predict, code};

}  // namespace tailrace::trz::TRZ_ISA
