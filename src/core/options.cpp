// The parsers behind every option text.

#include "core/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>

namespace tailrace {

namespace {

Status bad_value(std::string_view key, std::string_view text, std::string_view expected) {
  return Status(Code::invalid_argument, "option " + std::string(key) + "=" + std::string(text) +
                                            ": expected " + std::string(expected));
}

/// The number at the start of `text`; what follows it stays in `rest`.
std::optional<double> leading_number(std::string_view text, std::string_view& rest) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  return number;
}

bool whole_glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == text[t]))) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Status assign_switch(const KeyValue& entry, bool& target) {
  Result<bool> parsed = parse_switch(entry.first, entry.second);
  if (!parsed.ok()) return parsed.status();
  target = *parsed;
  return Status();
}

Status assign_bytes(const KeyValue& entry, std::uint64_t least, std::uint64_t& target) {
  Result<std::uint64_t> parsed = parse_bytes(entry.second);
  if (!parsed.ok()) return parsed.status().within("option " + entry.first);
  if (*parsed < least) {
    return bad_value(entry.first, entry.second, "at least " + std::to_string(least) + " bytes");
  }
  target = *parsed;
  return Status();
}

/// "performance", "balanced", "storage", a weight "0.8:0.2" (performance:storage), or a ratio
/// "1.25".
Status assign_space(const KeyValue& entry, SpaceGoal& space) {
  const auto& [key, text] = entry;
  constexpr std::string_view wanted =
      "performance, balanced, storage, weights such as 0.8:0.2, or a ratio >= 1 such as 1.25";
  if (text == "performance" || text == "balanced" || text == "storage") {
    space = {0, text == "performance" ? 1.0 : text == "balanced" ? 0.5 : 0.0};
    return Status();
  }
  std::string_view rest;
  const std::optional<double> first = leading_number(text, rest);
  if (first && rest.empty() && *first >= 1 && *first <= 100) {
    space = {*first, 0.5};
    return Status();
  }
  if (!first || *first < 0 || rest.empty() || rest.front() != ':') {
    return bad_value(key, text, wanted);
  }
  const std::optional<double> second = leading_number(rest.substr(1), rest);
  const double sum = second ? *first + *second : 0;
  if (!second || !rest.empty() || *second < 0 || !(sum > 0)) return bad_value(key, text, wanted);
  space = {0, *first / sum};
  return Status();
}

/// A number in [least, greatest]; `wanted` says so.
Status assign_number(const KeyValue& entry, double least, double greatest, std::string_view wanted,
                     double& target) {
  std::string_view rest;
  const std::optional<double> number = leading_number(entry.second, rest);
  if (!number || !rest.empty() || !(*number >= least) || !(*number <= greatest)) {
    return bad_value(entry.first, entry.second, wanted);
  }
  target = *number;
  return Status();
}

Status assign_mode(const KeyValue& entry, StepMode& target) {
  const auto& [key, text] = entry;
  if (text == "sync") {
    target = StepMode::sync;
  } else if (text == "async") {
    target = StepMode::async;
  } else if (text == "in_situ") {
    target = StepMode::in_situ;
  } else {
    return bad_value(key, text, "sync, async or in_situ");
  }
  return Status();
}

Status assign_hold(const KeyValue& entry, bool& promise) {
  const auto& [key, text] = entry;
  if (text != "copy" && text != "promise") return bad_value(key, text, "copy or promise");
  promise = text == "promise";
  return Status();
}

Status assign_objective(const KeyValue& entry, Objective& target) {
  if (entry.second == "speed") {
    target = Objective::speed;
  } else if (entry.second == "size") {
    target = Objective::size;
  } else if (entry.second == "balanced") {
    target = Objective::balanced;
  } else {
    return bad_value(entry.first, entry.second, "speed, size or balanced");
  }
  return Status();
}

Status assign_why(const KeyValue& entry, Why& target) {
  if (entry.second == "measured") {
    target = Why::measured;
    return Status();
  }
  if (entry.second == "predicted") {
    target = Why::predicted;
    return Status();
  }
  Result<bool> on = parse_switch(entry.first, entry.second);
  if (!on.ok()) return bad_value(entry.first, entry.second, "on, off, predicted or measured");
  target = *on ? Why::predicted : Why::off;
  return Status();
}

}  // namespace

Result<std::vector<KeyValue>> split_key_values(std::string_view text) {
  std::vector<KeyValue> entries;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (entry.empty()) continue;
    const std::size_t equals = entry.find('=');
    const std::string_view key = entry.substr(0, equals);
    if (key.empty()) {
      return Status(Code::invalid_argument, "option \"" + std::string(entry) + "\" has no name");
    }
    entries.emplace_back(key, equals == std::string_view::npos ? "" : entry.substr(equals + 1));
  }
  return entries;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 16> kUnits = {{
      {"", 1.0},
      {"B", 1.0},
      {"k", 0x1p10},
      {"K", 0x1p10},
      {"M", 0x1p20},
      {"G", 0x1p30},
      {"T", 0x1p40},
      {"kB", 1e3},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 0x1p10},
      {"MiB", 0x1p20},
      {"GiB", 0x1p30},
      {"TiB", 0x1p40},
  }};
  std::string_view unit;
  const std::optional<double> number = leading_number(text, unit);
  if (number && *number >= 0) {
    for (const auto& [name, factor] : kUnits) {
      if (name == unit && *number * factor < 0x1p63) {
        return static_cast<std::uint64_t>(std::llround(*number * factor));
      }
    }
  }
  return Status(Code::invalid_argument,
                "\"" + std::string(text) + "\" is not a number of bytes such as 8MiB or 256MB");
}

std::string bytes_text(std::uint64_t n_bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(n_bytes);
  std::size_t unit = 0;
  while (number >= 1000 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || number >= 100 ? "%.0f %s" : "%.3g %s",
                number, kUnits[unit]);
  return text.data();
}

Result<bool> parse_switch(std::string_view key, std::string_view text) {
  if (text == "on" || text == "yes" || text == "true" || text == "1" || text.empty()) return true;
  if (text == "off" || text == "no" || text == "false" || text == "0") return false;
  return bad_value(key, text, "on or off");
}

Result<std::uint64_t> parse_count(std::string_view key, std::string_view text,
                                  std::uint64_t least) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number < least) {
    return bad_value(key, text, "a whole number >= " + std::to_string(least));
  }
  return number;
}

Result<Shape> parse_shape(std::string_view text) {
  Shape shape;
  if (text == "scalar") return shape;
  std::string_view rest = text;
  while (true) {
    const std::size_t cross = rest.find('x');
    Result<std::uint64_t> extent = parse_count("shape", rest.substr(0, cross), 0);
    if (!extent.ok() || shape.size() == max_rank) {
      return Status(Code::invalid_argument,
                    "\"" + std::string(text) + "\" is not a shape such as 512x512x512");
    }
    shape.push_back(*extent);
    if (cross == std::string_view::npos) return shape;
    rest = rest.substr(cross + 1);
  }
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  if (whole_glob_matches(pattern, text)) return true;
  if (!text.empty() && text.front() == '/' && whole_glob_matches(pattern, text.substr(1))) {
    return true;
  }
  const std::size_t slash = text.rfind('/');
  return pattern.find('/') == std::string_view::npos && slash != std::string_view::npos &&
         whole_glob_matches(pattern, text.substr(slash + 1));
}

Status apply_field_option(const KeyValue& entry, FieldOptions& options) {
  const auto& [key, text] = entry;
  if (key == "space") return assign_space(entry, options.space);
  if (key == "expected-ratio") {
    return assign_number(entry, 1, 1e6, "a ratio >= 1", options.expected_ratio);
  }
  if (key == "expected-error") {
    return assign_number(entry, 0, 10, "a fraction such as 0.1", options.expected_error);
  }
  if (key == "codec") {
    if (text.empty()) return bad_value(key, text, "a codec's name");
    options.codec = text;
    options.codec_given = true;
    options.codec_given_for_field = true;
    options.codec_settings.clear();
    return Status();
  }
  if (key == "bound") {
    Result<ErrorBound> bound = parse_error_bound(text);
    if (!bound.ok()) return bound.status();
    options.bound = *bound;
    options.bound_given = true;
    return Status();
  }
  if (key == "chunk") {
    options.chunk_shape.reset();
    if (text.find('x') != std::string::npos) {
      // "1000x" is a shape of one dimension, which "1000" (bytes) could not say.
      const bool single = text.back() == 'x';
      Result<Shape> shape = parse_shape(std::string_view(text).substr(0, text.size() - single));
      if (!shape.ok()) return shape.status().within("option chunk");
      if (n_elements(*shape) == 0) return bad_value(key, text, "extents >= 1");
      options.chunk_shape = *shape;
      return Status();
    }
    return assign_bytes(entry, 1, options.chunk_bytes);
  }
  if (key == "layout") {
    options.layout = text;
    return Status();
  }
  if (key == "verify") {
    if (text == "auto") {
      options.verify = Verify::automatic;
      return Status();
    }
    bool on = false;
    TAILRACE_TRY(assign_switch(entry, on));
    options.verify = on ? Verify::on : Verify::off;
    return Status();
  }
  if (key == "fill") {
    std::string_view rest;
    const std::optional<double> number = leading_number(text, rest);
    if (!number || !rest.empty()) return bad_value(key, text, "a number");
    options.fill_value = *number;
    return Status();
  }
  if (key == "raw-fallback") return assign_switch(entry, options.fall_back_to_raw);
  if (key == "holes") return assign_switch(entry, options.allow_holes);
  if (key == "over-time") return assign_switch(entry, options.over_time);
  TAILRACE_TRY(check_codec_setting(key, options.codec_given ? options.codec : ""));
  options.codec_settings.push_back(entry);
  return Status();
}

Status apply_field_options(std::string_view text, FieldOptions& options) {
  Result<std::vector<KeyValue>> entries = split_key_values(text);
  if (!entries.ok()) return entries.status();
  for (const KeyValue& entry : *entries) TAILRACE_TRY(apply_field_option(entry, options));
  return Status();
}

Status apply_file_option(const KeyValue& entry, FileOptions& options) {
  const auto& [key, text] = entry;
  if (key == "mode") return assign_mode(entry, options.mode);
  if (key == "hold") return assign_hold(entry, options.hold_promise);
  if (key == "balance") {
    options.balance = text;  // checked where the rules are known, as scheduler and order
    return Status();
  }
  if (key == "record") {
    options.record_path = text;
    return Status();
  }
  if (key == "scheduler") {
    options.scheduler = text;
    return Status();
  }
  if (key == "threads") {
    Result<std::uint64_t> count = parse_count(key, text, 0);
    if (!count.ok()) return count.status();
    options.n_threads = *count;
    return Status();
  }
  if (key == "memory") return assign_bytes(entry, 1U << 20, options.memory_bytes);
  if (key == "buffer") return assign_bytes(entry, 1, options.write_buffer_bytes);
  if (key == "align") {
    if (text != "auto") return assign_bytes(entry, 1, options.alignment_bytes);
    options.alignment_bytes = 0;
    return Status();
  }
  if (key == "direct") return assign_switch(entry, options.direct_io);
  if (key == "fsync") return assign_switch(entry, options.sync);
  if (key == "journal") return assign_switch(entry, options.journal);
  if (key == "replace") return assign_switch(entry, options.replace);
  if (key == "trace-file") {
    if (text.empty()) return bad_value(key, text, "a file's name");
    options.trace_path = text;
    options.trace = true;
    return Status();
  }
  if (key == "trace") return assign_switch(entry, options.trace);
  if (key == "for") return assign_objective(entry, options.objective);
  if (key == "why") return assign_why(entry, options.why);
  if (key == "target-size") return assign_bytes(entry, 1, options.target_bytes);
  if (key == "target-psnr") {
    return assign_number(entry, 1, 400, "decibels, such as 80", options.target_psnr_db);
  }
  if (key == "profile") {
    options.profile_path = text;
    return Status();
  }
  if (key == "order") {
    options.order = text;  // checked where the rules are known
    return Status();
  }
  if (key == "plugin-path") {
    options.plugin_path = text;
    return Status();
  }
  TAILRACE_TRY(apply_field_option(entry, options.field_defaults));
  options.field_defaults.codec_given_for_field = false;
  return Status();
}

Status apply_file_options(std::string_view text, FileOptions& options) {
  Result<std::vector<KeyValue>> entries = split_key_values(text);
  if (!entries.ok()) return entries.status();
  for (const KeyValue& entry : *entries) TAILRACE_TRY(apply_file_option(entry, options));
  return Status();
}

// --- the names

namespace {

constexpr std::array<std::string_view, 22> kFileNames = {
    "mode",    "hold",        "balance",    "record",     "scheduler", "threads",
    "memory",  "buffer",      "align",      "direct",     "fsync",     "journal",
    "replace", "trace",       "trace-file", "for",        "why",       "target-size",
    "profile", "target-psnr", "order",      "plugin-path"};

constexpr std::array<std::string_view, 12> kFieldNames = {
    "codec",  "bound", "chunk",        "layout", "space",     "expected-ratio",
    "verify", "fill",  "raw-fallback", "holes",  "over-time", "expected-error"};

/// Characters to put in, take out or change to make one of the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, corner + 1, row[j] + 1});
    }
  }
  return row.back();
}

void append(std::span<const std::string_view> names, std::vector<std::string_view>& to) {
  for (const std::string_view name : names) {
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  }
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

const CodecSettingNames* settings_of(std::string_view codec) {
  if (codec.starts_with("id=")) codec = "id";
  for (const CodecSettingNames& known : codec_setting_names()) {
    if (known.codec == codec) return &known;
  }
  return nullptr;
}

/// "; did you mean \"layout\"?", if something is near.
std::string nearest(std::string_view key, std::span<const std::string_view> names) {
  constexpr std::size_t kTypingErrors = 2;  // letters exchanged are two
  std::string_view best;
  std::size_t least = std::min(kTypingErrors, key.size() / 2) + 1;
  for (const std::string_view name : names) {
    if (distance(key, name) >= least) continue;
    least = distance(key, name);
    best = name;
  }
  return best.empty() ? "." : "; did you mean \"" + std::string(best) + "\"?";
}

}  // namespace

std::span<const std::string_view> file_option_names() { return kFileNames; }
std::span<const std::string_view> field_option_names() { return kFieldNames; }

const std::vector<CodecSettingNames>& codec_setting_names() {
  static const std::vector<CodecSettingNames> table = {
      {"none", {}},
      {"deflate", {"level", "shuffle", "engine"}},
      {"portable", {"level", "shuffle", "engine"}},
      {"trz",
       {"preset", "predictor", "dimension", "spline", "last_axis", "lossless", "book",
        "book_loss"}},
      {"xor", {"dimension"}},
      {"sz3", {}},
      {"zfp", {"rate", "precision", "reversible"}},
      {"sperr", {"swap", "missing"}},
      {"zstd", {"level", "shuffle"}},
      {"lz4", {"block", "shuffle"}},
      {"bzip2", {"level", "shuffle"}},
      {"blosc", {"level", "shuffle", "inner"}},
      {"blosc2", {"level", "shuffle", "inner"}},
      {"bitshuffle", {"block", "inner", "level"}},
      {"id", {"cd", "shuffle"}},
  };
  return table;
}

Status check_codec_setting(std::string_view key, std::string_view codec) {
  const std::string quoted = "\"" + std::string(key) + "\"";
  const CodecSettingNames* const own = settings_of(codec);
  std::vector<std::string_view> settings;
  for (const CodecSettingNames& each : codec_setting_names()) append(each.names, settings);
  const bool of_some = std::find(settings.begin(), settings.end(), key) != settings.end();
  if (own == nullptr && of_some) return Status();
  if (own != nullptr) {
    if (std::find(own->names.begin(), own->names.end(), key) != own->names.end()) return Status();
    if (of_some) {
      return Status(Code::invalid_argument,
                    "codec " + std::string(codec) + ": unknown setting " + quoted + "; " +
                        (own->names.empty() ? "it has none" : "it knows: " + listed(own->names)));
    }
  }
  if (std::find(kFileNames.begin(), kFileNames.end(), key) != kFileNames.end()) {
    return Status(Code::invalid_argument,
                  "option " + quoted + " is of the whole file, not of a single field");
  }
  std::vector<std::string_view> all(kFieldNames.begin(), kFieldNames.end());
  append(kFileNames, all);
  append(settings, all);
  const std::string of_codec = own == nullptr || own->names.empty()
                                   ? ""
                                   : "; of codec " + std::string(codec) + ": " + listed(own->names);
  return Status(Code::invalid_argument, "unknown option " + quoted + nearest(key, all) +
                                            " There are: of fields: " + listed(kFieldNames) +
                                            of_codec + "; of the file: " + listed(kFileNames));
}

}  // namespace tailrace
