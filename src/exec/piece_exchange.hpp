// PieceExchange: values travel from the ranks that hold them to the rank that owns their chunk.
//
// The owner asks when it has memory for the chunk (request), the holder answers with all its parts
// of it (pieces). So nobody is flooded, and each rank needs memory only for the chunks that it
// works on. A holder knows how many requests will come, one per owed chunk; an owner that has
// failed asks all the same, with `cancel` set, so that no holder waits for ever. Main thread only.
// Cost: two messages per shared chunk and holder.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "core/buffer.hpp"
#include "core/comm.hpp"
#include "exec/field_plan.hpp"

namespace tailrace {

class PieceExchange {
 public:
  /// `arrived(key)` is called when all pieces of a requested chunk are in its buffer.
  PieceExchange(Comm& comm, std::span<const FieldPlan> plans,
                const std::map<ChunkKey, std::vector<LocalPart>>& owed,
                std::function<void(ChunkKey)> arrived);

  /// Ask all holders for their pieces of `job`; they will be copied into `values`, which must stay.
  void request(const ChunkJob& job, Buffer& values);
  /// Tell all holders of `job` that nothing is wanted of them.
  void cancel(const ChunkJob& job);
  /// Answer requests and take pieces as long as there are any. @returns whether there were.
  bool serve();
  /// Nothing is expected of or owed to anybody any more.
  bool settled() const { return n_owed_ == 0 && awaited_.empty(); }
  /// Values are on their way to this rank or from it: they move only while it polls.
  bool in_transit() const { return !awaited_.empty() || comm_.posts_pending(); }
  std::uint64_t piece_bytes() const { return piece_bytes_; }

 private:
  struct Awaited {
    const ChunkJob* job = nullptr;
    Buffer* values = nullptr;
    std::size_t n_missing = 0;
  };
  void post_request(const ChunkJob& job, bool cancelled);
  void answer(int peer, ChunkKey key);
  void take_pieces(const Message& message, ChunkKey key, std::span<const std::byte> values);

  Comm& comm_;
  std::span<const FieldPlan> plans_;
  const std::map<ChunkKey, std::vector<LocalPart>>& owed_;
  std::function<void(ChunkKey)> arrived_;
  std::map<ChunkKey, Awaited> awaited_;
  std::size_t n_owed_ = 0;
  std::uint64_t piece_bytes_ = 0;
};

}  // namespace tailrace
