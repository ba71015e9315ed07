// The verdict's table, the offenders' coordinates, the same as JSON.

#include "verify_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "cli_common.hpp"
#include "summary.hpp"
#include "text_table.hpp"

namespace tailrace::cli {
namespace {

/// A table longer than a screen shows its failed fields and only this many of the others.
constexpr std::size_t most_rows = 40;

bool differs(const VerifyFinding& finding) {
  return finding.comparison.largest_error > 0 || !finding.comparison.within_bound();
}

/// Held to more than equality, and to something at all.
bool has_bound(const VerifyTask& task) { return task.bound() > 0 && std::isfinite(task.bound()); }

std::string bound_cell(const VerifyTask& task) {
  if (!task.bound_known) return "none said";
  if (task.psnr_asked() || task.pointwise_bound > 0) return error_bound_text(task.asked);
  if (std::isinf(task.absolute_bound)) return "none";
  return task.absolute_bound > 0 ? fmt::format("{:.4g}", task.absolute_bound) : "exact";
}

std::string share_cell(const VerifyTask& task, const VerifyFinding& finding) {
  if (!has_bound(task)) return "";
  return share_text(finding.comparison.largest_error, task.bound());
}

std::string psnr_cell(const VerifyFinding& finding) {
  if (finding.comparison.n_finite == 0) return "";
  const double psnr = finding.psnr();
  return std::isfinite(psnr) ? fmt::format("{:.1f} dB", psnr) : "exact";
}

void add_row(TextTable& table, const VerifyTask& task, const VerifyFinding& finding,
             std::string_view group) {
  const ChunkComparison& found = finding.comparison;
  table.add_row({std::string(shown_path(task.path, group)), std::string(dtype_name(task.dtype)),
                 shape_text(task.shape), task.codec, bound_cell(task),
                 found.largest_error > 0 ? fmt::format("{:.4g}", found.largest_error) : "0",
                 share_cell(task, finding),
                 fmt::format("{}", found.n_beyond_bound + found.n_special_changed),
                 psnr_cell(finding), ratio_text(task.raw_bytes, task.stored_bytes),
                 kept(task, finding) ? "ok" : "FAILED"});
}

std::string offender_line(const VerifyTask& task, const Offender& offender, bool worst) {
  const double error = offender_error(task.dtype, offender);
  const double share =
      task.pointwise_bound > 0 ? offender_relative_error(task.dtype, offender) : error;
  return fmt::format("    {}  original {}  decoded {}  error {:.4g}{}{}\n",
                     position_text(task.shape, offender.index),
                     value_text(task.dtype, offender.original_bits),
                     value_text(task.dtype, offender.decoded_bits), error,
                     has_bound(task) ? fmt::format(" = {:.4g} x bound", share / task.bound()) : "",
                     worst ? "  (largest)" : "");
}

std::string failure_text(const VerifyTask& task, const VerifyFinding& finding) {
  const ChunkComparison& found = finding.comparison;
  std::string out = fmt::format("FAILED {}:", task.path);
  if (found.n_beyond_bound > 0) {
    out += has_bound(task)
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
  if (task.psnr_asked() && finding.psnr() < task.asked.value) {
    out += fmt::format(" PSNR {:.2f} dB, {} dB asked", finding.psnr(), task.asked.value);
  }
  out += '\n';
  // The worst one may be far behind the first few; then it is shown on its own.
  const bool has_worst = found.n_beyond_bound > 0 && found.worst_index != ChunkComparison::no_index;
  bool worst_shown = false;
  for (std::uint64_t i = 0; i < finding.n_first; ++i) {
    const bool worst = has_worst && finding.first[i].index == finding.worst.index;
    worst_shown = worst_shown || worst;
    out += offender_line(task, finding.first[i], worst && finding.n_first > 1);
  }
  const std::uint64_t n_bad = found.n_beyond_bound + found.n_special_changed;
  if (has_worst && !worst_shown) out += offender_line(task, finding.worst, true);
  if (n_bad > finding.n_first) out += fmt::format("    ... {} in all\n", n_bad);
  if (!task.bound_known) {
    out += "    The file records no error bound; --bound says what may differ.\n";
  }
  return out;
}

nlohmann::ordered_json offender_json(const VerifyTask& task, const Offender& offender) {
  Shape position(task.shape.size());
  std::uint64_t index = offender.index;
  for (std::size_t d = task.shape.size(); d-- > 0;) {
    position[d] = index % task.shape[d];
    index /= task.shape[d];
  }
  return {{"index", position},
          {"original", value_text(task.dtype, offender.original_bits)},
          {"decoded", value_text(task.dtype, offender.decoded_bits)},
          {"error", offender_error(task.dtype, offender)}};
}

nlohmann::ordered_json field_json(const VerifyTask& task, const VerifyFinding& finding) {
  const ChunkComparison& found = finding.comparison;
  const bool pointwise = task.pointwise_bound > 0;
  const bool has_absolute = std::isfinite(task.absolute_bound) && task.bound_known && !pointwise;
  nlohmann::ordered_json entry;
  entry["path"] = task.path;
  entry["dtype"] = std::string(dtype_name(task.dtype));
  entry["shape"] = task.shape;
  entry["codec"] = task.codec;
  entry["bound_mode"] = std::string(bound_mode_name(task.asked.mode));
  entry["bound_asked"] = task.asked.value;
  entry["absolute_bound"] = has_absolute ? nlohmann::ordered_json(task.absolute_bound) : nullptr;
  entry["pointwise_bound"] = pointwise ? nlohmann::ordered_json(task.pointwise_bound) : nullptr;
  entry["max_error"] = found.largest_error;
  entry["max_error_over_bound"] = has_bound(task) && task.bound_known
                                      ? nlohmann::ordered_json(found.largest_error / task.bound())
                                      : nullptr;
  entry["n_values"] = found.n_values;
  entry["n_beyond_bound"] = found.n_beyond_bound;
  entry["n_special_changed"] = found.n_special_changed;
  // JSON has no infinity: an exact field's PSNR is null.
  const double psnr = finding.psnr();
  entry["psnr_db"] = std::isfinite(psnr) ? nlohmann::ordered_json(psnr) : nullptr;
  entry["n_nan"] = finding.range.n_nan;
  entry["n_inf"] = finding.range.n_inf;
  entry["n_fill"] = finding.range.n_fill;
  entry["raw_bytes"] = task.raw_bytes;
  entry["encoded_bytes"] = task.stored_bytes;
  entry["kept"] = kept(task, finding);
  if (found.worst_index != ChunkComparison::no_index) {
    entry["worst"] = offender_json(task, finding.worst);
  }
  entry["offenders"] = nlohmann::ordered_json::array();
  for (std::uint64_t i = 0; i < finding.n_first; ++i) {
    entry["offenders"].push_back(offender_json(task, finding.first[i]));
  }
  return entry;
}

}  // namespace

bool kept(const VerifyTask& task, const VerifyFinding& finding) {
  if (!finding.comparison.within_bound()) return false;
  return !task.psnr_asked() || finding.psnr() >= task.asked.value;
}

std::uint64_t n_failures(const VerifyOutcome& outcome) {
  std::uint64_t n_failed = outcome.problems.size();
  for (std::size_t t = 0; t < outcome.tasks.size(); ++t) {
    if (!kept(outcome.tasks[t], outcome.findings[t])) ++n_failed;
  }
  return n_failed;
}

std::string verify_text(const VerifyOutcome& outcome) {
  std::vector<std::string> paths;
  paths.reserve(outcome.tasks.size());
  for (const VerifyTask& task : outcome.tasks) paths.push_back(task.path);
  const std::string group = common_group(paths);
  TextTable table({{"field", false, 12},
                   {"type"},
                   {"shape", false, 9},
                   {"codec", false, 7},
                   {"bound", true},
                   {"largest\nerror", true},
                   {"error,\nof bound", true},
                   {"values\nbeyond", true},
                   {"PSNR", true},
                   {"ratio", true},
                   {"", false}});
  std::size_t n_left_out = 0;
  std::size_t n_differ = 0;
  std::string failures;
  for (std::size_t t = 0; t < outcome.tasks.size(); ++t) {
    const VerifyTask& task = outcome.tasks[t];
    const VerifyFinding& finding = outcome.findings[t];
    if (differs(finding)) ++n_differ;
    const bool good = kept(task, finding);
    if (good && outcome.tasks.size() > most_rows && t >= most_rows) {
      ++n_left_out;
      continue;
    }
    add_row(table, task, finding, group);
    if (!good) failures += failure_text(task, finding);
  }
  for (const std::string& problem : outcome.problems) failures += "FAILED " + problem + "\n";

  std::string out =
      fmt::format("original    {}\ncompressed  {}\n", shorten_middle(outcome.original_path, 88),
                  shorten_middle(outcome.compressed_path, 88));
  if (!group.empty()) out += fmt::format("all fields in {}\n", group);
  out += '\n';
  if (!table.empty()) out += table.text();
  if (n_left_out > 0) out += fmt::format("and {} more, all ok (see --json)\n", n_left_out);
  out += "\n" + failures;
  const std::uint64_t n_failed = n_failures(outcome);
  if (n_failed > 0) {
    return out + fmt::format("{} of {} failed\n", n_failed,
                             counted(outcome.tasks.size() + outcome.problems.size(), "field"));
  }
  return out + fmt::format("{}: 0 values beyond the bound ({} exactly equal)\n",
                           counted(outcome.tasks.size(), "field"), outcome.tasks.size() - n_differ);
}

nlohmann::ordered_json verify_json(const VerifyOutcome& outcome) {
  nlohmann::ordered_json document;
  document["schema_version"] = json_schema_version;
  document["command"] = "verify";
  document["original"] = outcome.original_path;
  document["compressed"] = outcome.compressed_path;
  document["n_failed"] = n_failures(outcome);
  document["problems"] = outcome.problems;
  document["fields"] = nlohmann::ordered_json::array();
  for (std::size_t t = 0; t < outcome.tasks.size(); ++t) {
    document["fields"].push_back(field_json(outcome.tasks[t], outcome.findings[t]));
  }
  return document;
}

}  // namespace tailrace::cli
