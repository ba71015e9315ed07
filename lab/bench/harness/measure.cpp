// Clock, memory meter and order of the runs.

#include "measure.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>

namespace tailrace::bench {
namespace {

/// Value of a line such as "VmHWM:     1234 kB" in this process's status, in bytes; 0 if missing.
std::uint64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with(key + ":")) continue;
    std::istringstream words(line.substr(key.size() + 1));
    std::uint64_t kilobytes = 0;
    words >> kilobytes;
    return kilobytes << 10;
  }
  return 0;
}

/// Configure malloc to release large blocks immediately (true), so that memory freed by one method
/// does not count for the next. False: keep them, as malloc does after some time. The values are
/// the limits between which malloc adapts its thresholds.
void give_memory_back(bool at_once) {
  ::mallopt(M_MMAP_THRESHOLD, at_once ? 128 << 10 : 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, at_once ? 128 << 10 : 64 << 20);
}

/// Growth of this process's resident memory from construction to its peak, as the kernel counts it.
/// Includes libraries and MPI's internal buffers that the first use allocates.
class MemoryMeter {
 public:
  MemoryMeter() {
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the kernel's high-water mark
    start_bytes_ = status_bytes("VmRSS");
  }
  std::uint64_t peak_bytes() const {
    const std::uint64_t peak = status_bytes("VmHWM");
    return peak > start_bytes_ ? peak - start_bytes_ : 0;
  }

 private:
  std::uint64_t start_bytes_ = 0;
};

/// Delete the output of a run; after the return it is gone for all ranks. Collective.
Status clean(const BenchContext& context, Method& method, const std::string& path) {
  return context.comm.agree(method.remove(path));
}

/// First run of a method: checked and its memory measured, but not timed.
Status warm_up(const BenchContext& context, Method& method, const std::string& path, Row& row) {
  row.method = method.name();
  row.has_lanes = method.has_lanes();
  row.has_places = method.has_places();
  const MemoryMeter meter;
  Result<Run> run = run_once(context, method, path);
  if (!run.ok()) return run.status();
  row.peak_memory_bytes = meter.peak_bytes();
  context.comm.allreduce(std::span<std::uint64_t>(&row.peak_memory_bytes, 1), Reduction::max);
  row.codec_version = method.codec_version();
  Result<ReadBack> checked = method.read_back(path);
  TAILRACE_TRY(context.comm.agree(checked.status()));
  row.checked = *checked;
  combine(context.comm, row.checked);
  if (row.checked.n_bad > 0) {
    return Status(
        Code::bound_broken,
        fmt::format(
            "{} values of the output exceed their bounds, the worst error is {:.4g} x its bound",
            row.checked.n_bad, row.checked.error_over_bound));
  }
  return clean(context, method, path);
}

/// Indices of `values`, sorted by value.
std::vector<std::size_t> ranking(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

/// Seconds from the first rank's start to the last rank's end, if all ranks share a node's clock.
/// So a rank that leaves the barrier late does not shorten the run. On several nodes, whose clocks
/// differ: the slowest rank's own seconds. Collective: one allreduce.
double seconds_of_all(Comm& comm, std::chrono::steady_clock::time_point start,
                      std::chrono::steady_clock::time_point end) {
  using Seconds = std::chrono::duration<double>;
  const bool one_clock = comm.n_ranks_on_node() == comm.n_ranks();
  std::array<double, 2> latest = {Seconds(end - start).count(), 0.0};
  if (one_clock) {
    latest = {Seconds(end.time_since_epoch()).count(), -Seconds(start.time_since_epoch()).count()};
  }
  comm.allreduce(std::span<double>(latest), Reduction::max);
  return latest[0] + latest[1];
}

}  // namespace

double Row::median_s() const {
  const std::vector<std::size_t> order = ranking(seconds);
  const std::size_t n = order.size();
  return 0.5 * (seconds[order[(n - 1) / 2]] + seconds[order[n / 2]]);
}

double Row::min_s() const { return *std::min_element(seconds.begin(), seconds.end()); }
double Row::max_s() const { return *std::max_element(seconds.begin(), seconds.end()); }

Result<Run> run_once(const BenchContext& context, Method& method, const std::string& path) {
  Run run;
  context.comm.barrier();
  const auto start = std::chrono::steady_clock::now();
  const Status written = method.write(path, run.details);
  run.seconds = seconds_of_all(context.comm, start, std::chrono::steady_clock::now());
  TAILRACE_TRY(context.comm.agree(written));
  method.combine_details(context.comm, run.details);
  return run;
}

Result<std::vector<Row>> measure(const BenchContext& context,
                                 std::vector<std::unique_ptr<Method>>& methods,
                                 const WriteLimit& limit, const std::string& folder) {
  std::vector<Row> rows(methods.size());
  const std::string path = folder + "/out.h5";
  give_memory_back(true);
  for (std::size_t m = 0; m < methods.size(); ++m) {
    const Status warm = warm_up(context, *methods[m], path, rows[m]);
    if (!warm.ok()) {
      const Status cleaned = clean(context, *methods[m], path);
      return (cleaned.ok() ? warm : cleaned).within(methods[m]->name());
    }
  }
  give_memory_back(false);
  std::vector<std::vector<RunDetails>> details(methods.size());
  for (std::uint64_t r = 0; r < context.options.n_repeats; ++r) {
    for (std::size_t m = 0; m < methods.size(); ++m) {
      const std::uint64_t n_before = limit.n_bytes();
      Result<Run> run = run_once(context, *methods[m], path);
      const Status cleaned = clean(context, *methods[m], path);
      if (!run.ok()) return run.status().within(methods[m]->name());
      if (!cleaned.ok()) return cleaned;
      rows[m].seconds.push_back(run->seconds);
      rows[m].written_bytes = limit.n_bytes() - n_before;
      details[m].push_back(run->details);
    }
  }
  for (std::size_t m = 0; m < methods.size(); ++m) {
    const std::vector<std::size_t> order = ranking(rows[m].seconds);
    rows[m].details = details[m][order[(order.size() - 1) / 2]];
  }
  return rows;
}

}  // namespace tailrace::bench
