// What linear theory says of the two instabilities, and the growth that a run had.

#pragma once

#include <cstddef>
#include <vector>

#include "plasma_particles.hpp"

namespace plasma {

/// The rate at which the seeded wave of two cold beams grows, omega_p; 0 where it does not.
///
/// Two-stream: both beams have half the density and speeds +-v along the wave, so that
///   1 = (W/2) (1/(w - kv)^2 + 1/(w + kv)^2),  W = gamma^-3  (see Birdsall and Langdon 1985, 5-6).
/// Weibel, or filamentation (Fried 1959): speeds +-v across the wave. The canonical momentum along
/// z is conserved, magnetic forces bunch the beams, and for growth at the rate s
///   s^4 + s^2 (k^2 + gamma^-3) - v^2 k^2 / gamma = 0.
double growth_rate(const Setup& setup);

/// Whether a run can be compared with growth_rate(): its beams are as good as cold, the seed is
/// well above the noise of the electrons, and before the later half of `n_steps` steps of the
/// linear phase the wave has outgrown those which the start excites as well.
bool can_be_compared(const Setup& setup, std::size_t n_steps);

/// A straight line through the logarithm of an amplitude.
struct Growth {
  double rate = 0;        // omega_p
  double e_foldings = 0;  // that the line covers
};

/// Over the later half of a linear phase. Both are 0 if that is less than 8 steps.
/// @param amplitudes  one for each time step, all > 0 but the first ones.
Growth measured_growth(const std::vector<double>& amplitudes, double time_step);

}  // namespace plasma
