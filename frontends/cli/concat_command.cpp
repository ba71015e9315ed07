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
  verbs::ConcatWords words;
  std::string json_path;
  bool quiet = false;
};

constexpr const char* concat_description =
    R"help(Concatenate HDF5 and netCDF-4 files along the first or the record dimension

Examples:
  mpiexec -n 4 tailrace concat -o run.h5 -i list.txt
      the files of the list, in its order; chunks that fit are copied as they are stored
  tailrace concat -o run.h5 subrun_*.h5 --sort
      in the order of run and subrun, as the files themselves say
  tailrace concat -o run.h5 -a subrun_0431.h5
      more rows for an earlier output
  mpiexec -n 32 tailrace concat -o run.h5 -i list.txt --resume
      go on where a killed job's last commit stood
  tailrace concat -o run.h5 -i list.txt -k run,subrun,evt
      with a dataset evt.seq in each group that has these three: one number for each event

The output appears at the end, whole; if anything fails, an older file of that name stays.
)help";

constexpr const char* concat_footer =
    R"help(Every dataset of a plain HDF5 file is appended along its first dimension. Files with
dimensions (netCDF-4, HDF5 dimension scales) are appended along unlimited dimensions only; all other
datasets must be the same in all files. All files must have the same datasets, of the same types and
inner extents; rows, chunks and filters may differ. Groups, attributes, links and scalars come from
the first file. What does not fit together is named, all of it at once. docs/concat.md tells more.

Exit codes: 0 done, 2 usage or bad input, 3 storage or memory gave out.)help";

void add_input_options(CLI::App* sub, verbs::ConcatWords& words) {
  sub->add_option("FILE", words.files, "HDF5 files, in the order of their rows.");
  const Group input(sub, "Input");
  input("-i,--list", words.list_path, "FILE",
        "Read the files' names here: one a line, relative to the current directory; blank lines "
        "and lines that begin with '#' are left out. '-' is standard input.");
  sub->add_flag("--sort{default}", words.sort_paths,
                "Order the files by the first values of integer datasets, separated by commas; "
                "without them by /spill/run,/spill/subrun. Costs another opening of each file.")
      ->type_name("PATHS")
      ->group("Input")
      ->take_last();
  input("--on-error", words.on_error, "stop|skip",
        "What a file does that cannot be appended (missing, corrupt, another schema). stop: "
        "nothing is written. skip: it is left out, and named. Default stop.");
  input("--on-different", words.on_different, "error|keep-first",
        "Files with dimensions (netCDF-4): what a file does in which a dataset without a record "
        "dimension, or an attribute such as units, is not as in the first file. error: as "
        "--on-error says. keep-first: the first file's is kept, with a remark. Default error.");
  input("--tile", words.tile, "DIMENSIONS",
        "Names of dimensions, separated by commas, along which the files are tiles of a domain: "
        "they are laid out by the values of these coordinates, or by their attribute "
        "domain_decomposition. Default: the dimensions that have this attribute.");
  input.flag("--allow-missing-tiles", words.allow_missing_tiles,
             "Leave fill values where the domain has no tile, with a remark. Default: an error.");
  input.engine("--plugin-path", words.file_options, "plugin-path", "FOLDERS", plugin_path_help);
}

void add_output_options(CLI::App* sub, verbs::ConcatWords& words) {
  const Group output(sub, "Output");
  output("-o,--output", words.output, "FILE", "The HDF5 file to create, or to append to.")
      ->required();
  output.flag("-a,--append", words.append,
              "The output exists and gets more rows. Costs a new encoding of each dataset's last, "
              "partly filled chunk.");
  output.flag("--resume", words.resume,
              "Go on with what a killed run of the same command has left, or begin anew if it has "
              "left nothing.");
  output.engine_flag("--force", words.file_options, "replace", "Replace an existing file.");
  output.engine("--compatibility", words.file_options, "compatibility", "everyone|v110",
                compatibility_help);
  output("-k,--key", words.key_names, "NAMES",
         "Names in /spill that together identify an event, such as run,subrun,evt. Each group that "
         "has them all gets a dataset LAST.seq, which numbers its rows' events alike in all "
         "groups. Costs reading those datasets of every file.");
}

void add_storage_options(CLI::App* sub, verbs::ConcatWords& words) {
  const Group storage(sub, "Chunks and compression");
  storage("--chunk", words.chunk, "SIZE|ROWSx",
          "About so many bytes a chunk (1MiB), or so many rows (128x). Costs decoding and encoding "
          "of all that has other chunks. Default: as the inputs', where these are large enough; "
          "where they are tiny, 1 MiB.");
  storage("--codec", words.codec, "CODEC",
          "NAME[,key=value...]. keep: each dataset's filters as in the first file. none, deflate, "
          "zstd and every other lossless codec of repack: costs encoding of all data. Default "
          "keep.");
  storage("-z,--level", words.level, "N",
          "Level of deflate, 0 to 9, where the output uses it. Costs encoding of all data that has "
          "another level; 9 takes several times as long as 6 for a few percent. Default: as "
          "stored.");
  storage("-m,--plain-below", words.plain_below, "SIZE",
          "Store datasets of fewer bytes contiguous, not compressed: fast to open, larger. "
          "Default 0.");
  storage.flag("-c,--contiguous", words.contiguous,
               "Store all datasets so. Costs decoding of all data, and their full size.");
  storage.flag(
      "--dedup", words.dedup,
      "Store encoded chunks of up to 4 KiB that are equal, on one rank, once. Costs a look-up "
      "for each and up to 32 MiB; such a file must not be written to in place later.");
  storage.engine("--layout", words.file_options, "layout", "claimed|dense|front",
                 "Where chunks go. claimed: wherever the file ends when they are ready. dense: in "
                 "the order of datasets and rows; costs waiting for each other in every round. "
                 "front: all metadata before them; costs copying the file once more at the end. "
                 "Default claimed.");
}

void add_resource_options(CLI::App* sub, verbs::ConcatWords& words) {
  const Group resources(sub, "Resources");
  resources.engine("-b,--memory", words.file_options, "memory", "SIZE",
                   "What each rank may hold at once; what does not fit is done in rounds. Default "
                   "1GiB.");
  resources.engine("--threads", words.file_options, "threads", "N",
                   "Threads of each rank that decode and encode. Default: cores / ranks.");
  resources("--commit-every", words.commit_every_s, "SECONDS",
            "At least so long between commits that --resume can start from. Each costs an fsync. "
            "Default 30.");
  resources.engine("--fsync", words.file_options, "fsync", "on|off",
                   "Make the data durable before the file appears. Default on.");
  resources.engine_flag("--journal", words.file_options, "journal",
                        "Keep a redo journal against torn metadata writes. Costs writing the "
                        "metadata twice.");
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
  text += fmt::format(", {} encoded anew", n_encoded);
  if (report.n_shared > 0) text += fmt::format("; {} share another's bytes", report.n_shared);
  return text;
}

/// What a stage's name stands for, where it does not say it itself.
std::string_view stage_remark(std::string_view stage) {
  if (stage == "open") return "inputs opened, their schema read and compared";
  if (stage == "exchange") return "counts of rows, chunks on their way to who encodes them";
  if (stage == "read") return "stored chunks; busy time of all threads, as are the next three";
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

/// Why a file was left out, which may be told in lines that are indented.
std::string one_line(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    const std::size_t next = std::min(text.find_first_not_of(' ', at + 1), text.size());
    text.replace(at, next - at, "; ");
  }
  return text;
}

int run_concat(Session& session, const ConcatArguments& arguments) {
  const Result<ConcatRequest> request = verbs::concat_request(arguments.words);
  if (!request.ok()) return session.fail(request.status());
  search_plugins_in(request->options.plugin_path);
  ProgressBar bar(std::filesystem::path(request->output).filename().string(),
                  session.speaks() && !arguments.quiet);
  const verbs::VerbRanks ranks = session.for_verb(arguments.quiet, bar);
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    const auto outcome = verbs::concat(ranks, arguments.words, *request);
    bar.clear();
    if (!outcome.ok()) return outcome.status();
    Shown shown{concat_text(*outcome), json_text(json_of(*outcome)), {}, exit_done};
    // What was left out must not go unseen, however quiet the rest is.
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
  CLI::App* sub = app.add_subcommand("concat", concat_description);
  sub->footer(concat_footer);
  add_output_options(sub, concat->words);
  add_input_options(sub, concat->words);
  add_storage_options(sub, concat->words);
  add_resource_options(sub, concat->words);
  report_options(sub, concat->json_path,
                 {"list", "sort", "output", "append", "force", "resume", "key", "codec", "threads",
                  "memory", "json", "help", "help-all"});
  Group(sub, "Reports").flag("-q,--quiet", concat->quiet, "No table, no progress, no remarks.");
  return [concat](Session& session) { return run_concat(session, *concat); };
}

}  // namespace tailrace::cli
