// MpiNodeWindow: one MPI shared-memory window per node, a segment per rank.
//
// MPI is only called when the window is made and freed. Access to the memory is ordered by atomics,
// so that threads which must not call MPI can use it. Segments need not be adjacent
// (alloc_shared_noncontig): each begins on its own page, and MPI can place it near its rank. Every
// rank checks the creation, and the ranks agree on the result.

#include "exec/mpi_parts.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tailrace {
namespace {

constexpr std::uintptr_t alignment_bytes = 64;

class MpiNodeWindow final : public NodeWindow {
 public:
  explicit MpiNodeWindow(std::shared_ptr<MpiParts> parts)
      : parts_(std::move(parts)), node_(parts_->node_comm), window_(parts_->add_window()) {
    int n_ranks = 1;
    MPI_Comm_size(node_, &n_ranks);
    MPI_Comm_rank(node_, &rank_);
    segments_.resize(static_cast<std::size_t>(n_ranks));
    ranks_in_comm_.resize(segments_.size());
  }

  ~MpiNodeWindow() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0 && !abandoned_) parts_->free_window(window_);
  }

  /// Make the window. Collective over the node. @returns false if MPI cannot.
  bool allocate(std::uint64_t n_bytes) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    void* own = nullptr;
    // One cache line more than requested, since MPI guarantees no alignment.
    const auto n_allocated = static_cast<MPI_Aint>(n_bytes + alignment_bytes);
    MPI_Win& window = window_->window;
    const int made = MPI_Win_allocate_shared(n_allocated, 1, info, node_, &own, &window);
    MPI_Info_free(&info);
    if (made != MPI_SUCCESS) {
      window = MPI_WIN_NULL;
      return false;
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    bool found = true;
    for (std::size_t rank = 0; rank < segments_.size(); ++rank) {
      MPI_Aint there = 0;
      int unit = 0;
      void* memory = nullptr;
      const bool answered = MPI_Win_shared_query(window, static_cast<int>(rank), &there, &unit,
                                                 &memory) == MPI_SUCCESS;
      found = answered && there >= n_allocated && found;
      segments_[rank] = {static_cast<std::byte*>(memory), n_bytes};
    }
    return found;
  }

  /// Exchange ranks, and the offset of the first aligned byte in each segment. Collective over the
  /// node, also after a failure. @returns false if a segment is not aligned in this process.
  bool learn(MPI_Comm world) {
    const std::size_t n_ranks = segments_.size();
    const auto own = reinterpret_cast<std::uintptr_t>(segments_[own_index()].data());
    int mine[2] = {0,
                   static_cast<int>((alignment_bytes - own % alignment_bytes) % alignment_bytes)};
    MPI_Comm_rank(world, &mine[0]);
    std::vector<int> all(2 * n_ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine, 2, MPI_INT, all.data(), 2, MPI_INT, node_, &request);
    wait_politely(&request);
    bool aligned = true;
    for (std::size_t rank = 0; rank < n_ranks; ++rank) {
      ranks_in_comm_[rank] = all[2 * rank];
      std::span<std::byte>& segment = segments_[rank];
      if (segment.data() == nullptr) continue;
      segment = {segment.data() + all[2 * rank + 1], segment.size()};
      aligned = aligned && reinterpret_cast<std::uintptr_t>(segment.data()) % alignment_bytes == 0;
    }
    return aligned;
  }

  void clear() { std::ranges::fill(segments_[own_index()], std::byte{0}); }

  int rank_on_node() const override { return rank_; }
  int n_ranks_on_node() const override { return static_cast<int>(segments_.size()); }
  int rank_in_comm(int rank_on_node) const override {
    return ranks_in_comm_[static_cast<std::size_t>(rank_on_node)];
  }
  std::span<std::byte> segment(int rank_on_node) override {
    return segments_[static_cast<std::size_t>(rank_on_node)];
  }
  void abandon() override { abandoned_ = true; }

 private:
  std::size_t own_index() const { return static_cast<std::size_t>(rank_); }

  std::shared_ptr<MpiParts> parts_;
  MPI_Comm node_;
  std::list<MpiParts::Window>::iterator window_;
  int rank_ = 0;
  bool abandoned_ = false;
  std::vector<std::span<std::byte>> segments_;
  std::vector<int> ranks_in_comm_;
};

}  // namespace

Result<std::unique_ptr<NodeWindow>> make_mpi_node_window(std::shared_ptr<MpiParts> parts,
                                                         std::uint64_t bytes_per_rank) {
  const MPI_Comm world = parts->comm;
  auto window = std::make_unique<MpiNodeWindow>(std::move(parts));
  const bool allocated = window->allocate(bytes_per_rank);
  const bool aligned = window->learn(world);
  if (allocated && aligned) window->clear();
  int failed = allocated && aligned ? 0 : 1;
  // No rank returns before all have cleared their segments.
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, world);
  if (failed != 0) {
    window->abandon();  // some ranks of the node may have no window to free
    return Status(Code::unsupported, "this MPI library cannot share " +
                                         std::to_string(bytes_per_rank) +
                                         " bytes per rank within a node");
  }
  return std::unique_ptr<NodeWindow>(std::move(window));
}

}  // namespace tailrace
