// What MpiComm is made of: waiting, the shared tail, memory that a node shares, and what is left of
// them where ranks give up.

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

// --- Waiting for MPI without taking the core from whom we wait for.
//
// Polls for as long as a nap of the least length takes in truth, then naps of an eighth of the time
// waited so far: who waits long is late by a twelfth of it in the mean, and ranks that come
// together lose nothing (1,000 collective writes of 400 bytes on two ranks: 71 ms with a few polls,
// 15 ms so, 14 ms with MPI's own waiting; on more ranks than cores no slower). No sched_yield:
// where another program wants the core, a yield gives it a whole time slice (4 ms were measured per
// collective), while a sleeper is woken at once.

class Nap {
 public:
  explicit Nap(std::chrono::microseconds longest) : longest_(longest) {}
  void take() {
    const auto now = std::chrono::steady_clock::now();
    if (!start_) start_ = now;
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - *start_);
    if (waited < polling) return;
    if (!fine_) fine_.emplace();
    std::this_thread::sleep_for(std::clamp(waited / 8, shortest_nap, longest_));
  }

 private:
  static constexpr std::chrono::microseconds polling{40};
  static constexpr std::chrono::microseconds shortest_nap{10};
  std::optional<std::chrono::steady_clock::time_point> start_;
  std::optional<FineTimers> fine_;
  std::chrono::microseconds longest_;
};

// Others work: stay out of their way.
inline constexpr std::chrono::microseconds long_nap = tail_service_interval;
inline constexpr std::chrono::microseconds short_nap{20};  // data is coming while we poll

/// What a main thread that waits for MPI does besides: it serves the tails of its communicator
/// which span several nodes, for ranks that have no address yet may be the ones that it waits for.
using Errands = std::vector<Tail*>;

inline void run_errands(const Errands& errands) {
  for (Tail* tail : errands) tail->service();
}

inline void wait_politely(MPI_Request* request, std::chrono::microseconds longest = long_nap,
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
  wait_politely(&request, long_nap, errands);
}

// --- What ranks leave that give up.
//
// Communicators and windows are freed by all their ranks together, but a rank that gives up is
// alone. It keeps them as an attribute of the communicator that they were made of. When the ranks
// make the next MpiComm of that one, they agree on which all of them have given up, and free these.
//
// Invariant: what is freed has no call and no message under way on any rank, since the next
// communicator may look the same to MPI. What cannot be freed is left to MPI_Finalize.

inline constexpr int kPostTag = 7003;  // The other tags of MpiComm are beside it: 7001 to 7004.

struct MpiParts {
  struct Window {
    std::uint64_t number = 0;
    MPI_Win window = MPI_WIN_NULL;     ///< Locked by MPI_Win_lock_all.
    MPI_Comm leaders = MPI_COMM_NULL;  ///< Of a tail's window, on the first rank of each node.
  };
  struct Post {
    Bytes payload;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// A tail's message: the step's number and a value.
  using Letter = std::array<std::uint64_t, 2>;
  using Letters = std::list<std::pair<Letter, MPI_Request>>;

  /// A place for a window, made by all ranks in the same order.
  std::list<Window>::iterator add_window() {
    return windows.insert(windows.end(), Window{n_windows_made++});
  }
  /// Collective over the node.
  void free_window(std::list<Window>::iterator window);

  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm node_comm = MPI_COMM_NULL;
  MPI_Datatype mixed_number = MPI_DATATYPE_NULL;
  MPI_Op merge_numbers = MPI_OP_NULL;
  std::list<Window> windows;
  std::uint64_t n_windows_made = 0;
  std::list<Post> posts;  ///< Under way.
  Letters letters;        ///< That a tail which was given up had under way.
  std::int64_t n_posted = 0;
  std::int64_t n_received = 0;  ///< Of what others have posted.
  int n_calls = 0;              ///< Begun and not ended; one that throws never ends.
};

/// Free all of it. Collective.
void free_parts(MpiParts& parts);

/// Most parts that are looked at when a communicator is made.
inline constexpr std::size_t kAbandonedMax = 8;

/// Parts that this rank has given up, by their number among all that were made of a communicator,
/// which all ranks count alike.
struct AbandonedParts {
  std::uint64_t n_made = 0;
  std::map<std::uint64_t, std::shared_ptr<MpiParts>> parts;
};
/// The parts that were made of `parent` and given up. Not collective.
std::shared_ptr<AbandonedParts> abandoned_parts_of(MPI_Comm parent);
/// Free those of at most kAbandonedMax numbers, alike on all ranks, which all ranks have given up
/// and where nothing is under way. Collective over `comm`. Cost: two allreduces; none if there are
/// no numbers.
void free_abandoned(AbandonedParts& abandoned, std::span<const std::uint64_t> numbers,
                    MPI_Comm comm);

// --- The file's shared end over MPI: node-local atomics, and messages between nodes.

/// Make the Tail of a communicator. Collective. While it lives it is one of the `errands` if it
/// spans several nodes.
/// @error unsupported  the MPI library cannot give the window it needs.
Result<std::unique_ptr<Tail>> make_mpi_tail(std::shared_ptr<MpiParts> parts, std::uint64_t address,
                                            std::shared_ptr<Errands> errands);

// --- Memory that the ranks of a node share, over MPI.

/// Make the windows of a communicator's nodes, `bytes_per_rank` from every rank. Collective.
/// @error unsupported  some node's MPI library cannot give it; the same answer on every rank.
Result<std::unique_ptr<NodeWindow>> make_mpi_node_window(std::shared_ptr<MpiParts> parts,
                                                         std::uint64_t bytes_per_rank);

}  // namespace tailrace
