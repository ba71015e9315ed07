// Sums and maxima of a step over the ranks, and recorded iterations.

#include "write/write_report.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "core/comm.hpp"

namespace tailrace {
namespace {

/// What is added up of a field, of a rank's tally and of the report alike.
template <class Tally>
auto sums_of(Tally& tally) {
  return std::tie(tally.n_chunks, tally.n_raw_chunks, tally.encoded_bytes, tally.encode_s,
                  tally.verify_s, tally.n_overflow_chunks, tally.reserved_bytes);
}

void add_up_fields(Comm& comm, std::span<FieldState* const> active,
                   const std::vector<FieldTally>& tallies, StepReport& report) {
  std::vector<double> sums;
  std::vector<double> maxima;
  for (const FieldTally& tally : tallies) {
    std::apply([&](const auto&... own) { (sums.push_back(static_cast<double>(own)), ...); },
               sums_of(tally));
    maxima.push_back(tally.max_error);
  }
  comm.allreduce(std::span<double>(sums), Reduction::sum);
  comm.allreduce(std::span<double>(maxima), Reduction::max);
  const double* sum = sums.data();
  for (std::size_t p = 0; p < active.size(); ++p) {
    const FieldDefinition& definition = active[p]->definition;
    ResolvedField& resolved = active[p]->resolved;
    active[p]->learned.max_error = std::max(active[p]->learned.max_error, maxima[p]);
    FieldReport entry;
    entry.path = definition.path;
    entry.dtype = definition.dtype;
    entry.shape = definition.shape;
    entry.chunk_shape = resolved.chunk_shape;
    entry.codec = resolved.codec->name();
    entry.codec_version = resolved.codec->version();
    entry.layout = resolved.layout->name();
    entry.bound = definition.options.bound;
    entry.absolute_bound = resolved.absolute_bound;
    entry.pointwise_bound = resolved.pointwise_bound;
    entry.verified = resolved.verify;
    entry.max_error = maxima[p];
    entry.value_least = resolved.value_least;
    entry.value_greatest = resolved.value_greatest;
    entry.raw_bytes = definition.raw_bytes();
    std::apply(
        [&](auto&... own) { ((own = static_cast<std::decay_t<decltype(own)>>(*sum++)), ...); },
        sums_of(entry));
    entry.expected_psnr_db = resolved.expected_psnr_db;
    entry.candidates = std::exchange(resolved.candidates, {});
    entry.chosen_candidate = resolved.chosen_candidate;
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
  report.moved_bytes = done.piece_bytes;
  reduce_all(comm, Reduction::sum, hidden_s, shorter_s, report.n_writes, report.moved_bytes);
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

// --- From a step's events to the chunks of a recorded iteration.

namespace {

struct ChunkTimes {
  double encode_s = 0;
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
};

/// A rank's writes of one step.
class StepWrites {
 public:
  explicit StepWrites(std::span<const TraceEvent> events) {
    for (const TraceEvent& event : events) {
      if (event.kind != TraceEvent::Kind::write || event.n_bytes == 0) continue;
      by_address_[event.address] = event;
      n_bytes_ += static_cast<double>(event.n_bytes);
      busy_s_ += event.end_s - event.start_s;
      end_s_ = std::max(end_s_, event.end_s);
    }
  }

  /// Seconds per byte of the write that covered `address`; if this rank did not make it (another
  /// has written it, whose storage is the same), of all its writes.
  double seconds_per_byte(std::uint64_t address) const {
    auto after = by_address_.upper_bound(address);
    if (after != by_address_.begin()) {
      const TraceEvent& write = std::prev(after)->second;
      if (address < write.address + write.n_bytes) {
        return (write.end_s - write.start_s) / static_cast<double>(write.n_bytes);
      }
    }
    return n_bytes_ > 0 ? busy_s_ / n_bytes_ : 0;
  }
  bool any() const { return !by_address_.empty(); }
  double end_s() const { return end_s_; }

 private:
  std::map<std::uint64_t, TraceEvent> by_address_;
  double n_bytes_ = 0;
  double busy_s_ = 0;
  double end_s_ = 0;  ///< Of the last one.
};

}  // namespace

void IterationRecorder::add(const RecordedIteration& seen, double began_s,
                            const Ownership& ownership, const StepPlan& plan,
                            std::span<const WrittenChunk> written,
                            std::span<const TraceEvent> events) {
  std::map<std::pair<std::int32_t, std::int64_t>, double> encode_s;
  const StepWrites writes(events);
  for (const TraceEvent& event : events) {
    if (event.kind == TraceEvent::Kind::encode || event.kind == TraceEvent::Kind::verify) {
      encode_s[{event.field_index, event.chunk_index}] += event.end_s - event.start_s;
    }
  }
  std::map<ChunkKey, const WrittenChunk*> chunk_of;
  for (const WrittenChunk& chunk : written) chunk_of[{chunk.field, chunk.chunk_index}] = &chunk;

  RecordedRankIteration iteration;
  iteration.seen.obstacles = seen.obstacles;
  iteration.seen.iteration_s = seen.iteration_s;
  if (writes.any()) iteration.makespan_s = std::max(writes.end_s() - began_s, 0.0);
  for (const ChunkJob& job : ownership.jobs) {
    const auto found = chunk_of.find({job.field, job.chunk_index});
    const FieldPlan& field = plan.fields[job.field];
    const std::uint64_t encoded_bytes = found == chunk_of.end() ? 0 : found->second->encoded_bytes;
    const double per_byte =
        found == chunk_of.end() ? 0 : writes.seconds_per_byte(found->second->address);
    const auto encoding = encode_s.find(
        {static_cast<std::int32_t>(field.field_index), static_cast<std::int64_t>(job.chunk_index)});
    iteration.raw_bytes.push_back(field.chunk_bytes());
    iteration.encoded_bytes.push_back(encoded_bytes);
    iteration.seen.jobs.push_back({encoding == encode_s.end() ? 0 : encoding->second,
                                   per_byte * static_cast<double>(encoded_bytes)});
  }
  iterations_.push_back(std::move(iteration));
}

Status IterationRecorder::write(Comm& comm, const std::string& path) const {
  Recording mine;
  mine.ranks_per_node = static_cast<std::size_t>(comm.n_ranks_on_node());
  mine.ranks = {iterations_};
  const std::string text = iterations_.size() < 2 ? std::string() : recording_text(mine);
  const std::vector<Bytes> texts = comm.gather(std::as_bytes(std::span(text)), 0);
  if (!comm.is_root()) return comm.agree(Status());
  Status done;
  Recording all;
  all.ranks_per_node = mine.ranks_per_node;
  for (const Bytes& bytes : texts) {
    const std::string_view rank_text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (rank_text.empty()) continue;
    Result<Recording> parsed = parse_recording(rank_text);
    if (!parsed.ok()) {
      done = parsed.status();
      break;
    }
    all.ranks.push_back(std::move(parsed->ranks.front()));
  }
  if (done.ok() && !all.ranks.empty()) {
    std::ofstream file(path);
    file << recording_text(all);
    file.close();
    if (!file) done = Status(Code::io_error, "writing the iterations to \"" + path + "\" failed");
  }
  return comm.agree(done);
}

}  // namespace tailrace
