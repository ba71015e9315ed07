// Owners and places of touched chunks, and how they are laid together.

#include "array/array_patches.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "describe/input_bytes.hpp"

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

/// Elements that the chunk will have at the end, as far as one can know: where a dimension grows,
/// the chunk is not whole at the length that it has now.
std::uint64_t n_elements_at_last(const PatchedField& field, std::uint64_t chunk_index) {
  Box box = field.grid.clipped_box(chunk_index);
  for (std::size_t d = 0; d < field.growing.size(); ++d) {
    if (field.growing[d]) box.count[d] = field.grid.chunk_shape[d];
  }
  return box.n_elements();
}

}  // namespace

ChunkPlaces::Places& ChunkPlaces::places(std::size_t variable) {
  if (places_.size() <= variable) places_.resize(variable + 1);
  return places_[variable];
}

Result<PatchOwnership> ChunkPlaces::settle(Comm& comm, std::span<const PatchedField> fields,
                                           bool hold_back) {
  const ChunkDealing dealing = deal(comm, fields);
  ChunkMail claims(dealing);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    for (const ChunkClaim& claim : fields[f].claims) {
      claims.add({{f, claim.chunk_index}, nobody, {}, {{comm.rank(), claim.n_elements, {}}}});
    }
  }
  Result<std::vector<ChunkRecord>> told =
      ask_homes(comm, std::move(claims), [&](ChunkRecord& chunk) {
        const PatchedField& field = fields[chunk.key.field];
        std::uint64_t n_elements = 0;
        for (const ChunkShare& share : chunk.shares) n_elements += share.n_elements;
        if (hold_back && n_elements < n_elements_at_last(field, chunk.key.chunk_index)) return true;
        chunk.owner = with_most(chunk.shares);
        const Places& known = places(field.variable);
        const auto place = known.find(dealing.number_of(chunk.key));
        if (place != known.end()) chunk.place = place->second;
        return true;
      });
  if (!told.ok()) return told.status();
  PatchOwnership settled;
  for (ChunkRecord& chunk : *told) {
    if (chunk.owner == nobody) {
      settled.held_back.push_back(chunk.key);
    } else if (chunk.owner != comm.rank()) {
      settled.ownership.owed[chunk.key] = {};
    } else {
      settled.ownership.jobs.push_back(
          {chunk.key.field, chunk.key.chunk_index, {}, std::move(chunk.shares)});
      settled.before.push_back(chunk.place);
    }
  }
  return settled;
}

Result<std::uint64_t> ChunkPlaces::keep(Comm& comm, std::span<const PatchedField> fields,
                                        std::span<const WrittenChunk> written) {
  const ChunkDealing dealing = deal(comm, fields);
  ChunkMail news(dealing);
  for (const WrittenChunk& chunk : written) {
    news.add({{chunk.field, chunk.chunk_index},
              comm.rank(),
              {chunk.address, chunk.encoded_bytes, static_cast<std::uint32_t>(chunk.filter_mask)},
              {}});
  }
  TAILRACE_TAKE(const std::vector<ChunkRecord> heard, news.exchange(comm));
  std::uint64_t lost_bytes = 0;
  for (const ChunkRecord& chunk : heard) {
    ChunkPlace& known = places(fields[chunk.key.field].variable)[dealing.number_of(chunk.key)];
    if (known.address != chunk.place.address) lost_bytes += known.encoded_bytes;
    known = chunk.place;
  }
  return lost_bytes;
}

Status ChunkPlaces::load(Comm& comm, const PatchedField& field,
                         std::span<const StoredChunk> chunks) {
  std::vector<WrittenChunk> known;
  known.reserve(chunks.size());
  for (const StoredChunk& chunk : chunks) {
    known.push_back({0, chunk.chunk_index, chunk.extent.address, chunk.extent.encoded_bytes,
                     chunk.filter_mask});
  }
  return keep(comm, std::span(&field, 1), known).status();
}

Result<Buffer> read_stored_values(Storage& storage, const Codec& codec, const ChunkPlace& place,
                                  std::uint64_t raw_bytes, std::size_t swapped_bytes) {
  EncodedBytes encoded;
  encoded.buffer = Buffer(place.encoded_bytes);
  encoded.filter_mask = place.filter_mask;
  if (!encoded.buffer.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
  TAILRACE_TRY(storage.read_at(place.address, encoded.buffer.bytes()));
  const std::uint64_t all = (std::uint64_t{1} << codec.filters().size()) - 1;
  if ((place.filter_mask & all) == all) {
    if (place.encoded_bytes == raw_bytes) {
      swap_elements(encoded.buffer.bytes(), swapped_bytes);
      return std::move(encoded.buffer);
    }
    return Status(Code::corrupt, "has " + std::to_string(place.encoded_bytes) + " bytes, must be " +
                                     std::to_string(raw_bytes));
  }
  Result<Buffer> values = codec.decode(std::move(encoded));
  if (values.ok() && values->n_bytes() != raw_bytes) {
    return Status(Code::corrupt, "decodes to " + std::to_string(values->n_bytes()) +
                                     " bytes, must be " + std::to_string(raw_bytes));
  }
  return values;
}

// --- Laying chunks together.

namespace {

/// Set `n` bits from `first` on.
void set_bits(std::vector<std::uint64_t>& bits, std::uint64_t first, std::uint64_t n) {
  while (n > 0) {
    const std::uint64_t at = first % 64;
    const std::uint64_t here = std::min<std::uint64_t>(64 - at, n);
    const std::uint64_t ones = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    bits[first / 64] |= ones << at;
    first += here;
    n -= here;
  }
}

/// The first position from `at` on whose bit is `value`; `end` if there is none before it.
std::uint64_t find_bit(const std::vector<std::uint64_t>& bits, bool value, std::uint64_t at,
                       std::uint64_t end) {
  while (at < end) {
    const std::uint64_t word = (value ? bits[at / 64] : ~bits[at / 64]) >> (at % 64);
    if (word != 0) return std::min(at + static_cast<std::uint64_t>(std::countr_zero(word)), end);
    at = (at / 64 + 1) * 64;
  }
  return end;
}

/// Call `visit(first, n)` for the rows of `part` within the dense array over `box`.
template <class Visit>
void for_each_row(const Slab& part, const Box& box, Visit&& visit) {
  const std::size_t rank = box.rank();
  if (part.empty()) return;
  if (rank == 0) return visit(std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1});
  Box outer{Shape(rank - 1, 0), Shape(part.count.begin(), part.count.end() - 1)};
  for_each_position(outer, [&](const Shape& at) {
    std::uint64_t first = 0;
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      first = first * box.count[d] + part.start[d] + at[d] * part.stride_of(d) - box.start[d];
    }
    first = first * box.count[rank - 1] + part.start[rank - 1] - box.start[rank - 1];
    visit(first, part.count[rank - 1], part.stride_of(rank - 1));
  });
}

}  // namespace

PatchedChunks::PatchedChunks(Variable variable, const StagingLog& log, Storage& storage)
    : variable_(std::move(variable)), log_(log), storage_(storage) {
  const ChunkGrid& grid = variable_.grid;
  for (std::size_t e = 0; e < log_.n_entries(); ++e) {
    const Slab slab = log_.slab(e);
    const bool strided = log_.strided(e);
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

std::vector<ChunkClaim> PatchedChunks::claims() const {
  std::vector<ChunkClaim> claims;
  for (const Link& link : links_) {
    if (claims.empty() || claims.back().chunk_index != link.chunk_index) {
      claims.push_back({link.chunk_index, 0});
    }
    const Box chunk = variable_.grid.full_box(link.chunk_index);
    claims.back().n_elements += part_within(log_.slab(link.entry), chunk).slab.n_elements();
  }
  return claims;
}

void PatchedChunks::set_before(std::uint64_t chunk_index, const ChunkPlace& place) {
  if (place.encoded_bytes > 0) before_[chunk_index] = place;
}

std::optional<std::uint64_t> PatchedChunks::fixed_address(std::uint64_t chunk_index) const {
  if (!variable_.codec->filters().empty()) return std::nullopt;
  const auto before = before_.find(chunk_index);
  return before == before_.end() ? std::nullopt : std::optional(before->second.address);
}

/// What the file holds, encoded and decoded (or before that, pieces of others), and the bitmap.
std::uint64_t PatchedChunks::extra_bytes() const {
  const std::uint64_t raw = chunk_elements() * variable_.element_bytes;
  const std::uint64_t pieces = variable_.alone ? 0 : raw;
  return raw + variable_.codec->encoded_bytes_max(raw) + chunk_elements() / 8 + 8 + pieces;
}

std::vector<Bytes> PatchedChunks::take_pieces(std::uint64_t chunk_index) {
  const std::scoped_lock lock(mutex_);
  const auto found = patched_.find(chunk_index);
  if (found == patched_.end()) return {};
  std::vector<Bytes> pieces = std::move(found->second.pieces);
  patched_.erase(found);
  return pieces;
}

// --- pieces

void PatchedChunks::add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const {
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  for (const Link& link : links_of(chunk_index)) {
    const Slab slab = log_.slab(link.entry);
    const SlabPart part = part_within(slab, clipped);
    const Box within{part.first, part.slab.count};
    const Box whole{Shape(slab.rank(), 0), slab.count};
    writer.add(part.slab);
    writer.add(log_.epoch(link.entry));
    std::byte* to = writer.extend(within.n_elements() * variable_.element_bytes);
    copy_box(within, whole, log_.values(link.entry), within, to, variable_.element_bytes);
  }
}

Status PatchedChunks::copy_staged(std::uint64_t chunk_index, StagingLog& to) const {
  ByteWriter writer;
  add_pieces(chunk_index, writer);
  const Bytes pieces = writer.take();
  ByteReader reader(pieces);
  while (!reader.at_end()) {
    const Slab slab = reader.take_slab();
    const auto epoch = reader.take<std::uint64_t>();
    const auto part = reader.take_bytes(slab.n_elements() * variable_.element_bytes);
    TAILRACE_TRY(to.put(slab, part, epoch));
  }
  return Status();
}

void PatchedChunks::lay_pieces(std::uint64_t chunk_index, std::span<const std::byte> pieces,
                               Buffer&) {
  const std::scoped_lock lock(mutex_);
  patched_[chunk_index].pieces.emplace_back(pieces.begin(), pieces.end());
}

/// Lay everybody's slabs over each other. @returns which elements were put
PatchedChunks::Bitmap PatchedChunks::lay_all(std::uint64_t chunk_index,
                                             const std::vector<Bytes>& from_others,
                                             Buffer& values) const {
  std::vector<Piece> pieces;
  for (const Bytes& of_rank : from_others) {
    ByteReader reader(of_rank);
    while (!reader.at_end()) {
      Piece piece;
      piece.slab = reader.take_slab();
      piece.epoch = reader.take<std::uint64_t>();
      piece.values = reader.take_bytes(piece.slab.n_elements() * variable_.element_bytes).data();
      pieces.push_back(std::move(piece));
    }
  }
  for (const Link& link : links_of(chunk_index)) {
    pieces.push_back({log_.epoch(link.entry), log_.slab(link.entry), log_.values(link.entry)});
  }
  // A rank's own are in order already, and stay so where epochs are alike.
  std::ranges::stable_sort(pieces, {}, &Piece::epoch);
  const Box chunk = variable_.grid.full_box(chunk_index);
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  Bitmap put((chunk_elements() + 63) / 64);
  for (const Piece& piece : pieces) {
    const SlabPart part = part_within(piece.slab, clipped);
    scatter_part(part, piece.slab, piece.values, chunk, values.data(), variable_.element_bytes);
    for_each_row(part.slab, chunk, [&](std::uint64_t first, std::uint64_t n, std::uint64_t stride) {
      if (stride == 1 || n == 1) return set_bits(put, first, n);
      for (std::uint64_t i = 0; i < n; ++i) set_bits(put, first + i * stride, 1);
    });
  }
  return put;
}

// --- the rest of a chunk

Result<ChunkPatches::Completed> PatchedChunks::complete(std::uint64_t chunk_index, Buffer& values) {
  const Box chunk = variable_.grid.full_box(chunk_index);
  const Box clipped = variable_.grid.clipped_box(chunk_index);
  const Bitmap put = lay_all(chunk_index, take_pieces(chunk_index), values);
  Completed completed;
  const auto before = before_.find(chunk_index);
  if (before == before_.end()) {
    fill_unput(put, values);
    completed.fresh = true;
    return completed;
  }
  bool kept = false;
  for_each_row(Slab::of(clipped), chunk, [&](std::uint64_t first, std::uint64_t n, std::uint64_t) {
    kept = kept || find_bit(put, false, first, first + n) < first + n;
  });
  if (!kept && clipped == chunk) return completed;
  const std::size_t swapped = variable_.swapped ? variable_.element_bytes : 1;
  Result<Buffer> old = read_stored_values(storage_, *variable_.codec, before->second,
                                          chunk_elements() * variable_.element_bytes, swapped);
  if (!old.ok()) {
    return old.status().within("variable \"" + variable_.path + "\", chunk " + box_text(clipped) +
                               " as the file has it");
  }
  // Also beyond the shape's end: what a growing variable has there are fill values.
  const std::uint64_t end = chunk_elements();
  const std::size_t element = variable_.element_bytes;
  for (std::uint64_t at = find_bit(put, false, 0, end); at < end;) {
    const std::uint64_t until = find_bit(put, true, at, end);
    std::memcpy(values.data() + at * element, old->data() + at * element, (until - at) * element);
    at = find_bit(put, false, until, end);
  }
  if (kept) ++n_merged_;
  completed.store_raw = kept && variable_.codec->lossy();
  if (completed.store_raw) to_other_order(values);
  return completed;
}

/// Fill values wherever nothing was put.
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

/// For what no codec turns; both ways.
void PatchedChunks::to_other_order(Buffer& values) const {
  if (variable_.swapped) swap_elements(values.bytes(), variable_.element_bytes);
}

}  // namespace tailrace
