// Sweep: all methods at every bound under every bandwidth, in one process, with the results.

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cli_common.hpp"
#include "machine_facts.hpp"
#include "measure.hpp"
#include "prediction_check.hpp"
#include "space_sweep.hpp"

namespace tailrace::bench {

/// One point of the sweep.
struct SweepPoint {
  Setting setting;
  double bandwidth_bytes_per_s = 0;  ///< Bandwidth of all ranks together; 0: unlimited.
  std::vector<Row> rows;
  nlohmann::ordered_json document;
};

struct Sweep {
  MachineFacts machine;
  std::vector<SweepPoint> points;            ///< Sorted by bound, then by bandwidth.
  std::vector<PredictionCheck> predictions;  ///< One per bound; only for a page.
  std::vector<std::vector<SpaceRow>> space;  ///< One per bound; only for a page.
};

/// Run all points, and print a table for each if `table`. For a page, also compare the predicted
/// with the actual sizes and times of all chunks, and measure the space that layouts need.
/// Collective.
/// @error  like measure()
Result<Sweep> run_sweep(cli::Session& session, const BenchOptions& options, bool table,
                        bool for_page, Workload& work);

/// Medians of all methods over the bandwidths, one table per bound.
std::string sweep_summary_text(const Sweep& sweep);
/// Document of the only point, or all documents under "runs".
nlohmann::ordered_json sweep_json(const Sweep& sweep);

}  // namespace tailrace::bench
