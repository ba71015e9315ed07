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
  std::string output;            ///< A file, or an existing folder.
  verbs::RepackRequest request;  ///< Request for each input; its options come from file_options.
  std::vector<KeyValue> file_options;  ///< threads, memory, chunk, layout, ...: see core/options.
  std::string why;                     ///< "predicted", "measured"; empty: not asked.
  std::string trace_path;
  std::string json_path;
  std::string roles = "on";
  std::string publish;
  bool quiet = false;
};

constexpr const char* kRepackDescription =
    R"(Compress existing files into HDF5, in parallel, within an error bound

Examples:
  tailrace repack snapshot.h5 -o small.h5 --codec sz3 --bound rel=1e-3
      every field of floating point values within 1/1000 of its value range; integers, geometry,
      times, ids and small arrays exactly; groups, attributes and dimension scales carried over
  mpiexec -n 4 tailrace repack ocean.nc -o ocean_small.nc --bound abs=0.01 --why
      on four ranks, with a codec chosen for each field, and the reasons for the choice
  tailrace repack ocean.nc -o ocean_small.nc --bound abs=0.01 --codec portable
      readable everywhere: no HDF5 needs a plug-in
  tailrace repack a.h5 -o b.h5 --target size=2GB
      with the tightest common bound that gives about 2 GB
  tailrace repack a.h5 -o b.h5 --codec zstd,level=5
      without loss
  tailrace repack a.h5 -o b.h5 --codec sz3 --bound rel=1e-4 \
      --field 'temperature:codec=zfp,bound=abs=1e3' --field 'velocity_?:bound=rel=1e-3'
      different settings for some fields
  mpiexec -n 2 tailrace repack tas.nc -o published/tas.nc --publish cmip7
      the form that CMIP7 requires: metadata first, chunks of at least 4 MiB
  tailrace repack u.bin --raw f32:512x512x512 -o u.h5 --codec sz3 --bound psnr=80 --memory 256MB
      an array larger than memory, read and written piece by piece

Inputs: HDF5 (any layout and filters), netCDF-4, netCDF classic, NumPy .npy, raw binary (--raw).
The output gets its name when it is complete; on failure, an older file of that name stays.
)";

constexpr const char* kRepackFooter =
    R"(Error bounds (--bound MODE=VALUE):
  abs=V     no value changes by more than V, in the field's own unit
  rel=V     ... by more than V times the range (greatest - least) of the field's values
  psnr=V    ... by so little that the PSNR is at least V dB
  pw_rel=V  ... by more than V times the value itself, V < 1; zeros exactly (trz, portable)
  NaN, infinite and fill values come back exactly, or the chunk is stored without compression.

Guards (--guard sign+threshold=273.15+...), of codec trz:
  sign         every value keeps its sign; zeros stay zeros
  zero         zeros stay zeros
  threshold=V  values below, at or above V stay below, at or above it; repeatable
  minmax       the least and the greatest value of a field are kept
  sum          the sum of the values of each chunk is kept, within half an ulp of one value
  monotone=A   neighbours along axis A (0 is the slowest) keep their order
  log=V        a value's logarithm changes by V at most
  power=P:V    its power P (0.5, or whole, -8 to 8) changes by V at most
  region=W:V   values in W change by V at most; W: a range or * for each axis, 0..16x10..20x*
               (up to index 15 and 19), or /MASK, a dataset that is not 0 there; repeatable
  gradient=V   differences of neighbours change by V at most (any codec with an absolute bound)
  laplacian=V  sums of second differences along all axes change by V at most (likewise)

Keys of --field 'GLOB:key=value,...':
  codec=NAME, bound=MODE=VALUE or none, guard=GUARD+..., chunk=SIZE or SHAPE, verify=on|off|auto,
  layout=NAME, fill=NUMBER (kept exactly, and left out of the range), allow-wide-bound=on|off,
  covered=keep|drop, and the codec's own: level=5, id=32028,cd=1:2:3,
  book=FILE (trz, see train-book), ...

GLOB is matched against the whole path (/group/name) and, without a '/', against the name. A
backslash before *, ? or : makes it literal.
'component:GLOB:bound=...' applies to components of plotfiles (AMReX, Chombo), by name.

Memory: --memory limits the buffers of each rank, for inputs of any size; a stored chunk with
filters that does not fit when decoded is an error. In addition, a rank needs about 700 bytes for
each of its own chunks (box and chunk index).

Exit codes: 0 done, 1 a bound was broken, 2 usage or bad input, 3 storage failed or memory was
exceeded.)";

/// Make the request that all inputs share.
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
    return Status(Code::invalid_argument, "--roles " + arguments.roles + ": expected on or off");
  }
  request.roles = arguments.roles == "on";
  if (!arguments.publish.empty()) {
    TAILRACE_TAKE(request.publish, verbs::parse_publish(arguments.publish));
  }
  options.trace = !arguments.trace_path.empty();
  if (options.trace && arguments.inputs.size() > 1) {
    return Status(Code::invalid_argument,
                  "--trace needs a single input, found " + std::to_string(arguments.inputs.size()));
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
  Status status = session.agree(outputs.status());
  if (!status.ok()) return session.fail(status);
  const bool table = !arguments.quiet && arguments.json_path != "-";
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    ReportFile trace;
    TAILRACE_TRY(session.agree(trace.open(arguments.trace_path, session.speaks())));
    TAILRACE_TRY(start_hdf5(session, request->options.plugin_path));
    nlohmann::ordered_json document = document_of("repack");
    document["files"] = nlohmann::ordered_json::array();
    int code = kExitDone;
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
      request->input = arguments.inputs[i];
      request->output = (*outputs)[i];
      TAILRACE_TAKE(const auto report, repack_visibly(session, arguments.quiet, *request));
      TAILRACE_TRY(session.agree(report_file(session, report, table, arguments.quiet, trace)));
      if (session.speaks()) document["files"].push_back(json_of(report));
      if (!report.unreadable.empty()) code = kExitResources;
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
         "or any by number: id=32028,cd=1:2:3.\nauto: chosen for each field from a sample and the "
         "machine profile (see --for, --why).\nDefault: auto with a --bound or --target, else "
         "deflate.";
}

/// Options that control the choice of codec auto.
void add_choice_options(CLI::App* sub, RepackArguments& repack) {
  std::vector<KeyValue>& file = repack.file_options;
  const Group choice(sub, "Choice of codecs (--codec auto)");
  choice.engine("--for", file, "for", "speed|size|balanced",
                "Goal of the choice. speed: the shortest run time, within 3 %. size: the smallest "
                "file. balanced: the smallest file with a run time at most a tenth longer than the "
                "shortest. Default balanced.");
  sub->add_flag("--why{predicted}", repack.why,
                "Print the codecs that were compared, with predicted figures. --why=measured also "
                "encodes the sampled chunks with each codec. Default: off.")
      ->type_name("")
      ->group("Choice of codecs (--codec auto)")
      ->take_last();
  choice.engine("--profile", file, "profile", "FILE",
                "Machine profile made by 'tailrace profile', or built-in (typical values only). "
                "Default: TAILRACE_PROFILE, else ~/.config/tailrace/profile.json, else typical "
                "values with codec speeds of this core.");
  choice.engine("--target", file, "target", "size=BYTES|psnr=DB",
                "Choose the bounds to reach a goal. size: the tightest bound, relative to the "
                "range of each field, that gives about this many bytes for all fields. psnr: about "
                "this PSNR for each field, estimated from a sample; --bound psnr= guarantees it. A "
                "--bound then limits the choice. Default: none.");
}

/// How dimensions of the output are named.
void add_netcdf_options(CLI::App* sub, verbs::NetcdfRequest& netcdf) {
  const Group output(sub, "Output");
  output.flag(
      "--netcdf", netcdf.wanted,
      "Write a netCDF-4 file with named dimensions: those of --dims, else dim_LENGTH, shared by "
      "equal lengths in a group. netCDF inputs always keep their dimensions. Default: off.");
  output.list("--dims", netcdf.dimensions, "GLOB=NAME,...",
              "With --netcdf: dimension names of matching fields, slowest first, such as "
              "'temperature=time,y,x' or '*=z,y,x'. A one-dimensional field with the name of a "
              "dimension becomes its coordinate. Repeatable; the last match counts.");
}

}  // namespace

Command add_repack(CLI::App& app) {
  const auto arguments = std::make_shared<RepackArguments>();
  RepackArguments& repack = *arguments;
  CLI::App* sub = app.add_subcommand("repack", kRepackDescription);
  const Group reports(sub, "Reports");
  const Group input(sub, "Input");
  const Group output(sub, "Output");
  sub->footer(kRepackFooter);
  sub->add_option("INPUT", repack.inputs, "Files to compress. Several need a folder as --output.")
      ->required();
  std::vector<KeyValue>& file = repack.file_options;
  output("-o,--output", repack.output, "OUT", "The HDF5 file to create, or an existing folder.")
      ->required();
  output.engine_flag("--force", file, "replace", "Replace an existing file.");
  output.engine("--compatibility", file, "compatibility", "everyone|v110", kCompatibilityHelp);
  output.engine("--attributes", file, "attributes", "off|one|all",
                "Attributes that record the encoding. off: none. one: on lossy datasets, plus one "
                "on the file. all: on every dataset. Default one; most users leave this alone.");
  add_netcdf_options(sub, repack.request.netcdf);
  output("--publish", repack.publish, "cmip7|cloud|as-stored",
         "Form of the whole file; chunks that fit it are copied as stored. cmip7: what CMIP7 "
         "requires: all metadata and chunk indexes first; time and its bounds in one chunk each; "
         "the variable that the attribute variable_id names in chunks of at least 4MiB (or "
         "--chunk), with shuffle, deflate and a Fletcher32 checksum. cloud: for readers over a "
         "network: all metadata and chunk indexes first, chunks of 8 to 16MiB (--chunk sets the "
         "minimum), with shuffle and deflate unless --codec is given. as-stored: all chunks as "
         "they are, whatever their codec, without gaps; --layout front puts all metadata first. "
         "Fields with a --codec, --bound or --field are encoded again. Default: none of these.");
  input.follow_external(repack.request.follow_external);
  input.flag("--skip-unreadable", repack.request.skip_unreadable,
             "Leave out objects that HDF5 cannot open (damaged, or of a later version), report "
             "them, and exit with 3. Default: an error.");
  input("--raw", repack.request.raw_format, "TYPE:SHAPE",
        "The input is raw binary in native byte order, such as f32:512x512x512 (slowest "
        "dimension first). Types: f32 f64 i8 i16 i32 i64 u8 u16 u32 u64.");
  input.globs(repack.request.fields.selection, "Repack", "fields", " Default: all.");

  const Group compression(sub, "Compression");
  compression("-c,--codec", repack.request.fields.codec, "CODEC", codec_help());
  compression("-b,--bound", repack.request.fields.bound, "MODE=VALUE",
              "Largest error allowed: abs=, rel=, psnr= or pw_rel= (see \"Error bounds\"). "
              "Default: none, lossless.");
  compression.engine("--fill", file, "fill", "NUMBER",
                     "Fill value of fields that declare none. It is kept exactly and excluded from "
                     "the range that rel= and psnr= use. Default: none.");
  compression.engine_flag(
      "--allow-wide-bound", file, "allow-wide-bound",
      "Accept a rel or psnr bound that an undeclared fill value widens so much that it exceeds "
      "most values of a field. Default: an error for such a field.");
  compression.flag("--again", repack.request.fields.again,
                   "Allow loss in fields whose values are already lossy; the output records the "
                   "sum of the bounds. Default: an error.");
  compression.engine("--guard", file, "guard", "GUARD+...",
                     "Properties of values to keep exactly, in addition to the bound (see "
                     "\"Guards\"). Default: none.");
  compression.engine("--covered", file, "covered", "keep|drop",
                     "For plotfiles (AMReX, Chombo). drop: replace the values of cells that the "
                     "next finer level covers by values that compress well. Default keep.");
  compression.list(
      "-f,--field", repack.request.fields.per_field, "GLOB:k=v,...",
      "Settings for matching fields, which override all others (see \"Keys of --field\"). "
      "Repeatable; the last match counts. A pattern without a match is an error.");
  compression("--lossless-codec", repack.request.fields.lossless_codec, "CODEC",
              "Codec of fields that a --bound leaves exact: integers, arrays under 4 KiB, "
              "geometry, times and other roles; auto chooses one. Types other than numbers always "
              "use deflate. Default: deflate.");
  compression("--roles", repack.roles, "on|off",
              "Which fields a bound for all fields leaves exact. on: coordinates, mesh points, "
              "particle positions, indexes, ids, times, weights and masks, found by attributes, "
              "layout and names; values also stay within the limits that the file states. off: "
              "only integers, dimension scales and arrays under 4 KiB. Default on.");
  compression.engine("--chunk", file, "chunk", "SIZE|SHAPE",
                     "Preferred size of a chunk, or its shape for fields with as many dimensions "
                     "(64x64x64). Default: chunks of the input; without these 8MiB, or less if "
                     "--memory or the number of ranks requires it.");
  compression.engine("--verify", file, "verify", "on|off|auto",
                     "Decode every encoded chunk and check its bound. auto: only for lossy codecs "
                     "from other projects. Default auto.");
  compression.engine("--plugin-path", file, "plugin-path", "FOLDERS", kPluginPathHelp);
  add_choice_options(sub, repack);
  const Group resources(sub, "Resources and storage");
  resources.engine(
      "--threads", file, "threads", "N",
      "Encode threads per rank. Default 0: the cores of the node divided by its ranks.");
  resources.engine("--memory", file, "memory", "SIZE",
                   "Memory limit for the buffers of each rank. Default 1GiB.");
  resources("--scratch", repack.request.scratch, "off|FOLDER",
            "Folder for a temporary file of values that exceed --memory while chunks change shape. "
            "off: decode stored chunks several times instead. Default: the folder of OUT, if it is "
            "on a local disk.");
  resources.engine("--buffer", file, "buffer", "SIZE",
                   "Largest write, into which encoded chunks are combined. Default 16MiB; most "
                   "users leave this alone.");
  resources.engine("--layout", file, "layout", "NAME",
                   help_of("Placement of chunks in the file. Default claimed.", layout_registry()));
  resources.engine("--fsync", file, "fsync", "on|off",
                   "Flush the data to stable storage before the output gets its name. Default on.");
  resources.engine(
      "--writers", file, "writers", "balanced|each|node",
      "Ranks that write. balanced, each: every rank writes its own chunks. node: one rank of each "
      "node writes the chunks of all its ranks. Default balanced; most users leave this alone.");
  resources.engine(
      "--align", file, "align", "SIZE|direct",
      "Start writes at multiples of this size, such as a stripe. direct: bypass the page cache "
      "(O_DIRECT). Default auto: from the machine profile, or 1 without one.");
  resources.any_option("--option", file,
                       "Any option of 'tailrace options', such as lab.order=johnson. Repeatable.");
  resources.engine_flag("--journal", file, "journal",
                        "Keep a redo journal, which protects against torn metadata writes after a "
                        "power loss. Default: off.");

  reports(
      "--trace", repack.trace_path, "FILE",
      "Write the activity of every lane of every rank, for ui.perfetto.dev (Chrome trace JSON).");
  report_options(sub, repack.json_path,
                 {"output", "force", "codec", "bound", "field", "only", "chunk", "threads",
                  "memory", "json", "help", "help-all"});
  reports.flag("-q,--quiet", repack.quiet, "No table, no progress, no remarks.");
  return [arguments](Session& session) { return run_repack(session, *arguments); };
}

}  // namespace tailrace::cli
