// ThreadComm: ranks as threads of one process, so that the engine's parallel paths run in unit
// tests and under the sanitizers, without MPI.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/comm.hpp"

namespace tailrace::test {

/// Runs `body` on `n_ranks` concurrent threads, each with a Comm of one group, and joins them.
void run_ranks(int n_ranks, const std::function<void(std::unique_ptr<Comm>)>& body);

/// Tails that are created during its lifetime need service, like those of ranks on several nodes.
class TailsWantService {
 public:
  TailsWantService();
  ~TailsWantService();
  TailsWantService(const TailsWantService&) = delete;
  TailsWantService& operator=(const TailsWantService&) = delete;
  /// Number of service calls in this process.
  static std::uint64_t n_served();
  /// Sum of the bytes that all ranks in this process have passed to expect().
  static std::uint64_t expected_bytes();
};

/// During its lifetime, some posts of one rank find no memory: those from number `first` on,
/// counted from 0.
class PostsWithoutMemory {
 public:
  PostsWithoutMemory(int rank, int first, int n_posts);
  ~PostsWithoutMemory();
  PostsWithoutMemory(const PostsWithoutMemory&) = delete;
  PostsWithoutMemory& operator=(const PostsWithoutMemory&) = delete;
  /// Number of posts refused so far.
  static int n_refused();
};

}  // namespace tailrace::test
