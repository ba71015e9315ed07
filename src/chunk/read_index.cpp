// Look-ups of single chunks, reading the complete index, and the copy that a node's ranks share.
//
// Invariant: a node's copy is cut into runs of entries, one in each rank's segment of the window;
// every rank writes only its own segment.

#include "chunk/read_index.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/byte_stream.hpp"
#include "core/comm.hpp"

namespace tailrace {
namespace {

/// Chunks of the complete index that are read in the time of one look-up. A look-up costs about 1
/// us, a chunk of the complete index 0.2 us (measured; HDF5 1.10.8). The complete index is read
/// once the look-ups have cost as much.
constexpr std::uint64_t kChunksPerLookup = 5;
constexpr std::uint64_t kPlainEntryBytes = 12;
/// Bytes of one broadcast, which each rank buffers.
constexpr std::uint64_t piece_bytes = 4U << 20;

/// Largest index of which every rank has a copy. A window would take longer to make than such an
/// index to send.
constexpr std::uint64_t kCopiedBytesMax = 64U << 10;

/// Facts that all ranks need before the entries arrive.
struct IndexFacts {
  std::uint64_t n_entries = 0;
  std::uint64_t plain = 1;
  std::uint64_t entry_bytes() const { return plain != 0 ? kPlainEntryBytes : sizeof(StoredChunk); }
  bool is_small() const { return n_entries <= kCopiedBytesMax / entry_bytes(); }
};

/// True if plain entries by chunk number suffice: no filter was skipped, no chunk has 4 GiB, and at
/// least a third of the chunks exist.
bool fits_plain(std::span<const StoredChunk> chunks, std::uint64_t n_chunks) {
  if (chunks.size() < n_chunks / 3) return false;
  return std::all_of(chunks.begin(), chunks.end(), [](const StoredChunk& chunk) {
    return chunk.filter_mask == 0 &&
           chunk.extent.encoded_bytes <= std::numeric_limits<std::uint32_t>::max();
  });
}

/// Return entries [begin, end) as bytes. `next` advances over `chunks`, which are ascending.
Bytes pack_entries(std::span<const StoredChunk> chunks, bool plain, std::uint64_t begin,
                   std::uint64_t end, std::size_t& next) {
  const std::uint64_t entry_bytes = plain ? kPlainEntryBytes : sizeof(StoredChunk);
  Bytes bytes((end - begin) * entry_bytes);
  std::byte* to = bytes.data();
  if (!plain) {
    for (std::uint64_t i = begin; i < end; ++i, to += entry_bytes) {
      std::memcpy(to, &chunks[i], sizeof(StoredChunk));
    }
    return bytes;
  }
  for (; next < chunks.size() && chunks[next].chunk_index < end; ++next) {
    std::byte* entry = to + (chunks[next].chunk_index - begin) * entry_bytes;
    const auto n_bytes = static_cast<std::uint32_t>(chunks[next].extent.encoded_bytes);
    std::memcpy(entry, &chunks[next].extent.address, sizeof(std::uint64_t));
    std::memcpy(entry + sizeof(std::uint64_t), &n_bytes, sizeof n_bytes);
  }
  return bytes;
}

}  // namespace

Status ReadIndex::walk(ChunkFile& file, const StoredDataset& dataset) {
  TAILRACE_TAKE(std::vector<StoredChunk> chunks, file.chunks(dataset));
  part_ = table_.add(chunks);
  table_.shrink();
  walked_ = true;
  looked_up_.clear();
  return Status();
}

StoredChunk ReadIndex::at(std::uint64_t chunk_index) const {
  return opened_ ? shared_at(chunk_index) : table_.list(part_).find(chunk_index);
}

Status ReadIndex::find(ChunkFile& file, const StoredDataset& dataset, std::uint64_t n_chunks,
                       std::span<const std::uint64_t> chunk_indexes,
                       std::vector<StoredChunk>& found) {
  found.resize(chunk_indexes.size());
  if (!complete() && (n_lookups_ + chunk_indexes.size()) * kChunksPerLookup > n_chunks) {
    TAILRACE_TRY(walk(file, dataset));
  }
  for (std::size_t i = 0; i < chunk_indexes.size(); ++i) {
    if (complete()) {
      found[i] = at(chunk_indexes[i]);
      continue;
    }
    const auto known = looked_up_.find(chunk_indexes[i]);
    if (known != looked_up_.end()) {
      found[i] = known->second;
      continue;
    }
    TAILRACE_TAKE(const std::optional<StoredChunk> chunk, file.chunk(dataset, chunk_indexes[i]));
    if (chunk.has_value()) {
      ++n_lookups_;
      found[i] = *chunk;
      looked_up_.emplace(chunk_indexes[i], *chunk);
      continue;
    }
    // Never written, or damaged: only the complete index can tell which.
    TAILRACE_TRY(walk(file, dataset));
    found[i] = at(chunk_indexes[i]);
  }
  return Status();
}

const std::byte* ReadIndex::entry(std::uint64_t position) const {
  const std::uint64_t entry_bytes = plain_ ? kPlainEntryBytes : sizeof(StoredChunk);
  return segments_[position / entries_per_segment_] + position % entries_per_segment_ * entry_bytes;
}

StoredChunk ReadIndex::shared_at(std::uint64_t chunk_index) const {
  StoredChunk chunk{chunk_index, {}, 0};
  if (plain_) {
    if (chunk_index >= n_entries_) return chunk;
    std::uint32_t n_bytes = 0;
    const std::byte* found = entry(chunk_index);
    std::memcpy(&chunk.extent.address, found, sizeof(std::uint64_t));
    std::memcpy(&n_bytes, found + sizeof(std::uint64_t), sizeof n_bytes);
    chunk.extent.encoded_bytes = n_bytes;
    return chunk;
  }
  std::uint64_t first = 0;
  std::uint64_t end = n_entries_;
  while (first < end) {
    const std::uint64_t middle = first + (end - first) / 2;
    StoredChunk probe;
    std::memcpy(&probe, entry(middle), sizeof probe);
    if (probe.chunk_index == chunk_index) return probe;
    if (probe.chunk_index < chunk_index) first = middle + 1;
    if (probe.chunk_index > chunk_index) end = middle;
  }
  return chunk;
}

Status ReadIndex::open(Comm& comm, ChunkFile* file, const StoredDataset& dataset,
                       std::uint64_t n_chunks) {
  if (opened_) return Status();
  std::vector<StoredChunk> chunks;
  const Result<Bytes> received = broadcast_from_root(comm, [&](ByteWriter& message) {
    // A failed refresh() leaves no file.
    if (file == nullptr) return Status(Code::io_error, "the file is closed");
    TAILRACE_TAKE(chunks, file->chunks(dataset));
    IndexFacts facts;
    facts.plain = fits_plain(chunks, n_chunks) ? 1 : 0;
    facts.n_entries = facts.plain != 0 ? n_chunks : chunks.size();
    message.add(facts);
    std::size_t next = 0;
    if (facts.is_small()) {
      message.add_bytes(pack_entries(chunks, facts.plain != 0, 0, facts.n_entries, next));
    }
    return Status();
  });
  if (!received.ok()) return received.status();
  ByteReader reader(*received);
  const auto facts = reader.take<IndexFacts>();
  plain_ = facts.plain != 0;
  n_entries_ = facts.n_entries;
  segments_.clear();
  if (facts.is_small()) {
    const std::span<const std::byte> entries = reader.rest();
    own_copy_.assign(entries.begin(), entries.end());
    entries_per_segment_ = std::max<std::uint64_t>(1, n_entries_);
    segments_.push_back(own_copy_.data());
    note_opened();
    return Status();
  }
  const std::uint64_t entry_bytes = facts.entry_bytes();

  // The smallest node has the most entries a rank. A window may span fewer ranks than the node has
  // (TAILRACE_RANKS_PER_NODE): then repeat with its number of ranks.
  std::uint64_t n_on_node[] = {std::uint64_t(comm.n_ranks_on_node())};
  comm.allreduce(n_on_node, Reduction::min);
  const auto make_window = [&] {
    entries_per_segment_ =
        std::max<std::uint64_t>(1, (n_entries_ + n_on_node[0] - 1) / n_on_node[0]);
    return comm.create_node_window(entries_per_segment_ * entry_bytes);
  };
  Result<std::unique_ptr<NodeWindow>> window = make_window();
  if (window.ok()) {
    std::uint64_t n_spanned[] = {std::uint64_t((*window)->n_ranks_on_node())};
    comm.allreduce(n_spanned, Reduction::min);
    if (n_spanned[0] < n_on_node[0]) {
      n_on_node[0] = n_spanned[0];
      (*window).reset();
      window = make_window();
    }
  }
  std::uint64_t own_begin = 0;
  std::byte* own = nullptr;
  if (window.ok()) {
    window_ = std::move(*window);
    for (int i = 0; i < window_->n_ranks_on_node(); ++i) {
      segments_.push_back(window_->segment(i).data());
    }
    own = window_->segment(window_->rank_on_node()).data();
    own_begin = std::uint64_t(window_->rank_on_node()) * entries_per_segment_;
  } else {
    // The MPI library cannot share memory: each rank has a copy.
    entries_per_segment_ = std::max<std::uint64_t>(1, n_entries_);
    own_copy_.resize(entries_per_segment_ * entry_bytes);
    own = own_copy_.data();
    segments_.push_back(own);
  }
  const std::uint64_t own_end = std::min(own_begin + entries_per_segment_, n_entries_);

  std::size_t next = 0;
  const std::uint64_t entries_per_piece = piece_bytes / entry_bytes;
  for (std::uint64_t begin = 0; begin < n_entries_; begin += entries_per_piece) {
    const std::uint64_t end = std::min(begin + entries_per_piece, n_entries_);
    Bytes piece;
    if (comm.is_root()) piece = pack_entries(chunks, plain_, begin, end, next);
    comm.broadcast(piece, 0);
    const std::uint64_t first = std::max(begin, own_begin);
    const std::uint64_t last = std::min(end, own_end);
    if (first < last) {
      std::memcpy(own + (first - own_begin) * entry_bytes,
                  piece.data() + (first - begin) * entry_bytes, (last - first) * entry_bytes);
    }
  }
  // The Comm's barrier also orders memory: writes of other ranks before it are visible after it.
  comm.barrier();
  note_opened();
  return Status();
}

void ReadIndex::note_opened() {
  opened_ = true;
  walked_ = false;
  table_ = ChunkTable();
  looked_up_.clear();
}

void ReadIndex::abandon() {
  if (window_ != nullptr) window_->abandon();
}

}  // namespace tailrace
