// ThreadComm: ranks as threads of one process, so that the engine's parallel paths run in unit
// tests and under the sanitizers, without MPI.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/comm.hpp"

namespace tailrace::test {

/// Run `body` on `n_ranks` threads at once, each with its own Comm of one group, and join them.
void run_ranks(int n_ranks, const std::function<void(std::unique_ptr<Comm>)>& body);

/// Tails that are made while this lives want service, as where ranks span several nodes.
class TailsWantService {
 public:
  TailsWantService();
  ~TailsWantService();
  TailsWantService(const TailsWantService&) = delete;
  TailsWantService& operator=(const TailsWantService&) = delete;
  /// How often any has been served in this process.
  static std::uint64_t n_served();
  /// What all ranks have told them to expect, in this process.
  static std::uint64_t expected_bytes();
};

/// While it lives, some posts of one rank find no memory: those from number `first` on, counted
/// from 0.
class PostsWithoutMemory {
 public:
  PostsWithoutMemory(int rank, int first, int n_posts);
  ~PostsWithoutMemory();
  PostsWithoutMemory(const PostsWithoutMemory&) = delete;
  PostsWithoutMemory& operator=(const PostsWithoutMemory&) = delete;
  /// How many were refused so far.
  static int n_refused();
};

}  // namespace tailrace::test
