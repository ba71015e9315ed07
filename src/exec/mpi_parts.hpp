// What MpiComm is made of: waiting, the shared tail, memory that a node shares.

#pragma once

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
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

// --- The file's shared end over MPI: node-local atomics, and messages between nodes.

/// Make the Tail of a communicator. Collective. While it lives it is one of the `errands` if it
/// spans several nodes.
/// @error unsupported  the MPI library cannot give the window it needs.
Result<std::unique_ptr<Tail>> make_mpi_tail(MPI_Comm world, MPI_Comm node, std::uint64_t address,
                                            std::shared_ptr<Errands> errands);

// --- Memory that the ranks of a node share, over MPI.

/// Make the windows of a communicator's nodes, `bytes_per_rank` from every rank. Collective.
/// @error unsupported  some node's MPI library cannot give it; the same answer on every rank.
Result<std::unique_ptr<NodeWindow>> make_mpi_node_window(MPI_Comm world, MPI_Comm node,
                                                         std::uint64_t bytes_per_rank);

}  // namespace tailrace
