// Comm: what the engine needs of a group of ranks, and nothing more. Tail: the file's shared end.
// NodeWindow: memory that the ranks of a node share.
//
// Implementations: SelfComm (one rank, no MPI), MpiComm (exec), ThreadComm (tests: ranks are
// threads). Collective calls return plain values: if MPI itself breaks, MPI ends the job, so that
// no rank is ever left waiting. While a rank waits, it sleeps in short naps instead of polling,
// because on full nodes its neighbours want the core. Every collective states its cost; none is an
// all-to-all.

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

/// A number, as its bits, with the way to reduce it: so numbers of all kinds travel together.
struct MixedNumber {
  Reduction reduction = Reduction::min;
  bool fraction = false;  ///< A double; else a std::uint64_t.
  std::uint64_t bits = 0;

  /// Reduce another rank's number into this one.
  void merge(const MixedNumber& other);
};

/// The end of the output file, from which every rank takes the addresses of its next bytes.
/// Invariant 1: two claims never overlap. Invariant 2: a claim never lies before the tail's start.
class Tail {
 public:
  virtual ~Tail() = default;
  /// Take `n_bytes` at the end of the file and return their address. Not collective. Thread-safe.
  /// Cost: one atomic add on rank 0's node; on others it waits for rank 0's answer to a message.
  /// @returns any address if failure_raised(): then nothing may be written.
  virtual std::uint64_t claim(std::uint64_t n_bytes) = 0;
  /// A claim that travels while its rank does something else.
  struct Claim {
    std::uint64_t n_bytes = 0;
    std::optional<std::uint64_t> address;  ///< Once it has come.
    void* ticket = nullptr;                ///< The tail's own.
  };
  /// claim() in two parts. One that a failure cuts short need not be finished.
  virtual Claim start_claim(std::uint64_t n_bytes) { return {n_bytes, claim(n_bytes)}; }
  /// claim() if that needs no message: for an application's own thread, for which the rank that
  /// would have to answer may be waiting itself.
  virtual std::optional<std::uint64_t> claim_at_once(std::uint64_t n_bytes) {
    return claim(n_bytes);
  }
  /// Whether claims of this rank may take a message.
  virtual bool claims_travel() const { return false; }
  virtual std::uint64_t finish_claim(Claim& claim) { return claim.address.value_or(0); }
  /// Tell that this rank is going to claim so many bytes in this step, as far as it knows: they are
  /// asked for at once. What is too much serves the steps that follow; of the last one it is a gap.
  /// Not collective.
  virtual void expect(std::uint64_t /*n_bytes*/) {}
  /// What one claim can have without a message, if anything; else all. It may be less at once.
  virtual std::uint64_t room() const { return UINT64_MAX; }
  /// Let claims across nodes make progress; called by the main thread while it waits.
  virtual void service() {}
  /// Whether service() must be called now and then: true if the ranks span several nodes.
  virtual bool needs_service() const { return false; }
  /// This rank waits for no claim any more, until a collective call. Collective, before ranks go
  /// back to a program while claims may still come: rank 0 stays, and serves, until all have said
  /// so, and what was expected has been got.
  virtual void let_go() {}
  /// Where the file ends now. Collective (a barrier): all claims made before are counted.
  virtual std::uint64_t end() = 0;
  /// The same where all ranks are known to have made their claims. Rank 0 only; not collective.
  virtual std::uint64_t end_at_root() = 0;
  /// Set the end. Collective; no claim may be under way. The value of rank 0 counts.
  virtual void reset(std::uint64_t address) = 0;
  /// Tell that the step has failed, so that others stop early: the ranks of this node at once,
  /// those of others when their main threads serve. Any thread.
  virtual void raise_failure() = 0;
  virtual bool failure_raised() const = 0;
  /// Forget a raised failure and the bytes done. Collective, but waits for nobody: every rank has
  /// heard from all others, since the last step's lanes have ended, that theirs have.
  virtual void start_step() = 0;
  /// Count uncompressed bytes as encoded, for the progress of this node's ranks. Any thread.
  virtual void add_done(std::uint64_t n_bytes) = 0;
  virtual std::uint64_t done() const = 0;
  /// Make the destructor local: what only all ranks together can free, they free when they make the
  /// next Comm of the same communicator, or MPI_Finalize does.
  virtual void abandon() {}
};

/// How often a main thread that has nothing else to do serves such a tail: a question takes about
/// two of these. More often costs the encoders' cores: of six ranks on two cores that polled every
/// 100 us a step took 1.3 times as long.
inline constexpr std::chrono::microseconds tail_service_interval{500};

/// Memory that all ranks of a node see: one segment per rank, as many bytes each.
/// Ranks are counted within the node here, in the order of their ranks in the Comm.
class NodeWindow {
 public:
  /// Local after abandon(), else collective.
  virtual ~NodeWindow() = default;
  virtual int rank_on_node() const = 0;
  virtual int n_ranks_on_node() const = 0;
  /// The rank in the Comm of the node's rank `rank_on_node`.
  virtual int rank_in_comm(int rank_on_node) const = 0;
  /// The segment of one rank of the node, aligned to 64 bytes, zeros at first. Any thread; who
  /// reads what another rank has written orders the two by atomics in the window, which work
  /// between processes if they are lock-free.
  virtual std::span<std::byte> segment(int rank_on_node) = 0;
  /// Make the destructor local: what only all ranks together can free, they free when they make the
  /// next Comm of the same communicator, or MPI_Finalize does.
  virtual void abandon() {}
};

/// A collective under way; the rank can do other things until it is complete.
class PendingSum {
 public:
  virtual ~PendingSum() = default;
  /// True once complete. Main thread only.
  virtual bool complete() = 0;
  /// Until it is complete; tails of the same ranks are served meanwhile. Main thread only.
  virtual void wait() = 0;
  /// Sum over the ranks before this one (exclusive prefix), per entry. Valid once complete.
  virtual std::vector<std::uint64_t> before() const = 0;
  /// Sum over all ranks, per entry. Valid once complete.
  virtual std::vector<std::uint64_t> total() const = 0;
};

class Comm;

/// Numbers of a rank's, each named once, that become all ranks' in place: in an allreduce of their
/// own, along with an agreement, or along with what goes to rank 0 anyway and is answered. Every
/// rank adds the same numbers in the same order; they must stay where they are.
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
  /// Collective. Cost: one allreduce of 16 bytes a number.
  void reduce(Comm& comm) const;
  /// As they stand now.
  void pack(ByteWriter& writer) const;
  /// Reduce another rank's into these.
  void merge(ByteReader& others) const;
  /// Replace these.
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
  /// Ranks that share this one's node (and its cores).
  virtual int n_ranks_on_node() const = 0;
  /// Whether this rank is the one of its node that does what is enough to do once a node.
  virtual bool leads_node() const { return rank() == 0; }
  /// " on HOST" where the ranks span several nodes: what errors name a rank by, besides its number.
  virtual std::string place() const { return ""; }
  bool is_root() const { return rank() == 0; }

  /// Collective. Cost: O(log ranks).
  virtual void barrier() = 0;
  /// Elementwise reduction in place, same number of entries everywhere. Collective. O(log ranks).
  virtual void allreduce(std::span<std::uint64_t> values, Reduction reduction) = 0;
  virtual void allreduce(std::span<double> values, Reduction reduction) = 0;
  /// The same for numbers that are each reduced in its own way, the only one for gcd.
  virtual void allreduce(std::span<MixedNumber> numbers) = 0;
  /// Root's bytes to everybody; resized where needed. Collective. O(log ranks).
  virtual void broadcast(Bytes& bytes, int root) = 0;
  /// Everybody's bytes at the root, in rank order; empty elsewhere. Collective. Cost: O(log ranks)
  /// messages; O(bytes) at the root, and at ranks on the way what they pass on.
  virtual std::vector<Bytes> gather(std::span<const std::byte> bytes, int root) = 0;
  /// Start an exclusive prefix sum together with the total. Collective, but does not wait.
  virtual std::unique_ptr<PendingSum> start_sum(std::vector<std::uint64_t> values) = 0;
  /// Deliver each message to its peer and return those that were sent here, in no order.
  /// Collective. Cost: O(own messages + log ranks) (nonblocking consensus, Hoefler et al. 2010).
  virtual std::vector<Message> exchange(std::vector<Message> outgoing) = 0;

  /// Send without waiting. Main thread only. Delivered in order per pair.
  virtual void post(Message message) = 0;
  /// The next message posted to this rank, if one has come. Main thread only.
  virtual std::optional<Message> poll() = 0;
  /// Whether something posted has not left yet; it moves only while this rank polls.
  virtual bool posts_pending() const { return false; }
  /// Wait until all that this rank posted has left. Main thread only.
  virtual void finish_posts() = 0;

  /// The shared end of a new file, starting at `address`. Collective.
  virtual Result<std::unique_ptr<Tail>> create_tail(std::uint64_t address) = 0;

  /// Memory that the ranks of each node share, `bytes_per_rank` from every rank. Collective.
  /// @error unsupported  the MPI library cannot; the same answer on every rank.
  virtual Result<std::unique_ptr<NodeWindow>> create_node_window(std::uint64_t bytes_per_rank) = 0;

  /// Make the destructor local: what only all ranks together can free, they free when they make the
  /// next Comm of the same communicator, or MPI_Finalize does.
  /// For a rank that gives up alone; waiting for the others there would hang it.
  virtual void abandon() {}

  /// The same Status on every rank: the failure of the lowest failing rank, its rank named; or, if
  /// none has failed but what was noted by decide() since the last agreement is not alike, the
  /// first decision that differs; or ok. Collective. Cost: one allreduce of three numbers and those
  /// that go `along`, which become all ranks'; on failure one broadcast more.
  /// @error disagreement  names the decision, and what rank 0 and another rank came to.
  Status agree(const Status& mine, const RankNumbers& along = {});
  /// This rank's value where no rank has failed. Collective, as above.
  template <class T>
  Result<T> agree(Result<T> mine) {
    TAILRACE_TRY(agree(mine.status()));
    return mine;
  }
  /// This rank's failure, with its rank and place as agree() names them; ok as it is.
  Status named(const Status& mine) const;

  /// Note a decision that every rank must have come to by itself and alike, such as a field's
  /// codec: the next agree() compares all that was noted, at no further cost. Not collective.
  void decide(std::string_view what, std::string_view decision);

 private:
  std::string decided_;  ///< Since the last agreement, a line each.
};

// --- Agreement on a text: that all ranks have made the same definitions, without sending them
// around; and on rank 0's word, where one rank's look is enough.

/// As Comm::agree(), where all ranks must have the same `text` as well, line by line; `what` names
/// it in the error, which shows the first line that differs from rank 0's, on every rank.
/// Collective. Cost: that of an agreement; on a difference two broadcasts and an agreement more.
/// @error disagreement
Status agree_on_text(Comm& comm, const std::string& what, const std::string& text,
                     const Status& mine = Status(), const RankNumbers& along = {});

/// The same in parts, where the numbers that must be reduced for it travel with others.
class TextAgreement {
 public:
  TextAgreement(Comm& comm, std::string what, std::string text, Status mine);
  TextAgreement(const TextAgreement&) = delete;
  TextAgreement& operator=(const TextAgreement&) = delete;
  /// To be reduced over all ranks; they stand here.
  RankNumbers numbers();
  /// What they have come to. Collective, where not all agree: as above, less the allreduce.
  Status conclude();

 private:
  Comm& comm_;
  std::string what_;
  std::string text_;
  Status mine_;
  std::uint64_t first_failed_;
  std::uint64_t hash_;  ///< Of it and of its complement the least: equal where all hashes are.
  std::uint64_t complement_;
};

/// What rank 0 has to say, on every rank: its Status, without its rank in the text, or what `say`
/// has packed there; it is called on rank 0 only. Collective. Cost: one broadcast.
Result<Bytes> hear_rank_0(Comm& comm, const std::function<Status(ByteWriter& words)>& say);

/// Rank 0's Status on every rank; what others bring does not count. Collective. One broadcast.
Status as_rank_0_says(Comm& comm, const Status& mine);

// --- BorrowedComm: somebody else's Comm, for a part that wants one of its own.
//
// Whoever lends it sees to it that both do not use it at once: it has one order of collective calls
// and one stream of posted messages.

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
  // abandon() stays the lender's own decision.

 private:
  Comm& comm_;
};

// --- Numbers of a report, each named once, reduced over the ranks in place.

/// Each number, this rank's before, becomes the sum (maximum, ...) of all ranks'. Whole numbers
/// among fractions travel as double, which is exact up to 2^53. Collective: one allreduce.
template <class... Numbers>
void reduce_all(Comm& comm, Reduction reduction, Numbers&... numbers) {
  using Common = std::conditional_t<(std::is_integral_v<Numbers> && ...), std::uint64_t, double>;
  Common packed[] = {static_cast<Common>(numbers)...};
  comm.allreduce(std::span<Common>(packed), reduction);
  const Common* next = packed;
  ((numbers = static_cast<Numbers>(*next++)), ...);
}

}  // namespace tailrace
