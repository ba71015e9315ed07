// MpiComm: Comm over a duplicate of the caller's communicator, which it takes from a pool.
//
// An MpiComm has no parts (communicator, windows) until the first call that needs them. Reductions
// of mixed numbers, which agree() makes, then also choose the parts. So a file whose first calls
// are a broadcast and an agreement pays nothing for them.
//
// Every collective is started in its nonblocking form and then waited for in naps. These grow with
// the time waited, to half a millisecond at most. MPI libraries poll while they wait. On a node
// with more ranks than cores, that takes the core from the very ranks that are waited for. Only the
// thread that created the object calls MPI, so MPI_THREAD_FUNNELED suffices. MPI's own errors end
// the job (MPI_ERRORS_ARE_FATAL), except during the creation of windows, which is checked.

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include "core/environment.hpp"
#include "exec/comm_factory.hpp"
#include "exec/mpi_parts.hpp"

namespace tailrace {
namespace {

constexpr int kExchangeTag = 7001;  // and 7002: consecutive exchanges must not mix
constexpr int kGatherTag = 7004;
constexpr std::uint64_t kMessageLimit = 1ULL << 30;  // MPI counts are ints
/// Size of a broadcast's first message: the number of bytes and as many of them as fit. Most
/// broadcasts need no other. MPI libraries send this much eagerly (Open MPI: 4096 bytes within a
/// node, headers included). Larger messages made the sender wait for its receivers, 80 us on two
/// ranks.
constexpr std::size_t kBlockBytes = 3072;

int byte_count(std::size_t n_bytes) {
  TAILRACE_CHECK(n_bytes <= INT_MAX);
  return static_cast<int>(n_bytes);
}

class MpiSum final : public PendingSum {
 public:
  MpiSum(MpiParts& parts, std::vector<std::uint64_t> values, const Errands& errands)
      : parts_(parts), errands_(errands), sums_(std::make_unique<Sums>()) {
    const MPI_Comm comm = parts.comm;
    const std::size_t n_values = values.size();
    sums_->values = std::move(values);
    sums_->before.resize(n_values);
    sums_->total.resize(n_values);
    const int n = static_cast<int>(n_values);
    MPI_Iexscan(sums_->values.data(), sums_->before.data(), n, MPI_UINT64_T, MPI_SUM, comm,
                &requests_[0]);
    MPI_Iallreduce(sums_->values.data(), sums_->total.data(), n, MPI_UINT64_T, MPI_SUM, comm,
                   &requests_[1]);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    first_ = rank == 0;
  }
  /// If a pending sum is given up, MPI still writes to its buffers: leak them.
  ~MpiSum() override {
    if (complete()) return;
    static_cast<void>(sums_.release());
    ++parts_.n_calls;
  }
  MpiSum(const MpiSum&) = delete;
  MpiSum& operator=(const MpiSum&) = delete;
  bool complete() override {
    int complete = 0;
    MPI_Testall(2, requests_, &complete, MPI_STATUSES_IGNORE);
    return complete != 0;
  }
  void wait() override {
    for (MPI_Request& request : requests_) wait_politely(&request, kLongNap, errands_);
  }
  /// MPI leaves the first rank's exclusive prefix undefined; it is zero.
  std::vector<std::uint64_t> before() const override {
    return first_ ? std::vector<std::uint64_t>(sums_->values.size(), 0) : sums_->before;
  }
  std::vector<std::uint64_t> total() const override { return sums_->total; }

 private:
  struct Sums {
    std::vector<std::uint64_t> values;
    std::vector<std::uint64_t> before;
    std::vector<std::uint64_t> total;
  };

  MpiParts& parts_;
  const Errands& errands_;
  std::unique_ptr<Sums> sums_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  bool first_ = false;
};

class MpiComm final : public Comm {
 public:
  explicit MpiComm(std::shared_ptr<MpiPool> pool) : pool_(std::move(pool)) {
    pool_->enter();
    MPI_Comm_rank(pool_->comm(), &rank_);
    MPI_Comm_size(pool_->comm(), &n_ranks_);
    MPI_Comm_rank(pool_->node_comm(), &rank_on_node_);
    MPI_Comm_size(pool_->node_comm(), &n_ranks_on_node_);
    n_ranks_on_host_ = pool_->n_ranks_on_host();
  }

  ~MpiComm() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    if (!abandoned_ && parts_ != nullptr) finish_posts();
    pool_->leave(parts_, abandoned_);
  }

  int rank() const override { return rank_; }
  int n_ranks() const override { return n_ranks_; }
  int n_ranks_on_node() const override { return n_ranks_on_host_; }
  bool leads_node() const override { return rank_on_node_ == 0; }
  std::string place() const override {
    if (n_ranks_on_node_ == n_ranks_) return "";
    std::array<char, 256> host{};
    const bool known = ::gethostname(host.data(), host.size() - 1) == 0;
    return std::string(" on ") + (known ? host.data() : "an unknown host");
  }

  void barrier() override { barrier_politely(parts().comm, *errands_); }

  /// MPICH 4.0 compares unsigned numbers of 64 bits as signed ones (Open MPI 4.1 those of type
  /// unsigned long), so that UINT64_MAX is the minimum. Minimum and maximum are therefore computed
  /// over signed numbers in the same order: flip the top bit.
  void allreduce(std::span<std::uint64_t> values, Reduction reduction) override {
    const bool by_order = reduction == Reduction::min || reduction == Reduction::max;
    const auto turn_sign = [&] {
      for (std::uint64_t& value : values) value ^= std::uint64_t{1} << 63;
    };
    if (by_order) turn_sign();
    reduce(values.data(), values.size(), by_order ? MPI_INT64_T : MPI_UINT64_T, op_of(reduction));
    if (by_order) turn_sign();
  }
  void allreduce(std::span<double> values, Reduction reduction) override {
    TAILRACE_CHECK(reduction != Reduction::bit_or);
    reduce(values.data(), values.size(), MPI_DOUBLE, op_of(reduction));
  }
  void allreduce(std::span<MixedNumber> numbers) override {
    if (parts_ != nullptr) return reduce_mixed(parts_->comm, numbers);
    std::vector<MixedNumber> all = pool_->offers();
    all.insert(all.begin(), numbers.begin(), numbers.end());
    reduce_mixed(pool_->comm(), all);
    std::copy_n(all.begin(), numbers.size(), numbers.begin());
    parts_ = pool_->choose(std::span(all).subspan(numbers.size()));
  }

  void broadcast(Bytes& bytes, int root) override {
    if (n_ranks_ == 1) return;
    std::uint64_t n_bytes = bytes.size();
    std::array<std::byte, kBlockBytes> block{};
    constexpr std::size_t in_block_max = kBlockBytes - sizeof n_bytes;
    const auto n_in_block = [&] { return std::min<std::size_t>(n_bytes, in_block_max); };
    if (rank_ == root) {
      std::memcpy(block.data(), &n_bytes, sizeof n_bytes);
      std::copy_n(bytes.data(), n_in_block(), block.data() + sizeof n_bytes);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(block.data(), byte_count(block.size()), MPI_BYTE, root,
               parts_ != nullptr ? parts_->comm : pool_->comm(), &request);
    wait(&request);
    if (rank_ != root) std::memcpy(&n_bytes, block.data(), sizeof n_bytes);
    // The pool's communicator must not be left with a call that this rank gives up.
    if (n_bytes > n_in_block()) ++parts().n_calls;
    if (rank_ != root) {
      bytes.resize(n_bytes);
      std::copy_n(block.data() + sizeof n_bytes, n_in_block(), bytes.data());
    }
    if (n_bytes == n_in_block()) return;
    for (std::uint64_t at = n_in_block(); at < n_bytes; at += kMessageLimit) {
      const int part = byte_count(std::min(kMessageLimit, n_bytes - at));
      MPI_Ibcast(bytes.data() + at, part, MPI_BYTE, root, parts_->comm, &request);
      wait(&request);
    }
    --parts_->n_calls;
  }

  std::vector<Bytes> gather(std::span<const std::byte> bytes, int root) override {
    ++parts().n_calls;
    std::vector<Bytes> gathered = gather_along_tree(bytes, root);
    --parts_->n_calls;
    return gathered;
  }
  std::unique_ptr<PendingSum> start_sum(std::vector<std::uint64_t> values) override {
    return std::make_unique<MpiSum>(parts(), std::move(values), *errands_);
  }

  /// Nonblocking consensus: synchronous sends, then a barrier that each rank enters once its sends
  /// are received. When the barrier completes, no message is in flight.
  std::vector<Message> exchange(std::vector<Message> outgoing) override {
    if (n_ranks_ == 1) return outgoing;
    ++parts().n_calls;
    const MPI_Comm comm = parts_->comm;
    const int tag = kExchangeTag + (parts_->exchange_parity ^= 1);
    std::vector<MPI_Request> sends(outgoing.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < outgoing.size(); ++i) {
      MPI_Issend(outgoing[i].payload.data(), byte_count(outgoing[i].payload.size()), MPI_BYTE,
                 outgoing[i].peer, tag, comm, &sends[i]);
    }
    std::vector<Message> incoming;
    MPI_Request barrier = MPI_REQUEST_NULL;
    bool in_barrier = false;
    Nap nap(kLongNap);
    while (true) {
      run_errands(*errands_);
      if (std::optional<Message> message = receive(tag)) {
        incoming.push_back(std::move(*message));
        continue;
      }
      int complete = 0;
      if (in_barrier) {
        MPI_Test(&barrier, &complete, MPI_STATUS_IGNORE);
        if (complete != 0) {
          --parts_->n_calls;
          return incoming;
        }
      } else {
        MPI_Testall(static_cast<int>(sends.size()), sends.data(), &complete, MPI_STATUSES_IGNORE);
        if (complete != 0) {
          MPI_Ibarrier(comm, &barrier);
          in_barrier = true;
        }
      }
      nap.take();
    }
  }

  void post(Message message) override {
    MpiParts::Post& post = parts().posts.emplace_back();
    post.payload = std::move(message.payload);
    ++parts_->n_posted;
    MPI_Isend(post.payload.data(), byte_count(post.payload.size()), MPI_BYTE, message.peer,
              kPostTag, parts_->comm, &post.request);
    drop_finished_posts();
  }

  std::optional<Message> poll() override {
    if (parts_ == nullptr) return std::nullopt;
    drop_finished_posts();
    std::optional<Message> message = receive(kPostTag);
    if (message) ++parts_->n_received;
    return message;
  }

  bool posts_pending() const override { return parts_ != nullptr && !parts_->posts.empty(); }

  void finish_posts() override {
    if (parts_ == nullptr) return;
    for (MpiParts::Post& post : parts_->posts) wait(&post.request);
    parts_->posts.clear();
  }

  void abandon() override { abandoned_ = true; }
  void before_finalize(std::function<void()> call) override {
    finalize_call_.emplace(std::move(call));
  }

  Result<std::unique_ptr<Tail>> create_tail(std::uint64_t address) override {
    MPI_Comm_set_errhandler(parts().comm, MPI_ERRORS_RETURN);
    Result<std::unique_ptr<Tail>> tail = make_mpi_tail(parts_, address, errands_);
    MPI_Comm_set_errhandler(parts_->comm, MPI_ERRORS_ARE_FATAL);
    return tail;
  }

  Result<std::unique_ptr<NodeWindow>> create_node_window(std::uint64_t bytes_per_rank) override {
    parts();
    return make_mpi_node_window(parts_, bytes_per_rank);
  }

 private:
  /// Return the parts. Collective if the MpiComm has none yet: one allreduce.
  MpiParts& parts() {
    if (parts_ == nullptr) allreduce(std::span<MixedNumber>());
    return *parts_;
  }

  /// Gather along a binomial tree. A rank receives the data of the ranks below it, in rank order
  /// starting at the root, and sends it up with its own. The sizes go first.
  std::vector<Bytes> gather_along_tree(std::span<const std::byte> bytes, int root) {
    std::vector<std::uint64_t> sizes = {bytes.size()};
    const int here = (rank_ - root + n_ranks_) % n_ranks_;
    if ((here & 1) != 0) {  // Half of the ranks have no child and need no buffer.
      send_up((here - 1 + root) % n_ranks_, sizes, bytes);
      return {};
    }
    Bytes all(bytes.begin(), bytes.end());
    for (int step = 1; step < n_ranks_; step *= 2) {
      if ((here & step) != 0) {
        send_up((here - step + root) % n_ranks_, sizes, all);
        return {};
      }
      if (here + step >= n_ranks_) continue;
      const auto n_below = static_cast<std::size_t>(std::min(step, n_ranks_ - here - step));
      take_from_below((here + step + root) % n_ranks_, n_below, sizes, all);
    }
    std::vector<Bytes> by_rank(static_cast<std::size_t>(n_ranks_));
    auto next = all.begin();
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      const auto end = next + static_cast<std::ptrdiff_t>(sizes[r]);
      by_rank[(r + static_cast<std::size_t>(root)) % by_rank.size()].assign(next, end);
      next = end;
    }
    return by_rank;
  }

  void wait(MPI_Request* request) { wait_politely(request, kLongNap, *errands_); }

  static MPI_Op op_of(Reduction reduction) {
    switch (reduction) {
      case Reduction::min: return MPI_MIN;
      case Reduction::max: return MPI_MAX;
      case Reduction::sum: return MPI_SUM;
      case Reduction::bit_or: return MPI_BOR;
      case Reduction::gcd: break;
    }
    TAILRACE_CHECK(false);
    return MPI_OP_NULL;
  }

  void send_up(int parent, std::span<const std::uint64_t> sizes, std::span<const std::byte> bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Comm comm = parts_->comm;
    MPI_Isend(sizes.data(), static_cast<int>(sizes.size()), MPI_UINT64_T, parent, kGatherTag, comm,
              &request);
    wait(&request);
    for (std::uint64_t at = 0; at < bytes.size(); at += kMessageLimit) {
      const int part = byte_count(std::min<std::uint64_t>(kMessageLimit, bytes.size() - at));
      MPI_Isend(bytes.data() + at, part, MPI_BYTE, parent, kGatherTag, comm, &request);
      wait(&request);
    }
  }

  void take_from_below(int child, std::size_t n_below, std::vector<std::uint64_t>& sizes,
                       Bytes& bytes) {
    const std::size_t first = sizes.size();
    sizes.resize(first + n_below);
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Comm comm = parts_->comm;
    MPI_Irecv(&sizes[first], static_cast<int>(n_below), MPI_UINT64_T, child, kGatherTag, comm,
              &request);
    wait(&request);
    std::uint64_t at = bytes.size();
    bytes.resize(std::accumulate(&sizes[first], sizes.data() + sizes.size(), at));
    for (; at < bytes.size(); at += kMessageLimit) {
      const int part = byte_count(std::min<std::uint64_t>(kMessageLimit, bytes.size() - at));
      MPI_Irecv(bytes.data() + at, part, MPI_BYTE, child, kGatherTag, comm, &request);
      wait(&request);
    }
  }

  void reduce(void* values, std::size_t n, MPI_Datatype type, MPI_Op op) {
    if (n_ranks_ == 1) return;
    reduce_over(parts().comm, values, n, type, op);
  }
  void reduce_mixed(MPI_Comm comm, std::span<MixedNumber> numbers) {
    if (n_ranks_ == 1) return;
    reduce_over(comm, numbers.data(), numbers.size(), pool_->mixed_number(),
                pool_->merge_numbers());
  }
  void reduce_over(MPI_Comm comm, void* values, std::size_t n, MPI_Datatype type, MPI_Op op) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(n), type, op, comm, &request);
    wait(&request);
  }

  std::optional<Message> receive(int tag) {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, parts_->comm, &found, &status);
    if (found == 0) return std::nullopt;
    int n_bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &n_bytes);
    // Without memory, this throws and the message stays pending.
    Message message{status.MPI_SOURCE, Bytes(static_cast<std::size_t>(n_bytes))};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(message.payload.data(), n_bytes, MPI_BYTE, message.peer, tag, parts_->comm, &request);
    wait_politely(&request, kShortNap, *errands_);
    return message;
  }

  void drop_finished_posts() {
    auto& posts = parts_->posts;
    for (auto post = posts.begin(); post != posts.end();) {
      int complete = 0;
      MPI_Test(&post->request, &complete, MPI_STATUS_IGNORE);
      post = complete != 0 ? posts.erase(post) : std::next(post);
    }
  }

  std::shared_ptr<MpiPool> pool_;
  std::shared_ptr<MpiParts> parts_;  ///< Null until a call needs them.
  int rank_ = 0;
  int n_ranks_ = 1;
  int rank_on_node_ = 0;
  int n_ranks_on_node_ = 1;  ///< Pretended nodes count.
  int n_ranks_on_host_ = 1;  ///< They share the cores.
  bool abandoned_ = false;
  std::optional<FinalizeCall> finalize_call_;
  std::shared_ptr<Errands> errands_ = std::make_shared<Errands>();
};

/// True if this process was started by an MPI launcher (Open MPI, MPICH, Slurm).
bool launched_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALNRANKS"}) {
    if (environment_variable(name) != nullptr) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Comm>> make_mpi_comm(const void* mpi_comm, std::size_t handle_bytes,
                                            bool lasting) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (mpi_comm == nullptr || handle_bytes != sizeof(MPI_Comm) || initialised == 0) {
    return Status(Code::unsupported,
                  "the communicator does not belong to the MPI library that Tailrace was built "
                  "with, or MPI is not initialised");
  }
  const MPI_Comm parent = *static_cast<const MPI_Comm*>(mpi_comm);
  return std::unique_ptr<Comm>(std::make_unique<MpiComm>(MpiPool::of(parent, lasting)));
}

int n_ranks_of_program() {
  int initialised = 0;
  int finalized = 0;
  int n_ranks = 1;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalized);
  if (initialised != 0 && finalized == 0) MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  return n_ranks;
}

int n_ranks_launched() {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) return 1;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    const char* const value = environment_variable(name);
    if (value != nullptr) return std::max(1, std::atoi(value));
  }
  return 1;
}

std::string mpi_library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  // Open MPI appends its packager and date after a comma, MPICH a page of build options.
  return all.substr(0, all.find_first_of(",\n"));
}

MpiSession::MpiSession(int* argc, char*** argv) {
  int already = 0;
  MPI_Initialized(&already);
  if (already != 0 || !launched_by_mpi()) return;
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  initialised_ = true;
}

MpiSession::~MpiSession() {
  if (initialised_) MPI_Finalize();
}

std::unique_ptr<Comm> MpiSession::world() {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised == 0) return make_self_comm();
  return std::make_unique<MpiComm>(MpiPool::of(MPI_COMM_WORLD, true));
}

}  // namespace tailrace
