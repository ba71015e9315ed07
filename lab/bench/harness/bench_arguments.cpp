// Parsing of lists on the command line.

#include "bench_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/cli_common.hpp"
#include "core/options.hpp"

namespace tailrace::bench {
namespace {

constexpr std::string_view kPerRankSuffix = "/rank";

/// Length of the number at the start of "25MB/s".
std::size_t number_end(const std::string& word) {
  std::size_t end = 0;
  while (end < word.size() &&
         (std::isdigit(static_cast<unsigned char>(word[end])) != 0 || word[end] == '.')) {
    ++end;
  }
  return end;
}

Result<Bandwidth> parse_bandwidth(std::string word) {
  Bandwidth bandwidth;
  if (word == "unlimited" || word == "none") return bandwidth;
  const std::string whole = word;
  if (word.ends_with(kPerRankSuffix)) {
    bandwidth.per_rank = true;
    word.resize(word.size() - kPerRankSuffix.size());
  }
  if (word.ends_with("/s")) word.resize(word.size() - 2);
  Result<std::uint64_t> parsed = parse_bytes(word);
  if (!parsed.ok()) return parsed.status();
  if (*parsed == 0) return Status(Code::invalid_argument, whole + " must be more than 0");
  bandwidth.bytes_per_s = static_cast<double>(*parsed);
  return bandwidth;
}

}  // namespace

std::string bandwidth_text(const Bandwidth& bandwidth) {
  if (!bandwidth.limited()) return "unlimited";
  return cli::size_text(static_cast<std::uint64_t>(bandwidth.bytes_per_s)) + "/s" +
         (bandwidth.per_rank ? std::string(kPerRankSuffix) : "");
}

Result<std::vector<Bandwidth>> parse_bandwidths(const std::string& text) {
  std::vector<std::string> words = split(text, ',');
  std::string unit;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const std::size_t end = number_end(*word);
    if (end == 0) continue;  // "unlimited"
    if (end == word->size()) {
      *word += unit;
    } else {
      unit = word->substr(end);
    }
  }
  std::vector<Bandwidth> bandwidths;
  for (const std::string& word : words) {
    Result<Bandwidth> bandwidth = parse_bandwidth(word);
    if (!bandwidth.ok()) return bandwidth.status();
    bandwidths.push_back(*bandwidth);
  }
  if (bandwidths.empty()) return Status(Code::invalid_argument, "expected at least one bandwidth");
  return bandwidths;
}

Status parse_bounds(const std::string& text, std::vector<ErrorBound>& bounds) {
  std::string mode;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    std::string word = text.substr(from, to - from);
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      mode = word.substr(0, equals + 1);
    } else if (word != "none") {
      word.insert(0, mode);
    }
    Result<ErrorBound> bound = parse_error_bound(word);
    if (!bound.ok()) return bound.status();
    if (std::find(bounds.begin(), bounds.end(), *bound) == bounds.end()) bounds.push_back(*bound);
    from = to + 1;
  }
  return Status();
}

Status parse_fill(const std::string& text, std::vector<FillChoice>& fills) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return Status(Code::invalid_argument, text + ": expected GLOB:VALUE such as 'salt*:-1e10'");
  }
  try {
    std::size_t n_read = 0;
    const std::string number = text.substr(colon + 1);
    const double value = std::stod(number, &n_read);
    if (n_read == number.size()) {
      fills.push_back({text.substr(0, colon), value});
      return Status();
    }
  } catch (const std::exception&) {
    // Not a number, or out of double's range: reported below.
  }
  return Status(Code::invalid_argument, text + ": the fill value is not a number");
}

Status parse_field_bound(const std::string& text, std::vector<FieldBound>& bounds) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return Status(Code::invalid_argument,
                  text + ": expected GLOB:MODE=VALUE such as 'temperature:abs=1e3'");
  }
  Result<ErrorBound> bound = parse_error_bound(text.substr(colon + 1));
  if (!bound.ok()) return bound.status();
  bounds.push_back({text.substr(0, colon), *bound});
  return Status();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

}  // namespace tailrace::bench
