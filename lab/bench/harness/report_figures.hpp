// Figures of a run's page: their content only; frontends/chart draws them.

#pragma once

#include <vector>

#include "chart/chart.hpp"
#include "sweep.hpp"

namespace tailrace::bench {

/// Bars of all methods, one panel per bandwidth: encode, exposed write, other. After Jin et al.
/// 2022, figures 16 and 17. All `points` must have the same bound.
chart::Figure bars_figure(std::span<const SweepPoint> points);

/// Median seconds over the storage's bandwidth, one line per method; needs two or more limited
/// points.
chart::Figure bandwidth_figure(std::span<const SweepPoint> points);

/// Predicted against measured encoded bytes and encode times, one point per chunk, coloured by
/// field. After Jin et al. 2022, figures 11 to 13.
chart::Figure prediction_figure(const PredictionCheck& check, const Workload& work);

/// Step time of the model against the measured one, one point per row that the model knows.
chart::Figure step_figure(std::span<const SweepPoint> points);

/// Storage overhead and overflow over the space ratio, and the two against each other. After Jin et
/// al. 2022, figures 9 and 15. `rows` come from space_sweep().
chart::Figure space_figure(const std::vector<SpaceRow>& rows);

}  // namespace tailrace::bench
