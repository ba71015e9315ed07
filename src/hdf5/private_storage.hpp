// PrivateStorage: a file that one rank has for itself, in memory, perhaps over one that exists.
// PreservingStorage: remembers what rank 0's commits overwrite in that one.
//
// Where a program makes the metadata itself, every rank makes all of it (docs/hdf5.md): rank 0's
// goes to the file, the others' into a PrivateStorage and nowhere else. Over a file that was opened
// it reads what that file held when it was opened, whatever rank 0 has done to it since: its length
// then is all of it that is looked at, and what a commit writes within that length rank 0 remembers
// as it was, for the others, who wait until they have it.

#pragma once

#include <memory>
#include <string>

#include "core/storage_over.hpp"
#include "hdf5/commit_order.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class PrivateStorage : public Storage {
 public:
  /// From now on the file below has other bytes there; it had these when it was opened.
  virtual void preserve(std::uint64_t address, std::span<const std::byte> bytes) = 0;
};

/// An empty file. `path` is for messages.
std::unique_ptr<PrivateStorage> make_private_storage(const std::string& path);
/// Over the file at `path`. @error not_found, io_error
Result<std::unique_ptr<PrivateStorage>> open_private_storage(const std::string& path);

/// Storage as it is, but for what is written while it remembers. One thread at a time then.
class PreservingStorage final : public StorageOver {
 public:
  using StorageOver::StorageOver;

  /// Remember what is overwritten before `end`.
  void remember(std::uint64_t end) { end_ = end; }
  /// Stop, and tell what was overwritten since remember(): as it was when that was called first.
  DirtyBytes take();

  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override;
  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override;

 private:
  std::uint64_t end_ = 0;
  DirtyBytes first_;  ///< As it was, of all that was ever overwritten.
  DirtyBytes taken_;  ///< Of that, what has been overwritten since remember().
};

}  // namespace tailrace
