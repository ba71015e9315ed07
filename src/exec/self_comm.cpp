// SelfComm: Comm of a program with a single rank. Every collective completes immediately.

#include <array>
#include <atomic>
#include <deque>

#include "exec/comm_factory.hpp"

namespace tailrace {
namespace {

class SelfTail final : public Tail {
 public:
  explicit SelfTail(std::uint64_t address) : end_(address) {}
  std::uint64_t claim(std::uint64_t n_bytes) override { return end_.fetch_add(n_bytes); }
  std::uint64_t end() override { return end_.load(); }
  std::uint64_t end_at_root() override { return end_.load(); }
  void start_at_root(std::uint64_t address) override { end_.store(address); }
  void reset(std::uint64_t address) override { end_.store(address); }
  void raise_failure() override { failed_.store(true); }
  bool failure_raised() const override { return failed_.load(); }
  void start_step() override {
    failed_.store(false);
    done_.store(0);
  }
  void add_done(std::uint64_t n_bytes) override { done_.fetch_add(n_bytes); }
  std::uint64_t done() const override { return done_.load(); }

 private:
  std::atomic<std::uint64_t> end_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
};

/// Window of a node with one rank: ordinary memory.
class SelfNodeWindow final : public NodeWindow {
 public:
  explicit SelfNodeWindow(std::uint64_t n_bytes) : lines_((n_bytes + 63) / 64), n_bytes_(n_bytes) {}
  int rank_on_node() const override { return 0; }
  int n_ranks_on_node() const override { return 1; }
  int rank_in_comm(int) const override { return 0; }
  std::span<std::byte> segment(int) override {
    return std::as_writable_bytes(std::span(lines_)).first(n_bytes_);
  }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  std::vector<Line> lines_;
  std::uint64_t n_bytes_;
};

class SelfSum final : public PendingSum {
 public:
  explicit SelfSum(std::vector<std::uint64_t> values) : values_(std::move(values)) {}
  bool complete() override { return true; }
  void wait() override {}
  std::vector<std::uint64_t> before() const override {
    return std::vector<std::uint64_t>(values_.size(), 0);
  }
  std::vector<std::uint64_t> total() const override { return values_; }

 private:
  std::vector<std::uint64_t> values_;
};

class SelfComm final : public Comm {
 public:
  int rank() const override { return 0; }
  int n_ranks() const override { return 1; }
  int n_ranks_on_node() const override { return 1; }
  void barrier() override {}
  void allreduce(std::span<std::uint64_t>, Reduction) override {}
  void allreduce(std::span<double>, Reduction) override {}
  void allreduce(std::span<MixedNumber>) override {}
  void broadcast(Bytes&, int) override {}
  std::vector<Bytes> gather(std::span<const std::byte> bytes, int) override {
    return {Bytes(bytes.begin(), bytes.end())};
  }
  std::unique_ptr<PendingSum> start_sum(std::vector<std::uint64_t> values) override {
    return std::make_unique<SelfSum>(std::move(values));
  }
  std::vector<Message> exchange(std::vector<Message> outgoing) override { return outgoing; }
  void post(Message message) override { queue_.push_back(std::move(message)); }
  std::optional<Message> poll() override {
    if (queue_.empty()) return std::nullopt;
    Message message = std::move(queue_.front());
    queue_.pop_front();
    return message;
  }
  void finish_posts() override {}
  Result<std::unique_ptr<Tail>> create_tail(std::uint64_t address) override {
    return std::unique_ptr<Tail>(std::make_unique<SelfTail>(address));
  }
  Result<std::unique_ptr<NodeWindow>> create_node_window(std::uint64_t bytes_per_rank) override {
    return std::unique_ptr<NodeWindow>(std::make_unique<SelfNodeWindow>(bytes_per_rank));
  }

 private:
  std::deque<Message> queue_;
};

}  // namespace

std::unique_ptr<Comm> make_self_comm() { return std::make_unique<SelfComm>(); }

}  // namespace tailrace
