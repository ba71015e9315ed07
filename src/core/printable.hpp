// Text from files and callers (names, attribute values, paths) as terminals and pages may show it.
//
// A name may hold any bytes: an escape sequence that clears a terminal, a newline that forges a
// row, an override that turns the direction of what follows. Everything that is shown to people
// passes through here; files and JSON documents hold the bytes themselves.

#pragma once

#include <string>

namespace tailrace {

/// One line of well-formed UTF-8 in which every character is visible where it stands. Control
/// characters (C0, DEL, C1), line separators and marks of direction become escapes as in C ("\n",
/// "\x1b", "\u202e"), and bytes that are not UTF-8 become "\xff". A backslash stays as it is, so
/// that a text may pass through twice. Thread-safe. Allocates only where something is escaped.
std::string printable(std::string text);

/// Text of several lines, each as printable() makes it: newlines stay.
std::string printable_lines(std::string text);

}  // namespace tailrace
