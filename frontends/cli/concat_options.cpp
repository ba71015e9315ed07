// Every option of `tailrace concat` with its unit, default and price; examples first.

#include "concat_options.hpp"

#include <CLI/CLI.hpp>

namespace tailrace::cli {
namespace {

constexpr const char* description =
    R"help(Concatenate HDF5 files: every dataset appended to its like, along the first dimension

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

constexpr const char* footer =
    R"help(All files must have the same datasets, of the same types and inner extents; rows, chunks
and filters may differ. Groups, attributes, links and scalars come from the first file. What does
not fit together is named, all of it at once. docs/concat.md tells more.

Exit codes: 0 done, 2 usage or bad input, 3 storage or memory gave out.)help";

/// Adds options to one group of the help.
class Group {
 public:
  Group(CLI::App* app, const char* name) : app_(app), name_(name) {}

  template <class T>
  CLI::Option* operator()(const char* option, T& target, const char* unit,
                          const std::string& text) const {
    return app_->add_option(option, target, text)->type_name(unit)->group(name_)->take_last();
  }
  void flag(const char* option, bool& target, const std::string& text) const {
    app_->add_flag(option, target, text)->group(name_);
  }
  /// An option whose text goes to core/options.hpp under the name `key`.
  void engine(const char* option, std::vector<KeyValue>& target, const std::string& key,
              const char* unit, const std::string& text) const {
    app_->add_option_function<std::string>(
            option, [&target, key](const std::string& value) { target.emplace_back(key, value); },
            text)
        ->type_name(unit)
        ->group(name_)
        ->take_last();
  }
  void engine_flag(const char* option, std::vector<KeyValue>& target, const std::string& key,
                   const std::string& text) const {
    app_->add_flag_callback(
            option, [&target, key] { target.emplace_back(key, "on"); }, text)
        ->group(name_);
  }

 private:
  CLI::App* app_;
  const char* name_;
};

void add_input_options(CLI::App* sub, ConcatArguments& concat) {
  sub->add_option("FILE", concat.files, "HDF5 files, in the order of their rows.");
  const Group input(sub, "Input");
  input("-i,--list", concat.list_path, "FILE",
        "Read the files' names here: one a line, relative to the current directory; blank lines "
        "and lines that begin with '#' are left out. '-' is standard input.");
  sub->add_flag("--sort{default}", concat.sort_paths,
                "Order the files by the first values of integer datasets, separated by commas; "
                "without them by /spill/run,/spill/subrun. Costs another opening of each file.")
      ->type_name("PATHS")
      ->group("Input")
      ->take_last();
  input("--on-error", concat.on_error, "stop|skip",
        "What a file does that cannot be appended (missing, corrupt, another schema). stop: "
        "nothing is written. skip: it is left out, and named. Default stop.");
  input.engine("--plugin-path", concat.file_options, "plugin-path", "FOLDERS",
               "Folders of HDF5 filter plug-ins, separated by colons, searched before "
               "HDF5_PLUGIN_PATH.");
}

void add_output_options(CLI::App* sub, ConcatArguments& concat) {
  const Group output(sub, "Output");
  output("-o,--output", concat.output, "FILE", "The HDF5 file to create, or to append to.")
      ->required();
  output.flag("-a,--append", concat.append,
              "The output exists and gets more rows. Costs a new encoding of each dataset's last, "
              "partly filled chunk.");
  output.flag("--resume", concat.resume,
              "Go on with what a killed run of the same command has left, or begin anew if it has "
              "left nothing.");
  output.engine_flag("--force", concat.file_options, "replace", "Replace an existing file.");
  output("-k,--key", concat.key_names, "NAMES",
         "Names in /spill that together identify an event, such as run,subrun,evt. Each group that "
         "has them all gets a dataset LAST.seq, which numbers its rows' events alike in all "
         "groups. Costs reading those datasets of every file.");
}

void add_storage_options(CLI::App* sub, ConcatArguments& concat) {
  const Group storage(sub, "Chunks and compression");
  storage("--chunk", concat.chunk, "SIZE|ROWSx",
          "About so many bytes a chunk (1MiB), or so many rows (128x). Costs decoding and encoding "
          "of all that has other chunks. Default: as the inputs', where these are large enough; "
          "where they are tiny, 1 MiB.");
  storage("--codec", concat.codec, "CODEC",
          "NAME[,key=value...]. keep: each dataset's filters as in the first file. none, deflate, "
          "zstd and every other lossless codec of repack: costs encoding of all data. Default "
          "keep.");
  storage("-z,--level", concat.level, "N",
          "Level of deflate, 0 to 9, where the output uses it. Costs encoding of all data that has "
          "another level; 9 takes several times as long as 6 for a few percent. Default: as "
          "stored.");
  storage("-m,--plain-below", concat.plain_below, "SIZE",
          "Store datasets of fewer bytes contiguous, not compressed: fast to open, larger. "
          "Default 0.");
  storage.flag("-c,--contiguous", concat.contiguous,
               "Store all datasets so. Costs decoding of all data, and their full size.");
  storage.flag(
      "--dedup", concat.dedup,
      "Store encoded chunks of up to 4 KiB that are equal, on one rank, once. Costs a look-up "
      "for each and up to 32 MiB; such a file must not be written to in place later.");
  storage.engine("--layout", concat.file_options, "layout", "claimed|dense",
                 "Where chunks go. claimed: wherever the file ends when they are ready. dense: in "
                 "the order of datasets and rows; costs waiting for each other in every round. "
                 "Default claimed.");
}

void add_resource_options(CLI::App* sub, ConcatArguments& concat) {
  const Group resources(sub, "Resources");
  resources.engine("-b,--memory", concat.file_options, "memory", "SIZE",
                   "What each rank may hold at once; what does not fit is done in rounds. Default "
                   "1GiB.");
  resources.engine("--threads", concat.file_options, "threads", "N",
                   "Threads of each rank that decode and encode. Default: cores / ranks.");
  resources("--commit-every", concat.commit_every_s, "SECONDS",
            "At least so long between commits that --resume can start from. Each costs an fsync. "
            "Default 30.");
  resources.engine("--fsync", concat.file_options, "fsync", "on|off",
                   "Make the data durable before the file appears. Default on.");
  resources.engine_flag("--journal", concat.file_options, "journal",
                        "Keep a redo journal against torn metadata writes. Costs writing the "
                        "metadata twice.");
}

}  // namespace

void add_concat(CLI::App& app, ConcatArguments& concat) {
  CLI::App* sub = app.add_subcommand("concat", description);
  sub->footer(footer);
  add_output_options(sub, concat);
  add_input_options(sub, concat);
  add_storage_options(sub, concat);
  add_resource_options(sub, concat);
  const Group reports(sub, "Reports");
  reports("--json", concat.json_path, "FILE",
          "Write the same numbers as JSON; '-' is stdout, in place of the table.");
  sub->set_help_flag("-h,--help", "Print this and exit.")->group("Reports");
  reports.flag("-q,--quiet", concat.quiet, "No table, no progress, no remarks.");
}

}  // namespace tailrace::cli
