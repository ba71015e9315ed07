// Agreement: how one rank's failure becomes everybody's.

#include "core/comm.hpp"

#include <cstring>

namespace tailrace {

Status Comm::agree(const Status& mine) {
  const std::uint64_t nobody = static_cast<std::uint64_t>(n_ranks());
  std::uint64_t first_failed = mine.ok() ? nobody : static_cast<std::uint64_t>(rank());
  allreduce(std::span<std::uint64_t>(&first_failed, 1), Reduction::min);
  if (first_failed == nobody) return Status();

  const int speaker = static_cast<int>(first_failed);
  Bytes packed;
  if (rank() == speaker) {
    const auto code = static_cast<std::int32_t>(mine.code());
    packed.resize(sizeof code + mine.message().size());
    std::memcpy(packed.data(), &code, sizeof code);
    std::memcpy(packed.data() + sizeof code, mine.message().data(), mine.message().size());
  }
  broadcast(packed, speaker);
  std::int32_t code = 0;
  std::memcpy(&code, packed.data(), sizeof code);
  std::string message(reinterpret_cast<const char*>(packed.data()) + sizeof code,
                      packed.size() - sizeof code);
  if (n_ranks() > 1) message = "rank " + std::to_string(speaker) + ": " + message;
  return Status(static_cast<Code>(code), std::move(message));
}

}  // namespace tailrace
