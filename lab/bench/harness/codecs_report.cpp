// Tables; CSV and JSON with all results.

#include "codecs_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "cli/cli_common.hpp"
#include "core/utf8.hpp"
#include "core/version.hpp"
#include "report/text_table.hpp"

namespace tailrace::bench {
namespace {

using nlohmann::ordered_json;

constexpr int kCodecsSchemaVersion = 1;

double megabytes_per_s(const CodecsRow& row, const std::vector<double>& seconds) {
  return static_cast<double>(row.raw_bytes) / 1e6 / median(seconds);
}

/// Throughput and spread: "2710 (4%)".
std::string speed_cell(const CodecsRow& row, const std::vector<double>& seconds) {
  return fmt::format("{:.0f} ({:.0f}%)", megabytes_per_s(row, seconds), 100 * spread(seconds));
}

std::string ratio_cell(double ratio) { return fmt::format("{:.{}f}", ratio, ratio < 100 ? 2 : 0); }

std::string error_cell(const CodecsRow& row) {
  if (row.found.largest_error == 0) return "exact";
  const double error = row.error_over_bound();
  return error < 100 ? fmt::format("{:.4f}", error) : fmt::format("{:.2g}", error);
}

std::string psnr_cell(double psnr) { return std::isinf(psnr) ? "" : fmt::format("{:.1f}", psnr); }

std::string bad_cell(const CodecsRow& row) {
  return row.n_bad() == 0 ? "" : fmt::format("{}", row.n_bad());
}

std::string field_heading(const CodecsField& field) {
  std::string text =
      fmt::format("{}  {}  {} {}, {} in {}", field.file, field.path,
                  std::string(dtype_name(field.dtype)), shape_text(field.grid.shape),
                  cli::size_text(field.raw_bytes), counted(field.chunks.size(), "chunk"));
  if (field.chunks.size() < field.grid.n_chunks()) {
    text += fmt::format(" (of {})", field.grid.n_chunks());
  }
  text += fmt::format(" of {}, values {:.4g} to {:.4g}", shape_text(field.grid.chunk_shape),
                      field.range.least, field.range.greatest);
  if (field.fill_value) text += fmt::format(", fill {:g}", *field.fill_value);
  return cli::wrapped(text, 2) + "\n";
}

/// Means of one codec at one bound over all fields.
struct Means {
  std::string codec;
  ErrorBound bound;
  std::size_t n_fields = 0;
  double log_ratio = 0;
  double encode_s_per_mb = 0;
  double decode_s_per_mb = 0;
  double worst_error = 0;
  std::uint64_t n_bad = 0;

  void add(const CodecsRow& row) {
    ++n_fields;
    log_ratio += std::log(row.ratio());
    encode_s_per_mb += 1 / megabytes_per_s(row, row.encode_s);
    decode_s_per_mb += 1 / megabytes_per_s(row, row.decode_s);
    worst_error = std::max(worst_error, row.error_over_bound());
    n_bad += row.n_bad();
  }
  double ratio() const { return std::exp(log_ratio / static_cast<double>(n_fields)); }
  double encode() const { return static_cast<double>(n_fields) / encode_s_per_mb; }
  double decode() const { return static_cast<double>(n_fields) / decode_s_per_mb; }
};

/// Means in the order of the bounds, then of the codecs.
std::vector<Means> means_of(const CodecsOutcome& outcome) {
  std::vector<Means> all;
  std::vector<ErrorBound> bounds = outcome.options.bounds;
  std::erase(bounds, ErrorBound{});
  bounds.emplace_back();
  for (const ErrorBound& bound : bounds) {
    for (const CodecChoice& codec : outcome.options.codecs) {
      Means means;
      means.codec = codec.label;
      means.bound = bound;
      for (const CodecsRow& row : outcome.rows) {
        if (row.refused.empty() && row.codec == codec.label && row.bound == bound) means.add(row);
      }
      if (means.n_fields > 0) all.push_back(means);
    }
  }
  return all;
}

/// Cell of CSV: text in quotes, with inner quotes doubled.
std::string csv_cell(std::string text) {
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2)) {
    text.insert(at, 1, '"');
  }
  return "\"" + text + "\"";
}

ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json field_json(const CodecsField& field) {
  return {{"file", field.file},
          {"path", field.path},
          {"dtype", std::string(dtype_name(field.dtype))},
          {"shape", field.grid.shape},
          {"chunk_shape", field.grid.chunk_shape},
          {"n_chunks", field.grid.n_chunks()},
          {"n_chunks_measured", field.chunks.size()},
          {"raw_bytes", field.raw_bytes},
          {"least", field.range.least},
          {"greatest", field.range.greatest},
          {"n_nan", field.range.n_nan},
          {"n_fill", field.range.n_fill},
          {"fill_value", field.fill_value ? ordered_json(*field.fill_value) : nullptr},
          {"checksum_fnv1a_words", fmt::format("{:016x}", field.checksum)}};
}

ordered_json row_json(const CodecsRow& row) {
  ordered_json entry = {{"field", row.field},
                        {"bound", error_bound_text(row.bound)},
                        {"absolute_bound", row.absolute_bound},
                        {"codec", row.codec},
                        {"codec_version", row.version}};
  if (!row.refused.empty()) {
    entry["refused"] = row.refused;
    return entry;
  }
  entry["raw_bytes"] = row.raw_bytes;
  entry["encoded_bytes"] = row.encoded_bytes;
  entry["ratio"] = row.ratio();
  entry["encode_bytes_per_s"] = 1e6 * megabytes_per_s(row, row.encode_s);
  entry["decode_bytes_per_s"] = 1e6 * megabytes_per_s(row, row.decode_s);
  entry["max_error_over_bound"] = finite_or_null(row.error_over_bound());
  entry["psnr_db"] = finite_or_null(row.psnr);
  entry["n_beyond_bound"] = row.found.n_beyond_bound;
  entry["n_special_changed"] = row.found.n_special_changed;
  entry["encode_s"] = row.encode_s;
  entry["decode_s"] = row.decode_s;
  return entry;
}

}  // namespace

std::string codecs_field_text(const CodecsOutcome& outcome) {
  const std::size_t index = outcome.fields.size() - 1;
  cli::TextTable table({{"bound"},
                        {"codec", false, 12},
                        {"ratio", true},
                        {"encode\nMB/s", true},
                        {"decode\nMB/s", true},
                        {"error\n/ bound", true},
                        {"PSNR\ndB", true},
                        {"beyond\nbound", true}});
  std::string refusals;
  const CodecsRow* before = nullptr;
  for (const CodecsRow& row : outcome.rows) {
    if (row.field != index) continue;
    if (!row.refused.empty()) {
      const std::string line = cli::wrapped(row.codec + ": " + row.refused, 2) + "\n";
      if (refusals.find(line) == std::string::npos) refusals += line;
      continue;
    }
    const bool same_bound = before != nullptr && before->bound == row.bound;
    if (before != nullptr && !same_bound) table.add_rule();
    table.add_row({same_bound ? "" : error_bound_text(row.bound), row.codec,
                   ratio_cell(row.ratio()), speed_cell(row, row.encode_s),
                   speed_cell(row, row.decode_s), error_cell(row), psnr_cell(row.psnr),
                   bad_cell(row)});
    before = &row;
  }
  return field_heading(outcome.fields[index]) + table.text() + refusals;
}

std::string codecs_summary_text(const CodecsOutcome& outcome) {
  cli::TextTable table({{"bound"},
                        {"codec", false, 10},
                        {.heading = "fields", .right = true, .left_out = 1},
                        {"ratio\n(geometric)", true},
                        {"encode MB/s\n(harmonic)", true},
                        {"decode MB/s\n(harmonic)", true},
                        {"worst error\n/ bound", true},
                        {"beyond\nbound", true}});
  std::string last_bound;
  for (const Means& means : means_of(outcome)) {
    const std::string bound = error_bound_text(means.bound);
    if (!last_bound.empty() && bound != last_bound) table.add_rule();
    table.add_row({bound == last_bound ? "" : bound, means.codec, fmt::format("{}", means.n_fields),
                   ratio_cell(means.ratio()), fmt::format("{:.0f}", means.encode()),
                   fmt::format("{:.0f}", means.decode()),
                   means.worst_error > 0 ? fmt::format("{:.4g}", means.worst_error) : "exact",
                   means.n_bad > 0 ? fmt::format("{}", means.n_bad) : ""});
    last_bound = bound;
  }
  const std::string heading = fmt::format("Means over {}, one core of {}, trz with {}",
                                          counted(outcome.fields.size(), "field"),
                                          outcome.machine.processor, outcome.instruction_set);
  return cli::wrapped(heading, 2) + "\n" + table.text();
}

std::string codecs_csv(const CodecsOutcome& outcome) {
  const MachineFacts& machine = outcome.machine;
  std::string text = fmt::format(
      "# tailrace-lab bench codecs {}, {}\n# {}, {} cores, load average {:.2f}, {}; {}; HDF5 {}\n"
      "# trz with {}; one thread; MB/s: 10^6 uncompressed bytes a second of thread CPU time, "
      "medians of {} runs in turn; spread: (largest - smallest) / median\n",
      TAILRACE_VERSION, machine.date, machine.processor, machine.n_cores, machine.load_average,
      machine.kernel, machine.compiler, machine.hdf5, outcome.instruction_set,
      outcome.options.n_repeats);
  text +=
      "file,field,dtype,shape,chunk_shape,checksum,bound,absolute_bound,codec,codec_version,"
      "raw_bytes,encoded_bytes,ratio,encode_MB_per_s,encode_spread,decode_MB_per_s,decode_spread,"
      "error_over_bound,psnr_dB,values_beyond_bound,refused\n";
  for (const CodecsRow& row : outcome.rows) {
    const CodecsField& field = outcome.fields[row.field];
    text += fmt::format("{},{},{},{},{},{:016x},{},{},{},{},{},", csv_cell(field.file),
                        csv_cell(field.path), std::string(dtype_name(field.dtype)),
                        shape_text(field.grid.shape), shape_text(field.grid.chunk_shape),
                        field.checksum, error_bound_text(row.bound), row.absolute_bound, row.codec,
                        csv_cell(row.version), row.raw_bytes);
    if (!row.refused.empty()) {
      text += fmt::format(",,,,,,,,,{}\n", csv_cell(row.refused));
      continue;
    }
    text += fmt::format("{},{:.4f},{:.1f},{:.3f},{:.1f},{:.3f},{:.6g},{:.2f},{},\n",
                        row.encoded_bytes, row.ratio(), megabytes_per_s(row, row.encode_s),
                        spread(row.encode_s), megabytes_per_s(row, row.decode_s),
                        spread(row.decode_s), row.error_over_bound(), row.psnr, row.n_bad());
  }
  return text;
}

ordered_json codecs_json(const CodecsOutcome& outcome) {
  const MachineFacts& machine = outcome.machine;
  ordered_json document = {
      {"schema_version", kCodecsSchemaVersion},
      {"command", "bench codecs"},
      {"repeat", outcome.options.n_repeats},
      {"clock", "thread CPU time"},
      {"versions",
       {{"tailrace", TAILRACE_VERSION}, {"hdf5", machine.hdf5}, {"compiler", machine.compiler}}},
      {"machine",
       {{"processor", machine.processor},
        {"n_cores", machine.n_cores},
        {"memory_gib", machine.memory_gib},
        {"kernel", machine.kernel},
        {"load_average", machine.load_average},
        {"instruction_set", outcome.instruction_set}}},
      {"date", machine.date},
      {"fields", ordered_json::array()},
      {"rows", ordered_json::array()},
      {"means", ordered_json::array()}};
  for (const CodecsField& field : outcome.fields) document["fields"].push_back(field_json(field));
  for (const CodecsRow& row : outcome.rows) document["rows"].push_back(row_json(row));
  for (const Means& means : means_of(outcome)) {
    document["means"].push_back({{"bound", error_bound_text(means.bound)},
                                 {"codec", means.codec},
                                 {"n_fields", means.n_fields},
                                 {"ratio", means.ratio()},
                                 {"encode_bytes_per_s", 1e6 * means.encode()},
                                 {"decode_bytes_per_s", 1e6 * means.decode()},
                                 {"max_error_over_bound", finite_or_null(means.worst_error)},
                                 {"n_beyond_bound", means.n_bad}});
  }
  return document;
}

}  // namespace tailrace::bench
