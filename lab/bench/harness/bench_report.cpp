// Rows as text and as JSON.

#include "bench_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "cli/cli_common.hpp"
#include "core/options.hpp"
#include "core/utf8.hpp"
#include "core/version.hpp"
#include "report/text_table.hpp"

namespace tailrace::bench {
namespace {

using nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

const Row* find_row(const std::vector<Row>& rows, const std::string& method) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.method == method; });
  return found == rows.end() ? nullptr : &*found;
}

/// Median of this row over that of the ideal with its codec; 0 if the ideal was not run.
double over_ideal(const std::vector<Row>& rows, const Row& row) {
  const Row* ideal = find_row(rows, "ideal-" + codec_of_name(row.method));
  return ideal == nullptr ? 0 : row.median_s() / ideal->median_s();
}

/// Speed-up over HDF5's own collective write with this codec. Codecs that HDF5 lacks are compared
/// with the run's codec; 0 if neither was run.
double speed_up(const BenchContext& context, const std::vector<Row>& rows, const Row& row) {
  const Row* native = find_row(rows, "hdf5-collective-" + codec_of_name(row.method));
  if (native == nullptr) native = find_row(rows, "hdf5-collective-" + context.options.codec);
  return native == nullptr ? 0 : native->median_s() / row.median_s();
}

double over_longer_lane(const Row& row) {
  return row.details.longer_lane_s > 0 ? row.details.makespan_s / row.details.longer_lane_s : 0;
}

std::string factor_text(double factor) { return factor > 0 ? fmt::format("{:.2f}", factor) : ""; }

std::string limit_text(const BenchContext& context) {
  const Bandwidth& bandwidth = context.setting.bandwidth;
  if (!bandwidth.limited()) return "not limited";
  const auto total = static_cast<std::uint64_t>(context.bandwidth_bytes_per_s());
  return "limited to " + cli::size_text(total) + "/s for all ranks";
}

std::string table_text(const BenchContext& context, const std::vector<Row>& rows) {
  cli::TextTable table(
      "method/20|>median s|>spread|>MB/s|>ratio|>file?1|>error?3|>x hdf5|>/ ideal|>/ lane?2");
  for (const Row& row : rows) {
    const double error = row.checked.error_over_bound;
    table.add_row({row.method, fmt::format("{:.3f}", row.median_s()),
                   fmt::format("{:.0f} %", 100 * (row.max_s() - row.min_s()) / row.median_s()),
                   cli::throughput_text(context.work.raw_bytes, row.median_s()),
                   cli::ratio_text(context.work.raw_bytes, row.checked.encoded_bytes),
                   cli::size_text(row.checked.file_bytes),
                   error > 0 ? fmt::format("{:.3f}", error) : "exact",
                   factor_text(speed_up(context, rows, row)), factor_text(over_ideal(rows, row)),
                   row.has_lanes ? factor_text(over_longer_lane(row)) : ""});
  }
  return table.text();
}

/// Table of our rows: space reserved for chunks, its overflow and overhead, and the model's time.
std::string places_text(const std::vector<Row>& rows) {
  cli::TextTable table(
      "method/20|>reserved|>overflow|>overhead|>wait s|>model s|>model /\nmeasured");
  const auto percent = [](std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? fmt::format("{:.1f} %",
                                   100.0 * static_cast<double>(part) / static_cast<double>(whole))
                     : std::string();
  };
  for (const Row& row : rows) {
    if (!row.has_places) continue;
    const RunDetails& details = row.details;
    const bool reserves = details.reserved_bytes > 0;
    table.add_row({row.method,
                   reserves ? percent(details.reserved_bytes, row.checked.encoded_bytes) : "",
                   reserves ? percent(details.n_overflow_chunks, details.n_chunks) : "",
                   percent(details.slack_bytes, row.checked.encoded_bytes),
                   fmt::format("{:.3f}", details.wait_s),
                   row.model_s > 0 ? fmt::format("{:.3f}", row.model_s) : "",
                   row.model_s > 0 ? fmt::format("{:.2f}", row.model_s / row.median_s()) : ""});
  }
  if (table.empty()) return "";
  return "\n" + table.text();
}

ordered_json number_or_null(double number) {
  return number > 0 ? ordered_json(number) : ordered_json(nullptr);
}

ordered_json row_json(const BenchContext& context, const std::vector<Row>& rows, const Row& row) {
  const std::uint64_t raw_bytes = context.work.raw_bytes;
  ordered_json entry;
  entry["method"] = row.method;
  entry["seconds"] = row.seconds;
  entry["median_s"] = row.median_s();
  entry["min_s"] = row.min_s();
  entry["max_s"] = row.max_s();
  entry["throughput_bytes_per_s"] = static_cast<double>(raw_bytes) / row.median_s();
  entry["file_bytes"] = row.checked.file_bytes;
  entry["encoded_bytes"] = row.checked.encoded_bytes;
  entry["ratio"] =
      row.checked.encoded_bytes > 0
          ? static_cast<double>(raw_bytes) / static_cast<double>(row.checked.encoded_bytes)
          : 0.0;
  entry["max_error_over_bound"] = row.checked.error_over_bound;
  entry["peak_memory_bytes"] = row.peak_memory_bytes;
  entry["written_bytes"] = row.written_bytes;
  const double bandwidth = context.bandwidth_bytes_per_s();
  entry["storage_least_s"] =
      number_or_null(bandwidth > 0 ? static_cast<double>(row.written_bytes) / bandwidth : 0);
  entry["speed_up_over_hdf5_collective"] = number_or_null(speed_up(context, rows, row));
  entry["over_ideal"] = number_or_null(over_ideal(rows, row));
  entry["codec_version"] = row.codec_version;
  if (!row.has_lanes) return entry;
  entry["encode_s"] = row.details.encode_s;
  entry["write_s"] = row.details.write_s;
  entry["makespan_s"] = row.details.makespan_s;
  entry["makespan_over_longer_lane"] = number_or_null(over_longer_lane(row));
  entry["hidden_share"] = row.details.hidden_share;
  entry["index_s"] = row.details.index_s;
  entry["sync_s"] = row.details.sync_s;
  entry["commit_s"] = row.details.commit_s;
  entry["n_writes"] = row.details.n_writes;
  if (row.has_places) {
    entry["n_chunks"] = row.details.n_chunks;
    entry["n_overflow_chunks"] = row.details.n_overflow_chunks;
    entry["reserved_bytes"] = row.details.reserved_bytes;
    entry["slack_bytes"] = row.details.slack_bytes;
    entry["wait_s"] = row.details.wait_s;
    entry["model_s"] = number_or_null(row.model_s);
    if (!row.details.chosen.empty()) {
      entry["chosen"] = row.details.chosen;
      entry["choose_s"] = row.details.choose_s;
    }
  }
  entry["buffer_bytes"] = row.details.buffer_bytes;
  return entry;
}

ordered_json fields_json(const Workload& work) {
  ordered_json fields = ordered_json::array();
  for (const BenchField& field : work.fields) {
    fields.push_back({{"path", field.path},
                      {"dtype", std::string(dtype_name(field.dtype))},
                      {"shape", field.shape},
                      {"block", field.box.count},
                      {"chunk_shape", field.chunk_shape},
                      {"absolute_bound", field.absolute_bound}});
  }
  return fields;
}

}  // namespace

std::string report_text(const BenchContext& context, const MachineFacts& machine,
                        const std::vector<Row>& rows) {
  const BenchOptions& options = context.options;
  const Workload& work = context.work;
  const BenchField& first = work.fields.front();
  std::string out =
      cli::wrapped(fmt::format("{}: {}", counted(work.fields.size(), "field"), work.source), 2) +
      "\n";
  const auto line = [&](const std::string& text) { out += "  " + cli::wrapped(text, 4, 2) + "\n"; };
  line(fmt::format("{} on {} ({} a rank), {} of {} a rank, bound {}",
                   cli::size_text(work.raw_bytes),
                   counted(static_cast<std::uint64_t>(context.comm.n_ranks()), "rank"),
                   counted(options.n_threads, "encode thread"),
                   counted(work.chunks_per_rank, "chunk"), shape_text(first.chunk_shape),
                   error_bound_text(context.setting.bound) +
                       (options.field_bounds.empty() ? "" : ", some fields their own")));
  line(fmt::format("{}, {}, fsync {}; {} after a checked warm-up", machine.file_system,
                   limit_text(context), options.fsync ? "inside the time" : "off",
                   counted(options.n_repeats, "counted run")));
  out += "\n";
  out += table_text(context, rows);
  out += "\n" +
         cli::wrapped(
             "spread: (largest - smallest) / median. MB/s: uncompressed. error: largest over the "
             "bound. "
             "x hdf5: times as fast as hdf5-collective with this codec (portable: with the run's). "
             "/ ideal: median over the ideal's. / lane: encode and write together, over the longer "
             "one.",
             0) +
         "\n";
  const std::string places = places_text(rows);
  if (places.empty()) return out;
  return out + places +
         cli::wrapped(
             "reserved, overhead: of the encoded bytes; overhead is what the data's part of the "
             "file holds besides them. overflow: chunks larger than their place. wait: encoded "
             "chunks without an address, slowest rank. model: the time expected of this codec, "
             "these bytes and this storage.",
             0) +
         "\n";
}

ordered_json report_json(const BenchContext& context, const MachineFacts& machine,
                         const std::vector<Row>& rows) {
  const BenchOptions& options = context.options;
  const Workload& work = context.work;
  ordered_json document = {{"schema_version", kSchemaVersion}, {"command", "bench"}};
  document["ranks"] = context.comm.n_ranks();
  document["threads"] = options.n_threads;
  document["W"] = number_or_null(context.bandwidth_bytes_per_s());
  document["S"] = work.raw_bytes;
  document["R"] = options.n_repeats;
  document["units"] = {{"W",
                        "bytes per second that the storage takes from all ranks together; "
                        "null: unlimited"},
                       {"S", "uncompressed bytes of all ranks"},
                       {"R", "counted runs of each method"}};
  document["fsync"] = options.fsync;
  document["bound"] = error_bound_text(context.setting.bound);
  document["chunks_per_rank"] = work.chunks_per_rank;
  document["data"] = {{"source", work.source},
                      {"checksum_fnv1a", fmt::format("{:016x}", work.checksum)},
                      {"fields", fields_json(work)}};
  document["versions"] = {
      {"tailrace", std::string(version_text)}, {"hdf5", machine.hdf5}, {"mpi", machine.mpi}};
  for (const Row& row : rows) {
    if (!row.codec_version.empty()) {
      document["versions"]["codec_" + codec_of_name(row.method)] = row.codec_version;
    }
  }
  document["machine"] = {{"processor", machine.processor},       {"cores", machine.n_cores},
                         {"memory_gib", machine.memory_gib},     {"kernel", machine.kernel},
                         {"load_average", machine.load_average}, {"compiler", machine.compiler}};
  document["file_system"] = machine.file_system;
  document["date"] = machine.date;
  document["rows"] = ordered_json::array();
  for (const Row& row : rows) document["rows"].push_back(row_json(context, rows, row));
  return document;
}

}  // namespace tailrace::bench
