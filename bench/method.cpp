// What all methods share, and the list of rows.

#include "method.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "codec/registry.hpp"
#include "container/filter_plugins.hpp"
#include "core/options.hpp"

namespace tailrace::bench {
namespace {

/// Rows that are measured unless --methods says otherwise.
std::vector<std::string> default_names(const std::string& codec) {
  return {"hdf5-independent-none",     "hdf5-collective-none",    "hdf5-collective-" + codec,
          "tailrace-claimed-" + codec, "tailrace-dense-" + codec, "ideal-" + codec,
          "tailrace-contiguous-none",  "tailrace-claimed-none",   "tailrace-claimed-portable"};
}

/// Rows that a glob finds besides.
std::vector<std::string> known_names(const std::string& codec) {
  std::vector<std::string> names = default_names(codec);
  names.push_back("tailrace-claimed-" + codec + "-verified");
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
      return Status(Code::invalid_argument, "--methods: \"" + pattern + "\" matches no new row");
    }
  }
  return names;
}

Result<std::unique_ptr<Method>> make_method(const BenchContext& context, const std::string& name) {
  constexpr std::string_view verified_suffix = "-verified";
  const bool verified = name.ends_with(verified_suffix);
  const std::string core = verified ? name.substr(0, name.size() - verified_suffix.size()) : name;
  const std::size_t first = core.find('-');
  const std::size_t second = core.find('-', first == std::string::npos ? first : first + 1);
  const std::string kind = core.substr(0, first);
  if (kind == "ideal" && first != std::string::npos && !verified) {
    return make_ideal_method(context, name, core.substr(first + 1));
  }
  if (second != std::string::npos) {
    const std::string middle = core.substr(first + 1, second - first - 1);
    const std::string codec = core.substr(second + 1);
    if (kind == "tailrace") return make_tailrace_method(context, name, middle, codec, verified);
    const bool collective = middle == "collective";
    if (kind == "hdf5" && !verified && (collective || middle == "independent")) {
      return make_hdf5_method(context, name, collective, codec);
    }
  }
  return Status(Code::invalid_argument,
                "--methods: \"" + name + "\" is no method; see --help for their names");
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

Result<std::unique_ptr<Codec>> make_bench_codec(const BenchOptions& options,
                                                std::string_view codec_name,
                                                const BenchField& field) {
  CodecRequest request;
  request.name = codec_name;
  if (codec_name == options.codec) request.settings = options.codec_settings;
  request.dtype = field.dtype;
  request.chunk_shape = field.chunk_shape;
  request.absolute_bound = field.absolute_bound;
  return is_plugin_codec(request.name) ? make_plugin_codec(request, options.plugin_path)
                                       : make_builtin_codec(request);
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
  const ChunkComparison compared = compare_values(field.dtype, original, decoded, bound);
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
