// Data structures, planning and writing of one commit.

#include "hdf5/commit_order.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "hdf5/journal.hpp"
#include "hdf5/superblock.hpp"

namespace tailrace {

namespace {

/// Largest segment to which directly following values are appended.
constexpr std::uint64_t kJoinedRawBytesMax = 65536;

}  // namespace

void SpanSet::insert(std::uint64_t address, std::uint64_t n_bytes) {
  if (n_bytes == 0) return;
  std::uint64_t start = address;
  std::uint64_t end = address + n_bytes;
  auto at = end_of_.upper_bound(start);
  if (at != end_of_.begin() && std::prev(at)->second >= start) --at;
  while (at != end_of_.end() && at->first <= end) {
    start = std::min(start, at->first);
    end = std::max(end, at->second);
    at = end_of_.erase(at);
  }
  end_of_.emplace_hint(at, start, end);
}

bool SpanSet::contains(std::uint64_t address, std::uint64_t n_bytes) const {
  if (n_bytes == 0) return true;
  const auto after = end_of_.upper_bound(address);
  return after != end_of_.begin() && std::prev(after)->second >= address + n_bytes;
}

bool SpanSet::overlaps(std::uint64_t address, std::uint64_t n_bytes) const {
  const auto after = end_of_.lower_bound(address + n_bytes);
  return n_bytes > 0 && after != end_of_.begin() && std::prev(after)->second > address;
}

void DirtyBytes::put(std::uint64_t address, std::span<const std::byte> bytes, Kind kind) {
  if (bytes.empty()) return;
  const auto after = segments_.upper_bound(address);
  if (after != segments_.begin()) {
    auto& [start, segment] = *std::prev(after);
    const std::uint64_t first = address - start;
    const bool same = first == 0 && bytes.size() == segment.bytes.size();
    // A segment of metadata is one block, whose kind a commit recognises; values have no block
    // borders.
    const bool raw = kind == Kind::raw && segment.kind == Kind::raw;
    if (same || (raw && first + bytes.size() <= segment.bytes.size())) {
      std::copy(bytes.begin(), bytes.end(), segment.bytes.begin() + std::ptrdiff_t(first));
      segment.kind = kind;
      return;
    }
    const bool free_behind = after == segments_.end() || after->first >= address + bytes.size();
    if (raw && first == segment.bytes.size() && free_behind && first < kJoinedRawBytesMax) {
      segment.bytes.insert(segment.bytes.end(), bytes.begin(), bytes.end());
      return;
    }
  }
  drop(address, bytes.size());
  segments_.emplace(address, Segment{{bytes.begin(), bytes.end()}, kind});
}

bool DirtyBytes::covers(std::uint64_t address, std::uint64_t n_bytes) const {
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return false;
  const auto& [start, segment] = *std::prev(after);
  return address + n_bytes <= start + segment.bytes.size();
}

void DirtyBytes::drop(std::uint64_t address, std::uint64_t n_bytes) {
  const std::uint64_t end = address + n_bytes;
  auto at = segments_.lower_bound(address);
  if (at != segments_.begin()) {
    const auto before = std::prev(at);
    const std::uint64_t before_end = before->first + before->second.bytes.size();
    if (before_end > address) {
      if (before_end > end) {
        const auto cut = before->second.bytes.begin() + std::ptrdiff_t(end - before->first);
        Segment rest{{cut, before->second.bytes.end()}, before->second.kind};
        at = segments_.emplace(end, std::move(rest)).first;
      }
      before->second.bytes.resize(address - before->first);
    }
  }
  while (at != segments_.end() && at->first < end) {
    const std::uint64_t at_end = at->first + at->second.bytes.size();
    if (at_end > end) {
      const auto cut = at->second.bytes.begin() + std::ptrdiff_t(end - at->first);
      Segment rest{{cut, at->second.bytes.end()}, at->second.kind};
      segments_.emplace(end, std::move(rest));
    }
    at = segments_.erase(at);
  }
}

void DirtyBytes::overlay(std::uint64_t address, std::span<std::byte> bytes) const {
  const std::uint64_t end = address + bytes.size();
  auto at = segments_.upper_bound(address);
  if (at != segments_.begin()) --at;
  for (; at != segments_.end() && at->first < end; ++at) {
    const std::uint64_t from = std::max(at->first, address);
    const std::uint64_t to = std::min(at->first + at->second.bytes.size(), end);
    if (from >= to) continue;
    std::memcpy(bytes.data() + (from - address), at->second.bytes.data() + (from - at->first),
                to - from);
  }
}

std::uint64_t DirtyBytes::end() const {
  if (segments_.empty()) return 0;
  const auto last = std::prev(segments_.end());
  return last->first + last->second.bytes.size();
}

// --- Planning and writing of one commit.

namespace {

struct SignatureRank {
  std::string_view signature;
  BlockRank rank;
  bool orderly;  ///< Rewriting it in order leaves a file that reads correctly.
};

constexpr std::size_t signature_bytes = 4;

/// Version 1 object headers have no signature and are recognised by their first bytes. Nodes of
/// version 1 B-trees have no checksum that would reveal a torn node.
constexpr std::array kSignatureRanks = {
    SignatureRank{"EADB", BlockRank::index_leaf, true},
    SignatureRank{"EASB", BlockRank::index_leaf, true},
    SignatureRank{"FADB", BlockRank::index_leaf, true},
    SignatureRank{"BTLF", BlockRank::index_leaf, false},
    SignatureRank{"BTIN", BlockRank::index_leaf, false},
    SignatureRank{"FHDB", BlockRank::index_leaf, false},
    SignatureRank{"FHIB", BlockRank::index_leaf, false},
    SignatureRank{"HEAP", BlockRank::index_leaf, false},
    SignatureRank{"GCOL", BlockRank::index_leaf, true},
    SignatureRank{"EAIB", BlockRank::index_head, true},
    SignatureRank{"EAHD", BlockRank::index_head, true},
    SignatureRank{"FAHD", BlockRank::index_head, true},
    SignatureRank{"BTHD", BlockRank::index_head, false},
    SignatureRank{"FRHP", BlockRank::index_head, false},
    SignatureRank{"TREE", BlockRank::tree_node, false},
    SignatureRank{"SNOD", BlockRank::symbol_node, false},
    SignatureRank{"OHDR", BlockRank::object_header, true},
    SignatureRank{"OCHK", BlockRank::object_header, true},
};

/// Version 1 object header: version 1, a reserved zero, message count, reference count.
bool looks_like_old_header(std::span<const std::byte> block) {
  return block.size() >= 16 && block[0] == std::byte{1} && block[1] == std::byte{0};
}

const SignatureRank* find_signature(std::span<const std::byte> block) {
  if (block.size() < signature_bytes) return nullptr;
  for (const SignatureRank& known : kSignatureRanks) {
    if (std::memcmp(block.data(), known.signature.data(), signature_bytes) == 0) return &known;
  }
  return nullptr;
}

/// True if the write replaces an old block by one of the same kind that can be ordered, within one
/// page. A kill between two pages of a write would leave neither the old block nor the new one.
Result<bool> is_orderly(Storage& storage, const PlannedWrite& write) {
  constexpr std::uint64_t page_bytes = 4096;  // Smallest page size; larger ones are multiples.
  const std::uint64_t last = write.address + write.bytes.size() - 1;
  if (write.address / page_bytes != last / page_bytes) return false;
  const SignatureRank* known = find_signature(write.bytes);
  if (known == nullptr) return looks_like_old_header(write.bytes);
  if (!known->orderly) return false;
  std::array<std::byte, signature_bytes> now{};
  TAILRACE_TRY(storage.read_at(write.address, now));
  return std::memcmp(now.data(), write.bytes.data(), signature_bytes) == 0;
}

/// True if the blocks may be parts of one object's header, between which HDF5 moves messages: a
/// continuation block (OCHK) together with another block. Blocks that begin a header belong to
/// different objects.
bool may_split_a_header(const std::vector<PlannedWrite>& object_headers) {
  return object_headers.size() > 1 &&
         std::ranges::any_of(object_headers, [](const PlannedWrite& write) {
           const SignatureRank* const known = find_signature(write.bytes);
           return known != nullptr && known->signature == "OCHK";
         });
}

/// Sort key for old blocks: by rank, version 1 B-tree nodes by descending level.
struct RewriteOrder {
  BlockRank rank = BlockRank::other;
  unsigned depth = 0;  ///< 255 - level.

  explicit RewriteOrder(std::span<const std::byte> block) : rank(rank_block(block)) {
    constexpr std::size_t level_at = 5;
    if (rank == BlockRank::tree_node && block.size() > level_at) {
      depth = 255 - std::to_integer<unsigned>(block[level_at]);
    }
  }
  auto operator<=>(const RewriteOrder&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Write pieces; adjacent pieces share one call.
Status write_joined(Storage& storage, const std::vector<PlannedWrite>& writes) {
  std::vector<std::span<const std::byte>> run;
  for (std::size_t i = 0; i < writes.size();) {
    run.clear();
    std::uint64_t end = writes[i].address;
    std::size_t next = i;
    for (; next < writes.size() && writes[next].address == end; ++next) {
      run.push_back(writes[next].bytes);
      end += writes[next].bytes.size();
    }
    TAILRACE_TRY(run.size() == 1 ? storage.write_at(writes[i].address, run.front())
                                 : storage.write_pieces_at(writes[i].address, run));
    i = next;
  }
  return Status();
}

/// Write one phase in place and sync it before the next phase begins.
Status write_phase(Storage& storage, const std::vector<PlannedWrite>& writes, bool sync) {
  if (writes.empty()) return Status();
  for (const PlannedWrite& write : writes) {
    TAILRACE_TRY(storage.write_at(write.address, write.bytes));
  }
  return sync ? storage.sync() : Status();
}

/// Add old bytes that the commit does not change, as witnesses of the file's identity: a journal
/// must not be replayed into another file that has taken the name. They are taken from the front,
/// where the oldest metadata lie. Cost: a few reads of 512 bytes.
Status add_old_witnesses(Storage& storage, Journal& journal) {
  constexpr std::uint64_t window_bytes = 512;
  constexpr std::uint64_t searched_bytes = 1U << 20;
  constexpr std::size_t n_wanted = 4;
  const Result<std::uint64_t> n_bytes = storage.file_bytes();
  if (!n_bytes.ok()) return n_bytes.status();
  SpanSet changed;
  for (const JournalEntry& entry : journal.entries) {
    changed.insert(entry.address, entry.bytes.size());
  }
  std::array<std::byte, window_bytes> window{};
  std::size_t n_found = 0;
  for (std::uint64_t at = 0; at < std::min(*n_bytes, searched_bytes) && n_found < n_wanted;
       at += window_bytes) {
    const std::span<std::byte> old =
        std::span(window).first(std::min<std::uint64_t>(window_bytes, *n_bytes - at));
    TAILRACE_TRY(storage.read_at(at, old));
    // Use the bytes between two changes.
    for (std::uint64_t from = 0; from < old.size();) {
      std::uint64_t end = from;
      while (end < old.size() && !changed.contains(at + end, 1)) ++end;
      const std::span<const std::byte> kept = old.subspan(from, end - from);
      const bool has_values = std::any_of(kept.begin(), kept.end(),
                                          [](std::byte byte) { return byte != std::byte{0}; });
      if (has_values) journal.witnesses.push_back({at + from, kept.size(), lookup3(kept)});
      if (has_values) ++n_found;
      from = end + 1;
    }
  }
  return Status();
}

Result<Journal> journal_of(Storage& storage, const CommitPlan& plan) {
  Journal journal;
  journal.file_bytes = plan.file_bytes;
  for (const auto* phase : {&plan.superblock, &plan.index_blocks, &plan.object_headers}) {
    for (const PlannedWrite& write : *phase) {
      journal.entries.push_back({write.address, {write.bytes.begin(), write.bytes.end()}});
    }
  }
  for (const PlannedWrite& write : plan.fresh) {
    journal.witnesses.push_back({write.address, write.bytes.size(), lookup3(write.bytes)});
  }
  TAILRACE_TRY(add_old_witnesses(storage, journal));
  return journal;
}

}  // namespace

BlockRank rank_block(std::span<const std::byte> block) {
  if (const SignatureRank* known = find_signature(block)) return known->rank;
  return looks_like_old_header(block) ? BlockRank::object_header : BlockRank::other;
}

Result<CommitPlan> plan_commit(Storage& storage, const DirtyBytes& dirty, const SpanSet& fresh,
                               std::uint64_t file_bytes) {
  CommitPlan plan;
  plan.file_bytes = file_bytes;
  std::vector<std::pair<RewriteOrder, PlannedWrite>> old;
  for (const auto& [address, segment] : dirty.segments()) {
    const PlannedWrite write{address, segment.bytes};
    if (segment.kind == DirtyBytes::Kind::superblock) {
      // HDF5 marks a version 3 superblock "open for write" while it has the file open. After a
      // crash readers would refuse the file forever. Committed states are complete, so the mark is
      // never set on disk.
      std::vector<std::byte>& bytes = plan.owned.emplace_back(segment.bytes);
      clear_open_for_write(bytes);
      plan.superblock.push_back({address, bytes});
    } else if (fresh.contains(address, segment.bytes.size())) {
      plan.fresh.push_back(write);
    } else {
      old.emplace_back(RewriteOrder(segment.bytes), write);
    }
  }
  std::stable_sort(old.begin(), old.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, write] : old) {
    const Result<bool> orderly = is_orderly(storage, write);
    if (!orderly.ok()) return orderly.status();
    plan.orderly = plan.orderly && *orderly;
    (order.rank == BlockRank::object_header ? plan.object_headers : plan.index_blocks)
        .push_back(write);
  }
  plan.orderly = plan.orderly && !may_split_a_header(plan.object_headers);
  return plan;
}

namespace {

/// Extend the file to its planned end. If this node owns the last byte, that byte is written
/// instead. A client may know a shorter length than the file has, and its appended zeros would
/// overwrite another node's bytes.
Status reach_end(Storage& storage, const CommitPlan& plan) {
  if (!plan.owns_end) return storage.extend(plan.file_bytes);
  const Result<std::uint64_t> known = storage.file_bytes();
  if (!known.ok() || *known >= plan.file_bytes) return known.status();
  return storage.write_at(plan.file_bytes - 1, std::array{std::byte{0}});
}

}  // namespace

Status write_commit(Storage& storage, const CommitPlan& plan, const CommitSettings& settings) {
  TAILRACE_TRY(write_joined(storage, plan.fresh));
  TAILRACE_TRY(reach_end(storage, plan));
  const bool in_place =
      !plan.superblock.empty() || !plan.index_blocks.empty() || !plan.object_headers.empty();
  if (settings.sync) TAILRACE_TRY(storage.sync());
  if (!in_place) return Status();
  const bool journal = !settings.journal_path.empty() && (settings.journal || !plan.orderly);
  if (journal) {
    const Result<Journal> entries = journal_of(storage, plan);
    if (!entries.ok()) return entries.status();
    TAILRACE_TRY(write_journal(settings.journal_path, *entries, settings.sync));
  }
  // Under the journal the order of the writes is irrelevant: one sync for all three phases.
  const bool sync_each = settings.sync && !journal;
  TAILRACE_TRY(write_phase(storage, plan.superblock, sync_each));
  TAILRACE_TRY(write_phase(storage, plan.index_blocks, sync_each));
  TAILRACE_TRY(write_phase(storage, plan.object_headers, sync_each));
  if (!journal) return Status();
  if (settings.sync) TAILRACE_TRY(storage.sync());
  return remove_journal(settings.journal_path, settings.sync);
}

// --- Writing one commit, on any thread.

namespace {

/// Bytes per step when a chunk is copied.
constexpr std::uint64_t kCopyPieceBytes = 4U << 20;

}  // namespace

// Runs first: later HDF5 writes to the same addresses must overwrite the copies. The sync after the
// fresh blocks makes the copies durable before any metadata refer to them.
Status PendingCommit::copy_moved_chunks() {
  std::vector<std::byte> piece;
  for (const Copy& copy : copies_) {
    for (std::uint64_t done = 0; done < copy.n_bytes;) {
      piece.resize(std::min(kCopyPieceBytes, copy.n_bytes - done));
      TAILRACE_TRY(storage_->read_at(copy.from + done, piece));
      TAILRACE_TRY(storage_->write_at(copy.to + done, piece));
      done += piece.size();
    }
  }
  return Status();
}

Status PendingCommit::write_all() {
  if (storage_ == nullptr) return Status();
  TAILRACE_TRY(copy_moved_chunks());
  return write_commit(*storage_, plan_, settings_);
}

Status PendingCommit::write() {
  if (!written_) outcome_ = write_all();
  written_ = true;
  return outcome_;
}

std::uint64_t PendingCommit::metadata_bytes() const {
  std::uint64_t n_bytes = 0;
  for (const auto& [address, segment] : bytes_.segments()) {
    if (segment.kind != DirtyBytes::Kind::raw) n_bytes += segment.bytes.size();
  }
  return n_bytes;
}

}  // namespace tailrace
