// The event loop of the simulator; see the header for its states.

#include "simulate/simulate_clock.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace tailrace {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Events this close form one instant: their times are sums of the same terms in different order.
constexpr double kInstantS = 1e-12;

std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }

/// Outlook of a lane that the application does not use.
LaneOutlook free_outlook(double now_s) { return {now_s, false, infinity, false, infinity}; }

/// Remove element `index` of the list that begins at `head`; the others stay in order.
template <class T>
T take_from_head(std::vector<T>& list, std::size_t head, std::size_t index) {
  const auto first = list.begin() + static_cast<std::ptrdiff_t>(head);
  const auto taken = first + static_cast<std::ptrdiff_t>(index);
  const T value = *taken;
  std::move_backward(first, taken, taken + 1);
  return value;
}

}  // namespace

bool NodeClock::Later::operator()(const Event& a, const Event& b) const {
  return std::tie(a.time_s, a.kind, a.sequence) > std::tie(b.time_s, b.kind, b.sequence);
}

NodeClock::NodeClock(std::span<const VirtualRank> ranks, const VirtualSettings& settings,
                     const NodePlan& plan, std::vector<VirtualEvent>* events)
    : ranks_(ranks), settings_(settings), plan_(plan), events_(events) {}

bool NodeClock::encodes() const {
  return settings_.mode != VirtualMode::sync_raw && settings_.mode != VirtualMode::async_raw;
}

bool NodeClock::sync() const {
  return settings_.mode == VirtualMode::sync_raw || settings_.mode == VirtualMode::sync_encoded;
}

void NodeClock::push(double time_s, Kind kind, std::size_t rank, std::size_t index) {
  queue_.push({time_s, kind, rank, index, n_pushed_++});
}

std::vector<VirtualOutcome> NodeClock::run() {
  clocks_.resize(ranks_.size());
  outcomes_.resize(ranks_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) prepare(r);
  while (!queue_.empty()) {
    now_s_ = queue_.top().time_s;
    touched_.clear();
    while (!queue_.empty() && queue_.top().time_s <= now_s_ + kInstantS) {
      const Event event = queue_.top();
      queue_.pop();
      handle(event);
      touched_.push_back(event.rank);
    }
    // Starting work on a rank affects another rank's memory only through a later event, so one
    // round suffices.
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::size_t rank : touched_) look_for_work(rank);
  }
  for (VirtualOutcome& outcome : outcomes_) {
    outcome.total_s = std::max(outcome.application_s, outcome.makespan_s);
    outcome.exposed_s = outcome.total_s - outcome.application_s;
  }
  return std::move(outcomes_);
}

void NodeClock::prepare(std::size_t rank) {
  const VirtualRank& what = ranks_[rank];
  RankClock& clock = clocks_[rank];
  VirtualOutcome& outcome = outcomes_[rank];
  outcome.planned_s = plan_.planned_s.empty() ? 0 : plan_.planned_s[rank];
  double last_end_s = what.actual.iteration_s;
  for (const Lane lane : {Lane::main, Lane::io}) {
    for (const Obstacle& obstacle : what.actual.obstacles.of(lane)) {
      clock.begins.push_back({obstacle, lane});
      last_end_s = std::max(last_end_s, obstacle.end_s);
    }
  }
  std::stable_sort(clock.begins.begin(), clock.begins.end(), [](const Begin& a, const Begin& b) {
    return a.obstacle.start_s < b.obstacle.start_s;
  });
  outcome.computation_s = last_end_s;
  for (const std::uint64_t bytes : what.raw_bytes) {
    clock.largest_raw_bytes = std::max(clock.largest_raw_bytes, bytes);
    if (copies() && encodes()) clock.raw_held_bytes += bytes;
    if (copies() && !encodes()) clock.encoded_held_bytes += bytes;
  }
  if (encodes()) {
    clock.to_encode = plan_.encode_order[rank];
    for (const std::size_t job : clock.to_encode) {
      clock.encode_lengths_s.push_back(what.forecast.jobs[job].encode_s);
    }
  } else {
    for (const std::size_t job : plan_.encode_order[rank]) make_writable(rank, job);
  }
  if (sync()) {
    // The application's iteration has passed without output; it now waits for the lanes.
    clock.computing = clock.done = true;
    outcome.application_s = outcome.computation_s;
    push(outcome.computation_s, Kind::look, rank);
    return;
  }
  push(0, Kind::look, rank);
}

void NodeClock::handle(const Event& event) {
  switch (event.kind) {
    case Kind::obstacle_end: clocks_[event.rank].n_under_way[event.index] -= 1; break;
    case Kind::encode_end: end_encode(event.rank, event.index); break;
    case Kind::write_end: end_write(event.rank); break;
    case Kind::application: application(event.rank); break;
    case Kind::look: break;
  }
  begin_iteration_if_room(event.rank);
}

void NodeClock::look_for_work(std::size_t rank) {
  while (start_encode(rank)) {
  }
  while (start_write(rank)) {
  }
}

// --- the application
// ------------------------------------------------------------------------------

/// Start the iteration once memory has room for the copied values and for encoding the largest
/// chunk.
void NodeClock::begin_iteration_if_room(std::size_t rank) {
  RankClock& clock = clocks_[rank];
  if (clock.computing) return;
  if (settings_.memory_bytes > 0 && settings_.hold_copy) {
    const std::uint64_t room = encodes() ? clock.largest_raw_bytes : 0;
    const std::uint64_t held = clock.raw_held_bytes + clock.encoded_held_bytes;
    if (held > 0 && held + room > settings_.memory_bytes) return;
  }
  clock.computing = true;
  clock.origin_s = now_s_;
  outcomes_[rank].back_pressure_s = now_s_;
  note_memory(rank);
  schedule_application(rank);
}

void NodeClock::schedule_application(std::size_t rank) {
  const RankClock& clock = clocks_[rank];
  const double next_s = clock.next_begin < clock.begins.size()
                            ? clock.begins[clock.next_begin].obstacle.start_s
                            : outcomes_[rank].computation_s;
  push(std::max(now_s_, clock.origin_s + next_s + clock.late_s), Kind::application, rank);
}

bool NodeClock::lane_runs(const RankClock& clock, Lane lane) const {
  if (lane == Lane::io) return settings_.waits_for_writes && !clock.writing.empty();
  // Encode threads on dedicated cores do not delay the application.
  return in_situ() && clock.n_encoding > 0;
}

/// Process the application's next start: an obstacle, or the end of its iteration.
void NodeClock::application(std::size_t rank) {
  RankClock& clock = clocks_[rank];
  if (clock.next_begin == clock.begins.size()) {
    clock.done = true;
    outcomes_[rank].application_s = now_s_;
    return;
  }
  if (lane_runs(clock, clock.begins[clock.next_begin].lane)) {
    clock.waits_since_s = now_s_;
    return;
  }
  begin_obstacle(rank, 0);
}

void NodeClock::begin_obstacle(std::size_t rank, double delay_s) {
  RankClock& clock = clocks_[rank];
  const Begin& begin = clock.begins[clock.next_begin++];
  const std::size_t lane = index_of(begin.lane);
  clock.late_s += delay_s;
  clock.n_begun[lane] += 1;
  clock.n_under_way[lane] += 1;
  if (delay_s > kLaneRoundingS) {
    VirtualDelays& delays = outcomes_[rank].delays[lane];
    delays.n_delayed += 1;
    delays.total_s += delay_s;
    delays.longest_s = std::max(delays.longest_s, delay_s);
  }
  const double end_s = now_s_ + begin.obstacle.length_s();
  if (events_ != nullptr) {
    using Did = VirtualEvent::Kind;
    if (delay_s > kLaneRoundingS) {
      events_->push_back({Did::delay, begin.lane, rank, {}, 0, now_s_ - delay_s, now_s_});
    }
    events_->push_back({Did::obstacle, begin.lane, rank, {}, 0, now_s_, end_s});
  }
  push(end_s, Kind::obstacle_end, rank, lane);
  schedule_application(rank);
}

/// Start the obstacle, if any, that waited for the operation that has ended on this lane.
void NodeClock::release(std::size_t rank, Lane lane) {
  RankClock& clock = clocks_[rank];
  if (!clock.waits_since_s || clock.begins[clock.next_begin].lane != lane) return;
  const double delay_s = now_s_ - *clock.waits_since_s;
  clock.waits_since_s.reset();
  begin_obstacle(rank, delay_s);
}

// --- the lanes
// ------------------------------------------------------------------------------------

LaneOutlook NodeClock::outlook(std::size_t rank, Lane lane) const {
  const RankClock& clock = clocks_[rank];
  const double now_s = now_s_ - clock.origin_s;
  if (!clock.computing || clock.done) return free_outlook(now_s);
  const bool blocked = clock.n_under_way[index_of(lane)] > 0;
  const VirtualRank& what = ranks_[rank];
  if (in_situ()) {
    // Convert to the forecast's clock; the application is late by the time it waited for our
    // operations.
    const double forecast_s = now_s - (settings_.shift_forecast ? clock.late_s : 0);
    return lane_outlook(what.forecast.obstacles.of(lane), clock.n_begun[index_of(lane)], blocked,
                        forecast_s, lane == Lane::main ? what.main_margin_s : what.io_margin_s);
  }
  LaneOutlook outlook = free_outlook(now_s);
  outlook.blocked = lane == Lane::io && blocked;
  return outlook;
}

/// Look again if an expected obstacle is overdue; nothing could be started before it.
void NodeClock::look_again_when_overdue(std::size_t rank, Lane lane, const LaneOutlook& outlook) {
  if (outlook.blocked || outlook.overdue || outlook.overdue_from_s == infinity) return;
  RankClock& clock = clocks_[rank];
  // The outlook's times may be on the forecast's clock, which is behind.
  const double look_s = now_s_ + (outlook.overdue_from_s - outlook.now_s) + kLaneRoundingS;
  if (std::abs(clock.look_s[index_of(lane)] - look_s) < kLaneRoundingS / 2) return;
  clock.look_s[index_of(lane)] = look_s;
  push(look_s, Kind::look, rank);
}

bool NodeClock::has_memory_for(std::size_t rank, std::size_t job) const {
  if (settings_.memory_bytes == 0 || ranks_[rank].raw_bytes.empty()) return true;
  const RankClock& clock = clocks_[rank];
  // Until the application continues, values are read in place and no copies count.
  const std::uint64_t held = clock.computing ? clock.raw_held_bytes : 0;
  return held + clock.encoded_held_bytes + ranks_[rank].raw_bytes[job] <= settings_.memory_bytes;
}

void NodeClock::note_memory(std::size_t rank) {
  const RankClock& clock = clocks_[rank];
  std::uint64_t& peak = outcomes_[rank].peak_bytes;
  peak = std::max(peak, (clock.computing ? clock.raw_held_bytes : 0) + clock.encoded_held_bytes);
}

bool NodeClock::start_encode(std::size_t rank) {
  RankClock& clock = clocks_[rank];
  const std::size_t n_lanes = in_situ() ? 1 : settings_.n_threads;
  if (clock.encode_head == clock.to_encode.size() || clock.n_encoding >= n_lanes) return false;
  if (in_situ() && clock.waits_since_s && clock.begins[clock.next_begin].lane == Lane::main) {
    return false;
  }
  const std::span<const double> lengths =
      std::span(clock.encode_lengths_s).subspan(clock.encode_head);
  const LaneOutlook view = in_situ() ? outlook(rank, Lane::main) : free_outlook(now_s_);
  const std::optional<std::size_t> picked = pick_operation(lengths, view);
  if (!picked) {
    look_again_when_overdue(rank, Lane::main, view);
    return false;
  }
  const std::size_t job = clock.to_encode[clock.encode_head + *picked];
  if (!has_memory_for(rank, job)) return false;
  take_from_head(clock.to_encode, clock.encode_head, *picked);
  take_from_head(clock.encode_lengths_s, clock.encode_head, *picked);
  clock.encode_head += 1;
  clock.n_encoding += 1;
  const VirtualRank& what = ranks_[rank];
  if (!what.raw_bytes.empty()) clock.encoded_held_bytes += what.raw_bytes[job];  // Worst case.
  note_memory(rank);
  const double length_s = what.actual.jobs[job].encode_s;
  outcomes_[rank].encode_s += length_s;
  if (events_ != nullptr) {
    const std::uint64_t n_bytes = what.raw_bytes.empty() ? 0 : what.raw_bytes[job];
    events_->push_back({VirtualEvent::Kind::encode,
                        Lane::main,
                        rank,
                        {{rank, job}},
                        n_bytes,
                        now_s_,
                        now_s_ + length_s});
  }
  push(now_s_ + length_s, Kind::encode_end, rank, job);
  return true;
}

void NodeClock::end_encode(std::size_t rank, std::size_t job) {
  RankClock& clock = clocks_[rank];
  clock.n_encoding -= 1;
  outcomes_[rank].n_encoded += 1;
  const VirtualRank& what = ranks_[rank];
  if (!what.raw_bytes.empty()) {
    clock.encoded_held_bytes += what.encoded_bytes[job];
    clock.encoded_held_bytes -= what.raw_bytes[job];
    if (copies()) clock.raw_held_bytes -= what.raw_bytes[job];
  }
  make_writable(rank, job);
  if (in_situ()) release(rank, Lane::main);
}

void NodeClock::make_writable(std::size_t owner, std::size_t job) {
  const std::size_t writer = plan_.writer[owner][job];
  RankClock& clock = clocks_[writer];
  const std::size_t position =
      plan_.position.empty() ? clock.n_arrived++ : plan_.position[owner][job];
  const auto before = [](std::size_t at, const Waiting& chunk) { return at < chunk.position; };
  const auto at = std::upper_bound(clock.waiting.begin(), clock.waiting.end(), position, before);
  const Waiting chunk{position, owner, job};
  clock.write_lengths_s.insert(clock.write_lengths_s.begin() + (at - clock.waiting.begin()),
                               expected_write_s({&chunk, 1}));
  clock.waiting.insert(at, chunk);
  if (writer != owner) touched_.push_back(writer);
}

std::uint64_t NodeClock::encoded_bytes(const Waiting& chunk) const {
  return knows_bytes(chunk.owner) ? ranks_[chunk.owner].encoded_bytes[chunk.job] : 0;
}

/// Write time that the lane expects from the encoded sizes, which are known.
double NodeClock::expected_write_s(std::span<const Waiting> chunks) const {
  double n_bytes = 0;
  double alone_s = 0;
  for (const Waiting& chunk : chunks) {
    n_bytes += static_cast<double>(encoded_bytes(chunk));
    alone_s += ranks_[chunk.owner].forecast.jobs[chunk.job].write_s;
  }
  return settings_.write_s && n_bytes > 0 ? settings_.write_s(n_bytes) : alone_s;
}

/// Actual write time: the sum of the chunks' own times, reduced by the gain of one combined write.
double NodeClock::actual_write_s(std::span<const Waiting> chunks) const {
  double alone_s = 0;
  for (const Waiting& chunk : chunks) {
    alone_s += ranks_[chunk.owner].actual.jobs[chunk.job].write_s;
  }
  if (!settings_.write_s || chunks.size() == 1) return alone_s;
  double n_bytes = 0;
  double expected_alone_s = 0;
  for (const Waiting& chunk : chunks) {
    const auto bytes = static_cast<double>(encoded_bytes(chunk));
    n_bytes += bytes;
    if (bytes > 0) expected_alone_s += settings_.write_s(bytes);
  }
  if (expected_alone_s <= 0) return alone_s;
  return alone_s * settings_.write_s(n_bytes) / expected_alone_s;
}

/// Take the first chunk and the following ones that fit the buffer and the free time, like the I/O
/// lane.
std::vector<NodeClock::Waiting> NodeClock::take_writes(RankClock& clock, std::size_t first,
                                                       const LaneOutlook& view) {
  std::size_t end = first + 1;
  std::uint64_t n_bytes = encoded_bytes(clock.waiting[first]);
  const double room_s = view.free_until_s - view.now_s + kLaneRoundingS;
  while (end < clock.waiting.size() && knows_bytes(clock.waiting[end].owner) && !view.overdue) {
    n_bytes += encoded_bytes(clock.waiting[end]);
    if (n_bytes > settings_.buffer_bytes) break;
    if (view.free_until_s < infinity &&
        expected_write_s(std::span(clock.waiting).subspan(first, end + 1 - first)) > room_s) {
      break;
    }
    ++end;
  }
  const auto from = clock.waiting.begin() + static_cast<std::ptrdiff_t>(first);
  const auto to = clock.waiting.begin() + static_cast<std::ptrdiff_t>(end);
  std::vector<Waiting> taken(from, to);
  clock.waiting.erase(from, to);
  clock.write_lengths_s.erase(clock.write_lengths_s.begin() + static_cast<std::ptrdiff_t>(first),
                              clock.write_lengths_s.begin() + static_cast<std::ptrdiff_t>(end));
  return taken;
}

bool NodeClock::start_write(std::size_t rank) {
  RankClock& clock = clocks_[rank];
  if (clock.waiting.empty() || !clock.writing.empty()) return false;
  if (clock.waits_since_s && clock.begins[clock.next_begin].lane == Lane::io) return false;
  const LaneOutlook view = outlook(rank, Lane::io);
  const std::optional<std::size_t> picked = pick_operation(clock.write_lengths_s, view);
  if (!picked) {
    look_again_when_overdue(rank, Lane::io, view);
    return false;
  }
  clock.writing = take_writes(clock, *picked, view);
  const double length_s = actual_write_s(clock.writing);
  VirtualOutcome& outcome = outcomes_[rank];
  outcome.write_s += length_s;
  outcome.n_writes += 1;
  if (events_ != nullptr) {
    VirtualEvent event{VirtualEvent::Kind::write, Lane::io, rank, {}, 0, now_s_, now_s_ + length_s};
    for (const Waiting& chunk : clock.writing) {
      event.jobs.push_back({chunk.owner, chunk.job});
      event.n_bytes += encoded_bytes(chunk);
    }
    events_->push_back(std::move(event));
  }
  push(now_s_ + length_s, Kind::write_end, rank);
  return true;
}

void NodeClock::end_write(std::size_t rank) {
  RankClock& clock = clocks_[rank];
  VirtualOutcome& outcome = outcomes_[rank];
  for (const Waiting& chunk : clock.writing) {
    const std::uint64_t n_bytes = encoded_bytes(chunk);
    RankClock& owner = clocks_[chunk.owner];
    if (encodes() || copies()) owner.encoded_held_bytes -= n_bytes;
    outcome.n_written += 1;
    outcome.written_bytes += n_bytes;
    outcomes_[chunk.owner].makespan_s = now_s_;
    if (chunk.owner != rank) {
      touched_.push_back(chunk.owner);
      begin_iteration_if_room(chunk.owner);
    }
  }
  outcome.makespan_s = now_s_;
  clock.writing.clear();
  release(rank, Lane::io);
}

}  // namespace tailrace
