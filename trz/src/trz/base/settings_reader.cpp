// Parses a codec's settings.

#include "trz/base/settings_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trz/base/near_names.hpp"

namespace tailrace {
namespace {

/// Parse all of `text` as an integer; decimal, or hexadecimal after 0x.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (hexadecimal && value < 0) return std::nullopt;
  return value;
}

}  // namespace

Result<SettingList> split_settings(std::string_view text) {
  SettingList entries;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (entry.empty()) continue;
    const std::size_t equals = entry.find('=');
    const std::string_view key = trimmed(entry.substr(0, equals));
    if (key.empty()) {
      return Status(Code::invalid_argument, "option \"" + std::string(entry) + "\" has no name");
    }
    entries.emplace_back(key,
                         equals == std::string_view::npos ? "" : trimmed(entry.substr(equals + 1)));
  }
  return entries;
}

const std::string* SettingsReader::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const std::string* value = nullptr;
  for (const auto& [name, text] : settings_) {
    if (name == key) value = &text;
  }
  return value;
}

void SettingsReader::fail(std::string_view key, std::string_view expected, std::string_view got,
                          std::string_view hint) {
  if (!first_error_.ok()) return;
  first_error_ =
      Status(Code::invalid_argument, "codec " + codec_ + ": " + std::string(key) + " must be " +
                                         std::string(expected) + ", got \"" + std::string(got) +
                                         "\"" + std::string(hint));
}

bool SettingsReader::has(std::string_view key) { return find(key) != nullptr; }

std::int64_t SettingsReader::integer(std::string_view key, std::int64_t least,
                                     std::int64_t greatest, std::int64_t otherwise) {
  const std::string* text = find(key);
  if (text == nullptr) return otherwise;
  const std::optional<std::int64_t> value = parse_integer(*text);
  if (value && *value >= least && *value <= greatest) return *value;
  fail(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(greatest),
       *text);
  return otherwise;
}

std::optional<double> SettingsReader::positive(std::string_view key) {
  const std::string* text = find(key);
  if (text == nullptr) return std::nullopt;
  double value = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && value > 0 && std::isfinite(value)) {
    return value;
  }
  fail(key, "a finite number > 0", *text);
  return std::nullopt;
}

std::size_t SettingsReader::choice(std::string_view key,
                                   std::initializer_list<std::string_view> choices,
                                   std::size_t otherwise) {
  const std::string* text = find(key);
  if (text == nullptr) return otherwise;
  std::string expected = "one of";
  std::size_t index = 0;
  for (const std::string_view name : choices) {
    if (name == *text) return index;
    expected += (index == 0 ? " " : ", ") + std::string(name);
    ++index;
  }
  fail(key, expected, *text, did_you_mean(*text, choices));
  return otherwise;
}

std::vector<std::uint32_t> SettingsReader::words(std::string_view key) {
  const std::string* text = find(key);
  std::vector<std::uint32_t> words;
  if (text == nullptr) return words;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::optional<std::int64_t> value = parse_integer(trimmed(rest.substr(0, colon)));
    if (!value || *value < INT32_MIN || *value > UINT32_MAX) {
      fail(key, "32-bit whole numbers with colons between them (1:2:0x1f)", *text);
      return {};
    }
    words.push_back(static_cast<std::uint32_t>(*value));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
    if (rest.empty()) fail(key, "whole numbers without a colon at the end", *text);
  }
  return words;
}

void SettingsReader::refuse(const std::string& why) {
  if (first_error_.ok()) {
    first_error_ = Status(Code::invalid_argument, "codec " + codec_ + ": " + why);
  }
}

Status SettingsReader::finish() const {
  if (!first_error_.ok()) return first_error_;
  for (const auto& [name, text] : settings_) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::string keys;
    for (const std::string& key : known_) keys += (keys.empty() ? "" : ", ") + key;
    return Status(Code::invalid_argument,
                  "codec " + codec_ + ": unknown setting \"" + name + "\"; " +
                      (keys.empty() ? "it has no settings" : "its settings: " + keys) +
                      did_you_mean(name, known_));
  }
  return Status();
}

}  // namespace tailrace
