// Chunk homes: who owns a chunk that concerns several ranks, and what ranks tell each other of it.
//
// Every chunk has a home rank, by its number (ChunkDealing). Ranks that have values of a chunk, or
// want them, tell its home; the home hears of it from all of them, decides who owns it, and tells
// them (ask_homes). What is told has one form, the ChunkRecord. Who owns a chunk is a policy of
// each story: the largest part of boxes that cover it (write/write_plan), the most values, and
// where the chunk lies (array/array_patches), one of those that want most, in turn (read/read).
// Values travel afterwards, from holders to owners when these have room (PieceExchange).
//
// Invariant 1: a home decides from what the ranks have told it alone, not from the order in which
// it came. Invariant 2: no rank knows all chunks. Invariant 3: a message that cannot be meant is an
// error, never a crash, and who finds it takes part in all exchanges.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/byte_stream.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"
#include "exec/field_plan.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

struct ChunkKey {
  std::size_t field = 0;          ///< Or variable, or dataset, as the story numbers them.
  std::uint64_t chunk_index = 0;  ///< Row-major in the field's grid.
  // clang-tidy 14 takes the 0 that the compiler puts in here for a null pointer.
  auto operator<=>(const ChunkKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct ChunkKeyHash {
  std::size_t operator()(const ChunkKey& key) const {
    return std::hash<std::uint64_t>()(key.chunk_index * 0x9E3779B97F4A7C15ULL + key.field);
  }
};

// --- ChunkDealing: the chunks of each field, dealt to homes in equal blocks.
//
// A field's first block goes to another rank than that of the field before, so that small fields do
// not all have the same home. Where dimensions grow, the block is a share of those chunks that lie
// in a row whatever grows, and block after block goes to the next rank: a chunk keeps its home.

class ChunkDealing {
 public:
  explicit ChunkDealing(int n_ranks) : n_ranks_(static_cast<std::uint64_t>(n_ranks)) {}

  /// @param turn  the rank, modulo ranks, with which this field begins.
  /// @param growing  per dimension; empty: none.
  void add(std::size_t field, const ChunkGrid& grid, std::size_t turn,
           const std::vector<bool>& growing = {});
  bool has(ChunkKey key) const {
    return key.field < fields_.size() && key.chunk_index < fields_[key.field].n_chunks;
  }
  const ChunkGrid& grid(std::size_t field) const { return fields_[field].grid; }
  /// A number that the chunk keeps while the field grows: its index, where no dimension grows.
  std::uint64_t number_of(ChunkKey key) const;
  int home_of(ChunkKey key) const;
  /// The chunks whose home is `rank`, ascending by key. Of fields that do not grow.
  /// Cost: O(all chunks / ranks + fields).
  void for_each_at(int rank, const std::function<void(ChunkKey)>& visit) const;

 private:
  struct Dealt {
    ChunkGrid grid;
    Shape extents;  ///< Chunks per dimension, as far as they will ever count; empty: none grows.
    std::uint64_t n_chunks = 0;
    std::uint64_t block = 1;
    std::uint64_t turn = 0;
  };
  std::uint64_t n_ranks_;
  std::vector<Dealt> fields_;
};

// --- ChunkRecord: the one form of what ranks tell each other of a chunk.

/// Where a chunk lies in the file; encoded_bytes 0: nowhere yet.
struct ChunkPlace {
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint32_t filter_mask = 0;
};

/// What a rank has of a chunk, or wants of it.
struct ChunkShare {
  int rank = 0;
  std::uint64_t n_elements = 0;  ///< More than there are, where values overlap.
  std::vector<Slab> slabs;       ///< Within the chunk, in the order of their values on the way.
};

inline constexpr int nobody = -1;

struct ChunkRecord {
  ChunkKey key;
  int owner = nobody;
  ChunkPlace place;
  std::vector<ChunkShare> shares;
};

void add_record(ByteWriter& writer, const ChunkRecord& record);
/// The records of one message. Not collective.
/// @error internal  it is cut short, or names a chunk, a rank or a slab that there is not.
Status read_records(const Message& message, const ChunkDealing& dealing, int n_ranks,
                    std::vector<ChunkRecord>& records);

/// Records on their way: to homes, and back to whom they concern.
class ChunkMail {
 public:
  explicit ChunkMail(const ChunkDealing& dealing) : dealing_(dealing) {}

  void add(const ChunkRecord& record) { add(dealing_.home_of(record.key), record); }
  void add(int peer, const ChunkRecord& record) { add_record(to_peers_[peer], record); }
  /// Deliver all and return what has come, by key, then by sender. Collective: one sparse exchange.
  /// @error internal  as of read_records(); on this rank only.
  Result<std::vector<ChunkRecord>> exchange(Comm& comm);
  const ChunkDealing& dealing() const { return dealing_; }

 private:
  const ChunkDealing& dealing_;
  std::map<int, ByteWriter> to_peers_;
};

// --- The way of a chunk that concerns several ranks: announced, decided, told.

/// As home: name the owner of a chunk, one of those that share it (ascending by rank), or nobody,
/// and its place if the owner must know it. False: nobody needs to hear of the chunk.
using HomePolicy = std::function<bool(ChunkRecord& chunk)>;

/// The rank with the most elements; of equals the lowest.
int with_most(std::span<const ChunkShare> shares);

/// One of those that have about as much as any, seven eighths at least. Over many turns, also over
/// every second or third of them, each gets as many as any other, but for a few: of many small
/// chunks that all ranks share each rank is to encode its part.
int with_about_most(std::span<const ChunkShare> shares, std::uint64_t turn);

/// Announce this rank's chunks, each with the share of this rank, decide as home of others', and
/// hear what the homes of one's own have decided. `decide` is called once per chunk, ascending.
/// Collective: two sparse exchanges. Cost: 40 bytes for a chunk and 24 back, its owner besides 24
/// for a place and 16 for each other share; 12 bytes and 16 a dimension for each slab.
/// @returns by key; in the owner's records stand the shares of all others, elsewhere none.
/// @error internal  as of read_records(); on this rank only: the caller agrees.
Result<std::vector<ChunkRecord>> ask_homes(Comm& comm, ChunkMail announced,
                                           const HomePolicy& decide);

// --- What a rank has to do once owners are settled.

/// A chunk that this rank encodes, with where its values come from.
struct ChunkJob {
  std::size_t field = 0;          ///< Index into the fields given.
  std::uint64_t chunk_index = 0;  ///< Row-major in the field's grid.
  std::vector<LocalPart> local;
  std::vector<ChunkShare> remote;  ///< What others hold.
};

struct Ownership {
  std::vector<ChunkJob> jobs;  ///< By field, then by chunk index.
  /// This rank's parts of chunks that others own; each chunk will be requested exactly once.
  std::map<ChunkKey, std::vector<LocalPart>> owed;
};

// --- PieceExchange: values travel from the ranks that hold them to the rank that owns their chunk.
//
// The owner asks when it has memory for the chunk (request), the holder answers with all its parts
// of it (pieces). So nobody is flooded, and each rank needs memory only for the chunks that it
// works on. A holder knows how many requests will come, one per owed chunk; an owner that has
// failed asks all the same, with `cancel` set, so that no holder waits for ever. Main thread only.
// A message that cannot be meant stops the program: no answer to it would let both sides end.
// Cost: two messages per shared chunk and holder.

class PieceExchange {
 public:
  /// `arrived(key)` is called when all pieces of a requested chunk are in its buffer.
  PieceExchange(Comm& comm, std::span<const FieldPlan> plans,
                const std::map<ChunkKey, std::vector<LocalPart>>& owed,
                std::function<void(ChunkKey)> arrived)
      : comm_(comm),
        plans_(plans),
        owed_(owed),
        arrived_(std::move(arrived)),
        n_owed_(owed.size()) {}

  /// Ask all holders for their pieces of `job`; they will be copied into `values`, which must stay.
  /// Where it throws, cancel() is to follow; pieces of those who were asked may come (awaits()).
  void request(const ChunkJob& job, Buffer& values);
  /// Tell all holders of `job` that have heard nothing that nothing is wanted of them. Where it
  /// throws it is to be called again.
  void cancel(const ChunkJob& job);
  /// Answer requests and take pieces as long as there are any. Where it throws nothing is lost: it
  /// is to be called again. @returns a failure if this rank could not do its part: the others have
  /// what they wait for, but not what should be in it.
  Status serve();
  /// Pieces of this chunk are to come.
  bool awaits(ChunkKey key) const { return awaited_.contains(key); }
  /// Nothing is expected of or owed to anybody any more.
  bool settled() const { return n_owed_ == 0 && awaited_.empty(); }
  /// Values are on their way to this rank or from it: they move only while it polls.
  bool in_transit() const { return !awaited_.empty() || comm_.posts_pending(); }
  std::uint64_t piece_bytes() const { return piece_bytes_; }

 private:
  enum class Kind : std::uint32_t {
    request = 1,
    cancel = 2,
    pieces = 3,
    nothing = 4  ///< In place of pieces: the holder has failed, and with it the step.
  };
  struct Awaited {
    const ChunkJob* job = nullptr;
    Buffer* values = nullptr;
    std::size_t n_missing = 0;
  };
  void tell(int peer, Kind kind, ChunkKey key);
  Status answer(int peer, ChunkKey key);
  void add_pieces(ChunkKey key, ByteWriter& writer) const;
  void lay_pieces(int peer, ChunkKey key, std::span<const std::byte> values);
  void count_pieces(ChunkKey key);

  Comm& comm_;
  std::span<const FieldPlan> plans_;
  const std::map<ChunkKey, std::vector<LocalPart>>& owed_;
  std::function<void(ChunkKey)> arrived_;
  std::map<ChunkKey, Awaited> awaited_;
  std::optional<Message> message_;     ///< What serve() is at.
  const ChunkJob* telling_ = nullptr;  ///< Not all of whose holders have heard of it; so many have:
  std::size_t n_told_ = 0;
  std::size_t n_owed_ = 0;
  std::uint64_t piece_bytes_ = 0;
};

}  // namespace tailrace
