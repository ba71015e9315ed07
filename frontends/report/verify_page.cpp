// A table of all variables; then facts and spectra (figure and table) of each variable.

#include "verify_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chart/chart.hpp"
#include "core/version.hpp"
#include "html_page.hpp"
#include "number_text.hpp"
#include "verify_text.hpp"

namespace tailrace::report {
namespace {

using verbs::Fidelity;
using verbs::PlacedSimilarity;
using verbs::Similarity;
using verbs::Spectrum;
using verbs::VerifiedField;
using verbs::VerifyReport;

/// Most rows of a spectrum's table; if the spectrum has more bands, the table skips some.
constexpr std::size_t kMostSpectrumRows = 12;

std::string number_cell(const std::optional<double>& value, int n_digits = 3) {
  return value ? fmt::format("{:.{}g}", *value, n_digits) : "";
}

std::string least_cell(const std::optional<Similarity>& found) {
  return found ? fmt::format("{:.6f}", found->least) : "";
}

/// Power of the decoded values divided by that of the originals.
std::vector<double> ratios_of(const Spectrum& spectrum) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < spectrum.frequency.size(); ++i) {
    ratios.push_back(spectrum.decoded[i] / spectrum.original[i]);
  }
  return ratios;
}

/// The ratio farthest from 1; nothing if the spectrum has no ratio.
std::optional<double> farthest_ratio(const Spectrum& spectrum) {
  std::optional<double> farthest;
  for (const double ratio : ratios_of(spectrum)) {
    if (!std::isfinite(ratio)) continue;
    if (!farthest || std::fabs(ratio - 1) > std::fabs(*farthest - 1)) farthest = ratio;
  }
  return farthest;
}

std::string errors_table(const VerifyReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const VerifiedField& field : report.fields) {
    const Fidelity& fidelity = *field.fidelity;
    rows.push_back({field.task.path, verify_bound_text(field.task),
                    number_cell(field.finding.comparison.largest_error, 4),
                    verify_share_text(field),
                    !field.kept()          ? "BROKEN"
                    : field.width().fine() ? "kept"
                                           : "DOUBTFUL",
                    number_cell(fidelity.mean_bias), number_cell(fidelity.root_mean_square_error)});
  }
  return html_table(
      "Errors are decoded minus original, in the variable's unit.",
      {"variable", "bound", "largest error", "of bound", "promise", "mean bias", "RMS error"},
      rows);
}

std::string likeness_table(const VerifyReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const VerifiedField& field : report.fields) {
    const Fidelity& fidelity = *field.fidelity;
    rows.push_back(
        {field.task.path, number_cell(fidelity.correlation, 10), number_cell(fidelity.ks_statistic),
         fidelity.ks_statistic ? number_cell(fidelity.ks_p_value) : "", least_cell(fidelity.ssim),
         least_cell(fidelity.data_ssim), number_cell(farthest_ratio(fidelity.spectrum), 5)});
  }
  return html_table("Similarity of both files: 1 where nothing differs, and 0 for KS.",
                    {"variable", "correlation", "KS", "its p", "least SSIM", "least data SSIM",
                     "power ratio farthest from 1"},
                    rows);
}

std::string similarity_text(const std::optional<Similarity>& found, const Shape& grid) {
  if (!found) return "not measured";
  Shape place = verbs::position_of(grid, found->least_map);
  std::string text = fmt::format("mean {:.8f}, least {:.8f}", found->mean, found->least);
  if (!grid.empty()) text += fmt::format(" in map {}", position_text(place));
  return text + fmt::format(", of {}", counted(found->n_maps, "map"));
}

std::string worst_text(const VerifiedField& field) {
  if (field.finding.comparison.worst_index == ChunkComparison::kNoIndex) return "none";
  const verbs::Offender& worst = field.finding.worst;
  const DType dtype = field.task.dtype;
  const double error = verbs::offender_error(dtype, worst);
  return fmt::format("{} at {}: original {}, decoded {}",
                     std::isnan(error) ? "not a number" : fmt::format("{:.6g}", error),
                     position_text(verbs::position_of(field.task.shape, worst.index)),
                     verbs::value_text(dtype, worst.original_bits),
                     verbs::value_text(dtype, worst.decoded_bits));
}

std::string facts_of(const VerifiedField& field) {
  const Fidelity& fidelity = *field.fidelity;
  const auto& range = field.finding.range;
  const auto& found = field.finding.comparison;
  std::string out = "<dl>\n";
  out += html_fact("Type and shape", fmt::format("{}, {}", dtype_name(field.task.dtype),
                                                 shape_text(field.task.shape)));
  out += html_fact("Codec", fmt::format("{}, {} times smaller", field.task.codec,
                                        ratio_text(field.task.raw_bytes, field.task.stored_bytes)));
  out += html_fact("Bound", fmt::format("{}; {} beyond it", verify_bound_text(field.task),
                                        counted(found.n_beyond_bound, "value")));
  if (field.task.quantization) {
    out += html_fact("Rounded before", field.task.quantization->text());
  }
  out += html_fact("Values", fmt::format("{} compared; {} NaN, {} infinite, {} fill, {} of these "
                                         "changed",
                                         fidelity.n_values, range.n_nan, range.n_inf, range.n_fill,
                                         found.n_special_changed));
  if (!range.empty()) {
    out += html_fact("Range", fmt::format("{:.6g} to {:.6g}", range.least, range.greatest));
  }
  out += html_fact("Largest error", worst_text(field));
  if (fidelity.ks_statistic) {
    out += html_fact("Distribution (KS)",
                     fmt::format("{:.3g}, p {:.3g}", *fidelity.ks_statistic, fidelity.ks_p_value));
  }
  if (fidelity.map_shape.size() == 2) {
    out += html_fact("Maps",
                     fmt::format("{} along dimensions {} and {}", shape_text(fidelity.map_shape),
                                 fidelity.map_axes[0], fidelity.map_axes[1]));
    out += html_fact("SSIM", similarity_text(fidelity.ssim, fidelity.map_grid));
    out += html_fact("Data SSIM", similarity_text(fidelity.data_ssim, fidelity.map_grid));
  }
  for (const std::string& remark : fidelity.left_out) out += html_fact("Not measured", remark);
  return out + "</dl>\n";
}

std::string spectrum_table(const Spectrum& spectrum) {
  const std::vector<double> ratios = ratios_of(spectrum);
  const std::size_t step = (ratios.size() + kMostSpectrumRows - 1) / kMostSpectrumRows;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = step - 1; i < ratios.size(); i += step) {
    rows.push_back({fmt::format("{:.4f}", spectrum.frequency[i]),
                    fmt::format("{:.1f}", 1 / spectrum.frequency[i]),
                    fmt::format("{:.4g}", spectrum.original[i]),
                    fmt::format("{:.4g}", spectrum.decoded[i]),
                    std::isfinite(ratios[i]) ? fmt::format("{:.6f}", ratios[i]) : ""});
  }
  return html_table("Power by spatial frequency, in cycles per grid step",
                    {"frequency", "wavelength (grid steps)", "original", "decoded", "ratio"}, rows);
}

std::string spectrum_figure(const Spectrum& spectrum) {
  chart::Figure figure;
  chart::Panel power;
  power.title = "Power";
  power.x.label = "cycles per grid step";
  power.y.label = "power";
  power.x.logarithmic = power.y.logarithmic = true;
  power.series = {{"original", spectrum.frequency, spectrum.original, chart::Mark::line},
                  {"decoded", spectrum.frequency, spectrum.decoded, chart::Mark::line, true}};
  chart::Panel ratio;
  ratio.title = "Decoded over original";
  ratio.x.label = "cycles per grid step";
  ratio.y.label = "ratio of power";
  ratio.series = {{"", spectrum.frequency, ratios_of(spectrum), chart::Mark::line_and_points}};
  figure.panels = {power, ratio};
  const Result<std::string> svg = chart::figure_svg(figure);
  // A build without cairo draws no figure; the table below has the numbers.
  return svg.ok() ? "<figure>" + *svg + "</figure>\n" : "";
}

constexpr const char* kReadingHelp =
    "<h2>How to read this</h2>\n"
    "<p>Values that are missing (NaN, infinite, fill) in either file are left out of everything "
    "but the count of those that changed. KS: the two-sample Kolmogorov-Smirnov statistic, the "
    "greatest distance of the two distributions; p is Kolmogorov's limit for independent values, "
    "which neighbours in a field are not, so it orders variables and tests nothing. A map is a "
    "plane of the last two dimensions. SSIM: Wang et al. 2004, with K1 0.01, K2 0.03, a Gaussian "
    "window of 11 x 11 with deviation 1.5, L the range of the variable. Data SSIM: Baker et al. "
    "2022, on values rounded to 256 levels of their map's range. Both are 1 where nothing differs. "
    "Power: of anomalies from the map's mean under a Hann window, in rings of equal frequency, "
    "mean over the maps; of a line in pieces of 4096 values.</p>\n";

}  // namespace

std::string verify_page(const VerifyReport& report) {
  std::string page = html_head("tailrace verify");
  page += "<dl>\n" + html_fact("Original", report.original_path) +
          html_fact("Compressed", report.compressed_path);
  const std::uint64_t n_failed = report.n_failed();
  page += html_fact("Verdict", n_failed == 0
                                   ? (report.n_doubtful() == 0
                                          ? std::string("every value within its bound")
                                          : fmt::format("every value within its bound, {} DOUBTFUL",
                                                        counted(report.n_doubtful(), "variable")))
                                   : counted(n_failed, "check") + " failed");
  page += html_fact("Made by", fmt::format("tailrace {}", std::string(version_text)));
  page += "</dl>\n";
  for (const std::string& problem : report.all_problems(StructureFindings::most_of_aspect)) {
    page += "<p><strong>" + html_escaped(problem) + "</strong></p>\n";
  }
  for (const std::string& doubt : report.doubts) {
    page += "<p><strong>" + html_escaped(doubt) + "</strong></p>\n";
  }
  page += "<h2>All variables</h2>\n" + errors_table(report) + likeness_table(report);
  for (const VerifiedField& field : report.fields) {
    page += "<h2>" + html_escaped(field.task.path) + "</h2>\n" + facts_of(field);
    const Spectrum& spectrum = field.fidelity->spectrum;
    if (spectrum.frequency.empty()) continue;
    page += spectrum_figure(spectrum) + spectrum_table(spectrum);
  }
  return page + kReadingHelp +
         "<footer>The same numbers, and all frequencies, are in --report FILE.json.</footer>\n" +
         "</body></html>\n";
}

}  // namespace tailrace::report
