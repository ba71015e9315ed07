// Rows of the output against the rows of its inputs, and the partition keys among them.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "concat/check/check_objects.hpp"
#include "concat/check/concat_check.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

// --- Rows of the output against the rows of consecutive inputs, window by window, in bounded
// memory.
//
// A window of the output is read once and compared with all inputs that have rows in it: an output
// chunk that holds rows of 60 files is decoded once, not 60 times. Callers hold an Hdf5Scope.

/// Rows that an input has of the dataset.
struct CheckedRows {
  CheckedFile file;
  std::string file_name;
  std::uint64_t n_rows = 0;  ///< Rows behind the dataset's last one count as its fill value.
};

class RowComparison {
 public:
  /// @param memory_bytes  a quarter of it is the most that either side's window takes.
  RowComparison(CheckedFile output, std::uint64_t memory_bytes)
      : output_(output), window_bytes_(memory_bytes / 4) {}

  /// Compare the rows of `sources`, one behind the other, with the output's from `first_row` on.
  /// A finding per source at most: its first row that differs, is missing or cannot be read.
  /// @error out_of_memory  a single row is larger than the window.
  Status compare(const std::string& path, std::span<const CheckedRows> sources,
                 std::uint64_t first_row, const ConcatCheck::Progress& progress,
                 ConcatFindings& findings);

 private:
  CheckedFile output_;
  std::uint64_t window_bytes_;
};

/// Compare a dataset of an input with the part of the output's at `box`, of the same counts, window
/// by window; `input` invalid: with the fill value, where no input has the part. A finding at most.
/// Elements are their bytes. @error out_of_memory  a single row is larger than the window.
Status compare_box(hid_t output, hid_t input, const std::string& file_name, const std::string& path,
                   const Box& box, std::uint64_t window_bytes, ConcatFindings& findings);

/// Read `n_rows` rows of a dataset from `first_row` on as elements of `memory_type`.
/// @returns false if HDF5 fails, with its words on its error stack.
bool read_checked_rows(hid_t dataset, hid_t memory_type, std::uint64_t first_row,
                       std::uint64_t n_rows, void* values);

// --- Partition keys of a concatenation's output: do they number events as they should?
//
// A key dataset "evt.seq" numbers the rows' events. In /spill every event that has not been seen
// gets the next number; elsewhere rows have the number that /spill gives to their event. Events do
// not reach over files, so each input's rows are checked for themselves. Callers hold an Hdf5Scope.

/// The rows of one input in one key dataset of the output.
struct KeyedRows {
  std::string key_path;  ///< "/group/evt.seq"
  std::uint64_t first_row = 0;
  std::uint64_t n_rows = 0;
};

/// Check all keys of one input. Without `names` (run, subrun, evt: the columns that identify an
/// event) numbers can only be checked for their order in /spill and for occurring there.
/// One finding per key dataset at most; keys that cannot be read are one, too.
void compare_keys(hid_t output, const std::string& input, std::span<const KeyedRows> keys,
                  std::span<const std::string> names, ConcatFindings& findings);

}  // namespace tailrace
