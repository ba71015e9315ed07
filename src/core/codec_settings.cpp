// Parsing of a codec's own settings.

#include "core/codec_settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/options.hpp"

namespace tailrace {
namespace {

/// Parse all of `text` as a whole number; decimal, or hexadecimal after 0x.
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

const std::string* CodecSettings::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const std::string* value = nullptr;
  for (const auto& [name, text] : request_.settings) {
    if (name == key) value = &text;
  }
  return value;
}

void CodecSettings::fail(std::string_view key, std::string_view expected, std::string_view got) {
  if (!first_error_.ok()) return;
  first_error_ = Status(Code::invalid_argument, "codec " + request_.name + ": " + std::string(key) +
                                                    " must be " + std::string(expected) +
                                                    ", got \"" + std::string(got) + "\"");
}

bool CodecSettings::has(std::string_view key) { return find(key) != nullptr; }

std::int64_t CodecSettings::integer(std::string_view key, std::int64_t least, std::int64_t greatest,
                                    std::int64_t otherwise) {
  const std::string* text = find(key);
  if (text == nullptr) return otherwise;
  const std::optional<std::int64_t> value = parse_integer(*text);
  if (value && *value >= least && *value <= greatest) return *value;
  fail(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(greatest),
       *text);
  return otherwise;
}

std::optional<double> CodecSettings::positive(std::string_view key) {
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

bool CodecSettings::flag(std::string_view key, bool otherwise) {
  const std::string* text = find(key);
  if (text == nullptr) return otherwise;
  Result<bool> value = parse_switch(key, *text);
  if (value.ok()) return *value;
  fail(key, "on or off", *text);
  return otherwise;
}

std::size_t CodecSettings::choice(std::string_view key,
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
  fail(key, expected, *text);
  return otherwise;
}

std::vector<std::uint32_t> CodecSettings::words(std::string_view key) {
  const std::string* text = find(key);
  std::vector<std::uint32_t> words;
  if (text == nullptr) return words;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::optional<std::int64_t> value = parse_integer(rest.substr(0, colon));
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

void CodecSettings::refuse(const std::string& why) {
  if (first_error_.ok()) {
    first_error_ = Status(Code::invalid_argument, "codec " + request_.name + ": " + why);
  }
}

Status CodecSettings::finish() const {
  if (!first_error_.ok()) return first_error_;
  for (const auto& [name, text] : request_.settings) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::string keys;
    for (const std::string& key : known_) keys += (keys.empty() ? "" : ", ") + key;
    return Status(Code::invalid_argument, "codec " + request_.name + ": unknown setting \"" + name +
                                              "\"; " +
                                              (keys.empty() ? "it has none" : "it knows: " + keys));
  }
  return Status();
}

}  // namespace tailrace
