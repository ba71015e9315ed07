// Storage: positioned reads and writes on one file. All bytes reach the disk through it.
//
// Executor, metadata driver and tests all write through this interface. A fault or a limit injected
// here therefore affects every kind of write. Implementations: PosixStorage (exec), and the
// fault-injecting storage of the tests.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "trz/base/status.hpp"

namespace tailrace {

class Storage {
 public:
  virtual ~Storage() = default;

  /// Write all bytes of `bytes` at `address` (absolute, from the start of the file).
  /// Not collective. Thread-safe. Extends the file if needed.
  /// @error no_space, io_error  the bytes of this range are then undefined.
  virtual Status write_at(std::uint64_t address, std::span<const std::byte> bytes) = 0;

  /// Write several pieces consecutively, starting at `address`, in one large write.
  virtual Status write_pieces_at(std::uint64_t address,
                                 std::span<const std::span<const std::byte>> pieces);

  /// Fill all of `bytes` from `address`. @error corrupt  the file is shorter than that.
  virtual Status read_at(std::uint64_t address, std::span<std::byte> bytes) = 0;

  /// Make later reads see what other clients have synced so far. Clients of shared file systems may
  /// cache what they have read, and read ahead, for as long as a file is open. Any thread.
  virtual void renew_reads() {}

  /// Return the current length of the file.
  virtual Result<std::uint64_t> file_bytes() = 0;

  /// Make the file at least `n_bytes` long. Never shrinks it, and never loses what others
  /// concurrently write behind its end.
  virtual Status extend(std::uint64_t n_bytes) = 0;

  /// Set the length of the open file. Bytes beyond it are dropped; added bytes are zeros and use no
  /// space on file systems with holes. Call it only while no other rank writes.
  virtual Status resize(std::uint64_t n_bytes);

  /// Hint that later writes will be synced, so that the system may start writing them back early.
  /// Call it before the first write. Costs nothing on systems without such a hint.
  virtual void expect_sync() {}

  /// Make all completed writes durable (fdatasync).
  virtual Status sync() = 0;

  /// Return the file's current name, for messages.
  virtual const std::string& path() const = 0;
  /// Record the file's new and final name; called once. Any thread, while others write.
  virtual void set_path(const std::string& path) { static_cast<void>(path); }
};

}  // namespace tailrace
