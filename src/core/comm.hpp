// Comm: the operations that the engine needs on a group of ranks. Tail: the file's shared end.
// NodeWindow: memory that the ranks of a node share.
//
// Implementations: SelfComm (one rank, no MPI), MpiComm (exec), ThreadComm (tests: ranks are
// threads). Collective calls return plain values: if MPI itself fails, MPI ends the job, so no rank
// is left waiting. A waiting rank sleeps in short naps instead of polling, because on full nodes
// other ranks need the core. Every collective states its cost; none is an all-to-all.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

using Bytes = std::vector<std::byte>;
class ByteReader;
class ByteWriter;

/// A message between two ranks: `peer` is the destination when sent, the source when received.
struct Message {
  int peer = 0;
  Bytes payload;
};

enum class Reduction : std::uint8_t { min, max, sum, gcd, bit_or };

/// The bits of a number with its reduction, so that numbers of all kinds share one allreduce.
struct MixedNumber {
  Reduction reduction = Reduction::min;
  bool fraction = false;  ///< True: a double; false: a std::uint64_t.
  std::uint64_t bits = 0;

  /// Reduce another rank's number into this one.
  void merge(const MixedNumber& other);
};

/// The end of the output file, where every rank claims addresses for its next bytes.
/// Invariant 1: two claims never overlap. Invariant 2: a claim never lies before the tail's start.
class Tail {
 public:
  virtual ~Tail() = default;
  /// Claim `n_bytes` at the end of the file and return their address. Not collective. Thread-safe.
  /// Cost: one atomic add on rank 0's node; on other nodes it waits for a reply from rank 0.
  /// @returns any address if failure_raised(): then the caller must not write.
  virtual std::uint64_t claim(std::uint64_t n_bytes) = 0;
  /// A pending claim: its rank can do other work until the address arrives.
  struct Claim {
    std::uint64_t n_bytes = 0;
    std::optional<std::uint64_t> address;  ///< Set once the address has arrived.
    void* ticket = nullptr;                ///< Private to the tail.
  };
  /// Start a claim without waiting; finish_claim() completes it. After a failure a claim need not
  /// be finished.
  virtual Claim start_claim(std::uint64_t n_bytes) { return {n_bytes, claim(n_bytes)}; }
  /// Claim `n_bytes` if that needs no message. Used on an application's own thread, while the rank
  /// that would have to reply may itself be waiting.
  virtual std::optional<std::uint64_t> claim_at_once(std::uint64_t n_bytes) {
    return claim(n_bytes);
  }
  /// Return true if claims of this rank may need a message.
  virtual bool claims_travel() const { return false; }
  virtual std::uint64_t finish_claim(Claim& claim) { return claim.address.value_or(0); }
  /// Announce that this rank is going to claim about `n_bytes` in this step, so that they are
  /// requested immediately. A surplus serves later steps; after the last step it leaves a gap in
  /// the file. Not collective.
  virtual void expect(std::uint64_t /*n_bytes*/) {}
  /// Return the largest claim that needs no message, or UINT64_MAX if none ever does. The value may
  /// shrink at any time.
  virtual std::uint64_t room() const { return UINT64_MAX; }
  /// Progress claims across nodes; the main thread calls it while it waits.
  virtual void service() {}
  /// Return true if service() must be called regularly: the ranks span several nodes.
  virtual bool needs_service() const { return false; }
  /// Announce that this rank waits for no claim until the next collective call. Collective; call it
  /// before ranks return to the program while claims may still arrive. Rank 0 keeps serving until
  /// all ranks have announced this and have received what they expected.
  virtual void let_go() {}
  /// Return the current end of the file. Collective (a barrier): all claims made before are
  /// counted.
  virtual std::uint64_t end() = 0;
  /// Return the end of the file when all ranks are known to have made their claims. Rank 0 only;
  /// not collective.
  virtual std::uint64_t end_at_root() = 0;
  /// Set the end before any rank claims, unlike reset(). Rank 0 only; not collective.
  virtual void start_at_root(std::uint64_t address) = 0;
  /// Set the end to rank 0's value. Collective; no claim may be pending.
  virtual void reset(std::uint64_t address) = 0;
  /// Signal that the step has failed, so that other ranks stop early. Ranks of this node see it
  /// immediately, those of other nodes when their main threads call service(). Any thread.
  virtual void raise_failure() = 0;
  virtual bool failure_raised() const = 0;
  /// Clear a raised failure and the count of done bytes. Collective, but does not wait. Every rank
  /// already knows from messages that the lanes of all ranks have ended the last step.
  virtual void start_step() = 0;
  /// Count uncompressed bytes as encoded, for this node's progress. Any thread.
  virtual void add_done(std::uint64_t n_bytes) = 0;
  virtual std::uint64_t done() const = 0;
  /// Make the destructor local. Resources that only all ranks together can free are freed when they
  /// make the next Comm of the same communicator, or by MPI_Finalize.
  virtual void abandon() {}
};

/// Interval at which an otherwise idle main thread services such a tail; one request takes about
/// two intervals. Polling more often starves the encoders: with six ranks on two cores, polling
/// every 100 us made a step 1.3 times as long.
inline constexpr std::chrono::microseconds kTailServiceInterval{500};

/// Memory that all ranks of a node see: one segment per rank, of equal size. Here ranks are
/// numbered within the node, in the order of their ranks in the Comm.
class NodeWindow {
 public:
  /// Collective, or local after abandon().
  virtual ~NodeWindow() = default;
  virtual int rank_on_node() const = 0;
  virtual int n_ranks_on_node() const = 0;
  /// The rank in the Comm of the node's rank `rank_on_node`.
  virtual int rank_in_comm(int rank_on_node) const = 0;
  /// Return the segment of one rank of the node, aligned to 64 bytes and initially zero. Any
  /// thread. A reader of another rank's bytes must synchronise with the writer by atomics in the
  /// window. Lock-free atomics work between processes.
  virtual std::span<std::byte> segment(int rank_on_node) = 0;
  /// Make the destructor local. Resources that only all ranks together can free are freed when they
  /// make the next Comm of the same communicator, or by MPI_Finalize.
  virtual void abandon() {}
};

/// A pending collective sum; the rank can do other work until it is complete.
class PendingSum {
 public:
  virtual ~PendingSum() = default;
  /// True once complete. Main thread only.
  virtual bool complete() = 0;
  /// Wait until the sum is complete, servicing tails of the same ranks meanwhile. Main thread only.
  virtual void wait() = 0;
  /// Sum over the ranks before this one (exclusive prefix), per entry. Valid once complete.
  virtual std::vector<std::uint64_t> before() const = 0;
  /// Sum over all ranks, per entry. Valid once complete.
  virtual std::vector<std::uint64_t> total() const = 0;
};

class Comm;

/// Numbers of a rank, each added once, that are replaced in place by all ranks' reduction. They
/// travel in their own allreduce, along with an agreement, or along with messages to rank 0 and its
/// reply. Every rank adds the same numbers in the same order; their addresses must stay valid.
class RankNumbers {
 public:
  template <class... Numbers>
  void add(Reduction reduction, Numbers&... numbers) {
    numbers_.insert(numbers_.end(), {Number{reduction, &numbers}...});
  }
  template <class T>
  void add_all(Reduction reduction, std::vector<T>& numbers) {
    for (T& number : numbers) add(reduction, number);
  }
  void add_all(const RankNumbers& others) {
    numbers_.insert(numbers_.end(), others.numbers_.begin(), others.numbers_.end());
  }
  bool empty() const { return numbers_.empty(); }
  /// Reduce the numbers over all ranks. Collective. Cost: one allreduce of 16 bytes a number.
  void reduce(Comm& comm) const;
  /// Append the current values.
  void pack(ByteWriter& writer) const;
  /// Reduce another rank's numbers into these.
  void merge(ByteReader& others) const;
  /// Replace these by reduced numbers.
  void take(ByteReader& reduced) const;

 private:
  struct Number {
    Reduction reduction;
    std::variant<double*, std::uint64_t*> place;
    MixedNumber mixed() const;
    void set(const MixedNumber& number) const;
  };
  std::vector<Number> numbers_;
};

class Comm {
 public:
  virtual ~Comm() = default;

  virtual int rank() const = 0;
  virtual int n_ranks() const = 0;
  /// Return the number of ranks on this rank's node, which share its cores.
  virtual int n_ranks_on_node() const = 0;
  /// Return true on the one rank of each node that does work needed once per node.
  virtual bool leads_node() const { return rank() == 0; }
  /// Return " on HOST" if the ranks span several nodes; errors append it to the rank number.
  virtual std::string place() const { return ""; }
  bool is_root() const { return rank() == 0; }

  /// Collective. Cost: O(log ranks).
  virtual void barrier() = 0;
  /// Elementwise reduction in place, same number of entries everywhere. Collective. O(log ranks).
  virtual void allreduce(std::span<std::uint64_t> values, Reduction reduction) = 0;
  virtual void allreduce(std::span<double> values, Reduction reduction) = 0;
  /// Elementwise reduction of numbers that each have their own reduction; required for gcd.
  virtual void allreduce(std::span<MixedNumber> numbers) = 0;
  /// Copy root's bytes to every rank, resizing where needed. Collective. O(log ranks).
  virtual void broadcast(Bytes& bytes, int root) = 0;
  /// Collect every rank's bytes at the root, in rank order; empty elsewhere. Collective. Cost:
  /// O(log ranks) messages; O(bytes) at the root, and at intermediate ranks the bytes that they
  /// forward.
  virtual std::vector<Bytes> gather(std::span<const std::byte> bytes, int root) = 0;
  /// Start an exclusive prefix sum together with the total. Collective, but does not wait.
  virtual std::unique_ptr<PendingSum> start_sum(std::vector<std::uint64_t> values) = 0;
  /// Deliver each message to its peer and return the messages sent to this rank, in any order.
  /// Collective. Cost: O(own messages + log ranks) (nonblocking consensus, Hoefler et al. 2010).
  virtual std::vector<Message> exchange(std::vector<Message> outgoing) = 0;

  /// Send without waiting. Main thread only. Delivered in order per pair.
  virtual void post(Message message) = 0;
  /// Return the next message posted to this rank, if one has arrived. Main thread only.
  virtual std::optional<Message> poll() = 0;
  /// Return true if a posted message has not been sent yet; messages progress only while this rank
  /// polls.
  virtual bool posts_pending() const { return false; }
  /// Wait until all messages posted by this rank have been sent. Main thread only.
  virtual void finish_posts() = 0;

  /// Create the shared end of a new file, starting at `address`. Collective; ranks other than rank
  /// 0 may claim after the next reduction or barrier. Cost: the first tail of a Comm costs nothing
  /// if a closed file's tail is kept; else a window, and between nodes a communicator.
  virtual Result<std::unique_ptr<Tail>> create_tail(std::uint64_t address) = 0;

  /// Allocate memory that the ranks of each node share, `bytes_per_rank` for every rank.
  /// Collective.
  /// @error unsupported  the MPI library lacks it; the same result on every rank.
  virtual Result<std::unique_ptr<NodeWindow>> create_node_window(std::uint64_t bytes_per_rank) = 0;

  /// Make the destructor local, for a rank that gives up: waiting for the others would hang it.
  /// Resources that only all ranks together can free are freed when they make the next Comm of the
  /// same communicator, or by MPI_Finalize.
  virtual void abandon() {}
  /// Register `call`, which MPI_Finalize runs on this process before it frees what this Comm uses.
  /// Owners whose threads or destructors use that memory need it; `call` must be local. A second
  /// registration replaces the first; the end of the Comm drops it. Not collective.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): others store it
  virtual void before_finalize(std::function<void()> /*call*/) {}

  /// Agree on one Status: the same on every rank. It is the failure of the lowest failing rank,
  /// with that rank's number. If no rank has failed, it is the first decision noted by decide()
  /// since the last agreement that differs between ranks; otherwise ok. Collective. Cost: one
  /// allreduce of three numbers and those `along`, which are reduced too; on failure one more
  /// broadcast.
  /// @error disagreement  names the decision, and the values of rank 0 and another rank.
  Status agree(const Status& mine, const RankNumbers& along = {});
  /// Return this rank's value if no rank has failed. Collective, like the overload above.
  template <class T>
  Result<T> agree(Result<T> mine) {
    TAILRACE_TRY(agree(mine.status()));
    return mine;
  }
  /// Return this rank's failure with its rank and place, as agree() names them; ok unchanged.
  Status named(const Status& mine) const;

  /// Note a decision that every rank must make identically, such as a field's codec. The next
  /// agree() compares all noted decisions at no further cost. Not collective.
  void decide(std::string_view what, std::string_view decision);

 private:
  std::string decided_;  ///< Decisions since the last agreement, a line each.
};

// --- Agreement on a text, to check without exchanging them that all ranks made the same
// definitions; and on rank 0's result, where one rank's check is enough.

/// Form of Comm::agree() in which all ranks must also have the same `text`, line by line. `what`
/// names the text in the error, which shows on every rank the first line that differs from rank
/// 0's. Collective. Cost: one agreement; if the texts differ, two more broadcasts and another
/// agreement.
/// @error disagreement
Status agree_on_text(Comm& comm, const std::string& what, const std::string& text,
                     const Status& mine = Status(), const RankNumbers& along = {});

/// Two-phase form of agree_on_text() for callers that reduce its numbers together with others.
class TextAgreement {
 public:
  TextAgreement(Comm& comm, std::string what, std::string text, Status mine);
  TextAgreement(const TextAgreement&) = delete;
  TextAgreement& operator=(const TextAgreement&) = delete;
  /// Numbers to reduce over all ranks; this object stores them.
  RankNumbers numbers();
  /// Return the agreed Status after the reduction. Collective if not all ranks agree: the cost of
  /// agree_on_text() without the allreduce.
  Status conclude();

 private:
  Comm& comm_;
  std::string what_;
  std::string text_;
  Status mine_;
  std::uint64_t first_failed_;
  std::uint64_t hash_;  ///< Least hash and least complement: equal if all hashes are.
  std::uint64_t complement_;
};

/// Broadcast rank 0's result: its Status, without its rank in the text, or the bytes that `write`
/// packs. `write` is called on rank 0 only. Collective. Cost: one broadcast.
Result<Bytes> broadcast_from_root(Comm& comm,
                                  const std::function<Status(ByteWriter& message)>& write);

/// Return rank 0's Status on every rank; the other ranks' values are ignored. Collective. One
/// broadcast.
Status agree_with_root(Comm& comm, const Status& mine);

// --- BorrowedComm: another owner's Comm, for a component that requires a Comm.
//
// The lender ensures that both do not use it concurrently: it has one order of collective calls and
// one stream of posted messages.

class BorrowedComm final : public Comm {
 public:
  explicit BorrowedComm(Comm& comm) : comm_(comm) {}

  int rank() const override { return comm_.rank(); }
  int n_ranks() const override { return comm_.n_ranks(); }
  int n_ranks_on_node() const override { return comm_.n_ranks_on_node(); }
  bool leads_node() const override { return comm_.leads_node(); }
  std::string place() const override { return comm_.place(); }
  void barrier() override { comm_.barrier(); }
  void allreduce(std::span<std::uint64_t> values, Reduction reduction) override {
    comm_.allreduce(values, reduction);
  }
  void allreduce(std::span<double> values, Reduction reduction) override {
    comm_.allreduce(values, reduction);
  }
  void allreduce(std::span<MixedNumber> numbers) override { comm_.allreduce(numbers); }
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
  // abandon() remains the lender's decision.

 private:
  Comm& comm_;
};

// --- Numbers of a report, each named once, reduced over the ranks in place.

/// Replace each number by the sum (maximum, ...) over all ranks. Whole numbers mixed with fractions
/// travel as double, which is exact up to 2^53. Collective: one allreduce.
template <class... Numbers>
void reduce_all(Comm& comm, Reduction reduction, Numbers&... numbers) {
  using Common = std::conditional_t<(std::is_integral_v<Numbers> && ...), std::uint64_t, double>;
  Common packed[] = {static_cast<Common>(numbers)...};
  comm.allreduce(std::span<Common>(packed), reduction);
  const Common* next = packed;
  ((numbers = static_cast<Numbers>(*next++)), ...);
}

}  // namespace tailrace
