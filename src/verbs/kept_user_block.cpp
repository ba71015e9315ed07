#include "verbs/kept_user_block.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "describe/input_bytes.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/user_block.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace::verbs {
namespace {

constexpr std::uint64_t piece_bytes = 1U << 20;

Status copy_user_block(const std::string& input, std::uint64_t n_bytes, Storage& output) {
  TAILRACE_TAKE(const std::shared_ptr<InputBytes> source, InputBytes::open(input));
  Buffer piece(std::min(n_bytes, piece_bytes));
  if (!piece.allocated())
    return Status(Code::out_of_memory, "not enough memory for the user block");
  for (std::uint64_t at = 0; at < n_bytes; at += piece_bytes) {
    const auto bytes = piece.bytes().first(std::min(n_bytes - at, piece_bytes));
    TAILRACE_TRY(source->read_at(at, bytes));
    TAILRACE_TRY(output.write_at(at, bytes));
  }
  return Status();
}

}  // namespace

void keep_user_block(const std::string& input, std::uint64_t n_bytes, FileOptions& options) {
  if (n_bytes == 0) return;
  auto open = options.open_storage;
  if (!open) {
    open = [direct_io = options.direct_io](const std::string& path, bool create) {
      return open_posix_storage(path, create, direct_io);
    };
  }
  options.open_storage = [input, n_bytes, open](const std::string& path,
                                                bool create) -> Result<std::unique_ptr<Storage>> {
    TAILRACE_TAKE(std::unique_ptr<Storage> storage, open(path, create));
    if (create) TAILRACE_TRY(copy_user_block(input, n_bytes, *storage));
    return behind_user_block(std::move(storage), n_bytes);
  };
}

}  // namespace tailrace::verbs
