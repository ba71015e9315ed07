#include "core/storage.hpp"

namespace tailrace {

Status Storage::resize(std::uint64_t /*n_bytes*/) {
  return Status(Code::unsupported, "\"" + path() + "\" cannot be resized");
}

Status Storage::write_pieces_at(std::uint64_t address,
                                std::span<const std::span<const std::byte>> pieces) {
  for (const std::span<const std::byte> piece : pieces) {
    TAILRACE_TRY(write_at(address, piece));
    address += piece.size();
  }
  return Status();
}

}  // namespace tailrace
