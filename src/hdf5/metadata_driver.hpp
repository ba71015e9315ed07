// MetadataDriver: an HDF5 file driver that plans raw addresses and holds metadata back until
// commit.
//
// HDF5 believes that it writes a file. In truth the driver's `alloc` answers with addresses at
// which other ranks' chunk bytes already lie, its `write` drops the raw bytes of such chunks, and
// metadata, and the values of small datasets, stay in memory until a commit writes them to Storage
// in an order that keeps the file readable whenever the job dies. A commit is taken out (prepare),
// written by whoever has time (commit_order.hpp) and looked at again (finish); publish() is the
// three at once. Invariants and states: metadata_driver.cpp; order: commit_order.hpp. Used by
// Hdf5File only. One thread at a time, under an Hdf5Scope.

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
    bool existing = false;  ///< The file is opened, not created.
    bool sync = true;
    bool journal = false;
    bool whole_commits = false;  ///< See Hdf5File::Settings.
    std::string journal_path;
    /// Space for metadata is taken in multiples of this; 1: exactly what HDF5 asks for.
    std::uint64_t extent_bytes = 1;
    bool on_nodes = false;  ///< Other nodes write the file, too.
    /// Raw bytes that may wait for a commit, of small writes.
    std::uint64_t held_raw_bytes_max = std::uint64_t{16} << 20;
  };

  MetadataDriver(Storage& storage, Allocate allocate, Settings settings);
  MetadataDriver(const MetadataDriver&) = delete;
  MetadataDriver& operator=(const MetadataDriver&) = delete;

  /// A file access list that leads to this driver. The driver must outlive every id made with it.
  /// @param program  a program's own list, whose other properties are kept; -1: none.
  Result<Hdf5Id> access_list(std::int64_t program = -1);

  /// Whether this is the name that HDF5 was given for the file.
  bool is_named(const char* name) const {
    return storage_ != nullptr && name != nullptr && name_ == name;
  }

  /// Call once H5Fcreate has succeeded: from now on the file has an end.
  void finish_create();
  /// Call once H5Fopen has succeeded. @returns the first address that nobody uses.
  Result<std::uint64_t> finish_open();

  /// The file was created, and no commit prepared since.
  bool only_created() const;
  /// A driver that creates such a file once more, in the space that this one has taken for it.
  std::shared_ptr<MetadataDriver> anew() const;

  /// See Hdf5File::reserve_front().
  void reserve_front(FrontPlan plan);
  /// The plan by which all that was made since reserve_front() would have had room, no more.
  FrontPlan front_as_used() const;
  /// Metadata since then for which there was no room: they lie elsewhere.
  std::uint64_t front_missed_bytes() const { return front_missed_; }

  /// Where the journal of later commits goes.
  void set_journal_path(std::string path) { settings_.journal_path = std::move(path); }

  /// Write raw bytes that HDF5 has a place for, and are no chunk's.
  void write_raw(std::uint64_t address, std::span<const std::byte> bytes);

  /// What became of a planned allocation.
  struct PlanOutcome {
    bool allocated = false;     ///< HDF5 asked for space and got the planned address.
    bool written = false;       ///< HDF5 wrote: dropped, or remembered as a copy to another place.
    std::uint64_t address = 0;  ///< Where to.
  };
  /// The next raw allocation of exactly `n_bytes` gets `address`; the next raw write is dropped.
  /// @param drops_fills  of all raw writes into that place, which are fill values.
  void arm(std::uint64_t address, std::uint64_t n_bytes, bool drops_fills = false);
  PlanOutcome disarm();
  /// Space at the end that will hold nothing, but for which HDF5 may be told.
  std::uint64_t take_unused(std::uint64_t n_bytes);
  /// After disarm(), where HDF5 wrote to another place than planned: that write will be undone by
  /// another one, so nothing is to be copied there.
  void forget_copy();
  /// After disarm(): HDF5 took `address` out of space that it knew as free, without asking. The
  /// next commit copies the planned bytes there.
  void move_planned(std::uint64_t address);
  /// Let raw reads succeed and fill nothing: for asking HDF5 about a chunk by reading it.
  void skip_raw_reads(bool skip) { skips_raw_reads_ = skip; }

  /// To be called before HDF5 states in the superblock where the file ends (invariant 10).
  void own_the_end();
  /// Take everything that is held back out as one commit, which anybody may write. What HDF5 does
  /// from now on gathers for the next one. One commit at a time: finish() it first.
  /// @error failure(); whatever Storage answers to reads.
  Result<std::shared_ptr<PendingCommit>> prepare();
  /// Learn how the pending commit went, and write it now if nobody has. After a failure nothing is
  /// written any more and the same Status comes back from every later call.
  Status finish();
  /// prepare() and finish(): write everything that is held back, in commit order.
  Status publish();
  /// Whether prepare() waits for its finish().
  bool pending() const { return pending_ != nullptr; }

  /// Write nothing from now on; for closing without a commit.
  void abandon();
  /// Forget Storage altogether: for a driver that HDF5 refuses to let go of.
  void detach() {
    abandon();
    storage_ = nullptr;
  }

  /// Whether HDF5 holds the file. It goes on doing so after H5Fclose if a file is mounted in it, or
  /// it in one, of which somebody has an id.
  bool is_in_use() const { return n_uses_ > 0; }

  /// The first failure of Storage, or ok.
  const Status& failure() const { return failure_; }
  /// Metadata bytes handed to Storage so far.
  std::uint64_t metadata_bytes() const { return metadata_bytes_; }
  /// One past everything HDF5 has been told about, and the pad behind it.
  std::uint64_t end_of_allocated() const { return eoa_; }

  // What HDF5's callbacks do; called by the driver class in metadata_driver.cpp only.
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
  std::string name_;  ///< That the file began with, and that HDF5 was given.
  Allocate allocate_;
  Settings settings_;
  Phase phase_ = Phase::opening;
  int n_uses_ = 0;        ///< Files of HDF5's that lead here.
  bool creating_ = true;  ///< A new file that has not been committed yet.
  Status failure_;
  Plan plan_;
  bool skips_raw_reads_ = false;
  DirtyBytes dirty_;
  SpanSet fresh_;  ///< Allocated since the last prepare(): neither on disk nor pending.
  /// Chunks that HDF5 wants elsewhere than where they were written.
  std::vector<PendingCommit::Copy> copies_;
  std::shared_ptr<PendingCommit> pending_;  ///< From prepare() to finish().
  std::vector<Remnant> remnants_;
  FrontPlan front_;
  std::uint64_t front_address_ = 0;
  std::uint64_t front_used_ = 0;
  std::uint64_t front_missed_ = 0;
  // Since reserve_front():
  std::map<std::uint64_t, std::uint64_t> raw_blocks_;  ///< Length by address; not of known heaps.
  std::map<std::uint64_t, std::uint64_t> raw_bytes_of_length_;  ///< Of all raw blocks together.
  std::set<std::uint64_t> heap_bytes_;                          ///< Lengths of heaps.
  std::uint64_t opening_end_ = 0;  ///< Where allocations before the tail exists come from.
  std::uint64_t eoa_ = 0;
  std::uint64_t own_end_ = 0;  ///< Up to here the last bytes are a pad that is taken for it.
  std::uint64_t metadata_bytes_ = 0;
  std::uint64_t held_raw_bytes_ = 0;  ///< In fresh space, since the last prepare().
};

}  // namespace tailrace
