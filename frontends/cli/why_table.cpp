// The candidates as a table and as JSON.

#include "why_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>

#include "cli_common.hpp"
#include "text_table.hpp"

namespace tailrace::cli {
namespace {

/// Three digits in milliseconds, as most steps of a field take few of them.
std::string ms_cell(double seconds) {
  const double ms = 1e3 * seconds;
  return ms >= 100 ? fmt::format("{:.0f}", ms) : fmt::format("{:.3g}", ms);
}

std::string bytes_cell(double n_bytes) { return size_text(static_cast<std::uint64_t>(n_bytes)); }

/// The best first: by size or time, as was asked; what was not looked at last.
std::vector<std::size_t> ranked(const FieldReport& field, Objective objective) {
  std::vector<std::size_t> order(field.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::size_t c) {
    const CandidateForecast& one = field.candidates[c];
    return std::make_pair(!one.refused.empty(),
                          objective == Objective::size ? one.encoded_bytes : one.alone_s);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

void add_candidate(TextTable& table, const FieldReport& field, std::size_t candidate,
                   const std::string& path) {
  const CandidateForecast& one = field.candidates[candidate];
  const bool usable = one.refused.empty();
  const bool taken = candidate == field.chosen_candidate;
  const bool measured = one.measured_bytes > 0;
  // The same threads share what was measured.
  const double lanes = one.encode_lane_s > 0 ? one.encode_s / one.encode_lane_s : 1;
  const auto raw = static_cast<double>(field.raw_bytes);
  const double bytes = usable ? one.encoded_bytes : one.measured_bytes;
  table.add_row(
      {path, (taken ? "> " : "  ") + one.codec, bytes > 0 ? fmt::format("{:.2f}", raw / bytes) : "",
       usable ? bytes_cell(one.encoded_bytes) : "", measured ? bytes_cell(one.measured_bytes) : "",
       usable ? ms_cell(one.encode_lane_s) : "",
       measured ? ms_cell(one.measured_encode_s / lanes) : "",
       usable ? ms_cell(one.write_lane_s) : "", usable ? ms_cell(one.alone_s) : ""});
}

/// One line for each reason that left candidates out, with the fields where it did.
std::string left_out_text(const std::vector<FieldReport>& fields) {
  std::map<std::string, std::map<std::string, std::size_t>> codecs_by_reason;
  std::size_t n_fields = 0;
  for (const FieldReport& field : fields) {
    if (!field.candidates.empty()) ++n_fields;
    for (const CandidateForecast& one : field.candidates) {
      if (!one.refused.empty()) ++codecs_by_reason[one.refused][one.codec];
    }
  }
  std::string text;
  for (const auto& [reason, codecs] : codecs_by_reason) {
    std::vector<std::string> names;
    for (const auto& [codec, n] : codecs) {
      names.push_back(n == n_fields ? codec : fmt::format("{} ({})", codec, counted(n, "field")));
    }
    text += wrapped(fmt::format("{}: {}", reason, fmt::join(names, "; ")), 2) + "\n";
  }
  return text;
}

const char* objective_text(Objective objective) {
  switch (objective) {
    case Objective::speed: return "the shortest step";
    case Objective::size: return "the smallest file";
    case Objective::balanced: return "the smallest file within a tenth of the shortest step";
  }
  return "";
}

}  // namespace

std::string why_text(const RepackOutcome& outcome) {
  const StepReport& report = outcome.report;
  TextTable table({{"field", false, 14},
                   {"candidate", false, 22},
                   {"ratio", true},
                   {"encoded", true},
                   {"encoded,\nmeasured", true},
                   {"encode\nms", true},
                   {"encode,\nmeasured", true},
                   {"write\nms", true},
                   {"alone\nms", true}});
  std::vector<std::string> paths;
  for (const FieldReport& field : report.fields) {
    if (!field.candidates.empty()) paths.push_back(field.path);
  }
  if (paths.empty()) return "why: every field's codec was named, nothing was chosen\n";
  const std::string group = common_group(paths);
  for (const FieldReport& field : report.fields) {
    if (field.candidates.empty()) continue;
    if (!table.empty()) table.add_rule();
    std::string path(shown_path(field.path, group));
    for (const std::size_t c : ranked(field, outcome.options.objective)) {
      const CandidateForecast& one = field.candidates[c];
      if (!one.refused.empty() && one.measured_bytes <= 0) continue;
      add_candidate(table, field, c, path);
      path.clear();
    }
  }
  const std::string typical = outcome.report.profile == "typical values"
                                  ? " ('tailrace profile' measures this machine)"
                                  : "";
  return wrapped(fmt::format("why: for {}, times by the machine profile of {}{}; {} x {}{}",
                             objective_text(outcome.options.objective), report.profile, typical,
                             counted(static_cast<std::uint64_t>(outcome.n_ranks), "rank"),
                             counted(outcome.n_threads, "thread"), group_remark(group)),
                 2) +
         "\n\n" + table.text() + "\n" + left_out_text(report.fields) +
         wrapped(
             "alone: encoding and writing overlapped, if the field were all there is. The "
             "choice (>) is for the step as a whole, where one field's bytes hide behind the "
             "encoding of others.",
             2) +
         "\n";
}

nlohmann::ordered_json candidates_json(const FieldReport& field) {
  auto list = nlohmann::ordered_json::array();
  for (std::size_t c = 0; c < field.candidates.size(); ++c) {
    const CandidateForecast& one = field.candidates[c];
    nlohmann::ordered_json entry;
    entry["codec"] = one.codec;
    entry["chosen"] = c == field.chosen_candidate;
    entry["refused"] =
        one.refused.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(one.refused);
    if (one.refused.empty()) {
      entry["predicted_bytes"] = one.encoded_bytes;
      entry["predicted_encode_s"] = one.encode_s;
      entry["predicted_encode_lane_s"] = one.encode_lane_s;
      entry["predicted_write_lane_s"] = one.write_lane_s;
      entry["predicted_alone_s"] = one.alone_s;
    }
    if (one.measured_bytes > 0) {
      entry["measured_bytes"] = one.measured_bytes;
      entry["measured_encode_s"] = one.measured_encode_s;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace tailrace::cli
