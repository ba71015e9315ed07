// Linear theory of the two instabilities, and the measured growth of a run.

#pragma once

#include <cstddef>
#include <vector>

#include "plasma_particles.hpp"

namespace plasma {

/// Growth rate of the seeded wave of two cold beams, omega_p; 0 if it does not grow.
///
/// Two-stream (see Birdsall and Langdon 1985, 5-6): both beams have half the density and speeds +-v
/// along the wave. The dispersion relation is:
///   1 = (W/2) (1/(w - kv)^2 + 1/(w + kv)^2),  W = gamma^-3.
///
/// Weibel, or filamentation (Fried 1959): speeds +-v across the wave. The canonical momentum along
/// z is conserved, and magnetic forces bunch the beams. The growth rate s satisfies:
///   s^4 + s^2 (k^2 + gamma^-3) - v^2 k^2 / gamma = 0.
double growth_rate(const Setup& setup);

/// True if a run can be compared with growth_rate(). Its beams must be nearly cold, and the seed
/// well above the noise of the electrons. The wave must also outgrow other waves that the start
/// excites, before the later half of `n_steps` steps of the linear phase.
bool can_be_compared(const Setup& setup, std::size_t n_steps);

/// A straight line through the logarithm of an amplitude.
struct Growth {
  double rate = 0;        // omega_p
  double e_foldings = 0;  // covered by the line
};

/// Fits the later half of a linear phase. Both members are 0 if that half has fewer than 8 steps.
/// @param amplitudes  one for each time step, all > 0 except the first ones.
Growth measured_growth(const std::vector<double>& amplitudes, double time_step);

}  // namespace plasma
