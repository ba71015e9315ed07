// PrivateStorage: a file in the memory of one rank, optionally over an existing file.
// PreservingStorage: records the bytes of that file that rank 0's commits overwrite.
//
// If a program makes the metadata itself, every rank makes all of it (docs/hdf5.md). Rank 0's
// metadata go to the file; those of other ranks go only to a PrivateStorage. Over an existing file,
// a PrivateStorage returns the contents at the time of opening, whatever rank 0 has written since.
// It reads nothing past the length at that time. Within that length, rank 0 records the old bytes
// that a commit overwrites. The other ranks wait until they have received them.

#pragma once

#include <memory>
#include <string>

#include "core/storage_over.hpp"
#include "hdf5/commit_order.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class PrivateStorage : public Storage {
 public:
  /// Record bytes that the underlying file held at opening and that have since been overwritten.
  virtual void preserve(std::uint64_t address, std::span<const std::byte> bytes) = 0;
};

/// Make an empty private file. `path` is for messages.
std::unique_ptr<PrivateStorage> make_private_storage(const std::string& path);
/// Make a private file over the file at `path`. @error not_found, io_error
Result<std::unique_ptr<PrivateStorage>> open_private_storage(const std::string& path);

/// Passes all calls to its inner storage, and records overwritten bytes while enabled. One thread
/// at a time while it does.
class PreservingStorage final : public StorageOver {
 public:
  using StorageOver::StorageOver;

  /// Start to record bytes that are overwritten before address `end`.
  void remember(std::uint64_t end) { end_ = end; }
  /// Stop recording. @returns the areas overwritten since remember(), with their original contents
  DirtyBytes take();

  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override;
  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override;

 private:
  std::uint64_t end_ = 0;
  DirtyBytes first_;  ///< Original contents of all bytes overwritten in any recording.
  DirtyBytes taken_;  ///< The part of them that was overwritten since remember().
};

}  // namespace tailrace
