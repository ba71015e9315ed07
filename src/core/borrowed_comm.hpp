// BorrowedComm: somebody else's Comm, for a part that wants one of its own.
//
// Whoever lends it sees to it that both do not use it at once: it has one order of collective calls
// and one stream of posted messages.

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/comm.hpp"

namespace tailrace {

class BorrowedComm final : public Comm {
 public:
  explicit BorrowedComm(Comm& comm) : comm_(comm) {}

  int rank() const override { return comm_.rank(); }
  int n_ranks() const override { return comm_.n_ranks(); }
  int n_ranks_on_node() const override { return comm_.n_ranks_on_node(); }
  void barrier() override { comm_.barrier(); }
  void allreduce(std::span<std::uint64_t> values, Reduction reduction) override {
    comm_.allreduce(values, reduction);
  }
  void allreduce(std::span<double> values, Reduction reduction) override {
    comm_.allreduce(values, reduction);
  }
  void broadcast(Bytes& bytes, int root) override { comm_.broadcast(bytes, root); }
  std::vector<Bytes> gather(std::span<const std::byte> bytes, int root) override {
    return comm_.gather(bytes, root);
  }
  std::unique_ptr<PendingSum> start_sum(std::vector<std::uint64_t> values) override {
    return comm_.start_sum(std::move(values));
  }
  std::vector<Message> exchange(std::vector<Message> outgoing) override {
    return comm_.exchange(std::move(outgoing));
  }
  void post(Message message) override { comm_.post(std::move(message)); }
  std::optional<Message> poll() override { return comm_.poll(); }
  bool posts_pending() const override { return comm_.posts_pending(); }
  void finish_posts() override { comm_.finish_posts(); }
  Result<std::unique_ptr<Tail>> create_tail(std::uint64_t address) override {
    return comm_.create_tail(address);
  }
  Result<std::unique_ptr<NodeWindow>> create_node_window(std::uint64_t bytes_per_rank) override {
    return comm_.create_node_window(bytes_per_rank);
  }
  // abandon() stays the lender's own decision.

 private:
  Comm& comm_;
};

}  // namespace tailrace
