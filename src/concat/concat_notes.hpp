// ConcatNotes: the losses (bounds, guards) that the inputs' datasets record for their rows, merged,
// and the notes of the output. core/copied_notes defines the notes that hold for rows of several
// files.
//
// Most files have no notes; the cost is then an empty gather and broadcast.

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "concat/hdf5/concat_output.hpp"
#include "core/comm.hpp"
#include "core/copied_notes.hpp"
#include "describe/concat_input.hpp"

namespace tailrace {

class ConcatNotes {
 public:
  /// Read the notes of the file that defines the schema and supplies all other attributes. Call on
  /// the rank that opened it.
  void take_first(const ConcatInput& input);
  /// Read the notes of a file of this rank, while it has its schema.
  /// @param datasets  for each dataset of the file that has rows: its numbers in the schema and in
  /// the file.
  void take_rows(const ConcatInput& input,
                 std::span<const std::pair<std::uint32_t, std::uint32_t>> datasets);
  /// Merge the notes of all ranks, on rank 0. Collective: a gather and a broadcast. Another gather
  /// follows if a dataset has notes, or if a file states that datasets without notes are exact.
  void merge(Comm& comm);

  /// Notes of a new output. Rank 0. @param codec  from the request: "keep", or the codec that
  /// encodes chunks.
  CopiedObjects of_new(std::span<const ConcatTarget> targets, std::span<const StoredDataset> schema,
                       const std::string& codec) const;
  /// Changes of the notes of an output that gets more rows. Rank 0.
  /// @param older  the output before.
  /// @param in_older  index of each dataset of the schema in `older`.
  /// @param codec  from the request, as for of_new().
  CopiedObjects of_longer(std::span<const ConcatTarget> targets,
                          std::span<const std::uint64_t> older_rows, const ConcatInput& older,
                          std::span<const std::size_t> in_older, const std::string& codec) const;
  /// Remarks for the user on notes that inputs, or the older output, have and the output does not.
  std::vector<std::string> remarks(std::span<const ConcatTarget> targets,
                                   const CopiedObjects& copied) const;

 private:
  /// True if the dataset may have rows that no note declares exact.
  bool is_inexact(std::size_t dataset) const {
    return !any_declares_exact_ || rows_.contains(static_cast<std::uint32_t>(dataset)) ||
           (dataset < inexact_.size() && inexact_[dataset]);
  }

  std::map<std::uint32_t, RowNotes> first_;
  std::map<std::uint32_t, RowNotes> rows_;  ///< Notes of this rank's files; after merge() on rank
                                            ///< 0, of all.
  std::vector<bool> without_notes_;         ///< Datasets for which a file of this rank has no note.
  /// Datasets with rows that neither a note nor their file's note covers. After merge(), of all
  /// ranks' files, if some file has a note.
  std::vector<bool> inexact_;
  bool first_declares_exact_ = false;
  bool any_declares_exact_ = false;
};

}  // namespace tailrace
