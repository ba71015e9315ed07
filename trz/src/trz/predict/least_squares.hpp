// Least squares with few unknowns, from the sums of a sample.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "trz/kernels/fitted_kernels.hpp"

namespace tailrace::trz {

/// Normal equations of least squares with n <= kFitUnknowns unknowns, in f64 in a fixed order.
class LeastSquares {
 public:
  LeastSquares(std::size_t n, const FitSums& sums) : n_(n) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j <= i; ++j) sums_[i][j] = total(sums.product[i][j]);
      targets_[i] = total(sums.target[i]);
    }
  }
  /// Solve by Cholesky decomposition. Undetermined unknowns become 0. False if sums have
  /// overflowed.
  bool solve(double* unknowns) {
    std::array<bool, kFitUnknowns> free{};
    for (std::size_t i = 0; i < n_; ++i) {
      const double own = sums_[i][i];
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = sums_[i][j];
        for (std::size_t k = 0; k < j; ++k) sum -= sums_[i][k] * sums_[j][k];
        if (j < i) {
          sums_[i][j] = free[j] ? sum / sums_[j][j] : 0;
        } else {
          free[i] = sum > own * 1e-9 && sum > 0;
          sums_[i][i] = free[i] ? std::sqrt(sum) : 0;
        }
      }
      double target = targets_[i];
      for (std::size_t k = 0; k < i; ++k) target -= sums_[i][k] * targets_[k];
      targets_[i] = free[i] ? target / sums_[i][i] : 0;
    }
    for (std::size_t i = n_; i-- > 0;) {
      double sum = targets_[i];
      for (std::size_t k = i + 1; k < n_; ++k) sum -= sums_[k][i] * unknowns[k];
      unknowns[i] = free[i] ? sum / sums_[i][i] : 0;
      if (!(std::abs(unknowns[i]) < 1e6)) return false;
    }
    return true;
  }

 private:
  static double total(const double* lanes) {
    double sum = 0;
    for (std::size_t k = 0; k < kFitLanes; ++k) sum += lanes[k];
    return sum;
  }

  std::size_t n_;
  std::array<std::array<double, kFitUnknowns>, kFitUnknowns> sums_{};
  std::array<double, kFitUnknowns> targets_{};
};

/// Round to the nearest multiple of 1 / unit, within +-limit, in these units.
inline int rounded(double value, int unit, int limit) {
  const double scaled = std::floor(value * unit + 0.5);
  return static_cast<int>(std::clamp(scaled, -double(limit), double(limit)));
}

}  // namespace tailrace::trz
