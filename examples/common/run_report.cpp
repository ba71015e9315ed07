// The report: times of all ranks, checks and facts, as text and as JSON.

#include "common/run_report.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>

#include "common/json_file.hpp"

namespace app {
namespace {

/// Times of all ranks together.
struct RunTimes {
  std::vector<IterationTimes> iterations;
  IterationTimes sum;
  double close_s = 0;
  double total_s() const { return sum.total_s + close_s; }
  double share(double seconds) const { return sum.total_s > 0 ? 100 * seconds / sum.total_s : 0; }
};

/// Means of some times over the ranks.
std::vector<double> mean_over_ranks(const Run& run, const std::vector<double>& mine) {
  std::vector<double> mean = sum_over_ranks(run.comm, mine);
  for (double& value : mean) value /= run.n_ranks;
  return mean;
}

RunTimes gather_times(const Run& run, double close_s) {
  RunTimes times;
  for (const IterationTimes& mine : run.lanes.iterations()) {
    IterationTimes all = mine;
    MPI_Allreduce(&mine.total_s, &all.total_s, 1, MPI_DOUBLE, MPI_MAX, run.comm);
    const std::vector<double> mean = mean_over_ranks(
        run, {mine.host_s, mine.idle_s, mine.exchange_s, mine.derive_s, mine.output_s});
    all.host_s = mean[0];
    all.idle_s = mean[1];
    all.exchange_s = mean[2];
    all.derive_s = mean[3];
    all.output_s = mean[4];
    times.sum.total_s += all.total_s;
    times.sum.host_s += all.host_s;
    times.sum.idle_s += all.idle_s;
    times.sum.exchange_s += all.exchange_s;
    times.sum.derive_s += all.derive_s;
    times.sum.output_s += all.output_s;
    times.iterations.push_back(all);
  }
  MPI_Allreduce(&close_s, &times.close_s, 1, MPI_DOUBLE, MPI_MAX, run.comm);
  return times;
}

void write_times(JsonFile& json, const IterationTimes& times) {
  json.number("total_s", times.total_s);
  json.number("host_s", times.host_s);
  json.number("idle_s", times.idle_s);
  json.number("exchange_s", times.exchange_s);
  json.number("derive_s", times.derive_s);
  json.number("output_s", times.output_s);
}

void write_totals(JsonFile& json, const OutputTotals& totals) {
  json.count("n_steps", totals.n_steps);
  json.count("raw_bytes", totals.raw_bytes);
  json.count("encoded_bytes", totals.encoded_bytes);
  json.number("exposed_s", totals.exposed_s);
  json.number("handover_s", totals.handover_s);
  json.number("backpressure_s", totals.backpressure_s);
  json.number("idle_encode_s", totals.idle_encode_s);
  json.number("encode_s", totals.encode_s);
  json.number("write_s", totals.write_s);
  json.count("n_delayed_obstacles", totals.n_delayed_obstacles);
  json.number("largest_delay_s", totals.largest_delay_s);
  json.count("n_moved_writes", totals.n_moved_writes);
  json.count("peak_memory_bytes", totals.peak_memory_bytes);
}

std::string hash_text(std::uint64_t hash) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
  return text.data();
}

void write_json(const std::string& program, const CommonOptions& common, const Run& run,
                const RunTimes& times) {
  JsonFile json(common.json_path);
  json.open(nullptr, '{');
  json.text("program", program);
  json.text("output", common.output.output);
  json.text("codec", common.output.codec);
  json.text("bound", common.output.bound);
  json.text("options", common.output.extra);
  json.truth("fsync", common.output.fsync);
  json.count("every", static_cast<std::uint64_t>(common.output.every));
  json.count("n_ranks", static_cast<std::uint64_t>(run.n_ranks));
  json.number("write_limit_bytes_per_s", common.write_limit);
  json.number("device_stretch", common.device_stretch);
  json.number("total_s", times.total_s());
  json.number("close_s", times.close_s);
  json.open("sum", '{');
  write_times(json, times.sum);
  json.close('}');
  json.open("iterations", '[');
  for (const IterationTimes& iteration : times.iterations) {
    json.open(nullptr, '{');
    json.count("step", static_cast<std::uint64_t>(iteration.step));
    write_times(json, iteration);
    json.close('}');
  }
  json.close(']');
  json.open("totals", '{');
  write_totals(json, run.output.totals());
  json.close('}');
  json.open("checks", '[');
  for (const Check& check : run.checks) {
    json.open(nullptr, '{');
    json.text("name", check.name);
    json.number("value", check.value);
    json.number("limit", check.limit);
    json.truth("passed", check.passed());
    json.close('}');
  }
  json.close(']');
  json.open("facts", '{');
  for (const auto& [name, value] : run.facts) json.number(name.c_str(), value);
  json.close('}');
  json.text("state_hash", hash_text(run.state_hash));
  json.close('}');
}

void print_summary(const Run& run, const RunTimes& times) {
  const IterationTimes& sum = times.sum;
  for (const auto& [name, value] : run.facts) std::printf("%s: %g\n", name.c_str(), value);
  for (const Check& check : run.checks) {
    std::printf("check %-32s %11.3e, at most %.1e: %s\n", check.name.c_str(), check.value,
                check.limit, check.passed() ? "passed" : "FAILED");
  }
  std::printf(
      "%zu iterations: %.3f s; host %.0f %%, device (main lane idle) %.0f %%, exchange %.0f %%, "
      "fields %.0f %%, output %.0f %%; closing %.3f s\n",
      times.iterations.size(), sum.total_s, times.share(sum.host_s), times.share(sum.idle_s),
      times.share(sum.exchange_s), times.share(sum.derive_s), times.share(sum.output_s),
      times.close_s);
  const OutputTotals& totals = run.output.totals();
  if (totals.encoded_bytes > 0) {
    std::printf("%" PRIu64 " steps written, %.1f MB, %.1f times smaller\n", totals.n_steps,
                static_cast<double>(totals.encoded_bytes) / 1e6,
                static_cast<double>(totals.raw_bytes) / static_cast<double>(totals.encoded_bytes));
  }
  const std::string& output = run.output.options().output;
  if (output == "async" || output == "in_situ") {
    std::printf(
        "exposed %.3f s: handing over %.3f s, waiting for the step before or for memory "
        "%.3f s\n",
        totals.exposed_s, totals.handover_s, totals.backpressure_s);
  }
  if (output == "in_situ") {
    std::printf("encoded in idle time %.3f s; %" PRIu64
                " obstacles delayed, by %.3f s at most; "
                "%" PRIu64 " chunks written for other ranks\n",
                totals.idle_encode_s, totals.n_delayed_obstacles, totals.largest_delay_s,
                totals.n_moved_writes);
  }
  std::printf("state %s\n", hash_text(run.state_hash).c_str());
}

}  // namespace

bool report_run(const std::string& program, const CommonOptions& common, const Run& run,
                double close_s) {
  const RunTimes times = gather_times(run, close_s);
  if (run.is_root()) {
    print_summary(run, times);
    if (!common.json_path.empty()) write_json(program, common, run, times);
  }
  bool all_passed = true;
  for (const Check& check : run.checks) all_passed = all_passed && check.passed();
  return all_passed;
}

}  // namespace app
