// Rows of the output against the rows of consecutive inputs, window by window, in bounded memory.
//
// A window of the output is read once and compared with all inputs that have rows in it: an output
// chunk that holds rows of 60 files is decoded once, not 60 times. Callers hold an Hdf5Scope.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "container/concat_check.hpp"
#include "container/hdf5_handle.hpp"

namespace tailrace {

/// Rows that an input has of the dataset.
struct CheckedRows {
  hid_t file = H5I_INVALID_HID;
  std::string file_name;
  std::uint64_t n_rows = 0;
};

class RowComparison {
 public:
  /// @param memory_bytes  a quarter of it is the most that either side's window takes.
  RowComparison(hid_t output, std::uint64_t memory_bytes)
      : output_(output), window_bytes_(memory_bytes / 4) {}

  /// Compare the rows of `sources`, one behind the other, with the output's from `first_row` on.
  /// A finding per source at most: its first row that differs, is missing or cannot be read.
  /// @error out_of_memory  a single row is larger than the window.
  Status compare(const std::string& path, std::span<const CheckedRows> sources,
                 std::uint64_t first_row, const ConcatCheck::Progress& progress,
                 ConcatFindings& findings);

 private:
  hid_t output_;
  std::uint64_t window_bytes_;
};

/// Read `n_rows` rows of a dataset from `first_row` on as elements of `memory_type`.
/// @returns false if HDF5 fails, with its words on its error stack.
bool read_checked_rows(hid_t dataset, hid_t memory_type, std::uint64_t first_row,
                       std::uint64_t n_rows, void* values);

}  // namespace tailrace
