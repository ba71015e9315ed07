// Values of options that only some doors serve, and the check that every door makes.
//
// core/option_table.hpp lists the doors of each option. Here stand the single values of options
// that fewer doors serve, each with its reason. docs/options.md shows both as one table, and
// door_rules_test tries every cell of that table in each door.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/glob_options.hpp"
#include "core/option_table.hpp"
#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// A value of an option that some doors refuse.
struct ValueRule {
  std::string_view example;  ///< "layout=front": a text of options that asks for the value.
  /// True if the options ask for the value. `file` is null where the options are a dataset's own.
  bool (*asked)(const FileOptions* file, const FieldOptions& field);
  unsigned doors = 0;    ///< Doors that serve the value, as bits of Door.
  std::string_view why;  ///< Why the others refuse it: "needs all values of a field at once".
};

/// All rules. The option of each is in the option table.
std::span<const ValueRule> value_rules();

/// Doors that serve the value: those of the rule that have the option.
unsigned doors_of(const ValueRule& rule);

/// Refuse options that the door does not serve, unless they have their defaults. Not collective,
/// and alike where agreed_text() is.
/// @error invalid_argument  an option that the door does not have.
/// @error unsupported  a value that it does not serve; both name the option and the reason.
Status check_door(const FileOptions& options, Door door);
/// Refuse options of one dataset, likewise.
Status check_door(const FieldOptions& options, Door door);

/// Refuse options of a file and of its globs, likewise, for the door that they name.
Status check_door(const GlobOptions& options);

/// Refuse layout=front for one dataset of a file that is not laid out so.
/// @error invalid_argument
Status check_front_of_file(const FieldOptions& options);

/// docs/options.md.
std::string options_page();

}  // namespace tailrace
