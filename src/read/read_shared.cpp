// Announcing, deciding, and rounds of decoding and sending.

#include "read/read_shared.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

void add_slab(ByteWriter& writer, const Slab& slab) {
  writer.add(slab.start);
  writer.add(slab.count);
  writer.add(slab.stride);
}

Slab take_slab(ByteReader& reader) {
  Slab slab;
  slab.start = reader.take_shape();
  slab.count = reader.take_shape();
  slab.stride = reader.take_shape();
  return slab;
}

void add_id(ByteWriter& writer, const ChunkId& id) {
  writer.add(std::uint64_t{id.dataset});
  writer.add(id.chunk_index);
}

ChunkId take_id(ByteReader& reader) {
  ChunkId id;
  id.dataset = static_cast<std::size_t>(reader.take<std::uint64_t>());
  id.chunk_index = reader.take<std::uint64_t>();
  return id;
}

std::vector<Message> messages_of(std::map<int, ByteWriter>& writers) {
  std::vector<Message> messages;
  messages.reserve(writers.size());
  for (auto& [peer, writer] : writers) messages.push_back({peer, writer.take()});
  return messages;
}

struct IdLess {
  bool operator()(const ChunkId& a, const ChunkId& b) const {
    return std::pair(a.dataset, a.chunk_index) < std::pair(b.dataset, b.chunk_index);
  }
};

}  // namespace

Slab SharedRead::wanted_part(const ChunkId& id, const std::vector<std::uint32_t>& requests) const {
  const Box box = dataset_of_(id.dataset).grid.full_box(id.chunk_index);
  if (requests.size() == 1) return part_within(requests_[requests[0]].slab, box).slab;
  // Several requests: the box around all that they want.
  Box all = part_within(requests_[requests[0]].slab, box).slab.bounding_box();
  for (const std::uint32_t request : requests) {
    const Box one = part_within(requests_[request].slab, box).slab.bounding_box();
    for (std::size_t d = 0; d < all.rank(); ++d) {
      const std::uint64_t end = std::max(all.start[d] + all.count[d], one.start[d] + one.count[d]);
      all.start[d] = std::min(all.start[d], one.start[d]);
      all.count[d] = end - all.start[d];
    }
  }
  return Slab::of(all);
}

std::vector<Message> SharedRead::announcements() const {
  std::map<int, ByteWriter> to_home;
  const auto n_ranks = static_cast<std::uint64_t>(comm_.n_ranks());
  for (const auto& [id, requests] : wanted_) {
    const std::uint64_t per_home =
        std::max<std::uint64_t>(1, (dataset_of_(id.dataset).n_chunks + n_ranks - 1) / n_ranks);
    // Small datasets do not all begin with the same home.
    const std::uint64_t home = (id.chunk_index / per_home + id.dataset) % n_ranks;
    ByteWriter& writer = to_home[static_cast<int>(home)];
    add_id(writer, id);
    add_slab(writer, wanted_part(id, requests));
  }
  return messages_of(to_home);
}

std::vector<Message> SharedRead::decide(const std::vector<Message>& announced) const {
  std::map<ChunkId, std::vector<Want>, IdLess> by_chunk;
  for (const Message& message : announced) {
    ByteReader reader(message.payload);
    while (!reader.at_end()) {
      const ChunkId id = take_id(reader);
      by_chunk[id].push_back({message.peer, take_slab(reader)});
    }
  }
  std::map<int, ByteWriter> answers;
  std::size_t turn = 0;
  for (auto& [id, wants] : by_chunk) {
    if (wants.size() < 2) continue;
    std::sort(wants.begin(), wants.end(),
              [](const Want& a, const Want& b) { return a.rank < b.rank; });
    std::uint64_t most = 0;
    for (const Want& want : wants) most = std::max(most, want.part.n_elements());
    std::vector<int> candidates;
    for (const Want& want : wants) {
      if (want.part.n_elements() >= most - most / 4) candidates.push_back(want.rank);
    }
    const int owner = candidates[turn++ % candidates.size()];
    for (const Want& want : wants) {
      ByteWriter& writer = answers[want.rank];
      add_id(writer, id);
      writer.add(owner);
      if (want.rank != owner) continue;
      writer.add(static_cast<std::uint32_t>(wants.size() - 1));
      for (const Want& other : wants) {
        if (other.rank == owner) continue;
        writer.add(other.rank);
        add_slab(writer, other.part);
      }
    }
  }
  return messages_of(answers);
}

void SharedRead::learn(const std::vector<Message>& decided) {
  std::set<int> senders;
  for (const Message& message : decided) {
    ByteReader reader(message.payload);
    while (!reader.at_end()) {
      const ChunkId id = take_id(reader);
      shared_.insert(id);
      const int owner = reader.take<int>();
      if (owner != comm_.rank()) {
        senders.insert(owner);
        continue;
      }
      OwnChunk own{id, {}, 0};
      const std::uint64_t element_bytes = dataset_of_(id.dataset).element_bytes;
      own.wants.resize(reader.take<std::uint32_t>());
      for (Want& want : own.wants) {
        want.rank = reader.take<int>();
        want.part = take_slab(reader);
        own.sent_bytes += want.part.n_elements() * element_bytes;
      }
      own_.push_back(std::move(own));
    }
  }
  n_senders_ = senders.size();
  std::sort(own_.begin(), own_.end(),
            [](const OwnChunk& a, const OwnChunk& b) { return IdLess()(a.id, b.id); });
}

void SharedRead::settle() {
  const std::vector<Message> announced = comm_.exchange(announcements());
  learn(comm_.exchange(decide(announced)));
}

/// A chunk that so many want that its values for all of them are more than a round may have is
/// decoded once for each round's worth of them: memory must not grow with the number of ranks. Each
/// owner begins behind its own rank, so that not all of them send to the same rank at a time.
void SharedRead::split_large(std::uint64_t bytes_per_round) {
  std::vector<OwnChunk> parts;
  for (OwnChunk& own : own_) {
    if (own.sent_bytes <= bytes_per_round) {
      parts.push_back(std::move(own));
      continue;
    }
    const std::uint64_t element_bytes = dataset_of_(own.id.dataset).element_bytes;
    const auto behind = std::find_if(own.wants.begin(), own.wants.end(),
                                     [&](const Want& want) { return want.rank > comm_.rank(); });
    std::rotate(own.wants.begin(), behind, own.wants.end());
    OwnChunk part{own.id, {}, 0};
    for (Want& want : own.wants) {
      const std::uint64_t n_bytes = want.part.n_elements() * element_bytes;
      if (!part.wants.empty() && part.sent_bytes + n_bytes > bytes_per_round) {
        parts.push_back(std::exchange(part, {own.id, {}, 0}));
      }
      part.sent_bytes += n_bytes;
      part.wants.push_back(std::move(want));
    }
    parts.push_back(std::move(part));
  }
  own_ = std::move(parts);
}

/// Parts of one chunk never share a round: together they are too large.
std::vector<std::size_t> SharedRead::cut_rounds(std::uint64_t bytes_per_round) {
  std::vector<std::size_t> ends;
  std::uint64_t n_bytes = 0;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const bool new_dataset = i > 0 && own_[i].id.dataset != own_[i - 1].id.dataset;
    if (i > 0 && (new_dataset || n_bytes + own_[i].sent_bytes > bytes_per_round)) {
      ends.push_back(i);
      n_bytes = 0;
    }
    n_bytes += own_[i].sent_bytes;
  }
  if (!own_.empty()) ends.push_back(own_.size());
  return ends;
}

Status SharedRead::decode_round(ChunkReader& chunks, StoredFile& file,
                                std::span<const OwnChunk> round, std::vector<Message>& outgoing) {
  ReadDataset& dataset = dataset_of_(round.front().id.dataset);
  std::vector<std::uint64_t> indexes;
  indexes.reserve(round.size());
  for (const OwnChunk& own : round) indexes.push_back(own.id.chunk_index);
  std::vector<StoredChunk> stored;
  TAILRACE_TRY(dataset.index.find(file, *dataset.listed, dataset.n_chunks, indexes, stored));
  // Messages are laid out before, so that threads fill in their parts.
  std::map<int, ByteWriter> writers;
  std::vector<std::vector<std::size_t>> places(round.size());
  for (std::size_t i = 0; i < round.size(); ++i) {
    for (const Want& want : round[i].wants) {
      ByteWriter& writer = writers[want.rank];
      add_id(writer, round[i].id);
      add_slab(writer, want.part);
      places[i].push_back(writer.bytes().size());
      writer.extend(want.part.n_elements() * dataset.element_bytes);
    }
  }
  std::map<int, Bytes> payloads;
  for (auto& [peer, writer] : writers) payloads[peer] = writer.take();
  TAILRACE_TRY(
      chunks.visit(file, dataset, stored, [&](std::size_t i, std::span<const std::byte> values) {
        const Box box = dataset.grid.full_box(stored[i].chunk_index);
        for (std::size_t k = 0; k < round[i].wants.size(); ++k) {
          const Want& want = round[i].wants[k];
          gather_part({want.part, Shape(box.rank(), 0)}, box, values.data(), want.part,
                      payloads.at(want.rank).data() + places[i][k], dataset.element_bytes);
        }
        for (const std::uint32_t request : wanted_.at(round[i].id)) {
          const ReadRequest& own = requests_[request];
          gather_part(part_within(own.slab, box), box, values.data(), own.slab, own.values,
                      dataset.element_bytes);
        }
      }));
  outgoing.reserve(payloads.size());
  for (auto& [peer, payload] : payloads) outgoing.push_back({peer, std::move(payload)});
  return Status();
}

void SharedRead::take(const Message& message) {
  received_bytes_ += message.payload.size();
  ByteReader reader(message.payload);
  while (!reader.at_end()) {
    const ChunkId id = take_id(reader);
    const Slab part = take_slab(reader);
    const std::uint64_t n_bytes = part.n_elements() * dataset_of_(id.dataset).element_bytes;
    place(id, part, reader.take_bytes(n_bytes).data());
  }
}

void SharedRead::place(const ChunkId& id, const Slab& part, const std::byte* values) {
  const ReadDataset& dataset = dataset_of_(id.dataset);
  const std::vector<std::uint32_t>& requests = wanted_.at(id);
  const Box box = dataset.grid.full_box(id.chunk_index);
  for (const std::uint32_t number : requests) {
    const ReadRequest& request = requests_[number];
    const SlabPart own = part_within(request.slab, box);
    if (requests.size() == 1) {
      // The very elements, dense.
      const Box piece{own.first, own.slab.count};
      copy_box(piece, piece, values, whole_box(request.slab.count), request.values,
               dataset.element_bytes);
    } else {
      gather_part(own, {part.start, part.count}, values, request.slab, request.values,
                  dataset.element_bytes);
    }
  }
}

Status SharedRead::run(ChunkReader& chunks, StoredFile* file, const Status& mine) {
  Status done = mine;
  // Whoever receives from most bounds what each may send it at a time.
  std::uint64_t most[] = {n_senders_};
  comm_.allreduce(most, Reduction::max);
  if (most[0] == 0) return done;
  const std::uint64_t bytes_per_round =
      chunks.work_bytes() / 2 / std::max<std::uint64_t>(most[0], 1);
  split_large(bytes_per_round);
  const std::vector<std::size_t> ends = cut_rounds(bytes_per_round);
  std::uint64_t n_rounds[] = {ends.size()};
  comm_.allreduce(n_rounds, Reduction::max);
  std::size_t begin = 0;
  for (std::uint64_t round = 0; round < n_rounds[0]; ++round) {
    std::vector<Message> outgoing;
    if (round < ends.size()) {
      const std::span<const OwnChunk> own = std::span(own_).subspan(begin, ends[round] - begin);
      if (done.ok()) done = decode_round(chunks, *file, own, outgoing);
      begin = ends[round];
    }
    for (const Message& message : comm_.exchange(std::move(outgoing))) take(message);
  }
  return done;
}

}  // namespace tailrace
