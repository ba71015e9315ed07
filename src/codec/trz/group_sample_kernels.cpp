// Group samples: the loops of group_sample_kernels.hpp, compiled once per instruction set.

#include "codec/trz/group_sample_kernels.hpp"

#include "codec/trz/lattice.hpp"
#include "codec/trz/sample_kernels.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

constexpr double kCodeMax = 0x1p30;

inline double rounded(double u) { return (u + kRoundF64) - kRoundF64; }

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
