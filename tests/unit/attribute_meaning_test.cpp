// Texts of CF attributes that have one meaning.

#include "describe/attribute_meaning.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tailrace {
namespace {

TEST(AttributeMeaning, UnitsOfTimeAreComparedByStepAndDate) {
  const std::string first = "days since 1850-01-01";
  for (const char* same :
       {"days since 1850-1-1 00:00:00", "day since 1850-01-01T00:00:00Z", "d since 1850-01-01 0:00",
        "Days since 1850-1-1 00:00:0.0 UTC", "days since 1850-01-01 00:00:00 +00:00",
        "days since 1850-01-01 00:00:00 0:00", "days  since  1850-01-01 "}) {
    EXPECT_TRUE(have_same_meaning("units", first, same)) << same;
    EXPECT_TRUE(have_same_meaning("units", same, first)) << same;
    EXPECT_FALSE(have_same_meaning("long_name", first, same)) << same;
  }
  for (const char* other :
       {"days since 1850-01-02", "days since 1851-01-01", "hours since 1850-01-01",
        "days since 1850-01-01 00:00:01", "days since 1850-01-01 +1", "days since -1850-01-01",
        "days since 1850-01-01 noon", "days since", "days since 1850-", "days", "",
        "days since 99999999999999999999-01-01"}) {
    EXPECT_FALSE(have_same_meaning("units", first, other)) << other;
    EXPECT_FALSE(have_same_meaning("units", other, first)) << other;
  }
  EXPECT_TRUE(have_same_meaning("units", "s since 2000-1-1 +01:30", "s since 2000-01-01 +0130"));
  EXPECT_FALSE(have_same_meaning("units", "m s-1", "m s-1"));
}

TEST(AttributeMeaning, CalendarsHaveSynonyms) {
  EXPECT_TRUE(have_same_meaning("calendar", "Gregorian", "standard"));
  EXPECT_TRUE(have_same_meaning("calendar", "365_day", "noleap"));
  EXPECT_FALSE(have_same_meaning("calendar", "360_day", "noleap"));
}

}  // namespace
}  // namespace tailrace
