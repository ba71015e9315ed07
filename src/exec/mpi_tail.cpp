// MpiTail: the end of the file, in the memory of rank 0's node; other nodes request addresses.
//
// On rank 0's node a claim is an atomic add. On another node it is a ticket in the node's shared
// memory. The node's first rank is its leader. It requests the bytes of all waiting tickets from
// rank 0 in one message, and distributes the extent that it receives. So a claim takes exactly the
// bytes that it needs and leaves no gap; claims made while an answer is pending go into the next
// request. If ranks announce their claims (expect()), their node gets that many bytes ahead, plus a
// small margin. What is left serves later claims, or becomes a gap.
//
// Messages instead of one-sided operations: not every MPI can make a window between nodes (Open MPI
// 4.1 cannot over TCP). A rank that waits in such an operation also does nothing else, while other
// ranks may wait for it.
//
// Invariant 1: an address is handed out once: the end only grows, and so do the answers.
// Invariant 2: only main threads call MPI, and none waits for an answer without serving: service()
// never waits, and all waits of the engine and of MpiComm call it (Errands).
// Invariant 3: while a rank waits for a claim, rank 0 stays in a Tailrace call: a collective call,
// or let_go().
// Invariant 4: with a single node there are neither tickets nor messages.
// Invariant 5: the next tail on the same ranks receives no message of this one. The first tail of
// an MpiComm leaves its window and its messages to the pool, which uses them again once all
// messages are received. Any other tail receives all messages before it is destroyed.
//
// A failure travels the same way: from its node to the leader, to rank 0, to all leaders.

#include "exec/mpi_parts.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <list>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace tailrace {
namespace {

constexpr std::size_t kTickets = 256;  // a claim without a free ticket waits for one
constexpr std::size_t kExtents = 4;
// Margin: 1/128 more is requested, so that a small error costs no second request.
constexpr std::uint64_t kMarginOfExpected = 128;

/// Interval at which a claim checks for its address. An answer takes two or three polls by main
/// threads; checking much more often takes cores from the encoders.
constexpr std::chrono::microseconds kClaimNap = kTailServiceInterval / 2;

/// State shared by the ranks of a node. Lives in an MPI shared-memory window, zeroed by the node's
/// first rank; lock-free atomics work between processes.
struct NodeState {
  struct Extent {
    std::uint64_t address;
    std::uint64_t end;
    std::uint64_t n_bytes() const { return end - address; }
  };
  struct Ticket {
    enum State : std::uint64_t { unused, waiting, requested, granted };
    State state;
    std::uint64_t n_bytes;
    std::uint64_t address;
  };

  std::atomic<std::uint64_t> cursor;  ///< End of the file; only used on rank 0's node.
  Ticket tickets[kTickets];           ///< Guarded by `locked`.
  Extent ahead[kExtents];             ///< Unused parts of expected extents; guarded by `locked`.
  std::uint64_t claimed_bytes;        ///< Sum of all claims; guarded by `locked`.
  std::uint64_t n_claims;
  /// One entry each for even and odd step numbers. When a rank begins a step, every rank has ended
  /// the previous one and none has begun the next. So the other entry is unused.
  std::atomic<std::uint64_t> done_bytes[2];
  std::atomic<std::uint64_t> expected_bytes[2];  ///< Announced by expect(), not requested yet.
  std::atomic<std::uint32_t> failed[2];
  std::atomic<std::uint32_t> n_let_go[2];
  std::atomic<std::uint32_t> locked;  ///< Guards tickets and extents.
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Spin lock of a node.
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

/// Tags of the messages between leaders and rank 0.
enum Word : int { ask = 1, grant, failure, gone };
using Letter = MpiParts::Letter;

class MpiTail final : public Tail {
 public:
  MpiTail(std::shared_ptr<MpiParts> parts, std::shared_ptr<Errands> errands)
      : parts_(std::move(parts)),
        kept_(std::exchange(parts_->tail_is_free, false)),
        made_before_(kept_ && parts_->tail_window != parts_->windows.end()),
        window_(made_before_ ? parts_->tail_window : parts_->add_window()),
        leaders_(window_->leaders),
        world_(parts_->comm),
        node_comm_(parts_->node_comm),
        errands_(std::move(errands)) {
    if (kept_) parts_->tail_window = window_;
    int n_world = 1;
    MPI_Comm_size(world_, &n_world);
    MPI_Comm_size(node_comm_, &n_node_);
    MPI_Comm_rank(world_, &world_rank_);
    MPI_Comm_rank(node_comm_, &node_rank_);
    single_node_ = n_node_ == n_world;
    has_cursor_ = single_node_ || node_holds_root();
  }

  ~MpiTail() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    const bool stays = finalized != 0 || abandoned_ || (kept_ && !parts_->pool_has_ended);
    if (!stays && connected_) receive_all();
    std::erase(*errands_, this);
    if (!stays) {
      parts_->free_window(window_);
      return;
    }
    // MPI may still read the messages in flight.
    parts_->letters.splice(parts_->letters.end(), sends_);
    parts_->letters.splice(parts_->letters.end(), gone_);
  }

  /// Make the window, if the parts have none, and start the file's end. Collective. The result is
  /// the same on every rank.
  Status prepare(std::uint64_t address) {
    TAILRACE_TRY(made_before_ ? Status() : make_window());
    node_ = static_cast<NodeState*>(memory_of_leader());
    // Ranks of the node do not use the state before the caller's next reduction.
    if (leads()) {
      new (node_) NodeState{};
      node_->cursor.store(address);
    }
    if (single_node_) return Status();
    if (leads()) MPI_Comm_size(leaders_, &n_nodes_);
    errands_->push_back(this);
    connected_ = true;
    return Status();
  }

  std::uint64_t claim(std::uint64_t n_bytes) override {
    Claim claim = start_claim(n_bytes);
    return finish_claim(claim);
  }
  Claim start_claim(std::uint64_t n_bytes) override {
    if (has_cursor_) return {n_bytes, node_->cursor.fetch_add(n_bytes)};
    Claim claim;
    claim.n_bytes = std::max<std::uint64_t>(n_bytes, 1);  // A used-up extent has no address.
    claim.address = try_claim(claim);
    return claim;
  }
  std::uint64_t finish_claim(Claim& claim) override {
    while (!claim.address) {
      claim.address = try_claim(claim);
      if (claim.address) break;
      // Return no place: the step has failed, and the main thread may serve no claims.
      if (failure_raised()) return 0;
      if (std::this_thread::get_id() == main_thread_) service();
      std::this_thread::sleep_for(kClaimNap);
    }
    return *claim.address;
  }

  std::optional<std::uint64_t> claim_at_once(std::uint64_t n_bytes) override {
    if (has_cursor_) return node_->cursor.fetch_add(n_bytes);
    const NodeLock lock(*node_);
    const auto address = take_ahead(std::max<std::uint64_t>(n_bytes, 1));
    if (address) count_claim(n_bytes);
    return address;
  }
  bool claims_travel() const override { return !has_cursor_; }

  std::uint64_t room() const override {
    if (has_cursor_) return UINT64_MAX;
    const NodeLock lock(*node_);
    std::uint64_t most = 0;
    for (const NodeState::Extent& extent : node_->ahead) most = std::max(most, extent.n_bytes());
    return most > 0 ? most : UINT64_MAX;
  }

  bool needs_service() const override { return !single_node_; }
  void service() override {
    if (single_node_) return;
    if (!leads()) {  // Messages of other ranks progress while this one is inside MPI.
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &found, MPI_STATUS_IGNORE);
      return;
    }
    // Every wait calls this function, so it must not throw. Without memory for a letter nothing has
    // changed, and the next turn tries again.
    const Status served = local_part([this] {
      take_turn();
      return Status();
    });
    static_cast<void>(served);
  }

  void let_go() override {
    if (single_node_) return;
    node_->n_let_go[parity()].fetch_add(1);
    if (!leads()) return;
    const auto node_is_through = [this] {
      return node_->n_let_go[parity()].load() == static_cast<std::uint32_t>(n_node_) &&
             requested_bytes_ == 0 && node_->expected_bytes[parity()].load() == 0;
    };
    serve_until(node_is_through);
    if (world_rank_ == 0) {
      serve_until([this] { return n_nodes_gone_ == n_nodes_ - 1; });
      n_nodes_gone_ = 0;
    } else {
      // Reuse the previous letter, received long ago: a failed allocation here would hang rank 0.
      auto& [letter, request] = gone_.front();
      wait_politely(&request);
      letter = {step_, 0};
      start_send(letter, 0, Word::gone, request);
    }
  }

  std::uint64_t end() override {
    barrier_politely(world_, *errands_);
    if (single_node_) return node_->cursor.load();
    std::uint64_t address = world_rank_ == 0 ? end_at_root() : 0;
    broadcast(address);
    return address;
  }
  std::uint64_t end_at_root() override { return node_->cursor.load(); }
  void start_at_root(std::uint64_t address) override { node_->cursor.store(address); }

  void reset(std::uint64_t address) override {
    // A claim that a failure cut short may have left a request pending. From here on, no rank of
    // this node waits for another one.
    if (connected_) barrier_politely(node_comm_, *errands_);
    if (leads()) serve_until([this] { return requested_bytes_ == 0; });
    broadcast(address);  // also: no rank claims from here on
    barrier_politely(world_, *errands_);
    if (leads()) {
      std::fill(std::begin(node_->tickets), std::end(node_->tickets), NodeState::Ticket{});
      std::fill(std::begin(node_->ahead), std::end(node_->ahead), NodeState::Extent{});
      for (auto& expected : node_->expected_bytes) expected.store(0);
      node_->cursor.store(address);
    }
    barrier_politely(world_, *errands_);
  }

  void raise_failure() override { node_->failed[parity()].store(1); }
  bool failure_raised() const override { return node_->failed[parity()].load() != 0; }
  void start_step() override {
    ++step_;
    if (!leads()) return;
    node_->failed[parity() ^ 1U].store(0);
    node_->done_bytes[parity() ^ 1U].store(0);
    node_->expected_bytes[parity() ^ 1U].store(0);
    node_->n_let_go[parity() ^ 1U].store(0);
  }
  void expect(std::uint64_t n_bytes) override {
    if (!has_cursor_) node_->expected_bytes[parity()].fetch_add(n_bytes);
  }
  void add_done(std::uint64_t n_bytes) override { node_->done_bytes[parity()].fetch_add(n_bytes); }
  std::uint64_t done() const override { return node_->done_bytes[parity()].load(); }
  void abandon() override { abandoned_ = true; }

 private:
  bool leads() const { return node_rank_ == 0; }

  /// True if rank 0 is on this node: it is then the node's first rank.
  bool node_holds_root() const {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group node = MPI_GROUP_NULL;
    MPI_Comm_group(world_, &world);
    MPI_Comm_group(node_comm_, &node);
    const int first = 0;
    int first_in_world = MPI_UNDEFINED;
    MPI_Group_translate_ranks(node, 1, &first, world, &first_in_world);
    MPI_Group_free(&world);
    MPI_Group_free(&node);
    return first_in_world == 0;
  }

  /// Make the window, and between several nodes the leaders' communicator. Collective.
  Status make_window() {
    void* memory = nullptr;
    const MPI_Aint own_bytes = leads() ? static_cast<MPI_Aint>(sizeof(NodeState)) : 0;
    bool failed = MPI_Win_allocate_shared(own_bytes, 1, MPI_INFO_NULL, node_comm_, &memory,
                                          &window_->window) != MPI_SUCCESS;
    if (failed) {
      window_->window = MPI_WIN_NULL;
    } else {
      MPI_Win_lock_all(MPI_MODE_NOCHECK, window_->window);
      failed = memory_of_leader() == nullptr;
    }
    int any_failed = failed ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &any_failed, 1, MPI_INT, MPI_MAX, world_);
    if (any_failed != 0) {
      if (kept_) parts_->tail_window = parts_->windows.end();
      return Status(
          Code::unsupported,
          "this MPI library cannot share memory within a node, which Tailrace needs to append "
          "chunks to the file");
    }
    if (single_node_) return Status();
    MPI_Comm_split(world_, leads() ? 0 : MPI_UNDEFINED, world_rank_, &leaders_);
    if (leads()) MPI_Comm_set_errhandler(leaders_, MPI_ERRORS_ARE_FATAL);
    return Status();
  }

  /// Memory of the node's first rank in the window; null if MPI cannot tell.
  void* memory_of_leader() const {
    MPI_Aint shared_bytes = 0;
    int unit = 0;
    void* shared = nullptr;
    const bool told =
        MPI_Win_shared_query(window_->window, 0, &shared_bytes, &unit, &shared) == MPI_SUCCESS;
    return told ? shared : nullptr;
  }
  unsigned parity() const { return static_cast<unsigned>(step_ & 1U); }

  // --- Claims within the node.

  /// Return the address if one is available. Otherwise make a ticket for the claim, if one is free.
  std::optional<std::uint64_t> try_claim(Claim& claim) {
    const NodeLock lock(*node_);
    if (claim.ticket == nullptr) {
      const auto address = take_ahead(claim.n_bytes);
      if (!address) {
        auto* const unused =
            std::ranges::find(node_->tickets, NodeState::Ticket::unused, &NodeState::Ticket::state);
        if (unused == std::end(node_->tickets)) return std::nullopt;
        *unused = {NodeState::Ticket::waiting, claim.n_bytes, 0};
        claim.ticket = unused;
      }
      count_claim(claim.n_bytes);
      return address;
    }
    auto& ticket = *static_cast<NodeState::Ticket*>(claim.ticket);
    if (ticket.state != NodeState::Ticket::granted) return std::nullopt;
    ticket.state = NodeState::Ticket::unused;
    return ticket.address;
  }

  /// Count a claim for usable_rests(). Requires the lock.
  void count_claim(std::uint64_t n_bytes) {
    node_->claimed_bytes += n_bytes;
    ++node_->n_claims;
  }

  /// Take bytes from the smallest sufficient extent. Requires the lock.
  std::optional<std::uint64_t> take_ahead(std::uint64_t n_bytes) {
    NodeState::Extent* best = nullptr;
    for (NodeState::Extent& extent : node_->ahead) {
      if (extent.n_bytes() < n_bytes) continue;
      if (best == nullptr || extent.n_bytes() < best->n_bytes()) best = &extent;
    }
    if (best == nullptr) return std::nullopt;
    best->address += n_bytes;
    return best->address - n_bytes;
  }

  /// Store a range for later claims. It extends the extent that ends where it begins. Otherwise it
  /// competes with the smallest extent; the smaller of both becomes a gap in the file. Requires the
  /// lock.
  void keep_ahead(NodeState::Extent rest) {
    NodeState::Extent* least = node_->ahead;
    for (NodeState::Extent& extent : node_->ahead) {
      if (extent.end == rest.address && extent.n_bytes() > 0) {
        extent.end = rest.end;
        return;
      }
      if (extent.n_bytes() < least->n_bytes()) least = &extent;
    }
    if (rest.n_bytes() > least->n_bytes()) *least = rest;
  }

  // --- Messages between nodes. Leaders only.

  /// Bytes left over from earlier steps that claims can use: each rest less one claim of mean size.
  /// Requires the lock.
  std::uint64_t usable_rests() const {
    const std::uint64_t claim = node_->claimed_bytes / std::max<std::uint64_t>(node_->n_claims, 1);
    std::uint64_t n_bytes = 0;
    for (const NodeState::Extent& rest : node_->ahead) {
      n_bytes += rest.n_bytes() - std::min(rest.n_bytes(), claim);
    }
    return n_bytes;
  }

  /// Receive and answer messages, report a failure, request bytes.
  void take_turn() {
    std::erase_if(sends_, [](auto& sent) {
      int complete = 0;
      MPI_Test(&sent.second, &complete, MPI_STATUS_IGNORE);
      return complete != 0;
    });
    while (receive()) {
    }
    if (failure_raised() && reported_step_ != step_) {
      for (int node = world_rank_ == 0 ? 1 : 0; node < (world_rank_ == 0 ? n_nodes_ : 1); ++node) {
        send(new_letter(), node, Word::failure, 0);  // harmless if received twice
      }
      reported_step_ = step_;
    }
    if (!has_cursor_ && requested_bytes_ == 0) ask_for_what_is_wanted();
  }

  /// Bytes expected in this step, or in the next by a rank that is ahead, less those left over from
  /// earlier steps. The leftover is computed at the first expectation of each step, while no answer
  /// is pending. Requires the lock.
  std::uint64_t take_expected() {
    std::uint64_t lacking = 0;
    bool rests_are_promised = false;
    for (const std::uint64_t step : {step_, step_ + 1}) {
      const std::uint64_t n_expected = node_->expected_bytes[step & 1U].exchange(0);
      if (n_expected == 0) continue;
      const bool is_first = std::exchange(step_of_rests_, step) != step;
      if (is_first && !rests_are_promised) rest_bytes_ = usable_rests();
      rests_are_promised = true;
      const std::uint64_t left_over = std::min(n_expected, rest_bytes_);
      rest_bytes_ -= left_over;
      lacking += n_expected - left_over;
    }
    return lacking;
  }

  /// Request the larger of two: the bytes of the waiting tickets, or the expected bytes with a
  /// margin. Tickets are part of the expectation, if any was made.
  void ask_for_what_is_wanted() {
    Sends letter = new_letter();
    std::uint64_t n_bytes = 0;
    {
      const NodeLock lock(*node_);
      const std::uint64_t expected = take_expected();
      for (NodeState::Ticket& ticket : node_->tickets) {
        if (ticket.state != NodeState::Ticket::waiting) continue;
        ticket.state = NodeState::Ticket::requested;
        n_bytes += ticket.n_bytes;
      }
      n_bytes = std::max(n_bytes, expected + expected / kMarginOfExpected);
    }
    requested_bytes_ = n_bytes;
    if (n_bytes > 0) send(std::move(letter), 0, Word::ask, n_bytes);
  }

  /// Grant the requested tickets, then later ones; store the rest for later claims.
  void deal_out(std::uint64_t address) {
    NodeState::Extent range{address, address + std::exchange(requested_bytes_, 0)};
    const NodeLock lock(*node_);
    for (const auto state : {NodeState::Ticket::requested, NodeState::Ticket::waiting}) {
      for (NodeState::Ticket& ticket : node_->tickets) {
        if (ticket.state != state || ticket.n_bytes > range.n_bytes()) continue;
        ticket.state = NodeState::Ticket::granted;
        ticket.address = range.address;
        range.address += ticket.n_bytes;
      }
    }
    if (range.n_bytes() > 0) keep_ahead(range);
  }

  /// Receive all messages before the tail is destroyed. Once all ranks of a node are here, none of
  /// them expects or fails; once its requests are answered, its leader makes no more. Messages that
  /// rank 0 still forwards are received before any leader leaves. Collective: a barrier within
  /// nodes, two between leaders.
  void receive_all() {
    barrier_politely(node_comm_, *errands_);
    if (!leads()) return;
    wait_for_own();
    barrier_politely(leaders_, *errands_);
    wait_for_own();
    barrier_politely(leaders_, *errands_);
  }

  /// Wait until this leader's requests are answered and its messages received.
  void wait_for_own() {
    Nap nap(kLongNap);
    int complete = 0;
    while (true) {
      run_errands(*errands_);
      MPI_Test(&gone_.front().second, &complete, MPI_STATUS_IGNORE);
      if (complete != 0 && requested_bytes_ == 0 && sends_.empty()) return;
      nap.take();
    }
  }

  /// Messages in flight, until they are received.
  using Sends = MpiParts::Letters;

  /// Allocate a message before anything is changed: a received message must always get its reply.
  static Sends new_letter() { return Sends(1, {Letter{}, MPI_REQUEST_NULL}); }

  void start_send(const Letter& letter, int node, Word word, MPI_Request& request) {
    MPI_Issend(letter.data(), static_cast<int>(letter.size()), MPI_UINT64_T, node, word, leaders_,
               &request);
  }

  void send(Sends memory, int node, Word word, std::uint64_t value) {
    sends_.splice(sends_.end(), memory);
    sends_.back().first = {step_, value};
    start_send(sends_.back().first, node, word, sends_.back().second);
  }

  /// Receive one message, if any is pending.
  bool receive() {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, leaders_, &found, &status);
    if (found == 0) return false;
    Sends answer = new_letter();
    Letter letter{};
    MPI_Recv(letter.data(), static_cast<int>(letter.size()), MPI_UINT64_T, status.MPI_SOURCE,
             status.MPI_TAG, leaders_, MPI_STATUS_IGNORE);
    const auto [step, value] = letter;
    switch (static_cast<Word>(status.MPI_TAG)) {
      case Word::ask: send(std::move(answer), status.MPI_SOURCE, Word::grant, claim(value)); break;
      case Word::grant: deal_out(value); break;
      // A node may be a step ahead of this one; its failures of earlier steps are ignored.
      case Word::failure:
        if (step < step_) break;
        node_->failed[step & 1U].store(1);
        if (world_rank_ != 0) reported_step_ = step;
        break;
      case Word::gone: ++n_nodes_gone_; break;
    }
    return true;
  }

  template <class Done>
  void serve_until(const Done& done) {
    Nap nap(kLongNap);
    while (service(), !done()) nap.take();
  }

  void broadcast(std::uint64_t& address) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&address, 1, MPI_UINT64_T, 0, world_, &request);
    wait_politely(&request, kLongNap, *errands_);
  }

  std::shared_ptr<MpiParts> parts_;
  bool kept_;         ///< The window stays with the parts.
  bool made_before_;  ///< The parts have had a tail.
  std::list<MpiParts::Window>::iterator window_;
  MPI_Comm& leaders_;  ///< Communicator of the window.
  MPI_Comm world_;
  MPI_Comm node_comm_;
  std::shared_ptr<Errands> errands_;
  int world_rank_ = 0;
  int node_rank_ = 0;
  int n_node_ = 1;
  int n_nodes_ = 1;  ///< Only set on leaders.
  bool single_node_ = true;
  bool has_cursor_ = true;  ///< True on rank 0's node.
  bool connected_ = false;  ///< Set by prepare(), if there are other nodes.
  bool abandoned_ = false;
  std::uint64_t step_ = 0;
  std::uint64_t reported_step_ = UINT64_MAX;  ///< Step whose failure has been reported.
  std::uint64_t requested_bytes_ = 0;         ///< Requested from rank 0, not answered yet.
  std::uint64_t step_of_rests_ = 0;  ///< Initially 0, which is no step's number: they begin with 1.
  std::uint64_t rest_bytes_ = 0;     ///< Part of usable_rests() that step_of_rests_ has not used.
  int n_nodes_gone_ = 0;
  Sends sends_;
  Sends gone_ = new_letter();  ///< Reused by each let_go().
  std::thread::id main_thread_ = std::this_thread::get_id();
  NodeState* node_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Tail>> make_mpi_tail(std::shared_ptr<MpiParts> parts, std::uint64_t address,
                                            std::shared_ptr<Errands> errands) {
  auto tail = std::make_unique<MpiTail>(std::move(parts), std::move(errands));
  if (Status made = tail->prepare(address); !made.ok()) return made;
  return std::unique_ptr<Tail>(std::move(tail));
}

}  // namespace tailrace
