// tailrace filter-args: prints a codec as arguments of other programs: h5repack, h5py, any HDF5
// program.
//
// The codec is made as for a field and then queried for its filters. The output is each filter's
// client data before set_local, which the other program's HDF5 calls.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/codec_registry.hpp"
#include "verbs/book_file.hpp"

namespace tailrace::cli {
namespace {

struct FilterArgsArguments {
  std::string codec;                   ///< "trz,preset=fast"
  std::string bound;                   ///< "abs=1e-3"; empty: none.
  std::string range;                   ///< "LEAST:GREATEST", for relative bounds.
  std::string chunk = "f32:64x64x64";  ///< Type and shape of the chunk that plug-ins are tried on.
  std::string plugin_path;
  std::string format = "h5repack";  ///< "h5repack", "h5py", "json".
};

constexpr const char* kFilterArgsDescription =
    R"help(Print the filter arguments of a codec for h5repack, h5py and other programs that use HDF5

Examples:
  h5repack -f "$(tailrace filter-args --codec trz --bound abs=1e-3)" in.h5 out.h5
      HDF5 encodes with the plug-in libh5trz.so from a folder of HDF5_PLUGIN_PATH
  tailrace filter-args --codec trz,preset=ratio --bound pw_rel=1e-4 --format h5py
      compression=481, compression_opts=(513, 2, ...), for h5py's create_dataset
  tailrace filter-args --codec sz3 --bound rel=1e-3 --range -1.5:20
      any plug-in that Tailrace knows; a filter sees one chunk only, so the range is needed
)help";

constexpr std::uint32_t kDeflate = 1;  ///< HDF5's own filters have names of their own.
constexpr std::uint32_t kShuffle = 2;

/// The value of h5repack's -f.
std::string h5repack_text(const FilterSpec& filter) {
  if (filter.filter_id == kShuffle) return "SHUF";
  if (filter.filter_id == kDeflate) return fmt::format("GZIP={}", filter.client_data.at(0));
  std::string text =
      fmt::format("UD={},{},{}", filter.filter_id, filter.flags & 1U, filter.client_data.size());
  for (const std::uint32_t word : filter.client_data) text += fmt::format(",{}", word);
  return text;
}

/// Keyword arguments of h5py's create_dataset.
std::string h5py_text(const FilterSpec& filter) {
  if (filter.filter_id == kShuffle) return "shuffle=True";
  if (filter.filter_id == kDeflate) {
    return fmt::format("compression=\"gzip\", compression_opts={}", filter.client_data.at(0));
  }
  // A tuple of one element needs a comma.
  return fmt::format("compression={}, compression_opts=({}{})", filter.filter_id,
                     fmt::join(filter.client_data, ", "),
                     filter.client_data.size() == 1 ? "," : "");
}

nlohmann::ordered_json filters_json(const Codec& codec) {
  nlohmann::ordered_json document = document_of("filter-args");
  document["codec"] = codec.name();
  document["filters"] = nlohmann::ordered_json::array();
  for (const FilterSpec& filter : codec.filters()) {
    document["filters"].push_back({{"id", filter.filter_id},
                                   {"name", filter.name},
                                   {"flags", filter.flags},
                                   {"cd_values", filter.client_data},
                                   {"h5repack", h5repack_text(filter)},
                                   {"h5py", h5py_text(filter)}});
  }
  return document;
}

/// Parse a range such as "-1.5:20", for bounds relative to the range.
Result<std::pair<double, double>> parse_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  try {
    std::size_t n_first = 0;
    std::size_t n_second = 0;
    if (colon != std::string::npos) {
      const double least = std::stod(text.substr(0, colon), &n_first);
      const double greatest = std::stod(text.substr(colon + 1), &n_second);
      const bool whole = n_first == colon && n_second == text.size() - colon - 1;
      if (whole && least <= greatest) return std::pair(least, greatest);
    }
  } catch (const std::exception&) {
    // Not a number, or out of double's range: reported below.
  }
  return Status(Code::invalid_argument,
                "--range must be LEAST:GREATEST, such as -1.5:20, got \"" + text + "\"");
}

Result<CodecRequest> request_of(const FilterArgsArguments& arguments) {
  TAILRACE_TAKE(std::vector<KeyValue> entries, split_key_values("codec=" + arguments.codec));
  CodecRequest request;
  request.name = entries.front().second;
  request.settings.assign(entries.begin() + 1, entries.end());
  TAILRACE_TRY(verbs::load_book(request.name, request.settings));
  TAILRACE_TAKE(RawFormat format, verbs::parse_raw_format(arguments.chunk, "--for"));
  request.dtype = format.dtype;
  request.chunk_shape = format.shape;
  TAILRACE_TAKE(auto bound, parse_error_bound(arguments.bound.empty() ? "none" : arguments.bound));
  request.pointwise_bound = pointwise_bound(bound);
  if (!bound.needs_range()) {
    request.absolute_bound = absolute_bound(bound, 0, 0);
    return request;
  }
  if (arguments.range.empty()) {
    return Status(
        Code::invalid_argument,
        "--bound: rel= and psnr= need the range of the field, but a filter sees one chunk only; "
        "add --range LEAST:GREATEST, give a bound abs=, or use tailrace repack");
  }
  TAILRACE_TAKE(auto range, parse_range(arguments.range));
  request.absolute_bound = absolute_bound(bound, range.first, range.second);
  return request;
}

Result<std::unique_ptr<Codec>> make_codec(const FilterArgsArguments& arguments) {
  TAILRACE_TAKE(CodecRequest request, request_of(arguments));
  if (codec_entry(request.name).rounds_before) {
    return Status(Code::unsupported,
                  fmt::format("codec {} rounds values before its filters, which other programs do "
                              "not do; for the same filters without rounding, use --codec {}",
                              request.name, kExactCodec));
  }
  return make_codec(request, arguments.plugin_path);
}

Status print_filter_args(const FilterArgsArguments& arguments) {
  TAILRACE_TAKE(std::unique_ptr<Codec> codec, make_codec(arguments));
  if (arguments.format == "json") {
    fmt::print("{}", json_text(filters_json(*codec)));
    return Status();
  }
  const bool for_h5py = arguments.format == "h5py";
  std::string text;
  for (const FilterSpec& filter : codec->filters()) {
    text += text.empty() ? "" : for_h5py ? ", " : "\n";
    text += for_h5py ? h5py_text(filter) : h5repack_text(filter);
  }
  if (text.empty() && !for_h5py) text = "NONE";
  print_text(text + "\n");
  return Status();
}

}  // namespace

Command add_filter_args(CLI::App& app) {
  const auto arguments = std::make_shared<FilterArgsArguments>();
  FilterArgsArguments& filter_args = *arguments;
  CLI::App* sub = app.add_subcommand("filter-args", kFilterArgsDescription);
  const Group what(sub, "What to print");
  what("-c,--codec", filter_args.codec, "CODEC",
       "Codec and its settings, NAME[,key=value...], as for repack.")
      ->required();
  what("-b,--bound", filter_args.bound, "MODE=VALUE",
       "abs= or pw_rel=; rel= and psnr= need --range. Default: none, lossless.");
  what("--range", filter_args.range, "LEAST:GREATEST",
       "Range of the values of the field, which rel= and psnr= are relative to.");
  what("--for", filter_args.chunk, "TYPE:SHAPE",
       "Type and chunk shape of the data, which some plug-ins depend on. Default f32:64x64x64.");
  what("--format", filter_args.format, "FORMAT",
       "h5repack: the value of its -f, a line for each filter; h5py: keyword arguments of "
       "create_dataset; json: both, and the client data. Default h5repack.")
      ->check(CLI::IsMember({"h5repack", "h5py", "json"}));
  Group(sub, "Input")("--plugin-path", filter_args.plugin_path, "FOLDERS",
                      "Folders of HDF5 filter plug-ins, searched before HDF5_PLUGIN_PATH.");
  help_option(sub);
  return [arguments](Session& session) {
    return run_at_root(session, [&] { return print_filter_args(*arguments); });
  };
}

}  // namespace tailrace::cli
