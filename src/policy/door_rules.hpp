// Values of options that only some doors serve, and the check that every door makes.
//
// core/option_table.hpp lists the doors of each option. This table lists single values that fewer
// doors serve, each with its reason. docs/options.md shows both as one table, and door_rules_test
// tries every cell of that table in each door.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/glob_options.hpp"
#include "core/option_table.hpp"
#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// A value of an option that some doors reject.
struct ValueRule {
  std::string_view example;  ///< "layout=front": options that select the value.
  /// True if the options select the value. `file` is null if the options are a dataset's own.
  bool (*selected)(const FileOptions* file, const FieldOptions& field);
  unsigned doors = 0;    ///< Doors that serve the value, as bits of Door.
  std::string_view why;  ///< Reason of the other doors: "needs all values of a field at once".
};

/// Return all rules. The option of each is in the option table.
std::span<const ValueRule> value_rules();

/// Return the doors that serve the value: those of the rule that have the option.
unsigned doors_of(const ValueRule& rule);

/// Check that the door serves all options that differ from their defaults. Not collective; alike on
/// all ranks if agreed_text() is.
/// @error invalid_argument  an option that the door does not have.
/// @error unsupported  a value that it does not serve; both errors name the option and the reason.
Status check_door(const FileOptions& options, Door door);
/// Check the options of one dataset in the same way.
Status check_door(const FieldOptions& options, Door door);

/// Check the options of a file and of its globs in the same way, for the door that they name.
Status check_door(const GlobOptions& options);

/// True if the programs of an interface run unchanged and expect no error of a bound
/// (policy/bound_width): what is refused is stored exactly.
constexpr bool runs_unchanged(Door door) {
  return door == Door::pnetcdf || door == Door::hdf5 || door == Door::serial;
}

/// Reject layout=front for one dataset of a file without this layout.
/// @error invalid_argument
Status check_front_of_file(const FieldOptions& options);

/// Return the text of docs/options.md.
std::string options_page();

}  // namespace tailrace
