// SharedWrites: encoded chunks that one rank of a node gives to another to write.
//
// Balancing moves writes from busy ranks to idle ones (schedule/balance). The donor copies the
// encoded bytes into its segment of the node's shared window, takes the chunk's address itself and
// posts a message beside them; the recipient's I/O lane, when it has nothing of its own to do,
// writes the bytes straight from the window and acknowledges. The donor stays responsible: only the
// acknowledgement makes the chunk written, and a failed write is the donor's failure. What nobody
// has begun the donor takes back and writes itself, so nothing depends on a recipient that is late.
// Where one rank writes for the whole node (writers=node), the others' I/O lanes pass their writes
// on by write_by() and wait: then nothing is taken back unless the step fails or the writer is
// gone.
//
// No MPI, no file: any thread of a rank may call. Source: Jin et al. 2024, 3.4; taking back is
// ours.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "exec/field_plan.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class SharedWrites {
 public:
  /// Messages of one rank that wait or are being written; a further one is refused.
  static constexpr std::size_t n_slots = 64;

  /// Bytes to be written by whoever holds the task, which must then call settle(). The bytes stay
  /// where they are until then.
  struct Task {
    int donor = 0;  ///< Rank on the node.
    std::size_t slot = 0;
    std::uint64_t address = 0;
    std::span<const std::byte> bytes;
  };

  /// How a task ended.
  enum class Outcome : std::uint8_t {
    written,
    failed,
    dropped  ///< The step had failed already, on some rank of the node; nothing was written.
  };

  /// What has become of a chunk that this rank gave away.
  struct Receipt {
    WrittenChunk chunk;
    Outcome outcome = Outcome::written;
    Status status;   ///< Of a failed one: the recipient's error, its rank named.
    int writer = 0;  ///< Rank on the node; this rank's own if it was taken back.
  };

  /// A window for `comm`'s nodes with room for `encoded_bytes` of every rank's gifts under way.
  /// Collective; before the first gift all ranks must meet once more.
  /// @error unsupported  this MPI cannot share memory; the same answer on every rank.
  static Result<std::unique_ptr<SharedWrites>> create(Comm& comm, std::uint64_t encoded_bytes);
  /// Over a window of at least segment_bytes() a rank, which nobody has used. Collective over the
  /// node in effect: nobody may give before all ranks of the node have returned from here.
  explicit SharedWrites(std::unique_ptr<NodeWindow> window);
  ~SharedWrites();
  static std::uint64_t segment_bytes(std::uint64_t encoded_bytes);

  /// What this rank's share of the window takes of its memory.
  std::uint64_t own_bytes() const { return window_->segment(rank_).size(); }
  int rank_on_node() const { return rank_; }
  int n_ranks_on_node() const { return n_ranks_; }
  /// The rank in the Comm of a rank on the node.
  int rank_in_comm(int rank_on_node) const { return window_->rank_in_comm(rank_on_node); }

  /// A new step begins. `step` is larger than before and the same on all ranks of the node; all of
  /// them have left the one before (an agreement lies between). Local.
  void start_step(std::uint64_t step);

  // --- donor

  /// Give a chunk to another rank of the node. Copies the bytes, so that the caller's memory is
  /// free again. Thread-safe; not after close().
  /// @param chunk  its address is set here, by one call of `claim` once it is certain that the gift
  ///   is taken; an empty `claim`: it has its address.
  /// @returns false if the recipient is this rank or has left, or if there is no slot or no room
  ///   for the bytes: the caller writes the chunk itself, and `claim` was not called.
  bool try_give(int recipient, WrittenChunk& chunk, std::span<const std::byte> bytes,
                const std::function<std::uint64_t()>& claim);
  /// Let another rank of the node write these bytes, in parts that fit into the window, and wait
  /// for it; naps of at most half a millisecond. Ends without `writer` only if that is gone (the
  /// caller writes the rest itself) or the step fails. From a thread that owes nobody anything but
  /// this, while no other gift of this rank is under way.
  /// @param write, failed  as for finish().
  /// @returns how it ended, with the first failure. @error as of the write, its writer's rank
  /// named.
  Receipt write_by(int writer, std::uint64_t address,
                   std::span<const std::span<const std::byte>> pieces,
                   const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
                   const std::function<bool()>& failed);
  /// What has been settled since the last call. Frees slots and room. Thread-safe.
  std::vector<Receipt> collect();
  /// Gifts that collect() has not returned yet. Thread-safe.
  std::size_t n_unsettled() const;
  /// One of this rank's own gifts that nobody has begun, to be written here after all; the oldest.
  /// Thread-safe.
  std::optional<Task> take_back();
  /// This rank gives nothing more in this step. Thread-safe.
  void close();

  // --- recipient

  /// Whether something seems to wait for this rank. Cheap: one load. Thread-safe.
  bool waiting() const;
  /// The next gift to this rank of at most `n_bytes_max` bytes: of the donors in turn the oldest.
  /// Thread-safe.
  std::optional<Task> take(std::uint64_t n_bytes_max = UINT64_MAX);
  /// Say what has become of a task. `status` counts for failed ones. Thread-safe.
  void settle(const Task& task, Outcome outcome, const Status& status = Status());

  // --- the end of a step

  /// Whether this rank may leave the step: it has closed, all its gifts are collected, nothing
  /// waits for it, and nothing will, since all ranks of the node have closed or left for good.
  bool may_leave() const;
  /// close(), then write what others have given and take back what nobody has begun, until
  /// may_leave(); naps of at most half a millisecond in between. Waits for the other ranks of the
  /// node to close. One thread of the rank, which writes nothing else meanwhile.
  /// @param write  writes bytes at an address.
  /// @param failed  whether the step has failed on this node: tasks are dropped from then on.
  /// @param attend  called before each nap: a main thread lets MPI move here, on which the other
  ///   ranks may depend before they can close (claims between nodes).
  /// @returns the receipts that collect() had not returned.
  std::vector<Receipt> finish(
      const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
      const std::function<bool()>& failed, const std::function<void()>& attend = {});

  /// This rank gives up alone: nobody waits for it any more, and the destructor becomes local.
  void abandon();

 private:
  struct Segment;
  struct Slot;

  Segment& segment_of(int rank) const;
  std::span<std::byte> room_of(int rank) const;
  std::optional<std::size_t> reserve(const WrittenChunk& chunk, std::uint64_t n_bytes);
  void post(std::size_t slot_index, int recipient);
  Receipt await_gift(int writer,
                     const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
                     const std::function<bool()>& failed);
  std::optional<std::uint64_t> take_room(std::uint64_t n_bytes);
  void give_room_back(std::uint64_t at, std::uint64_t n_bytes);
  std::optional<Task> take_from(int donor, std::uint64_t n_bytes_max, std::optional<int> recipient);

  std::unique_ptr<NodeWindow> window_;
  int rank_ = 0;
  int n_ranks_ = 1;
  std::atomic<int> next_donor_{0};  ///< Where take() looks first.
  std::uint64_t step_ = 0;

  mutable std::mutex mutex_;  ///< Guards what follows: this rank's own gifts.
  std::array<bool, n_slots> in_use_{};
  std::array<WrittenChunk, n_slots> given_{};
  std::map<std::uint64_t, std::uint64_t> gaps_;  ///< Free room of the own segment: at -> bytes.
  std::uint64_t sequence_ = 0;
  std::size_t n_unsettled_ = 0;
};

}  // namespace tailrace
