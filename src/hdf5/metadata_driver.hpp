// MetadataDriver: an HDF5 file driver that chooses raw addresses and buffers metadata until a
// commit.
//
// HDF5 believes that it writes a file. In fact the driver's `alloc` returns addresses where other
// ranks' chunk bytes already lie, and its `write` drops the raw bytes of those chunks. Metadata and
// the values of small datasets stay in memory. A commit writes them to Storage in an order that
// keeps the file readable whenever the job dies. A commit is detached (prepare), written by any
// thread (commit_order.hpp) and completed (finish); publish() does all three. Invariants and
// states: metadata_driver.cpp; order: commit_order.hpp. Used by Hdf5File only. One thread at a
// time, under an Hdf5Scope.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/storage.hpp"
#include "hdf5/commit_order.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class MetadataDriver {
 public:
  using Allocate = std::function<std::uint64_t(std::uint64_t n_bytes)>;

  struct Settings {
    bool existing = false;  ///< Open an existing file instead of creating one.
    bool sync = true;
    bool journal = false;
    bool whole_commits = false;  ///< See Hdf5File::Settings.
    std::string journal_path;
    /// Allocation unit for metadata space; 1 (default): exactly the length that HDF5 requests.
    std::uint64_t extent_bytes = 1;
    bool on_nodes = false;  ///< Processes on other nodes also write the file.
    /// Limit for raw bytes of small writes that may wait for a commit.
    std::uint64_t held_raw_bytes_max = std::uint64_t{16} << 20;
  };

  MetadataDriver(Storage& storage, Allocate allocate, Settings settings);
  MetadataDriver(const MetadataDriver&) = delete;
  MetadataDriver& operator=(const MetadataDriver&) = delete;

  /// Make a file access list that selects this driver, which must outlive every id made with it.
  /// @param program  a program's own list, whose other properties are copied; -1: none.
  Result<Hdf5Id> access_list(std::int64_t program = -1);

  /// True if HDF5 was given this name for the file.
  bool is_named(const char* name) const {
    return storage_ != nullptr && name != nullptr && name_ == name;
  }

  /// Call after H5Fcreate succeeds: from then on the file has an end.
  void finish_create();
  /// Call after H5Fopen succeeds. @returns the first free address.
  Result<std::uint64_t> finish_open();

  /// True if the file was created and no commit has been prepared since.
  bool only_created() const;
  /// Make a driver that creates this file again, in the space already allocated for it.
  std::shared_ptr<MetadataDriver> anew() const;

  /// See Hdf5File::reserve_front().
  void reserve_front(FrontPlan plan);
  /// A plan exactly large enough for the metadata made since reserve_front().
  FrontPlan front_as_used() const;
  /// Bytes of metadata that did not fit since reserve_front(); they lie elsewhere.
  std::uint64_t front_missed_bytes() const { return front_missed_; }

  /// Set the journal path for later commits.
  void make_commits_whole() { settings_.whole_commits = true; }
  void set_journal_path(std::string path) { settings_.journal_path = std::move(path); }

  /// Write raw bytes to space that HDF5 has allocated and that belongs to no chunk.
  void write_raw(std::uint64_t address, std::span<const std::byte> bytes);

  /// Outcome of a planned allocation.
  struct PlanOutcome {
    bool allocated = false;  ///< HDF5 requested space and received the planned address.
    /// HDF5 wrote: the bytes were dropped, or recorded as a copy to another address.
    bool written = false;
    std::uint64_t address = 0;  ///< Destination of that write.
  };
  /// Give `address` to the next raw allocation of exactly `n_bytes`, and drop the next raw write.
  /// @param drops_fills  drop all raw writes into that space: they are fill values.
  void arm(std::uint64_t address, std::uint64_t n_bytes, bool drops_fills = false);
  PlanOutcome disarm();
  /// Allocate space at the end that stays unused but that HDF5 may be given.
  std::uint64_t take_unused(std::uint64_t n_bytes);
  /// Cancel the copy recorded for a write to an unplanned address; call after disarm(). A later
  /// write will replace that write.
  void forget_copy();
  /// Record that HDF5 took `address` from its own free space, without asking the driver; call after
  /// disarm(). The next commit copies the planned bytes there.
  void move_planned(std::uint64_t address);
  /// Make raw reads succeed without filling anything, to query HDF5 about a chunk by reading it.
  void skip_raw_reads(bool skip) { skips_raw_reads_ = skip; }

  /// Claim the end of the file; call before HDF5 writes it into the superblock (invariant 10).
  void own_the_end();
  /// Detach everything that is buffered as one commit, which any thread may write. Later changes
  /// belong to the next commit. One commit at a time: call finish() first.
  /// @error failure(); any read error of Storage.
  Result<std::shared_ptr<PendingCommit>> prepare();
  /// Obtain the result of the pending commit, and write it now if no thread has. After a failure
  /// nothing more is written, and every later call returns the same Status.
  Status finish();
  /// Call prepare() and finish(): write everything that is buffered, in commit order.
  Status publish();
  /// True between prepare() and finish().
  bool pending() const { return pending_ != nullptr; }

  /// Write nothing from now on; for closing without a commit.
  void abandon();
  /// Drop the reference to Storage, for a driver that HDF5 does not release.
  void detach() {
    abandon();
    storage_ = nullptr;
  }

  /// True while HDF5 uses the file. That can outlast H5Fclose: if a file is mounted in this one, or
  /// this file in another, and the program has an id of the other file.
  bool is_in_use() const { return n_uses_ > 0; }

  /// The first failure of Storage, or ok.
  const Status& failure() const { return failure_; }
  /// Metadata bytes passed to Storage so far.
  std::uint64_t metadata_bytes() const { return metadata_bytes_; }
  /// End of all bytes known to HDF5, including the pad after them.
  std::uint64_t end_of_allocated() const { return eoa_; }

  // Bodies of HDF5's callbacks; called only by the driver class in metadata_driver.cpp.
  haddr_t on_alloc(H5FD_mem_t type, hsize_t n_bytes);
  herr_t on_write(H5FD_mem_t type, haddr_t address, std::size_t n_bytes, const void* bytes);
  herr_t on_read(H5FD_mem_t type, haddr_t address, std::size_t n_bytes, void* bytes);
  herr_t on_set_eoa(haddr_t address);
  haddr_t on_get_eof();
  void on_open() { ++n_uses_; }
  void on_close() { --n_uses_; }

 private:
  enum class Phase : std::uint8_t { opening, running, failed, abandoned };
  struct Plan {
    std::uint64_t address = 0;
    std::uint64_t n_bytes = 0;
    bool armed = false;
    bool drops_fills = false;
    PlanOutcome outcome;
  };
  struct Remnant {
    std::uint64_t address = 0;
    std::uint64_t n_bytes = 0;
  };

  Status plan_moves_in_place(CommitPlan& plan);
  std::uint64_t take_extent(std::uint64_t n_bytes);
  std::uint64_t take_space(std::uint64_t n_bytes);
  std::uint64_t take_metadata_space(std::uint64_t n_bytes);
  std::uint64_t take_raw_space(std::uint64_t n_bytes);
  void note_heap(std::uint64_t address);
  void count_end(std::uint64_t end);
  void keep_fresh(std::uint64_t address, std::uint64_t n_bytes);
  bool take_planned_write(std::uint64_t address, std::uint64_t n_bytes);
  bool holds_raw(std::uint64_t address, std::uint64_t n_bytes);
  Result<std::uint64_t> stored_bytes() const;
  void take_back(const PendingCommit& commit);
  Status fail(Status status);

  Storage* storage_;
  std::string name_;  ///< Original name of the file, which HDF5 was given.
  Allocate allocate_;
  Settings settings_;
  Phase phase_ = Phase::opening;
  int n_uses_ = 0;        ///< Open HDF5 files that use this driver.
  bool creating_ = true;  ///< The file is new and has not been committed yet.
  Status failure_;
  Plan plan_;
  bool skips_raw_reads_ = false;
  DirtyBytes dirty_;
  SpanSet fresh_;  ///< Allocated since the last prepare(): neither on disk nor pending.
  /// Chunks for which HDF5 chose another address than the one where they were written.
  std::vector<PendingCommit::Copy> copies_;
  std::shared_ptr<PendingCommit> pending_;  ///< Set from prepare() to finish().
  std::vector<Remnant> remnants_;
  FrontPlan front_;
  std::uint64_t front_address_ = 0;
  std::uint64_t front_used_ = 0;
  std::uint64_t front_missed_ = 0;
  // State since reserve_front():
  std::map<std::uint64_t, std::uint64_t> raw_blocks_;  ///< Length by address, without known heaps.
  /// Total bytes of all raw blocks of each length.
  std::map<std::uint64_t, std::uint64_t> raw_bytes_of_length_;
  std::set<std::uint64_t> heap_bytes_;  ///< Lengths of global heaps.
  std::uint64_t opening_end_ = 0;       ///< Next address for allocations before the tail exists.
  std::uint64_t eoa_ = 0;
  /// Until this address, the last bytes are a pad allocated for that purpose.
  std::uint64_t own_end_ = 0;
  std::uint64_t metadata_bytes_ = 0;
  std::uint64_t held_raw_bytes_ = 0;  ///< Bytes in fresh space since the last prepare().
};

}  // namespace tailrace
