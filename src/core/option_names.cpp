// See option_names.hpp.

#include "core/option_names.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

namespace tailrace {
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
