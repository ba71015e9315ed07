// tailrace-bench: the program behind `tailrace bench`, on its own because it links a parallel HDF5.
//
// All ranks parse the same arguments and reach the same verdict; rank 0 prints it.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <thread>

#include "bench_options.hpp"
#include "bench_report.hpp"
#include "cli/cli_common.hpp"
#include "cli/text_table.hpp"
#include "codecs_main.hpp"
#include "index_cost.hpp"
#include "machine_facts.hpp"
#include "measure.hpp"
#include "method.hpp"
#include "workload.hpp"
#include "write_limit.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::bench;
using tailrace::cli::ReportFile;
using tailrace::cli::Session;

/// A new folder below --dir that all ranks write in; deleted at the end. Collective.
class RunFolder {
 public:
  explicit RunFolder(Comm& comm) : comm_(comm) {}
  ~RunFolder() {
    std::error_code ignored;
    if (comm_.is_root() && !path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  Status make(const std::string& parent) {
    Status made;
    Bytes packed;
    if (comm_.is_root()) {
      std::string path = parent + "/tailrace-bench.XXXXXX";
      if (::mkdtemp(path.data()) == nullptr) {
        made = status_from_errno(errno, "making a folder below \"" + parent + "\"");
      } else {
        // Without links, as the kernel will name the files in it.
        path = std::filesystem::canonical(path).string();
        packed.resize(path.size());
        std::memcpy(packed.data(), path.data(), path.size());
        path_ = path;
      }
    }
    TAILRACE_TRY(comm_.agree(made));
    comm_.broadcast(packed, 0);
    path_.assign(reinterpret_cast<const char*>(packed.data()), packed.size());
    const bool seen = std::filesystem::is_directory(path_);
    return comm_.agree(seen ? Status()
                            : Status(Code::not_found, "\"" + path_ + "\" is not on all ranks"));
  }
  const std::string& path() const { return path_; }

 private:
  Comm& comm_;
  std::string path_;
};

void warn_about_noise(const Session& session, const BenchOptions& options,
                      const MachineFacts& machine) {
  const auto n_busy = static_cast<std::uint64_t>(session.comm.n_ranks_on_node());
  if (n_busy > machine.n_cores) {
    session.remark(fmt::format(
        "{} ranks share {} cores: waiting ranks take time from working ones, in HDF5's rows most "
        "(with Open MPI, --mca mpi_yield_when_idle 1 softens it)",
        n_busy, machine.n_cores));
  } else if (machine.load_average > 0.5) {
    session.remark(
        fmt::format("the machine was busy before (load average {:.1f})", machine.load_average));
  }
  if (options.n_repeats < 5)
    session.remark("fewer than 5 counted runs tell little about the spread");
}

/// Compare the methods, print the table, fill `document`. Collective.
Status run_methods(Session& session, const BenchOptions& options, bool table,
                   nlohmann::ordered_json& document) {
  RunFolder folder(session.comm);
  TAILRACE_TRY(folder.make(options.folder));
  Result<std::unique_ptr<WriteLimit>> limit =
      WriteLimit::start(session.comm, folder.path(), options.bandwidth_bytes_per_s);
  if (!limit.ok()) return limit.status();
  const MachineFacts machine = find_machine_facts(folder.path());
  Result<Workload> work = make_workload(session.comm, options);
  if (!work.ok()) return work.status();
  for (const std::string& remark : work->remarks) session.remark(remark);

  const BenchContext context{session.mpi, session.comm, options, *work};
  Result<std::vector<std::unique_ptr<Method>>> methods = make_methods(context);
  TAILRACE_TRY(session.settle(methods.status()));
  warn_about_noise(session, options, machine);
  Result<std::vector<Row>> rows = measure(context, *methods, **limit, folder.path());
  if (!rows.ok()) return rows.status();
  if (session.speaks() && table) fmt::print("{}", report_text(context, machine, *rows));
  document = report_json(context, machine, *rows);
  return Status();
}

/// --index: rank 0's work only. Collective.
Status run_index(const Session& session, std::uint64_t n_chunks, const BenchOptions& options,
                 bool table, nlohmann::ordered_json& document) {
  Result<std::vector<IndexCost>> costs = std::vector<IndexCost>();
  if (session.speaks()) costs = measure_index_cost(n_chunks, options.n_repeats);
  TAILRACE_TRY(session.comm.agree(costs.status()));
  cli::TextTable text({{"dataset"},
                       {"insert, us/chunk", true},
                       {"min - max", true},
                       {"commit, us/chunk", true},
                       {"bytes/chunk", true}});
  document = {{"schema_version", 1},
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
  if (session.speaks() && table) {
    fmt::print("Chunk index, {} chunks in order, metadata kept in memory:\n{}", n_chunks,
               text.text());
  }
  return Status();
}

int run(Session& session, int argc, char** argv) {
  BenchArguments arguments;
  const std::unique_ptr<CLI::App> app = make_bench_parser(arguments);
  try {
    app->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (session.speaks()) fmt::print("{}", app->help());
    return cli::exit_done;
  } catch (const CLI::ParseError& error) {
    session.remark(fmt::format("{}; see tailrace bench --help", error.what()));
    return cli::exit_usage;
  }
  Result<BenchOptions> options = understand(arguments);
  if (!options.ok()) return session.fail(options.status());
  ReportFile json;
  Status status = session.settle(json.open(arguments.json_path, session.speaks()));
  if (!status.ok()) return session.fail(status);

  nlohmann::ordered_json document;
  const bool table = !json.to_stdout();
  if (arguments.index.empty()) {
    status = session.settle(run_methods(session, *options, table, document));
  } else {
    const Result<std::uint64_t> n_chunks = parse_count("index", arguments.index, 1);
    status = n_chunks.ok() ? run_index(session, *n_chunks, *options, table, document)
                           : n_chunks.status().within("--index");
  }
  if (status.ok()) {
    status = session.settle(json.wanted() ? json.finish(document.dump(2) + "\n") : Status());
  }
  return status.ok() ? cli::exit_done : session.fail(status);
}

}  // namespace

int main(int argc, char** argv) {
  const bool started = start_native_mpi(&argc, &argv);
  int code = cli::exit_done;
  {
    MpiSession mpi(&argc, &argv);
    const std::unique_ptr<Comm> comm = mpi.world();
    const bool codecs = argc > 1 && std::strcmp(argv[1], "codecs") == 0;
    Session session{mpi, *comm, codecs ? "bench codecs" : "bench"};
    try {
      code = codecs ? run_codecs(session, argc - 1, argv + 1) : run(session, argc, argv);
    } catch (const std::exception& error) {
      // The other ranks may be waiting for this one: leaving without MPI_Finalize ends them as
      // well.
      fmt::print(stderr, "tailrace bench: rank {}: {}\n", comm->rank(), error.what());
      std::fflush(nullptr);
      std::_Exit(cli::exit_resources);
    }
    std::fflush(nullptr);
  }
  stop_native_mpi(started);
  return code;
}
