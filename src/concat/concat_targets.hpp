// What the output's datasets will be: how each is stored, its rows and its places.

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

/// The form in which `dataset` (of the first input) is to be stored when it has `n_rows` rows.
/// Not collective; the same on every rank. May call HDF5 (codecs by name).
/// @error invalid_argument, unsupported, plugin_missing  names the dataset.
Result<StoredForm> choose_form(const StoredDataset& dataset, std::uint64_t n_rows,
                               const ConcatRequest& request);

/// Whether a dataset keeps its chunks although others are asked for: its filters were set up for
/// these, and no other codec is asked for.
bool keeps_chunks(const StoredDataset& dataset, const ConcatRequest& request);

/// Whether the filters mean the same for every chunk shape (deflate does; SZ3 does not).
bool filters_fit_any_chunk(const StoredForm& form);

// --- ConcatTargets: what the output's datasets will be, and where everybody's rows go.
//
// Made after the inputs have been counted, the same on every rank: for each dataset of the schema
// its form in the output (concat_targets.hpp), its rows, and its places in the line. Appending to
// an older output is no case of its own: its chunks keep their places, and the rows of its last,
// partial chunk are one more part, held by rank 0.

class ConcatTargets {
 public:
  /// Read the older output, if rows are to be appended to one. Collective: broadcasts of its
  /// schema.
  /// @error not_found, corrupt, invalid_argument (its schema is not that of the inputs)
  Status read_older_output(Comm& comm, const ConcatRequest& request, ConcatInputs& inputs);
  /// Decide on all forms and places. Collective: one agreement.
  /// @error invalid_argument, unsupported, plugin_missing  names the dataset.
  Status plan(Comm& comm, const ConcatRequest& request, ConcatInputs& inputs);

  const std::vector<ConcatTarget>& all() const { return targets_; }
  ConcatTarget& operator[](std::size_t dataset) { return targets_[dataset]; }
  const ConcatTarget& operator[](std::size_t dataset) const { return targets_[dataset]; }
  std::size_t size() const { return targets_.size(); }
  /// How each is stored, interned with the forms of the parts; contiguous ones cut in runs of rows.
  const std::vector<const StoredForm*>& forms() const { return forms_; }
  const ConcatLine& line() const { return *line_; }
  /// Rows that are in the output already; 0 but for appending.
  const std::vector<std::uint64_t>& older_rows() const { return older_rows_; }
  /// This rank's parts, those of the older output among them. Once.
  std::vector<ConcatPart> take_parts() { return std::move(parts_); }
  /// Datasets that keep their chunks although the request asks for others (keeps_chunks()).
  const std::vector<std::size_t>& kept_chunks() const { return kept_chunks_; }
  /// What the output's objects say of the inputs' notes. Rank 0.
  CopiedObjects notes(const ConcatNotes& inputs, const ConcatRequest& request,
                      std::span<const StoredDataset> schema) const;
  /// Lines on properties of the inputs' datasets that no option asked to change.
  std::vector<std::string> remarks() const;
  /// The older output's length.
  std::uint64_t older_bytes() const { return older_bytes_; }
  /// Of the older output, two chunks that lie at one place: "dataset "/a" and dataset "/b"";
  /// empty: none. Rank 0, while it is open. Cost: its chunks are sorted.
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
