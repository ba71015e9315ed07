// The option text of a reader.

#include "core/options.hpp"
#include "read.hpp"

namespace tailrace {
namespace {

constexpr std::uint64_t memory_bytes_min = 1U << 20;
constexpr std::uint64_t read_bytes_min = 4096;
constexpr std::uint64_t n_threads_max = 1024;

Status assign_bytes(const KeyValue& entry, std::uint64_t least, std::uint64_t& target) {
  const Result<std::uint64_t> parsed = parse_bytes(entry.second);
  if (!parsed.ok()) return parsed.status().within("option " + entry.first);
  if (*parsed < least) {
    return Status(Code::invalid_argument, "option " + entry.first + "=" + entry.second +
                                              ": expected at least " + std::to_string(least) +
                                              " bytes");
  }
  target = *parsed;
  return Status();
}

Status assign_threads(const KeyValue& entry, std::uint64_t& target) {
  std::uint64_t n = 0;
  bool fits = !entry.second.empty() && entry.second.size() <= 4;
  for (const char digit : entry.second) {
    fits = fits && digit >= '0' && digit <= '9';
    if (fits) n = n * 10 + std::uint64_t(digit - '0');
  }
  if (!fits || n > n_threads_max) {
    return Status(Code::invalid_argument, "option threads=" + entry.second +
                                              ": expected a number from 0 (one per core) to " +
                                              std::to_string(n_threads_max));
  }
  target = n;
  return Status();
}

Status assign(const KeyValue& entry, ReadOptions& options) {
  const std::string& key = entry.first;
  if (key == "threads") return assign_threads(entry, options.n_threads);
  if (key == "memory") return assign_bytes(entry, memory_bytes_min, options.memory_bytes);
  if (key == "read") return assign_bytes(entry, read_bytes_min, options.read_bytes);
  if (key == "gap") return assign_bytes(entry, 0, options.gap_bytes);
  if (key == "prefetch") {
    const Result<bool> parsed = parse_switch(key, entry.second);
    if (!parsed.ok()) return parsed.status();
    options.prefetch = *parsed;
    return Status();
  }
  if (key == "plugin-path") {
    options.plugin_path = entry.second;
    return Status();
  }
  return Status(Code::invalid_argument,
                "option " + key +
                    ": unknown to a reader; it knows threads, memory, read, gap, prefetch and "
                    "plugin-path");
}

}  // namespace

Status apply_read_options(std::string_view text, ReadOptions& options) {
  const Result<std::vector<KeyValue>> entries = split_key_values(text);
  if (!entries.ok()) return entries.status();
  ReadOptions changed = options;
  for (const KeyValue& entry : *entries) TAILRACE_TRY(assign(entry, changed));
  options = std::move(changed);
  return Status();
}

}  // namespace tailrace
