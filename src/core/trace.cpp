// Merges obstacles, and names the kinds of trace events.

#include "core/trace.hpp"

#include <algorithm>
#include <numeric>

namespace tailrace {

void merge_obstacles(std::vector<Obstacle>& obstacles, std::size_t n_most) {
  if (n_most == 0 || obstacles.size() <= n_most) return;
  const std::size_t n_closed = obstacles.size() - n_most;
  const auto gap_s = [&](std::size_t i) { return obstacles[i + 1].start_s - obstacles[i].end_s; };
  const auto closes_before = [&](std::size_t a, std::size_t b) {
    return gap_s(a) != gap_s(b) ? gap_s(a) < gap_s(b) : a < b;
  };
  std::vector<std::size_t> gaps(obstacles.size() - 1);
  std::iota(gaps.begin(), gaps.end(), std::size_t{0});
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(n_closed) - 1,
                   gaps.end(), closes_before);
  std::vector<bool> closed(gaps.size(), false);
  for (std::size_t i = 0; i < n_closed; ++i) closed[gaps[i]] = true;
  std::size_t n_kept = 1;
  for (std::size_t i = 1; i < obstacles.size(); ++i) {
    if (closed[i - 1]) {
      obstacles[n_kept - 1].end_s = obstacles[i].end_s;
    } else {
      obstacles[n_kept++] = obstacles[i];
    }
  }
  obstacles.resize(n_kept);
}

// --- Names of the kinds of trace events.

bool is_planned(TraceEvent::Kind kind) {
  return kind == TraceEvent::Kind::plan_encode || kind == TraceEvent::Kind::plan_write;
}

const char* trace_kind_name(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::read: return "read";
    case TraceEvent::Kind::exchange: return "exchange";
    case TraceEvent::Kind::encode: return "encode";
    case TraceEvent::Kind::verify: return "verify";
    case TraceEvent::Kind::wait: return "wait";
    case TraceEvent::Kind::write: return "write";
    case TraceEvent::Kind::index: return "index";
    case TraceEvent::Kind::commit: return "commit";
    case TraceEvent::Kind::sync: return "sync";
    case TraceEvent::Kind::plan_encode: return "plan encode";
    case TraceEvent::Kind::plan_write: return "plan write";
    case TraceEvent::Kind::application: return "application";
    case TraceEvent::Kind::end_step: return "end_step";
  }
  return "unknown";
}

}  // namespace tailrace
