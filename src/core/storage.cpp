// The plain form of a gathered write, for storages that have no better one.

#include "core/storage.hpp"

namespace tailrace {

Status Storage::write_pieces_at(std::uint64_t address,
                                std::span<const std::span<const std::byte>> pieces) {
  for (const std::span<const std::byte> piece : pieces) {
    TAILRACE_TRY(write_at(address, piece));
    address += piece.size();
  }
  return Status();
}

}  // namespace tailrace
