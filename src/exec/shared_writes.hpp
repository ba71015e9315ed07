// SharedWrites: encoded chunks that one rank of a node gives to another to write.
//
// Balancing moves writes from busy ranks to idle ones (schedule/balance). The donor copies the
// encoded bytes into its segment of the node's shared window, claims the chunk's address itself,
// and posts a message there. The recipient's I/O lane, when it has no write of its own rank, writes
// the bytes directly from the window and acknowledges. The donor stays responsible: only the
// acknowledgement makes the chunk written, and a failed write is the donor's failure. A gift that
// no rank has begun to write is taken back and written by the donor, so no step depends on a late
// recipient.
//
// With writers=node, one rank writes for all of the node. The I/O lanes of the other ranks pass
// their writes on by write_by() and wait. Then a gift is taken back only if the step fails or the
// writer is gone.
//
// Uses no MPI and no file: any thread of a rank may call. Source: Jin et al. 2024, 3.4; taking back
// is our addition.

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

/// Gifts between the ranks of a node.
class SharedWrites {
 public:
  /// Most gifts of one rank that wait or are being written; another one is refused.
  static constexpr std::size_t n_slots = 64;

  /// Bytes to be written by the holder of the task, which must then call complete(). The bytes stay
  /// valid and unchanged until then.
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
    dropped  ///< The step has already failed on a rank of the node; nothing was written.
  };

  /// Result for a chunk that this rank gave away.
  struct Receipt {
    WrittenChunk chunk;
    Outcome outcome = Outcome::written;
    Status status;   ///< If it failed: the recipient's error, which names its rank.
    int writer = 0;  ///< Rank on the node; this rank if it took the gift back.
  };

  /// Make a window for `comm`'s nodes, with room for `encoded_bytes` of every rank's pending gifts.
  /// Collective; all ranks must synchronise once more before the first gift.
  /// @error unsupported  this MPI cannot share memory; the same answer on every rank.
  static Result<std::unique_ptr<SharedWrites>> create(Comm& comm, std::uint64_t encoded_bytes);
  /// Use a new window of at least segment_bytes() per rank. Collective over the node in effect: no
  /// rank may give before all ranks of the node have returned from here.
  explicit SharedWrites(std::unique_ptr<NodeWindow> window);
  ~SharedWrites();
  static std::uint64_t segment_bytes(std::uint64_t encoded_bytes);

  /// Memory that this rank's segment of the window takes.
  std::uint64_t own_bytes() const { return window_->segment(rank_).size(); }
  int rank_on_node() const { return rank_; }
  int n_ranks_on_node() const { return n_ranks_; }
  /// Convert a rank on the node to its rank in the Comm.
  int rank_in_comm(int rank_on_node) const { return window_->rank_in_comm(rank_on_node); }

  /// Begin a step. `step` is larger than before and the same on all ranks of the node. All of them
  /// have left the previous step (an agreement lies between). Local.
  void start_step(std::uint64_t step);

  // --- donor

  /// Give a chunk to another rank of the node. Copies the bytes, so that the caller may reuse its
  /// memory. Thread-safe; not after close().
  /// @param chunk  its address is set here, by one call of `claim`, once the gift is certain to be
  /// accepted. An empty `claim`: it already has its address.
  /// @returns false if the recipient is this rank or has left, or if no slot or no room is free.
  /// Then `claim` was not called, and the caller writes the chunk itself.
  bool try_give(int recipient, WrittenChunk& chunk, std::span<const std::byte> bytes,
                const std::function<std::uint64_t()>& claim);
  /// Let another rank of the node write these bytes, in parts that fit into the window, and wait
  /// for it; naps of at most half a millisecond. Returns before `writer` has written them only if
  /// that rank is gone (the caller writes the rest itself) or the step fails. Call it only from a
  /// thread that no other rank waits for, while this rank has no other gift pending.
  /// @param write, failed  as for finish().
  /// @returns the outcome, with the first failure. @error that of the write, with its writer's
  /// rank.
  Receipt write_by(int writer, std::uint64_t address,
                   std::span<const std::span<const std::byte>> pieces,
                   const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
                   const std::function<bool()>& failed);
  /// Return the gifts completed since the last call. Frees their slots and room. Thread-safe.
  std::vector<Receipt> collect();
  /// Gifts that collect() has not returned yet. Thread-safe.
  std::size_t n_uncollected() const;
  /// Take back the oldest of this rank's gifts that no rank has begun to write. The caller writes
  /// it. Thread-safe.
  std::optional<Task> take_back();
  /// Declare that this rank gives nothing more in this step. Thread-safe.
  void close();

  // --- recipient

  /// True if a gift seems to wait for this rank. Cost: one load. Thread-safe.
  bool waiting() const;
  /// Take the next gift to this rank of at most `n_bytes_max` bytes: the oldest of each donor,
  /// donors in turn. Thread-safe.
  std::optional<Task> take(std::uint64_t n_bytes_max = UINT64_MAX);
  /// Report the outcome of a task. `status` is only used for failures. Thread-safe.
  void complete(const Task& task, Outcome outcome, const Status& status = Status());

  // --- the end of a step

  /// True if this rank may leave the step: it has closed, all its gifts are collected, and none
  /// waits for it. No gift can follow, since all ranks of the node have closed or left for good.
  bool may_leave() const;
  /// close(), then write gifts of other ranks and take back unwritten ones until may_leave(), with
  /// naps of at most half a millisecond in between. Waits for the other ranks of the node to close.
  /// For one thread of the rank; no other one writes meanwhile.
  /// @param write  writes bytes at an address.
  /// @param failed  returns true if the step has failed on this node: tasks are then dropped.
  /// @param attend  called before each nap. A main thread lets MPI progress here; other ranks may
  /// need that before they can close (claims between nodes).
  /// @returns the receipts that collect() had not returned.
  std::vector<Receipt> finish(
      const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
      const std::function<bool()>& failed, const std::function<void()>& attend = {});

  /// Give up without the other ranks: none of them waits for this rank, and the destructor is
  /// local.
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
  std::atomic<int> next_donor_{0};  ///< First donor that take() looks at.
  std::uint64_t step_ = 0;

  mutable std::mutex mutex_;  ///< Guards the members below: this rank's own gifts.
  std::array<bool, n_slots> in_use_{};
  std::array<WrittenChunk, n_slots> given_{};
  /// Free room of this rank's segment: offset -> bytes.
  std::map<std::uint64_t, std::uint64_t> gaps_;
  std::uint64_t sequence_ = 0;
  std::size_t n_uncollected_ = 0;
};

}  // namespace tailrace
