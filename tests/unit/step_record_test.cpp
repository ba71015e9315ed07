// StepRecord: fields by number and by position.

#include "write/write_step.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tailrace {
namespace {

FieldDefinition definition_of(const std::string& path, bool over_time = false) {
  FieldDefinition definition;
  definition.path = path;
  definition.shape = {4};
  definition.options.over_time = over_time;
  return definition;
}

Status put(StepRecord& record, std::size_t number) {
  const float values[4] = {};
  return record.put(number, {{0}, {4}}, values, false);
}

/// Ends a step with the fields that were defined since the last one.
void end_step(StepRecord& record, bool failed = false) {
  for (FieldState& field : record.fields) {
    if (field.is_new() && !failed) field.life = FieldLife::in_file;
  }
  record.forget_step(failed);
}

TEST(StepRecord, StepsInGroupsLeaveAsManyPlacesAsOneStepNeeds) {
  StepRecord record;
  ASSERT_TRUE(record.define_field(definition_of("/time", true)).ok());
  for (std::size_t step = 0; step < 1000; ++step) {
    const std::string group = "/step_" + std::to_string(step);
    for (std::size_t k = 0; k < 2; ++k) {
      const auto number = record.define_field(definition_of(group + "/u" + std::to_string(k)));
      ASSERT_TRUE(number.ok());
      ASSERT_EQ(*number, 1 + 2 * step + k) << "numbers count all fields";
      ASSERT_TRUE(put(record, *number).ok());
    }
    ASSERT_TRUE(put(record, 0).ok());
    end_step(record);
  }
  EXPECT_EQ(record.fields.size(), 3U);
  EXPECT_EQ(record.field(0).definition.path, "/time");
  ASSERT_EQ(record.paths().size(), 2001U);
  EXPECT_EQ(record.paths()[2000], "/step_999/u1");
}

TEST(StepRecord, AFieldThatHasLeftItsPlaceIsKnown) {
  StepRecord record;
  ASSERT_TRUE(record.define_field(definition_of("/a")).ok());
  end_step(record);
  ASSERT_TRUE(record.define_field(definition_of("/b")).ok());
  ASSERT_EQ(record.fields.size(), 1U);
  const Status again = put(record, 0);
  EXPECT_EQ(again.code(), Code::invalid_argument);
  EXPECT_NE(again.message().find("field \"/a\" is in the file already"), std::string::npos)
      << again.message();
  EXPECT_EQ(record.define_field(definition_of("/a")).status().code(), Code::already_exists);
  EXPECT_EQ(record.define_field(definition_of("/b")).status().code(), Code::already_exists);
  EXPECT_EQ(put(record, 7).code(), Code::invalid_argument);
}

TEST(StepRecord, ThePathOfAFieldWhoseStepHasFailedIsFree) {
  StepRecord record;
  ASSERT_TRUE(record.define_field(definition_of("/a")).ok());
  end_step(record, true);
  const auto lost = [&] {
    return put(record, 0).message().find("field \"/a\": its definition was lost") !=
           std::string::npos;
  };
  EXPECT_TRUE(lost());
  const auto other = record.define_field(definition_of("/b"));  // Takes the place.
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(lost());
  const auto again = record.define_field(definition_of("/a"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 2U);
  EXPECT_TRUE(put(record, *other).ok());
  EXPECT_TRUE(put(record, *again).ok());
  EXPECT_EQ(record.fields.size(), 2U);
}

}  // namespace
}  // namespace tailrace
