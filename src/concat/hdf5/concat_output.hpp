// ConcatOutput: the datasets of a concatenation's output, created and filled by rank 0.
//
// Everything that is no dataset row (groups, attributes, named types, links, dimension scales,
// scalars) comes from the first input. Chunk bytes lie in the file already; here their addresses
// enter the index. Nothing is visible before Hdf5File::commit(). Rank 0 only; takes the HDF5 lock.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/copied_notes.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/hdf5_file.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// A dataset as it is to be in the output.
struct ConcatTarget {
  StoredDataset like;  ///< Path, type, inner extents, fill value; storage: the output's.
  std::uint64_t n_rows = 0;
  std::uint64_t contiguous_address = 0;  ///< Kind contiguous with rows: where the bytes lie.
  bool replaces = false;  ///< Append: the output's dataset of that path is deleted, its attributes
                          ///< kept (it was contiguous and must grow).
};

/// Rows of a dataset that only HDF5 can move (not by_value).
struct RowSource {
  std::string file;  ///< An input.
  std::uint64_t n_rows = 0;
};

/// Path of an object, and the name of an attribute of it.
using ObjectAttribute = std::pair<std::string, std::string>;

class ConcatOutput {
 public:
  /// `first_input`: the file that the output takes over everything but rows from. Copies groups,
  /// named types and soft links at once, so that datasets find their places. `file` must outlive
  /// the result, and be closed only after its end.
  /// @error not_found, corrupt
  static Result<std::unique_ptr<ConcatOutput>> create(Hdf5File& file,
                                                      const std::string& first_input);
  /// For an output that a killed run has left: what is there stays, what is missing is made.
  static Result<std::unique_ptr<ConcatOutput>> resume(Hdf5File& file,
                                                      const std::string& first_input);
  /// For a whole output that gets more rows: nothing is taken over from any input.
  static Result<std::unique_ptr<ConcatOutput>> append(Hdf5File& file);
  virtual ~ConcatOutput() = default;

  /// Create a dataset with its attributes, or extend the one that is there, and enter chunks into
  /// its index (those of an entry that exists replace it). Call it as often as there are chunks; in
  /// the order of the first input's datasets, or finish() has links to move.
  /// @error already_exists, unsupported, invalid_argument
  virtual Status place(const ConcatTarget& target,
                       std::span<const Hdf5File::ChunkRecord> records) = 0;

  /// Create or extend a dataset that is not by_value, and have HDF5 copy its rows from the inputs,
  /// in this order, behind `first_row` rows that are there; at most `memory_bytes` at a time.
  /// Serial by nature: rank 0 opens each input that has rows. @error io_error, corrupt
  virtual Status copy_rows(const ConcatTarget& target, std::span<const RowSource> sources,
                           std::uint64_t first_row, std::uint64_t memory_bytes) = 0;

  /// Take over a scalar or null dataset of the first input; one that is there stays.
  virtual Status copy_whole(const StoredDataset& dataset) = 0;

  /// When all datasets exist: attributes of groups, dimension scales, hard links, order of links.
  /// @param notes  what objects say of what their rows have lost: of a new output, of which the
  /// first input's holds on; of one that got more rows, what changes of it.
  /// @param left_out  attributes of the first input that do not hold of the output.
  /// @returns lines about what could not be carried over.
  virtual Result<std::vector<std::string>> finish(
      const CopiedObjects& notes, std::span<const ObjectAttribute> left_out = {}) = 0;
};

// --- How far a concatenation has come, kept in the unfinished output itself.
//
// A root attribute that is committed together with the datasets it speaks of, so that it is true
// whenever the job dies; the finished file does not have it.

struct ConcatProgress {
  std::string request;                  ///< What was asked: inputs, their lengths, options.
  std::uint64_t n_datasets = 0;         ///< Of the schema, in its order, that are complete.
  std::vector<std::uint64_t> versions;  ///< Of the inputs, see file_version(); at most 64 KiB.
};

/// With the next commit. @error internal
Status write_progress(Hdf5File& file, const ConcatProgress& progress);
/// @returns nothing where the file says nothing. @error corrupt
Result<std::optional<ConcatProgress>> read_progress(const Hdf5File& file);
/// With the next commit; nothing to remove is fine. @error internal
Status remove_progress(const Hdf5File& file);

}  // namespace tailrace
