// Claims to homes, verdicts back, places kept.

#include "array/array_homes.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

enum class Verdict : std::uint32_t { owns = 1, owes = 2, waits = 3 };

int home_rank(std::size_t variable, std::uint64_t number, int n_ranks) {
  // splitmix64 (Steele et al. 2014), so that neighbouring chunks go to different homes.
  std::uint64_t z = number + 0x9E3779B97F4A7C15U * (variable + 1);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<int>((z ^ (z >> 31U)) % static_cast<std::uint64_t>(n_ranks));
}

std::vector<Message> messages(std::map<int, ByteWriter>& writers) {
  std::vector<Message> outgoing;
  outgoing.reserve(writers.size());
  for (auto& [peer, writer] : writers) outgoing.push_back({peer, writer.take()});
  return outgoing;
}

/// Who has what of one chunk, as its home hears it.
struct Heard {
  std::map<int, std::uint64_t> n_elements;  ///< By rank.

  int owner() const {
    const auto most = std::max_element(
        n_elements.begin(), n_elements.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });  // first: lowest rank
    return most->first;
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto& [rank, n] : n_elements) sum += n;
    return sum;
  }
};

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

ChunkNumbers::ChunkNumbers(const ChunkGrid& grid, const std::vector<bool>& growing)
    : grid_(grid), extents_(grid.n_per_dimension()) {
  // Inner dimensions that grow get a fixed share of 2^60; the first one has no limit.
  constexpr unsigned kBits = 60;
  unsigned fixed_bits = 0;
  unsigned n_growing = 0;
  for (std::size_t d = 1; d < extents_.size(); ++d) {
    if (growing[d]) {
      ++n_growing;
    } else {
      fixed_bits += static_cast<unsigned>(std::bit_width(extents_[d]));
    }
  }
  const unsigned share =
      n_growing == 0 ? 0 : (kBits - std::min(fixed_bits, kBits)) / (n_growing + 1);
  for (std::size_t d = 1; d < extents_.size(); ++d) {
    if (growing[d]) extents_[d] = std::uint64_t{1} << share;
  }
}

std::uint64_t ChunkNumbers::number(std::uint64_t chunk_index) const {
  const Shape at = grid_.coordinates(chunk_index);
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < at.size(); ++d) number = number * extents_[d] + at[d];
  return number;
}

ChunkHomes::Places& ChunkHomes::places(std::size_t variable) {
  if (places_.size() <= variable) places_.resize(variable + 1);
  return places_[variable];
}

PatchOwnership ChunkHomes::settle(Comm& comm, std::span<const PatchedField> fields,
                                  bool hold_back) {
  std::map<int, ByteWriter> claims;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const PatchedField& field = fields[f];
    for (const ChunkClaim& claim : field.claims) {
      const std::uint64_t number = field.numbers.number(claim.chunk_index);
      ByteWriter& writer = claims[home_rank(field.variable, number, comm.n_ranks())];
      writer.add(static_cast<std::uint64_t>(f));
      writer.add(claim);
    }
  }
  std::map<ChunkKey, Heard> heard;
  for (const Message& message : comm.exchange(messages(claims))) {
    ByteReader reader(message.payload);
    while (!reader.at_end()) {
      const auto f = static_cast<std::size_t>(reader.take<std::uint64_t>());
      const auto claim = reader.take<ChunkClaim>();
      heard[{f, claim.chunk_index}].n_elements[message.peer] += claim.n_elements;
    }
  }

  std::map<int, ByteWriter> verdicts;
  for (const auto& [key, chunk] : heard) {
    const PatchedField& field = fields[key.field];
    const bool waits = hold_back && chunk.total() < n_elements_at_last(field, key.chunk_index);
    const int owner = chunk.owner();
    for (const auto& [rank, n] : chunk.n_elements) {
      ByteWriter& writer = verdicts[rank];
      writer.add(static_cast<std::uint64_t>(key.field));
      writer.add(key.chunk_index);
      writer.add(waits ? Verdict::waits : rank == owner ? Verdict::owns : Verdict::owes);
      if (waits || rank != owner) continue;
      const Places& known = places(field.variable);
      const auto place = known.find(field.numbers.number(key.chunk_index));
      writer.add(place == known.end() ? ChunkPlace() : place->second);
      writer.add(static_cast<std::uint32_t>(chunk.n_elements.size() - 1));
      for (const auto& [holder, n_held] : chunk.n_elements) {
        if (holder != owner) writer.add(static_cast<std::int32_t>(holder));
      }
    }
  }

  struct Job {
    ChunkJob job;
    ChunkPlace before;
  };
  std::vector<Job> jobs;
  PatchOwnership settled;
  for (const Message& message : comm.exchange(messages(verdicts))) {
    ByteReader reader(message.payload);
    while (!reader.at_end()) {
      const auto f = static_cast<std::size_t>(reader.take<std::uint64_t>());
      const auto chunk_index = reader.take<std::uint64_t>();
      const auto verdict = reader.take<Verdict>();
      if (verdict == Verdict::waits) settled.held_back.push_back({f, chunk_index});
      if (verdict == Verdict::owes) settled.ownership.owed[{f, chunk_index}] = {};
      if (verdict != Verdict::owns) continue;
      Job job{{f, chunk_index, {}, {}}, reader.take<ChunkPlace>()};
      const auto n_holders = reader.take<std::uint32_t>();
      for (std::uint32_t h = 0; h < n_holders; ++h) {
        job.job.remote.push_back({reader.take<std::int32_t>(), {}});
      }
      jobs.push_back(std::move(job));
    }
  }
  std::sort(settled.held_back.begin(), settled.held_back.end());
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return ChunkKey{a.job.field, a.job.chunk_index} < ChunkKey{b.job.field, b.job.chunk_index};
  });
  for (Job& job : jobs) {
    settled.ownership.jobs.push_back(std::move(job.job));
    settled.before.push_back(job.before);
  }
  return settled;
}

std::uint64_t ChunkHomes::keep(Comm& comm, std::span<const PatchedField> fields,
                               std::span<const WrittenChunk> written) {
  std::map<int, ByteWriter> news;
  for (const WrittenChunk& chunk : written) {
    const PatchedField& field = fields[static_cast<std::size_t>(chunk.field)];
    const std::uint64_t number = field.numbers.number(chunk.chunk_index);
    ByteWriter& writer = news[home_rank(field.variable, number, comm.n_ranks())];
    writer.add(static_cast<std::uint64_t>(field.variable));
    writer.add(number);
    writer.add(ChunkPlace{chunk.address, chunk.encoded_bytes,
                          static_cast<std::uint32_t>(chunk.filter_mask)});
  }
  std::uint64_t lost_bytes = 0;
  for (const Message& message : comm.exchange(messages(news))) {
    ByteReader reader(message.payload);
    while (!reader.at_end()) {
      const auto variable = static_cast<std::size_t>(reader.take<std::uint64_t>());
      const auto number = reader.take<std::uint64_t>();
      const auto place = reader.take<ChunkPlace>();
      ChunkPlace& known = places(variable)[number];
      if (known.address != place.address) lost_bytes += known.encoded_bytes;
      known = place;
    }
  }
  return lost_bytes;
}

void ChunkHomes::load(Comm& comm, const PatchedField& field, std::span<const StoredChunk> chunks) {
  std::vector<WrittenChunk> known;
  known.reserve(chunks.size());
  for (const StoredChunk& chunk : chunks) {
    known.push_back({0, chunk.chunk_index, chunk.extent.address, chunk.extent.encoded_bytes,
                     chunk.filter_mask});
  }
  static_cast<void>(keep(comm, std::span(&field, 1), known));
}

}  // namespace tailrace
