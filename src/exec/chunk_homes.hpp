// Chunk homes: name the owner of a chunk that several ranks share, and exchange records of chunks.
//
// Every chunk has a home rank, computed from its number (ChunkDealing). Ranks that have values of a
// chunk, or want them, send a record to its home. The home collects these records, names the owner
// and replies (ask_homes). All these messages consist of ChunkRecords. Each caller has a policy for
// naming owners:
//
// - a write: the rank with the largest part of the boxes that cover the chunk (write/write_plan)
// - an array: in turn one of the ranks with about the most values; its home also knows where the
//   chunk lies (array/array_patches)
// - a read: in turn one of the ranks that want most of it (read/read)
//
// The values travel later, from holders to owners, once an owner has memory for them
// (PieceExchange).
//
// Invariant 1: a home decides only from the records that it received, not from their order of
// arrival.
// Invariant 2: no rank knows all chunks.
// Invariant 3: a malformed message is an error, never a crash, and the rank that detects it still
// takes part in all exchanges.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/byte_stream.hpp"
#include "core/chunk_key.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"
#include "exec/field_plan.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- ChunkDealing: the chunks of each field, dealt to homes in equal blocks.
//
// Each field starts at a different rank than the field before, so that small fields do not all
// share one home. Where dimensions grow, a block is a share of the chunks that stay consecutive
// however the field grows. The blocks go to the ranks in turn. So a chunk never changes its home.

class ChunkDealing {
 public:
  explicit ChunkDealing(int n_ranks) : n_ranks_(static_cast<std::uint64_t>(n_ranks)) {}

  /// @param turn  rank, modulo the number of ranks, where this field starts.
  /// @param growing  per dimension, whether it grows; empty: none does.
  void add(std::size_t field, const ChunkGrid& grid, std::size_t turn,
           const std::vector<bool>& growing = {});
  bool has(ChunkKey key) const {
    return key.field < fields_.size() && key.chunk_index < fields_[key.field].n_chunks;
  }
  const ChunkGrid& grid(std::size_t field) const { return fields_[field].grid; }
  /// Number of the chunk that stays the same while the field grows. Its index if no dimension
  /// grows.
  std::uint64_t number_of(ChunkKey key) const;
  int home_of(ChunkKey key) const;
  /// Visit the chunks whose home is `rank`, ascending by key. Only for fields that do not grow.
  /// Cost: O(all chunks / ranks + fields).
  void for_each_at(int rank, const std::function<void(ChunkKey)>& visit) const;

 private:
  struct Dealt {
    ChunkGrid grid;
    Shape extents;  ///< Upper limits of the chunks per dimension; empty: no dimension grows.
    std::uint64_t n_chunks = 0;
    std::uint64_t block = 1;
    std::uint64_t turn = 0;
  };
  std::uint64_t n_ranks_;
  std::vector<Dealt> fields_;
};

// --- ChunkRecord: the content of all messages about a chunk.

/// Location of a chunk in the file; encoded_bytes 0: it has none yet.
struct ChunkPlace {
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint32_t filter_mask = 0;
};

/// Part of a chunk that a rank has, or wants.
struct ChunkShare {
  int rank = 0;
  std::uint64_t n_elements = 0;  ///< May exceed the chunk's elements if values overlap.
  std::vector<Slab> slabs;       ///< Within the chunk, in the order in which their values are sent.
};

inline constexpr int nobody = -1;

struct ChunkRecord {
  ChunkKey key;
  int owner = nobody;
  ChunkPlace place;
  std::vector<ChunkShare> shares;
};

void add_record(ByteWriter& writer, const ChunkRecord& record);
/// Decode the records of one message. Not collective.
/// @error internal  the message is truncated, or names an invalid chunk, rank or slab.
Status read_records(const Message& message, const ChunkDealing& dealing, int n_ranks,
                    std::vector<ChunkRecord>& records);

/// Sends records to homes, and replies to the ranks concerned.
class ChunkMail {
 public:
  explicit ChunkMail(const ChunkDealing& dealing) : dealing_(dealing) {}

  void add(const ChunkRecord& record) { add(dealing_.home_of(record.key), record); }
  void add(int peer, const ChunkRecord& record) { add_record(to_peers_[peer], record); }
  /// Deliver all records and return the received ones, sorted by key, then by sender. Collective:
  /// one sparse exchange.
  /// @error internal  as for read_records(); on this rank only.
  Result<std::vector<ChunkRecord>> exchange(Comm& comm);
  const ChunkDealing& dealing() const { return dealing_; }

 private:
  const ChunkDealing& dealing_;
  std::map<int, ByteWriter> to_peers_;
};

// --- Homes: announce chunks, name owners, reply.

/// Decision of a home. It names the owner of a chunk: one of the ranks that share it (`shares` is
/// ascending by rank), or none (`nobody`). It also sets the place if the owner needs it.
/// @returns false if no rank needs a reply.
using HomePolicy = std::function<bool(ChunkRecord& chunk)>;

/// Return the rank with the most elements; of equals the lowest rank.
int with_most(std::span<const ChunkShare> shares);

/// Return one of the ranks that have at least seven eighths of the largest share. Over many turns
/// each such rank is chosen about equally often, even if only every second or third turn is used.
/// So each rank encodes its part of many small chunks that all ranks share.
int with_about_most(std::span<const ChunkShare> shares, std::uint64_t turn);

/// Announce this rank's chunks, each with this rank's share; as home, decide for the chunks of
/// others; receive the decisions of the homes. `decide` is called once per chunk, ascending.
/// Collective: two sparse exchanges. Cost: 40 bytes for a chunk and 24 for the reply. The owner
/// receives 24 more for a place and 16 for each other share. Each slab costs 12 bytes and 16 a
/// dimension.
/// @returns records by key. The owner's records list the shares of all other ranks; the records of
/// other ranks list none.
/// @error internal  as for read_records(); on this rank only, so the caller must agree on it.
Result<std::vector<ChunkRecord>> ask_homes(Comm& comm, ChunkMail announced,
                                           const HomePolicy& decide);

// --- Ownership: the work of a rank once owners are known.

/// A chunk that this rank encodes, and the sources of its values.
struct ChunkJob {
  std::size_t field = 0;          ///< Index into the plans.
  std::uint64_t chunk_index = 0;  ///< Row-major in the field's grid.
  std::vector<LocalPart> local;
  std::vector<ChunkShare> remote;  ///< Parts that other ranks hold.
};

/// Chunks that this rank encodes, and parts that it sends.
struct Ownership {
  std::vector<ChunkJob> jobs;  ///< Sorted by field, then by chunk index.
  /// This rank's parts of chunks that other ranks own. Each chunk is requested exactly once.
  std::map<ChunkKey, std::vector<LocalPart>> owed;
};

// --- PieceExchange: sends values from the ranks that hold them to the owner of their chunk.
//
// The owner asks when it has memory for the chunk (request). The holder replies with all its parts
// of the chunk (pieces). So no rank is flooded, and each rank needs memory only for the chunks in
// progress. A holder knows the number of requests to expect: one per owed chunk. A failed owner
// still asks, with `cancel`, so that no holder waits forever. Main thread only. A malformed message
// aborts the program, since no reply to it would let both sides end. Cost: two messages per shared
// chunk and holder.

class PieceExchange {
 public:
  /// @param arrived  called with the key when a requested chunk's buffer has all pieces.
  PieceExchange(Comm& comm, std::span<const FieldPlan> plans,
                const std::map<ChunkKey, std::vector<LocalPart>>& owed,
                std::function<void(ChunkKey)> arrived)
      : comm_(comm),
        plans_(plans),
        owed_(owed),
        arrived_(std::move(arrived)),
        n_owed_(owed.size()) {}

  /// Ask all holders for their pieces of `job`. They are copied into `values`, which must stay
  /// valid. If request() throws, cancel() must follow; holders already asked still send pieces
  /// (awaits()).
  void request(const ChunkJob& job, Buffer& values);
  /// Send `cancel` to every holder of `job` that has not received a message about it. If it throws,
  /// call it again.
  void cancel(const ChunkJob& job);
  /// Answer requests and accept pieces until no message is pending. If serve() throws, it loses
  /// nothing: call it again. @returns a failure if this rank could not do its part. The other ranks
  /// then receive the messages that they wait for, but not the values.
  Status serve();
  /// True while pieces of this chunk are expected.
  bool awaits(ChunkKey key) const { return awaited_.contains(key); }
  /// True once this rank neither expects nor owes any piece.
  bool finished() const { return n_owed_ == 0 && awaited_.empty(); }
  /// True while values travel to or from this rank; they move only while it polls.
  bool in_transit() const { return !awaited_.empty() || comm_.posts_pending(); }
  std::uint64_t piece_bytes() const { return piece_bytes_; }

 private:
  enum class Kind : std::uint32_t {
    request = 1,
    cancel = 2,
    pieces = 3,
    nothing = 4  ///< Instead of pieces: the holder, and so the step, has failed.
  };
  struct Awaited {
    const ChunkJob* job = nullptr;
    Buffer* values = nullptr;
    std::size_t n_missing = 0;
  };
  void send_notice(int peer, Kind kind, ChunkKey key);
  Status answer(int peer, ChunkKey key);
  Status add_pieces(ChunkKey key, ByteWriter& writer) const;
  void lay_pieces(int peer, ChunkKey key, std::span<const std::byte> values);
  void count_pieces(ChunkKey key);

  Comm& comm_;
  std::span<const FieldPlan> plans_;
  const std::map<ChunkKey, std::vector<LocalPart>>& owed_;
  std::function<void(ChunkKey)> arrived_;
  std::map<ChunkKey, Awaited> awaited_;
  std::optional<Message> message_;       ///< Message that serve() is processing.
  const ChunkJob* notifying_ = nullptr;  ///< Job whose holders are being notified.
  std::size_t n_notified_ = 0;           ///< Holders of `*notifying_` that have been notified.
  std::size_t n_owed_ = 0;
  std::uint64_t piece_bytes_ = 0;
};

}  // namespace tailrace
