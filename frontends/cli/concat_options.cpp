// Every option of `tailrace concat` with its unit, default and price; examples first.

#include "command_line.hpp"
#include "option_group.hpp"

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
  input.engine("--plugin-path", words.file_options, "plugin-path", "FOLDERS",
               "Folders of HDF5 filter plug-ins, separated by colons, searched before "
               "HDF5_PLUGIN_PATH.");
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
  storage.engine("--layout", words.file_options, "layout", "claimed|dense",
                 "Where chunks go. claimed: wherever the file ends when they are ready. dense: in "
                 "the order of datasets and rows; costs waiting for each other in every round. "
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

}  // namespace

void add_concat(CLI::App& app, ConcatArguments& concat) {
  CLI::App* sub = app.add_subcommand("concat", description);
  sub->footer(footer);
  add_output_options(sub, concat.words);
  add_input_options(sub, concat.words);
  add_storage_options(sub, concat.words);
  add_resource_options(sub, concat.words);
  report_options(sub, concat.json_path);
  Group(sub, "Reports").flag("-q,--quiet", concat.quiet, "No table, no progress, no remarks.");
}

}  // namespace tailrace::cli
