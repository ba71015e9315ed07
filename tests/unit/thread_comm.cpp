// The shared hub behind ThreadComm and its collectives.

#include "thread_comm.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <thread>

namespace tailrace::test {
namespace {

struct TailState {
  std::atomic<std::uint64_t> end{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> failed{false};
};

/// All ranks' segments of one window.
struct WindowState {
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  WindowState(int n_ranks, std::uint64_t n) : segments(static_cast<std::size_t>(n_ranks)) {
    for (std::vector<Line>& segment : segments) segment.resize((n + 63) / 64);
  }
  std::vector<std::vector<Line>> segments;
};

struct SumState {
  std::vector<std::vector<std::uint64_t>> by_rank;
  int n_arrived = 0;
};

struct Hub {
  explicit Hub(int n)
      : n_ranks(n),
        barrier(n),
        slots(static_cast<std::size_t>(n)),
        inboxes(slots.size()),
        posts(slots.size()) {}
  int n_ranks;
  std::barrier<> barrier;
  std::mutex mutex;  ///< Guards everything below.
  std::vector<Bytes> slots;
  std::vector<std::vector<Message>> inboxes;
  std::vector<std::deque<Message>> posts;
  std::map<std::uint64_t, SumState> sums;
  std::shared_ptr<TailState> tail;
  std::shared_ptr<WindowState> window;
};

std::atomic<bool> tails_want_service = false;
std::atomic<std::uint64_t> n_services = 0;
std::atomic<std::uint64_t> n_expected_bytes = 0;

class ThreadTail final : public Tail {
 public:
  bool needs_service() const override { return wants_service_; }
  void service() override { ++n_services; }
  void expect(std::uint64_t n_bytes) override { n_expected_bytes += n_bytes; }
  ThreadTail(std::shared_ptr<Hub> hub, std::shared_ptr<TailState> state, int rank)
      : hub_(std::move(hub)), state_(std::move(state)), rank_(rank) {}
  std::uint64_t claim(std::uint64_t n_bytes) override { return state_->end.fetch_add(n_bytes); }
  std::uint64_t end() override {
    hub_->barrier.arrive_and_wait();
    return state_->end.load();
  }
  std::uint64_t end_at_root() override { return state_->end.load(); }
  void start_at_root(std::uint64_t address) override { state_->end.store(address); }
  void reset(std::uint64_t address) override {
    hub_->barrier.arrive_and_wait();
    if (rank_ == 0) state_->end.store(address);
    hub_->barrier.arrive_and_wait();
  }
  void raise_failure() override { state_->failed = true; }
  bool failure_raised() const override { return state_->failed; }
  void start_step() override {
    hub_->barrier.arrive_and_wait();
    state_->failed = false;
    state_->done = 0;
    hub_->barrier.arrive_and_wait();
  }
  void add_done(std::uint64_t n_bytes) override { state_->done += n_bytes; }
  std::uint64_t done() const override { return state_->done; }

 private:
  std::shared_ptr<Hub> hub_;
  std::shared_ptr<TailState> state_;
  int rank_;
  bool wants_service_ = tails_want_service;
};

class ThreadNodeWindow final : public NodeWindow {
 public:
  ThreadNodeWindow(std::shared_ptr<WindowState> state, int rank)
      : state_(std::move(state)), rank_(rank) {}
  int rank_on_node() const override { return rank_; }
  int n_ranks_on_node() const override { return static_cast<int>(state_->segments.size()); }
  int rank_in_comm(int rank_on_node) const override { return rank_on_node; }
  std::span<std::byte> segment(int rank_on_node) override {
    return std::as_writable_bytes(
        std::span(state_->segments[static_cast<std::size_t>(rank_on_node)]));
  }

 private:
  std::shared_ptr<WindowState> state_;
  int rank_;
};

class ThreadSum final : public PendingSum {
 public:
  ThreadSum(std::shared_ptr<Hub> hub, std::uint64_t sequence, int rank)
      : hub_(std::move(hub)), sequence_(sequence), rank_(rank) {}
  bool complete() override {
    const std::scoped_lock lock(hub_->mutex);
    return hub_->sums.at(sequence_).n_arrived == hub_->n_ranks;
  }
  void wait() override {
    while (!complete()) std::this_thread::yield();
  }
  std::vector<std::uint64_t> before() const override { return add_up(rank_); }
  std::vector<std::uint64_t> total() const override { return add_up(hub_->n_ranks); }

 private:
  std::vector<std::uint64_t> add_up(int n_first) const {
    const std::scoped_lock lock(hub_->mutex);
    const SumState& state = hub_->sums.at(sequence_);
    std::vector<std::uint64_t> sum(state.by_rank[0].size(), 0);
    for (int r = 0; r < n_first; ++r) {
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += state.by_rank[static_cast<std::size_t>(r)][i];
    }
    return sum;
  }
  std::shared_ptr<Hub> hub_;
  std::uint64_t sequence_;
  int rank_;
};

struct {
  std::atomic<int> rank = -1;
  int first = 0;
  int end = 0;
  std::atomic<int> n_posts = 0;
  std::atomic<int> n_refused = 0;
} short_of_memory;

class ThreadComm final : public Comm {
 public:
  ThreadComm(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  int rank() const override { return rank_; }
  int n_ranks() const override { return hub_->n_ranks; }
  int n_ranks_on_node() const override { return hub_->n_ranks; }
  void barrier() override { hub_->barrier.arrive_and_wait(); }
  void allreduce(std::span<std::uint64_t> values, Reduction reduction) override {
    reduce(values, reduction);
  }
  void allreduce(std::span<double> values, Reduction reduction) override {
    reduce(values, reduction);
  }
  void allreduce(std::span<MixedNumber> numbers) override {
    const auto raw = std::as_bytes(numbers);
    const std::vector<Bytes> all = share(Bytes(raw.begin(), raw.end()));
    for (std::size_t r = 0; r < all.size(); ++r) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        MixedNumber other;
        std::memcpy(&other, all[r].data() + i * sizeof other, sizeof other);
        if (r == 0) {
          numbers[i] = other;
        } else {
          numbers[i].merge(other);
        }
      }
    }
  }
  void broadcast(Bytes& bytes, int root) override {
    const std::vector<Bytes> all = share(bytes);
    bytes = all[static_cast<std::size_t>(root)];
  }
  std::vector<Bytes> gather(std::span<const std::byte> bytes, int root) override {
    std::vector<Bytes> all = share(Bytes(bytes.begin(), bytes.end()));
    if (rank_ != root) all.clear();
    return all;
  }
  std::unique_ptr<PendingSum> start_sum(std::vector<std::uint64_t> values) override {
    const std::scoped_lock lock(hub_->mutex);
    SumState& state = hub_->sums[n_sums_];
    state.by_rank.resize(static_cast<std::size_t>(hub_->n_ranks));
    state.by_rank[static_cast<std::size_t>(rank_)] = std::move(values);
    ++state.n_arrived;
    return std::make_unique<ThreadSum>(hub_, n_sums_++, rank_);
  }
  std::vector<Message> exchange(std::vector<Message> outgoing) override {
    for (Message& message : outgoing) {
      const std::scoped_lock lock(hub_->mutex);
      hub_->inboxes[static_cast<std::size_t>(message.peer)].push_back(
          {rank_, std::move(message.payload)});
    }
    barrier();
    std::vector<Message> incoming;
    {
      const std::scoped_lock lock(hub_->mutex);
      incoming.swap(hub_->inboxes[static_cast<std::size_t>(rank_)]);
    }
    barrier();
    return incoming;
  }
  void post(Message message) override {
    if (rank_ == short_of_memory.rank) {
      const int number = short_of_memory.n_posts++;
      if (number >= short_of_memory.first && number < short_of_memory.end) {
        ++short_of_memory.n_refused;
        throw std::bad_alloc();
      }
    }
    const std::scoped_lock lock(hub_->mutex);
    hub_->posts[static_cast<std::size_t>(message.peer)].push_back(
        {rank_, std::move(message.payload)});
  }
  std::optional<Message> poll() override {
    const std::scoped_lock lock(hub_->mutex);
    std::deque<Message>& queue = hub_->posts[static_cast<std::size_t>(rank_)];
    if (queue.empty()) return std::nullopt;
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
  void finish_posts() override {}
  Result<std::unique_ptr<Tail>> create_tail(std::uint64_t address) override {
    barrier();
    if (rank_ == 0) {
      hub_->tail = std::make_shared<TailState>();
      hub_->tail->end = address;
    }
    barrier();
    return std::unique_ptr<Tail>(std::make_unique<ThreadTail>(hub_, hub_->tail, rank_));
  }
  Result<std::unique_ptr<NodeWindow>> create_node_window(std::uint64_t bytes_per_rank) override {
    barrier();
    if (rank_ == 0) hub_->window = std::make_shared<WindowState>(n_ranks(), bytes_per_rank);
    barrier();
    return std::unique_ptr<NodeWindow>(std::make_unique<ThreadNodeWindow>(hub_->window, rank_));
  }

 private:
  std::vector<Bytes> share(const Bytes& bytes) {
    {
      const std::scoped_lock lock(hub_->mutex);
      hub_->slots[static_cast<std::size_t>(rank_)] = bytes;
    }
    barrier();
    std::vector<Bytes> all;
    {
      const std::scoped_lock lock(hub_->mutex);
      all = hub_->slots;
    }
    barrier();
    return all;
  }

  template <class T>
  void reduce(std::span<T> values, Reduction reduction) {
    RankNumbers numbers;
    for (T& value : values) numbers.add(reduction, value);
    numbers.reduce(*this);
  }

  std::shared_ptr<Hub> hub_;
  int rank_;
  std::uint64_t n_sums_ = 0;
};

}  // namespace

PostsWithoutMemory::PostsWithoutMemory(int rank, int first, int n_posts) {
  short_of_memory.first = first;
  short_of_memory.end = first + n_posts;
  short_of_memory.n_posts = 0;
  short_of_memory.n_refused = 0;
  short_of_memory.rank = rank;
}
PostsWithoutMemory::~PostsWithoutMemory() { short_of_memory.rank = -1; }
int PostsWithoutMemory::n_refused() { return short_of_memory.n_refused; }

TailsWantService::TailsWantService() { tails_want_service = true; }
TailsWantService::~TailsWantService() { tails_want_service = false; }
std::uint64_t TailsWantService::n_served() { return n_services; }
std::uint64_t TailsWantService::expected_bytes() { return n_expected_bytes; }

void run_ranks(int n_ranks, const std::function<void(std::unique_ptr<Comm>)>& body) {
  const auto hub = std::make_shared<Hub>(n_ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n_ranks; ++rank) {
    threads.emplace_back([&body, hub, rank] { body(std::make_unique<ThreadComm>(hub, rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tailrace::test
