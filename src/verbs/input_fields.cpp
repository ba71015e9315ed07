// Opening of inputs, matching of globs.

#include "verbs/input_fields.hpp"
#include "core/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace tailrace::verbs {
namespace {

Status unknown_pattern(std::string_view option, const std::string& text,
                       std::span<const StoredDataset> fields) {
  return Status(Code::invalid_argument, fmt::format("{} '{}' matches no field; the fields are: {}",
                                                    option, text, field_list_text(fields)));
}

}  // namespace

void search_plugins_in(const std::string& folders) {
  if (folders.empty()) return;
  const char* before = std::getenv("HDF5_PLUGIN_PATH");
  const std::string all = before == nullptr ? folders : folders + ":" + before;
  ::setenv("HDF5_PLUGIN_PATH", all.c_str(), 1);
}

Result<RawFormat> parse_raw_format(const std::string& text, const char* option) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return Status(Code::invalid_argument,
                  fmt::format("{} {}: expected TYPE:SHAPE such as f32:512x512x512", option, text));
  }
  const std::string where = fmt::format("{} {}", option, text);
  TAILRACE_TAKE(DType dtype, parse_dtype(text.substr(0, colon)).within(where));
  TAILRACE_TAKE(Shape shape, parse_shape(text.substr(colon + 1)).within(where));
  return RawFormat{dtype, shape};
}

Result<std::unique_ptr<InputFile>> open_input(const std::string& path,
                                              const std::string& raw_format,
                                              const ReadOptions& options) {
  if (raw_format.empty()) return open_input_file(path, {}, options);
  TAILRACE_TAKE(RawFormat raw, parse_raw_format(raw_format));
  return open_input_file(path, raw, options);
}

std::vector<KeyValue> own_options(const StoredDataset& field,
                                  std::span<const FieldPattern> patterns) {
  std::vector<KeyValue> own;
  for (const FieldPattern& pattern : patterns) {
    if (!glob_matches(pattern.glob, field.path)) continue;
    own.insert(own.end(), pattern.options.begin(), pattern.options.end());
  }
  return own;
}

Result<FieldPattern> parse_field_pattern(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    return Status(Code::invalid_argument,
                  fmt::format("--field '{}': expected 'GLOB:key=value,...', for example "
                              "'temperature:codec=zfp,bound=abs=1e3'",
                              text));
  }
  FieldPattern pattern;
  pattern.glob = text.substr(0, colon);
  const std::string where = fmt::format("--field '{}'", text);
  TAILRACE_TAKE(pattern.options, split_key_values(text.substr(colon + 1)).within(where));
  // Values are checked here, where the message can quote the argument, not only where they apply.
  FieldOptions trial;
  for (const KeyValue& entry : pattern.options) {
    TAILRACE_TRY(apply_field_option(entry, trial).within(where));
  }
  return pattern;
}

std::string field_list_text(std::span<const StoredDataset> fields) {
  constexpr std::size_t most = 20;
  std::string list;
  for (std::size_t f = 0; f < std::min(fields.size(), most); ++f) {
    list += (f == 0 ? "" : ", ") + fields[f].path;
  }
  if (fields.size() > most) list += fmt::format(" and {} more", fields.size() - most);
  return fields.empty() ? "(none)" : list;
}

Status check_patterns_match(std::span<const std::string> globs, std::string_view option,
                            std::span<const StoredDataset> fields) {
  for (const std::string& glob : globs) {
    const bool found = std::ranges::any_of(
        fields, [&](const StoredDataset& field) { return glob_matches(glob, field.path); });
    if (!found) return unknown_pattern(option, glob, fields);
  }
  return Status();
}

bool matches_any(std::string_view path, std::span<const std::string> globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return glob_matches(glob, path); });
}

bool FieldSelection::holds(std::string_view path) const {
  return !matches_any(path, exclude) && (only.empty() || matches_any(path, only));
}

Status FieldSelection::check(std::span<const StoredDataset> fields) const {
  TAILRACE_TRY(check_patterns_match(only, "--only", fields));
  return check_patterns_match(exclude, "--exclude", fields);
}

}  // namespace tailrace::verbs
