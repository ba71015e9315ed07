// Agreement on the chunks that several ranks want, and the rounds in which their values travel.

#include "read/read_shared.hpp"

#include <algorithm>

namespace tailrace {

SharedRead::SharedRead(Comm& comm, PreparedDatasets& datasets,
                       std::span<const ReadRequest> requests, WantedChunks wanted)
    : comm_(comm), datasets_(datasets), requests_(requests), wanted_(std::move(wanted)) {}

Status SharedRead::assign_decoders() {
  ChunkDealing dealing(comm_.n_ranks());
  for (const auto& [number, dataset] : datasets_) {
    if (dataset.chunked()) dealing.add(number, dataset.grid, number);
  }
  ChunkMail wishes(dealing);
  for (const auto& [key, requests] : wanted_) {
    const Slab part = wanted_part(key, requests);
    wishes.add({key, nobody, {}, {{comm_.rank(), part.n_elements(), {part}}}});
  }
  std::size_t turn = 0;
  Result<std::vector<ChunkRecord>> answers = ask_homes(
      comm_, std::move(wishes), [&](ChunkRecord& chunk) { return name_decoder(chunk, turn); });
  if (!answers.ok()) return answers.status();
  for (ChunkRecord& chunk : *answers) {
    const auto meant = [](const ChunkShare& want) { return want.slabs.size() == 1; };
    if (chunk.owner == nobody || !wanted_.contains(chunk.key) ||
        !std::all_of(chunk.shares.begin(), chunk.shares.end(), meant)) {
      return Status(Code::internal, "received a record for a chunk that this rank did not request");
    }
    shared_.insert(chunk.key);
    if (chunk.owner == comm_.rank()) {
      own_.push_back(std::move(chunk));
    } else {
      senders_.insert(chunk.owner);
    }
  }
  return Status();
}

Status SharedRead::run(ChunkReader& chunks, ChunkFile* file, const Status& mine) {
  Status done = mine;
  // The rank that receives from most ranks limits what each may send it at a time.
  std::uint64_t most[] = {senders_.size()};
  comm_.allreduce(most, Reduction::max);
  if (most[0] == 0) return done;
  const std::vector<Round> rounds = cut_rounds(chunks.work_bytes() / 2 / most[0]);
  std::uint64_t n_rounds[] = {rounds.size()};
  comm_.allreduce(n_rounds, Reduction::max);
  for (std::uint64_t round = 0; round < n_rounds[0]; ++round) {
    std::map<int, Bytes> outgoing;
    if (round < rounds.size() && done.ok()) {
      done = decode_round(chunks, *file, rounds[round], outgoing);
      if (!done.ok()) outgoing.clear();
    }
    std::vector<Message> messages;
    messages.reserve(outgoing.size());
    for (auto& [peer, payload] : outgoing) messages.push_back({peer, std::move(payload)});
    for (const Message& message : comm_.exchange(std::move(messages))) {
      const Status taken = take(message);
      if (done.ok()) done = taken;
    }
  }
  return done;
}

bool SharedRead::name_decoder(ChunkRecord& chunk, std::size_t& turn) {
  if (chunk.shares.size() < 2) return false;
  std::uint64_t most = 0;
  for (const ChunkShare& want : chunk.shares) most = std::max(most, want.n_elements);
  std::vector<int> candidates;
  for (const ChunkShare& want : chunk.shares) {
    if (want.n_elements >= most - most / 4) candidates.push_back(want.rank);
  }
  chunk.owner = candidates[turn++ % candidates.size()];
  return true;
}

Slab SharedRead::wanted_part(const ChunkKey& key,
                             const std::vector<std::uint32_t>& requests) const {
  const Box box = datasets_.at(key.field).grid.full_box(key.chunk_index);
  if (requests.size() == 1) return part_within(requests_[requests[0]].slab, box).slab;
  // Several requests: the bounding box of all wanted elements.
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

std::uint64_t SharedRead::bytes_of(const ChunkKey& key, std::span<const ChunkShare> wants) const {
  std::uint64_t n = 0;
  for (const ChunkShare& want : wants) n += want.slabs[0].n_elements();
  return n * datasets_.at(key.field).element_bytes;
}

std::vector<SharedRead::Round> SharedRead::cut_rounds(std::uint64_t bytes_per_round) {
  std::vector<Round> rounds;
  std::uint64_t round_bytes = 0;
  const auto add = [&](ChunkRecord part, std::uint64_t n_bytes) {
    if (rounds.empty() || rounds.back().back().key.field != part.key.field ||
        round_bytes + n_bytes > bytes_per_round) {
      rounds.emplace_back();
      round_bytes = 0;
    }
    round_bytes += n_bytes;
    rounds.back().push_back(std::move(part));
  };
  for (ChunkRecord& own : own_) {
    std::vector<ChunkShare> wants = std::exchange(own.shares, {});
    if (bytes_of(own.key, wants) > bytes_per_round) {
      const auto behind = std::ranges::find_if(
          wants, [&](const ChunkShare& want) { return want.rank > comm_.rank(); });
      std::rotate(wants.begin(), behind, wants.end());
    }
    ChunkRecord part = own;
    std::uint64_t part_bytes = 0;
    for (ChunkShare& want : wants) {
      const std::uint64_t n_bytes = bytes_of(own.key, {&want, 1});
      if (!part.shares.empty() && part_bytes + n_bytes > bytes_per_round) {
        add(std::exchange(part, own), std::exchange(part_bytes, 0));
      }
      part_bytes += n_bytes;
      part.shares.push_back(std::move(want));
    }
    add(std::move(part), part_bytes);
  }
  return rounds;
}

Status SharedRead::decode_round(ChunkReader& chunks, ChunkFile& file, const Round& round,
                                std::map<int, Bytes>& outgoing) {
  ReadDataset& dataset = datasets_.at(round.front().key.field);
  std::vector<std::uint64_t> indexes;
  indexes.reserve(round.size());
  for (const ChunkRecord& own : round) indexes.push_back(own.key.chunk_index);
  std::vector<StoredChunk> stored;
  TAILRACE_TRY(dataset.index.find(file, *dataset.listed, dataset.n_chunks, indexes, stored));
  // Lay out the messages first, so that threads can fill in their parts.
  std::map<int, ByteWriter> writers;
  std::vector<std::vector<std::size_t>> places(round.size());
  for (std::size_t i = 0; i < round.size(); ++i) {
    for (const ChunkShare& want : round[i].shares) {
      ByteWriter& writer = writers[want.rank];
      writer.add(round[i].key);
      writer.add(want.slabs[0]);
      places[i].push_back(writer.bytes().size());
      writer.extend(bytes_of(round[i].key, {&want, 1}));
    }
  }
  for (auto& [peer, writer] : writers) outgoing[peer] = writer.take();
  return chunks.visit(file, dataset, stored, [&](std::size_t i, std::span<const std::byte> values) {
    const Box box = dataset.grid.full_box(stored[i].chunk_index);
    for (std::size_t k = 0; k < round[i].shares.size(); ++k) {
      const ChunkShare& want = round[i].shares[k];
      gather_part({want.slabs[0], Shape(box.rank(), 0)}, box, values.data(), want.slabs[0],
                  outgoing.at(want.rank).data() + places[i][k], dataset.element_bytes);
    }
    for (const std::uint32_t request : wanted_.at(round[i].key)) {
      const ReadRequest& own = requests_[request];
      gather_part(part_within(own.slab, box), box, values.data(), own.slab, own.values,
                  dataset.element_bytes);
    }
  });
}

Status SharedRead::take(const Message& message) {
  received_bytes_ += message.payload.size();
  ByteReader reader(message.payload, ByteReader::Trust::wary);
  while (!reader.at_end()) {
    const auto key = reader.take<ChunkKey>();
    const Slab part = reader.take_slab();
    const auto wanted = wanted_.find(key);
    if (wanted == wanted_.end() || part != wanted_part(key, wanted->second)) {
      reader.refuse();
      break;
    }
    const std::uint64_t element_bytes = datasets_.at(key.field).element_bytes;
    const auto values = reader.take_bytes(part.n_elements() * element_bytes);
    if (reader.good()) place(key, part, wanted->second, values.data());
  }
  if (reader.good()) return Status();
  return damaged_message("values", message);
}

void SharedRead::place(const ChunkKey& key, const Slab& part,
                       const std::vector<std::uint32_t>& requests, const std::byte* values) {
  const ReadDataset& dataset = datasets_.at(key.field);
  const Box box = dataset.grid.full_box(key.chunk_index);
  for (const std::uint32_t number : requests) {
    const ReadRequest& request = requests_[number];
    const SlabPart own = part_within(request.slab, box);
    if (requests.size() == 1) {
      // Exactly these elements, dense.
      const Box piece{own.first, own.slab.count};
      copy_box(piece, piece, values, whole_box(request.slab.count), request.values,
               dataset.element_bytes);
    } else {
      gather_part(own, {part.start, part.count}, values, request.slab, request.values,
                  dataset.element_bytes);
    }
  }
}

}  // namespace tailrace
