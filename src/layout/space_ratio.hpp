// The extra space ratio of the layout predictive: reserved over predicted bytes.
//
// Source: Jin et al. 2022, section III-D: figure 9 maps the weights of performance and storage to a
// ratio, eq. 3 widens it where the compression ratio is so high that predictions are poor.

#pragma once

#include "core/options.hpp"

namespace tailrace {

inline constexpr double smallest_space_ratio = 1.1;  ///< Below, a third of the chunks overflow.
inline constexpr double usual_space_ratio = 1.25;    ///< Equal weights.
inline constexpr double largest_space_ratio = 1.43;  ///< Above, space buys hardly any time.
inline constexpr double widened_above_ratio = 32;    ///< Compression ratio; eq. 3.
inline constexpr double widening = 4;                ///< Of the extra space; eq. 3.
inline constexpr double largest_widened_ratio = 2;   ///< eq. 3.

/// R_space of a goal: its ratio if it names one, else by the performance weight, figure 9.
double space_ratio(const SpaceGoal& goal);

/// r_space (eq. 3) of a chunk with this predicted compression ratio. @param ratio  R_space, >= 1.
double space_ratio_at(double ratio, double compression_ratio);

}  // namespace tailrace
