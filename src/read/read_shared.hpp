// SharedRead: the chunks that several ranks want in one collective read, each decoded once.
//
// Every rank tells the home of each chunk that it wants (chunks are dealt to homes in blocks) which
// elements. A home that hears of a chunk from several ranks makes one of them its owner: one of
// those that want most, in turn. The owner decodes the chunk and sends the others their elements.
// Chunks that one rank alone wants are never mentioned again.
//
// Cost: O(own chunks) messages of 8 bytes and a slab each; two sparse exchanges, two allreduces; a
// sparse exchange per round. Rounds are as large as half of the memory for work allows, both what a
// rank sends and what it receives.
// Invariant: every rank goes through all exchanges and rounds, whatever has failed on it.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/comm.hpp"
#include "read/read.hpp"
#include "read/read_cache.hpp"
#include "read/read_chunks.hpp"

namespace tailrace {

/// The chunks that this rank wants, and by which of its requests.
using WantedChunks = std::unordered_map<ChunkId, std::vector<std::uint32_t>, ChunkIdHash>;
/// The prepared dataset of this number.
using DatasetOf = std::function<ReadDataset&(std::size_t)>;

class SharedRead {
 public:
  SharedRead(Comm& comm, DatasetOf dataset_of, std::span<const ReadRequest> requests,
             WantedChunks wanted)
      : comm_(comm),
        dataset_of_(std::move(dataset_of)),
        requests_(requests),
        wanted_(std::move(wanted)) {}

  /// Find out which chunks are shared and who decodes them. Collective.
  void settle();
  /// This rank must not read this chunk of its requests by itself.
  bool shared(const ChunkId& id) const { return shared_.contains(id); }
  /// Decode what this rank owns, send and receive. Collective. The Status is this rank's own.
  /// @param file  may be null on a rank that owns nothing, or has failed: `mine` says so.
  Status run(ChunkReader& chunks, StoredFile* file, const Status& mine);
  std::uint64_t received_bytes() const { return received_bytes_; }

 private:
  /// What a rank wants of a chunk: a slab in the dataset.
  struct Want {
    int rank = 0;
    Slab part;
  };
  struct OwnChunk {
    ChunkId id;
    std::vector<Want> wants;  ///< Of others.
    std::uint64_t sent_bytes = 0;
  };

  Slab wanted_part(const ChunkId& id, const std::vector<std::uint32_t>& requests) const;
  std::vector<Message> announcements() const;
  std::vector<Message> decide(const std::vector<Message>& announced) const;
  void learn(const std::vector<Message>& decided);
  void split_large(std::uint64_t bytes_per_round);
  std::vector<std::size_t> cut_rounds(std::uint64_t bytes_per_round);
  Status decode_round(ChunkReader& chunks, StoredFile& file, std::span<const OwnChunk> round,
                      std::vector<Message>& outgoing);
  void take(const Message& message);
  void place(const ChunkId& id, const Slab& part, const std::byte* values);

  Comm& comm_;
  DatasetOf dataset_of_;
  std::span<const ReadRequest> requests_;
  WantedChunks wanted_;
  std::unordered_set<ChunkId, ChunkIdHash> shared_;
  std::vector<OwnChunk> own_;
  std::uint64_t n_senders_ = 0;
  std::uint64_t received_bytes_ = 0;
};

}  // namespace tailrace
