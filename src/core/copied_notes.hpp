// Decides which attributes about bounds and guards a copy takes over from its source (repack,
// concat). encoding_notes.hpp has the names of these attributes.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "trz/base/box.hpp"
#include "trz/base/guards.hpp"

namespace tailrace {

/// Relation of a copy's dataset to its source.
enum class CopyOf : std::uint8_t {
  chunks,  ///< Chunks copied as stored: all attributes stay valid.
  values,  ///< Same values, re-encoded: those about the encoding are replaced.
  nothing  ///< No attribute stays valid: the writer states the losses, or the file does not state
           //   them.
};
struct CopiedNotes {
  CopyOf of = CopyOf::chunks;
  /// Replacements for the source's attributes, by name; nothing: the attribute is dropped.
  std::map<std::string, std::optional<std::variant<std::string, double>>> instead = {};
};
/// Notes by path of the object; "/" for those of the file.
using CopiedObjects = std::map<std::string, CopiedNotes>;

/// Return true if an attribute of the source is copied unchanged. Attributes that Tailrace does not
/// write always are.
/// @param notes  null: no attribute of Tailrace stays valid.
bool is_taken_over(const std::string& name, const CopiedNotes* notes);

/// Return notes for a dataset from which all encoding attributes are dropped.
CopiedNotes no_notes();
/// Return notes for a dataset whose losses are recorded as unknown, so that no note on the file
/// applies to it.
CopiedNotes recorded_as_unknown();
bool is_recorded_unknown(const CopiedNotes& notes);

/// Return the guards that stay valid in a copy. Guards of regions by masks stay if the copy has the
/// mask with the same values. Guards of a chunk's values together (sum, monotone) stay if its
/// chunks are the source's.
Guards guards_of_copy(Guards guards, bool same_chunks,
                      const std::function<bool(const std::string& mask)>& has_mask);
/// Return the guards that hold for the rows of several datasets together: those of single values,
/// and of neighbours.
/// @returns none if they are not the same in all.
Guards guards_of_rows(const Guards& of_some, const Guards& of_others);

/// Recorded losses of a dataset's rows, as far as rows of several datasets can share one record.
struct RowNotes {
  bool recorded = false;  ///< False: only `silent` is meaningful.
  /// Codec, mode and number of the bound as requested.
  std::string as_requested;
  double absolute_bound = 0;        ///< The largest.
  std::optional<double> max_error;  ///< The largest; nothing: not measured for all rows.
  Guards guards;
  /// Chunk shape, and rows of the masks next to the dataset; set for rows of a single dataset with
  /// guards.
  Shape chunk_shape = {};
  std::map<std::string, std::uint64_t> mask_rows = {};
  bool silent = true;  ///< The dataset has no record at all, not even an unknown one.
  /// Codec of the rows. Rows with other bounds and the same codec share the largest absolute bound.
  /// Empty: they share no record.
  std::string codec = {};
};
/// Return the record for the rows of both.
RowNotes of_all_rows(const RowNotes& some, const RowNotes& others);
/// Return the notes of the dataset of all rows, which has its other attributes from a dataset of
/// `some` rows.
/// @param together  result of of_all_rows(); said is true.
CopiedNotes notes_of_rows(const RowNotes& some, const RowNotes& together);

}  // namespace tailrace
