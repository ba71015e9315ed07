// Background: the expansion of the box, and the resulting factors of a leapfrog step.
//
// Lengths are comoving, in units of the box's edge; times in units of 1/H0; the mean density is 1.
// A particle's momentum is p = a^2 dx/dt, and the equation of motion is:
//   dp/dt = -grad(phi) - grad(h),   laplace(phi) = 3/2 delta / a,
// with h the specific enthalpy of gas (0 for dark matter). Expanding: an Einstein-de Sitter
// universe, a = t^(2/3) up to a constant, linear growth D = a. Static: a = 1 and D = exp(w t) with
// w = sqrt(3/2). D parametrises both, so that the same options mean the same growth in both. The
// integrals over a step are exact (Quinn et al. 1997).

#pragma once

#include <cmath>

namespace cosmo {

struct Background {
  bool is_expanding = true;

  /// sqrt(3/2): the collapse rate of a pressureless static medium.
  static double static_rate() { return std::sqrt(1.5); }

  /// The scale factor at linear growth D.
  double a(double growth) const { return is_expanding ? growth : 1; }
  /// p of a growing mode per unit of displacement at D = 1: a^2 dD/dt.
  double growing_momentum(double growth) const {
    return is_expanding ? std::pow(growth, 1.5) : static_rate() * growth;
  }
  /// Integral of 3/2 / a dt: the factor of -grad of the inverse Laplacian of delta.
  double kick(double from, double to) const {
    return is_expanding ? 3 * (std::sqrt(to) - std::sqrt(from)) : 1.5 * static_time(from, to);
  }
  /// Integral of 1 / a^2 dt.
  double drift(double from, double to) const {
    return is_expanding ? 2 * (1 / std::sqrt(from) - 1 / std::sqrt(to)) : static_time(from, to);
  }
  /// Ratio of phi to the inverse Laplacian of delta.
  double potential_factor(double growth) const { return 1.5 / a(growth); }
  /// H dt of a step: the change of ln(a), which determines the energy lost to the expansion.
  double expansion(double from, double to) const { return is_expanding ? std::log(to / from) : 0; }

 private:
  static double static_time(double from, double to) { return std::log(to / from) / static_rate(); }
};

}  // namespace cosmo
