// Storage: positioned reads and writes on one file. The only way bytes reach the disk.
//
// Executor, metadata driver and tests all write through this interface, so that a fault or a limit
// put into it strikes every kind of write alike. Implementations: PosixStorage (exec), and the
// fault-injecting one of the tests.

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
  /// Not collective. Thread-safe. Extends the file where needed.
  /// @error no_space, io_error  nothing is promised about the bytes of this range then.
  virtual Status write_at(std::uint64_t address, std::span<const std::byte> bytes) = 0;

  /// Write several pieces one behind the other, starting at `address`: one large write.
  virtual Status write_pieces_at(std::uint64_t address,
                                 std::span<const std::span<const std::byte>> pieces);

  /// Fill all of `bytes` from `address`. @error corrupt  the file ends before that.
  virtual Status read_at(std::uint64_t address, std::span<std::byte> bytes) = 0;

  /// Read from now on what others have synced until now. Clients of shared file systems may keep
  /// for as long as a file is open what they have read of it, and ahead. Any thread.
  virtual void renew_reads() {}

  /// Bytes in the file now.
  virtual Result<std::uint64_t> file_bytes() = 0;

  /// Make the file at least `n_bytes` long; never shrinks it, nor loses what others write behind
  /// its end meanwhile.
  virtual Status extend(std::uint64_t n_bytes) = 0;

  /// Give the open file this length: what is beyond goes, what is new is zeros, and takes no space
  /// where the file system has holes. Only where no other rank writes.
  virtual Status resize(std::uint64_t n_bytes);

  /// What is written from now on will be synced: the system may begin with it while more is made.
  /// Before the first write. Costs nothing where there is no such hint.
  virtual void expect_sync() {}

  /// Make all completed writes durable (fdatasync).
  virtual Status sync() = 0;

  /// For messages: the name that the file has now.
  virtual const std::string& path() const = 0;
  /// It has got another one, for good: once. Any thread, while others write.
  virtual void set_path(const std::string& path) { static_cast<void>(path); }
};

}  // namespace tailrace
