// Attributes about the source that a copy may keep (core/copied_notes.hpp): for each kind of copy,
// and for joined rows of several datasets.

#include "core/copied_notes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/encoding_notes.hpp"

namespace tailrace {
namespace {

Guards guards(const std::string& text) {
  const Result<Guards> parsed = parse_guards(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Guards();
}

TEST(CopiedNotes, OwnAttributesAreKnownByHowTheyBegin) {
  for (const char* name : kEncodingNoteNames) EXPECT_TRUE(is_own_attribute(name)) << name;
  EXPECT_TRUE(is_own_attribute("tailrace_file"));
  EXPECT_TRUE(is_own_attribute("tailrace_covered_cells"));
  for (const char* name : {"", "units", "tailrace", "Tailrace_codec", "of_tailrace_codec"}) {
    EXPECT_FALSE(is_own_attribute(name)) << name;
    EXPECT_TRUE(is_taken_over(name, nullptr)) << name;
  }
}

TEST(CopiedNotes, OfChunksAllHoldsOfValuesAllButHow) {
  const CopiedNotes chunks;
  const CopiedNotes values{CopyOf::values};
  const CopiedNotes nothing{CopyOf::nothing};
  std::vector<std::string> not_of_values;
  for (const char* name : kEncodingNoteNames) {
    EXPECT_FALSE(is_taken_over(name, nullptr)) << name;
    EXPECT_FALSE(is_taken_over(name, &nothing)) << name;
    EXPECT_TRUE(is_taken_over(name, &chunks)) << name;
    if (!is_taken_over(name, &values)) not_of_values.emplace_back(name);
  }
  EXPECT_EQ(not_of_values,
            (std::vector<std::string>{kCodecAttribute, kCodecVersionAttribute, kVersionAttribute}));
  EXPECT_TRUE(is_taken_over("units", nullptr));
  CopiedNotes changed;
  changed.instead[kGuardAttribute] = std::nullopt;
  EXPECT_FALSE(is_taken_over(kGuardAttribute, &changed));
  EXPECT_TRUE(is_taken_over(kBoundModeAttribute, &changed));
}

TEST(CopiedNotes, UnknownIsSaidInPlaceOfAllElse) {
  const CopiedNotes unknown = recorded_as_unknown();
  EXPECT_TRUE(is_recorded_unknown(unknown));
  EXPECT_FALSE(is_recorded_unknown(no_notes()));
  EXPECT_FALSE(is_recorded_unknown(CopiedNotes()));
  for (const char* name : kEncodingNoteNames) {
    EXPECT_FALSE(no_notes().instead.at(name)) << name;
    const std::string of_it = name;
    const bool word = of_it == kCodecAttribute || of_it == kBoundModeAttribute;
    ASSERT_EQ(unknown.instead.at(name).has_value(), word) << name;
    if (!word) continue;
    EXPECT_EQ(std::get<std::string>(*unknown.instead.at(name)), "unknown") << name;
  }
  EXPECT_FALSE(is_taken_over("tailrace_covered_cells", &unknown));
}

TEST(CopiedNotes, GuardsEndWithTheirMasksAndChunks) {
  const Guards all = guards("sign+sum+monotone=1+region=/a:0.5+region=/b:0.25+region=0..4:0.125");
  const auto only_b = [](const std::string& mask) { return mask == "/b"; };
  EXPECT_EQ(guards_of_copy(all, true, only_b),
            guards("sign+sum+monotone=1+region=/b:0.25+region=0..4:0.125"));
  EXPECT_EQ(guards_of_copy(all, false, only_b), guards("sign+region=/b:0.25+region=0..4:0.125"));
}

TEST(CopiedNotes, RowsOfManySayWhatAllSay) {
  RowNotes some{true, "trz, abs=1", 1, 0.5, guards("sign+minmax+region=0..4:0.125")};
  RowNotes others = some;
  others.absolute_bound = 2;
  others.max_error = 0.25;
  RowNotes all = of_all_rows(some, others);
  EXPECT_TRUE(all.recorded);
  EXPECT_EQ(all.absolute_bound, 2);
  EXPECT_EQ(all.max_error, 0.5);
  EXPECT_EQ(all.guards, guards("sign"));
  // Order and number of the datasets do not matter.
  EXPECT_EQ(of_all_rows(all, some).guards, guards("sign"));
  EXPECT_EQ(of_all_rows(some, all).guards, guards("sign"));
  others.guards = guards("zero");
  others.max_error.reset();
  all = of_all_rows(some, others);
  EXPECT_EQ(all.guards, Guards());
  EXPECT_FALSE(all.max_error);
  const CopiedNotes notes = notes_of_rows(some, all);
  EXPECT_EQ(notes.instead.size(), 3U);
  EXPECT_EQ(std::get<double>(*notes.instead.at(kAbsoluteBoundAttribute)), 2);
  EXPECT_FALSE(notes.instead.at(kMaxErrorAttributeName));
  EXPECT_FALSE(notes.instead.at(kGuardAttribute));
  EXPECT_TRUE(notes_of_rows(some, some).instead.empty());
  others.as_requested = "trz, abs=2";
  EXPECT_FALSE(of_all_rows(some, others).recorded);
  EXPECT_FALSE(of_all_rows(some, RowNotes()).recorded);
}

TEST(CopiedNotes, RowsWithOtherBoundsAreWithinTheLargestAbsoluteOne) {
  RowNotes some{true, "trz, rel=1e-3", 0.5, 0.25, guards("sign")};
  RowNotes others{true, "trz, abs=2", 2, 1.0, guards("sign")};
  some.codec = others.codec = "trz";
  RowNotes third = some;
  third.as_requested = "trz, rel=1e-4";
  for (const RowNotes& all : {of_all_rows(of_all_rows(some, others), third),
                              of_all_rows(third, of_all_rows(others, some))}) {
    ASSERT_TRUE(all.recorded);
    EXPECT_EQ(all.guards, guards("sign"));
    const CopiedNotes notes = notes_of_rows(some, all);
    EXPECT_EQ(std::get<std::string>(*notes.instead.at(kBoundModeAttribute)), "abs");
    EXPECT_EQ(std::get<double>(*notes.instead.at(kBoundAskedAttribute)), 2);
    EXPECT_EQ(std::get<double>(*notes.instead.at(kAbsoluteBoundAttribute)), 2);
    EXPECT_EQ(std::get<double>(*notes.instead.at(kMaxErrorAttributeName)), 1);
  }
  others.absolute_bound = 0;  // A bound of another kind, or no bound.
  EXPECT_FALSE(of_all_rows(some, others).recorded);
  others.absolute_bound = 2;
  others.codec = "zfp";
  EXPECT_FALSE(of_all_rows(some, others).recorded);
}

}  // namespace
}  // namespace tailrace
