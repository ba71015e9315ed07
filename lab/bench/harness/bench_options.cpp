// Options of `tailrace-lab bench` with their units and defaults.

#include "bench_options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "cli/help_formatter.hpp"
#include "core/option_table.hpp"
#include "workload_sets.hpp"

namespace tailrace::bench {
namespace {

constexpr const char* description =
    R"(Compare ways to write the same fields: HDF5's own, Tailrace's, and the ideal
  mpiexec -n 4 tailrace-lab bench --bandwidth 100MB/s
      six Nyx-like fields, 128^3 cells a rank, within 1/1000 of their range, to a storage that takes
      100 MB/s from all ranks together
  mpiexec -n 2 tailrace-lab bench --workload snapshot.h5 --codec zfp --bound rel=1e-4 --dir /scratch
      the fields of a real file, tiled over the ranks
  mpiexec -n 2 tailrace-lab bench --bandwidth 1,5,25MB/s/rank,unlimited --report sweep.html
      a sweep over storages, and a page with the plots
  mpiexec -n 4 tailrace-lab bench --methods 'hdf5-collective-sz3,tailrace-*' --json rows.json
  tailrace-lab bench --index 100000
      what one chunk costs in the chunk index
  tailrace-lab bench choice --workload snapshot.h5
      is what codec auto chooses the best there is, over storages and bounds (choice --help)
  tailrace-lab bench codecs snapshot.h5
      codecs alone, without any output: speed on one core, ratio, error (codecs --help tells more)

Every method writes once to warm up, is read back with stock HDF5 and checked against the bound;
then all methods take turns, --repeat times. The time is that of the slowest rank, from create to
close.
)";

constexpr const char* footer =
    R"(Methods (--methods, separated by commas, '*' matches any run of characters):
  hdf5-independent-none     parallel HDF5, every rank by itself, uncompressed
  hdf5-collective-none      the same in collective calls
  hdf5-collective-CODEC     HDF5's filter pipeline; collective is its only way
  hdf5-unchanged            the calls of hdf5-collective-none, served by libtailrace_hdf5.so, which
                            must be in LD_PRELOAD: without loss, as for any program
  hdf5-unchanged-CODEC      the same with this codec, chunks and bounds as the other rows have them
  tailrace-LAYOUT-CODEC     ours; LAYOUT is claimed, dense, predictive, arena, hybrid, sparse, or
                            contiguous (with CODEC none only); CODEC auto chooses by itself. Behind
                            it may stand:
    -johnson, -insertion, ...   the order of work (tailrace repack --help lists them)
    -r1.25                      layouts that reserve: bytes reserved over bytes predicted
    -serial                     no overlap: nothing is written before a rank has encoded all
    -verified                   every chunk decoded again before it is written
  ideal-CODEC               each rank encodes and writes at once to a file of its own: no container,
                            no agreement, nobody waits. Not a usable output, but a limit.
Rows that compress take the same chunk shapes and error bounds. lab/bench/README.md tells how to
read the numbers.

Exit codes: 0 done, 1 a bound was broken, 2 usage or bad input, 3 storage or memory gave out.)";

void add(CLI::App& app, const std::string& name, std::string& target, const std::string& unit,
         const std::string& group, const std::string& text) {
  app.add_option(name, target, text)->type_name(unit)->group(group)->take_last();
}

/// Store the value of `parsed`, or return its failure, prefixed by the option's name.
template <class T, class Target>
Status take(const char* option, Result<T> parsed, Target& target) {
  if (!parsed.ok()) return parsed.status().within(option);
  target = std::move(*parsed);
  return Status();
}

Status understand_codec(const BenchArguments& arguments, BenchOptions& options) {
  FieldOptions field;
  TAILRACE_TRY(apply_field_options("codec=" + arguments.codec, field).within("--codec"));
  options.codec = field.codec;
  options.codec_settings = field.codec_settings;
  TAILRACE_TRY(parse_bounds(arguments.bound, options.bounds).within("--bound"));
  std::vector<ErrorBound> all = options.bounds;
  for (const std::string& text : arguments.field_bounds) {
    TAILRACE_TRY(parse_field_bound(text, options.field_bounds).within("--field-bound"));
    all.push_back(options.field_bounds.back().bound);
  }
  for (const ErrorBound& bound : all) {
    if (bound.mode == BoundMode::pw_rel) {
      return Status(Code::invalid_argument, "--bound " + error_bound_text(bound) +
                                                ": all methods run under an absolute bound");
    }
  }
  return Status();
}

Status understand_data(const BenchArguments& a, BenchOptions& options) {
  if (!a.workload.empty() && !a.synthetic.empty()) {
    return Status(Code::invalid_argument, "--workload and --synthetic cannot be combined");
  }
  options.generated = a.workload.empty();
  options.workload = !a.workload.empty() ? a.workload : a.synthetic.empty() ? "nyx" : a.synthetic;
  if (options.generated && !is_workload_set(options.workload)) {
    return Status(Code::invalid_argument,
                  "--synthetic " + options.workload + ": expected nyx, particles or climate");
  }
  options.data_folder = a.data_folder;
  for (const std::string& fill : a.fills) {
    TAILRACE_TRY(parse_fill(fill, options.fills).within("--fill"));
  }
  if (a.fit != "tile" && a.fit != "refine") {
    return Status(Code::invalid_argument, "--fit " + a.fit + ": expected tile or refine");
  }
  options.refine = a.fit == "refine";
  if (!a.cells.empty() && !a.size_per_rank.empty()) {
    return Status(Code::invalid_argument, "--cells and --size-per-rank cannot be combined");
  }
  if (!a.cells.empty()) TAILRACE_TRY(take("--cells", parse_shape(a.cells), options.cells));
  if (!a.size_per_rank.empty()) {
    TAILRACE_TRY(take("--size-per-rank", parse_bytes(a.size_per_rank), options.bytes_per_rank));
  }
  if (!a.chunk.empty()) TAILRACE_TRY(take("--chunk", parse_shape(a.chunk), options.chunk_shape));
  if (n_elements(options.cells) == 0 ||
      (options.chunk_shape && n_elements(*options.chunk_shape) == 0)) {
    return Status(Code::invalid_argument, "--cells and --chunk must not be empty");
  }
  return take("--seed", parse_count("seed", a.seed, 0), options.seed);
}

/// Parse "12" or "12:0.3": the ratio that layout hybrid expects, and its relative error.
Status understand_expectation(const std::string& text, BenchOptions& options) {
  if (text.empty()) return Status();
  char* end = nullptr;
  options.expected_ratio = std::strtod(text.c_str(), &end);
  if (*end == ':') options.expected_error = std::strtod(end + 1, &end);
  if (*end == '\0' && options.expected_ratio >= 1 && options.expected_error >= 0 &&
      options.expected_error < 1) {
    return Status();
  }
  return Status(Code::invalid_argument,
                "--expect " + text + ": expected RATIO or RATIO:ERROR, such as 12:0.3");
}

void add_data(CLI::App& app, BenchArguments& a) {
  const char* data = "Data";
  add(app, "-w,--workload,--input", a.workload, "SET|FILE", data,
      "nyx (cosmology), particles or climate: real data if --data has them, else generated fields "
      "of the same kind. Or any HDF5, netCDF or .npy file. Default: --synthetic nyx, equal on "
      "every machine.");
  add(app, "--synthetic", a.synthetic, "SET", data,
      "nyx, particles or climate, always generated from --seed.");
  add(app, "--data", a.data_folder, "DIR", data,
      "Folder of the real sets. Default $TAILRACE_DATA, else ../shared/data.");
  app.add_option("--fill", a.fills,
                 "Fill value of the matching fields of a file, kept exactly and left out of the "
                 "range. Repeatable. Default: as the file states.")
      ->type_name("GLOB:VALUE")
      ->group(data)
      ->expected(1)
      ->take_all();
  add(app, "--cells", a.cells, "SHAPE", data,
      "Block of one rank in each field. Default 128x128x128 for generated nyx fields, else the "
      "shape of the data.");
  add(app, "--fit", a.fit, "tile|refine", data,
      "Content of blocks larger than the data. tile: repeat the data. refine: interpolate, which "
      "makes smoother fields than real ones. Default tile.");
  add(app, "--size-per-rank", a.size_per_rank, "SIZE", data,
      "Approximate bytes of a rank in all fields, instead of --cells.");
  add(app, "--seed", a.seed, "N", data, "Seed of generated fields. Default 1.");
}

}  // namespace

std::unique_ptr<CLI::App> make_bench_parser(BenchArguments& a) {
  auto app = std::make_unique<CLI::App>(description, "tailrace-lab bench");
  app->formatter(std::make_shared<cli::HelpFormatter>());
  app->footer(footer);
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Other");

  add_data(*app, a);
  const char* compression = "Compression, the same for all methods";
  add(*app, "-c,--codec", a.codec, "CODEC", compression,
      "Codec of the rows that compress, NAME[,key=value...]. Default sz3.");
  add(*app, "-b,--bound", a.bound, "MODE=VALUE,...", compression,
      "Largest error allowed: abs=, rel= or psnr=. Several, separated by commas, are measured one "
      "after the other. Converted to an absolute bound of each field before the measurement. "
      "Default rel=1e-3.");
  app->add_option("--field-bound", a.field_bounds,
                  "Bound of the matching fields, such as 'temperature:abs=1e3'. Repeatable; the "
                  "first match counts. Default: --bound.")
      ->type_name("GLOB:MODE=VALUE")
      ->group(compression)
      ->expected(1)
      ->take_all();
  add(*app, "--chunk", a.chunk, "SHAPE", compression,
      "Chunk shape; a rank's block must be whole chunks. Default 64x64x64.");
  add(*app, "--plugin-path", a.plugin_path, "FOLDERS", compression,
      "Folders of HDF5 filter plug-ins, searched before HDF5_PLUGIN_PATH.");

  add(*app, "--profile", a.profile_path, "FILE", compression,
      "Machine profile with codec speeds, for rows that predict. Its storage speeds are not used: "
      "they are --bandwidth, or measured. Default: typical values.");
  add(*app, "--expect", a.expect, "RATIO[:ERROR]", compression,
      "Compression ratio that layout hybrid expects, and its relative error. Default 4:0.5.");

  const char* run = "Run";
  add(*app, "-m,--methods", a.methods, "LIST", run, "Methods to run, in this order (see below).");
  add(*app, "--repeat", a.repeat, "N", run, "Counted runs of each method. Default 5.");
  add(*app, "--bandwidth", a.bandwidth, "RATE,...", run,
      "Storage limit of all methods, such as 100MB/s for all ranks together or 25MB/s/rank. Writes "
      "are synchronous and not buffered. Several values make a sweep: 1,10,100MB/s,unlimited. "
      "Default unlimited.");
  add(*app, "--fsync", a.fsync, "on|off", run,
      "Sync the files, within the measured time. Default on.");
  add(*app, "--dir", a.folder, "DIR", run,
      "Folder for the outputs, which are deleted at the end. Default: the current folder.");
  add(*app, "--threads", a.threads, "N", run,
      "Encode threads per rank, for Tailrace and the ideal; HDF5 supports only one. Default 1.");
  add(*app, "--memory", a.memory, "SIZE", run, "Memory limit of Tailrace per rank. Default 1GiB.");
  add(*app, "--index", a.index, "N", run,
      "Measure only the insertion of N chunks into the chunk index. Default: off.");

  add(*app, "--json", a.json_path, "FILE", "Reports",
      "Write the same numbers as JSON; '-' is stdout, in place of the table.");
  add(*app, "--report", a.report_path, "FILE.html", "Reports",
      "Write a self-contained page with plots: time by method, predicted against measured sizes "
      "and "
      "times, space against overflow.");
  return app;
}

Result<BenchOptions> understand(const BenchArguments& a) {
  BenchOptions options;
  options.folder = a.folder;
  options.plugin_path = a.plugin_path;
  options.profile_path = a.profile_path;
  TAILRACE_TRY(understand_data(a, options));
  TAILRACE_TRY(understand_codec(a, options));
  TAILRACE_TRY(understand_expectation(a.expect, options));
  TAILRACE_TRY(take("--repeat", parse_count("repeat", a.repeat, 1), options.n_repeats));
  TAILRACE_TRY(take("--threads", parse_count("threads", a.threads, 1), options.n_threads));
  TAILRACE_TRY(take("--memory", parse_bytes(a.memory), options.memory_bytes));
  TAILRACE_TRY(take("--bandwidth", parse_bandwidths(a.bandwidth), options.bandwidths));
  TAILRACE_TRY(take("--fsync", parse_switch("fsync", a.fsync), options.fsync));
  options.method_patterns = split(a.methods, ',');
  return options;
}

}  // namespace tailrace::bench
