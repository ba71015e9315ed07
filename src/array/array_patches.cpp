// Owners and places of touched chunks, and merging of their pieces.

#include "array/array_patches.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "chunk/stored_chunk.hpp"
#include "core/byte_order.hpp"
#include "describe/input_bytes.hpp"
#include "field/chunk_beginnings.hpp"

namespace tailrace {
// --- Owners and places.

namespace {

ChunkDealing deal(const Comm& comm, std::span<const PatchedField> fields) {
  ChunkDealing dealing(comm.n_ranks());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    dealing.add(f, fields[f].grid, fields[f].variable, fields[f].growing);
  }
  return dealing;
}

/// Elements that the chunk will have in the end, as far as known. Along a growing dimension, the
/// chunk counts as full.
Box box_at_last(const ChunkGrid& grid, const std::vector<bool>& growing,
                std::uint64_t chunk_index) {
  Box box = grid.clipped_box(chunk_index);
  for (std::size_t d = 0; d < growing.size(); ++d) {
    if (growing[d]) box.count[d] = grid.chunk_shape[d];
  }
  return box;
}
}  // namespace

ChunkPlaces::Places& ChunkPlaces::places(std::size_t variable) {
  if (places_.size() <= variable) places_.resize(variable + 1);
  return places_[variable];
}

Result<PatchOwnership> ChunkPlaces::assign_owners(Comm& comm, std::span<const PatchedField> fields,
                                                  bool hold_back) {
  const ChunkDealing dealing = deal(comm, fields);
  ChunkMail claims(dealing);
  const Status listed = local_part([&] {  // Others wait in the exchange; then all fail.
    for (std::size_t f = 0; f < fields.size(); ++f) {
      for (const ChunkClaim& claim : fields[f].claims) {
        claims.add({{f, claim.chunk_index}, nobody, {}, {{comm.rank(), claim.n_elements, {}}}});
      }
    }
    return Status();
  });
  Result<std::vector<ChunkRecord>> answers =
      ask_homes(comm, std::move(claims), [&](ChunkRecord& chunk) {
        const PatchedField& field = fields[chunk.key.field];
        std::uint64_t n_elements = 0;
        for (const ChunkShare& share : chunk.shares) n_elements += share.n_elements;
        const Box last = box_at_last(field.grid, field.growing, chunk.key.chunk_index);
        if (hold_back && n_elements < last.n_elements()) return true;
        // Chunks shared by two neighbours go, within a variable, all to the lower rank or all to
        // the upper. So each rank gets one of its two shared chunks. Chunks that all ranks share
        // are dealt.
        const std::uint64_t number = dealing.number_of(chunk.key);
        const bool everybodys = static_cast<int>(chunk.shares.size()) == comm.n_ranks();
        chunk.owner = with_about_most(chunk.shares, field.variable + (everybodys ? number : 0));
        const Places& known = places(field.variable);
        const auto place = known.find(number);
        if (place != known.end()) chunk.place = place->second;
        return true;
      });
  TAILRACE_TRY(listed);
  if (!answers.ok()) return answers.status();
  PatchOwnership assigned;
  for (ChunkRecord& chunk : *answers) {
    if (chunk.owner == nobody) {
      assigned.held_back.push_back(chunk.key);
    } else if (chunk.owner != comm.rank()) {
      assigned.ownership.owed[chunk.key] = {};
    } else {
      assigned.ownership.jobs.push_back(
          {chunk.key.field, chunk.key.chunk_index, {}, std::move(chunk.shares)});
      assigned.before.push_back(chunk.place);
    }
  }
  return assigned;
}

Result<std::uint64_t> ChunkPlaces::keep(Comm& comm, std::span<const PatchedField> fields,
                                        std::span<const WrittenChunk> written) {
  const ChunkDealing dealing = deal(comm, fields);
  ChunkMail news(dealing);
  const Status listed = local_part([&] {  // Others wait in the exchange; then all fail.
    for (const WrittenChunk& chunk : written) {
      news.add({{chunk.field, chunk.chunk_index},
                comm.rank(),
                {chunk.address, chunk.encoded_bytes, static_cast<std::uint32_t>(chunk.filter_mask)},
                {}});
    }
    return Status();
  });
  TAILRACE_TAKE(const std::vector<ChunkRecord> received, news.exchange(comm));
  TAILRACE_TRY(listed);
  std::uint64_t lost_bytes = 0;
  for (const ChunkRecord& chunk : received) {
    ChunkPlace& known = places(fields[chunk.key.field].variable)[dealing.number_of(chunk.key)];
    if (known.address != chunk.place.address) lost_bytes += known.encoded_bytes;
    known = chunk.place;
  }
  return lost_bytes;
}

Status ChunkPlaces::load(Comm& comm, const PatchedField& field,
                         std::span<const StoredChunk> chunks) {
  std::vector<WrittenChunk> known;
  const Status listed = local_part([&] {
    known.reserve(chunks.size());
    for (const StoredChunk& chunk : chunks) {
      known.push_back({0, chunk.chunk_index, chunk.extent.address, chunk.extent.encoded_bytes,
                       chunk.filter_mask});
    }
    return Status();
  });
  const Status kept = keep(comm, std::span(&field, 1), known).status();
  return listed.ok() ? kept : listed;
}

// --- Merging of chunks.

namespace {

/// Set `n` bits from `first` on. @returns true if any of them was set already
bool set_bits(std::vector<std::uint64_t>& bits, std::uint64_t first, std::uint64_t n) {
  bool any = false;
  while (n > 0) {
    const std::uint64_t at = first % 64;
    const std::uint64_t here = std::min<std::uint64_t>(64 - at, n);
    const std::uint64_t ones = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    std::uint64_t& word = bits[first / 64];
    any = any || (word & (ones << at)) != 0;
    word |= ones << at;
    first += here;
    n -= here;
  }
  return any;
}

/// Find the first position in [at, end) whose bit is `value`; `end` if none.
std::uint64_t find_bit(const std::vector<std::uint64_t>& bits, bool value, std::uint64_t at,
                       std::uint64_t end) {
  while (at < end) {
    const std::uint64_t word = (value ? bits[at / 64] : ~bits[at / 64]) >> (at % 64);
    if (word != 0) return std::min(at + static_cast<std::uint64_t>(std::countr_zero(word)), end);
    at = (at / 64 + 1) * 64;
  }
  return end;
}

/// Call visit(first, n, stride, from) for the rows of a part of a slab. `first` and `stride` locate
/// the elements in the dense array over `box`. `from` is the position of the first one in the
/// slab's dense array of extents `counts`, where they are contiguous. Dimensions that are complete
/// in both arrays are merged into the rows.
template <class Visit>
void for_each_row(const SlabPart& part, const Shape& counts, const Box& box, Visit&& visit) {
  const std::size_t rank = box.rank();
  const Slab& slab = part.slab;
  if (slab.empty()) return;
  const auto dense = [&](std::size_t d) { return slab.stride_of(d) == 1 || slab.count[d] == 1; };
  std::size_t n_outer = rank;
  std::uint64_t n = 1;
  std::uint64_t stride = 1;
  for (bool whole = true; n_outer > 0 && whole; --n_outer) {
    const std::size_t d = n_outer - 1;
    if (!dense(d) && n > 1) break;  // these rows are not contiguous
    if (!dense(d)) stride = slab.stride_of(d);
    n *= slab.count[d];
    whole = stride == 1 && slab.count[d] == box.count[d] && slab.count[d] == counts[d];
  }
  const Box outer{
      Shape(n_outer, 0),
      Shape(slab.count.begin(), slab.count.begin() + static_cast<std::ptrdiff_t>(n_outer))};
  for_each_position(outer, [&](const Shape& at) {
    std::uint64_t first = 0;
    std::uint64_t from = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::uint64_t step = d < n_outer ? at[d] : 0;
      first = first * box.count[d] + slab.start[d] + step * slab.stride_of(d) - box.start[d];
      from = from * counts[d] + part.first[d] + step;
    }
    visit(first, n, stride, from);
  });
}

/// True if any element of `box`, a part of `chunk`, has a bit equal to `value`.
bool any_bit(const std::vector<std::uint64_t>& bits, bool value, const Box& box, const Box& chunk) {
  bool any = false;
  for_each_row(part_within(Slab::of(box), box), box.count, chunk,
               [&](std::uint64_t first, std::uint64_t n, std::uint64_t, std::uint64_t) {
                 any = any || find_bit(bits, value, first, first + n) < first + n;
               });
  return any;
}

/// Copy `n` contiguous elements to positions `stride` apart.
void lay_row(std::uint64_t n, const std::byte* from, std::byte* to, std::uint64_t stride,
             std::size_t element) {
  if (stride == 1) {
    std::memcpy(to, from, n * element);
    return;
  }
  for (std::uint64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * stride * element, from + i * element, element);
  }
}

/// Kind of a piece in a message to the owner.
enum class PieceKind : std::uint8_t {
  part,       ///< Part of a slab: position, runs of epochs, values.
  scattered,  ///< Runs of elements: epoch, positions in the chunk, values.
  /// All puts of a rank, merged: runs of elements, values.
  remains
};
struct SentPiece {
  std::uint32_t first = 0;
  std::uint32_t n = 0;
};
struct RemainingRun {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t epoch = 0;
};

/// Rank number of the owner's own puts: at equal epochs they win over every other rank.
constexpr int kOwnRank = std::numeric_limits<int>::max();

}  // namespace

// --- ChunkOrder

std::uint32_t ChunkOrder::number_of(const Origin& origin) {
  if (!origins_.empty() && origins_.back() == origin) {
    return static_cast<std::uint32_t>(origins_.size() - 1);
  }
  if (origins_.size() >= most_origins_) drop_unseen();
  origins_.push_back(origin);
  return static_cast<std::uint32_t>(origins_.size() - 1);
}

void ChunkOrder::drop_unseen() {
  std::vector<std::uint32_t> numbers(origins_.size(), kNobodyYet);
  for (const std::uint32_t number : of_element_) {
    if (number != kNobodyYet) numbers[number] = 0;
  }
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == kNobodyYet) continue;
    origins_[n] = origins_[i];
    numbers[i] = n++;
  }
  origins_.resize(n);
  for (std::uint32_t& number : of_element_) {
    if (number != kNobodyYet) number = numbers[number];
  }
  // At least half of the entries are free, or the limit doubles, so this is rarely called.
  if (2 * origins_.size() > most_origins_) most_origins_ *= 2;
}

void ChunkOrder::lay(std::uint64_t first, std::uint64_t n, std::uint64_t stride,
                     const std::byte* from, std::size_t element_bytes, std::uint64_t epoch,
                     int rank, std::byte* values) {
  const Origin origin{epoch, rank};
  const std::uint32_t number = number_of(origin);
  // Neighbours usually have the same origin: compare each only when it changes.
  std::uint32_t compared = kNobodyYet;
  bool later = true;
  for (std::uint64_t i = 0; i < n;) {
    const std::uint64_t begin = i;
    for (; i < n; ++i) {
      std::uint32_t& there = of_element_[first + i * stride];
      if (there != compared) {
        compared = there;
        later = there == kNobodyYet || origin >= origins_[there];
      }
      if (!later) break;
      there = number;
    }
    if (i > begin) {
      lay_row(i - begin, from + begin * element_bytes,
              values + (first + begin * stride) * element_bytes, stride, element_bytes);
    }
    if (i < n) ++i;
  }
}

void ChunkOrder::for_each_run(const std::function<void(std::uint64_t first, std::uint64_t end,
                                                       std::uint64_t epoch)>& visit) const {
  const std::uint64_t n = of_element_.size();
  for (std::uint64_t first = 0; first < n;) {
    const std::uint32_t number = of_element_[first];
    if (number == kNobodyYet) {
      ++first;
      continue;
    }
    const std::uint64_t epoch = origins_[number].epoch;
    std::uint64_t end = first + 1;
    while (end < n && of_element_[end] != kNobodyYet &&
           (of_element_[end] == number || origins_[of_element_[end]].epoch == epoch)) {
      ++end;
    }
    visit(first, end, epoch);
    first = end;
  }
}

PatchedChunks::PatchedChunks(Variable variable, const StagingLog& log, Storage& storage)
    : variable_(std::move(variable)), log_(&log), storage_(storage) {
  const ChunkGrid& grid = variable_.grid;
  for (std::size_t e = 0; e < log_->n_entries(); ++e) {
    if (log_->scattered(e)) {
      const ChunkPieces& pieces =
          scattered_.try_emplace(e, grid, log_->element_runs(e)).first->second;
      for (const std::uint64_t chunk_index : pieces.chunks()) links_.push_back({chunk_index, e});
      continue;
    }
    const Slab slab = log_->slab(e);
    const bool strided = log_->strided(e);
    for_each_position(grid.touched(slab.bounding_box()), [&](const Shape& coordinates) {
      const std::uint64_t chunk_index = grid.index_of(coordinates);
      if (strided && part_within(slab, grid.full_box(chunk_index)).slab.empty()) return;
      links_.push_back({chunk_index, e});
    });
  }
  std::ranges::stable_sort(links_, {}, &Link::chunk_index);
}

std::span<const PatchedChunks::Link> PatchedChunks::links_of(std::uint64_t chunk_index) const {
  const auto [first, end] =
      std::equal_range(links_.begin(), links_.end(), Link{chunk_index, 0},
                       [](const Link& a, const Link& b) { return a.chunk_index < b.chunk_index; });
  return {first, end};
}

PatchedChunks::OwnPart PatchedChunks::part_of(const Link& link, const Box& clipped) const {
  OwnPart own;
  own.entry = link.entry;
  if (log_->scattered(link.entry)) {
    const ChunkPieces& pieces = scattered_.at(link.entry);
    own.pieces = pieces.of(link.chunk_index);
    own.n_elements = pieces.n_elements(link.chunk_index);
  } else {
    own.part = part_within(log_->slab(link.entry), clipped);
    own.n_elements = own.part.slab.n_elements();
  }
  return own;
}

std::vector<ChunkClaim> PatchedChunks::claims() const {
  std::vector<ChunkClaim> claims;
  for (const Link& link : links_) {
    if (claims.empty() || claims.back().chunk_index != link.chunk_index) {
      claims.push_back({link.chunk_index, 0});
    }
    const Box chunk = variable_.grid.full_box(link.chunk_index);
    claims.back().n_elements += part_of(link, chunk).n_elements;
  }
  return claims;
}

void PatchedChunks::set_before(std::uint64_t chunk_index, const ChunkPlace& place) {
  if (place.encoded_bytes > 0) before_[chunk_index] = place;
}

std::optional<std::uint64_t> PatchedChunks::fixed_address(std::uint64_t chunk_index) const {
  if (!variable_.codec->filters().empty()) return std::nullopt;
  const auto before = before_.find(chunk_index);
  if (before == before_.end()) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  if (overwritten_.contains(chunk_index)) return std::nullopt;
  return before->second.address;
}

/// Memory for merging a chunk: the larger of two needs, and the bitmap. One need is the stored
/// chunk, encoded and decoded. The earlier need is the buffered pieces, the message that exceeds
/// the buffer, and the order of elements. The order counts only up to a chunk's bytes, so that no
/// chunk is refused because of it. It would need five bytes per element of one byte, and it is not
/// created if other ranks' pieces do not overlap.
std::uint64_t PatchedChunks::extra_bytes() const {
  const std::uint64_t raw = chunk_bytes();
  const std::uint64_t before = raw + variable_.codec->encoded_bytes_max(raw);
  const std::uint64_t pieces =
      variable_.alone ? 0 : 2 * raw + chunk_elements() * ChunkOrder::kBytesPerElement;
  return std::min(std::max(before, pieces), before + raw) + chunk_elements() / 8 + 8;
}

std::uint64_t PatchedChunks::peak_bytes() const {
  const std::scoped_lock lock(mutex_);
  return peak_bytes_;
}

PatchedChunks::Patched PatchedChunks::take_patched(std::uint64_t chunk_index) {
  const std::scoped_lock lock(mutex_);
  const auto found = patched_.find(chunk_index);
  if (found == patched_.end()) return {};
  Patched patched = std::move(found->second);
  patched_.erase(found);
  held_bytes_ -= std::exchange(patched.counted_bytes, 0);
  return patched;
}

void PatchedChunks::count_held(Patched& patched) {
  std::uint64_t n_bytes = patched.piece_bytes;
  if (patched.order != nullptr) n_bytes += patched.order->held_bytes();
  const std::scoped_lock lock(mutex_);
  held_bytes_ += n_bytes - std::exchange(patched.counted_bytes, n_bytes);
  peak_bytes_ = std::max(peak_bytes_, held_bytes_);
}

// --- pieces, sent by a holder

/// Epochs of the elements of a part of an entry, as runs of the part's dense array.
std::vector<StagedRun> PatchedChunks::runs_of(std::size_t entry, const SlabPart& part) const {
  const std::size_t n_runs = log_->n_runs(entry);
  if (n_runs == 1) return {{part.slab.n_elements(), log_->run(entry, 0).epoch}};
  const Slab whole = log_->slab(entry);
  std::vector<StagedRun> runs;
  std::uint64_t n_taken = 0;
  for_each_row(part, whole.count, Box{whole.start, whole.count},
               [&](std::uint64_t, std::uint64_t n, std::uint64_t, std::uint64_t from) {
                 std::size_t r = log_->run_at(entry, from);
                 for (const std::uint64_t until = from + n; from < until; ++r) {
                   const StagedRun run = log_->run(entry, r);
                   const std::uint64_t end = std::min(run.end, until);
                   n_taken += end - from;
                   from = end;
                   if (!runs.empty() && runs.back().epoch == run.epoch) {
                     runs.back().end = n_taken;
                   } else {
                     runs.push_back({n_taken, run.epoch});
                   }
                 }
               });
  return runs;
}

std::uint64_t PatchedChunks::entry_bytes(std::uint64_t chunk_index) const {
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  std::uint64_t n_bytes = 0;
  for (const Link& link : links_of(chunk_index)) {
    const OwnPart own = part_of(link, clipped);
    n_bytes += StagingLog::entry_bytes(clipped.rank());
    if (log_->scattered(link.entry)) {
      n_bytes += sizeof(std::uint64_t) + StoredRuns::bytes_of(n_runs_of(own, chunk_index));
    } else {
      n_bytes += (runs_of(link.entry, own.part).size() - 1) * sizeof(StagedRun);
    }
  }
  return n_bytes;
}

/// Upper bound of the runs in the variable that a chunk's pieces make up: one per row of each
/// piece.
std::uint64_t PatchedChunks::n_runs_of(const OwnPart& own, std::uint64_t chunk_index) const {
  const std::uint64_t row = variable_.grid.full_box(chunk_index).count.back();
  std::uint64_t n = 0;
  for (const ChunkPiece& piece : own.pieces) n += (piece.first % row + piece.n - 1) / row + 1;
  return n;
}

/// Send positions in the chunk instead of the variable: 8 bytes a piece.
void PatchedChunks::add_scattered(ByteWriter& writer, const OwnPart& own) const {
  const std::size_t element = variable_.element_bytes;
  writer.add(PieceKind::scattered);
  writer.add(log_->run(own.entry, 0).epoch);
  writer.add(static_cast<std::uint64_t>(own.pieces.size()));
  for (const ChunkPiece& piece : own.pieces) writer.add(SentPiece{piece.first, piece.n});
  for (const ChunkPiece& piece : own.pieces) {
    writer.add_bytes({log_->values(own.entry) + piece.from * element, piece.n * element});
  }
}

void PatchedChunks::add_part(ByteWriter& writer, std::size_t entry, const SlabPart& part) const {
  const std::vector<StagedRun> runs = runs_of(entry, part);
  const Box within = part.box();
  const Box whole = log_->slab(entry).dense_box();
  writer.add(PieceKind::part);
  writer.add(part.slab);
  writer.add(static_cast<std::uint64_t>(runs.size()));
  writer.add_bytes(std::as_bytes(std::span(runs)));
  std::byte* to = writer.extend(within.n_elements() * variable_.element_bytes);
  copy_box(within, whole, log_->values(entry), within, to, variable_.element_bytes);
}

/// Send this rank's overlapping puts of a chunk as one merged piece.
void PatchedChunks::add_remains(ByteWriter& writer, std::uint64_t chunk_index) const {
  const std::size_t element = variable_.element_bytes;
  Buffer values(chunk_bytes());
  TAILRACE_CHECK(values.allocated());
  ChunkOrder order(chunk_elements());
  for_each_own_row(chunk_index, [&](const Row& row) {
    order.lay(row.first, row.n, row.stride, row.values, element, row.epoch, kOwnRank,
              values.data());
  });
  std::vector<RemainingRun> runs;
  order.for_each_run([&](std::uint64_t first, std::uint64_t end, std::uint64_t epoch) {
    runs.push_back({first, end, epoch});
  });
  writer.add(PieceKind::remains);
  writer.add(static_cast<std::uint64_t>(runs.size()));
  writer.add_bytes(std::as_bytes(std::span(runs)));
  for (const RemainingRun& run : runs) {
    const std::uint64_t n_bytes = (run.end - run.first) * element;
    writer.add_bytes({values.data() + run.first * element, n_bytes});
  }
}

void PatchedChunks::add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const {
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  std::vector<OwnPart> parts;
  std::uint64_t n_put = 0;
  for (const Link& link : links_of(chunk_index)) {
    parts.push_back(part_of(link, clipped));
    n_put += parts.back().n_elements;
  }
  if (n_put > clipped.n_elements()) return add_remains(writer, chunk_index);
  for (const OwnPart& own : parts) {
    if (log_->scattered(own.entry)) {
      add_scattered(writer, own);
    } else {
      add_part(writer, own.entry, own.part);
    }
  }
}

Status PatchedChunks::copy_scattered(std::uint64_t chunk_index, const OwnPart& own,
                                     StagingLog& to) const {
  const std::size_t element = variable_.element_bytes;
  const Box chunk = variable_.grid.full_box(chunk_index);
  const Shape& shape = variable_.grid.shape;
  ElementRuns runs;
  std::vector<std::byte> values;
  values.reserve(own.n_elements * element);
  for (const ChunkPiece& piece : own.pieces) {
    // Rows of the chunk; each is one run of the variable.
    const std::uint64_t end = std::uint64_t{piece.first} + piece.n;
    for_each_box_of_run({Shape(shape.size(), 0), chunk.count}, piece.first, end,
                        [&](const Box& part) {
                          Shape last = part.count;
                          last.back() = 1;
                          for_each_position({part.start, last}, [&](const Shape& at) {
                            std::uint64_t first = 0;
                            for (std::size_t d = 0; d < shape.size(); ++d) {
                              first = (d == 0 ? 0 : first * shape[d]) + chunk.start[d] + at[d];
                            }
                            runs.add(first, part.count.back());
                          });
                        });
    const std::byte* from = log_->values(own.entry) + piece.from * element;
    values.insert(values.end(), from, from + piece.n * element);
  }
  return to.put(shape, runs, values, log_->run(own.entry, 0).epoch);
}

Status PatchedChunks::copy_staged(std::uint64_t chunk_index, StagingLog& to) const {
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  const std::size_t element = variable_.element_bytes;
  for (const Link& link : links_of(chunk_index)) {
    const OwnPart own = part_of(link, clipped);
    if (log_->scattered(link.entry)) {
      TAILRACE_TRY(copy_scattered(chunk_index, own, to));
      continue;
    }
    const Slab slab = log_->slab(link.entry);
    const SlabPart& part = own.part;
    const Box within = part.box();
    std::vector<std::byte> values(within.n_elements() * element);
    copy_box(within, slab.dense_box(), log_->values(link.entry), within, values.data(), element);
    const std::vector<StagedRun> runs = runs_of(link.entry, part);
    if (runs.size() == 1) {
      TAILRACE_TRY(to.put(part.slab, values, runs.front().epoch));
      continue;
    }
    Status put;
    std::uint64_t first = 0;
    std::span<const std::byte> rest(values);
    for (const StagedRun& run : runs) {
      const Box box{part.slab.start, part.slab.count};
      for_each_box_of_run(box, std::exchange(first, run.end), run.end, [&](const Box& piece) {
        const std::uint64_t n_bytes = piece.n_elements() * element;
        if (put.ok()) put = to.put(Slab::of(piece), rest.first(n_bytes), run.epoch);
        rest = rest.subspan(n_bytes);
      });
    }
    TAILRACE_TRY(put);
  }
  return Status();
}

// --- pieces, merged by the owner

void PatchedChunks::for_each_own_row(std::uint64_t chunk_index, const RowVisit& visit) const {
  const Box chunk = variable_.grid.full_box(chunk_index);
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  for (const Link& link : links_of(chunk_index)) {
    const OwnPart own = part_of(link, clipped);
    const std::byte* values = log_->values(link.entry);
    if (log_->scattered(link.entry)) {
      const std::uint64_t epoch = log_->run(link.entry, 0).epoch;
      for (const ChunkPiece& piece : own.pieces) {
        visit({piece.first, piece.n, 1, values + piece.from * variable_.element_bytes, epoch});
      }
      continue;
    }
    const Slab slab = log_->slab(link.entry);
    const SlabPart& part = own.part;
    const std::size_t n_runs = log_->n_runs(link.entry);
    StagedRun run = log_->run(link.entry, 0);
    for_each_row(
        part, slab.count, chunk,
        [&](std::uint64_t first, std::uint64_t n, std::uint64_t stride, std::uint64_t from) {
          while (n > 0) {
            if (n_runs > 1) run = log_->run(link.entry, log_->run_at(link.entry, from));
            const std::uint64_t here = n_runs == 1 ? n : std::min(n, run.end - from);
            visit({first, here, stride, values + from * variable_.element_bytes, run.epoch});
            first += here * stride;
            from += here;
            n -= here;
          }
        });
  }
}

void PatchedChunks::for_each_row_sent(std::uint64_t chunk_index, std::span<const std::byte> pieces,
                                      const RowVisit& visit) const {
  const Box chunk = variable_.grid.full_box(chunk_index);
  const std::size_t element = variable_.element_bytes;
  ByteReader reader(pieces);
  while (!reader.at_end()) {
    const auto kind = reader.take<PieceKind>();
    if (kind == PieceKind::remains) {
      std::vector<RemainingRun> runs(reader.take<std::uint64_t>());
      for (RemainingRun& run : runs) run = reader.take<RemainingRun>();
      for (const RemainingRun& run : runs) {
        const std::uint64_t n = run.end - run.first;
        visit({run.first, n, 1, reader.take_bytes(n * element).data(), run.epoch});
      }
      continue;
    }
    if (kind == PieceKind::scattered) {
      const auto epoch = reader.take<std::uint64_t>();
      std::vector<SentPiece> sent(reader.take<std::uint64_t>());
      for (SentPiece& piece : sent) piece = reader.take<SentPiece>();
      for (const SentPiece& piece : sent) {
        visit({piece.first, piece.n, 1, reader.take_bytes(piece.n * element).data(), epoch});
      }
      continue;
    }
    SlabPart part;
    part.slab = reader.take_slab();
    part.first.assign(part.slab.rank(), 0);
    std::vector<StagedRun> runs(reader.take<std::uint64_t>());
    for (StagedRun& run : runs) run = reader.take<StagedRun>();
    const std::byte* values = reader.take_bytes(part.slab.n_elements() * element).data();
    std::size_t r = 0;
    for_each_row(
        part, part.slab.count, chunk,
        [&](std::uint64_t first, std::uint64_t n, std::uint64_t stride, std::uint64_t from) {
          while (n > 0) {
            while (runs[r].end <= from) ++r;
            const std::uint64_t here = std::min(n, runs[r].end - from);
            visit({first, here, stride, values + from * element, runs[r].epoch});
            first += here * stride;
            from += here;
            n -= here;
          }
        });
  }
}

void PatchedChunks::lay_in_order(std::uint64_t chunk_index, const Pieces& pieces, ChunkOrder& order,
                                 Buffer& values) const {
  for_each_row_sent(chunk_index, pieces.bytes, [&](const Row& row) {
    order.lay(row.first, row.n, row.stride, row.values, variable_.element_bytes, row.epoch,
              pieces.rank, values.data());
  });
}

/// Merge the buffered pieces, because they exceed their limit or overlap.
void PatchedChunks::lay_waiting(std::uint64_t chunk_index, Patched& patched, Buffer& values) const {
  if (patched.order == nullptr) patched.order = std::make_unique<ChunkOrder>(chunk_elements());
  for (const Pieces& pieces : patched.pieces) {
    lay_in_order(chunk_index, pieces, *patched.order, values);
  }
  patched.pieces.clear();
  patched.piece_bytes = 0;
}

/// Buffer or merge a peer's pieces. Only the main thread uses a chunk before its pieces are
/// complete.
void PatchedChunks::lay_pieces(std::uint64_t chunk_index, int peer,
                               std::span<const std::byte> pieces, Buffer& values) {
  Patched* patched = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    patched = &patched_[chunk_index];
  }
  Pieces come{peer, Bytes(pieces.begin(), pieces.end())};
  patched->piece_bytes += come.bytes.size();
  patched->pieces.push_back(std::move(come));
  if (patched->order != nullptr || patched->piece_bytes > chunk_bytes()) {
    lay_waiting(chunk_index, *patched, values);
  }
  count_held(*patched);
}

/// Copy the pieces of all ranks, as long as no two share an element. @returns false if two do
bool PatchedChunks::lay_apart(std::uint64_t chunk_index, const Patched& patched, Buffer& values,
                              Bitmap& put) const {
  bool apart = true;
  const auto lay = [&](const Row& row) {
    if (!apart) return;
    const std::size_t element = variable_.element_bytes;
    lay_row(row.n, row.values, values.data() + row.first * element, row.stride, element);
    bool again = false;
    if (row.stride == 1) {
      again = set_bits(put, row.first, row.n);
    } else {
      for (std::uint64_t i = 0; i < row.n; ++i) {
        again = set_bits(put, row.first + i * row.stride, 1) || again;
      }
    }
    // Without other ranks' pieces, this rank's puts are applied in their order.
    apart = !again || patched.pieces.empty();
  };
  for (const Pieces& pieces : patched.pieces) for_each_row_sent(chunk_index, pieces.bytes, lay);
  for_each_own_row(chunk_index, lay);
  return apart;
}

/// Overlay the pieces of all ranks in order. @returns a bitmap of the elements that were put
PatchedChunks::Bitmap PatchedChunks::lay_all(std::uint64_t chunk_index, Patched patched,
                                             Buffer& values) const {
  Bitmap put((chunk_elements() + 63) / 64);
  if (patched.order == nullptr && lay_apart(chunk_index, patched, values, put)) return put;
  lay_waiting(chunk_index, patched, values);
  for_each_own_row(chunk_index, [&](const Row& row) {
    patched.order->lay(row.first, row.n, row.stride, row.values, variable_.element_bytes, row.epoch,
                       kOwnRank, values.data());
  });
  std::ranges::fill(put, 0);
  patched.order->for_each_run([&](std::uint64_t first, std::uint64_t end, std::uint64_t) {
    set_bits(put, first, end - first);
  });
  return put;
}

// --- completion of a chunk

Result<ChunkPatches::Completed> PatchedChunks::complete(std::uint64_t chunk_index, Buffer& values) {
  const Box chunk = variable_.grid.full_box(chunk_index);
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  Bitmap put = lay_all(chunk_index, take_patched(chunk_index), values);
  Completed completed;
  std::optional<KeptOriginals::Kept> kept_before;
  if (variable_.originals != nullptr) kept_before = variable_.originals->take(key_of(chunk_index));
  const auto before = before_.find(chunk_index);
  if (before == before_.end()) {
    fill_unput(put, values);
    keep_original(chunk_index, std::move(put), values);
    completed.fresh = true;
    return completed;
  }
  if (!variable_.committed.empty()) {
    const Box committed = intersect(clipped, whole_box(variable_.committed));
    if (!committed.empty() && any_bit(put, true, committed, chunk)) {
      const std::scoped_lock lock(mutex_);
      overwritten_.insert(chunk_index);
    }
  }
  const bool kept = any_bit(put, false, clipped, chunk);
  if (!kept && clipped == chunk) return completed;
  std::optional<KeptOriginals::Chunk> original;
  EncodedBytes to_join;
  const auto read_old = [&]() -> Result<Buffer> {
    TAILRACE_TAKE(EncodedBytes stored, fetch_chunk(storage_, before->second));
    if (kept_before) {
      original = std::move(*kept_before)
                     .if_stored(before->second.address, std::as_const(stored.buffer).bytes());
      if (original) return std::move(original->values);
    }
    const bool joins = variable_.codec->lossy() && !variable_.swapped;
    if (joins && keeps_beginnings(*variable_.codec))
      to_join = {Buffer::copy_of(stored.buffer.bytes()), stored.filter_mask};
    return decode_chunk(*variable_.codec, std::move(stored), chunk_bytes(),
                        variable_.swapped ? variable_.element_bytes : 1);
  };
  const Result<Buffer> old = read_old();
  if (!old.ok()) {
    return old.status().within("variable \"" + variable_.path + "\", chunk " + box_text(clipped) +
                               " as stored in the file");
  }
  // Also copy beyond the shape's end: there, a growing variable has fill values.
  const std::uint64_t end = chunk_elements();
  const std::size_t element = variable_.element_bytes;
  for (std::uint64_t at = find_bit(put, false, 0, end); at < end;) {
    const std::uint64_t until = find_bit(put, true, at, end);
    std::memcpy(values.data() + at * element, old->data() + at * element, (until - at) * element);
    at = find_bit(put, false, until, end);
  }
  if (kept) ++n_merged_;
  completed.store_raw = kept && variable_.codec->lossy() && !original;
  if (completed.store_raw && variable_.codec->keeping_decoded() != nullptr) {
    completed.keep_decoded = variable_.codec->keeps_decoded(old->bytes());
    completed.store_raw = !completed.keep_decoded;
  }
  if (completed.store_raw && to_join.buffer.allocated()) {
    completed.beginnings = beginnings_of(chunk_index, put, std::move(to_join), values);
    completed.store_raw = completed.beginnings == nullptr;
  }
  if (completed.store_raw) to_other_order(values);
  if (original) {
    // Beyond the extents of a variable that cannot grow, the values are arbitrary.
    completed.fresh = std::ranges::count(variable_.growing, true) == 0;
    for (std::size_t i = 0; i < put.size(); ++i) put[i] |= original->put[i];
    keep_original(chunk_index, std::move(put), values);
  }
  return completed;
}

/// Return the beginning of a chunk, or null if new values do not lie behind all that the file has.
/// @param values  completed; those of the beginning become zeros, which cost least to encode.
std::unique_ptr<const ChunkBeginnings> PatchedChunks::beginnings_of(std::uint64_t chunk_index,
                                                                    const Bitmap& put,
                                                                    EncodedBytes stored,
                                                                    Buffer& values) const {
  const std::uint64_t end = chunk_elements();
  const std::size_t element = variable_.element_bytes;
  const std::uint64_t first = find_bit(put, true, 0, end);
  if (stored.filter_mask != 0 || first == 0 || first == end) return nullptr;
  Bitmap known = put;
  set_bits(known, 0, first);
  const Box last = box_at_last(variable_.grid, variable_.growing, chunk_index);
  if (any_bit(known, false, last, variable_.grid.full_box(chunk_index))) {
    if (!variable_.fill_is_exact) return nullptr;  // Only such values may be encoded once more.
    for (std::uint64_t at = find_bit(known, false, 0, end); at < end;) {
      const std::uint64_t until = find_bit(known, true, at, end);
      for (; at < until; ++at) {
        const std::byte* const value = values.data() + at * element;
        if (std::memcmp(value, variable_.fill.data(), element) != 0) return nullptr;
      }
      at = find_bit(known, false, until, end);
    }
  }
  std::memset(values.data(), 0, first * element);
  return beginning_of_chunk(*variable_.codec, std::move(stored), first, first * element,
                            chunk_bytes());
}

/// Key of a chunk's originals. It stays the same when the variable grows.
ChunkKey PatchedChunks::key_of(std::uint64_t chunk_index) const {
  std::uint64_t number = 0;
  for (const std::uint64_t coordinate : variable_.grid.coordinates(chunk_index)) {
    number = (number + coordinate + 1) * 0x9E3779B97F4A7C15U;
  }
  return {variable_.number, number};
}

/// Keep a lossy chunk's values for the flushes that put the rest of it, if any is missing.
void PatchedChunks::keep_original(std::uint64_t chunk_index, Bitmap put,
                                  const Buffer& values) const {
  if (variable_.originals == nullptr || !variable_.codec->lossy()) return;
  if (variable_.codec->keeping_decoded() != nullptr) return;
  const Box last = box_at_last(variable_.grid, variable_.growing, chunk_index);
  if (!any_bit(put, false, last, variable_.grid.full_box(chunk_index))) return;
  variable_.originals->keep(key_of(chunk_index), values.bytes(), std::move(put));
}

/// Write fill values to all elements that were not put.
void PatchedChunks::fill_unput(const Bitmap& put, Buffer& values) const {
  const std::uint64_t end = chunk_elements();
  const std::size_t element = variable_.element_bytes;
  for (std::uint64_t at = find_bit(put, false, 0, end); at < end;) {
    const std::uint64_t until = find_bit(put, true, at, end);
    for (; at < until; ++at) {
      std::memcpy(values.data() + at * element, variable_.fill.data(), element);
    }
    at = find_bit(put, false, until, end);
  }
}

/// Swap the byte order of values that bypass the codec; self-inverse.
void PatchedChunks::to_other_order(Buffer& values) const {
  if (variable_.swapped) swap_elements(values.bytes(), variable_.element_bytes);
}

}  // namespace tailrace
