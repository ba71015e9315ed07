// Parsing of CF's units of time and names of calendars.

#include "describe/attribute_meaning.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace tailrace {
namespace {

/// Words with the word that means the same. Words that are not listed mean themselves.
using Words = std::pair<std::string_view, std::string_view>;
constexpr std::array<Words, 19> kSteps = {{{"day", "days"},
                                           {"d", "days"},
                                           {"hour", "hours"},
                                           {"hr", "hours"},
                                           {"hrs", "hours"},
                                           {"h", "hours"},
                                           {"minute", "minutes"},
                                           {"min", "minutes"},
                                           {"mins", "minutes"},
                                           {"second", "seconds"},
                                           {"sec", "seconds"},
                                           {"secs", "seconds"},
                                           {"s", "seconds"},
                                           {"millisecond", "milliseconds"},
                                           {"msec", "milliseconds"},
                                           {"msecs", "milliseconds"},
                                           {"ms", "milliseconds"},
                                           {"month", "months"},
                                           {"year", "years"}}};
constexpr std::array<Words, 3> kCalendars = {
    {{"gregorian", "standard"}, {"365_day", "noleap"}, {"366_day", "all_leap"}}};

template <class Table>
std::string_view meaning_in(const Table& words, std::string_view word) {
  const auto known =
      std::ranges::find_if(words, [&](const Words& each) { return each.first == word; });
  return known == words.end() ? word : known->second;
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

/// Rest of a text that is being parsed.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  bool at_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }

  template <class Number>
  bool take_number(Number& number) {
    if (!at_digit()) return false;
    const auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (failed != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

 private:
  std::string_view rest_;
};

/// A unit of time: a step, and the date from which steps count.
struct TimeUnit {
  std::string step;
  bool before_zero = false;  ///< The year has a minus sign.
  int year = 0;
  int month = 1;
  int day = 1;
  double seconds = 0;  ///< Seconds of the day.
  int zone_minutes = 0;

  bool operator==(const TimeUnit&) const = default;
};

/// Parse "12", "12:30" or "12:30:15.5" into seconds.
bool take_time(Cursor& cursor, double& seconds) {
  int hours = 0;
  int minutes = 0;
  double rest = 0;
  if (!cursor.take_number(hours)) return false;
  if (cursor.take(":") && !cursor.take_number(minutes)) return false;
  if (cursor.take(":") && !cursor.take_number(rest)) return false;
  seconds = hours * 3600.0 + minutes * 60.0 + rest;
  return true;
}

/// Parse "", "Z", "UTC", "+1", "-03:30", "+0530" or UDUNITS' "0:00".
bool take_zone(Cursor& cursor, int& minutes) {
  if (cursor.at_end() || cursor.take("z") || cursor.take("utc") || cursor.take("gmt")) return true;
  const bool west = cursor.take("-");
  if (!west) cursor.take("+");
  int hours = 0;
  int rest = 0;
  if (!cursor.take_number(hours)) return false;
  if (cursor.take(":")) {
    if (!cursor.take_number(rest)) return false;
  } else if (hours >= 100) {
    rest = hours % 100;
    hours /= 100;
  }
  minutes = (west ? -1 : 1) * (hours * 60 + rest);
  return true;
}

std::optional<TimeUnit> parse_time_unit(std::string_view text) {
  const std::string lower = lowered(text);
  const std::size_t since = lower.find(" since ");
  if (since == std::string::npos) return std::nullopt;
  TimeUnit unit;
  std::string_view step = std::string_view(lower).substr(0, since);
  while (step.ends_with(' ')) step.remove_suffix(1);
  unit.step = meaning_in(kSteps, step);
  Cursor cursor(std::string_view(lower).substr(since + 7));
  cursor.skip_blanks();
  unit.before_zero = cursor.take("-");
  if (!cursor.take_number(unit.year)) return std::nullopt;
  if (cursor.take("-") && !cursor.take_number(unit.month)) return std::nullopt;
  if (cursor.take("-") && !cursor.take_number(unit.day)) return std::nullopt;
  if (!cursor.take("t")) cursor.skip_blanks();
  if (cursor.at_digit() && !take_time(cursor, unit.seconds)) return std::nullopt;
  cursor.skip_blanks();
  if (!take_zone(cursor, unit.zone_minutes)) return std::nullopt;
  cursor.skip_blanks();
  if (!cursor.at_end()) return std::nullopt;
  return unit;
}

}  // namespace

bool have_same_meaning(std::string_view attribute, std::string_view first,
                       std::string_view second) {
  if (attribute == "calendar") {
    const std::string one = lowered(first);
    const std::string other = lowered(second);
    return meaning_in(kCalendars, one) == meaning_in(kCalendars, other);
  }
  if (attribute != "units") return false;
  const std::optional<TimeUnit> one = parse_time_unit(first);
  return one && one == parse_time_unit(second);
}

}  // namespace tailrace
