// Every option with its unit and default; examples first.

#include "command_line.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "codec/registry.hpp"
#include "help_formatter.hpp"
#include "layout/layout.hpp"
#include "option_group.hpp"
#include "schedule/order.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* main_description =
    R"(tailrace: parallel compressed output into one ordinary HDF5 file

Examples:
  tailrace repack snapshot.h5 -o small.h5 --codec sz3 --bound rel=1e-3
  mpiexec -n 4 tailrace repack snapshot.nc -o small.h5 --codec zfp --bound abs=0.01
  mpiexec -n 4 tailrace concat -o run.h5 -i list.txt
  tailrace verify snapshot.h5 small.h5
  tailrace info small.h5
)";

constexpr const char* repack_description =
    R"(Compress existing files into HDF5, in parallel, within an error bound

Examples:
  tailrace repack snapshot.h5 -o small.h5 --codec sz3 --bound rel=1e-3
      every field of floating point numbers within 1/1000 of its value range; integers, coordinates
      and small arrays exactly; groups, attributes and dimension scales carried over
  mpiexec -n 4 tailrace repack ocean.nc -o ocean_small.nc --bound abs=0.01 --why
      on four ranks, with the codec that is fastest for each field here, and why it is
  tailrace repack ocean.nc -o ocean_small.nc --bound abs=0.01 --codec portable
      readable everywhere: no HDF5 needs a plug-in for it
  tailrace repack a.h5 -o b.h5 --target-size 2GB
      within the tightest bound, common to all fields, that makes about 2 GB
  tailrace repack a.h5 -o b.h5 --codec zstd,level=5
      without loss
  tailrace repack a.h5 -o b.h5 --codec sz3 --bound rel=1e-4 \
      --field 'temperature:codec=zfp,bound=abs=1e3' --field 'velocity_?:bound=rel=1e-3'
      other settings for some fields
  tailrace repack u.bin --raw f32:512x512x512 -o u.h5 --codec sz3 --bound psnr=80 --memory 256MB
      an array larger than memory, read and written piece by piece

Inputs: HDF5 (any layout and filters), netCDF-4, netCDF classic, NumPy .npy, raw binary (--raw).
The output appears at the end, whole; if anything fails, an older file of that name stays.
)";

constexpr const char* repack_footer =
    R"(Error bounds (--bound MODE=VALUE):
  abs=V     no value changes by more than V, in the field's own unit
  rel=V     ... by more than V times the range (greatest - least) of the field's values
  psnr=V    ... by so little that the PSNR is at least V dB
  pw_rel=V  ... by more than V times the value itself, V < 1; zeros exactly (trz, portable)
  NaN, infinite and fill values come back exactly, or the chunk is stored without compression.

Keys of --field 'GLOB:key=value,...':
  codec=NAME   bound=MODE=VALUE or none   chunk=SIZE or SHAPE   verify=on|off|auto
  layout=NAME  fill=NUMBER (kept exactly, and left out of the range)  raw-fallback=on|off
  and the codec's own: level=5, id=32028,cd=1:2:3, book=FILE (trz, see train-book), ...
  GLOB is matched against the whole path (/group/name) and, without a '/', against the name.

Memory: --memory bounds what each rank holds at once, however large the input is. Beside it a rank
needs about 700 bytes for each of its own chunks, for their boxes and the chunk index.

Exit codes: 0 done, 1 a bound was broken, 2 usage or bad input, 3 storage or memory gave out.)";

constexpr const char* verify_description =
    R"(Check that a compressed file keeps its error bounds

Examples:
  tailrace verify snapshot.h5 small.h5
      every field against the bound that small.h5 records; fields without one must be equal
  mpiexec -n 4 tailrace verify snapshot.nc other.h5 --bound rel=1e-3
      a file that another tool wrote, against a bound given here
  tailrace verify a.h5 b.h5 --bound psnr=80 --field 'density:bound=abs=1e-6'
  mpiexec -n 4 tailrace verify --concat all.h5 -i list.txt
      whether all.h5 is the concatenation of the files of the list, element for element

Compares in exact arithmetic, piece by piece; the ranks share the work. Where a value is beyond its
bound, prints its coordinates, its original and its decoded value.
)";

constexpr const char* verify_footer =
    R"(Exit codes: 0 all fields keep their bounds, 1 a bound is broken or a field is missing or of
another shape, 2 usage or bad input, 3 storage or memory gave out.)";

constexpr const char* info_description =
    R"(Tell what a file holds: fields, chunks, filters, bounds, ratios

Examples:
  tailrace info small.h5
  tailrace info small.h5 --chunks /native_fields/temperature
)";

constexpr const char* recover_description =
    R"(Look at what a killed job left behind, and repair it

Examples:
  tailrace recover small.h5            say what is wrong, change nothing
  tailrace recover small.h5 --apply    repair: back to the last committed step
)";

constexpr const char* train_book_description =
    R"help(Make a book for codec trz: Huffman codes that all chunks of a field share

Examples:
  tailrace train-book step_090.h5 --only density --bound rel=1e-4 --chunk 1MiB -o density.book
  tailrace repack step_091.h5 -o small.h5 --codec trz --bound rel=1e-4 --chunk 1MiB \
      --field 'density:book=density.book'
      chunks of later steps then need no codes of their own

Pays for chunks of 1 MB and less (docs/codecs.md). One book for each field, under the bound, the
chunk and the settings that it will serve. It travels in the dataset: readers need no file.
)help";

constexpr const char* profile_description =
    R"help(Measure this machine: codecs, storage, latencies; what predictions are made from

Examples:
  mpiexec -n 32 tailrace profile --dir /scratch/me -o machine.json --plot machine.png
      on as many ranks of a node as a job has, writing where jobs write; about a minute
  tailrace profile --input snapshot.h5 --time 110
      codecs on one's own data, more points
  tailrace profile --show machine.json
      what was measured, and whether it still fits this machine
)help";

constexpr const char* profile_footer =
    R"help(Codecs are measured at bounds from rel=1e-2 to 1e-6 on all ranks at once, in CPU time of
one core: gather and encode, decode and hand over. Storage: one shared file, written by 1, 2, 4 ...
all ranks in sizes from 1 MiB on, synced, read back, and removed whatever happens. docs/profile.md
explains the fits. Use it by repack --profile FILE, or TAILRACE_PROFILE=FILE.)help";

std::string codec_help() {
  std::string text = "Codec and its settings, NAME[,key=value...].\nBuilt in:";
  for (const CodecEntry& codec : codec_registry()) {
    text += fmt::format("\n  {}: {}", codec.name, codec.summary);
  }
  return text +
         "\nPlug-ins of HDF5 (see --plugin-path): sz3, zfp, zstd, or any by number: "
         "id=32028,cd=1:2:3."
         "\nauto: chosen for each field, from a sample and the machine profile (see --for, --why)."
         "\nDefault: auto if there is a --bound or a target, else deflate.";
}

std::string layout_help() {
  std::string text = "Where chunks go in the file. Default claimed.";
  for (const LayoutEntry& layout : layout_registry()) {
    text += fmt::format("\n  {}: {}", layout.name, layout.summary);
  }
  return text;
}

std::string order_help() {
  std::string text = "In which order each rank encodes its chunks. Default given.";
  for (const OrderEntry& order : order_registry()) {
    text += fmt::format("\n  {}: {}", order.name, order.summary);
  }
  return text;
}

/// What codec auto is to reach, and what it goes by.
void add_choice_options(CLI::App* sub, RepackArguments& repack) {
  std::vector<KeyValue>& file = repack.file_options;
  const Group choice(sub, "Choice of codecs (--codec auto)");
  choice.engine(
      "--for", file, "for", "speed|size|balanced",
      "speed: the shortest step, encoding and writing overlapped. size: the smallest file. "
      "balanced: the smallest one that takes at most a tenth longer than the fastest. "
      "Default speed.");
  sub->add_flag("--why{predicted}", repack.why,
                "Print the codecs that were compared. --why=measured encodes the sampled chunks "
                "with each of them, too.")
      ->type_name("")
      ->group("Choice of codecs (--codec auto)")
      ->take_last();
  choice.engine("--profile", file, "profile", "FILE",
                "Machine profile of 'tailrace profile'. Default: TAILRACE_PROFILE, else "
                "~/.config/tailrace/profile.json, else typical values.");
  choice.engine("--target-size", file, "target-size", "SIZE",
                "Bytes that all fields together should come to: the tightest bound, the same share "
                "of each field's range, that makes about this. A --bound is then the loosest one.");
  choice.engine("--target-psnr", file, "target-psnr", "DB",
                "PSNR that each field should come to, by the errors of a sample; --bound psnr= "
                "guarantees it at larger size. A --bound is then the loosest one.");
}

/// How dimensions of the output are named.
void add_netcdf_options(CLI::App* sub, verbs::NetcdfRequest& netcdf) {
  const Group output(sub, "Output");
  output.flag("--netcdf", netcdf.wanted,
              "Make the output a netCDF-4 file with named dimensions, whatever the input is: "
              "those of --dims, else dim_LENGTH, shared by equal lengths of a group. netCDF "
              "inputs keep their own without being asked.");
  output.list("--dims", netcdf.dimensions, "GLOB=NAME,...",
              "Names of the dimensions of fields that match, slowest first, with --netcdf: "
              "--dims 'temperature=time,y,x' or --dims '*=z,y,x'. A one-dimensional field of "
              "a dimension's name becomes its coordinate. Repeatable; a later one wins.");
}

void add_repack(CLI::App& app, RepackArguments& repack) {
  CLI::App* sub = app.add_subcommand("repack", repack_description);
  const Group reports(sub, "Reports");
  const Group input(sub, "Input");
  const Group output(sub, "Output");
  sub->footer(repack_footer);
  sub->add_option("INPUT", repack.inputs, "Files to compress. Several need a folder as --output.")
      ->required();
  std::vector<KeyValue>& file = repack.file_options;
  output("-o,--output", repack.output, "OUT", "The HDF5 file to create, or an existing folder.")
      ->required();
  output.engine_flag("--force", file, "replace", "Replace an existing file.");
  add_netcdf_options(sub, repack.request.netcdf);
  input("--raw", repack.request.raw_format, "TYPE:SHAPE",
        "The input is raw binary in native byte order, such as f32:512x512x512 (slowest "
        "dimension first). Types: f32 f64 i8 i16 i32 i64 u8 u16 u32 u64.");
  input.list("--only", repack.request.fields.selection.only, "GLOB",
             "Repack only fields whose path matches. Repeatable. Default: all.");
  input.list("--exclude", repack.request.fields.selection.exclude, "GLOB",
             "Leave out fields whose path matches. Repeatable.");

  const Group compression(sub, "Compression");
  compression("-c,--codec", repack.request.fields.codec, "CODEC", codec_help());
  compression(
      "-b,--bound", repack.request.fields.bound, "MODE=VALUE",
      "Largest error allowed: abs=, rel=, psnr= or pw_rel= (below). Default: none, lossless.");
  compression.list(
      "-f,--field", repack.request.fields.per_field, "GLOB:k=v,...",
      "Settings for the fields that match, over all others (below). Repeatable; a later "
      "one wins. A pattern that matches nothing is an error.");
  compression("--lossless-codec", repack.request.fields.lossless_codec, "CODEC",
              "For what a --bound leaves exact: integers, coordinates, arrays under 4 KiB. "
              "Default: deflate.");
  compression.engine(
      "--chunk", file, "chunk", "SIZE|SHAPE",
      "Preferred bytes of a chunk, or its shape for the fields of as many dimensions "
      "(64x64x64). Default 8MiB, less where --memory or the number of ranks ask for it.");
  compression.engine(
      "--verify", file, "verify", "on|off|auto",
      "Decode every chunk again and check its bound. auto: for lossy codecs whose code is "
      "not ours. Default auto.");
  compression.engine("--plugin-path", file, "plugin-path", "FOLDERS",
                     "Folders of HDF5 filter plug-ins, separated by colons, searched before "
                     "HDF5_PLUGIN_PATH.");
  add_choice_options(sub, repack);
  const Group resources(sub, "Resources and storage");
  resources.engine("--threads", file, "threads", "N",
                   "Encode threads of each rank. Default 0: the node's cores shared by its ranks.");
  resources.engine("--memory", file, "memory", "SIZE",
                   "Most memory for buffers in each rank. Default 1GiB.");
  resources.engine("--buffer", file, "buffer", "SIZE",
                   "Encoded chunks are gathered into writes of up to this. Default 16MiB.");
  resources.engine("--layout", file, "layout", "NAME", layout_help());
  resources.engine("--fsync", file, "fsync", "on|off",
                   "Make the data durable before the file appears. Default on.");
  resources.engine_flag("--direct", file, "direct",
                        "Write with O_DIRECT, past the page cache. Aligns writes to 4096 bytes.");
  resources.engine("--align", file, "align", "SIZE",
                   "Let writes begin at multiples of this, such as a stripe. Default auto: as the "
                   "machine profile says, 1 without one.");
  resources.engine("--order", file, "order", "NAME", order_help());
  resources.engine(
      "--space", file, "space", "GOAL|RATIO",
      "Layouts predictive and arena: what they keep free for chunks that come out larger "
      "than predicted. performance, balanced, storage, weights such as 3:1, or reserved "
      "over predicted bytes, such as 1.25. Default balanced.");
  resources.engine("--expected-ratio", file, "expected-ratio", "RATIO",
                   "Layout hybrid: the ratio that chunks are expected to have.");
  resources.engine("--expected-error", file, "expected-error", "FRACTION",
                   "Layout hybrid: by which fraction that may be off.");
  resources.engine_flag("--journal", file, "journal",
                        "Keep a redo journal against torn metadata writes.");

  reports("--trace", repack.trace_path, "FILE",
          "Write what every lane of every rank did, for ui.perfetto.dev (Chrome trace JSON).");
  report_options(sub, repack.json_path);
  reports.flag("-q,--quiet", repack.quiet, "No table, no progress, no remarks.");
}

/// The two ways to verify take different options.
void check_verify(const VerifyArguments& verify) {
  const bool pair_options = !verify.files.bound.empty() || !verify.files.per_field.empty() ||
                            !verify.files.selection.only.empty() ||
                            !verify.files.selection.exclude.empty() ||
                            !verify.files.raw_format.empty();
  const bool concat_options = !verify.concat.list_path.empty() ||
                              !verify.concat.key_names.empty() || !verify.concat.memory.empty();
  if (!verify.concat.output.empty()) {
    if (!pair_options) return;
    throw CLI::ValidationError("--concat", "excludes --bound, --field, --only, --exclude, --raw");
  }
  if (verify.files.original.empty()) throw CLI::RequiredError("ORIGINAL");
  if (verify.files.compressed.empty()) throw CLI::RequiredError("COMPRESSED");
  if (!verify.more_files.empty()) throw CLI::ExtrasError(verify.more_files);
  if (concat_options) throw CLI::ValidationError("--list, --key, --memory", "need --concat");
}

void add_verify(CLI::App& app, VerifyArguments& verify) {
  CLI::App* sub = app.add_subcommand("verify", verify_description);
  const Group input(sub, "Input");
  sub->footer(verify_footer);
  sub->add_option("ORIGINAL", verify.files.original, "The file before compression.");
  sub->add_option("COMPRESSED", verify.files.compressed, "The file after it.");
  sub->add_option("FILES", verify.more_files, "With --concat: inputs, these and the first two.");
  sub->final_callback([&verify] { check_verify(verify); });
  const Group concat(sub, "Check a concatenation");
  concat("--concat", verify.concat.output, "OUT",
         "Check that OUT holds every element of the inputs, in order, and nothing else.");
  concat("-i,--list", verify.concat.list_path, "LIST",
         "The inputs, one path a line; '-' is standard input.");
  concat("-k,--key", verify.concat.key_names, "NAMES",
         "Columns that identify an event, as given to concat, to check key datasets by.");
  concat("--memory", verify.concat.memory, "SIZE",
         "What each rank may hold of rows and open files. Default 256MiB.");
  const Group checks(sub, "What to check");
  checks("-b,--bound", verify.files.bound, "MODE=VALUE",
         "abs=, rel=, psnr= or pw_rel= for all fields of floating point numbers that are not "
         "recorded as exact. Default: what the compressed file records.");
  checks.list("-f,--field", verify.files.per_field, "GLOB:k=v,...",
              "bound= (none: exact) or fill= for the fields that match. Repeatable.");
  checks.list("--only", verify.files.selection.only, "GLOB",
              "Compare only fields whose path matches. Repeatable. Default: all of the original.");
  checks.list("--exclude", verify.files.selection.exclude, "GLOB",
              "Leave out fields whose path matches. Repeatable.");
  input("--plugin-path", verify.plugin_path, "FOLDERS",
        "Folders of HDF5 filter plug-ins, separated by colons, searched before "
        "HDF5_PLUGIN_PATH.");
  input("--raw", verify.files.raw_format, "TYPE:SHAPE",
        "The original is raw binary, such as f32:512x512x512.");
  report_options(sub, verify.json_path);
  Group(sub, "Reports").flag("-q,--quiet", verify.quiet, "No table: the exit code says it all.");
}

void add_info(CLI::App& app, InfoArguments& info) {
  CLI::App* sub = app.add_subcommand("info", info_description);
  sub->add_option("FILE", info.request.file, "HDF5, netCDF, .npy, or raw binary.")->required();
  Group(sub, "What to tell")(
      "--chunks", info.request.chunks_of, "FIELD",
      "List every chunk of this field: position, address, bytes, filter mask.");
  Group(sub, "Input")("--raw", info.request.raw_format, "TYPE:SHAPE",
                      "The file is raw binary, such as f32:512x512x512.");
  report_options(sub, info.json_path);
}

void add_recover(CLI::App& app, RecoverArguments& recover) {
  CLI::App* sub = app.add_subcommand("recover", recover_description);
  sub->add_option("FILE", recover.request.file, "The output of a job that died.")->required();
  Group(sub, "What to do")
      .flag("--apply", recover.request.apply, "Change the file. Default: only report.");
  report_options(sub, recover.json_path);
}

void add_train_book(CLI::App& app, TrainBookArguments& train_book) {
  CLI::App* sub = app.add_subcommand("train-book", train_book_description);
  const Group input(sub, "Input");
  const Group output(sub, "Output");
  sub->add_option("INPUT", train_book.input, "HDF5, netCDF, .npy, or raw binary.")->required();
  output("-o,--output", train_book.output, "FILE", "The book to create.")->required();
  output.flag("--force", train_book.force, "Replace an existing file.");
  const Group what(sub, "What it is for");
  what("-b,--bound", train_book.bound, "MODE=VALUE", "abs=, rel= or psnr=, as for repack.")
      ->required();
  what("-c,--codec", train_book.codec, "CODEC",
       "trz and its settings, trz[,key=value...]. Default trz.");
  what("--chunk", train_book.chunk, "SIZE|SHAPE", "As for repack.");
  input.list("--only", train_book.only, "GLOB",
             "Count only fields whose path matches. Repeatable. Default: all of them together.");
  input("--raw", train_book.raw_format, "TYPE:SHAPE",
        "The input is raw binary, such as f32:512x512x512.");
  sub->set_help_flag("-h,--help", "Print this and exit.")->group("Reports");
}

void add_profile(CLI::App& app, ProfileArguments& profile) {
  CLI::App* sub = app.add_subcommand("profile", profile_description);
  const Group reports(sub, "Reports");
  const Group output(sub, "Output");
  sub->footer(profile_footer);
  output("-o,--output", profile.output, "FILE",
         "The profile to create. Default tailrace_profile.json.");
  output.flag("--force", profile.force, "Replace an existing file.");
  output("--show", profile.show, "FILE",
         "Measure nothing: print this profile, and say if it is stale here. 'built-in' is "
         "the one that serves until there is one.");
  const Group what(sub, "What is measured");
  sub->add_option("--time", profile.time_s, "Seconds that all of it may take. Default 60.")
      ->type_name("SECONDS")
      ->group("What is measured")
      ->take_last();
  what("--dir", profile.folder, "FOLDER",
       "The folder whose storage is measured. Default: this one.");
  what("--largest", profile.largest, "SIZE",
       "Largest file part of one rank; also at most half of the free space in all. "
       "Default 512MiB.");
  what("--stripe", profile.stripe, "SIZE",
       "Stripe of a striped file system, to align writes to (lfs getstripe -S).");
  what("--input", profile.input, "FILE",
       "Measure codecs on the fields of this file: HDF5, netCDF, .npy, or raw binary. "
       "Default: generated cosmology-like fields.");
  what("--raw", profile.raw_format, "TYPE:SHAPE",
       "The input is raw binary, such as f32:512x512x512.");
  what("-c,--codecs", profile.codecs, "LIST",
       "Codecs with their settings, separated by commas. Default: what codec=auto considers (none, "
       "trz in seven settings, portable, deflate, zstd, sz3, zfp); plug-ins that are missing are "
       "left out.");
  what("--plugin-path", profile.plugin_path, "FOLDERS",
       "Folders of HDF5 filter plug-ins, searched before HDF5_PLUGIN_PATH.");
  reports("--plot", profile.plot_path, "FILE", "Draw points and fits, .png or .svg.");
  report_options(sub, profile.json_path);
  reports.flag("-q,--quiet", profile.quiet, "No table, no remarks.");
}

}  // namespace

std::unique_ptr<CLI::App> make_parser(CommandLine& line) {
  auto app = std::make_unique<CLI::App>(main_description, "tailrace");
  app->formatter(std::make_shared<HelpFormatter>());
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Options");
  app->add_flag("--version", line.version,
                "Versions of Tailrace, HDF5 and MPI; codecs; plug-in folders.")
      ->group("Options");
  app->require_subcommand(0, 1);
  add_repack(*app, line.repack);
  add_concat(*app, line.concat);
  add_export(*app, line.export_plain);
  add_verify(*app, line.verify);
  add_info(*app, line.info);
  add_recover(*app, line.recover);
  add_filter_args(*app, line.filter_args);
  add_train_book(*app, line.train_book);
  add_profile(*app, line.profile);
  add_schedule(*app, line.schedule);
  add_simulate(*app, line.simulate);
  // Listed for --help only: main() hands over to tailrace-bench before anything is parsed.
  app->add_subcommand("bench", "Compare layouts, codecs and HDF5's own path (tailrace-bench)");
  for (CLI::App* sub : app->get_subcommands({})) sub->group("Commands");
  return app;
}

}  // namespace tailrace::cli
