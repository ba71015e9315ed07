// Command line, table and CSV of `tailrace-lab bench choice`.

#include "choice_main.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>

#include "bench_options.hpp"
#include "choice_grid.hpp"
#include "core/version.hpp"
#include "machine_facts.hpp"
#include "parse_arguments.hpp"
#include "report/text_table.hpp"
#include "run_folder.hpp"

namespace tailrace::bench {
namespace {

constexpr const char* kChoiceDescription =
    R"(Hold what codec=auto chooses against every fixed candidate, over storages and bounds
  mpiexec -n 2 tailrace-lab bench choice --workload nyx --csv choice_grid.csv
  mpiexec -n 2 tailrace-lab bench choice --workload ocean.nc --bandwidth 10,100MB/s/rank

Takes the data options of tailrace-lab bench. All candidates write once; those that could be the
best under a bandwidth then take turns with auto. Best: the least median of the fixed candidates.
auto may choose another codec for each field, and so beat them all. Its time includes choosing.
)";
constexpr const char* kDefaultBandwidths = "1,5,10,25,50,100,250MB/s/rank,unlimited";
constexpr const char* kDefaultBounds = "rel=1e-2,1e-3,1e-4,1e-5,1e-6";
/// Auto wins a cell if it takes at most this factor of the best candidate's time.
constexpr double kWithin = 1.05;

/// The candidates of auto, as fixed settings.
constexpr const char* kDefaultCandidates =
    "none;trz;trz,preset=fast;trz,preset=ratio;trz,preset=max;sz3;zfp;zstd;portable;deflate;"
    "trz,predictor=lorenzo,dimension=1;trz,predictor=lorenzo,dimension=2;"
    "trz,predictor=lorenzo,dimension=3;trz,predictor=interpolation";

/// CSV file written line by line, so that an aborted run leaves its results.
class CsvFile {
 public:
  Status open(const std::string& path, bool speaks) {
    if (path.empty() || !speaks) return Status();
    stream_.open(path, std::ios::trunc);
    if (stream_) return Status();
    return Status(Code::io_error, "--csv: cannot write \"" + path + "\"");
  }
  Status add(const std::string& text) {
    if (!stream_.is_open()) return Status();
    stream_ << text << std::flush;
    return stream_ ? Status() : Status(Code::io_error, "--csv: writing failed");
  }

 private:
  std::ofstream stream_;
};

std::string csv_head(const ChoiceRun& run, const MachineFacts& machine) {
  const Workload& work = run.work;
  std::string out;
  out += fmt::format("# tailrace-lab bench choice, tailrace {}, {}\n", std::string(version_text),
                     machine.date);
  out += fmt::format("# machine: {}, {} cores, {}, {}; load average {:.1f} before\n",
                     machine.processor, machine.n_cores, machine.kernel, machine.file_system,
                     machine.load_average);
  out += fmt::format("# data: {}; S = {} bytes on {} ranks, checksum {:016x}\n", work.source,
                     work.raw_bytes, run.comm.n_ranks(), work.checksum);
  out += fmt::format("# at least {} counted runs each, more if they are short; fsync {}\n",
                     run.options.n_repeats, run.options.fsync ? "inside the time" : "off");
  out +=
      "# state: measured; bounded: its bytes alone take longer than the best; slower: twice the "
      "best's time; refused\n";
  return out +
         "data,S_bytes,bound,W_bytes_per_s_per_rank,codec,state,written_bytes,least_s,median_s,"
         "min_s,max_s,runs,best,auto_over_best,choose_s,later_over_best,chosen\n";
}

std::string csv_rows(const ChoiceRun& run, const ChoiceCell& cell) {
  std::string out;
  const double per_rank = cell.bandwidth.total(run.comm.n_ranks()) / run.comm.n_ranks();
  const std::string bandwidth = per_rank > 0 ? fmt::format("{:.0f}", per_rank) : "unlimited";
  const std::string data =
      run.options.generated ? "synthetic " + run.options.workload : run.options.workload;
  const std::string name = data.substr(data.rfind('/') + 1);
  for (std::size_t r = 0; r < cell.rows.size(); ++r) {
    const ChoiceRow& row = cell.rows[r];
    const bool is_auto = r + 1 == cell.rows.size();
    const bool timed = row.state == "measured";
    const auto number = [&](double value) { return timed ? fmt::format("{:.5f}", value) : ""; };
    const auto [least, most] = std::minmax_element(row.seconds.begin(), row.seconds.end());
    out += fmt::format("{},{},{},{},\"{}\",{},{},{:.5f},{},{},{},{},{},", name, run.work.raw_bytes,
                       error_bound_text(cell.bound), bandwidth, row.codec, row.state,
                       row.written_bytes, row.least_s, number(row.median_s()),
                       timed ? number(*least) : "", timed ? number(*most) : "", row.seconds.size(),
                       r == cell.best ? 1 : 0);
    if (!is_auto) {
      out += ",,,\n";
      continue;
    }
    out += fmt::format("{:.4f},{:.5f},{:.4f},\"{}\"\n", cell.over_best(), row.median_choose_s(),
                       cell.later_over_best(), row.remark);
  }
  return out;
}

std::string cells_text(const std::vector<ChoiceCell>& cells) {
  cli::TextTable table({{"bound"},
                        {"W", true},
                        {"best", false, 8},
                        {"s", true},
                        {"auto chose", false, 10},
                        {"s", true},
                        {"auto\n/ best", true},
                        {"later\nsteps", true}});
  std::size_t n_within = 0;
  std::size_t n_later = 0;
  for (const ChoiceCell& cell : cells) {
    const ChoiceRow& best = cell.rows[cell.best];
    table.add_row({error_bound_text(cell.bound), bandwidth_text(cell.bandwidth), best.codec,
                   fmt::format("{:.4f}", best.median_s()), cell.automatic().remark,
                   fmt::format("{:.4f}", cell.automatic().median_s()),
                   fmt::format("{:.3f}", cell.over_best()),
                   fmt::format("{:.3f}", cell.later_over_best())});
    if (cell.over_best() <= kWithin) ++n_within;
    if (cell.later_over_best() <= kWithin) ++n_later;
  }
  const auto share = [&](std::size_t n) {
    return fmt::format("{} of {} cells ({:.0f} %)", n, cells.size(),
                       100.0 * static_cast<double>(n) / static_cast<double>(cells.size()));
  };
  return table.text() + "\n" +
         cli::wrapped(
             fmt::format("auto is within {:.0f} % of the best candidate in {}; without the "
                         "time of choosing, which only a field's first step has, in {}",
                         100 * (kWithin - 1), share(n_within), share(n_later)),
             0) +
         "\n";
}

Status measure(cli::Session& session, const BenchOptions& options,
               std::vector<std::string> candidates, CsvFile& csv) {
  Result<Workload> work = make_workload(session.comm, options);
  if (!work.ok()) return work.status();
  for (const std::string& remark : work->remarks) session.remark(remark);
  RunFolder folder(session.comm);
  TAILRACE_TRY(folder.make(options.folder));
  const MachineFacts machine = find_machine_facts(folder.path());
  Result<std::unique_ptr<WriteLimit>> limit = WriteLimit::start(session.comm, folder.path());
  if (!limit.ok()) return limit.status();
  Result<BenchProfile> profile =
      BenchProfile::make(session.comm, options.profile_path, folder.path(), true);
  TAILRACE_TRY(session.agree(profile.status()));
  ChoiceRun run{session.mpi, session.comm, options,       *work,
                **limit,     *profile,     folder.path(), std::move(candidates)};
  TAILRACE_TRY(session.agree(csv.add(csv_head(run, machine))));
  std::vector<ChoiceCell> cells;
  TAILRACE_TRY(measure_grid(run, [&](const ChoiceCell& cell) {
    cells.push_back(cell);
    return session.agree(csv.add(csv_rows(run, cell)));
  }));
  if (session.speaks()) fmt::print("{}\n\n{}", cli::wrapped(work->source, 2), cells_text(cells));
  return Status();
}

}  // namespace

int run_choice(cli::Session& session, int argc, char** argv) {
  BenchArguments arguments;
  std::string csv_path;
  std::string candidates = kDefaultCandidates;
  const std::unique_ptr<CLI::App> app = make_bench_parser(arguments);
  app->name("tailrace-lab bench choice");
  app->description(kChoiceDescription);
  app->footer("");
  app->add_option("--csv", csv_path,
                  "Write a line for each candidate in each cell, when it is measured.")
      ->type_name("FILE")
      ->group("Reports");
  app->add_option("--candidates", candidates,
                  "Codecs with their settings, separated by ';'. Default: the candidates of auto.")
      ->type_name("LIST")
      ->group("Compression, the same for all methods");
  arguments.bandwidth = kDefaultBandwidths;
  arguments.bound = kDefaultBounds;
  arguments.repeat = "3";
  if (const auto ended = parse_arguments(*app, session, argc, argv, "tailrace-lab bench choice"))
    return *ended;
  const Result<BenchOptions> options = understand(arguments);
  if (!options.ok()) return session.fail(options.status());
  CsvFile csv;
  Status status = session.agree(csv.open(csv_path, session.speaks()));
  if (status.ok()) {
    status = session.agree(measure(session, *options, split(candidates, ';'), csv));
  }
  return status.ok() ? cli::kExitDone : session.fail(status);
}

}  // namespace tailrace::bench
