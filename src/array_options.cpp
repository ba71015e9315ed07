// The text of an options file, or of an environment variable.

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "array_file.hpp"

namespace tailrace {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

/// Where "GLOB: options" is divided: the first colon that no '=' comes before, which would make it
/// part of a value (cd=1:2:3).
std::size_t colon_of(std::string_view entry) {
  const std::size_t colon = entry.find(':');
  return colon < entry.find('=') ? colon : std::string_view::npos;
}

Status apply_entry(std::string_view entry, ArrayFileOptions& options) {
  const std::size_t colon = colon_of(entry);
  if (colon != std::string_view::npos) {
    const std::string pattern(trimmed(entry.substr(0, colon)));
    const std::string text(trimmed(entry.substr(colon + 1)));
    if (pattern.empty()) return Status(Code::invalid_argument, "names no variable before the ':'");
    FieldOptions tried;  // a codec of its own, if any: what it is laid over is known later
    TAILRACE_TRY(apply_field_options(text, tried));
    options.variable_options.emplace_back(pattern, text);
    return Status();
  }
  Result<std::vector<KeyValue>> pairs = split_key_values(entry);
  if (!pairs.ok()) return pairs.status();
  for (const KeyValue& pair : *pairs) {
    if (pair.first == "spill-folder") {
      options.spill_folder = pair.second;
    } else {
      TAILRACE_TRY(apply_file_option(pair, options.file));
    }
  }
  return Status();
}

}  // namespace

Status apply_array_file_options(std::string_view text, ArrayFileOptions& options) {
  ArrayFileOptions made = options;
  while (!text.empty()) {
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const std::size_t end = std::min(line.find(';'), line.size());
      const std::string_view entry = trimmed(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
      if (entry.empty()) continue;
      TAILRACE_TRY(apply_entry(entry, made).within("options \"" + std::string(entry) + "\""));
    }
  }
  options = std::move(made);
  return Status();
}

}  // namespace tailrace
