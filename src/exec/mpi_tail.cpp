// MpiTail: claims are an atomic add in shared memory; nodes take extents from rank 0's counter.
//
// Invariant 1: an address is handed out once. Within a node the free part of an extent only
//   shrinks; between nodes the counter at rank 0 only grows, by MPI_Fetch_and_op.
// Invariant 2: only main threads call MPI. A worker whose claim fits none of its node's extents
//   states its need and naps until some main thread of the node has fetched one in service().
// Invariant 3: with a single node there is no extent and no MPI: the cursor is the file's end.
// A fetch across nodes makes progress whenever rank 0's main thread is inside MPI; the executor and
// all waits of MpiComm poll, so that is soon.
//
// What a node has fetched and not used stays for its next steps, and is a gap in the end. So it
// fetches what its ranks expect to claim in the step, ahead of need and at once; where they cannot
// tell, what a claim needs, or a small share of what the node has claimed so far if that is more.
// Rests that are too small for a claim are kept for smaller ones, the largest of them.

#include "exec/mpi_parts.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <thread>

namespace tailrace {
namespace {

constexpr std::uint64_t kLeastExtentBytes = 64U << 10;
constexpr std::uint64_t kLargestExtentBytes = 16U << 20;  // hides a fetch of milliseconds
constexpr std::uint64_t kClaimedOverExtent = 128;
constexpr std::size_t kExtents = 4;
constexpr auto kNap = std::chrono::microseconds(50);

/// What the ranks of a node share. Lives in an MPI shared-memory window, zeroed by the node's first
/// rank; lock-free atomics work between processes.
struct NodeState {
  struct Extent {
    std::uint64_t address;
    std::uint64_t end;
    std::uint64_t n_bytes() const { return end - address; }
  };

  std::atomic<std::uint64_t> cursor;        ///< With a single node.
  Extent extents[kExtents];                 ///< What is free of them; under `locked`.
  std::uint64_t claimed_bytes;              ///< Of all steps; under `locked`.
  std::atomic<std::uint64_t> needed_bytes;  ///< The largest claim that is waiting for an extent.
  /// Of the steps with an even and with an odd number, as below: what is still to be claimed, as
  /// far as ranks can tell. Below zero: more was claimed than they expected.
  std::atomic<std::int64_t> expected_bytes[2];
  /// Of the steps with an even and with an odd number. A rank that begins a step has heard from all
  /// that the one before is over for them, so nobody looks at the other one any more, or yet.
  std::atomic<std::uint64_t> done_bytes[2];
  std::atomic<std::uint32_t> failed[2];
  std::atomic<std::uint32_t> locked;     ///< Guards the extents.
  std::atomic<std::uint32_t> refilling;  ///< One main thread of the node is fetching an extent.
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class NodeLock {
 public:
  explicit NodeLock(NodeState& node) : node_(node) {
    while (node_.locked.exchange(1, std::memory_order_acquire) != 0) std::this_thread::yield();
  }
  ~NodeLock() { node_.locked.store(0, std::memory_order_release); }
  NodeLock(const NodeLock&) = delete;
  NodeLock& operator=(const NodeLock&) = delete;

 private:
  NodeState& node_;
};

class MpiTail final : public Tail {
 public:
  MpiTail(MPI_Comm world, MPI_Comm node_comm) : world_(world), node_comm_(node_comm) {
    int n_world = 1;
    int n_node = 1;
    MPI_Comm_size(world_, &n_world);
    MPI_Comm_size(node_comm_, &n_node);
    MPI_Comm_rank(world_, &world_rank_);
    MPI_Comm_rank(node_comm_, &node_rank_);
    int single = n_node == n_world ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &single, 1, MPI_INT, MPI_MIN, world_);
    single_node_ = single != 0;
  }

  ~MpiTail() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0 || abandoned_) return;
    if (node_window_ != MPI_WIN_NULL) {
      MPI_Win_unlock_all(node_window_);
      MPI_Win_free(&node_window_);
    }
    if (counter_window_ != MPI_WIN_NULL) {
      MPI_Win_unlock_all(counter_window_);
      MPI_Win_free(&counter_window_);
    }
  }

  /// Make the windows. Collective. Every rank learns whether all of them succeeded.
  Status prepare(std::uint64_t address) {
    bool failed = false;
    void* memory = nullptr;
    const MPI_Aint own_bytes = node_rank_ == 0 ? static_cast<MPI_Aint>(sizeof(NodeState)) : 0;
    failed = MPI_Win_allocate_shared(own_bytes, 1, MPI_INFO_NULL, node_comm_, &memory,
                                     &node_window_) != MPI_SUCCESS;
    if (!failed) {
      MPI_Aint shared_bytes = 0;
      int unit = 0;
      void* shared = nullptr;
      failed = MPI_Win_shared_query(node_window_, 0, &shared_bytes, &unit, &shared) != MPI_SUCCESS;
      if (!failed) {
        MPI_Win_lock_all(MPI_MODE_NOCHECK, node_window_);
        node_ = static_cast<NodeState*>(shared);
        if (node_rank_ == 0) new (node_) NodeState{};
      }
    } else {
      node_window_ = MPI_WIN_NULL;
    }
    if (!single_node_) {
      const MPI_Aint counter_bytes =
          world_rank_ == 0 ? static_cast<MPI_Aint>(sizeof(std::uint64_t)) : 0;
      failed = MPI_Win_allocate(counter_bytes, 1, MPI_INFO_NULL, world_, &counter_,
                                &counter_window_) != MPI_SUCCESS ||
               failed;
      if (!failed) MPI_Win_lock_all(MPI_MODE_NOCHECK, counter_window_);
    }
    int any_failed = failed ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &any_failed, 1, MPI_INT, MPI_MAX, world_);
    if (any_failed != 0) {
      return Status(Code::unsupported,
                    "this MPI cannot create the shared windows of the file's tail");
    }
    reset(address);
    return Status();
  }

  std::uint64_t claim(std::uint64_t n_bytes) override {
    if (single_node_) return node_->cursor.fetch_add(n_bytes);
    n_bytes = std::max<std::uint64_t>(n_bytes, 1);  // An extent that is used up has no address.
    while (true) {
      if (std::optional<std::uint64_t> address = take_from_extent(n_bytes)) return *address;
      if (std::this_thread::get_id() == main_thread_) {
        service();
      } else if (failure_raised()) {
        return 0;  // the main thread may have given up alone, and then serves nobody
      } else {
        std::this_thread::sleep_for(kNap);
      }
    }
  }

  bool needs_service() const override { return !single_node_; }
  void service() override {
    if (single_node_) return;
    if (world_rank_ == 0) {
      // Other nodes' fetches end when this rank is inside MPI, and so does that of a rank of this
      // node for which it may be waiting here.
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &found, MPI_STATUS_IGNORE);
    }
    if (bytes_to_fetch() == 0 || node_->refilling.exchange(1) != 0) return;
    if (const std::uint64_t n_bytes = bytes_to_fetch(); n_bytes > 0) {
      add_extent(fetch_add(n_bytes), n_bytes);
    }
    node_->refilling.store(0);
  }

  std::uint64_t end() override {
    barrier_politely(world_);
    if (single_node_) return node_->cursor.load();
    std::uint64_t address = world_rank_ == 0 ? end_at_root() : 0;
    broadcast(address);
    return address;
  }
  std::uint64_t end_at_root() override {
    return single_node_ ? node_->cursor.load() : fetch_add(0);
  }

  void reset(std::uint64_t address) override {
    broadcast(address);  // also: nobody claims any more
    barrier_politely(world_);
    if (node_rank_ == 0) {
      node_->cursor.store(address);
      std::fill(std::begin(node_->extents), std::end(node_->extents), NodeState::Extent{});
      node_->needed_bytes.store(0);
    }
    if (!single_node_ && world_rank_ == 0) {
      std::uint64_t before = 0;
      MPI_Fetch_and_op(&address, &before, MPI_UINT64_T, 0, 0, MPI_REPLACE, counter_window_);
      MPI_Win_flush(0, counter_window_);
    }
    barrier_politely(world_);
  }

  void raise_failure() override { node_->failed[step_parity_].store(1); }
  bool failure_raised() const override { return node_->failed[step_parity_].load() != 0; }
  void start_step() override {
    step_parity_ ^= 1U;
    if (node_rank_ != 0) return;
    node_->failed[step_parity_ ^ 1U].store(0);
    node_->done_bytes[step_parity_ ^ 1U].store(0);
    node_->expected_bytes[step_parity_ ^ 1U].store(0);
  }
  void expect(std::uint64_t n_bytes) override {
    node_->expected_bytes[step_parity_].fetch_add(static_cast<std::int64_t>(n_bytes));
  }
  void add_done(std::uint64_t n_bytes) override {
    node_->done_bytes[step_parity_].fetch_add(n_bytes);
  }
  std::uint64_t done() const override { return node_->done_bytes[step_parity_].load(); }
  void abandon() override { abandoned_ = true; }

 private:
  std::optional<std::uint64_t> take_from_extent(std::uint64_t n_bytes) {
    const NodeLock lock(*node_);
    NodeState::Extent* best = nullptr;  // The least that is enough.
    for (NodeState::Extent& extent : node_->extents) {
      if (extent.n_bytes() < n_bytes) continue;
      if (best == nullptr || extent.n_bytes() < best->n_bytes()) best = &extent;
    }
    if (best == nullptr) {
      if (node_->needed_bytes.load() < n_bytes) node_->needed_bytes.store(n_bytes);
      return std::nullopt;
    }
    node_->claimed_bytes += n_bytes;
    node_->expected_bytes[step_parity_].fetch_sub(static_cast<std::int64_t>(n_bytes));
    best->address += n_bytes;
    return best->address - n_bytes;
  }

  /// What the node lacks: for what its ranks expect to claim yet, and for a claim that waits. 0:
  /// nothing.
  std::uint64_t bytes_to_fetch() {
    const NodeLock lock(*node_);
    std::uint64_t free_bytes = 0;
    for (const NodeState::Extent& extent : node_->extents) free_bytes += extent.n_bytes();
    const std::int64_t expected = node_->expected_bytes[step_parity_].load();
    const std::int64_t missing = expected - static_cast<std::int64_t>(free_bytes);
    const std::uint64_t needed = node_->needed_bytes.load();
    if (missing > 0) return std::max(static_cast<std::uint64_t>(missing), needed);
    if (needed == 0) return 0;
    // More is claimed than was expected, or rests are too small: some of it for the claims to come.
    return std::max(needed, std::clamp(node_->claimed_bytes / kClaimedOverExtent, kLeastExtentBytes,
                                       kLargestExtentBytes));
  }

  /// Behind one of the node's extents if that ends there, else in place of the one of which the
  /// least is left: that is a gap in the file.
  void add_extent(std::uint64_t address, std::uint64_t n_bytes) {
    const NodeLock lock(*node_);
    node_->needed_bytes.store(0);
    NodeState::Extent* least = node_->extents;
    for (NodeState::Extent& extent : node_->extents) {
      if (extent.end == address) {
        extent.end += n_bytes;
        return;
      }
      if (extent.n_bytes() < least->n_bytes()) least = &extent;
    }
    *least = {address, address + n_bytes};
  }

  void broadcast(std::uint64_t& address) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&address, 1, MPI_UINT64_T, 0, world_, &request);
    wait_politely(&request);
  }

  std::uint64_t fetch_add(std::uint64_t n_bytes) {
    std::uint64_t before = 0;
    MPI_Fetch_and_op(&n_bytes, &before, MPI_UINT64_T, 0, 0, MPI_SUM, counter_window_);
    MPI_Win_flush(0, counter_window_);
    return before;
  }

  MPI_Comm world_;
  MPI_Comm node_comm_;
  int world_rank_ = 0;
  int node_rank_ = 0;
  bool single_node_ = true;
  unsigned step_parity_ = 0;
  bool abandoned_ = false;
  std::thread::id main_thread_ = std::this_thread::get_id();
  MPI_Win node_window_ = MPI_WIN_NULL;
  MPI_Win counter_window_ = MPI_WIN_NULL;
  void* counter_ = nullptr;
  NodeState* node_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Tail>> make_mpi_tail(MPI_Comm world, MPI_Comm node, std::uint64_t address) {
  auto tail = std::make_unique<MpiTail>(world, node);
  if (Status made = tail->prepare(address); !made.ok()) return made;
  return std::unique_ptr<Tail>(std::move(tail));
}

}  // namespace tailrace
