// Options of `tailrace-lab bench codecs` with their units and defaults.

#include "codecs_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/help_formatter.hpp"
#include "core/option_table.hpp"

namespace tailrace::bench {
namespace {

constexpr const char* kCodecsDescription =
    R"(Compare codecs on the chunks of real files: speed on one core, ratio, error
  tailrace-lab bench codecs snapshot.h5
      trz in three presets, sz3, zfp, zstd, deflate, portable and a plain copy, at five bounds
  tailrace-lab bench codecs ocean.nc --fields 'temp*' --bound rel=1e-3,1e-4 --csv ocean.csv
  tailrace-lab bench codecs a.h5 b.h5 --codecs trz,preset=fast,sz3,zstd,level=5 --repeat 15
  tailrace-lab bench codecs climate.h5 --fill 'levitus_*:-1e10' --fill 'coads_*:-1e34'
      fill values that the file does not declare

Fields are cut into chunks as repack does. Each chunk is encoded, decoded and checked once by every
codec at every bound, then all take turns, --repeat times, on one thread.
)";

constexpr const char* kCodecsFooter =
    R"(Speeds are uncompressed MB (10^6 bytes) a second of thread CPU time, medians; in brackets
(largest - smallest) / median. Codecs without loss are measured once. Codec none is a copy in
memory. For a codec that does not support a field, the reason is printed. See lab/bench/README.md.

Exit codes: 0 done, 1 one of our own codecs broke a bound, 2 usage or bad input, 3 storage or memory
gave out.)";

void add_option(CLI::App& app, const std::string& name, std::string& target,
                const std::string& unit, const std::string& group, const std::string& text) {
  app.add_option(name, target, text)->type_name(unit)->group(group)->take_last();
}

void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& target,
              const std::string& unit, const std::string& group, const std::string& text) {
  app.add_option(name, target, text)->type_name(unit)->group(group)->expected(1)->take_all();
}

Status refuse(const std::string& option, const std::string& why) {
  return Status(Code::invalid_argument, option + ": " + why);
}

/// Parse "trz,preset=fast,sz3": an item with '=' is a setting of the codec before it. Exception:
/// "id=NUMBER" is a codec.
Result<std::vector<CodecChoice>> parse_codecs(const std::string& text) {
  Result<std::vector<KeyValue>> entries = split_key_values(text);
  if (!entries.ok()) return entries.status().within("--codecs");
  std::vector<CodecChoice> codecs;
  for (const auto& [key, value] : *entries) {
    if (value.empty() || key == "id") {
      const std::string name = value.empty() ? key : key + "=" + value;
      codecs.push_back({.label = name, .name = name, .settings = {}});
      continue;
    }
    if (codecs.empty())
      return refuse("--codecs", key + "=" + value + " must follow the name of a codec");
    codecs.back().settings.emplace_back(key, value);
    codecs.back().label += "-" + value;
  }
  if (codecs.empty()) return refuse("--codecs", "expected at least one codec");
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (codecs[i].label == codecs[j].label) {
        return refuse("--codecs", codecs[i].label + " is given twice");
      }
    }
  }
  return codecs;
}

}  // namespace

std::unique_ptr<CLI::App> make_codecs_parser(CodecsArguments& a) {
  auto app = std::make_unique<CLI::App>(kCodecsDescription, "tailrace-lab bench codecs");
  app->formatter(std::make_shared<cli::HelpFormatter>());
  app->footer(kCodecsFooter);

  const char* data = "Data";
  app->add_option("FILE", a.inputs, "HDF5, netCDF, .npy, or raw binary (--raw).")->required();
  add_list(*app, "--fields", a.fields, "GLOB", data,
           "Only fields whose path matches. Repeatable. Default: all but coordinates, arrays under "
           "4 KiB and constant ones.");
  add_list(*app, "--fill", a.fills, "GLOB:VALUE", data,
           "Fill value of the matching fields, kept exactly and left out of the range. Repeatable. "
           "Default: as the file states (_FillValue, missing_value).");
  add_option(*app, "--raw", a.raw_format, "TYPE:SHAPE", data,
             "The input is raw binary, such as f32:512x512x512.");
  add_option(
      *app, "--chunk", a.chunk, "SIZE|SHAPE", data,
      "Preferred size of a chunk, or its shape for fields with as many dimensions. Default 8MiB.");
  add_option(*app, "--chunks", a.n_chunks_max, "N", data,
             "Measure at most N chunks of each field, at equal distances. Default: all.");

  const char* compared = "What is compared";
  add_option(
      *app, "-c,--codecs", a.codecs, "LIST", compared,
      "Codecs with their settings, separated by commas: trz,preset=fast,sz3. Default: "
      "trz in its three presets, sz3, zfp, zstd, deflate, portable, none. Plug-ins that are not "
      "installed are left out.");
  add_list(
      *app, "-b,--bound", a.bounds, "MODE=VALUE,...", compared,
      "Bounds of lossy codecs: abs=, rel=, psnr=, pw_rel= or none. A number without a mode has "
      "the mode of the one before. Repeatable. Default rel=1e-2,1e-3,1e-4,1e-5,1e-6.");
  add_option(*app, "--plugin-path", a.plugin_path, "FOLDERS", compared,
             "Folders of HDF5 filter plug-ins, searched before HDF5_PLUGIN_PATH.");
  add_option(*app, "--repeat", a.repeat, "N", compared, "Counted runs of each codec. Default 7.");

  add_option(
      *app, "--csv", a.csv_path, "FILE", "Reports",
      "Write a row for each field, bound and codec, after comments on machine and versions.");
  add_option(*app, "--json", a.json_path, "FILE", "Reports",
             "Write the same as JSON, with the seconds of every run; '-' is stdout, in place of "
             "the table.");
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Reports");
  return app;
}

Result<CodecsOptions> understand(const CodecsArguments& arguments) {
  CodecsOptions options;
  options.inputs = arguments.inputs;
  options.fields = arguments.fields;
  options.raw_format = arguments.raw_format;
  options.plugin_path = arguments.plugin_path;
  Result<std::vector<CodecChoice>> codecs = parse_codecs(arguments.codecs);
  if (!codecs.ok()) return codecs.status();
  options.codecs = std::move(*codecs);
  for (const std::string& text : arguments.bounds) {
    TAILRACE_TRY(parse_bounds(text, options.bounds).within("--bound"));
  }
  if (options.bounds.empty()) {
    TAILRACE_TRY(parse_bounds("rel=1e-2,1e-3,1e-4,1e-5,1e-6", options.bounds));
  }
  for (const std::string& text : arguments.fills) {
    TAILRACE_TRY(parse_fill(text, options.fills).within("--fill"));
  }
  FieldOptions field;
  TAILRACE_TRY(apply_field_option({"chunk", arguments.chunk}, field).within("--chunk"));
  options.chunk_shape = field.chunk_shape;
  options.chunk_bytes = field.chunk_bytes;
  Result<std::uint64_t> repeats = parse_count("repeat", arguments.repeat, 1);
  if (!repeats.ok()) return repeats.status().within("--repeat");
  options.n_repeats = *repeats;
  if (!arguments.n_chunks_max.empty()) {
    Result<std::uint64_t> chunks = parse_count("chunks", arguments.n_chunks_max, 1);
    if (!chunks.ok()) return chunks.status().within("--chunks");
    options.n_chunks_max = *chunks;
  }
  return options;
}

}  // namespace tailrace::bench
