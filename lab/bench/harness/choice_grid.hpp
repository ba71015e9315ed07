// Grid of `tailrace-lab bench choice`, cell by cell.
//
// A candidate that cannot be the best is not measured. "bounded": its bytes, known from one write,
// take longer through the limit than the best candidate takes in total. "slower": even without a
// limit it took more than twice the best's time. The other candidates and auto take turns.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench_profile.hpp"
#include "measure.hpp"

namespace tailrace::bench {

/// One codec in one cell.
struct ChoiceRow {
  std::string codec;   ///< Text from the command line; "auto".
  std::string state;   ///< "measured", "bounded", "slower", "left out", "refused".
  std::string remark;  ///< Reason of the refusal, or auto's choice.
  std::uint64_t written_bytes = 0;
  double least_s = 0;  ///< Time of the bytes at the limit: a lower bound.
  std::vector<double> seconds;
  std::vector<double> choose_s;  ///< Time in which auto chose, part of `seconds`; 0 for others.

  double median_s() const;
  double median_choose_s() const;
};

struct ChoiceCell {
  ErrorBound bound;
  Bandwidth bandwidth;
  std::vector<ChoiceRow> rows;  ///< Candidates, then auto.
  std::size_t best = 0;         ///< Index of the best measured candidate.

  const ChoiceRow& automatic() const { return rows.back(); }
  /// Time of auto divided by that of the best candidate.
  double over_best() const { return automatic().median_s() / rows[best].median_s(); }
  /// Same quotient without the time of choosing, which a field needs once, however often it is
  /// written.
  double later_over_best() const {
    return (automatic().median_s() - automatic().median_choose_s()) / rows[best].median_s();
  }
};

/// Environment of a grid.
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

/// Measure all cells of options.bounds x options.bandwidths, and call `done` after each, on all
/// ranks. Collective. @error  like the methods; bound_broken
Status measure_grid(ChoiceRun& run, const std::function<Status(const ChoiceCell&)>& done);

}  // namespace tailrace::bench
