// Tables and panels of a profile.

#include "profile.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "core/codec_registry.hpp"
#include "report/text_table.hpp"

namespace tailrace::cli {
namespace {

/// "2930", "148", "9.7": MB/s, with one decimal below 10.
std::string mb_text(double bytes_per_s) {
  const double mb = bytes_per_s / 1e6;
  return fmt::format("{:.{}f}", mb, mb < 9.95 ? 1 : 0);
}

std::string percent_text(double share) {
  return fmt::format("{:.{}f}%", 100 * share, share < 0.0995 ? 1 : 0);
}

std::string latency_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

/// Least and greatest bit rate at which a codec was measured; 0 and 0 without measurements.
std::pair<double, double> measured_rates(const std::vector<ThroughputPoint>& points) {
  if (points.empty()) return {0, 0};
  const auto [least, greatest] =
      std::ranges::minmax_element(points, {}, &ThroughputPoint::bit_rate);
  return {least->bit_rate, greatest->bit_rate};
}

/// Throughput by the curve at a bit rate; "-" if that is far from all measured rates.
std::string throughput_at(const ThroughputCurve& curve, const std::vector<ThroughputPoint>& points,
                          double bit_rate) {
  const auto [least, greatest] = measured_rates(points);
  if (!points.empty() && (bit_rate < least / 1.5 || bit_rate > greatest * 1.5)) return "-";
  return mb_text(curve.bytes_per_s(bit_rate));
}

void add_curve(TextTable& table, const std::string& codec, const ThroughputCurve& curve,
               const std::vector<ThroughputPoint>& points) {
  const auto [least, greatest] = measured_rates(points);
  const bool constant = curve.least_bytes_per_s == curve.greatest_bytes_per_s;
  table.add_row({codec, points.empty() ? "" : std::to_string(points.size()),
                 points.empty() ? "" : fmt::format("{:.2g} - {:.2g}", least, greatest),
                 throughput_at(curve, points, 1), throughput_at(curve, points, 4),
                 throughput_at(curve, points, 16), mb_text(curve.greatest_bytes_per_s),
                 constant ? "-" : fmt::format("{:.2g}", curve.pivot_bit_rate),
                 constant ? "-" : mb_text(curve.least_bytes_per_s),
                 constant ? "-" : fmt::format("{:.2f}", curve.exponent),
                 points.empty() ? "" : percent_text(curve.relative_residual)});
}

std::string curves_table(const MachineProfile& profile, bool encode) {
  TextTable table(
      std::string(encode ? "encode" : "decode") +
      "/14|>points?1|>bits a\nvalue|>MB/s\nat 1|>\nat 4|>\nat 16|>fit:\nCmax|>\nup to?3|>\nCmin|"
      ">\na?2|>off\nby");
  for (const CodecProfile& codec : profile.codecs) {
    if (encode) {
      add_curve(table, codec.codec, codec.encode, codec.encode_points);
    } else {
      add_curve(table, codec.codec, codec.decode, codec.decode_points);
    }
  }
  return table.text();
}

void add_roofline(TextTable& table, const std::string& what, const Roofline& roofline,
                  const std::vector<BandwidthPoint>& points) {
  std::vector<BandwidthPoint> own;
  std::copy_if(points.begin(), points.end(), std::back_inserter(own),
               [&](const BandwidthPoint& point) { return point.n_ranks == roofline.n_ranks; });
  std::string sizes;
  double greatest = 0;
  for (const BandwidthPoint& point : own) greatest = std::max(greatest, point.bytes_per_rank);
  if (!own.empty()) {
    sizes = fmt::format(
        "{} - {}", size_text(static_cast<std::uint64_t>(std::llround(std::exp2(roofline.least_x)))),
        size_text(static_cast<std::uint64_t>(greatest)));
  }
  const double turning_bytes = std::exp2(std::min(roofline.turning_x, 60.0));
  const bool rises = roofline.slope > 0;
  table.add_row({what, std::to_string(roofline.n_ranks), sizes, mb_text(roofline.bytes_per_s(1e6)),
                 mb_text(roofline.bytes_per_s(16e6)), mb_text(roofline.bytes_per_s(256e6)),
                 rises ? mb_text(roofline.slope) : "-", mb_text(roofline.ceiling),
                 rises ? size_text(static_cast<std::uint64_t>(turning_bytes)) : "-",
                 own.empty() ? "" : percent_text(roofline.relative_residual),
                 roofline.repaired ? "repaired" : ""});
}

std::string rooflines_table(const MachineProfile& profile) {
  TextTable table(
      "storage|>ranks|>sizes\nof a rank?1|>MB/s at\n1 MB|>\n16 MB|>\n256 MB|>fit: "
      "each\ndoubling|>\nceiling|>\nfrom?2|>off\nby|");
  for (const Roofline& roofline : profile.write.rooflines()) {
    add_roofline(table, "write", roofline, profile.write_points);
  }
  for (const Roofline& roofline : profile.read.rooflines()) {
    add_roofline(table, "read", roofline, profile.read_points);
  }
  return table.text();
}

std::string heading(const MachineProfile& profile) {
  if (profile.built_in) return "Built-in profile: typical values, not measured\n";
  return wrapped(fmt::format("{}: {}, {}; {} in {}; {}, {}, Tailrace {}", profile.host,
                             profile.processor, counted(profile.n_cores, "core"),
                             profile.file_system, profile.folder, counted(profile.n_ranks, "rank"),
                             profile.date, profile.tailrace_version),
                 2) +
         "\n";
}

std::string latencies(const MachineProfile& profile) {
  std::string text = fmt::format("claim {}, fdatasync {}", latency_text(profile.claim_latency_s),
                                 latency_text(profile.sync_latency_s));
  if (profile.sync_bytes_per_s > 0) {
    text += fmt::format(" and {} MB/s of large writes", mb_text(profile.sync_bytes_per_s));
  }
  text += fmt::format(", a small file {}; block {}", latency_text(profile.commit_s),
                      size_text(profile.block_bytes));
  if (profile.stripe_bytes > 0) text += ", stripe " + size_text(profile.stripe_bytes);
  return wrapped(text, 2) + "\n";
}

/// Costs of a step other than encoding and writing.
std::string step_text(const MachineProfile& profile) {
  const StepConstants& step = profile.step;
  const bool known = !profile.message_points.empty();
  return wrapped(fmt::format(
                     "messages{}: latency {}, overhead {}, {} a MB; a collective waits {} more",
                     known ? "" : " (typical)", latency_text(step.messages.latency_s),
                     latency_text(step.messages.overhead_s),
                     latency_text(step.messages.byte_s * 1e6), latency_text(step.messages.wait_s)),
                 2) +
         "\n" +
         wrapped(fmt::format("a step{}: values copied at {} MB/s; at rank 0: {} a number, {} a "
                             "record, {} a chunk in the index, {} a dataset, {} a commit",
                             profile.step_measured ? "" : " (typical)",
                             mb_text(step.copy_bytes_per_s), latency_text(step.number_s),
                             latency_text(step.record_s), latency_text(step.index_s),
                             latency_text(step.dataset_s), latency_text(step.commit_s)),
                 2) +
         "\n";
}

// --- the chart
// ------------------------------------------------------------------------------------

constexpr std::size_t kCurvePoints = 60;

/// `kCurvePoints` + 1 numbers from `from` to `to` in equal ratios.
std::vector<double> geometric(double from, double to) {
  std::vector<double> values;
  for (std::size_t i = 0; i <= kCurvePoints; ++i) {
    values.push_back(from * std::pow(to / from, static_cast<double>(i) / double{kCurvePoints}));
  }
  return values;
}

chart::Panel codec_panel(const MachineProfile& profile, bool encode) {
  chart::Panel panel;
  panel.title = encode ? "Encode: one core" : "Decode: one core";
  panel.x = {.label = "encoded bits per 32 bits", .logarithmic = true};
  panel.y = {.label = "throughput (MB/s, uncompressed)", .logarithmic = true};
  for (std::size_t c = 0; c < profile.codecs.size(); ++c) {
    const CodecProfile& codec = profile.codecs[c];
    if (codec_entry(codec.codec).stores_plainly) continue;  // a copy: independent of bit rates
    const auto& points = encode ? codec.encode_points : codec.decode_points;
    const ThroughputCurve& curve = encode ? codec.encode : codec.decode;
    if (!points.empty()) {
      chart::Series measured{.label = codec.codec, .x = {}, .y = {}, .colour = c};
      for (const ThroughputPoint& point : points) {
        measured.x.push_back(point.bit_rate);
        measured.y.push_back(point.bytes_per_s / 1e6);
      }
      panel.series.push_back(std::move(measured));
    }
    const auto [least, greatest] = points.empty() ? std::pair(0.3, 32.0) : measured_rates(points);
    chart::Series fitted{.label = points.empty() ? codec.codec : "",
                         .x = geometric(least / 1.15, std::max(greatest, least * 1.01) * 1.15),
                         .y = {},
                         .mark = chart::Mark::line,
                         .colour = c};
    for (const double rate : fitted.x) fitted.y.push_back(curve.bytes_per_s(rate) / 1e6);
    panel.series.push_back(std::move(fitted));
  }
  return panel;
}

chart::Panel storage_panel(const BandwidthModel& model, const std::vector<BandwidthPoint>& points,
                           const std::string& title) {
  chart::Panel panel;
  panel.title = title;
  panel.x = {.label = "bytes of each rank (MB)", .logarithmic = true};
  panel.y = {.label = "bandwidth of all ranks (MB/s)", .least = 0};
  for (std::size_t r = 0; r < model.rooflines().size(); ++r) {
    const Roofline& roofline = model.rooflines()[r];
    chart::Series measured{
        .label = counted(roofline.n_ranks, "rank"), .x = {}, .y = {}, .colour = r};
    for (const BandwidthPoint& point : points) {
      if (point.n_ranks != roofline.n_ranks) continue;
      measured.x.push_back(point.bytes_per_rank / 1e6);
      measured.y.push_back(point.bytes_per_s / 1e6);
    }
    const bool known = !measured.x.empty();
    const auto least = known ? *std::min_element(measured.x.begin(), measured.x.end()) : 1.0;
    const auto greatest = known ? *std::max_element(measured.x.begin(), measured.x.end()) : 512.0;
    chart::Series fitted{.label = known ? "" : counted(roofline.n_ranks, "rank"),
                         .x = geometric(least, std::max(greatest, least * 1.01)),
                         .y = {},
                         .mark = chart::Mark::line,
                         .colour = r};
    for (const double mb : fitted.x) fitted.y.push_back(roofline.bytes_per_s(mb * 1e6) / 1e6);
    if (known) panel.series.push_back(std::move(measured));
    panel.series.push_back(std::move(fitted));
  }
  return panel;
}

}  // namespace

std::string profile_tables(const MachineProfile& profile) {
  return heading(profile) + "\n" + curves_table(profile, true) + "\n" +
         curves_table(profile, false) + "\n" + rooflines_table(profile) + "\n" +
         latencies(profile) + step_text(profile);
}

nlohmann::ordered_json profile_json(const MachineProfile& profile, const std::string& file,
                                    const std::vector<std::string>& stale) {
  nlohmann::ordered_json document = document_of("profile");
  document["file"] = file;
  document["stale"] = stale;
  document["profile"] = nlohmann::ordered_json::parse(profile_text(profile), nullptr, false);
  return document;
}

chart::Figure profile_figure(const MachineProfile& profile) {
  chart::Figure figure;
  figure.title = profile.built_in
                     ? "Built-in profile"
                     : fmt::format("{}: {}, {}, {}", profile.host, profile.processor,
                                   profile.file_system, counted(profile.n_ranks, "rank"));
  figure.panels.push_back(codec_panel(profile, true));
  figure.panels.push_back(codec_panel(profile, false));
  figure.panels.push_back(storage_panel(profile.write, profile.write_points, "Write, with sync"));
  figure.panels.push_back(storage_panel(profile.read, profile.read_points, "Read"));
  return figure;
}

}  // namespace tailrace::cli
