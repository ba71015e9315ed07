// The inputs of a command that takes thousands: paths on the command line, or lines of a list.
//
// A list is read by rank 0 and broadcast, so that 32,000 ranks do not all open one file.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli_common.hpp"

namespace tailrace::cli {

/// The paths in the text of a list: one a line, in their order; blank lines and lines that begin
/// with '#' are left out, spaces around a path and a carriage return after it, too.
/// Not collective. @error invalid_argument  the text is no list, or names nothing.
Result<std::vector<std::string>> parse_input_list(std::string_view text);

/// The inputs that a user names: either `files` or the lines of `list_path` ("-": standard input),
/// relative to the current directory. Collective; the same on every rank, as rank 0 sees them.
/// @error not_found, io_error  the list cannot be read.
/// @error invalid_argument  both or neither are given; files are named twice: all of these.
Result<std::vector<std::string>> read_inputs(const Session& session,
                                             const std::vector<std::string>& files,
                                             const std::string& list_path);

}  // namespace tailrace::cli
