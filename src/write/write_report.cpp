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
#include "core/file_limit.hpp"

namespace tailrace {
namespace {

/// References to the numbers of a field that are summed, of a rank's tally and of the report.
template <class Tally>
auto sums_of(Tally& tally) {
  return std::tie(tally.n_chunks, tally.n_raw_chunks, tally.encoded_bytes, tally.encode_s,
                  tally.verify_s, tally.n_overflow_chunks, tally.reserved_bytes);
}

FieldReport report_of(const FieldState& field, const FieldTally& tally) {
  const FieldDefinition& definition = field.definition;
  const ResolvedField& resolved = field.resolved;
  FieldReport entry;
  entry.path = definition.path;
  entry.dtype = definition.dtype;
  entry.shape = definition.shape;
  entry.chunk_shape = resolved.chunk_shape;
  if (definition.holds_bytes()) {
    entry.other_type = definition.like->type_text;
    entry.shape.pop_back();
    entry.chunk_shape.pop_back();
  }
  entry.codec = resolved.codec->name();
  entry.codec_version = resolved.codec->version();
  entry.layout = resolved.layout->name();
  entry.bound = definition.options.bound;
  entry.absolute_bound = resolved.absolute_bound;
  entry.pointwise_bound = resolved.pointwise_bound;
  entry.verified = resolved.verify;
  entry.max_error = tally.max_error;
  entry.value_least = resolved.value_least;
  entry.value_greatest = resolved.value_greatest;
  entry.raw_bytes = definition.raw_bytes();
  sums_of(entry) = sums_of(tally);
  entry.expected_psnr_db = resolved.expected_psnr_db;
  entry.chosen_candidate = resolved.chosen_candidate;
  return entry;
}

}  // namespace

StepSums::StepSums(std::span<FieldState* const> active, const ExecutorReport& done, double sync_s,
                   StepReport& report)
    : active_(active),
      report_(report),
      hidden_s_(done.hidden_s),
      shorter_s_(std::min(done.encode_s, done.write_s)) {
  for (std::size_t p = 0; p < active.size(); ++p) {
    report.fields.push_back(report_of(*active[p], done.tallies[p]));
  }
  for (FieldReport& entry : report.fields) {
    std::apply([&](auto&... own) { numbers.add(Reduction::sum, own...); }, sums_of(entry));
    numbers.add(Reduction::max, entry.max_error);
  }
  report.read_s = done.read_s;
  report.encode_s = done.encode_s;
  report.write_s = done.write_s;
  report.wait_s = done.wait_s;
  report.makespan_s = done.makespan_s;
  report.sync_s = sync_s;
  report.peak_memory_bytes = done.peak_memory_bytes;
  report.idle_encode_s = done.encode_here_s;
  numbers.add(Reduction::max, report.read_s, report.encode_s, report.write_s, report.wait_s,
              report.makespan_s, report.sync_s, report.peak_memory_bytes, report.choose_s,
              report.exposed_s, report.handover_s, report.backpressure_s, report.idle_encode_s,
              report.largest_delay_s, report.step_s);
  report.n_writes = done.n_writes;
  report.moved_bytes = done.piece_bytes;
  report.n_moved_writes = done.n_moved_writes;
  numbers.add(Reduction::sum, hidden_s_, shorter_s_, report.n_writes, report.moved_bytes,
              report.n_delayed_obstacles, report.n_moved_writes);
  of_root.add(Reduction::max, report.index_s, report.commit_s, report.file_bytes, taken_bytes,
              publish_s);
}

void StepSums::add_forecasts(const StepPlan& plan, std::vector<ForecastSums> forecasts) {
  forecasts_ = std::move(forecasts);
  for (ForecastSums& sums : forecasts_) {
    numbers.add(Reduction::sum, sums.predicted_bytes, sums.size_errors);
  }
  report_.predict_s = plan.predict_s;
  report_.predicted_makespan_s = 0;
  for (const PlannedJob& job : plan.timeline) {
    report_.predicted_makespan_s = std::max(report_.predicted_makespan_s, job.write_end_s);
  }
  numbers.add(Reduction::max, report_.predict_s, report_.predicted_makespan_s);
}

void StepSums::keep_max_errors() const {
  for (std::size_t p = 0; p < active_.size(); ++p) {
    double& kept = active_[p]->learned.max_error;
    kept = std::max(kept, report_.fields[p].max_error);
  }
}

void StepSums::finish() {
  for (std::size_t p = 0; p < active_.size(); ++p) {
    FieldReport& entry = report_.fields[p];
    entry.candidates = std::exchange(active_[p]->resolved.candidates, {});
    if (!forecasts_.empty()) {
      entry.predicted_bytes = static_cast<std::uint64_t>(forecasts_[p].predicted_bytes);
      entry.mean_size_error = forecasts_[p].size_errors /
                              static_cast<double>(std::max<std::uint64_t>(entry.n_chunks, 1));
    }
    report_.raw_bytes += entry.raw_bytes;
    report_.encoded_bytes += entry.encoded_bytes;
    report_.predicted_bytes += entry.predicted_bytes;
    report_.n_overflow_chunks += entry.n_overflow_chunks;
    report_.reserved_bytes += entry.reserved_bytes;
  }
  report_.hidden_share = shorter_s_ > 0 ? hidden_s_ / shorter_s_ : 1;
  // Between nodes a step may use the rest of an extent that the previous step has claimed.
  report_.slack_bytes = taken_bytes - std::min(taken_bytes, report_.encoded_bytes);
  report_.exposed_s += publish_s;
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

/// Writes of one rank in one step.
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

  /// Seconds per byte of the write that covered `address`. If another rank has made that write, the
  /// mean of this rank's writes, since the storage is the same.
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
  double end_s_ = 0;  ///< End of the last write.
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
    const FileLimitScope scope;
    std::ofstream file(path);
    file << recording_text(all);
    file.close();
    if (!file) done = Status(Code::io_error, "writing the iterations to \"" + path + "\" failed");
  }
  return comm.agree(done);
}

}  // namespace tailrace
