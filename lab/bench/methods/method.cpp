// Shared parts of all methods, and the list of rows.

#include "method.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/codec_registry.hpp"
#include "core/options.hpp"
#include "hdf5/filter_plugins.hpp"
#include "schedule/order.hpp"

namespace tailrace::bench {
namespace {

constexpr const char* unchanged = "hdf5-unchanged";

/// Rows that are measured by default (--methods).
std::vector<std::string> default_names(const std::string& codec) {
  if (codec == "auto") {  // HDF5 cannot choose a codec, and the ideal has no step.
    return {"hdf5-independent-none", "hdf5-collective-none", "hdf5-collective-sz3",
            "tailrace-claimed-auto", "tailrace-dense-auto",  "tailrace-claimed-none"};
  }
  return {"hdf5-independent-none",    "hdf5-collective-none",
          "hdf5-collective-" + codec, "tailrace-claimed-" + codec,
          "tailrace-claimed-auto",    "tailrace-dense-" + codec,
          "ideal-" + codec,           "tailrace-contiguous-none",
          "tailrace-claimed-none",    "tailrace-claimed-portable"};
}

/// Rows that a glob can find, in addition to the default ones.
std::vector<std::string> known_names(const std::string& codec) {
  std::vector<std::string> names = default_names(codec);
  for (const char* suffix : {"-verified", "-serial", "-johnson", "-insertion"}) {
    names.push_back("tailrace-claimed-" + codec + suffix);
  }
  for (const char* layout : {"predictive", "arena", "hybrid", "sparse"}) {
    names.push_back(std::string("tailrace-") + layout + "-" + codec);
  }
  if (is_preloaded()) {
    names.push_back(unchanged);
    names.push_back(std::string(unchanged) + "-" + codec);
  }
  names.push_back("tailrace-dense-none");
  names.push_back("ideal-none");
  names.push_back("ideal-portable");
  return names;
}

Result<std::vector<std::string>> chosen_names(const BenchOptions& options) {
  if (options.method_patterns.empty()) {
    std::vector<std::string> names = default_names(options.codec);
    if (!has_native_parallel()) {
      std::erase_if(names, [](const std::string& name) { return name.starts_with("hdf5-"); });
    }
    return names;
  }
  std::vector<std::string> names;
  const auto add_new = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& pattern : options.method_patterns) {
    if (pattern.find_first_of("*?") == std::string::npos) {
      add_new(pattern);
      continue;
    }
    const std::size_t n_before = names.size();
    for (const std::string& name : known_names(options.codec)) {
      if (glob_matches(pattern, name)) add_new(name);
    }
    if (names.size() == n_before) {
      return Status(Code::invalid_argument,
                    "--methods: \"" + pattern + "\" does not match any further method; see --help");
    }
  }
  return names;
}

Result<std::unique_ptr<Method>> make_method(const BenchContext& context, const std::string& name) {
  if (name.starts_with("ideal-")) return make_ideal_method(context, name, name.substr(6));
  if (name.starts_with("tailrace-")) {
    Result<TailraceSpec> spec = parse_tailrace_name(context.options, name);
    if (!spec.ok()) return spec.status();
    return make_tailrace_method(context, name, *spec);
  }
  if (name == unchanged) return make_unchanged_method(context, name, "");
  if (name.starts_with(std::string(unchanged) + "-")) {
    return make_unchanged_method(context, name, codec_of_name(name));
  }
  for (const bool collective : {true, false}) {
    const std::string head = collective ? "hdf5-collective-" : "hdf5-independent-";
    if (!name.starts_with(head)) continue;
    return make_hdf5_method(context, name, collective, name.substr(head.size()));
  }
  return Status(Code::invalid_argument,
                "--methods: \"" + name + "\" is not a method; see --help for the methods");
}

/// Remove `suffix` from the end of `name`, if present.
bool take_suffix(std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

/// Remove "-r1.25" from the end. @returns the ratio; 0 if absent.
double take_space_ratio(std::string& name) {
  const std::size_t dash = name.rfind("-r");
  if (dash == std::string::npos || dash + 2 == name.size()) return 0;
  char* end = nullptr;
  const double ratio = std::strtod(name.c_str() + dash + 2, &end);
  if (*end != '\0' || !(ratio >= 1)) return 0;
  name.resize(dash);
  return ratio;
}

}  // namespace

Result<std::vector<std::unique_ptr<Method>>> make_methods(const BenchContext& context) {
  Result<std::vector<std::string>> names = chosen_names(context.options);
  if (!names.ok()) return names.status();
  std::vector<std::unique_ptr<Method>> methods;
  for (const std::string& name : *names) {
    Result<std::unique_ptr<Method>> method = make_method(context, name);
    if (!method.ok()) return method.status().within(name);
    methods.push_back(std::move(*method));
  }
  return methods;
}

Result<TailraceSpec> parse_tailrace_name(const BenchOptions& options, const std::string& name) {
  TailraceSpec spec;
  std::string rest = name;
  spec.verified = take_suffix(rest, "-verified");
  spec.serial = take_suffix(rest, "-serial");
  spec.space_ratio = take_space_ratio(rest);
  for (const OrderEntry& order : order_registry()) {
    if (take_suffix(rest, "-" + std::string(order.name))) spec.order = order.name;
  }
  const std::size_t first = rest.find('-');
  const std::size_t second = first == std::string::npos ? first : rest.find('-', first + 1);
  if (second == std::string::npos || rest.substr(0, first) != "tailrace") {
    return Status(Code::invalid_argument,
                  "--methods: \"" + name + "\" is not a method; see --help for the methods");
  }
  spec.layout = rest.substr(first + 1, second - first - 1);
  spec.codec = rest.substr(second + 1);
  spec.settings = codec_settings_of(options, spec.codec);
  return spec;
}

std::string codec_of_name(const std::string& name) {
  if (name.starts_with("ideal-")) return name.substr(6);
  if (name.starts_with("tailrace-")) {
    const Result<TailraceSpec> spec = parse_tailrace_name(BenchOptions(), name);
    return spec.ok() ? spec->codec : "";
  }
  if (name == unchanged) return std::string(kExactCodec);
  const std::size_t second = name.find('-', name.find('-') + 1);
  return second == std::string::npos ? "" : name.substr(second + 1);
}

std::vector<KeyValue> codec_settings_of(const BenchOptions& options, std::string_view codec_name) {
  return codec_name == options.codec ? options.codec_settings : std::vector<KeyValue>();
}

CodecRequest codec_request(const std::string& codec_name, const std::vector<KeyValue>& settings,
                           const BenchField& field) {
  CodecRequest request;
  request.name = codec_name;
  request.settings = settings;
  request.dtype = field.dtype;
  request.chunk_shape = field.chunk_shape;
  request.absolute_bound = field.absolute_bound;
  request.fill_value = field.fill_value;
  return request;
}

Result<std::unique_ptr<Codec>> make_bench_codec(const BenchOptions& options,
                                                const std::string& codec_name,
                                                const std::vector<KeyValue>& settings,
                                                const BenchField& field) {
  const CodecRequest request = codec_request(codec_name, settings, field);
  return make_codec(request, options.plugin_path);
}

void Method::combine_details(Comm& comm, RunDetails& details) const {
  double slowest[7] = {details.encode_s, details.write_s, details.makespan_s, details.longer_lane_s,
                       details.index_s,  details.sync_s,  details.commit_s};
  comm.allreduce(std::span<double>(slowest), Reduction::max);
  details.encode_s = slowest[0];
  details.write_s = slowest[1];
  details.makespan_s = slowest[2];
  details.longer_lane_s = slowest[3];
  details.index_s = slowest[4];
  details.sync_s = slowest[5];
  details.commit_s = slowest[6];
  comm.allreduce(std::span<double>(&details.hidden_share, 1), Reduction::sum);
  details.hidden_share /= comm.n_ranks();
  comm.allreduce(std::span<std::uint64_t>(&details.n_writes, 1), Reduction::sum);
}

Result<ReadBack> Method::read_back(const std::string&) {
  return Status(Code::internal, name_ + " cannot be read back");
}

Status Method::remove(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Status();
  return status_from_errno(errno, "deleting \"" + path + "\"");
}

void compare_block(const BenchField& field, bool exact, std::span<const std::byte> original,
                   std::span<const std::byte> decoded, ReadBack& found) {
  const double bound = exact ? 0 : field.absolute_bound;
  const ChunkComparison compared =
      compare_values(field.dtype, original, decoded, bound, field.fill_value);
  found.n_bad += compared.n_beyond_bound + compared.n_special_changed;
  if (field.absolute_bound > 0) {
    found.error_over_bound =
        std::max(found.error_over_bound, compared.largest_error / field.absolute_bound);
  }
}

void combine(Comm& comm, ReadBack& found) {
  comm.allreduce(std::span<double>(&found.error_over_bound, 1), Reduction::max);
  std::uint64_t sums[3] = {found.n_bad, found.encoded_bytes, found.file_bytes};
  comm.allreduce(std::span<std::uint64_t>(sums), Reduction::sum);
  found.n_bad = sums[0];
  found.encoded_bytes = sums[1];
  found.file_bytes = sums[2];
}

}  // namespace tailrace::bench
