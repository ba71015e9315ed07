// Options of `tailrace bench` with their units and defaults.

#include "bench_options.hpp"

#include "cli/help_formatter.hpp"

namespace tailrace::bench {
namespace {

constexpr const char* description =
    R"(Compare ways to write the same fields: HDF5's own, Tailrace's, and the ideal
  mpiexec -n 4 tailrace bench --bandwidth 100MB/s
      six Nyx-like fields, 128^3 cells a rank, within 1/1000 of their range, to a storage that takes
      100 MB/s from all ranks together
  mpiexec -n 2 tailrace bench --input snapshot.h5 --codec zfp --bound rel=1e-4 --dir /scratch
      the fields of a real file, tiled over the ranks
  mpiexec -n 4 tailrace bench --methods 'hdf5-collective-sz3,tailrace-*' --json rows.json
  tailrace bench --index 100000
      what one chunk costs in the chunk index
  tailrace bench codecs snapshot.h5
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
  tailrace-LAYOUT-CODEC     ours; LAYOUT is claimed, dense, or contiguous (with CODEC none only)
  tailrace-LAYOUT-CODEC-verified   the same, every chunk decoded again before it is written
  ideal-CODEC               each rank encodes and writes at once to a file of its own: no container,
                            no agreement, nobody waits. Not a usable output, but a limit.
Rows that compress take the same chunk shapes and error bounds. bench/README.md tells how to read
the numbers.

Exit codes: 0 done, 1 a bound was broken, 2 usage or bad input, 3 storage or memory gave out.)";

void add(CLI::App& app, const std::string& name, std::string& target, const std::string& unit,
         const std::string& group, const std::string& text) {
  app.add_option(name, target, text)->type_name(unit)->group(group)->take_last();
}

/// "100MB/s" in bytes per second; 0 for "unlimited".
Result<std::uint64_t> parse_bandwidth(std::string text) {
  if (text == "unlimited" || text == "none") return std::uint64_t{0};
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  Result<std::uint64_t> parsed = parse_bytes(text);
  if (parsed.ok() && *parsed == 0) return Status(Code::invalid_argument, "must be more than 0");
  return parsed;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

/// Store what `parsed` holds, or return its failure with the option's name before it.
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
  TAILRACE_TRY(take("--bound", parse_error_bound(arguments.bound), options.bound));
  if (options.bound.mode != BoundMode::pw_rel) return Status();
  return Status(Code::invalid_argument,
                "--bound " + arguments.bound + ": all methods run under an absolute bound");
}

}  // namespace

std::unique_ptr<CLI::App> make_bench_parser(BenchArguments& a) {
  auto app = std::make_unique<CLI::App>(description, "tailrace bench");
  app->formatter(std::make_shared<cli::HelpFormatter>());
  app->footer(footer);
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Other");

  const char* data = "Data";
  add(*app, "--input", a.input, "FILE", data,
      "Use the floating point fields of this file (HDF5, netCDF, .npy), tiled with a shift of its "
      "own for each rank.");
  add(*app, "--synthetic", a.synthetic, "nyx", data,
      "Without --input: six cosmology-like fields, seeded, one block a rank. Default nyx.");
  add(*app, "--cells", a.cells, "SHAPE", data,
      "Block of one rank in each field. Default 128x128x128, or the input field's shape.");
  add(*app, "--size-per-rank", a.size_per_rank, "SIZE", data,
      "Instead of --cells: a cube of about this many bytes over all fields together.");
  add(*app, "--seed", a.seed, "N", data, "Of the synthetic fields. Default 1.");

  const char* compression = "Compression, alike for all methods";
  add(*app, "-c,--codec", a.codec, "CODEC", compression,
      "Codec of the rows that compress, NAME[,key=value...]. Default sz3.");
  add(*app, "-b,--bound", a.bound, "MODE=VALUE", compression,
      "Largest error allowed: abs=, rel= or psnr=. Turned into an absolute bound of each field "
      "before the clock starts. Default rel=1e-3.");
  add(*app, "--chunk", a.chunk, "SHAPE", compression,
      "Chunk shape; a rank's block must be whole chunks. Default 64x64x64.");
  add(*app, "--plugin-path", a.plugin_path, "FOLDERS", compression,
      "Folders of HDF5 filter plug-ins, searched before HDF5_PLUGIN_PATH.");

  const char* run = "Run";
  add(*app, "-m,--methods", a.methods, "LIST", run, "Which rows, and in which order (below).");
  add(*app, "--repeat", a.repeat, "N", run, "Counted runs of each method. Default 5.");
  add(*app, "--bandwidth", a.bandwidth, "RATE", run,
      "Storage limit for all ranks together and all methods alike, such as 100MB/s; synchronous, "
      "so nothing is buffered behind it. Default unlimited.");
  add(*app, "--fsync", a.fsync, "on|off", run, "Inside the time, for all methods. Default on.");
  add(*app, "--dir", a.folder, "DIR", run,
      "Write below this folder; everything is deleted afterwards. Default the current one.");
  add(*app, "--threads", a.threads, "N", run,
      "Encode threads a rank, of Tailrace and the ideal; HDF5 knows only one. Default 1.");
  add(*app, "--memory", a.memory, "SIZE", run, "Tailrace's memory cap a rank. Default 1GiB.");
  add(*app, "--index", a.index, "N", run,
      "Measure only the insertion of N chunks into the chunk index.");

  add(*app, "--json", a.json_path, "FILE", "Reports",
      "Write the same numbers as JSON; '-' is stdout, in place of the table.");
  return app;
}

Result<BenchOptions> understand(const BenchArguments& a) {
  BenchOptions options;
  options.input = a.input;
  options.folder = a.folder;
  options.plugin_path = a.plugin_path;
  if (a.input.empty() && a.synthetic != "nyx") {
    return Status(Code::invalid_argument,
                  "--synthetic: \"" + a.synthetic + "\" is unknown; there is nyx");
  }
  if (!a.cells.empty() && !a.size_per_rank.empty()) {
    return Status(Code::invalid_argument, "--cells and --size-per-rank exclude each other");
  }
  TAILRACE_TRY(understand_codec(a, options));
  if (!a.cells.empty()) TAILRACE_TRY(take("--cells", parse_shape(a.cells), options.cells));
  if (!a.size_per_rank.empty()) {
    TAILRACE_TRY(take("--size-per-rank", parse_bytes(a.size_per_rank), options.bytes_per_rank));
  }
  if (!a.chunk.empty()) TAILRACE_TRY(take("--chunk", parse_shape(a.chunk), options.chunk_shape));
  TAILRACE_TRY(take("--seed", parse_count("seed", a.seed, 0), options.seed));
  TAILRACE_TRY(take("--repeat", parse_count("repeat", a.repeat, 1), options.n_repeats));
  TAILRACE_TRY(take("--threads", parse_count("threads", a.threads, 1), options.n_threads));
  TAILRACE_TRY(take("--memory", parse_bytes(a.memory), options.memory_bytes));
  TAILRACE_TRY(take("--bandwidth", parse_bandwidth(a.bandwidth), options.bandwidth_bytes_per_s));
  TAILRACE_TRY(take("--fsync", parse_switch("fsync", a.fsync), options.fsync));
  options.method_patterns = split(a.methods, ',');
  if (n_elements(options.cells) == 0 ||
      (options.chunk_shape && n_elements(*options.chunk_shape) == 0)) {
    return Status(Code::invalid_argument, "--cells and --chunk must not be empty");
  }
  return options;
}

}  // namespace tailrace::bench
