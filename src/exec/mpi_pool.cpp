// Agreement on the parts that all ranks have left, and their next use or release.

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <list>
#include <mutex>
#include <utility>

#include "core/environment.hpp"
#include "exec/mpi_finalize.hpp"
#include "exec/mpi_parts.hpp"

namespace tailrace {
namespace {

/// Receive and drop messages that no rank will request. @returns how many were posts.
std::int64_t drop_messages(MPI_Comm comm) {
  std::int64_t n_posts = 0;
  while (true) {
    int found = 0;
    int n_bytes = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status);
    if (found == 0) return n_posts;
    MPI_Get_count(&status, MPI_BYTE, &n_bytes);
    Bytes dropped(static_cast<std::size_t>(n_bytes));
    MPI_Recv(dropped.data(), n_bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm,
             MPI_STATUS_IGNORE);
    if (status.MPI_TAG == kPostTag) ++n_posts;
  }
}

bool is_complete(MPI_Request& request) {
  int complete = 0;
  MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  return complete != 0;
}

/// True if this rank has nothing in flight except posts that were not received.
bool is_quiet(MpiParts& parts) {
  if (parts.n_calls > 0) return false;
  const Status dropped = local_part([&parts] {
    parts.n_received += drop_messages(parts.comm);
    for (const MpiParts::Window& window : parts.windows) {
      if (window.leaders != MPI_COMM_NULL) drop_messages(window.leaders);
    }
    return Status();
  });
  bool quiet = dropped.ok();
  for (MpiParts::Post& post : parts.posts) quiet = is_complete(post.request) && quiet;
  for (auto& [letter, request] : parts.letters) quiet = is_complete(request) && quiet;
  return quiet;
}

/// Signature that is equal on two ranks with the same windows.
std::uint64_t windows_signature(const MpiParts& parts) {
  std::uint64_t signature = parts.n_windows_made;
  for (const MpiParts::Window& window : parts.windows) {
    signature = 31 * signature + 2 * window.number + (window.window == MPI_WIN_NULL ? 1 : 0);
  }
  return signature;
}

/// Numbers of one rank about its parts, and of all ranks after the reduction.
struct Offer {
  enum : std::size_t { busy, given_up, not_received, signature, complement, n_numbers };

  /// Describe parts that this rank has left; others are busy, and nothing else is read.
  static void add(MpiParts& parts, std::vector<MixedNumber>& numbers) {
    const MpiParts::Use use = parts.use.load(std::memory_order_acquire);
    const bool left = use != MpiParts::Use::open && is_quiet(parts);
    const std::uint64_t windows = left ? windows_signature(parts) : 0;
    numbers.push_back({Reduction::max, false, left ? 0U : 1U});
    numbers.push_back({Reduction::max, false, use == MpiParts::Use::given_up ? 1U : 0U});
    // Sums of differences wrap around, and are 0 if all posts were received.
    numbers.push_back({Reduction::sum, false,
                       left ? static_cast<std::uint64_t>(parts.n_posted - parts.n_received) : 0});
    numbers.push_back({Reduction::min, false, windows});
    numbers.push_back({Reduction::min, false, ~windows});
  }
  static bool all_have_left(std::span<const MixedNumber> agreed) {
    return agreed[busy].bits == 0 && agreed[not_received].bits == 0 &&
           agreed[signature].bits == ~agreed[complement].bits;
  }
};

void free_parts(MpiParts& parts) {
  while (!parts.windows.empty()) parts.free_window(parts.windows.begin());
  free_communicators(parts);
}

void merge_numbers(void* in, void* inout, int* n, MPI_Datatype*) {
  const auto* from = static_cast<const MixedNumber*>(in);
  auto* into = static_cast<MixedNumber*>(inout);
  for (int i = 0; i < *n; ++i) into[i].merge(from[i]);
}

/// Split a node's communicator by TAILRACE_RANKS_PER_NODE=N of rank 0: every N ranks form a node,
/// so that the paths between nodes can be tested on one machine. Collective over `comm`.
void pretend_nodes(MPI_Comm comm, MPI_Comm& node_comm) {
  const char* text = environment_variable("TAILRACE_RANKS_PER_NODE");
  int n_per_node = text == nullptr ? 0 : std::max(std::atoi(text), 0);
  MPI_Bcast(&n_per_node, 1, MPI_INT, 0, comm);
  if (n_per_node == 0) return;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(node_comm, rank / n_per_node, rank, &part);
  MPI_Comm_free(&node_comm);
  node_comm = part;
}

/// Pools that have not ended, in the order in which they were made, and calls to make before.
struct Pools {
  std::mutex mutex;
  std::vector<std::shared_ptr<MpiPool>> list;
  std::list<const FinalizeCall*> calls;
};

/// Never destroyed, since MPI may delete attributes at the end of the process.
Pools& pools() {
  static auto* const all = new Pools;
  return *all;
}

/// True once MPI_Finalize has begun to end the pools: no communicator may be freed afterwards.
bool finalizing = false;

/// Make all calls of the owners of Comms. An object may end within its own call, or by another one.
void make_finalize_calls() {
  auto& [mutex, list, calls] = pools();
  while (true) {
    const FinalizeCall* next = nullptr;
    {
      const std::scoped_lock lock(mutex);
      if (calls.empty()) return;
      next = calls.front();
      calls.pop_front();
    }
    next->run();
  }
}

/// End all pools while all of MPI still works. Two ranks have the pools that they share in the same
/// order, because making a pool waits for all of its ranks.
void end_pools() {
  make_finalize_calls();
  while (!pools().list.empty()) {
    const std::shared_ptr<MpiPool> first = pools().list.front();
    first->end();
  }
  finalizing = true;
}

/// Key of the attribute that holds a pool.
int pool_key() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    const auto on_delete = [](MPI_Comm, int, void* held, void*) {
      auto* const pool = static_cast<std::shared_ptr<MpiPool>*>(held);
      (*pool)->end();
      delete pool;
      return MPI_SUCCESS;
    };
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &made, nullptr);
    ask_mpi_finalize<end_pools>();
    return made;
  }();
  return key;
}

}  // namespace

FinalizeCall::FinalizeCall(std::function<void()> call) : call_(std::move(call)) {
  const std::scoped_lock lock(pools().mutex);
  pools().calls.push_back(this);
}

FinalizeCall::~FinalizeCall() {
  const std::scoped_lock lock(pools().mutex);
  pools().calls.remove(this);
}

void MpiParts::free_window(std::list<Window>::iterator window) {
  if (window->leaders != MPI_COMM_NULL) MPI_Comm_free(&window->leaders);
  if (window->window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(window->window);
    MPI_Win_free(&window->window);
  }
  if (window == tail_window) tail_window = windows.end();
  windows.erase(window);
}

void free_communicators(MpiParts& parts) {
  MPI_Comm_free(&parts.node_comm);
  MPI_Comm_free(&parts.comm);
}

std::shared_ptr<MpiPool> MpiPool::of(MPI_Comm parent, bool lasting) {
  const int key = pool_key();
  if (lasting) {
    void* held = nullptr;
    int found = 0;
    MPI_Comm_get_attr(parent, key, &held, &found);
    if (found != 0 && !(*static_cast<std::shared_ptr<MpiPool>*>(held))->ended()) {
      return *static_cast<std::shared_ptr<MpiPool>*>(held);
    }
  } else {
    const std::scoped_lock lock(pools().mutex);
    for (const std::shared_ptr<MpiPool>& pool : pools().list) {
      int same = MPI_UNEQUAL;
      if (!pool->lasting_) MPI_Comm_compare(parent, pool->comm_, &same);
      if (same == MPI_CONGRUENT) return pool;
    }
  }
  auto made = std::make_shared<MpiPool>(parent);
  made->lasting_ = lasting;
  if (lasting) MPI_Comm_set_attr(parent, key, new std::shared_ptr<MpiPool>(made));
  const std::scoped_lock lock(pools().mutex);
  if (!finalizing) pools().list.push_back(made);
  return made;
}

MpiPool::MpiPool(MPI_Comm parent) {
  MPI_Comm_dup(parent, &comm_);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node_comm_);
  MPI_Comm_size(node_comm_, &n_ranks_on_host_);
  pretend_nodes(comm_, node_comm_);
  MPI_Comm_set_errhandler(node_comm_, MPI_ERRORS_RETURN);
  MPI_Type_contiguous(sizeof(MixedNumber), MPI_BYTE, &mixed_number_);
  MPI_Type_commit(&mixed_number_);
  MPI_Op_create(&tailrace::merge_numbers, 1, &merge_numbers_);
}

/// Free the pool's own communicators when its last user has gone.
MpiPool::~MpiPool() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && !finalizing && !given_up_) free_communicators_of_pool();
}

void MpiPool::free_communicators_of_pool() {
  if (comm_ == MPI_COMM_NULL) return;
  MPI_Op_free(&merge_numbers_);
  MPI_Type_free(&mixed_number_);
  MPI_Comm_free(&node_comm_);
  MPI_Comm_free(&comm_);
}

std::vector<MixedNumber> MpiPool::offers() {
  // Allocate first: choose() must not fail on one rank.
  parts_.reserve(parts_.size() + 1);
  if (next_parts_ == nullptr) next_parts_ = std::make_shared<MpiParts>();
  std::vector<MixedNumber> numbers;
  for (std::size_t i = first_offered(); i < parts_.size(); ++i) Offer::add(*parts_[i], numbers);
  return numbers;
}

std::shared_ptr<MpiParts> MpiPool::choose(std::span<const MixedNumber> agreed) {
  std::shared_ptr<MpiParts> chosen;
  std::size_t n_spare = 0;
  for (std::size_t i = first_offered(); !agreed.empty(); ++i) {
    const auto offer = agreed.first<Offer::n_numbers>();
    agreed = agreed.subspan(Offer::n_numbers);
    if (!Offer::all_have_left(offer)) continue;
    if (offer[Offer::given_up].bits == 0 && chosen == nullptr) {
      chosen = parts_[i];
    } else if (offer[Offer::given_up].bits != 0 || n_spare == kSpareMax) {
      free_parts(*parts_[i]);
      parts_[i] = nullptr;
    } else {
      ++n_spare;
    }
  }
  std::erase(parts_, nullptr);
  if (chosen == nullptr) {
    chosen = parts_.emplace_back(std::move(next_parts_));
    MPI_Comm_dup(comm_, &chosen->comm);
    MPI_Comm_set_errhandler(chosen->comm, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_dup(node_comm_, &chosen->node_comm);
    MPI_Comm_set_errhandler(chosen->node_comm, MPI_ERRORS_RETURN);
  }
  for (auto at = chosen->windows.begin(); at != chosen->windows.end();) {
    const auto window = at++;
    if (window != chosen->tail_window) chosen->free_window(window);
  }
  chosen->posts.clear();
  chosen->letters.clear();
  chosen->n_posted = chosen->n_received = 0;
  chosen->tail_is_free = true;
  chosen->pool_has_ended = ended_.load();
  chosen->use = MpiParts::Use::open;
  return chosen;
}

void MpiPool::leave(const std::shared_ptr<MpiParts>& parts, bool given_up) {
  if (given_up) given_up_ = true;
  --n_users_;
  if (parts == nullptr) return;
  // Freeing a window would wait for other ranks, which may keep the object longer.
  if (ended_ && !given_up && parts->windows.empty()) free_communicators(*parts);
  parts->use.store(given_up ? MpiParts::Use::given_up : MpiParts::Use::closed,
                   std::memory_order_release);
}

void MpiPool::end() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (ended_ || finalizing || finalized != 0) return;
  std::vector<MixedNumber> numbers;
  for (const std::shared_ptr<MpiParts>& parts : parts_) Offer::add(*parts, numbers);
  numbers.push_back({Reduction::max, false, static_cast<std::uint64_t>(n_users_.load())});
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), mixed_number_,
                 merge_numbers_, comm_, &request);
  wait_politely(&request);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto offer = std::span(numbers).subspan(i * Offer::n_numbers, Offer::n_numbers);
    if (Offer::all_have_left(offer)) {
      free_parts(*parts_[i]);
    } else {
      parts_[i]->pool_has_ended = true;
    }
  }
  parts_.clear();
  ended_ = true;
  if (numbers.back().bits == 0) free_communicators_of_pool();
  const std::scoped_lock lock(pools().mutex);
  std::erase_if(pools().list, [this](const auto& pool) { return pool.get() == this; });
}

}  // namespace tailrace
