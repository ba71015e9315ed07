// The summary's table, its notes in plain words, and the lines that say where the time went.

#include "summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "cli_common.hpp"
#include "text_table.hpp"
#include "why_table.hpp"

namespace tailrace::cli {
namespace {

/// More fields than this do not fit one screen: then the biggest are shown.
constexpr std::size_t most_fields_shown = 30;
constexpr std::size_t fields_shown_of_many = 25;
constexpr std::size_t most_path_columns = 64;

/// The fields to show, biggest first if there are too many, else in the order of the file.
std::vector<std::size_t> shown_fields(const std::vector<FieldReport>& fields) {
  std::vector<std::size_t> order(fields.size());
  std::iota(order.begin(), order.end(), 0);
  if (fields.size() <= most_fields_shown) return order;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return fields[a].raw_bytes > fields[b].raw_bytes;
  });
  order.resize(fields_shown_of_many);
  return order;
}

/// Held to a finite bound: neither exact nor lossy by a setting that promises nothing (zfp,rate=8).
bool bounded(const FieldReport& field) {
  return field.bound_of_error() > 0 && std::isfinite(field.bound_of_error());
}

std::string error_cell(const FieldReport& field) {
  if (!field.verified || field.raw_bytes == 0 || std::isinf(field.absolute_bound)) return "";
  if (bounded(field)) return share_text(field.max_error, field.bound_of_error());
  return field.max_error == 0 ? "0" : fmt::format("{:.3g}", field.max_error);
}

/// With the settings, where they were chosen.
std::string codec_shown(const FieldReport& field) {
  return field.candidates.empty() ? field.codec : field.candidates[field.chosen_candidate].codec;
}

void add_field_row(TextTable& table, const FieldReport& field, std::string_view group) {
  const bool unbounded = std::isinf(field.absolute_bound);
  const bool marked = field.n_raw_chunks > 0;
  table.add_row({std::string(shown_path(field.path, group)), std::string(dtype_name(field.dtype)),
                 shape_text(field.shape), codec_shown(field) + (marked ? "*" : ""),
                 unbounded ? "none" : bound_column_text(field.bound),
                 bounded(field) && field.absolute_bound > 0
                     ? fmt::format("{:.3g}", field.absolute_bound)
                     : "",
                 error_cell(field), ratio_text(field.raw_bytes, field.encoded_bytes),
                 size_text(field.encoded_bytes),
                 field.codec == "none" ? "" : throughput_text(field.raw_bytes, field.encode_s)});
}

std::string group_of_all(const std::vector<FieldReport>& fields) {
  std::vector<std::string> paths;
  paths.reserve(fields.size());
  for (const FieldReport& field : fields) paths.push_back(field.path);
  return common_group(paths);
}

std::string field_table(const RepackOutcome& outcome, const std::string& group) {
  const std::vector<FieldReport>& fields = outcome.report.fields;
  TextTable table({{"field", false, 14},
                   {"type"},
                   {"shape", false, 9},
                   {"codec", false, 8},
                   {"bound", false, 8},
                   {"absolute\nbound", true},
                   {"error,\nof bound", true},
                   {"ratio", true},
                   {"encoded", true},
                   {"encode\nMB/s", true}});
  const std::vector<std::size_t> shown = shown_fields(fields);
  for (const std::size_t f : shown) add_field_row(table, fields[f], group);
  if (shown.size() < fields.size()) {
    FieldReport rest;
    for (const FieldReport& field : fields) {
      rest.raw_bytes += field.raw_bytes;
      rest.encoded_bytes += field.encoded_bytes;
      rest.encode_s += field.encode_s;
    }
    for (const std::size_t f : shown) {
      rest.raw_bytes -= fields[f].raw_bytes;
      rest.encoded_bytes -= fields[f].encoded_bytes;
      rest.encode_s -= fields[f].encode_s;
    }
    table.add_row({fmt::format("{} more", fields.size() - shown.size()), "", "", "", "", "", "",
                   ratio_text(rest.raw_bytes, rest.encoded_bytes), size_text(rest.encoded_bytes),
                   throughput_text(rest.raw_bytes, rest.encode_s)});
  }
  return table.text();
}

/// "a, b and 3 more".
std::string joined_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  std::string text = fmt::format(
      "{}",
      fmt::join(names.begin(),
                names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)), ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

/// An end of the value range that looks like a fill value which nobody declared; 0: it does not.
/// Such a value makes a relative bound useless, and real files are full of them. The Writer warns
/// of the customary huge ones by itself (1e20, -1e34); here it is -1e10, -9999, -999 and so on:
/// round, and far below everything else.
double suspected_fill(const FieldReport& field) {
  if (!field.bound.needs_range()) return 0;
  const double depth = -field.value_least;
  constexpr double least_depth = 999;
  constexpr double most_depth = 1e19;
  if (depth < least_depth || depth >= most_depth) return 0;
  if (depth <= 10 * std::fabs(field.value_greatest)) return 0;
  const double power = std::pow(10.0, std::round(std::log10(depth)));
  return depth == power || depth == power - 1 ? -depth : 0;
}

/// What a reader needs for the codecs that were chosen for the user; empty: nothing.
std::string reader_note(const StepReport& report) {
  bool trz = false;
  std::vector<std::string> plugins;
  for (const FieldReport& field : report.fields) {
    if (field.candidates.empty()) continue;
    trz = trz || field.codec == "trz";
    const bool plugin = field.codec == "sz3" || field.codec == "zfp" || field.codec == "zstd";
    if (plugin && std::find(plugins.begin(), plugins.end(), field.codec) == plugins.end()) {
      plugins.push_back(field.codec);
    }
  }
  if (!trz && plugins.empty()) return "";
  const char* ours = "trz (libh5trz.so in HDF5_PLUGIN_PATH; h5py: pip install ., import tailrace)";
  if (trz) plugins.emplace(plugins.begin(), ours);
  return fmt::format("readers need the filter of {}; files of --codec portable need none",
                     fmt::join(plugins, ", "));
}

/// What came out against --target-size and --target-psnr.
void add_target_notes(const RepackOutcome& outcome, std::vector<std::string>& lines) {
  const std::uint64_t target = outcome.options.target_bytes;
  const std::uint64_t came = outcome.report.encoded_bytes;
  if (target > 0) {
    lines.push_back(
        fmt::format("target size {}: {} came out, {:+.1f} %", size_text(target), size_text(came),
                    100 * (static_cast<double>(came) / static_cast<double>(target) - 1)));
  }
  std::vector<std::string> fields;
  for (const FieldReport& field : outcome.report.fields) {
    if (field.expected_psnr_db <= 0) continue;
    fields.push_back(fmt::format("{} {:.1f}", field.path.substr(field.path.rfind('/') + 1),
                                 field.expected_psnr_db));
  }
  if (fields.empty()) return;
  lines.push_back(
      fmt::format("target PSNR {:g} dB; by the errors of a sample to be expected: {} "
                  "(tailrace verify measures it)",
                  outcome.options.target_psnr_db, fmt::join(fields, ", ")));
}

std::vector<std::string> notes(const RepackOutcome& outcome) {
  std::vector<std::string> lines;
  std::map<std::string, std::vector<std::string>> kept_exact;
  std::vector<std::string> constant;
  std::vector<std::string> lossy_before;
  std::map<double, std::vector<std::string>> suspects;
  for (std::size_t f = 0; f < outcome.report.fields.size(); ++f) {
    const FieldReport& field = outcome.report.fields[f];
    if (field.n_raw_chunks > 0) {
      lines.push_back(fmt::format(
          "* {}: {} of {} stored without compression, because {} could not keep the bound, or the "
          "NaN "
          "and fill values, there (portable can)",
          field.path, field.n_raw_chunks, counted(field.n_chunks, "chunk"), field.codec));
    }
    if (field.bound.needs_range() && field.absolute_bound == 0 && field.raw_bytes > 0) {
      constant.push_back(field.path);
    }
    if (const double fill = suspected_fill(field); fill != 0) suspects[fill].push_back(field.path);
    if (f >= outcome.plan.size()) continue;
    const PlannedField& planned = outcome.plan[f];
    if (!planned.exact_reason.empty()) kept_exact[planned.exact_reason].push_back(field.path);
    if (planned.lossy_before && field.bound_of_error() > 0) lossy_before.push_back(field.path);
  }
  add_target_notes(outcome, lines);
  if (const std::string needed = reader_note(outcome.report); !needed.empty()) {
    lines.push_back(needed);
  }
  for (const auto& [reason, names] : kept_exact) {
    lines.push_back(fmt::format("kept exactly ({}): {}", reason, joined_names(names)));
  }
  for (const auto& [fill, names] : suspects) {
    lines.push_back(
        fmt::format("{:g} is taken for a value and widens the range of {}: if it is a "
                    "fill value, say --field '{}:fill={:g}'",
                    fill, joined_names(names), names.front(), fill));
  }
  if (!constant.empty()) {
    lines.push_back(fmt::format("kept exactly (all values equal, so the bound is 0): {}",
                                joined_names(constant)));
  }
  if (!lossy_before.empty()) {
    lines.push_back(fmt::format("the input was lossy already, so the errors add up: {}",
                                joined_names(lossy_before)));
  }
  return lines;
}

std::string hidden_text(const StepReport& report) {
  if (report.write_s <= 0 || report.encode_s <= 0) return "";
  const bool write_is_shorter = report.write_s <= report.encode_s;
  return fmt::format("{} hidden behind {}: {:.0f} %", write_is_shorter ? "write" : "encode",
                     write_is_shorter ? "encode" : "write", 100 * report.hidden_share);
}

/// How much more a prediction says than what came: "3.1% too much", "0.4% too little", "right".
std::string deviation_text(double predicted, double came) {
  const double deviation = came > 0 ? predicted / came - 1 : 0;
  if (std::fabs(deviation) < 5e-4) return "right";
  return fmt::format("{:.1f}% too {}", 100 * std::fabs(deviation),
                     deviation > 0 ? "much" : "little");
}

/// What was expected of the sizes, and how far it was off: over all fields, and chunk by chunk.
std::string prediction_text(const StepReport& report) {
  double sum_of_errors = 0;
  double n_chunks = 0;
  for (const FieldReport& field : report.fields) {
    sum_of_errors += field.mean_size_error * static_cast<double>(field.n_chunks);
    n_chunks += static_cast<double>(field.n_chunks);
  }
  return fmt::format("{} expected, {}; a chunk is {:.1f}% off in the mean",
                     size_text(report.predicted_bytes),
                     deviation_text(static_cast<double>(report.predicted_bytes),
                                    static_cast<double>(report.encoded_bytes)),
                     n_chunks > 0 ? 100 * sum_of_errors / n_chunks : 0);
}

/// Whether codecs or bounds were chosen from a sample.
bool chose(const RepackOutcome& outcome) {
  const bool aimed = outcome.options.target_bytes > 0 || outcome.options.target_psnr_db > 0;
  return aimed || std::any_of(outcome.report.fields.begin(), outcome.report.fields.end(),
                              [](const FieldReport& field) { return !field.candidates.empty(); });
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// What was set aside before sizes were known, and how often it was too little.
std::string reserved_text(const StepReport& report) {
  std::uint64_t n_chunks = 0;
  for (const FieldReport& field : report.fields) {
    if (field.reserved_bytes > 0) n_chunks += field.n_chunks;
  }
  const std::uint64_t n_over = report.n_overflow_chunks;
  return size_text(report.reserved_bytes) +
         (n_over == 0 ? "; no chunk overflowed"
                      : fmt::format("; {} of {} overflowed ({:.1f}%)", n_over,
                                    counted(n_chunks, "chunk"), percent(n_over, n_chunks)));
}

/// Overlap, and what was planned for both together.
std::string together_text(const StepReport& report) {
  std::string text = hidden_text(report);
  if (report.predicted_makespan_s > 0) {
    text += fmt::format("{}planned {}", text.empty() ? "" : "; ",
                        seconds_text(report.predicted_makespan_s));
  }
  return text;
}

std::string with_unit(const std::string& throughput) {
  return throughput == "-" ? "" : throughput + " MB/s";
}

std::string time_lines(const RepackOutcome& outcome) {
  const StepReport& report = outcome.report;
  TextTable table({{""}, {"", true}, {"", true}, {""}});
  const auto line = [&](const char* what, double seconds, const std::string& speed,
                        const std::string& remark) {
    table.add_row({what, seconds_text(seconds), speed, remark});
  };
  line("read", report.read_s, with_unit(throughput_text(report.raw_bytes, report.read_s)),
       fmt::format("{} of values", size_text(report.raw_bytes)));
  if (chose(outcome)) {
    line("choose", report.choose_s, "", "codecs, from a sample");
  }
  if (report.predicted_bytes > 0) line("predict", report.predict_s, "", prediction_text(report));
  line("encode", report.encode_s, with_unit(throughput_text(report.raw_bytes, report.encode_s)),
       fmt::format("{} x {}", counted(static_cast<std::uint64_t>(outcome.n_ranks), "rank"),
                   counted(outcome.n_threads, "thread")));
  line("write", report.write_s, with_unit(throughput_text(report.encoded_bytes, report.write_s)),
       fmt::format("{} in {}", size_text(report.encoded_bytes), counted(report.n_writes, "write")));
  if (report.wait_s >= 0.0005) line("wait", report.wait_s, "", "encoded, but without an address");
  line("together", report.makespan_s,
       with_unit(throughput_text(report.raw_bytes, report.makespan_s)), together_text(report));
  if (report.reserved_bytes > 0) table.add_row({"reserved", "", "", reserved_text(report)});
  if (report.slack_bytes > 0) {
    table.add_row(
        {"unused", "", "",
         fmt::format("{} of the file, {:.1f}% of the encoded bytes", size_text(report.slack_bytes),
                     percent(report.slack_bytes, report.encoded_bytes))});
  }
  const bool sync = outcome.options.sync;
  line("finish", report.index_s + report.sync_s + report.commit_s, "",
       fmt::format("index {}, {}commit {}", seconds_text(report.index_s),
                   sync ? "fsync " + seconds_text(report.sync_s) + ", " : "no fsync, ",
                   seconds_text(report.commit_s)));
  line("all", outcome.total_s, with_unit(throughput_text(report.raw_bytes, outcome.total_s)),
       fmt::format("peak memory {} of {} a rank", size_text(report.peak_memory_bytes),
                   size_text(outcome.options.memory_bytes)));
  // The columns explain themselves, so their empty headings are dropped.
  const std::string text = table.text();
  return text.substr(text.find('\n') + 1);
}

/// A number that was not measured is null, not 0.
template <class Number>
nlohmann::ordered_json number_or_null(bool measured, Number number) {
  return measured ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json field_json(const FieldReport& field) {
  nlohmann::ordered_json entry;
  entry["path"] = field.path;
  entry["dtype"] = std::string(dtype_name(field.dtype));
  entry["shape"] = field.shape;
  entry["chunk_shape"] = field.chunk_shape;
  entry["codec"] = field.codec;
  entry["codec_version"] = field.codec_version;
  entry["layout"] = field.layout;
  entry["bound_mode"] = std::string(bound_mode_name(field.bound.mode));
  entry["bound_asked"] = field.bound.value;
  entry["absolute_bound"] = field.absolute_bound;
  entry["pointwise_bound"] = field.pointwise_bound;
  entry["verified"] = field.verified;
  entry["max_error"] = number_or_null(field.verified, field.max_error);
  entry["max_error_over_bound"] = number_or_null(field.verified && field.bound_of_error() > 0,
                                                 field.max_error / field.bound_of_error());
  entry["n_chunks"] = field.n_chunks;
  entry["n_raw_chunks"] = field.n_raw_chunks;
  entry["raw_bytes"] = field.raw_bytes;
  entry["encoded_bytes"] = field.encoded_bytes;
  const bool predicted = field.predicted_bytes > 0;
  entry["predicted_bytes"] = number_or_null(predicted, field.predicted_bytes);
  entry["mean_size_error"] = number_or_null(predicted, field.mean_size_error);
  entry["n_overflow_chunks"] = field.n_overflow_chunks;
  entry["reserved_bytes"] = field.reserved_bytes;
  const bool has_book = field.book_bytes > 0;
  entry["book_bytes"] = field.book_bytes;
  entry["book_ratio_loss"] = number_or_null(has_book, field.book_ratio_loss);
  entry["book_saved_s"] = number_or_null(has_book, field.book_saved_s);
  entry["encode_s"] = field.encode_s;
  entry["verify_s"] = field.verify_s;
  entry["expected_psnr_db"] = number_or_null(field.expected_psnr_db > 0, field.expected_psnr_db);
  if (!field.candidates.empty()) entry["candidates"] = candidates_json(field);
  return entry;
}

}  // namespace

std::string summary_text(const RepackOutcome& outcome) {
  const StepReport& report = outcome.report;
  const std::string group = group_of_all(report.fields);
  std::string out =
      fmt::format("from  {} ({}, {})\n", shorten_middle(outcome.input_path, most_path_columns),
                  outcome.input_format, size_text(outcome.input_bytes));
  out += fmt::format("to    {} ({})\n", shorten_middle(outcome.output_path, most_path_columns),
                     size_text(report.file_bytes));
  out += fmt::format(
      "{}\n\n", wrapped(fmt::format("{} of values in {}{}, ratio {}", size_text(report.raw_bytes),
                                    counted(report.fields.size(), "field"), group_remark(group),
                                    ratio_text(report.raw_bytes, report.encoded_bytes)),
                        2));
  if (!report.fields.empty()) out += field_table(outcome, group) + "\n";
  const std::vector<std::string> remarks = notes(outcome);
  for (const std::string& note : remarks) out += wrapped(note, 2) + "\n";
  if (!remarks.empty()) out += '\n';
  return out + time_lines(outcome);
}

nlohmann::ordered_json summary_json(const RepackOutcome& outcome) {
  const StepReport& report = outcome.report;
  nlohmann::ordered_json document;
  document["input"] = outcome.input_path;
  document["input_format"] = outcome.input_format;
  document["input_bytes"] = outcome.input_bytes;
  document["output"] = outcome.output_path;
  document["file_bytes"] = report.file_bytes;
  document["n_ranks"] = outcome.n_ranks;
  document["n_threads"] = outcome.n_threads;
  document["fsync"] = outcome.options.sync;
  document["memory_cap_bytes"] = outcome.options.memory_bytes;
  document["peak_memory_bytes"] = report.peak_memory_bytes;
  document["raw_bytes"] = report.raw_bytes;
  document["encoded_bytes"] = report.encoded_bytes;
  document["ratio"] =
      number_or_null(report.encoded_bytes > 0, static_cast<double>(report.raw_bytes) /
                                                   static_cast<double>(report.encoded_bytes));
  const bool predicted = report.predicted_bytes > 0;
  document["predicted_bytes"] = number_or_null(predicted, report.predicted_bytes);
  document["predict_s"] = number_or_null(predicted, report.predict_s);
  document["predicted_makespan_s"] = number_or_null(predicted, report.predicted_makespan_s);
  document["reserved_bytes"] = report.reserved_bytes;
  document["n_overflow_chunks"] = report.n_overflow_chunks;
  document["slack_bytes"] = report.slack_bytes;
  document["n_writes"] = report.n_writes;
  document["read_s"] = report.read_s;
  document["choose_s"] = report.choose_s;
  document["profile"] = report.profile;
  document["encode_s"] = report.encode_s;
  document["write_s"] = report.write_s;
  document["wait_s"] = report.wait_s;
  document["makespan_s"] = report.makespan_s;
  document["hidden_share"] = report.hidden_share;
  document["index_s"] = report.index_s;
  document["sync_s"] = report.sync_s;
  document["commit_s"] = report.commit_s;
  document["step_s"] = report.step_s;
  document["total_s"] = outcome.total_s;
  document["remarks"] = outcome.remarks;
  document["fields"] = nlohmann::ordered_json::array();
  for (std::size_t f = 0; f < report.fields.size(); ++f) {
    document["fields"].push_back(field_json(report.fields[f]));
    if (f < outcome.plan.size()) {
      document["fields"].back()["kept_exact_because"] = outcome.plan[f].exact_reason;
    }
  }
  return document;
}

}  // namespace tailrace::cli
