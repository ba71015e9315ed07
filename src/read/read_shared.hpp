// SharedRead: chunks that several ranks want in one collective read, each decoded once.
//
// For each chunk that a rank wants, it sends the wanted elements' slab to the chunk's home
// (exec/chunk_homes.hpp). If several ranks want a chunk, its home makes one of them the owner: in
// turn, one of those that want most. The owner decodes the chunk and sends the other ranks their
// elements. A chunk that only one rank wants needs no further message.
//
// Cost: that of ask_homes(), with one slab for each wanted chunk; two allreduces; a sparse exchange
// per round. In a round, a rank sends and receives at most half of the memory for work each.
//
// Invariant: every rank goes through all exchanges and rounds, whatever has failed on it.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "chunk/chunk_reader.hpp"
#include "chunk/read_dataset.hpp"
#include "chunk/read_options.hpp"
#include "core/comm.hpp"
#include "exec/chunk_homes.hpp"

namespace tailrace {

/// Chunks that this rank wants, with the indices of its requests for them.
using WantedChunks = std::unordered_map<ChunkKey, std::vector<std::uint32_t>, ChunkKeyHash>;
/// Prepared datasets by number.
using PreparedDatasets = std::map<std::size_t, ReadDataset>;

class SharedRead {
 public:
  SharedRead(Comm& comm, PreparedDatasets& datasets, std::span<const ReadRequest> requests,
             WantedChunks wanted);

  /// Determine which chunks are shared, and the rank that decodes each. Collective.
  /// @error internal  as for ask_homes(); on this rank only, which must still call run().
  Status assign_decoders();

  /// True if this rank must not read this chunk of its requests on its own.
  bool shared(const ChunkKey& key) const { return shared_.contains(key); }

  /// Decode the chunks that this rank owns, send and receive. Collective. Returns this rank's own
  /// Status.
  /// @param file  may be null on a rank that owns nothing, or that has failed according to `mine`.
  Status run(ChunkReader& chunks, ChunkFile* file, const Status& mine);

  std::uint64_t received_bytes() const { return received_bytes_; }

 private:
  /// Chunks of one dataset that this rank decodes together, with the elements that others want.
  using Round = std::vector<ChunkRecord>;

  /// Choose the rank that decodes the chunk, as its home: one of those that want most.
  static bool name_decoder(ChunkRecord& chunk, std::size_t& turn);

  Slab wanted_part(const ChunkKey& key, const std::vector<std::uint32_t>& requests) const;

  std::uint64_t bytes_of(const ChunkKey& key, std::span<const ChunkShare> wants) const;

  /// Cut this rank's chunks into rounds. A chunk may have more values for all its ranks than a
  /// round may have. It is then decoded once for each round's worth of ranks, so that memory does
  /// not grow with the number of ranks. Each owner begins with the ranks after its own, so that
  /// owners do not all send to one rank at a time. Parts of one chunk never share a round: together
  /// they are too large.
  std::vector<Round> cut_rounds(std::uint64_t bytes_per_round);

  Status decode_round(ChunkReader& chunks, ChunkFile& file, const Round& round,
                      std::map<int, Bytes>& outgoing);

  Status take(const Message& message);

  void place(const ChunkKey& key, const Slab& part, const std::vector<std::uint32_t>& requests,
             const std::byte* values);

  Comm& comm_;
  PreparedDatasets& datasets_;
  std::span<const ReadRequest> requests_;
  WantedChunks wanted_;
  std::unordered_set<ChunkKey, ChunkKeyHash> shared_;
  std::vector<ChunkRecord> own_;
  std::set<int> senders_;
  std::uint64_t received_bytes_ = 0;
};

}  // namespace tailrace
