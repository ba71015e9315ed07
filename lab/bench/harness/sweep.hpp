// A sweep: all methods at every bound under every bandwidth, in one process, and what came of it.

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
  double bandwidth_bytes_per_s = 0;  ///< Of all ranks; 0: unlimited.
  std::vector<Row> rows;
  nlohmann::ordered_json document;
};

struct Sweep {
  MachineFacts machine;
  std::vector<SweepPoint> points;            ///< By bound, then by bandwidth.
  std::vector<PredictionCheck> predictions;  ///< By bound; only for a page, as:
  std::vector<std::vector<SpaceRow>> space;  ///< By bound.
};

/// Run all points, printing a table for each if `table`; for a page, hold predicted sizes and times
/// of all chunks against what they become, and try how much space layouts must keep. Collective.
/// @error as of measure().
Result<Sweep> run_sweep(cli::Session& session, const BenchOptions& options, bool table,
                        bool for_page, Workload& work);

/// Medians of all methods over the bandwidths, a table for each bound.
std::string sweep_summary_text(const Sweep& sweep);
/// The one point's document, or all of them under "runs".
nlohmann::ordered_json sweep_json(const Sweep& sweep);

}  // namespace tailrace::bench
