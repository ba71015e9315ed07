// The summary: table of fields, notes in plain English, breakdown of the time.

#include "commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/codec_registry.hpp"
#include "core/utf8.hpp"
#include "policy/bound_width.hpp"

namespace tailrace::cli {

namespace {

/// A summary of more fields than this exceeds one screen, so it shows only the largest.
constexpr std::size_t kMostFieldsShown = 30;
constexpr std::size_t kFieldsShownOfMany = 25;
/// Fields named in one line.
constexpr std::size_t kMostNamed = 4;

/// Fields to show: the largest first if they are too many, otherwise in file order.
std::vector<std::size_t> shown_fields(const std::vector<FieldReport>& fields) {
  std::vector<std::size_t> order(fields.size());
  std::iota(order.begin(), order.end(), 0);
  if (fields.size() <= kMostFieldsShown) return order;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return fields[a].raw_bytes > fields[b].raw_bytes;
  });
  order.resize(kFieldsShownOfMany);
  return order;
}

/// True if the field has a finite bound. False if exact, or lossy without a bound (zfp,rate=8).
bool bounded(const FieldReport& field) {
  return field.bound_of_error() > 0 && std::isfinite(field.bound_of_error());
}

/// True for components of a plotfile's level, each with its own bound; absolute_bound is the
/// largest.
bool by_component(const FieldReport& field) { return field.bound.lossless() && bounded(field); }

std::string error_cell(const FieldReport& field) {
  if (!field.verified || field.raw_bytes == 0 || std::isinf(field.absolute_bound)) return "";
  if (bounded(field)) return share_text(field.max_error, field.bound_of_error());
  return field.max_error == 0 ? "0" : fmt::format("{:.3g}", field.max_error);
}

/// The codec, with the chosen settings if the codec was chosen from candidates.
std::string codec_shown(const FieldReport& field) {
  return field.candidates.empty() ? field.codec : field.candidates[field.chosen_candidate].codec;
}

/// The dtype, or the first word of another type: "compound".
std::string type_cell(const FieldReport& field) {
  const std::string_view text = field.type_text();
  return std::string(text.substr(0, text.find(' ')));
}

void add_field_row(TextTable& table, const FieldReport& field, std::string_view group) {
  const bool unbounded = std::isinf(field.absolute_bound);
  const bool marked = field.n_raw_chunks > 0;
  const bool copied = field.codec == kStoredCodecName;
  table.add_row({std::string(shown_path(field.path, group)), type_cell(field),
                 shape_text(field.shape), codec_shown(field) + (marked ? "*" : ""),
                 copied                ? ""
                 : unbounded           ? "none"
                 : by_component(field) ? "component"
                                       : bound_column_text(field.bound),
                 bounded(field) && field.absolute_bound > 0
                     ? fmt::format("{:.3g}", field.absolute_bound)
                     : "",
                 error_cell(field), ratio_text(field.raw_bytes, field.encoded_bytes),
                 size_text(field.encoded_bytes),
                 copied || codec_entry(field.codec).stores_plainly
                     ? ""
                     : throughput_text(field.raw_bytes, field.encode_s)});
}

std::string group_of_all(const std::vector<FieldReport>& fields) {
  std::vector<std::string> paths;
  paths.reserve(fields.size());
  for (const FieldReport& field : fields) paths.push_back(field.path);
  return common_group(paths);
}

std::string field_table(const verbs::RepackReport& outcome, const std::string& group) {
  const std::vector<FieldReport>& fields = outcome.step.fields;
  TextTable table(
      "field/20|type?1|shape?2|codec/16|bound|>absolute\nbound?3|>error,\nof "
      "bound|>ratio|>encoded|>encode\nMB/s");
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

/// Filters that a reader needs for codecs that Tailrace chose; "" if none.
std::string reader_note(const StepReport& report) {
  std::vector<std::string_view> needed;  // codecs of ours first
  for (const FieldReport& field : report.fields) {
    const CodecEntry& codec = codec_entry(field.codec);
    if (field.candidates.empty() || codec.readers_need.empty()) continue;
    if (std::find(needed.begin(), needed.end(), codec.readers_need) != needed.end()) continue;
    needed.insert(codec.plugin ? needed.end() : needed.begin(), codec.readers_need);
  }
  if (needed.empty()) return "";
  return fmt::format("readers need the filter of {}; files of --codec portable need none",
                     fmt::join(needed, ", "));
}

/// Append lines that compare the resulting size or PSNR with the --target.
void add_target_notes(const verbs::RepackReport& outcome, std::vector<std::string>& lines) {
  const std::uint64_t target = outcome.options.target_bytes;
  const std::uint64_t came = outcome.step.encoded_bytes;
  if (target > 0) {
    lines.push_back(
        fmt::format("target size {}: output has {}, {:+.1f} %", size_text(target), size_text(came),
                    100 * (static_cast<double>(came) / static_cast<double>(target) - 1)));
  }
  std::vector<std::string> fields;
  for (const FieldReport& field : outcome.step.fields) {
    if (field.expected_psnr_db <= 0) continue;
    fields.push_back(fmt::format("{} {:.1f}", field.path.substr(field.path.rfind('/') + 1),
                                 field.expected_psnr_db));
  }
  if (fields.empty()) return;
  lines.push_back(
      fmt::format("target PSNR {:g} dB; expected from a sample: {} "
                  "(tailrace verify measures it)",
                  outcome.options.target_psnr_db, fmt::join(fields, ", ")));
}

/// Total bound of a field against the originals of its lossy input.
std::string total_text(Losses losses, const FieldReport& field) {
  const bool pointwise = field.pointwise_bound > 0;
  losses.push_back(pointwise ? ErrorBound{BoundMode::pw_rel, field.pointwise_bound}
                             : ErrorBound{BoundMode::abs, field.absolute_bound});
  const std::optional<ErrorBound> total = total_of(losses);
  if (!total) return "without a bound on the total";
  return fmt::format("to {}={:.6g}", bound_mode_name(total->mode), total->value);
}

/// "exact: 12 datasets: 3 geometry (/x, /y, /z), 9 integers (/a, /b and 7 more)".
std::string exact_text(const std::map<std::string, std::vector<std::string>>& by_reason) {
  std::size_t n = 0;
  std::vector<std::string> parts;
  bool by_role = false;
  for (const auto& [reason, names] : by_reason) {
    n += names.size();
    parts.push_back(
        fmt::format("{} {} ({})", names.size(), reason, first_names_text(names, kMostNamed)));
    by_role = by_role || !(reason == "integers" || reason == "small" || reason == "as asked");
  }
  const std::string text =
      fmt::format("exact: {}: {}", counted(n, "dataset"), fmt::join(parts, ", "));
  return by_role ? text + "; --field 'PATH:bound=...' or --roles off overrides" : text;
}

std::vector<std::string> notes(const verbs::RepackReport& outcome) {
  std::vector<std::string> lines;
  std::vector<std::string> lossy;
  std::map<std::string, std::vector<std::string>> kept_exact;
  std::map<std::string, std::vector<std::string>> no_numbers;
  std::vector<std::string> limited;
  std::vector<std::string> constant;
  std::map<std::string, std::vector<std::string>> again;
  for (std::size_t f = 0; f < outcome.step.fields.size(); ++f) {
    const FieldReport& field = outcome.step.fields[f];
    if (field.n_raw_chunks > 0) {
      lines.push_back(
          fmt::format("* {}: {}", field.path,
                      raw_chunks_text(field.n_raw_chunks, field.n_chunks, field.codec)));
    }
    // A codec without loss ignores the bound, which the step's remarks tell.
    if (codec_entry(field.codec).loss != Loss::never && field.bound.needs_range() &&
        field.absolute_bound == 0 && field.raw_bytes > 0) {
      constant.push_back(field.path);
    }
    if (f >= outcome.plan.size()) continue;
    const verbs::PlannedField& planned = outcome.plan[f];
    if (!planned.exact_reason.empty()) {
      auto& by_reason = planned.definition.holds_bytes() ? no_numbers : kept_exact;
      by_reason[planned.exact_reason].push_back(field.path);
    }
    if (verbs::may_lose(planned, outcome.options)) lossy.push_back(field.path);
    if (planned.keeps_limits) limited.push_back(field.path);
    if (planned.losses.any() && field.bound_of_error() > 0) {
      again[total_text(planned.losses.losses, field)].push_back(field.path);
    }
  }
  add_target_notes(outcome, lines);
  if (const std::string needed = reader_note(outcome.step); !needed.empty()) {
    lines.push_back(needed);
  }
  if (!kept_exact.empty()) {
    if (!lossy.empty()) {
      lines.push_back(fmt::format("with loss: {}: {}", counted(lossy.size(), "dataset"),
                                  first_names_text(lossy, kMostNamed)));
    }
    lines.push_back(exact_text(kept_exact));
  }
  if (!no_numbers.empty()) {
    std::vector<std::string> kinds;
    kinds.reserve(no_numbers.size());
    for (const auto& [kind, names] : no_numbers) {
      kinds.push_back(fmt::format("{} ({})", kind, first_names_text(names, kMostNamed)));
    }
    lines.push_back(fmt::format("bound not applied: {}", fmt::join(kinds, ", ")));
  }
  if (!limited.empty()) {
    lines.push_back(fmt::format(
        "guarded, so that no value crosses limits that the file or its format states: {}",
        first_names_text(limited, kMostNamed)));
  }
  if (!outcome.others.empty()) {
    lines.push_back("not fields, copied as stored: " + verbs::other_datasets_text(outcome.others));
  }
  if (!constant.empty()) {
    lines.push_back(fmt::format("kept exactly (all values equal, so the bound is 0): {}",
                                first_names_text(constant, kMostNamed)));
  }
  for (const auto& [total, names] : again) {
    lines.push_back(fmt::format("already lossy in the input, so the errors add up, {}: {}", total,
                                first_names_text(names, kMostNamed)));
  }
  return lines;
}

std::string hidden_text(const StepReport& report) {
  if (report.write_s <= 0 || report.encode_s <= 0) return "";
  const bool write_is_shorter = report.write_s <= report.encode_s;
  return fmt::format("{} hidden behind {}: {:.0f} %", write_is_shorter ? "write" : "encode",
                     write_is_shorter ? "encode" : "write", 100 * report.hidden_share);
}

/// Relative error of a prediction: "3.1% too much", "0.4% too little", "right".
std::string deviation_text(double predicted, double came) {
  const double deviation = came > 0 ? predicted / came - 1 : 0;
  if (std::fabs(deviation) < 5e-4) return "right";
  return fmt::format("{:.1f}% too {}", 100 * std::fabs(deviation),
                     deviation > 0 ? "much" : "little");
}

/// Predicted size and its error: over all fields, and the mean over chunks.
std::string prediction_text(const StepReport& report) {
  double sum_of_errors = 0;
  double n_chunks = 0;
  for (const FieldReport& field : report.fields) {
    sum_of_errors += field.mean_size_error * static_cast<double>(field.n_chunks);
    n_chunks += static_cast<double>(field.n_chunks);
  }
  return fmt::format("{} expected, {}; a chunk is {:.1f}% off on average",
                     size_text(report.predicted_bytes),
                     deviation_text(static_cast<double>(report.predicted_bytes),
                                    static_cast<double>(report.encoded_bytes)),
                     n_chunks > 0 ? 100 * sum_of_errors / n_chunks : 0);
}

/// True if codecs or bounds were chosen from a sample.
bool chose(const verbs::RepackReport& outcome) {
  const bool aimed = outcome.options.has_target();
  return aimed || std::any_of(outcome.step.fields.begin(), outcome.step.fields.end(),
                              [](const FieldReport& field) { return !field.candidates.empty(); });
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Bytes reserved before sizes were known, and the share of chunks that overflowed.
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

/// Overlap of encoding and writing, and the planned makespan.
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

std::string time_lines(const verbs::RepackReport& outcome) {
  const StepReport& report = outcome.step;
  TextTable table("|>|>|/20");
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
  // Drop the line of headings, which are empty.
  const std::string text = table.text();
  return text.substr(text.find('\n') + 1);
}

}  // namespace

std::string summary_text(const verbs::RepackReport& outcome) {
  const StepReport& report = outcome.step;
  const std::string group = group_of_all(report.fields);
  const std::string input =
      fmt::format(" ({}, {})", outcome.input_format, size_text(outcome.input_bytes));
  std::string out =
      fmt::format("from  {}{}\n", fitted(outcome.input_path, 6 + input.size()), input);
  const std::string output = fmt::format(" ({})", size_text(report.file_bytes));
  out += fmt::format("to    {}{}\n", fitted(outcome.output_path, 6 + output.size()), output);
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

// --- --why
// ----------------------------------------------------------------------------------------

namespace {

/// Three digits in milliseconds: most operations on a field take only a few.
std::string ms_cell(double seconds) {
  const double ms = 1e3 * seconds;
  return ms >= 100 ? fmt::format("{:.0f}", ms) : fmt::format("{:.3g}", ms);
}

std::string bytes_cell(double n_bytes) { return size_text(static_cast<std::uint64_t>(n_bytes)); }

/// Candidates, best first, by size or time as the objective asks; refused ones last.
std::vector<std::size_t> ranked(const FieldReport& field, Objective objective) {
  std::vector<std::size_t> order(field.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::size_t c) {
    const CandidateForecast& one = field.candidates[c];
    return std::make_pair(!one.refused.empty(),
                          objective == Objective::size ? one.encoded_bytes : one.alone_s);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

void add_candidate(TextTable& table, const FieldReport& field, std::size_t candidate,
                   const std::string& path) {
  const CandidateForecast& one = field.candidates[candidate];
  const bool usable = one.refused.empty();
  const bool taken = candidate == field.chosen_candidate;
  const bool measured = one.measured_bytes > 0;
  // The measured time is spread over as many threads as the forecast.
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

/// One line for each reason that excluded candidates, with the codecs and their numbers of fields.
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
    case Objective::speed: return "the shortest run time, within 3 %";
    case Objective::size: return "the smallest file";
    case Objective::balanced:
      return "the smallest file with a run time at most a tenth longer than the shortest";
  }
  return "";
}

}  // namespace

std::string why_text(const verbs::RepackReport& outcome) {
  const StepReport& report = outcome.step;
  TextTable table(
      "field/14|candidate/16|>ratio?1|>encoded|>encoded,\nmeasured|>encode\nms|>encode,\nmeasured|>"
      "write\nms?2|>alone\nms");
  std::vector<std::string> paths;
  for (const FieldReport& field : report.fields) {
    if (!field.candidates.empty()) paths.push_back(field.path);
  }
  if (paths.empty()) return "why: no codec was chosen, since every field names its codec\n";
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
  const std::string typical = outcome.step.profile.starts_with("typical values")
                                  ? " ('tailrace profile' measures this machine)"
                                  : "";
  return wrapped(fmt::format("why: for {}, times by the machine profile of {}{}; {} x {}{}",
                             objective_text(outcome.options.objective), report.profile, typical,
                             counted(static_cast<std::uint64_t>(outcome.n_ranks), "rank"),
                             counted(outcome.n_threads, "thread"), group_remark(group)),
                 2) +
         "\n\n" + table.text() + "\n" + left_out_text(report.fields) +
         wrapped(
             "alone: time of a step that has only this field, with encoding and writing "
             "overlapped. "
             "The choice (>) is for the complete step, in which writes of one field overlap with "
             "the encoding of others.",
             2) +
         "\n";
}

}  // namespace tailrace::cli
