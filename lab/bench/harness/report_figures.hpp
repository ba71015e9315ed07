// The plots of a run's page, as figures: what is drawn, not how it looks (frontends/chart does).

#pragma once

#include <vector>

#include "chart/chart.hpp"
#include "sweep.hpp"

namespace tailrace::bench {

/// Bars of all methods, a panel for each bandwidth of one bound: encode, exposed write, other.
/// After Jin et al. 2022, figures 16 and 17. `points` have one bound.
chart::Figure bars_figure(std::span<const SweepPoint> points);

/// Median seconds over the storage's bandwidth, one line a method; for two or more limited points.
chart::Figure bandwidth_figure(std::span<const SweepPoint> points);

/// Predicted against measured encoded bytes and encode times, a point for each chunk, coloured by
/// field. After Jin et al. 2022, figures 11 to 13.
chart::Figure prediction_figure(const PredictionCheck& check, const Workload& work);

/// The model's step time against the measured one, a point for each row that it knows.
chart::Figure step_figure(std::span<const SweepPoint> points);

/// Storage overhead and overflow over the space kept, and the one over the other.
/// After Jin et al. 2022, figures 9 and 15. `rows` are space_sweep()'s.
chart::Figure space_figure(const std::vector<SpaceRow>& rows);

}  // namespace tailrace::bench
