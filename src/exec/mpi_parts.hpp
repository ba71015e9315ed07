// Parts of MpiComm: waiting, the pool of communicators and windows, the shared tail, and memory
// shared by a node.

#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "exec/fine_timers.hpp"

namespace tailrace {

// --- Waiting for MPI without taking the core from the rank that we wait for.
//
// Polls for as long as the shortest nap really takes, then naps for an eighth of the time waited so
// far. So a long wait ends a twelfth of its length late on average, and ranks that arrive together
// lose nothing. Measured with 1,000 collective writes of 400 bytes on two ranks: 71 ms with a few
// polls, 15 ms with this scheme, 14 ms with MPI's own waiting. With more ranks than cores it was
// not slower.
//
// No sched_yield: if another program wants the core, a yield gives it a complete time slice. 4 ms
// per collective were measured. A sleeper is woken immediately.

/// Sleeps while waiting; one object per wait.
class Nap {
 public:
  explicit Nap(std::chrono::microseconds longest) : longest_(longest) {}
  void take() {
    const auto now = std::chrono::steady_clock::now();
    if (!start_) start_ = now;
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - *start_);
    if (waited < kPolling) return;
    if (!fine_) fine_.emplace();
    std::this_thread::sleep_for(std::clamp(waited / 8, kShortestNap, longest_));
  }

 private:
  static constexpr std::chrono::microseconds kPolling{40};
  static constexpr std::chrono::microseconds kShortestNap{10};
  std::optional<std::chrono::steady_clock::time_point> start_;
  std::optional<FineTimers> fine_;
  std::chrono::microseconds longest_;
};

// Used while other ranks work: stay out of their way.
inline constexpr std::chrono::microseconds kLongNap = kTailServiceInterval;
inline constexpr std::chrono::microseconds kShortNap{20};  // Used while data arrives.

/// Tails that a main thread serves while it waits for MPI: those of its communicator that span
/// several nodes. The ranks that it waits for may themselves wait for an address.
using Errands = std::vector<Tail*>;

inline void run_errands(const Errands& errands) {
  for (Tail* tail : errands) tail->service();
}

inline void wait_politely(MPI_Request* request, std::chrono::microseconds longest = kLongNap,
                          const Errands& errands = {}) {
  Nap nap(longest);
  int complete = 0;
  while (true) {
    MPI_Test(request, &complete, MPI_STATUS_IGNORE);
    if (complete != 0) return;
    run_errands(errands);
    nap.take();
  }
}

inline void barrier_politely(MPI_Comm comm, const Errands& errands = {}) {
  int n_ranks = 0;
  MPI_Comm_size(comm, &n_ranks);
  if (n_ranks == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  wait_politely(&request, kLongNap, errands);
}

// --- The pool of a parent communicator.
//
// Communicators and windows take milliseconds to make, longer than a small file. So a parent keeps
// those of its closed files, and the next file uses them again. All ranks make and free them
// together, but a rank that gives up is on its own: it leaves its parts to the pool, too.
//
// Invariant 1: all ranks have the same list of parts, since they make and free parts together.
// Invariant 2: parts are used again or freed once all ranks have left them, with no call or message
// in flight on any rank. The ranks agree on that in the first reduction of the next MpiComm.
// Invariant 3: a rank leaves parts without waiting for another rank.
// Parts that cannot be freed are left to MPI_Finalize.

inline constexpr int kPostTag = 7003;  // MpiComm uses the tags 7001 to 7004.

/// MPI objects and pending messages of one MpiComm.
struct MpiParts {
  struct Window {
    std::uint64_t number = 0;
    MPI_Win window = MPI_WIN_NULL;     ///< Locked by MPI_Win_lock_all.
    MPI_Comm leaders = MPI_COMM_NULL;  ///< Used by a tail: the first rank of each node.
  };
  struct Post {
    Bytes payload;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// Message of a tail: step number and a value.
  using Letter = std::array<std::uint64_t, 2>;
  using Letters = std::list<std::pair<Letter, MPI_Request>>;
  enum class Use : std::uint8_t { open, closed, given_up };

  /// Add an entry for a window. All ranks add them in the same order.
  std::list<Window>::iterator add_window() {
    return windows.insert(windows.end(), Window{n_windows_made++});
  }
  /// Free a window. Collective over the node.
  void free_window(std::list<Window>::iterator window);

  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm node_comm = MPI_COMM_NULL;
  std::list<Window> windows;
  std::uint64_t n_windows_made = 0;
  /// Window of the first tail of each MpiComm that uses the parts, kept between them.
  std::list<Window>::iterator tail_window = windows.end();
  bool tail_is_free = true;  ///< This MpiComm has had no tail yet.
  std::list<Post> posts;     ///< Posts in flight.
  Letters letters;           ///< Letters in flight of a tail that has ended.
  std::int64_t n_posted = 0;
  std::int64_t n_received = 0;  ///< Posts of other ranks received here.
  int n_calls = 0;              ///< Calls in progress; a call that throws stays counted.
  int exchange_parity = 0;
  std::atomic<bool> pool_has_ended{false};  ///< The windows are freed with their owners.
  /// Stored last by the thread that leaves the parts, and read first by the thread that takes them.
  std::atomic<Use> use{Use::open};
};

/// Free the communicators of parts without windows. Collective.
void free_communicators(MpiParts& parts);

/// Parts that were made of one parent communicator, and a communicator of the pool itself.
class MpiPool {
 public:
  /// Return the pool of `parent`. Collective over it. Cost: nothing if it exists, else two
  /// communicators and a broadcast.
  /// @param lasting  false: the caller frees its handle at once. Then communicators of the same
  /// ranks share a pool until MPI_Finalize, and the program must not use them concurrently.
  /// Otherwise the pool ends when the program frees `parent`, which then waits for its ranks.
  static std::shared_ptr<MpiPool> of(MPI_Comm parent, bool lasting);

  explicit MpiPool(MPI_Comm parent);
  ~MpiPool();
  MpiPool(const MpiPool&) = delete;
  MpiPool& operator=(const MpiPool&) = delete;

  /// Return this rank's numbers for the choice of parts; on all ranks equally many.
  std::vector<MixedNumber> offers();
  /// Choose parts by the reduced offers, and free those that are not needed. Collective. Cost:
  /// nothing if parts are left, else two communicators.
  std::shared_ptr<MpiParts> choose(std::span<const MixedNumber> agreed);
  /// Count one more MpiComm, which calls leave() at its end. Not collective.
  void enter() { ++n_users_; }
  /// Leave parts, or null if none were chosen. Not collective.
  void leave(const std::shared_ptr<MpiParts>& parts, bool given_up);
  /// Free all parts that all ranks have left. Parts still in use are freed when they are left.
  /// Collective. Cost: one allreduce.
  void end();
  bool ended() const { return ended_.load(); }

  /// Communicators for the calls of an MpiComm that has no parts yet.
  MPI_Comm comm() const { return comm_; }
  MPI_Comm node_comm() const { return node_comm_; }
  /// Number of ranks that share this rank's cores, whatever nodes are pretended.
  int n_ranks_on_host() const { return n_ranks_on_host_; }
  MPI_Datatype mixed_number() const { return mixed_number_; }
  MPI_Op merge_numbers() const { return merge_numbers_; }

 private:
  /// Parts that are examined at once: the newest. Older ones wait until newer ones are freed.
  static constexpr std::size_t kOfferedMax = 8;
  /// Closed parts that are kept, in addition to those in use: two files are often open at a time.
  static constexpr std::size_t kSpareMax = 2;

  std::size_t first_offered() const { return parts_.size() - std::min(parts_.size(), kOfferedMax); }
  void free_communicators_of_pool();

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm node_comm_ = MPI_COMM_NULL;
  int n_ranks_on_host_ = 1;
  MPI_Datatype mixed_number_ = MPI_DATATYPE_NULL;
  MPI_Op merge_numbers_ = MPI_OP_NULL;
  std::vector<std::shared_ptr<MpiParts>> parts_;
  std::shared_ptr<MpiParts> next_parts_;  ///< Memory for the next parts.
  bool lasting_ = true;
  std::atomic<int> n_users_{0};        ///< Objects of MpiComm on this rank.
  std::atomic<bool> given_up_{false};  ///< This rank has given up an MpiComm.
  std::atomic<bool> ended_{false};
};

/// Call that MPI_Finalize makes once, before it ends the pools; dropped with this object.
class FinalizeCall {
 public:
  explicit FinalizeCall(std::function<void()> call);
  ~FinalizeCall();
  FinalizeCall(const FinalizeCall&) = delete;
  FinalizeCall& operator=(const FinalizeCall&) = delete;
  void run() const { call_(); }

 private:
  std::function<void()> call_;
};

// --- The shared end of the file over MPI: node-local atomics, and messages between nodes.

/// Make the Tail of a communicator. Collective. If it spans several nodes, it is in `errands`
/// during its lifetime.
/// @error unsupported  the MPI library cannot give the window it needs.
Result<std::unique_ptr<Tail>> make_mpi_tail(std::shared_ptr<MpiParts> parts, std::uint64_t address,
                                            std::shared_ptr<Errands> errands);

// --- Memory that the ranks of a node share, over MPI.

/// Make the windows of a communicator's nodes, with `bytes_per_rank` for every rank. Collective.
/// @error unsupported  the MPI library of some node cannot allocate it; the same on every rank.
Result<std::unique_ptr<NodeWindow>> make_mpi_node_window(std::shared_ptr<MpiParts> parts,
                                                         std::uint64_t bytes_per_rank);

}  // namespace tailrace
