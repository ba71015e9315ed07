// Loops over bounds and bandwidths, and the summary tables.

#include "sweep.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "bench_profile.hpp"
#include "bench_report.hpp"
#include "report/text_table.hpp"
#include "run_folder.hpp"
#include "time_model.hpp"

namespace tailrace::bench {
namespace {

void warn_about_noise(const cli::Session& session, const BenchOptions& options,
                      const MachineFacts& machine) {
  const auto n_busy = static_cast<std::uint64_t>(session.comm.n_ranks_on_node());
  if (n_busy > machine.n_cores) {
    session.remark(fmt::format(
        "{} ranks share {} cores: waiting ranks slow down working ranks, mostly in rows of HDF5 "
        "(with Open MPI, --mca mpi_yield_when_idle 1 reduces this)",
        n_busy, machine.n_cores));
  } else if (machine.load_average > 0.5) {
    session.remark(fmt::format("the machine was busy at the start (load average {:.1f})",
                               machine.load_average));
  }
  if (options.n_repeats < 5)
    session.remark("the spread of fewer than 5 counted runs is not reliable");
}

}  // namespace

Result<Sweep> run_sweep(cli::Session& session, const BenchOptions& options, bool table,
                        bool for_page, Workload& work) {
  RunFolder folder(session.comm);
  TAILRACE_TRY(folder.make(options.folder));
  Result<std::unique_ptr<WriteLimit>> limit = WriteLimit::start(session.comm, folder.path());
  if (!limit.ok()) return limit.status();
  Sweep sweep;
  sweep.machine = find_machine_facts(folder.path());
  warn_about_noise(session, options, sweep.machine);
  const bool unlimited = std::any_of(options.bandwidths.begin(), options.bandwidths.end(),
                                     [](const Bandwidth& one) { return !one.limited(); });
  Result<BenchProfile> profile =
      BenchProfile::make(session.comm, options.profile_path, folder.path(), unlimited);
  TAILRACE_TRY(session.agree(profile.status()));
  for (const ErrorBound& bound : options.bounds) {
    set_bound(bound, options.field_bounds, work);
    for (const Bandwidth& bandwidth : options.bandwidths) {
      Result<std::string> profile_path = profile->write_for(session.comm, bandwidth);
      if (!profile_path.ok()) return profile_path.status();
      const BenchContext context{
          session.mpi, session.comm, options, work, {bound, bandwidth, *profile_path}};
      Result<std::vector<std::unique_ptr<Method>>> methods = make_methods(context);
      TAILRACE_TRY(session.agree(methods.status()));
      (*limit)->set_bytes_per_s(context.bandwidth_bytes_per_s());
      Result<std::vector<Row>> rows = measure(context, *methods, **limit, folder.path());
      if (!rows.ok()) return rows.status();
      const double bytes_per_s = profile->bytes_per_s(bandwidth, session.comm.n_ranks());
      for (Row& row : *rows) {
        row.model_s = model_step_s(context, profile->machine(), bytes_per_s, row);
      }
      if (session.speaks() && table) {
        fmt::print("{}{}", sweep.points.empty() ? "" : "\n",
                   report_text(context, sweep.machine, *rows));
      }
      sweep.points.push_back({context.setting, context.bandwidth_bytes_per_s(), *rows,
                              report_json(context, sweep.machine, *rows)});
    }
    if (!for_page) continue;
    const BenchContext context{session.mpi, session.comm, options, work,
                               sweep.points.back().setting};
    Result<PredictionCheck> check = check_predictions(context, profile->machine());
    TAILRACE_TRY(session.agree(check.status()));
    sweep.predictions.push_back(std::move(*check));
    (*limit)->set_bytes_per_s(0);
    Result<std::vector<SpaceRow>> space = space_sweep(context, folder.path());
    TAILRACE_TRY(session.agree(space.status()));
    sweep.space.push_back(std::move(*space));
  }
  return sweep;
}

std::string sweep_summary_text(const Sweep& sweep) {
  std::string out;
  for (std::size_t first = 0; first < sweep.points.size();) {
    const ErrorBound& bound = sweep.points[first].setting.bound;
    std::size_t last = first;
    std::vector<cli::TableColumn> columns = {{"method", false, 20}};
    while (last < sweep.points.size() && sweep.points[last].setting.bound == bound) {
      columns.push_back({bandwidth_text(sweep.points[last].setting.bandwidth), true});
      ++last;
    }
    cli::TextTable table(columns);
    for (std::size_t r = 0; r < sweep.points[first].rows.size(); ++r) {
      std::vector<std::string> cells = {sweep.points[first].rows[r].method};
      for (std::size_t p = first; p < last; ++p) {
        cells.push_back(fmt::format("{:.3f}", sweep.points[p].rows[r].median_s()));
      }
      table.add_row(cells);
    }
    out += fmt::format("Median seconds by storage bandwidth, bound {}:\n{}\n",
                       error_bound_text(bound), table.text());
    first = last;
  }
  return out;
}

nlohmann::ordered_json sweep_json(const Sweep& sweep) {
  if (sweep.points.size() == 1) return sweep.points.front().document;
  nlohmann::ordered_json document = {{"schema_version", 1}, {"command", "bench"}};
  document["runs"] = nlohmann::ordered_json::array();
  for (const SweepPoint& point : sweep.points) document["runs"].push_back(point.document);
  return document;
}

}  // namespace tailrace::bench
