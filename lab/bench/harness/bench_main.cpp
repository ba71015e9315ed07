// tailrace-bench: the program behind `tailrace-lab bench`. It links a parallel HDF5.
//
// All ranks parse the same arguments and get the same result; rank 0 prints errors.

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench_options.hpp"
#include "choice_main.hpp"
#include "cli/cli_common.hpp"
#include "codecs_main.hpp"
#include "concat_hdf5_main.hpp"
#include "index_cost.hpp"
#include "machine_facts.hpp"
#include "method.hpp"
#include "parse_arguments.hpp"
#include "report/text_table.hpp"
#include "report_page.hpp"
#include "sweep.hpp"
#include "workload.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::bench;
using tailrace::cli::ReportFile;
using tailrace::cli::Session;

/// Files for a run's results, in addition to the screen.
struct ReportFiles {
  ReportFile json;
  ReportFile page;
  bool with_page = false;  ///< Set on all ranks, unlike page.wanted().
};

/// Compare the methods, print the tables, fill the reports. Collective.
Status run_methods(Session& session, const BenchOptions& options, ReportFiles& reports) {
  Result<Workload> work = make_workload(session.comm, options);
  if (!work.ok()) return work.status();
  for (const std::string& remark : work->remarks) session.remark(remark);
  const bool table = !reports.json.to_stdout();
  Result<Sweep> sweep = run_sweep(session, options, table, reports.with_page, *work);
  if (!sweep.ok()) return sweep.status();
  if (session.speaks() && table && sweep->points.size() > 1) {
    fmt::print("\n{}", sweep_summary_text(*sweep));
  }
  if (reports.page.wanted()) {
    Result<std::string> page = report_page(*sweep, options, *work);
    if (!page.ok()) return page.status();
    TAILRACE_TRY(reports.page.finish(*page));
  }
  return reports.json.wanted() ? reports.json.finish(cli::json_text(sweep_json(*sweep)) + "\n")
                               : Status();
}

/// Measure --index, on rank 0 only. Collective.
Status run_index(const Session& session, std::uint64_t n_chunks, const BenchOptions& options,
                 ReportFiles& reports) {
  Result<std::vector<IndexCost>> costs = std::vector<IndexCost>();
  if (session.speaks()) costs = measure_index_cost(n_chunks, options.n_repeats);
  TAILRACE_TRY(session.comm.agree(costs.status()));
  cli::TextTable text({{"dataset"},
                       {"insert, us/chunk", true},
                       {"min - max", true},
                       {"commit, us/chunk", true},
                       {"bytes/chunk", true}});
  nlohmann::ordered_json document = {{"schema_version", 1},
                                     {"command", "bench --index"},
                                     {"n_chunks", n_chunks},
                                     {"repeat", options.n_repeats},
                                     {"versions", {{"hdf5", find_machine_facts("/").hdf5}}},
                                     {"rows", nlohmann::ordered_json::array()}};
  for (const IndexCost& cost : *costs) {
    const auto [least, most] = std::minmax_element(cost.insert_us.begin(), cost.insert_us.end());
    text.add_row({cost.index, fmt::format("{:.2f}", cost.median_us()),
                  fmt::format("{:.2f} - {:.2f}", *least, *most),
                  fmt::format("{:.2f}", cost.commit_us),
                  fmt::format("{:.1f}", cost.metadata_bytes)});
    document["rows"].push_back({{"dataset", cost.index},
                                {"insert_us", cost.insert_us},
                                {"median_us", cost.median_us()},
                                {"commit_us", cost.commit_us},
                                {"metadata_bytes_per_chunk", cost.metadata_bytes}});
  }
  if (session.speaks() && !reports.json.to_stdout()) {
    fmt::print("Chunk index, {} chunks in order, metadata kept in memory:\n{}", n_chunks,
               text.text());
  }
  return reports.json.wanted() ? reports.json.finish(document.dump(2) + "\n") : Status();
}

int run(Session& session, int argc, char** argv) {
  BenchArguments arguments;
  const std::unique_ptr<CLI::App> app = make_bench_parser(arguments);
  if (const auto ended = parse_arguments(*app, session, argc, argv, "tailrace-lab bench"))
    return *ended;
  Result<BenchOptions> options = understand(arguments);
  if (!options.ok()) return session.fail(options.status());
  ReportFiles reports;
  Status status = session.agree(reports.json.open(arguments.json_path, session.speaks()));
  reports.with_page = !arguments.report_path.empty();
  if (status.ok() && reports.with_page) {
    status = can_draw().within("--report");
    if (status.ok()) {
      status = session.agree(reports.page.open(arguments.report_path, session.speaks()));
    }
  }
  if (!status.ok()) return session.fail(status);
  if (arguments.index.empty()) {
    status = session.agree(run_methods(session, *options, reports));
  } else {
    const Result<std::uint64_t> n_chunks = parse_count("index", arguments.index, 1);
    status = session.agree(n_chunks.ok() ? run_index(session, *n_chunks, *options, reports)
                                         : n_chunks.status().within("--index"));
  }
  return status.ok() ? cli::kExitDone : session.fail(status);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // like frontends/cli/program.cpp
  cli::text_room() = cli::room_of(STDOUT_FILENO);
  const bool started = start_native_mpi(&argc, &argv);
  int code = cli::kExitDone;
  {
    MpiSession mpi(&argc, &argv);
    const std::unique_ptr<Comm> comm = mpi.world();
    const std::string_view part = argc > 1 ? argv[1] : "";
    const bool has_part = part == "codecs" || part == "choice" || part == "concat-hdf5";
    Session session{mpi, *comm, has_part ? "bench " + std::string(part) : "bench", "tailrace-lab"};
    try {
      code = part == "codecs"        ? run_codecs(session, argc - 1, argv + 1)
             : part == "choice"      ? run_choice(session, argc - 1, argv + 1)
             : part == "concat-hdf5" ? run_concat_hdf5(session, argc - 1, argv + 1)
                                     : run(session, argc, argv);
    } catch (const std::exception& error) {
      // Exit without MPI_Finalize, to end the other ranks, which may be waiting for this one.
      fmt::print(stderr, "tailrace-lab bench: rank {}: {}\n", comm->rank(), error.what());
      std::fflush(nullptr);
      std::_Exit(cli::kExitResources);
    }
    code = cli::end_of_output("tailrace-lab bench", code);
  }
  stop_native_mpi(started);
  return code;
}
