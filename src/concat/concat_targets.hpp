// The output's datasets: storage form, rows, and places in the line.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "concat/concat.hpp"
#include "concat/concat_inputs.hpp"
#include "concat/concat_line.hpp"
#include "concat/hdf5/concat_output.hpp"
#include "core/comm.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- How each dataset of a concatenation's output is stored; the rules are join_chunks() in
// policy/storage_decision.hpp.

/// Choose the storage form of `dataset` (of the first input) for `n_rows` rows. Not collective; the
/// same on every rank. May call HDF5 (codecs by name).
/// @error invalid_argument, unsupported, plugin_missing  names the dataset.
Result<StoredForm> choose_form(const StoredDataset& dataset, std::uint64_t n_rows,
                               const ConcatRequest& request);

/// True if a dataset keeps its chunks although others are requested: its filters were set up for
/// these chunks, and no other codec is requested.
bool keeps_chunks(const StoredDataset& dataset, const ConcatRequest& request);

/// True if the filters have the same meaning for every chunk shape (deflate has; SZ3 has not).
bool filters_fit_any_chunk(const StoredForm& form);

// --- ConcatTargets: the output's datasets, and the position of all ranks' rows in them.
//
// Made after the inputs have been counted, the same on every rank. Each dataset of the schema has
// its form in the output, its rows, and its places in the line. Appending to an older output is not
// a special case: its chunks keep their places, and the rows of its last, partial chunk are one
// more part, owned by rank 0.

class ConcatTargets {
 public:
  /// Read the older output, if rows are to be appended to one. Collective: broadcasts of its
  /// schema.
  /// @error not_found, corrupt, invalid_argument (its schema differs from that of the inputs)
  Status read_older_output(Comm& comm, const ConcatRequest& request, ConcatInputs& inputs);
  /// Choose all forms and places. Collective: one agreement.
  /// @error invalid_argument, unsupported, plugin_missing  names the dataset.
  Status plan(Comm& comm, const ConcatRequest& request, ConcatInputs& inputs);

  const std::vector<ConcatTarget>& all() const { return targets_; }
  ConcatTarget& operator[](std::size_t dataset) { return targets_[dataset]; }
  const ConcatTarget& operator[](std::size_t dataset) const { return targets_[dataset]; }
  std::size_t size() const { return targets_.size(); }
  /// Storage form of each dataset, interned with the forms of the parts; contiguous ones are cut
  /// into runs of rows.
  const std::vector<const StoredForm*>& forms() const { return forms_; }
  const ConcatLine& line() const { return *line_; }
  /// Rows that the output already has; 0 unless rows are appended.
  const std::vector<std::uint64_t>& older_rows() const { return older_rows_; }
  /// This rank's parts, including those of the older output. Call once.
  std::vector<ConcatPart> take_parts() { return std::move(parts_); }
  /// Datasets that keep their chunks although the request names others (keeps_chunks()).
  const std::vector<std::size_t>& kept_chunks() const { return kept_chunks_; }
  /// Notes for the output's objects, from the inputs' notes. Rank 0.
  CopiedObjects notes(const ConcatNotes& inputs, const ConcatRequest& request,
                      std::span<const StoredDataset> schema) const;
  /// Remarks on changed properties of the inputs' datasets that no option asked to change.
  std::vector<std::string> remarks() const;
  /// The older output's length.
  std::uint64_t older_bytes() const { return older_bytes_; }
  /// Two chunks of the older output at one address: "dataset "/a" and dataset "/b""; empty: none.
  /// Rank 0, while the older output is open. Cost: sorting its chunks.
  std::string shared_chunks() const;

 private:
  LineDataset place_dataset(const ConcatTarget& target, const StoredForm& cut, std::uint64_t n_new,
                            std::uint64_t n_older, bool grows) const;

  void note_changes(const StoredDataset& input, const StoredForm& output);

  std::unique_ptr<ConcatInput> older_;  ///< Rank 0.
  std::uint64_t older_bytes_ = 0;
  std::vector<StoredDataset> older_schema_;
  std::vector<std::uint64_t> older_rows_;
  std::vector<ConcatTarget> targets_;
  std::vector<const StoredForm*> forms_;
  std::unique_ptr<ConcatLine> line_;
  std::vector<ConcatPart> parts_;
  std::vector<std::size_t> kept_chunks_;
  std::vector<std::string> lost_checksums_;  ///< Paths.
  std::vector<std::string> once_compact_;
};

}  // namespace tailrace
