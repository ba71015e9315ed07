// Comparison of the output's rows, and its partition keys, with the rows of its inputs.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "concat/check/check_objects.hpp"
#include "concat/check/concat_check.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

// --- Comparison of the output's rows with the rows of consecutive inputs, in windows of bounded
// memory.
//
// A window of the output is read once and compared with all inputs that have rows in it: an output
// chunk that holds rows of 60 files is decoded once, not 60 times. Callers hold an Hdf5Scope.

/// Rows of the dataset in one input.
struct CheckedRows {
  CheckedFile file;
  std::string file_name;
  std::uint64_t n_rows = 0;  ///< Rows after the dataset's last one count as its fill value.
};

class RowComparison {
 public:
  /// @param memory_bytes  each side's window takes at most a quarter of it.
  RowComparison(CheckedFile output, std::uint64_t memory_bytes)
      : output_(output), window_bytes_(memory_bytes / 4) {}

  /// Compare the rows of `sources`, one after the other, with the output's rows from `first_row`
  /// on. At most one finding per source: its first row that differs, is missing or cannot be read.
  /// @error out_of_memory  a single row is larger than the window.
  Status compare(const std::string& path, std::span<const CheckedRows> sources,
                 std::uint64_t first_row, const ConcatCheck::Progress& progress,
                 ConcatFindings& findings);

 private:
  CheckedFile output_;
  std::uint64_t window_bytes_;
};

/// Compare a dataset of an input with the part of the output at `box`, of the same counts, in
/// windows. If `input` is invalid, no input has the part; it is compared with the fill value. At
/// most one finding. The element type must be plain. @error out_of_memory  a single row is larger
/// than the window.
Status compare_box(hid_t output, hid_t input, const std::string& file_name, const std::string& path,
                   const Box& box, std::uint64_t window_bytes, ConcatFindings& findings);

/// Read `n_rows` rows of a dataset from `first_row` on as elements of `memory_type`.
/// @returns false if HDF5 fails, with the messages on its error stack.
bool read_checked_rows(hid_t dataset, hid_t memory_type, std::uint64_t first_row,
                       std::uint64_t n_rows, void* values);

// --- Check of the event numbers in the partition keys of a concatenation's output.
//
// A key dataset "evt.seq" numbers the rows' events. In /spill every new event gets the next number;
// in other groups a row has the number that /spill gives to its event. Events do not extend over
// files, so each input's rows are checked separately. Callers hold an Hdf5Scope.

/// The rows of one input in one key dataset of the output.
struct KeyedRows {
  std::string key_path;  ///< "/group/evt.seq"
  std::uint64_t first_row = 0;
  std::uint64_t n_rows = 0;
};

/// Check all keys of one input. Without `names` (run, subrun, evt: the columns that identify an
/// event) only the order of numbers in /spill, and their occurrence there, can be checked. At most
/// one finding per key dataset; unreadable keys are one too.
void compare_keys(hid_t output, const std::string& input, std::span<const KeyedRows> keys,
                  std::span<const std::string> names, ConcatFindings& findings);

}  // namespace tailrace
