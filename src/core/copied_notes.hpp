// What a copy may say of its source's bounds and guards: the one place that decides it, whoever
// copies (repack, concat). The names of these attributes: encoding_notes.hpp.

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

/// What a copy's dataset has of its source's.
enum class CopyOf : std::uint8_t {
  chunks,  ///< The chunks, as they are stored: all holds on.
  values,  ///< The same values, encoded anew: all but how, which the writer says.
  nothing  ///< Nothing holds on: its writer says what its values have lost, or nobody does.
};
struct CopiedNotes {
  CopyOf of = CopyOf::chunks;
  /// In the place of the source's attribute of that name; nothing: it does not hold on.
  std::map<std::string, std::optional<std::variant<std::string, double>>> instead = {};
};
/// By path of the object, with "/" for what is said of the file.
using CopiedObjects = std::map<std::string, CopiedNotes>;

/// Whether an attribute of the source is taken over as it is. Others' always are, but for those
/// that our files have (their names begin alike). @param notes  null: nothing holds on.
bool is_taken_over(const std::string& name, const CopiedNotes* notes);

/// Of a dataset that says nothing any more.
CopiedNotes nothing_said();
/// Of one that says that nobody knows, so that no note on the file speaks for it.
CopiedNotes said_unknown();
bool is_said_unknown(const CopiedNotes& notes);

/// The guards that hold on in a copy: those of regions by masks that it has with the same values,
/// those of each chunk's values together (sum, monotone) where its chunks are the source's.
Guards guards_of_copy(Guards guards, bool same_chunks,
                      const std::function<bool(const std::string& mask)>& has_mask);
/// The guards that hold of the rows of several datasets together: those of values by themselves,
/// and of their neighbours. @returns none where they are not the same in all.
Guards guards_of_rows(const Guards& of_some, const Guards& of_others);

/// What the rows of a dataset are said to have lost, as far as rows of several say it together.
struct RowNotes {
  bool said = false;  ///< Nothing else counts where it is not, but `silent`.
  /// Codec, mode and number of the bound as asked.
  std::string as_asked;
  double absolute_bound = 0;        ///< The largest.
  std::optional<double> max_error;  ///< The largest; nothing: not measured everywhere.
  Guards guards;
  /// Of rows of one dataset alone, with guards: its chunks, and the rows of the masks beside it.
  Shape chunk_shape = {};
  std::map<std::string, std::uint64_t> mask_rows = {};
  bool silent = true;  ///< There is no word of it at all, not even one that is unknown here.
  /// Rows with other bounds and the same codec are within the largest absolute bound together.
  /// Empty: they say nothing together.
  std::string codec = {};
};
/// Of the rows of both.
RowNotes of_all_rows(const RowNotes& some, const RowNotes& others);
/// What the dataset of all rows says, whose other attributes are those of a dataset of `some` rows.
/// @param together  as of_all_rows() has it; said.
CopiedNotes notes_of_rows(const RowNotes& some, const RowNotes& together);

}  // namespace tailrace
