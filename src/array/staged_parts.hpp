// StagedParts: staged values that go to rank 0: members of compounds, and all that rank 0 writes.
// ExtentCut: values at the new edge of a dataset whose extents HDF5 cuts.
//
// Ranks may put different members of the same elements, and each put must persist. So each member
// has a number and a log of its own, like a dataset. Rank 0 writes such logs one after the other.
// If all ranks write the dataset, rank 0 folds them into complete elements before a flush.
//
// Invariant 1: puts of members and of complete elements apply in the order of their epochs, and a
// put of one member leaves the others. Invariant 2: if folding fails, everything stays staged as it
// was. Invariant 3: nothing is written to a deleted dataset. Invariant 4: between a cut and the end
// of the next flush, no chunk that lost elements is taken from the file.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/array_variable.hpp"
#include "array/dataset_lifetimes.hpp"
#include "array/dataset_plan.hpp"
#include "chunk/chunk_file.hpp"
#include "core/byte_stream.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"
#include "hdf5/commit_order.hpp"
#include "output/output.hpp"

namespace tailrace {

/// Pack the log of a dataset or member, with the epochs that order its entries.
void pack_log(std::size_t staged_as, const StagingLog& log, ByteWriter& writer);
/// Stage the values of a log that lie within `shape` in another log, with their epochs.
/// @error like StagingLog::put()
Status stage_within(const StagingLog& log, const Shape& shape, StagingLog& kept);

/// Reads elements of a dataset.
using ReadDatasetSlab =
    std::function<Status(std::size_t dataset, const Slab& slab, std::span<std::byte> values)>;

class StagedParts {
 public:
  /// @param variables  by number; all arguments outlive the result.
  StagedParts(Comm& comm, StagingMemory& memory, std::vector<ArrayVariable>& variables,
              Output& output, DatasetLifetimes& lifetimes)
      : comm_(comm),
        memory_(memory),
        variables_(variables),
        output_(output),
        lifetimes_(lifetimes) {}

  /// Add a member of a compound, which is staged under `number`.
  void add_member(std::size_t dataset, std::size_t number, const CompoundMember& member);
  std::optional<std::size_t> find_member(std::size_t dataset, const std::string& name) const;
  /// Numbers of a dataset's members; empty if it is not a compound.
  std::span<const std::size_t> members_of(std::size_t dataset) const;
  /// Dataset that a member belongs to; any other dataset itself.
  std::size_t dataset_of(std::size_t number) const;
  /// Mark the datasets that will have staged values once their members are folded.
  void mark_folded(std::vector<bool>& staged) const;
  /// Combine staged members of compounds that all ranks write. Several ranks may have staged
  /// members, so all staged values of such a dataset go to rank 0, which combines them. Errors are
  /// agreed. Collective: a gather for each dataset with staged members.
  /// @param read_stored  reads what the file has.
  Status fold(std::vector<bool>& staged, const ReadDatasetSlab& read_stored);
  /// Copy this rank's staged elements of a slab over `values`. Not collective.
  Status lay_over(std::size_t dataset, const Slab& slab, std::span<std::byte> values) const;

  /// Note the address of a new dataset's contiguous values in this rank's file.
  void place(std::size_t dataset, const Shape& shape, std::uint64_t address);
  /// Adds values of a contiguous dataset to the next commit.
  using CommitValues =
      std::function<Status(std::size_t dataset, const Slab& slab, const std::byte* values)>;
  /// Write the logs that all ranks have packed. Rank 0 only.
  Status write_at_root(const std::vector<Bytes>& packed, const CommitValues& commit_values);
  /// Bytes written directly to the address of small datasets.
  std::uint64_t placed_bytes() const { return placed_bytes_; }

 private:
  struct Member {
    std::size_t dataset = 0;
    CompoundMember member;
  };
  struct Place {
    Shape shape;
    std::uint64_t address = 0;
  };
  struct Part {
    std::size_t dataset = 0;
    std::size_t staged_as = 0;  ///< The dataset, or one of its members.
    std::uint64_t epoch = 0;
    Slab slab;
    std::span<const std::byte> values;
  };
  std::vector<Part> unpack_logs(const std::vector<Bytes>& packed) const;
  bool must_fold(std::size_t dataset, const std::vector<bool>& staged) const;
  Status lay_members(std::size_t dataset, const std::vector<Bytes>& packed,
                     const ReadDatasetSlab& read_stored);
  bool write_in_place(const Part& part);

  Comm& comm_;
  StagingMemory& memory_;
  std::vector<ArrayVariable>& variables_;
  Output& output_;
  DatasetLifetimes& lifetimes_;
  std::map<std::size_t, Member> members_;                    ///< Keyed by the member's number.
  std::map<std::size_t, std::vector<std::size_t>> numbers_;  ///< Members, keyed by dataset.
  std::map<std::size_t, Place> places_;                      ///< Keyed by dataset.
  SpanSet placed_;  ///< Address ranges of all places, also of deleted datasets.
  std::uint64_t placed_bytes_ = 0;
};

/// HDF5 re-encodes the chunks at the new edge. If such a chunk was stored raw and its new length
/// happens to equal the old one, HDF5 may keep the old filter mask. So the contents of these chunks
/// are saved before the cut, and staged again for a flush that follows immediately.
class ExtentCut {
 public:
  struct Part {
    Slab slab;
    std::vector<std::byte> values;
  };
  /// Save this rank's share of the chunks that the cut to `shape` changes. Not collective, but all
  /// ranks must call it; after an error on any rank, all must call undo().
  /// @param grid  chunks of the dataset before the cut.
  Status save(const Comm& comm, std::size_t dataset, const ChunkGrid& grid, const Shape& shape,
              std::size_t element_bytes, const ReadDatasetSlab& read);
  /// Take the saved parts, to stage them again.
  std::vector<Part> take() { return std::exchange(parts_, {}); }
  void undo(std::size_t dataset);
  /// Erase from a dataset's chunks those that a cut has changed.
  void erase_changed(std::size_t dataset, const ChunkGrid& grid,
                     std::vector<StoredChunk>& chunks) const;
  /// Forget all cuts, because a flush has published.
  void end() { cut_to_.clear(); }

 private:
  std::vector<Part> parts_;
  std::map<std::size_t, Shape> cut_to_;  ///< Keyed by dataset.
};

}  // namespace tailrace
