// tailrace repack: existing files in, compressed HDF5 files out. Every option with its unit and
// default; examples first.

#include <fmt/format.h>

#include <filesystem>

#include "commands.hpp"
#include "core/codec_registry.hpp"
#include "core/option_table.hpp"
#include "exec/trace_file.hpp"
#include "layout/layout.hpp"
#include "schedule/order.hpp"

namespace tailrace::cli {
namespace {

struct RepackArguments {
  std::vector<std::string> inputs;
  std::string output;                  ///< A file, or an existing folder.
  verbs::RepackRequest request;        ///< Of each input; options are file_options.
  std::vector<KeyValue> file_options;  ///< threads, memory, chunk, layout, ...: see core/options.
  std::string why;                     ///< "predicted", "measured"; empty: not asked.
  std::string trace_path;
  std::string json_path;
  std::string roles = "on";
  bool quiet = false;
};

constexpr const char* repack_description =
    R"(Compress existing files into HDF5, in parallel, within an error bound

Examples:
  tailrace repack snapshot.h5 -o small.h5 --codec sz3 --bound rel=1e-3
      every field of floating point values within 1/1000 of its value range; integers, geometry,
      times, ids and small arrays exactly; groups, attributes and dimension scales carried over
  mpiexec -n 4 tailrace repack ocean.nc -o ocean_small.nc --bound abs=0.01 --why
      on four ranks, with the codec that is fastest for each field here, and why it is
  tailrace repack ocean.nc -o ocean_small.nc --bound abs=0.01 --codec portable
      readable everywhere: no HDF5 needs a plug-in for it
  tailrace repack a.h5 -o b.h5 --target size=2GB
      within the tightest bound, common to all fields, that makes about 2 GB
  tailrace repack a.h5 -o b.h5 --codec zstd,level=5
      without loss
  tailrace repack a.h5 -o b.h5 --codec sz3 --bound rel=1e-4 \
      --field 'temperature:codec=zfp,bound=abs=1e3' --field 'velocity_?:bound=rel=1e-3'
      other settings for some fields
  mpiexec -n 2 tailrace repack tas.nc -o published/tas.nc --cmip7
      as CMIP7 wants files: metadata in front, chunks of at least 4 MiB, copied where they are
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

Guards (--guard sign+threshold=273.15+...), of codec trz:
  sign         what is negative, zero or positive stays so
  zero         zeros stay zeros
  threshold=V  what lies below V, at it, above it, stays there; repeatable
  minmax       the least and the greatest value of a field stay these
  sum          the sum of each chunk's values stays, to half an ulp of one of them
  monotone=A   neighbours along axis A (0 is the slowest) keep their order
  log=V        a value's logarithm changes by V at most
  power=P:V    its power P (0.5, or whole, -8 to 8) changes by V at most
  region=W:V   values in W change by V at most; W: a range or * for each axis, 0..16x10..20x*
               (up to index 15 and 19), or /MASK, a dataset that is not 0 there; repeatable
  gradient=V   differences of neighbours change by V at most (any codec with an absolute bound)
  laplacian=V  sums of second differences along all axes do (likewise)

Keys of --field 'GLOB:key=value,...':
  codec=NAME, bound=MODE=VALUE or none, guard=GUARD+..., chunk=SIZE or SHAPE, verify=on|off|auto,
  layout=NAME, fill=NUMBER (kept exactly, and left out of the range), allow-wide-bound=on|off,
  covered=keep|drop, and the codec's own: level=5, id=32028,cd=1:2:3,
  book=FILE (trz, see train-book), ...

GLOB is matched against the whole path (/group/name) and, without a '/', against the name. A
backslash takes the *, ? or : behind it as it is.
'component:GLOB:bound=...' is for the components of plotfiles (AMReX, Chombo), by their names.

Memory: --memory bounds what each rank holds at once, however large the input is; stored chunks with
filters that are too large to be decoded within it are an error. Beside it a rank needs about 700
bytes for each of its own chunks, for their boxes and the chunk index.

Exit codes: 0 done, 1 a bound was broken, 2 usage or bad input, 3 storage or memory gave out.)";

/// What all files have in common.
Result<verbs::RepackRequest> request_of(const RepackArguments& arguments) {
  verbs::RepackRequest request = arguments.request;
  FileOptions& options = request.options;
  for (const KeyValue& entry : arguments.file_options) {
    request.chunk_given = request.chunk_given || entry.first == "chunk";
    request.memory_given = request.memory_given || entry.first == "memory";
    if (entry.first == "codec" || entry.first == "bound") {  // By --option.
      (entry.first == "codec" ? request.fields.codec : request.fields.bound) = entry.second;
      continue;
    }
    TAILRACE_TRY(apply_file_option(entry, options).within("--" + entry.first));
  }
  if (!arguments.why.empty()) {
    TAILRACE_TRY(apply_file_option({"why", arguments.why}, options).within("--why"));
  }
  if (arguments.roles != "on" && arguments.roles != "off") {
    return Status(Code::invalid_argument, "--roles: expected on or off, not " + arguments.roles);
  }
  request.roles = arguments.roles == "on";
  options.trace = !arguments.trace_path.empty();
  if (options.trace && arguments.inputs.size() > 1) {
    return Status(Code::invalid_argument, "--trace takes one input at a time");
  }
  return request;
}

/// Repack one file.
Result<verbs::RepackReport> repack_visibly(const Session& session, bool quiet,
                                           const verbs::RepackRequest& request) {
  ProgressBar bar(std::filesystem::path(request.input).filename().string(),
                  session.speaks() && !quiet);
  return verbs::repack(session.for_verb(quiet, bar), request);
}

/// Print and save what one file came to. Rank 0.
Status report_file(const Session& session, const verbs::RepackReport& report, bool table,
                   bool quiet, ReportFile& trace) {
  if (!session.speaks()) return Status();
  if (table) print_text(summary_text(report));
  if (table && report.options.why != Why::off) print_text("\n" + why_text(report));
  for (const std::string& remark : report.remarks) {
    if (!quiet) session.remark(remark);
  }
  for (const std::string& object : report.unreadable) {
    session.remark(unreadable_text(object));
  }
  if (!trace.wanted()) return Status();
  return trace.finish(trace_json(report.events, report.field_paths));
}

int run_repack(Session& session, const RepackArguments& arguments) {
  Result<verbs::RepackRequest> request = request_of(arguments);
  if (!request.ok()) return session.fail(request.status());
  const Result<std::vector<std::string>> outputs =
      verbs::repack_outputs(arguments.inputs, arguments.output, request->netcdf.wanted);
  Status status = session.settle(outputs.status());
  if (!status.ok()) return session.fail(status);
  const bool table = !arguments.quiet && arguments.json_path != "-";
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    ReportFile trace;
    TAILRACE_TRY(session.settle(trace.open(arguments.trace_path, session.speaks())));
    TAILRACE_TRY(start_hdf5(session, request->options.plugin_path));
    nlohmann::ordered_json document = document_of("repack");
    document["files"] = nlohmann::ordered_json::array();
    int code = exit_done;
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
      request->input = arguments.inputs[i];
      request->output = (*outputs)[i];
      TAILRACE_TAKE(const auto report, repack_visibly(session, arguments.quiet, *request));
      TAILRACE_TRY(session.settle(report_file(session, report, table, arguments.quiet, trace)));
      if (session.speaks()) document["files"].push_back(json_of(report));
      if (!report.unreadable.empty()) code = exit_resources;
    }
    return Shown{"", json_text(document), {}, code};
  });
}

std::string codec_help() {
  std::string text = "Codec and its settings, NAME[,key=value...].\nBuilt in:";
  std::string plugins;
  for (const CodecEntry* codec : codec_registry()) {
    if (!codec->plugin) text += fmt::format("\n  {}: {}", codec->name, codec->summary);
    if (codec->plugin && !codec->variants.empty()) plugins += fmt::format("{}, ", codec->name);
  }
  return text + "\nPlug-ins of HDF5 (see --plugin-path): " + plugins +
         "or any by number: id=32028,cd=1:2:3."
         "\nauto: chosen for each field, from a sample and the machine profile (see --for, --why)."
         "\nDefault: auto if there is a --bound or a target, else deflate.";
}

/// What codec auto is to reach, and what it goes by.
void add_choice_options(CLI::App* sub, RepackArguments& repack) {
  std::vector<KeyValue>& file = repack.file_options;
  const Group choice(sub, "Choice of codecs (--codec auto)");
  choice.engine(
      "--for", file, "for", "speed|size|balanced",
      "speed: the shortest call, encoding and writing overlapped, but for 3 % that may buy "
      "bytes. size: the smallest file. balanced: the smallest one that lets the call take at "
      "most a tenth longer. Default balanced.");
  sub->add_flag("--why{predicted}", repack.why,
                "Print the codecs that were compared. --why=measured encodes the sampled chunks "
                "with each of them, too.")
      ->type_name("")
      ->group("Choice of codecs (--codec auto)")
      ->take_last();
  choice.engine(
      "--profile", file, "profile", "FILE",
      "Machine profile of 'tailrace profile'. Default: TAILRACE_PROFILE, else "
      "~/.config/tailrace/profile.json, else typical values, codecs with the speed of this "
      "core; built-in: typical values alone.");
  choice.engine(
      "--target", file, "target", "size=BYTES|psnr=DB",
      "Bounds by what comes out. size: the tightest bound, the same share of each field's "
      "range, that makes about this many bytes of all fields. psnr: about this PSNR of "
      "each field, by the errors of a sample; --bound psnr= guarantees it at larger "
      "size. A --bound is then the loosest one.");
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

}  // namespace

Command add_repack(CLI::App& app) {
  const auto arguments = std::make_shared<RepackArguments>();
  RepackArguments& repack = *arguments;
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
  output.engine("--compatibility", file, "compatibility", "everyone|v110", compatibility_help);
  output.engine("--attributes", file, "attributes", "off|one|all",
                "Which attributes say how values were encoded: none, those of lossy datasets and "
                "one of the file, or every dataset's. Default one.");
  add_netcdf_options(sub, repack.request.netcdf);
  output.flag(
      "--cmip7", repack.request.cmip7,
      "Make the file that CMIP7 asks for: all metadata and chunk indexes in front; time and "
      "its bounds in one chunk each; the variable that the attribute variable_id names in "
      "chunks of at least 4MiB, or --chunk. What fits already is copied as it is; what does "
      "not is stored by shuffle, deflate and Fletcher's checksum.");
  output.flag("--cloud", repack.request.cloud,
              "Make a file for readers over a network: all metadata and chunk indexes in front, "
              "chunks of 8 to 16MiB (--chunk: the least), by shuffle and deflate unless a codec is "
              "named. What fits already is copied as it is.");
  output.flag("--as-stored", repack.request.as_stored,
              "Copy chunks as they are stored, whatever their codec, and lay only the file anew: "
              "with --layout front all metadata before them, otherwise without the gaps that "
              "changes have left. Fields with a --codec, --bound or --field are encoded anew.");
  input.follow_external(repack.request.follow_external);
  input.flag("--skip-unreadable", repack.request.skip_unreadable,
             "Leave out objects that HDF5 cannot open, damaged or of a later version, name them, "
             "and exit with 3. Without it they are an error.");
  input("--raw", repack.request.raw_format, "TYPE:SHAPE",
        "The input is raw binary in native byte order, such as f32:512x512x512 (slowest "
        "dimension first). Types: f32 f64 i8 i16 i32 i64 u8 u16 u32 u64.");
  input.globs(repack.request.fields.selection, "Repack", "fields", " Default: all.");

  const Group compression(sub, "Compression");
  compression("-c,--codec", repack.request.fields.codec, "CODEC", codec_help());
  compression(
      "-b,--bound", repack.request.fields.bound, "MODE=VALUE",
      "Largest error allowed: abs=, rel=, psnr= or pw_rel= (below). Default: none, lossless.");
  compression.engine("--fill", file, "fill", "NUMBER",
                     "Fill value of the fields that declare none: kept exactly, and left out of "
                     "the range that rel= and psnr= are relative to.");
  compression.engine_flag("--allow-wide-bound", file, "allow-wide-bound",
                          "Keep to a rel or psnr bound also where an undeclared fill value widens "
                          "it; else such a field is an error, since the bound swamps its values.");
  compression.flag("--again", repack.request.fields.again,
                   "Allow loss in fields whose values are lossy already; without it that is an "
                   "error. The output records the sum of the bounds.");
  compression.engine("--guard", file, "guard", "GUARD+...",
                     "What values keep besides the bound, exactly (below). Default: none.");
  compression.engine("--covered", file, "covered", "keep|drop",
                     "Of plotfiles (AMReX, Chombo): drop values of cells that boxes of the next "
                     "finer level cover; what makes chunks small stands there. Default keep.");
  compression.list(
      "-f,--field", repack.request.fields.per_field, "GLOB:k=v,...",
      "Settings for the fields that match, over all others (below). Repeatable; a later "
      "one wins. A pattern that matches nothing is an error.");
  compression("--lossless-codec", repack.request.fields.lossless_codec, "CODEC",
              "For what a --bound leaves exact: integers, arrays under 4 KiB, geometry, times and "
              "other roles; auto chooses. Default: deflate. Other types than numbers always "
              "get deflate.");
  compression("--roles", repack.roles, "on|off",
              "on: a bound or lossy codec for all fields leaves exact what is no value: "
              "coordinates, mesh points, positions of particles, indexes, ids, times, weights, "
              "masks, by the file's attributes and layout and by names; and values stay within "
              "limits that the file states. off: only integers, dimension scales and arrays under "
              "4 KiB. Default on.");
  compression.engine(
      "--chunk", file, "chunk", "SIZE|SHAPE",
      "Preferred bytes of a chunk, or its shape for the fields of as many dimensions "
      "(64x64x64). Default: as in the input; where it has no chunks, 8MiB, or less where "
      "--memory or the number of ranks ask for it.");
  compression.engine(
      "--verify", file, "verify", "on|off|auto",
      "Decode every chunk again and check its bound. auto: for lossy codecs whose code is "
      "not ours. Default auto.");
  compression.engine("--plugin-path", file, "plugin-path", "FOLDERS", plugin_path_help);
  add_choice_options(sub, repack);
  const Group resources(sub, "Resources and storage");
  resources.engine("--threads", file, "threads", "N",
                   "Encode threads of each rank. Default 0: the node's cores shared by its ranks.");
  resources.engine("--memory", file, "memory", "SIZE",
                   "Most memory for buffers in each rank. Default 1GiB.");
  resources(
      "--scratch", repack.request.scratch, "off|FOLDER",
      "Where values wait for which --memory has no room while chunks are made of others: in a "
      "nameless file in this folder. Default: beside OUT, if that is on a disk of this "
      "machine. off: stored chunks are decoded several times instead.");
  resources.engine("--buffer", file, "buffer", "SIZE",
                   "Encoded chunks are gathered into writes of up to this. Default 16MiB.");
  resources.engine("--layout", file, "layout", "NAME",
                   help_of("Where chunks go in the file. Default claimed.", layout_registry()));
  resources.engine("--fsync", file, "fsync", "on|off",
                   "Make the data durable before the file appears. Default on.");
  resources.engine("--writers", file, "writers", "balanced|each|node",
                   "Who writes chunks: each rank its own (balanced, the default, and each), or one "
                   "rank of each node those of all its ranks.");
  resources.engine("--align", file, "align", "SIZE|direct",
                   "Let writes begin at multiples of this, such as a stripe. direct: bypass the "
                   "page cache (O_DIRECT). Default auto: as the machine profile says, 1 without "
                   "one.");
  resources.any_option(
      "--option", file,
      "Any option of the page \"Options\", such as lab.order=johnson. Repeatable.");
  resources.engine_flag("--journal", file, "journal",
                        "Keep a redo journal against torn metadata writes.");

  reports("--trace", repack.trace_path, "FILE",
          "Write what every lane of every rank did, for ui.perfetto.dev (Chrome trace JSON).");
  report_options(sub, repack.json_path,
                 {"output", "force", "codec", "bound", "field", "only", "chunk", "threads",
                  "memory", "json", "help", "help-all"});
  reports.flag("-q,--quiet", repack.quiet, "No table, no progress, no remarks.");
  return [arguments](Session& session) { return run_repack(session, *arguments); };
}

}  // namespace tailrace::cli
