// Partition keys: numbers of the event to which each row of each group belongs.
//
// Analyses distribute rows to ranks so that all rows of an event are on one rank. Rows identify the
// event by a tuple of columns (run, subrun, evt). A dataset "evt.seq" next to these columns numbers
// the distinct tuples of /spill in the order of the concatenation, the same in all groups. The rows
// of an event are in the file that has its spill, so each file is processed independently. Runs of
// equal numbers are stored as runs: the keys of a file take little memory until they are written.
// Source: Lee et al. 2022, section 2 (the tables), and option -k of their tool.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "describe/concat_input.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The group in which every event has a row.
inline constexpr const char* kKeyGroup = "/spill";

/// Key numbers of one group's rows in one file, as runs of equal values.
class KeyRows {
 public:
  void add(std::int64_t value);
  std::uint64_t n_rows() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Write the numbers of rows [first_row, first_row + n) plus `offset` as int64 into `values`.
  void expand(std::uint64_t first_row, std::uint64_t n, std::int64_t offset,
              std::byte* values) const;
  std::uint64_t memory_bytes() const { return ends_.size() * 16; }

 private:
  std::vector<std::uint64_t> ends_;  ///< One past each run's last row.
  std::vector<std::int64_t> values_;
};

/// Group that gets keys, and the datasets of the schema that identify its events.
struct KeyedGroup {
  std::string path;      ///< "/spill"
  std::string key_path;  ///< "/spill/evt.seq"
  std::size_t like = 0;  ///< The schema's dataset of the last name, with the same number of rows.
};

/// The groups of the schema that have all of `names`, including /spill.
/// @error not_found  /spill lacks one of them.
/// @error already_exists  a key dataset of that path exists.
/// @error unsupported  a column is not a dataset of one integer a row.
Result<std::vector<KeyedGroup>> find_keyed_groups(std::span<const StoredDataset> schema,
                                                  std::span<const std::string> names);

/// The keys of one file, numbered from 0.
struct FileKeys {
  std::vector<KeyRows> groups;  ///< Parallel to the KeyedGroups.
  std::uint64_t n_events = 0;
  std::int64_t offset = 0;  ///< Events of the preceding files, to be added.
};

/// Find the event of every row of every keyed group of a file. Call before
/// ConcatInput::drop_schema().
/// @error invalid_argument  a row's event is not in /spill; names dataset, row and event.
Result<FileKeys> number_events(ConcatInput& input, std::span<const KeyedGroup> groups,
                               std::span<const std::string> names);

}  // namespace tailrace
