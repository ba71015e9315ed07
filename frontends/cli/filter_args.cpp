// tailrace filter-args: a codec as other programs want it said: h5repack, h5py, any HDF5 program.
//
// The codec is made as for a field, then asked for its filters; what is printed is each filter's
// client data before its set_local, which the program's own HDF5 will call.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "codec/registry.hpp"
#include "commands.hpp"
#include "hdf5/filter_plugins.hpp"
#include "verbs/book_file.hpp"

namespace tailrace::cli {
namespace {

constexpr std::uint32_t kDeflate = 1;
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
  // A tuple of one needs its comma.
  return fmt::format("compression={}, compression_opts=({}{})", filter.filter_id,
                     fmt::join(filter.client_data, ", "),
                     filter.client_data.size() == 1 ? "," : "");
}

nlohmann::ordered_json filters_json(const Codec& codec) {
  nlohmann::ordered_json document;
  document["schema_version"] = json_schema_version;
  document["command"] = "filter-args";
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

/// The range in "-1.5:20" for bounds that are relative to it.
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
    // No number, or one that no double holds: said below.
  }
  return Status(Code::invalid_argument,
                "--range must be LEAST:GREATEST, such as -1.5:20, got \"" + text + "\"");
}

Result<CodecRequest> request_of(const FilterArgsArguments& arguments) {
  Result<std::vector<KeyValue>> words = split_key_values("codec=" + arguments.codec);
  if (!words.ok()) return words.status();
  CodecRequest request;
  request.name = words->front().second;
  request.settings.assign(words->begin() + 1, words->end());
  TAILRACE_TRY(verbs::load_book(request.name, request.settings));
  Result<RawFormat> format = verbs::parse_raw_format(arguments.chunk, "--for");
  if (!format.ok()) return format.status();
  request.dtype = format->dtype;
  request.chunk_shape = format->shape;
  Result<ErrorBound> bound = parse_error_bound(arguments.bound.empty() ? "none" : arguments.bound);
  if (!bound.ok()) return bound.status();
  request.pointwise_bound = pointwise_bound(*bound);
  if (!bound->needs_range()) {
    request.absolute_bound = absolute_bound(*bound, 0, 0);
    return request;
  }
  if (arguments.range.empty()) {
    return Status(Code::invalid_argument,
                  "a filter sees one chunk and cannot know the field's range: give it as --range "
                  "LEAST:GREATEST, give the bound as abs=, or use tailrace repack");
  }
  Result<std::pair<double, double>> range = parse_range(arguments.range);
  if (!range.ok()) return range.status();
  request.absolute_bound = absolute_bound(*bound, range->first, range->second);
  return request;
}

Result<std::unique_ptr<Codec>> make_codec(const FilterArgsArguments& arguments) {
  Result<CodecRequest> request = request_of(arguments);
  if (!request.ok()) return request.status();
  if (request->name == "portable") {
    return Status(Code::unsupported,
                  "portable rounds values before its filters, which no other program will do; its "
                  "filters alone are those of deflate");
  }
  return is_plugin_codec(request->name) ? make_plugin_codec(*request, arguments.plugin_path)
                                        : make_builtin_codec(*request);
}

Status print_filter_args(const FilterArgsArguments& arguments) {
  Result<std::unique_ptr<Codec>> codec = make_codec(arguments);
  if (!codec.ok()) return codec.status();
  if (arguments.format == "json") {
    fmt::print("{}", json_text(filters_json(**codec)));
    return Status();
  }
  const bool for_h5py = arguments.format == "h5py";
  std::string text;
  for (const FilterSpec& filter : (*codec)->filters()) {
    text += text.empty() ? "" : for_h5py ? ", " : "\n";
    text += for_h5py ? h5py_text(filter) : h5repack_text(filter);
  }
  if (text.empty() && !for_h5py) text = "NONE";
  fmt::print("{}\n", text);
  return Status();
}

}  // namespace

int run_filter_args(Session& session, const FilterArgsArguments& arguments) {
  const Status status = session.settle(session.speaks() ? print_filter_args(arguments) : Status());
  return status.ok() ? exit_done : session.fail(status);
}

}  // namespace tailrace::cli
