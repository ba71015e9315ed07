// One pass over the candidates for each bound, then the cells.

#include "choice_grid.hpp"
#include "core/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tailrace::bench {
namespace {

/// A candidate is dropped if its lower bound exceeds the best time by this factor, which allows for
/// noise of the best time.
constexpr double kBoundedFactor = 1.1;
constexpr double kSlowerFactor = 2;
/// A candidate whose first write takes this many times the fastest write gets no second one.
constexpr double kHopelessFactor = 6;
/// Short runs are repeated until they add up to this time, within limits.
constexpr double kSecondsEach = 0.5;
constexpr std::uint64_t kRunsMax = 15;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

struct Candidate {
  ChoiceRow row;
  std::unique_ptr<Method> method;
  double once_s = 0;  ///< Time of one write without a limit.
};

/// All cells of one bound.
class BoundRun {
 public:
  BoundRun(ChoiceRun& run, const ErrorBound& bound) : run_(run), bound_(bound) {}

  /// Write once with every candidate, without a limit, and check the outputs.
  Status prepare() {
    set_bound(bound_, run_.options.field_bounds, run_.work);
    run_.limit.set_bytes_per_s(0);
    double fastest_s = std::numeric_limits<double>::infinity();
    for (const std::string& codec : run_.candidates) {
      Candidate candidate;
      candidate.row.codec = codec;
      Result<std::unique_ptr<Method>> made = make(codec, {bound_, {}, ""});
      if (!made.ok()) {
        candidate.row.state = "refused";
        candidate.row.remark = made.status().message();
      } else {
        candidate.method = std::move(*made);
        const Status checked = write_checked(candidate);
        if (checked.code() == Code::bound_broken) {
          // Not a valid rival, however fast: verification would have stored the data uncompressed.
          candidate.row.state = "refused";
          candidate.row.remark = "breaks its bound";
          candidates_.push_back(std::move(candidate));
          continue;
        }
        TAILRACE_TRY(checked.within(codec));
        if (candidate.once_s < kHopelessFactor * fastest_s) {
          // Write again, because the first write of a codec loads its plug-in.
          TAILRACE_TRY(write_checked(candidate).within(codec));
        }
        fastest_s = std::min(fastest_s, candidate.once_s);
      }
      candidates_.push_back(std::move(candidate));
    }
    return Status();
  }

  Result<ChoiceCell> measure_cell(const Bandwidth& bandwidth) {
    Result<std::string> profile_path = run_.profile.write_for(run_.comm, bandwidth);
    if (!profile_path.ok()) return profile_path.status();
    Candidate automatic;
    automatic.row.codec = "auto";
    Result<std::unique_ptr<Method>> made = make("auto", {bound_, bandwidth, *profile_path});
    if (!made.ok()) return made.status();
    automatic.method = std::move(*made);
    run_.limit.set_bytes_per_s(0);
    TAILRACE_TRY(write_checked(automatic).within("auto"));
    const double bytes_per_s = bandwidth.total(run_.comm.n_ranks());
    run_.limit.set_bytes_per_s(bytes_per_s);

    std::vector<Candidate*> turns = survivors(bytes_per_s);
    automatic.row.least_s = least_s(automatic, bytes_per_s);
    automatic.row.state = "measured";
    turns.push_back(&automatic);
    TAILRACE_TRY(take_turns(turns, bytes_per_s));
    return finish(bandwidth, automatic);
  }

 private:
  Result<std::unique_ptr<Method>> make(const std::string& codec, Setting setting) {
    FieldOptions named;
    TAILRACE_TRY(apply_field_options("codec=" + codec, named));
    TailraceSpec spec;
    spec.codec = named.codec;
    spec.settings = named.codec_settings;
    const BenchContext context{run_.mpi, run_.comm, run_.options, run_.work, std::move(setting)};
    return make_tailrace_method(context, codec, spec);
  }

  std::string path() const { return run_.folder + "/out.h5"; }

  Result<Run> write(Candidate& candidate) {
    const BenchContext context{run_.mpi, run_.comm, run_.options, run_.work, {}};
    const std::uint64_t n_before = run_.limit.n_bytes();
    Result<Run> done = run_once(context, *candidate.method, path());
    if (!done.ok()) return done.status();
    run_.comm.barrier();
    candidate.row.written_bytes = run_.limit.n_bytes() - n_before;
    if (!done->details.chosen.empty()) candidate.row.remark = done->details.chosen;
    return done;
  }

  Status write_checked(Candidate& candidate) {
    const Result<Run> done = write(candidate);
    if (!done.ok()) return done.status();
    candidate.once_s = done->seconds;
    Result<ReadBack> found = candidate.method->read_back(path());
    TAILRACE_TRY(run_.comm.agree(found.status()));
    combine(run_.comm, *found);
    TAILRACE_TRY(run_.comm.agree(candidate.method->remove(path())));
    if (found->n_bad == 0) return Status();
    return Status(Code::bound_broken,
                  std::to_string(found->n_bad) + " values of the output exceed their bounds");
  }

  double least_s(const Candidate& candidate, double bytes_per_s) const {
    return bytes_per_s > 0 ? static_cast<double>(candidate.row.written_bytes) / bytes_per_s : 0;
  }

  /// Candidates that could be the best under the limit, the most promising first. Sets the state of
  /// all candidates in their rows.
  std::vector<Candidate*> survivors(double bytes_per_s) {
    std::vector<Candidate*> order;
    for (Candidate& candidate : candidates_) {
      if (candidate.row.state == "refused") continue;
      candidate.row.least_s = least_s(candidate, bytes_per_s);
      candidate.row.seconds.clear();
      candidate.row.choose_s.clear();
      order.push_back(&candidate);
    }
    const auto expected_s = [](const Candidate* one) {
      return std::max(one->row.least_s, one->once_s);
    };
    std::sort(order.begin(), order.end(),
              [&](auto* a, auto* b) { return expected_s(a) < expected_s(b); });
    // Lower bound for all candidates, and about the time of the first one.
    const double best_s = order.empty() ? 0 : expected_s(order.front());
    std::vector<Candidate*> left;
    for (Candidate* candidate : order) {
      const bool bounded = candidate->row.least_s > kBoundedFactor * (best_s + kFixedS);
      const bool slower = candidate->once_s > kSlowerFactor * (best_s + kFixedS);
      candidate->row.state = bounded ? "bounded" : slower ? "slower" : "measured";
      if (!bounded && !slower) left.push_back(candidate);
    }
    return left;
  }

  /// Run A, B, C, A, B, C, ...; after the first round, drop candidates that cannot win.
  Status take_turns(std::vector<Candidate*>& turns, double bytes_per_s) {
    std::uint64_t n_rounds = run_.options.n_repeats;
    for (std::uint64_t round = 0; round < n_rounds; ++round) {
      double best_s = 0;
      for (Candidate* candidate : turns) {
        const Result<Run> done = write(*candidate);
        if (!done.ok()) return done.status().within(candidate->row.codec);
        TAILRACE_TRY(run_.comm.agree(candidate->method->remove(path())));
        candidate->row.seconds.push_back(done->seconds);
        candidate->row.choose_s.push_back(done->details.choose_s);
        // Best of the named candidates, so that auto cannot displace it.
        if (candidate->row.codec == "auto") continue;
        if (best_s == 0 || done->seconds < best_s) best_s = done->seconds;
      }
      if (round > 0 || best_s == 0) continue;
      const auto wanted = static_cast<std::uint64_t>(std::ceil(kSecondsEach / best_s));
      n_rounds = std::clamp(wanted, n_rounds, std::max(kRunsMax, n_rounds));
      std::erase_if(turns, [&](Candidate* candidate) {
        if (candidate->row.codec == "auto") return false;
        const bool bounded = bytes_per_s > 0 && candidate->row.least_s > kBoundedFactor * best_s;
        const bool slower = candidate->row.seconds.front() > kSlowerFactor * best_s;
        if (bounded || slower) candidate->row.state = bounded ? "bounded" : "slower";
        return bounded || slower;
      });
    }
    return Status();
  }

  Result<ChoiceCell> finish(const Bandwidth& bandwidth, const Candidate& automatic) {
    ChoiceCell cell;
    cell.bound = bound_;
    cell.bandwidth = bandwidth;
    bool any = false;
    for (const Candidate& candidate : candidates_) {
      cell.rows.push_back(candidate.row);
      if (candidate.row.state != "measured") continue;
      if (!any || candidate.row.median_s() < cell.rows[cell.best].median_s()) {
        cell.best = cell.rows.size() - 1;
      }
      any = true;
    }
    if (!any)
      return Status(Code::invalid_argument, "none of the candidates can write these fields");
    for (ChoiceRow& row : cell.rows) {
      // The best took longer than expected, so its bytes do not prove this candidate slower.
      const bool proven = row.least_s > cell.rows[cell.best].median_s();
      if (row.state == "bounded" && !proven) row.state = "left out";
    }
    cell.rows.push_back(automatic.row);
    return cell;
  }

  /// Generous estimate of a step's time without limit and codec; candidates that differ by less are
  /// measured.
  static constexpr double kFixedS = 0.02;

  ChoiceRun& run_;
  ErrorBound bound_;
  std::vector<Candidate> candidates_;
};

}  // namespace

double ChoiceRow::median_s() const { return median_of(seconds); }
double ChoiceRow::median_choose_s() const { return median_of(choose_s); }

Status measure_grid(ChoiceRun& run, const std::function<Status(const ChoiceCell&)>& done) {
  for (const ErrorBound& bound : run.options.bounds) {
    BoundRun cells(run, bound);
    TAILRACE_TRY(cells.prepare());
    for (const Bandwidth& bandwidth : run.options.bandwidths) {
      Result<ChoiceCell> cell = cells.measure_cell(bandwidth);
      if (!cell.ok()) return cell.status();
      TAILRACE_TRY(done(*cell));
    }
  }
  return Status();
}

}  // namespace tailrace::bench
