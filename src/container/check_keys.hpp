// Partition keys of a concatenation's output: do they number events as they should?
//
// A key dataset "evt.seq" numbers the rows' events. In /spill every event that has not been seen
// gets the next number; elsewhere rows have the number that /spill gives to their event. Events do
// not reach over files, so each input's rows are checked for themselves. Callers hold an Hdf5Scope.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "container/concat_check.hpp"
#include "container/hdf5_handle.hpp"

namespace tailrace {

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
