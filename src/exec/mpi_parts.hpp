// Parts of MpiComm: waiting, the shared tail, memory shared by a node, and cleanup after ranks that
// gave up.

#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
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

// --- Cleanup after ranks that gave up.
//
// All ranks free communicators and windows together, but a rank that gives up is on its own. It
// stores them as an attribute of the parent communicator. When the ranks make the next MpiComm of
// that parent, they agree on the objects that all of them have given up, and free these.
//
// Invariant: an object that is freed has no call or message in flight on any rank, since the next
// communicator may look the same to MPI. Objects that cannot be freed are left to MPI_Finalize.

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

  /// Add an entry for a window. All ranks add them in the same order.
  std::list<Window>::iterator add_window() {
    return windows.insert(windows.end(), Window{n_windows_made++});
  }
  /// Free a window. Collective over the node.
  void free_window(std::list<Window>::iterator window);

  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm node_comm = MPI_COMM_NULL;
  MPI_Datatype mixed_number = MPI_DATATYPE_NULL;
  MPI_Op merge_numbers = MPI_OP_NULL;
  std::list<Window> windows;
  std::uint64_t n_windows_made = 0;
  std::list<Post> posts;  ///< Posts in flight.
  Letters letters;        ///< Letters in flight of an abandoned tail.
  std::int64_t n_posted = 0;
  std::int64_t n_received = 0;  ///< Posts of other ranks received here.
  int n_calls = 0;              ///< Calls in progress; a call that throws stays counted.
};

/// Free all MPI objects of the parts. Collective.
void free_parts(MpiParts& parts);

/// Most abandoned parts that are examined when a communicator is made.
inline constexpr std::size_t kAbandonedMax = 8;

/// Parts that this rank has given up, keyed by their number among all that were made of one
/// communicator. All ranks count these numbers alike.
struct AbandonedParts {
  std::uint64_t n_made = 0;
  std::map<std::uint64_t, std::shared_ptr<MpiParts>> parts;
};
/// Return the abandoned parts that were made of `parent`. Not collective.
std::shared_ptr<AbandonedParts> abandoned_parts_of(MPI_Comm parent);
/// Free the parts with these numbers that all ranks have given up and that have nothing in flight.
/// `numbers` has at most kAbandonedMax entries, the same on all ranks. Collective over `comm`.
/// Cost: two allreduces; none if `numbers` is empty.
void free_abandoned(AbandonedParts& abandoned, std::span<const std::uint64_t> numbers,
                    MPI_Comm comm);

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
