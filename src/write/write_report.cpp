// Sums and maxima of a step over the ranks.

#include "write/write_report.hpp"

#include <algorithm>
#include <cstring>

#include "core/reduce_all.hpp"

namespace tailrace {
namespace {

void add_up_fields(Comm& comm, std::span<FieldState* const> active,
                   const std::vector<FieldTally>& tallies, StepReport& report) {
  std::vector<double> sums;
  std::vector<double> maxima;
  for (const FieldTally& tally : tallies) {
    sums.insert(
        sums.end(),
        {static_cast<double>(tally.n_chunks), static_cast<double>(tally.n_raw_chunks),
         static_cast<double>(tally.encoded_bytes), tally.encode_s, tally.verify_s,
         static_cast<double>(tally.n_overflow_chunks), static_cast<double>(tally.reserved_bytes)});
    maxima.push_back(tally.max_error);
  }
  comm.allreduce(std::span<double>(sums), Reduction::sum);
  comm.allreduce(std::span<double>(maxima), Reduction::max);
  for (std::size_t p = 0; p < active.size(); ++p) {
    FieldState& field = *active[p];
    const double* sum = sums.data() + 7 * p;
    field.max_error = std::max(field.max_error, maxima[p]);
    FieldReport entry;
    entry.path = field.definition.path;
    entry.dtype = field.definition.dtype;
    entry.shape = field.definition.shape;
    entry.chunk_shape = field.chunk_shape;
    entry.codec = field.codec->name();
    entry.codec_version = field.codec->version();
    entry.layout = field.layout->name();
    entry.bound = field.definition.options.bound;
    entry.absolute_bound = field.absolute_bound;
    entry.pointwise_bound = field.pointwise_bound;
    entry.verified = field.verify;
    entry.max_error = maxima[p];
    entry.value_least = field.value_least;
    entry.value_greatest = field.value_greatest;
    entry.n_chunks = static_cast<std::uint64_t>(sum[0]);
    entry.n_raw_chunks = static_cast<std::uint64_t>(sum[1]);
    entry.raw_bytes = field.raw_bytes();
    entry.encoded_bytes = static_cast<std::uint64_t>(sum[2]);
    entry.encode_s = sum[3];
    entry.verify_s = sum[4];
    entry.n_overflow_chunks = static_cast<std::uint64_t>(sum[5]);
    entry.reserved_bytes = static_cast<std::uint64_t>(sum[6]);
    entry.expected_psnr_db = field.expected_psnr_db;
    entry.candidates = std::move(field.candidates);
    entry.chosen_candidate = field.chosen_candidate;
    field.candidates.clear();
    report.raw_bytes += entry.raw_bytes;
    report.encoded_bytes += entry.encoded_bytes;
    report.n_overflow_chunks += entry.n_overflow_chunks;
    report.reserved_bytes += entry.reserved_bytes;
    report.fields.push_back(std::move(entry));
  }
}

}  // namespace

void add_up_step(Comm& comm, std::span<FieldState* const> active, const ExecutorReport& done,
                 double sync_s, StepReport& report) {
  add_up_fields(comm, active, done.tallies, report);
  report.read_s = done.read_s;
  report.encode_s = done.encode_s;
  report.write_s = done.write_s;
  report.wait_s = done.wait_s;
  report.makespan_s = done.makespan_s;
  report.sync_s = sync_s;
  report.peak_memory_bytes = done.peak_memory_bytes;
  reduce_all(comm, Reduction::max, report.read_s, report.encode_s, report.write_s, report.wait_s,
             report.makespan_s, report.sync_s, report.peak_memory_bytes, report.choose_s);
  double hidden_s = done.hidden_s;
  double shorter_s = std::min(done.encode_s, done.write_s);
  report.n_writes = done.n_writes;
  report.piece_bytes = done.piece_bytes;
  reduce_all(comm, Reduction::sum, hidden_s, shorter_s, report.n_writes, report.piece_bytes);
  report.hidden_share = shorter_s > 0 ? hidden_s / shorter_s : 1;
}

void add_up_space(Tail& tail, std::uint64_t step_start, StepReport& report) {
  const std::uint64_t taken = tail.end() - step_start;
  // Between nodes a step may live on the rest of an extent that the step before has paid for.
  report.slack_bytes = taken > report.encoded_bytes ? taken - report.encoded_bytes : 0;
}

std::vector<TraceEvent> gather_events(Comm& comm, Trace& trace) {
  const std::vector<TraceEvent> mine = trace.take();
  const std::vector<Bytes> all = comm.gather(std::as_bytes(std::span(mine)), 0);
  std::vector<TraceEvent> events;
  for (const Bytes& bytes : all) {
    const std::size_t first = events.size();
    events.resize(first + bytes.size() / sizeof(TraceEvent));
    if (!bytes.empty()) std::memcpy(&events[first], bytes.data(), bytes.size());
  }
  return events;
}

}  // namespace tailrace
