// Command line, breakdown of the time and JSON of `tailrace-lab bench concat-hdf5`.

#include "concat_hdf5_main.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>

#include "bench_options.hpp"
#include "cli/help_formatter.hpp"
#include "concat_hdf5.hpp"
#include "core/options.hpp"
#include "core/version.hpp"
#include "parse_arguments.hpp"
#include "report/text_table.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::bench {
namespace {

constexpr const char* kConcatDescription =
    R"(Concatenate as parallel HDF5 does it: the baseline of tailrace concat
  mpiexec -n 4 tailrace-lab bench concat-hdf5 -o out.h5 -i list.txt

Lee et al. 2022, section 3: decompress, one collective write per dataset, compress again. It
carries over no attributes, and is here to be compared with, not to be used.
)";

struct Arguments {
  std::vector<std::string> files;
  std::string list_path;
  std::string output;
  std::string buffer = "128MiB";
  std::string fsync = "on";
  std::string json_path;
  unsigned level = 6;
};

std::unique_ptr<CLI::App> make_parser(Arguments& arguments) {
  auto app = std::make_unique<CLI::App>(kConcatDescription, "tailrace-lab bench concat-hdf5");
  app->formatter(std::make_shared<cli::HelpFormatter>());
  app->add_option("FILE", arguments.files, "Inputs, in the order of their rows.");
  app->add_option("-i,--list", arguments.list_path,
                  "File with the names of the inputs, one per line.");
  app->add_option("-o,--output", arguments.output, "The file to create, or to replace.")
      ->required();
  app->add_option("-z,--level", arguments.level, "Level of deflate; 0: not compressed. Default 6.")
      ->check(CLI::Range(0, 9));
  app->add_option(
      "-b,--buffer", arguments.buffer,
      "Buffer of a rank for rows of a dataset; larger datasets are written in rounds. Default "
      "128MiB.");
  app->add_option("--fsync", arguments.fsync, "Sync the output: on or off. Default on.")
      ->check(CLI::IsMember({"on", "off"}));
  app->add_option("--json", arguments.json_path,
                  "Write the numbers as JSON; '-' is standard output.");
  return app;
}

nlohmann::ordered_json json_of(const Hdf5ConcatReport& report, int n_ranks) {
  nlohmann::ordered_json stages;
  for (const Hdf5ConcatStage& stage : report.stages) {
    stages[stage.name] = {{"mean_s", stage.mean_s}, {"max_s", stage.max_s}};
  }
  return {{"schema_version", 1},
          {"command", "bench concat-hdf5"},
          {"ranks", n_ranks},
          {"n_files", report.n_files},
          {"n_datasets", report.n_datasets},
          {"n_empty", report.n_empty},
          {"n_writes", report.n_writes},
          {"raw_bytes", report.raw_bytes},
          {"input_bytes", report.input_bytes},
          {"output_bytes", report.output_bytes},
          {"peak_rss_bytes", report.peak_rss_bytes},
          {"total_s", report.total_s},
          {"stages", stages},
          {"versions", {{"tailrace", std::string(version_text)}}}};
}

void print_report(const Hdf5ConcatReport& report) {
  const std::string summary = fmt::format(
      "{} files, {} datasets ({} empty), {} raw: {} -> {} in {}, {} collective writes",
      report.n_files, report.n_datasets, report.n_empty, cli::size_text(report.raw_bytes),
      cli::size_text(report.input_bytes), cli::size_text(report.output_bytes),
      cli::seconds_text(report.total_s), report.n_writes);
  fmt::print("{}\n", cli::wrapped(summary, 2));
  cli::TextTable table({{"stage"}, {"mean s", true}, {"max s", true}});
  for (const Hdf5ConcatStage& stage : report.stages) {
    table.add_row(
        {stage.name, fmt::format("{:.3f}", stage.mean_s), fmt::format("{:.3f}", stage.max_s)});
  }
  fmt::print("{}", table.text());
}

}  // namespace

int run_concat_hdf5(cli::Session& session, int argc, char** argv) {
  Arguments arguments;
  const std::unique_ptr<CLI::App> app = make_parser(arguments);
  const char* program = "tailrace-lab bench concat-hdf5";
  if (const auto ended = parse_arguments(*app, session, argc, argv, program)) return *ended;
  Hdf5ConcatRequest request;
  request.output = arguments.output;
  request.level = arguments.level;
  request.fsync = arguments.fsync == "on";
  const Result<std::uint64_t> buffer = parse_bytes(arguments.buffer);
  if (!buffer.ok()) return session.fail(buffer.status().within("--buffer"));
  request.buffer_bytes = *buffer;
  Result<std::vector<std::string>> inputs =
      verbs::read_inputs(session.comm, arguments.files, arguments.list_path);
  if (!inputs.ok()) return session.fail(inputs.status());
  request.inputs = std::move(*inputs);
  cli::ReportFile json;
  Status status = session.agree(json.open(arguments.json_path, session.speaks()));
  if (!status.ok()) return session.fail(status);
  const Result<Hdf5ConcatReport> report = concat_with_hdf5(session.comm, request);
  if (!report.ok()) return session.fail(report.status());
  if (session.speaks() && !json.to_stdout()) print_report(*report);
  if (json.wanted()) {
    status = json.finish(cli::json_text(json_of(*report, session.comm.n_ranks())) + "\n");
  }
  status = session.agree(status);
  return status.ok() ? cli::kExitDone : session.fail(status);
}

}  // namespace tailrace::bench
