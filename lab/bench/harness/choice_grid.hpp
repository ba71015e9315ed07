// The grid of `tailrace-lab bench choice`, cell by cell.
//
// A candidate is not measured where it cannot be the best: the bytes it writes, found by writing
// once, take longer through the limit than the best candidate takes in all ("bounded"), or it took
// more than twice the best's time even without a limit ("slower"). The others and auto take turns.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench_profile.hpp"
#include "measure.hpp"

namespace tailrace::bench {

/// One way to write, in one cell.
struct ChoiceRow {
  std::string codec;   ///< As on the command line; "auto".
  std::string state;   ///< "measured", "bounded", "slower", "left out", "refused".
  std::string remark;  ///< Why it was refused; what auto chose.
  std::uint64_t written_bytes = 0;
  double least_s = 0;  ///< What the limit makes of them.
  std::vector<double> seconds;
  std::vector<double> choose_s;  ///< The part of them in which auto chose; 0 of candidates.

  double median_s() const;
  double median_choose_s() const;
};

struct ChoiceCell {
  ErrorBound bound;
  Bandwidth bandwidth;
  std::vector<ChoiceRow> rows;  ///< Candidates, then auto.
  std::size_t best = 0;         ///< Of the candidates measured.

  const ChoiceRow& automatic() const { return rows.back(); }
  /// Time of auto over that of the best candidate.
  double over_best() const { return automatic().median_s() / rows[best].median_s(); }
  /// The same without the seconds of choosing, which a field costs once however often it is
  /// written.
  double later_over_best() const {
    return (automatic().median_s() - automatic().median_choose_s()) / rows[best].median_s();
  }
};

/// What a grid runs on.
struct ChoiceRun {
  MpiSession& mpi;
  Comm& comm;
  const BenchOptions& options;
  Workload& work;
  WriteLimit& limit;
  BenchProfile& profile;
  std::string folder;
  std::vector<std::string> candidates;  ///< "trz,preset=fast", ...
};

/// Measure all cells of options.bounds x options.bandwidths; `done` is called after each, on all
/// ranks. Collective. @error as of the methods; bound_broken.
Status measure_grid(ChoiceRun& run, const std::function<Status(const ChoiceCell&)>& done);

}  // namespace tailrace::bench
