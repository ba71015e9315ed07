// The option text of a reader.

#include "chunk/read_options.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "core/utf8.hpp"

namespace tailrace {
namespace {

constexpr std::uint64_t kMemoryBytesMin = 1U << 20;
constexpr std::uint64_t kReadBytesMin = 4096;
constexpr std::uint64_t kNThreadsMax = 1024;

Status assign_bytes(const KeyValue& entry, std::uint64_t least, std::uint64_t& target) {
  TAILRACE_TAKE(const auto parsed, parse_bytes(entry.second).within("option " + entry.first));
  if (parsed < least) {
    return Status(Code::invalid_argument, "option " + entry.first + "=" + entry.second +
                                              ": expected at least " + std::to_string(least) +
                                              " bytes");
  }
  target = parsed;
  return Status();
}

Status assign_threads(const KeyValue& entry, std::uint64_t& target) {
  std::uint64_t n = 0;
  bool fits = !entry.second.empty() && entry.second.size() <= 4;
  for (const char digit : entry.second) {
    fits = fits && digit >= '0' && digit <= '9';
    if (fits) n = n * 10 + std::uint64_t(digit - '0');
  }
  if (!fits || n > kNThreadsMax) {
    return Status(Code::invalid_argument, "option threads=" + entry.second +
                                              ": expected a number from 0 (one per core) to " +
                                              std::to_string(kNThreadsMax));
  }
  target = n;
  return Status();
}

Status assign(const KeyValue& entry, ReadOptions& options) {
  const std::string& key = entry.first;
  if (key == "threads") return assign_threads(entry, options.n_threads);
  if (key == "memory") return assign_bytes(entry, kMemoryBytesMin, options.memory_bytes);
  if (key == "read") return assign_bytes(entry, kReadBytesMin, options.read_bytes);
  if (key == "gap") return assign_bytes(entry, 0, options.gap_bytes);
  if (key == "abs") {
    std::string_view rest;
    const std::optional<double> bound = leading_number(entry.second, rest);
    if (!bound || !rest.empty() || !(*bound >= 0) || !std::isfinite(*bound)) {
      return bad_option_value(key, entry.second, "a finite number >= 0");
    }
    options.abs_bound = *bound;
    return Status();
  }
  if (key == "prefetch" || key == "follow-external") {
    TAILRACE_TAKE(const bool parsed, parse_switch(key, entry.second));
    (key == "prefetch" ? options.prefetch : options.follow_external) = parsed;
    return Status();
  }
  if (key == "plugin-path") {
    options.plugin_path = entry.second;
    return Status();
  }
  constexpr std::array<std::string_view, 8> names = {
      "threads", "memory", "read", "gap", "abs", "prefetch", "follow-external", "plugin-path"};
  return Status(Code::invalid_argument, "option " + key + ": unknown for reading; choose one of: " +
                                            first_names_text(names, names.size()) +
                                            did_you_mean(key, names));
}

}  // namespace

OtherFiles other_files_of(const ReadOptions& options) {
  return options.follow_external ? OtherFiles::read : OtherFiles::leave_out;
}

Status apply_read_options(std::string_view text, ReadOptions& options) {
  TAILRACE_TAKE(const std::vector<KeyValue> entries, split_key_values(text));
  ReadOptions changed = options;
  for (const KeyValue& entry : entries) TAILRACE_TRY(assign(entry, changed));
  options = std::move(changed);
  return Status();
}

}  // namespace tailrace
