// The table of fields, the coordinates of offending values and the verdict.

#include "verify_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "number_text.hpp"
#include "text_table.hpp"
#include "trz/base/printable.hpp"

namespace tailrace::report {
namespace {

using verbs::Offender;
using verbs::VerifiedField;
using verbs::VerifyFinding;
using verbs::VerifyReport;
using verbs::VerifyTask;

/// Fields in a long table: the first ones up to this number; beyond it, only failed fields.
constexpr std::size_t kMostRows = 40;

/// Sentences about the failing differences of one aspect.
constexpr std::size_t kMostProblems = 5;
/// Names in a sentence about differences that do not fail.
constexpr std::size_t kMostNames = 4;

/// Differences that do not fail, one line per aspect, and the aspects that the user excluded.
std::string listed_text(const VerifyReport& report) {
  std::string text;
  std::string ignored;
  for (const std::string& glob : report.ignore) ignored += " --ignore " + glob;
  for (const std::string& glob : report.ignore_attributes) ignored += " --ignore-attribute " + glob;
  if (report.structure) {
    std::map<std::string, std::vector<std::string>> names;
    for (const StructureDifference& difference : report.structure->differences) {
      if (!difference.fails) names[difference.aspect].push_back(difference.path);
    }
    for (const auto& [aspect, paths] : names) {
      const std::uint64_t n = report.structure->counts.at(aspect).n_listed;
      std::string list;
      for (std::size_t i = 0; i < std::min(paths.size(), kMostNames); ++i) {
        list += (i > 0 ? ", " : "") + paths[i];
      }
      if (n > kMostNames) list += fmt::format(" and {} more", n - kMostNames);
      text += wrapped(fmt::format("differs, not a failure: {} of {}", aspect, list), 2) + "\n";
    }
    if (!ignored.empty()) {
      ignored += fmt::format(" ({}, {})", counted(report.structure->n_ignored_objects, "object"),
                             counted(report.structure->n_ignored_attributes, "attribute"));
    }
  }
  if (!ignored.empty()) text += wrapped("ignored:" + ignored, 2) + "\n";
  return text;
}

/// Counts of compared fields and other items, and the verdict.
std::string verdict_of(const VerifyReport& report, std::size_t n_differ) {
  const std::size_t n_fields = report.fields.size();
  const std::uint64_t n_failed = report.n_failed();
  std::string others =
      report.structure
          ? fmt::format("{} and {} compared", counted(report.structure->n_objects, "object"),
                        counted(report.structure->n_attributes, "attribute"))
          : "only values compared";
  if (n_failed > 0) {
    const auto n_broken = static_cast<std::uint64_t>(std::ranges::count_if(
        report.fields, [](const VerifiedField& field) { return !field.kept(); }));
    std::string text = fmt::format("{} of {} failed", n_broken, counted(n_fields, "field"));
    if (n_failed > n_broken) text += "; " + counted(n_failed - n_broken, "other difference");
    return text + " (" + others + ")";
  }
  const std::uint64_t n_doubtful = report.n_doubtful();
  const std::string of_fields =
      n_fields == 0 ? "no fields"
                    : fmt::format("{}: 0 values beyond the bound ({} exactly equal{})",
                                  counted(n_fields, "field"), n_fields - n_differ,
                                  n_doubtful > 0 ? fmt::format(", {} DOUBTFUL", n_doubtful) : "");
  return report.structure ? of_fields + "; " + others + ", nothing missing"
                          : of_fields + "; " + others;
}

bool differs(const VerifyFinding& finding) {
  return finding.comparison.largest_error > 0 || !finding.comparison.within_bound();
}

std::string psnr_cell(const VerifyFinding& finding) {
  if (finding.comparison.n_finite == 0) return "";
  const double psnr = finding.psnr();
  return std::isfinite(psnr) ? fmt::format("{:.1f} dB", psnr) : "exact";
}

void add_row(TextTable& table, const VerifiedField& field, std::string_view group) {
  const VerifyTask& task = field.task;
  const VerifyFinding& finding = field.finding;
  const ChunkComparison& found = finding.comparison;
  table.add_row({std::string(shown_path(task.path, group)), std::string(dtype_name(task.dtype)),
                 shape_text(task.shape), task.codec, verify_bound_text(task),
                 found.largest_error > 0 ? fmt::format("{:.4g}", found.largest_error) : "0",
                 verify_share_text(field),
                 fmt::format("{}", found.n_beyond_bound + found.n_special_changed),
                 psnr_cell(finding), ratio_text(task.raw_bytes, task.stored_bytes),
                 !field.kept()          ? "FAILED"
                 : field.width().fine() ? "ok"
                                        : "DOUBTFUL"});
}

std::string offender_line(const VerifiedField& field, const Offender& offender, bool worst) {
  const VerifyTask& task = field.task;
  const double error = verbs::offender_error(task.dtype, offender);
  const double share =
      task.pointwise_bound > 0 ? verbs::offender_relative_error(task.dtype, offender) : error;
  // NaN: a side is not a number, so the values have no distance.
  std::string error_text = std::isnan(error) ? "" : fmt::format("  error {:.4g}", error);
  if (field.has_bound() && !std::isnan(share)) {
    error_text += fmt::format(" = {:.4g} x bound", share / task.bound());
  }
  const std::string line = fmt::format(
      "{}  original {}  decoded {}{}{}",
      position_text(verbs::position_of(task.shape, offender.index)),
      verbs::value_text(task.dtype, offender.original_bits),
      verbs::value_text(task.dtype, offender.decoded_bits), error_text, worst ? "  (largest)" : "");
  return "    " + wrapped(line, 8, 4) + "\n";
}

std::string failure_text(const VerifiedField& field) {
  const VerifyTask& task = field.task;
  const VerifyFinding& finding = field.finding;
  const ChunkComparison& found = finding.comparison;
  std::string out = fmt::format("FAILED {}:", task.path);
  if (found.n_beyond_bound > 0) {
    out += field.has_bound()
               ? fmt::format(" {} of {} beyond the bound {:.6g}{}", found.n_beyond_bound,
                             counted(found.n_values, "value"), task.bound(),
                             task.pointwise_bound > 0 ? " of each value" : "")
               : fmt::format(" {} of {} changed, exact values expected", found.n_beyond_bound,
                             counted(found.n_values, "value"));
  }
  if (found.n_special_changed > 0) {
    out += fmt::format("{} {} (NaN, infinite or fill) changed", found.n_beyond_bound > 0 ? "," : "",
                       counted(found.n_special_changed, "special value"));
  }
  if (task.psnr_requested() && finding.psnr() < task.requested.value) {
    out += fmt::format(" PSNR {:.2f} dB, at least {} dB expected", finding.psnr(),
                       task.requested.value);
  }
  if (field.n_guards_broken() > 0) {
    const bool before = found.n_beyond_bound + found.n_special_changed > 0;
    out += fmt::format("{} {}{} or extremes break guard={}", before ? "," : "",
                       counted(field.n_guards_broken(), "value"), task.guards.sum ? ", sums" : "",
                       guards_text(task.guards));
  }
  out = wrapped(out, 4) + "\n";
  if (finding.n_guards_broken > 0) out += offender_line(field, finding.guard_first, false);
  // The worst value may lie far behind the first few; it then gets a line of its own.
  const bool has_worst = found.n_beyond_bound > 0 && found.worst_index != ChunkComparison::kNoIndex;
  bool worst_shown = false;
  for (std::uint64_t i = 0; i < finding.n_first; ++i) {
    const bool worst = has_worst && finding.first[i].index == finding.worst.index;
    worst_shown = worst_shown || worst;
    out += offender_line(field, finding.first[i], worst && finding.n_first > 1);
  }
  const std::uint64_t n_bad = found.n_beyond_bound + found.n_special_changed;
  if (has_worst && !worst_shown) out += offender_line(field, finding.worst, true);
  if (n_bad > finding.n_first) out += fmt::format("    ... {} in all\n", n_bad);
  if (!task.bound_known) {
    const std::string why = task.losses.empty()
                                ? "The file records no error bound"
                                : fmt::format(
                                      "The file records losses ({}) that state no bound "
                                      "against this original",
                                      task.losses);
    out += "    " + wrapped(why + "; set one by --bound.", 4, 4);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string verify_bound_text(const VerifyTask& task) {
  if (!task.bound_known) return "not recorded";
  if (task.psnr_requested() || task.pointwise_bound > 0) return error_bound_text(task.requested);
  if (std::isinf(task.absolute_bound)) return "none";
  return task.absolute_bound > 0 ? fmt::format("{:.4g}", task.absolute_bound) : "exact";
}

std::string verify_share_text(const VerifiedField& field) {
  if (!field.has_bound()) return "";
  return share_text(field.finding.comparison.largest_error, field.task.bound());
}

std::string verify_text(const VerifyReport& report) {
  std::vector<std::string> paths;
  paths.reserve(report.fields.size());
  for (const VerifiedField& field : report.fields) paths.push_back(field.task.path);
  const std::string group = common_group(paths);
  TextTable table(
      "field/20|type?1|shape?2|codec/12?3|>bound|>largest\nerror|>error,\nof "
      "bound|>values\nbeyond|>PSNR?5|>ratio?4|");
  std::size_t n_left_out = 0;
  std::size_t n_differ = 0;
  std::string failures;
  for (std::size_t f = 0; f < report.fields.size(); ++f) {
    const VerifiedField& field = report.fields[f];
    if (differs(field.finding)) ++n_differ;
    const bool good = field.kept();
    if (good && field.width().fine() && report.fields.size() > kMostRows && f >= kMostRows) {
      ++n_left_out;
      continue;
    }
    add_row(table, field, group);
    if (!good) failures += failure_text(field);
  }
  for (const std::string& problem : report.all_problems(kMostProblems)) {
    failures += wrapped("FAILED " + problem, 4) + "\n";
  }

  std::string out =
      fmt::format("original    {}\ncompressed  {}\n", fitted(report.original_path, 12),
                  fitted(report.compressed_path, 12));
  if (!group.empty()) out += fmt::format("all fields in {}\n", printable(group));
  out += '\n';
  if (!table.empty()) out += table.text();
  if (n_left_out > 0) out += fmt::format("and {} more, all ok (see --json)\n", n_left_out);
  out += "\n" + failures;
  for (const VerifiedField& field : report.fields) {
    if (!field.task.quantization) continue;
    out += wrapped(fmt::format("{} was rounded: {}", shown_path(field.task.path, group),
                               field.task.quantization->text()),
                   2) +
           "\n";
  }
  for (const VerifiedField& field : report.fields) {
    if (field.finding.n_covered == 0) continue;
    out += wrapped(fmt::format("{}: {} under boxes of the next finer level are not stored and "
                               "not compared",
                               shown_path(field.task.path, group),
                               counted(field.finding.n_covered, "value")),
                   2) +
           "\n";
  }
  for (const std::string& doubt : report.doubts) out += wrapped(doubt, 2) + "\n";
  out += listed_text(report);
  out += wrapped(verdict_of(report, n_differ), 2) + "\n";
  if (report.n_failed() == 0 || !report.values_kept()) return out;
  const std::string_view kept =
      "all values are within their bounds; --values-only (Python: values_only=True) compares "
      "nothing else";
  return out + wrapped(kept, 2) + "\n";
}

}  // namespace tailrace::report
