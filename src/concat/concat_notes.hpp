// ConcatNotes: what the inputs' datasets say that their rows have lost (bounds, guards), put
// together, and what the output says of it. Which notes hold of rows of several: core/copied_notes.
//
// Most files say nothing, and then it costs a gather and a broadcast of nothing.

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
  /// The file that gives the schema, and all other attributes; on the rank that has it.
  void take_first(const ConcatInput& input);
  /// A file of this rank, while it has its schema. @param datasets  of the schema: of each dataset
  /// of the file that has rows, with its number in the file.
  void take_rows(const ConcatInput& input,
                 std::span<const std::pair<std::uint32_t, std::uint32_t>> datasets);
  /// Put together what all ranks have, at rank 0. Collective: a gather and a broadcast; another
  /// gather where some dataset says something, or some file that silent ones are exact.
  void settle(Comm& comm);

  /// Of a new output. Rank 0. @param codec  of the request: "keep", or what chunks are encoded by.
  CopiedObjects of_new(std::span<const ConcatTarget> targets, std::span<const StoredDataset> schema,
                       const std::string& codec) const;
  /// What becomes of the notes that an output has, which gets more rows; the same. @param older the
  /// output as it was, and where each dataset of the schema is there.
  CopiedObjects of_longer(std::span<const ConcatTarget> targets,
                          std::span<const std::uint64_t> older_rows, const ConcatInput& older,
                          std::span<const std::size_t> in_older, const std::string& codec) const;
  /// Lines for the user about what inputs, or the output before, say and the output does not.
  std::vector<std::string> remarks(std::span<const ConcatTarget> targets,
                                   const CopiedObjects& copied) const;

 private:
  /// Whether rows of a dataset came in, if any did, without anybody's word that they are exact.
  bool is_inexact(std::size_t dataset) const {
    return !some_say_exact_ || rows_.contains(static_cast<std::uint32_t>(dataset)) ||
           (dataset < inexact_.size() && inexact_[dataset]);
  }

  std::map<std::uint32_t, RowNotes> first_;
  std::map<std::uint32_t, RowNotes> rows_;  ///< Of this rank's files; at last of all.
  std::vector<bool> unsaid_;                ///< Of which some file of this rank says nothing.
  /// Of which rows came that neither they nor their file's note speak of; at last of all ranks'
  /// files, where some file has a note.
  std::vector<bool> inexact_;
  bool first_says_exact_ = false;
  bool some_say_exact_ = false;
};

}  // namespace tailrace
