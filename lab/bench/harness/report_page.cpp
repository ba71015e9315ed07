// HTML around the figures: light colours, suitable for print, no script.

#include "report_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cli_common.hpp"
#include "core/utf8.hpp"
#include "core/version.hpp"
#include "report/html_page.hpp"
#include "report_figures.hpp"

namespace tailrace::bench {
namespace {

using report::html_fact;
using report::html_table;

/// Append the drawing, unless the figure has no panels.
Status add_figure(const chart::Figure& figure, std::string& page) {
  if (figure.panels.empty()) return Status();
  Result<std::string> svg = chart::figure_svg(figure);
  if (!svg.ok()) return svg.status();
  page += "<figure>" + *svg + "</figure>\n";
  return Status();
}

std::string facts_text(const Sweep& sweep, const BenchOptions& options, const Workload& work) {
  std::string bandwidths;
  for (const Bandwidth& bandwidth : options.bandwidths) {
    bandwidths += (bandwidths.empty() ? "" : ", ") + bandwidth_text(bandwidth);
  }
  std::string bounds;
  for (const ErrorBound& bound : options.bounds) {
    bounds += (bounds.empty() ? "" : ", ") + error_bound_text(bound);
  }
  const auto n_ranks = sweep.points.front().document["ranks"].get<std::uint64_t>();
  const MachineFacts& machine = sweep.machine;
  std::string out = "<dl>\n";
  out += html_fact("Data", work.source);
  out += html_fact("S, uncompressed bytes of all ranks",
                   fmt::format("{} in {}, checksum {:016x}", cli::size_text(work.raw_bytes),
                               counted(work.fields.size(), "field"), work.checksum));
  out += html_fact("W, what the storage takes", bandwidths + " (no suffix: all ranks together)");
  out += html_fact("R, counted runs of each method",
                   fmt::format("{}, in turn, after a checked warm-up; medians", options.n_repeats));
  out += html_fact("Error bounds", bounds);
  out += html_fact("Ranks", fmt::format("{}, {} each, {} each", n_ranks,
                                        counted(options.n_threads, "encode thread"),
                                        counted(work.chunks_per_rank, "chunk")));
  out += html_fact("fsync", options.fsync ? "inside the time" : "off");
  out +=
      html_fact("Machine", fmt::format("{}, {} cores, {:.0f} GiB, {}; load average {:.1f} before",
                                       machine.processor, machine.n_cores, machine.memory_gib,
                                       machine.kernel, machine.load_average));
  out += html_fact("File system", machine.file_system);
  out +=
      html_fact("Versions", fmt::format("tailrace {}, HDF5 {}, {}, {}", std::string(version_text),
                                        machine.hdf5, machine.mpi, machine.compiler));
  return out + html_fact("Date", machine.date) + "</dl>\n";
}

std::string rows_table(const SweepPoint& point, std::uint64_t raw_bytes) {
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : point.rows) {
    const RunDetails& details = row.details;
    const auto encoded = static_cast<double>(std::max<std::uint64_t>(row.checked.encoded_bytes, 1));
    const bool reserves = details.reserved_bytes > 0;
    cells.push_back(
        {row.method, fmt::format("{:.3f}", row.median_s()),
         fmt::format("{:.0f} %", 100 * (row.max_s() - row.min_s()) / row.median_s()),
         cli::ratio_text(raw_bytes, row.checked.encoded_bytes),
         row.has_lanes ? fmt::format("{:.3f}", details.encode_s) : "",
         row.has_lanes ? fmt::format("{:.3f}", details.write_s) : "",
         row.has_places ? fmt::format("{:.3f}", details.wait_s) : "",
         reserves ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(details.n_overflow_chunks) /
                                                static_cast<double>(details.n_chunks))
                  : "",
         row.has_places
             ? fmt::format("{:.1f} %", 100 * static_cast<double>(details.slack_bytes) / encoded)
             : "",
         row.model_s > 0 ? fmt::format("{:.3f}", row.model_s) : ""});
  }
  return html_table(fmt::format("{}, W {}", error_bound_text(point.setting.bound),
                                bandwidth_text(point.setting.bandwidth)),
                    {"method", "median s", "spread", "ratio", "encode s", "write s", "wait s",
                     "overflow", "overhead", "model s"},
                    cells);
}

Status add_predictions(const Sweep& sweep, const Workload& work, std::string& page) {
  page += "<h2>Predicted against encoded</h2>\n";
  std::vector<std::vector<std::string>> cells;
  for (const PredictionCheck& check : sweep.predictions) {
    cells.push_back({check.codec, error_bound_text(check.bound),
                     std::to_string(check.chunks.size()),
                     fmt::format("{:.1f} %", 100 * check.mean_size_error()),
                     fmt::format("{:.1f} %", 100 * check.size_error_percentile_95()),
                     fmt::format("{:.1f} %", 100 * check.sampling_share())});
  }
  page += html_table(
      "Size of each chunk from a sample of it, before any calibration by earlier steps.",
      {"codec", "bound", "chunks", "mean error", "95th percentile", "sampling / encode time"},
      cells);
  for (const PredictionCheck& check : sweep.predictions) {
    TAILRACE_TRY(add_figure(prediction_figure(check, work), page));
  }
  page +=
      "<p class=\"note\">Times: eq. 1 of Jin et al. 2022 with the profile's curve. Without "
      "--profile the curve is a typical machine's, not this one's.</p>\n";
  return Status();
}

Status add_space(const Sweep& sweep, std::string& page) {
  page += "<h2>Space kept for chunks that are not encoded yet</h2>\n";
  for (std::size_t b = 0; b < sweep.space.size(); ++b) {
    std::vector<std::vector<std::string>> cells;
    for (const SpaceRow& row : sweep.space[b]) {
      cells.push_back(
          {row.layout, row.space_ratio > 0 ? fmt::format("{:.2f}", row.space_ratio) : "",
           fmt::format("{:.2f} %", 100 * row.overflow_share),
           fmt::format("{:.2f} %", 100 * row.overhead_share), fmt::format("{:.3f}", row.seconds)});
    }
    page += html_table(
        fmt::format("{}, one write each, storage not limited",
                    error_bound_text(sweep.predictions[b].bound)),
        {"layout", "reserved / predicted", "chunks that overflow", "storage overhead", "s"}, cells);
    TAILRACE_TRY(add_figure(space_figure(sweep.space[b]), page));
  }
  page +=
      "<p class=\"note\">Overhead: what the data's part of the file holds besides encoded bytes, "
      "over those.</p>\n";
  return Status();
}

}  // namespace

Status can_draw() { return chart::figure_svg(chart::Figure{}).status(); }

Result<std::string> report_page(const Sweep& sweep, const BenchOptions& options,
                                const Workload& work) {
  std::string page = report::html_head("tailrace-lab bench");
  page += facts_text(sweep, options, work);
  page += "<h2>Time by method</h2>\n";
  for (std::size_t first = 0; first < sweep.points.size();) {
    std::size_t last = first;
    std::size_t n_limited = 0;
    while (last < sweep.points.size() &&
           sweep.points[last].setting.bound == sweep.points[first].setting.bound) {
      if (sweep.points[last].bandwidth_bytes_per_s > 0) ++n_limited;
      ++last;
    }
    const std::span<const SweepPoint> points(sweep.points.data() + first, last - first);
    if (n_limited > 1) TAILRACE_TRY(add_figure(bandwidth_figure(points), page));
    TAILRACE_TRY(add_figure(bars_figure(points), page));
    for (const SweepPoint& point : points) page += rows_table(point, work.raw_bytes);
    first = last;
  }
  page +=
      "<p class=\"note\">Slowest rank, from create to close. Exposed write: what the encode lane "
      "does not hide. Other: agreement, index, commit, sync. Methods that tell nothing of their "
      "lanes are one bar. Spread: (largest - smallest) / median; a gain below it is none.</p>\n";
  TAILRACE_TRY(add_figure(step_figure(sweep.points), page));
  TAILRACE_TRY(add_predictions(sweep, work, page));
  TAILRACE_TRY(add_space(sweep, page));
  return page +
         "<footer>Made by tailrace-lab bench --report; the numbers are also in --json.</footer>\n" +
         "</body></html>\n";
}

}  // namespace tailrace::bench
