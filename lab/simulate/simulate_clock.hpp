// NodeClock: the event loop of simulate_node(), which finds the next event on any lane of a node.
//
// Internal to the simulator. A rank is in one of three states, and so is each lane:
//
//   rank:  handing over -> computing -> done    (sync modes begin at done)
//   lane:  free -> operation -> free,  free -> obstacle -> free
//
// An obstacle that is due while an operation runs waits for its end, and so does the application.
// Within one instant, ends are processed first, then the application's starts, and only then the
// lanes look for work. So an operation never starts at the instant at which an obstacle starts.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "schedule/lane_rule.hpp"
#include "simulate/simulate_node.hpp"

namespace tailrace {

/// Assignment and order of the operations of a node, by rank and job.
struct NodePlan {
  std::vector<std::vector<std::size_t>> encode_order;  ///< Indexed by rank.
  std::vector<std::vector<std::size_t>> writer;        ///< Writing rank, by rank and job.
  /// Position in the writer's order, indexed by rank and job. Empty: writes go in order of arrival.
  std::vector<std::vector<std::size_t>> position;
  std::vector<double> planned_s;  ///< Makespan of the plan, indexed by rank.
};

class NodeClock {
 public:
  /// @param events  may be null. All arguments must outlive the object.
  NodeClock(std::span<const VirtualRank> ranks, const VirtualSettings& settings,
            const NodePlan& plan, std::vector<VirtualEvent>* events);

  /// Run the loop; call it once. Outcomes are indexed by rank.
  std::vector<VirtualOutcome> run();

 private:
  enum class Kind : std::uint8_t { obstacle_end, encode_end, write_end, application, look };
  struct Event {
    double time_s = 0;
    Kind kind = Kind::look;
    std::size_t rank = 0;
    std::size_t index = 0;  ///< obstacle_end: the lane; encode_end: the job.
    std::uint64_t sequence = 0;
  };
  /// True if `a` comes after `b`; the top of the queue is the earliest event.
  struct Later {
    bool operator()(const Event& a, const Event& b) const;
  };
  struct Begin {
    Obstacle obstacle;
    Lane lane = Lane::main;
  };
  /// Encoded chunk that waits for its write.
  struct Waiting {
    std::size_t position = 0;
    std::size_t owner = 0;
    std::size_t job = 0;
  };
  struct RankClock {
    std::vector<Begin> begins;  ///< The application's obstacles on both lanes, by start.
    std::size_t next_begin = 0;
    double origin_s = 0;  ///< Start of the application's iteration.
    double late_s = 0;    ///< Delay of the application, compared to a run without output.
    bool computing = false;
    bool done = false;
    std::array<std::size_t, 2> n_begun{};
    std::array<std::size_t, 2> n_under_way{};
    std::optional<double> waits_since_s;   ///< Since then an obstacle is due, its lane busy.
    std::array<double, 2> look_s{-1, -1};  ///< Time of the last requested look.

    std::vector<std::size_t> to_encode;  ///< Jobs in the plan's order, from `encode_head` on.
    std::vector<double> encode_lengths_s;
    std::size_t encode_head = 0;
    std::size_t n_encoding = 0;
    std::vector<Waiting> waiting;  ///< Sorted by position.
    std::vector<double> write_lengths_s;
    std::vector<Waiting> writing;
    std::size_t n_arrived = 0;

    std::uint64_t raw_held_bytes = 0;
    std::uint64_t encoded_held_bytes = 0;
    std::uint64_t largest_raw_bytes = 0;
  };

  bool encodes() const;
  bool sync() const;
  /// True if values are copied at the hand-over; the copies count until they are encoded.
  bool copies() const { return settings_.hold_copy && !sync(); }
  bool in_situ() const { return settings_.mode == VirtualMode::in_situ; }
  void prepare(std::size_t rank);
  void push(double time_s, Kind kind, std::size_t rank, std::size_t index = 0);
  void handle(const Event& event);
  void look_for_work(std::size_t rank);

  // Application
  void begin_iteration_if_room(std::size_t rank);
  void application(std::size_t rank);
  void begin_obstacle(std::size_t rank, double delay_s);
  void schedule_application(std::size_t rank);
  bool lane_runs(const RankClock& clock, Lane lane) const;
  void release(std::size_t rank, Lane lane);

  // Lanes
  LaneOutlook outlook(std::size_t rank, Lane lane) const;
  void look_again_when_overdue(std::size_t rank, Lane lane, const LaneOutlook& outlook);
  bool start_encode(std::size_t rank);
  void end_encode(std::size_t rank, std::size_t job);
  bool start_write(std::size_t rank);
  void end_write(std::size_t rank);
  void make_writable(std::size_t owner, std::size_t job);
  std::vector<Waiting> take_writes(RankClock& clock, std::size_t first, const LaneOutlook& outlook);

  // Costs
  bool knows_bytes(std::size_t rank) const { return !ranks_[rank].encoded_bytes.empty(); }
  std::uint64_t encoded_bytes(const Waiting& chunk) const;
  double expected_write_s(std::span<const Waiting> chunks) const;
  double actual_write_s(std::span<const Waiting> chunks) const;
  bool has_memory_for(std::size_t rank, std::size_t job) const;
  void note_memory(std::size_t rank);

  std::span<const VirtualRank> ranks_;
  const VirtualSettings& settings_;
  const NodePlan& plan_;
  std::vector<VirtualEvent>* events_;
  std::vector<RankClock> clocks_;
  std::vector<VirtualOutcome> outcomes_;
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::vector<std::size_t> touched_;  ///< Ranks whose lanes may be able to start something.
  double now_s_ = 0;
  std::uint64_t n_pushed_ = 0;
};

}  // namespace tailrace
