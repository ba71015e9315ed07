// tailrace concat: many HDF5 files in, one out; every option with its price, and the screen that it
// ends with.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "commands.hpp"
#include "core/option_table.hpp"
#include "hdf5/filter_plugins.hpp"
#include "verbs/concat_request.hpp"

namespace tailrace::cli {
namespace {

struct ConcatArguments {
  verbs::ConcatArguments given;
  std::string json_path;
  bool quiet = false;
};

constexpr const char* kConcatDescription =
    R"help(Concatenate HDF5 and netCDF-4 files along the first or the record dimension

Examples:
  mpiexec -n 4 tailrace concat -o run.h5 -i list.txt
      the files of the list, in its order; matching chunks are copied without decoding
  tailrace concat -o run.h5 subrun_*.h5 --sort
      in the order of the run and subrun numbers in the files
  tailrace concat -o run.h5 -a subrun_0431.h5
      append rows to an existing output
  mpiexec -n 32 tailrace concat -o run.h5 -i list.txt --resume
      continue a killed job after its last commit
  tailrace concat -o run.h5 -i list.txt -k run,subrun,evt
      add a dataset evt.seq, a number for each event, to each group with these three

The output gets its name when it is complete; on failure, an older file of that name stays.
)help";

constexpr const char* kConcatFooter =
    R"help(Every dataset of a plain HDF5 file is appended along its first dimension. Files with
dimensions (netCDF-4, HDF5 dimension scales) are appended along unlimited dimensions only; all other
datasets must be the same in all files. All files must have the same datasets, of the same types and
inner extents; rows, chunks and filters may differ. Groups, attributes, links and scalars come from
the first file. All mismatches are reported at once. See docs/concat.md.

Exit codes: 0 done, 2 usage or bad input, 3 storage failed or memory was exceeded.)help";

void add_input_options(CLI::App* sub, verbs::ConcatArguments& given) {
  sub->add_option("FILE", given.files, "HDF5 files, in the order of their rows.");
  const Group input(sub, "Input");
  input("-i,--list", given.list_path, "FILE",
        "File with the names of the inputs: one per line, relative to the current directory; blank "
        "lines and lines that begin with '#' are ignored. '-' is standard input.");
  sub->add_flag(
         "--sort{default}", given.sort_paths,
         "Order the files by the first values of these integer datasets, separated by commas "
         "(default /spill/run,/spill/subrun). Opens each file once more. Default: the order given.")
      ->type_name("PATHS")
      ->group("Input")
      ->take_last();
  input("--on-error", given.on_error, "stop|skip",
        "How to handle a file that cannot be appended (missing, corrupt, other schema). stop: "
        "write nothing. skip: leave the file out and report it. Default stop.");
  input("--on-different", given.on_different, "error|keep-first",
        "How to handle a file in which an attribute such as units, or a netCDF-4 dataset without a "
        "record dimension, differs from the first file. error: apply --on-error. "
        "keep-first: keep that of the first file, with a remark. Default error.");
  input("--tile", given.tile, "DIMENSIONS",
        "Dimensions, separated by commas, along which the files are tiles of one domain. The "
        "coordinate values, or the attribute domain_decomposition, place the tiles. Default: the "
        "dimensions with this attribute.");
  input.flag(
      "--allow-missing-tiles", given.allow_missing_tiles,
      "Write fill values where a tile of the domain is missing, with a remark. Default: an error.");
  input.engine("--plugin-path", given.file_options, "plugin-path", "FOLDERS", kPluginPathHelp);
}

void add_output_options(CLI::App* sub, verbs::ConcatArguments& given) {
  const Group output(sub, "Output");
  output("-o,--output", given.output, "FILE",
         "The HDF5 file to create, or to extend with --append.")
      ->required();
  output.flag("-a,--append", given.append,
              "Append rows to an existing output. Encodes the last, partly filled chunk of each "
              "dataset again. Default: create the output.");
  output.flag("--resume", given.resume,
              "Continue a killed run of the same command after its last commit, or start from the "
              "beginning if it left nothing. Default: start from the beginning.");
  output.engine_flag("--force", given.file_options, "replace", "Replace an existing file.");
  output.engine("--compatibility", given.file_options, "compatibility", "everyone|v110",
                kCompatibilityHelp);
  output("-k,--key", given.key_names, "NAMES",
         "Datasets of /spill that together identify an event, such as run,subrun,evt. Each group "
         "with all of them gets a dataset LAST.seq with a number for each event, equal in all "
         "groups. Reads these datasets of every file. Default: none.");
}

void add_storage_options(CLI::App* sub, verbs::ConcatArguments& given) {
  const Group storage(sub, "Chunks and compression");
  storage(
      "--chunk", given.chunk, "SIZE|ROWSx",
      "Approximate size of chunks (1MiB), or their number of rows (128x). Decodes and encodes all "
      "data that has other chunks. Default: chunks of the inputs; 1 MiB where these are tiny.");
  storage("--codec", given.codec, "CODEC",
          "NAME[,key=value...]. keep: the filters that each dataset has in the first file. Any "
          "other lossless codec (none, deflate, zstd, ...) encodes all data. Default keep.");
  storage("-z,--level", given.level, "N",
          "Level of deflate, 0 to 9. Encodes all data that has another level; 9 takes several "
          "times as long as 6 and saves a few percent. Default: the level of the inputs.");
  storage(
      "-m,--plain-below", given.plain_below, "SIZE",
      "Store smaller datasets contiguous and uncompressed: faster to open, but larger. Default 0.");
  storage.flag("-c,--contiguous", given.contiguous,
               "Store all datasets contiguous and uncompressed. Decodes all data. Default: off.");
  storage.flag("--dedup", given.dedup,
               "Store equal encoded chunks of up to 4 KiB once per rank. Uses up to 32 MiB of "
               "memory; the file must not be modified in place later. Default: off.");
  storage.engine(
      "--layout", given.file_options, "layout", "claimed|dense|front",
      "Placement of chunks. claimed: at the end of the file as they become ready. dense: in the "
      "order of datasets and rows; ranks wait for each other in every round. front: after all "
      "metadata; copies the file once more at the end. Default claimed.");
}

void add_resource_options(CLI::App* sub, verbs::ConcatArguments& given) {
  const Group resources(sub, "Resources");
  resources.engine("-b,--memory", given.file_options, "memory", "SIZE",
                   "Memory of each rank; larger inputs are processed in rounds. Default 1GiB.");
  resources.engine("--threads", given.file_options, "threads", "N",
                   "Threads per rank that decode and encode. Default: cores / ranks.");
  resources("--commit-every", given.commit_every_s, "SECONDS",
            "Least time between commits, after which --resume can continue. Each commit needs an "
            "fsync. Default 30.");
  resources.engine("--fsync", given.file_options, "fsync", "on|off",
                   "Flush the data to stable storage before the output gets its name. Default on.");
  resources.engine_flag(
      "--journal", given.file_options, "journal",
      "Keep a redo journal, which protects against torn metadata writes after a power loss. Writes "
      "metadata twice. Default: off; most users leave this alone.");
}

/// "3 files, first to last (12.4 MB)".
std::string inputs_text(const verbs::ConcatOutcome& outcome) {
  const std::vector<std::string>& inputs = outcome.request.inputs;
  std::string text = counted(outcome.report.n_files, "file");
  if (!outcome.report.skipped.empty()) text += fmt::format(" of {}", inputs.size());
  const std::string bytes = fmt::format(" ({})", size_text(outcome.report.input_bytes));
  const std::size_t taken = text.size() + bytes.size() + 8;  // "from  ", ", "
  if (inputs.size() == 1) {
    text += ", " + fitted(inputs.front(), taken);
  } else if (!inputs.empty()) {
    const std::size_t half = (std::max(text_room().table, taken) - taken + 1) / 2;
    text += fmt::format(", {} to {}", fitted(inputs.front(), taken + half + 2),
                        fitted(inputs.back(), taken + half + 2));
  }
  return text + bytes;
}

std::string chunks_text(const ConcatReport& report) {
  if (report.n_chunks == 0) return "none";
  const std::uint64_t n_encoded = report.n_chunks - std::min(report.n_copied, report.n_chunks);
  std::string text = fmt::format("{}: {} copied as stored", report.n_chunks, report.n_copied);
  if (report.n_copied > 0) text += fmt::format(" ({})", size_text(report.copied_bytes));
  text += fmt::format(", {} encoded again", n_encoded);
  if (report.n_shared > 0) text += fmt::format("; {} share the bytes of another", report.n_shared);
  return text;
}

/// Explanation of a stage's name; empty if the name is clear.
std::string_view stage_remark(std::string_view stage) {
  if (stage == "open") return "inputs opened, their schema read and compared";
  if (stage == "exchange") return "row counts, and chunks sent to the ranks that encode them";
  if (stage == "read")
    return "stored chunks; this and the next three are busy times of all threads";
  if (stage == "create") return "datasets of the output, by rank 0";
  if (stage == "index") return "addresses of chunks, by rank 0";
  if (stage == "close") return "metadata, fsync and rename";
  return "";
}

std::string stage_table(const verbs::ConcatOutcome& outcome) {
  const ConcatReport& report = outcome.report;
  TextTable table("stage|>mean of ranks|>slowest|/20");
  for (const auto& [stage, time] : report.stages) {
    table.add_row({stage, seconds_text(time.mean_s), seconds_text(time.max_s),
                   std::string(stage_remark(stage))});
  }
  const std::string speed = throughput_text(report.raw_bytes, report.total_s);
  table.add_row({"all", "", seconds_text(report.total_s),
                 fmt::format("{}{} x {}", speed == "-" ? "" : speed + " MB/s of values, ",
                             counted(static_cast<std::uint64_t>(outcome.n_ranks), "rank"),
                             counted(outcome.n_threads, "thread"))});
  return table.text();
}

std::string concat_text(const verbs::ConcatOutcome& outcome) {
  const ConcatReport& report = outcome.report;
  const std::uint64_t encoded_bytes =
      report.output_bytes - std::min(report.metadata_bytes, report.output_bytes);
  std::string out = fmt::format("from  {}\n", inputs_text(outcome));
  const std::string sizes = fmt::format(" ({}, metadata {} of it)", size_text(report.output_bytes),
                                        size_text(report.metadata_bytes));
  out += fmt::format("to    {}{}\n", fitted(outcome.request.output, 6 + sizes.size()), sizes);
  out += wrapped(fmt::format("{} of values in {}, {} of them empty; {}, ratio {}",
                             size_text(report.raw_bytes), counted(report.n_datasets, "dataset"),
                             report.n_empty, counted(report.n_rows, "row"),
                             ratio_text(report.raw_bytes, encoded_bytes)),
                 2) +
         "\n\n";
  out += wrapped("chunks  " + chunks_text(report), 8) + "\n";
  out +=
      wrapped(fmt::format("memory  {} of {} a rank, {}, {}", size_text(report.peak_bytes),
                          size_text(outcome.request.options.memory_bytes),
                          counted(report.n_rounds, "round"), counted(report.n_commits, "commit")),
              8) +
      "\n\n";
  return out + stage_table(outcome);
}

/// Join the indented lines of a reason into one line.
std::string one_line(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    const std::size_t next = std::min(text.find_first_not_of(' ', at + 1), text.size());
    text.replace(at, next - at, "; ");
  }
  return text;
}

int run_concat(Session& session, const ConcatArguments& arguments) {
  const Result<ConcatRequest> request = verbs::concat_request(arguments.given);
  if (!request.ok()) return session.fail(request.status());
  search_plugins_in(request->options.plugin_path);
  ProgressBar bar(std::filesystem::path(request->output).filename().string(),
                  session.speaks() && !arguments.quiet);
  const verbs::VerbRanks ranks = session.for_verb(arguments.quiet, bar);
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    const auto outcome = verbs::concat(ranks, arguments.given, *request);
    bar.clear();
    if (!outcome.ok()) return outcome.status();
    Shown shown{concat_text(*outcome), json_text(json_of(*outcome)), {}, kExitDone};
    // Report skipped files even with --quiet.
    for (const std::string& file : outcome->report.skipped) {
      shown.remarks.push_back("left out: " + one_line(file));
    }
    const std::vector<std::string>& remarks = outcome->report.remarks;
    if (!arguments.quiet) {
      shown.remarks.insert(shown.remarks.end(), remarks.begin(), remarks.end());
    }
    return shown;
  });
}

}  // namespace

Command add_concat(CLI::App& app) {
  const auto concat = std::make_shared<ConcatArguments>();
  CLI::App* sub = app.add_subcommand("concat", kConcatDescription);
  sub->footer(kConcatFooter);
  add_output_options(sub, concat->given);
  add_input_options(sub, concat->given);
  add_storage_options(sub, concat->given);
  add_resource_options(sub, concat->given);
  report_options(sub, concat->json_path,
                 {"list", "sort", "output", "append", "force", "resume", "key", "codec", "threads",
                  "memory", "json", "help", "help-all"});
  Group(sub, "Reports").flag("-q,--quiet", concat->quiet, "No table, no progress, no remarks.");
  return [concat](Session& session) { return run_concat(session, *concat); };
}

}  // namespace tailrace::cli
