// ConcatOutput: the datasets of a concatenation's output, created and filled by rank 0.
//
// Everything except dataset rows (groups, attributes, named types, links, dimension scales,
// scalars) comes from the first input. The chunks' bytes are already in the file; this class enters
// their addresses into the index. Nothing is visible before Hdf5File::commit(). Rank 0 only; takes
// the HDF5 lock.

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

/// Properties of a dataset of the output.
struct ConcatTarget {
  StoredDataset like;  ///< Path, type, inner extents, fill value; storage: the output's.
  std::uint64_t n_rows = 0;
  std::uint64_t contiguous_address = 0;  ///< Address of the bytes of a contiguous dataset with
                                         ///< rows.
  bool replaces = false;  ///< Append: delete the output's dataset of that path, but keep its
                          ///< attributes (it was contiguous and must grow).
};

/// Rows of a dataset that only HDF5 can copy (not by_value).
struct RowSource {
  std::string file;  ///< Path of an input.
  std::uint64_t n_rows = 0;
};

/// Path of an object, and the name of an attribute of it.
using ObjectAttribute = std::pair<std::string, std::string>;

class ConcatOutput {
 public:
  /// Make a new output. `first_input`: the file that supplies everything except rows. Immediately
  /// copies groups, named types and soft links, so that datasets find their places. `file` must
  /// outlive the result, and be closed only after the result is destroyed.
  /// @error not_found, corrupt
  static Result<std::unique_ptr<ConcatOutput>> create(Hdf5File& file,
                                                      const std::string& first_input);
  /// Continue the output of a killed run: existing objects stay, missing ones are made.
  static Result<std::unique_ptr<ConcatOutput>> resume(Hdf5File& file,
                                                      const std::string& first_input);
  /// Add rows to a complete output: nothing is copied from any input.
  static Result<std::unique_ptr<ConcatOutput>> append(Hdf5File& file);
  virtual ~ConcatOutput() = default;

  /// Create a dataset with its attributes, or extend the existing one, and enter chunks into its
  /// index. A record replaces an existing entry of the same chunk. Call once per batch of chunks,
  /// in the order of the first input's datasets; otherwise finish() has to move links.
  /// @error already_exists, unsupported, invalid_argument
  virtual Status place(const ConcatTarget& target,
                       std::span<const Hdf5File::ChunkRecord> records) = 0;

  /// Create or extend a dataset that is not by_value, and let HDF5 copy its rows from the inputs,
  /// in this order. They follow the `first_row` existing rows. At most `memory_bytes` at a time.
  /// Inherently serial: rank 0 opens each input that has rows. @error io_error, corrupt
  virtual Status copy_rows(const ConcatTarget& target, std::span<const RowSource> sources,
                           std::uint64_t first_row, std::uint64_t memory_bytes) = 0;

  /// Copy a scalar or null dataset of the first input; an existing one stays.
  virtual Status copy_whole(const StoredDataset& dataset) = 0;

  /// Set attributes of groups, dimension scales, hard links and the order of links, once all
  /// datasets exist.
  /// @param notes  notes of the objects on the losses of their rows. For a new output they complete
  /// the first input's; for one that got more rows, they are the changes.
  /// @param left_out  attributes of the first input that do not apply to the output.
  /// @returns remarks on properties that could not be copied.
  virtual Result<std::vector<std::string>> finish(
      const CopiedObjects& notes, std::span<const ObjectAttribute> left_out = {}) = 0;
};

// --- Progress of a concatenation, stored in the unfinished output.
//
// A root attribute that is committed together with the datasets that it describes, so that it is
// correct whenever the job dies. The finished file does not have it.

struct ConcatProgress {
  std::string request;           ///< The request: inputs, their lengths, options.
  std::uint64_t n_datasets = 0;  ///< Number of complete datasets, in the order of the schema.
  std::vector<std::uint64_t> versions;  ///< file_version() of each input; at most 64 KiB.
};

/// Set the progress with the next commit. @error internal
Status write_progress(Hdf5File& file, const ConcatProgress& progress);
/// Read the progress; nothing if the file has none. @error corrupt
Result<std::optional<ConcatProgress>> read_progress(const Hdf5File& file);
/// Remove the progress, if any, with the next commit. @error internal
Status remove_progress(const Hdf5File& file);

}  // namespace tailrace
