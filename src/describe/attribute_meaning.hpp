// Texts of CF attributes that differ in form and have one meaning. Pure.

#pragma once

#include <string_view>

namespace tailrace {

/// True if two texts of an attribute mean the same: units of time ("days since 1850-01-01" and "day
/// since 1850-1-1 00:00:00 UTC") and calendars ("standard" and "gregorian"). False for texts
/// of other attributes, and for units that it cannot parse.
/// Not collective. Thread-safe.
/// Source: CF conventions 1.11, sections 4.4 (units of time) and 4.4.1 (calendars).
bool have_same_meaning(std::string_view attribute, std::string_view first, std::string_view second);

}  // namespace tailrace
