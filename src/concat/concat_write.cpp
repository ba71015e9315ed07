// Rounds, addresses without gaps, and the chunks that dedup remembers.

#include "concat/concat_write.hpp"

#include <algorithm>

#include "hdf5/chunk_index_reader.hpp"

namespace tailrace {
namespace {

/// Limit of the chunks that dedup remembers, in bytes.
constexpr std::uint64_t kRememberedBytesMax = 32U << 20;

/// Replaces the place of contiguous data, which have no index entry.
constexpr std::uint64_t kNoPlace = UINT64_MAX;

IoLane::Settings lane_settings(const ConcatWriteLane::Settings& settings) {
  IoLane::Settings lane;
  lane.write_buffer_bytes = settings.write_buffer_bytes;
  return lane;
}

}  // namespace

ConcatWriteLane::ConcatWriteLane(Storage& storage, Tail& tail, const Settings& settings)
    : tail_(tail),
      settings_(settings),
      waiting_(2 * settings.write_buffer_bytes),
      lane_(storage, tail, nullptr, {}, waiting_, lane_settings(settings), threads_, clock_,
            nullptr, [this] {
              {
                const std::scoped_lock lock(mutex_);
              }  // Ensures that a thread which is about to
                 // wait does so before the notification.
              moved_.notify_all();
            }) {}

void ConcatWriteLane::push(Chunk chunk) {
  std::unique_lock lock(mutex_);
  const bool held = settings_.dense && !chunk.address;
  if (!held) {
    moved_.wait(lock, [&] {
      return waiting_.held_bytes() <= waiting_.cap_bytes() || !lane_.status().ok();
    });
  }
  if (!lane_.status().ok()) return;
  // Held chunks are released only at the end of the round, so no thread may wait for that here.
  const std::uint64_t n_bytes = chunk.bytes.n_bytes();
  peak_bytes_ = std::max(peak_bytes_, waiting_.held_bytes() + held_bytes_ + n_bytes);
  if (held) {
    held_bytes_ += n_bytes;
    held_.push_back(std::move(chunk));
  } else if (chunk.address || !has_twin(chunk)) {
    if (chunk.address) chunk.place = kNoPlace;
    waiting_.take(n_bytes);
    lock.unlock();  // The lane may write on this thread, and then calls back.
    write(std::move(chunk));
  }
}

/// Submit a chunk whose bytes are already counted in waiting_.
void ConcatWriteLane::write(Chunk chunk) {
  EncodedChunk encoded;
  encoded.address_from = chunk.address ? AddressFrom::place : AddressFrom::tail;
  encoded.budget_bytes = chunk.bytes.n_bytes();
  encoded.chunk.chunk_index = chunk.place;
  encoded.chunk.address = chunk.address.value_or(0);
  encoded.chunk.encoded_bytes = chunk.bytes.n_bytes();
  encoded.chunk.filter_mask = chunk.filter_mask;
  encoded.bytes = std::move(chunk.bytes);
  lane_.push(std::move(encoded));
}

bool ConcatWriteLane::has_twin(const Chunk& chunk) {
  const std::uint64_t n_bytes = chunk.bytes.n_bytes();
  if (!settings_.dedup || chunk.alone || n_bytes > kSharedChunkBytesMax) return false;
  std::string bytes(reinterpret_cast<const char*>(chunk.bytes.data()), n_bytes);
  const auto known = stored_.find(bytes);
  if (known != stored_.end()) {
    twins_.push_back({chunk.place, chunk.filter_mask, n_bytes, &known->second});
    return true;
  }
  if (stored_bytes_ + n_bytes > kRememberedBytesMax) return false;
  stored_bytes_ += n_bytes;
  unplaced_.push_back(&stored_.emplace(std::move(bytes), Stored{chunk.place, 0}).first->second);
  return false;
}

void ConcatWriteLane::wait_until_idle() {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return lane_.idle(); };
  // Between nodes the lane's claims need this thread to serve the tail.
  while (tail_.needs_service() && !moved_.wait_for(lock, kTailServiceInterval, idle)) {
    lock.unlock();
    tail_.service();
    lock.lock();
  }
  moved_.wait(lock, idle);
}

/// Layout dense: submit the held chunks, contiguously in the order of the line.
void ConcatWriteLane::place_held(Comm& comm) {
  std::ranges::sort(held_, {}, &Chunk::place);
  std::erase_if(held_, [&](const Chunk& chunk) { return has_twin(chunk); });
  std::uint64_t n_bytes = 0;
  for (const Chunk& chunk : held_) n_bytes += chunk.bytes.n_bytes();
  const std::unique_ptr<PendingSum> sum = comm.start_sum({n_bytes});
  sum->wait();
  // Rank 0 claims the space of the round for all ranks.
  std::vector<std::uint64_t> base = {0};
  if (comm.is_root()) base[0] = tail_.claim(std::max<std::uint64_t>(sum->total()[0], 1));
  comm.allreduce(std::span(base), Reduction::max);
  std::uint64_t address = base[0] + sum->before()[0];
  for (Chunk& chunk : held_) {
    chunk.address = address;
    address += chunk.bytes.n_bytes();
    waiting_.take(chunk.bytes.n_bytes());
    write(std::move(chunk));
  }
  held_.clear();
  held_bytes_ = 0;
}

Status ConcatWriteLane::finish_round(Comm& comm) {
  wait_until_idle();
  if (settings_.dense) {
    place_held(comm);
    wait_until_idle();
  }
  if (lane_.status().ok()) enter_written();
  return lane_.status();
}

/// Record the lane's written chunks and their twins, while the lane is idle.
void ConcatWriteLane::enter_written() {
  std::unordered_map<std::uint64_t, Stored*> firsts;
  for (Stored* stored : unplaced_) firsts.emplace(stored->place, stored);
  for (const WrittenChunk& chunk : lane_.written()) {
    if (chunk.chunk_index == kNoPlace) continue;
    written_.push_back({chunk.chunk_index, chunk.address, chunk.encoded_bytes, chunk.filter_mask});
    if (firsts.empty()) continue;
    const auto first = firsts.find(chunk.chunk_index);
    if (first != firsts.end()) first->second->address = chunk.address;
  }
  for (const Twin& twin : twins_) {
    written_.push_back({twin.place, twin.first->address, twin.encoded_bytes, twin.filter_mask});
  }
  n_shared_ += twins_.size();
  lane_.written().clear();
  unplaced_.clear();
  twins_.clear();
}

std::vector<WrittenPlace> ConcatWriteLane::take_written() { return std::exchange(written_, {}); }

}  // namespace tailrace
