// Numbers of events: runs of equal numbers, the groups that get them, and lookups of rows in
// /spill.

#include "concat/concat_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "concat_input_files.hpp"

namespace tailrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> expanded(const KeyRows& rows, std::uint64_t first, std::uint64_t n,
                                   std::int64_t offset) {
  std::vector<std::int64_t> values(n);
  if (n > 0) rows.expand(first, n, offset, std::as_writable_bytes(std::span(values)).data());
  return values;
}

TEST(KeyRows, ExpandAnyRangeOfRows) {
  std::mt19937 random(11);
  KeyRows rows;
  std::vector<std::int64_t> values;
  for (int i = 0; i < 300; ++i) {
    // Runs of all lengths, and numbers that occur again.
    const auto value = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 20 : i / 7);
    rows.add(value);
    values.push_back(value);
  }
  ASSERT_EQ(rows.n_rows(), values.size());
  for (int trial = 0; trial < 500; ++trial) {
    const std::uint64_t first = random() % values.size();
    const std::uint64_t n = random() % (values.size() - first + 1);
    const auto offset = static_cast<std::int64_t>(random() % 1000) - 500;
    std::vector<std::int64_t> expected(values.begin() + static_cast<std::ptrdiff_t>(first),
                                       values.begin() + static_cast<std::ptrdiff_t>(first + n));
    for (std::int64_t& value : expected) value += offset;
    EXPECT_EQ(expanded(rows, first, n, offset), expected);
  }
}

TEST(KeyRows, ARunTakesOneEntry) {
  KeyRows rows;
  EXPECT_EQ(rows.n_rows(), 0U);
  for (int i = 0; i < 1000; ++i) rows.add(5);
  EXPECT_EQ(rows.n_rows(), 1000U);
  EXPECT_LE(rows.memory_bytes(), 16U);
}

/// The columns of a file, one integer per row: "/spill/run" and so on.
using Columns = std::map<std::string, std::vector<std::int32_t>>;

std::unique_ptr<ConcatInput> input_with(const TestFolder& folder, const Columns& columns,
                                        std::uint64_t width = 1) {
  const std::string path = folder / "in.h5";
  make_file(path, [&](hid_t file) {
    for (const auto& [name, values] : columns) {
      const std::string group = name.substr(0, name.rfind('/'));
      if (H5Lexists(file, group.c_str(), H5P_DEFAULT) <= 0) {
        H5Gclose(H5Gcreate2(file, group.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      }
      const hid_t dataset = make_dataset(file, name.c_str(),
                                         {{values.size() / width, width}, {0, width}, {4, width}});
      if (!values.empty()) {
        H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
      }
      H5Dclose(dataset);
    }
  });
  return opened(path, whole);
}

const std::vector<std::string> names = {"run", "evt"};

Columns events() {
  return {{"/spill/run", {3, 3, 4, 4}},
          {"/spill/evt", {1, 2, 1, 2}},
          {"/hits/run", {3, 3, 4, 4, 4, 3}},
          {"/hits/evt", {2, 2, 1, 1, 2, 1}},
          {"/empty/run", {}},
          {"/empty/evt", {}},
          {"/other/run", {9, 9}}};
}

TEST(ConcatKeys, GroupsThatHaveAllNamesSpillFirst) {
  const TestFolder folder;
  const auto input = input_with(folder, events());
  const auto groups = find_keyed_groups(input->datasets(), names);
  ASSERT_TRUE(groups.ok()) << text_of(groups.status());
  std::vector<std::string> paths;
  for (const KeyedGroup& group : *groups) {
    paths.push_back(group.path);
    EXPECT_EQ(group.key_path, group.path + "/evt.seq");
    EXPECT_EQ(input->datasets()[group.like].path, group.path + "/evt");
  }
  EXPECT_EQ(paths.front(), "/spill");
  EXPECT_THAT(paths, testing::UnorderedElementsAre("/spill", "/hits", "/empty"));
}

TEST(ConcatKeys, RowsHaveTheNumbersOfTheirEvents) {
  const TestFolder folder;
  const auto input = input_with(folder, events());
  const auto groups = find_keyed_groups(input->datasets(), names);
  ASSERT_TRUE(groups.ok()) << text_of(groups.status());
  const auto keys = number_events(*input, *groups, names);
  ASSERT_TRUE(keys.ok()) << text_of(keys.status());
  EXPECT_EQ(keys->n_events, 4U);
  ASSERT_EQ(keys->groups.size(), groups->size());
  for (std::size_t g = 0; g < groups->size(); ++g) {
    const KeyRows& rows = keys->groups[g];
    const std::vector<std::int64_t> values = expanded(rows, 0, rows.n_rows(), 10);
    const std::map<std::string, std::vector<std::int64_t>> expected = {
        {"/spill", {10, 11, 12, 13}}, {"/hits", {11, 11, 12, 12, 13, 10}}, {"/empty", {}}};
    EXPECT_EQ(values, expected.at((*groups)[g].path));
  }
}

/// An event that occurs twice in /spill is one event.
TEST(ConcatKeys, AnEventThatComesAgain) {
  const TestFolder folder;
  const auto input =
      input_with(folder, {{"/spill/run", {1, 2, 1, 5}}, {"/spill/evt", {0, 0, 0, 0}}});
  const auto groups = find_keyed_groups(input->datasets(), names);
  ASSERT_TRUE(groups.ok()) << text_of(groups.status());
  const auto keys = number_events(*input, *groups, names);
  ASSERT_TRUE(keys.ok()) << text_of(keys.status());
  EXPECT_EQ(keys->n_events, 3U);
  EXPECT_THAT(expanded(keys->groups[0], 0, 4, 0), ElementsAre(0, 1, 0, 2));
}

TEST(ConcatKeys, ARowWithoutItsEventIsNamed) {
  const TestFolder folder;
  Columns columns = events();
  columns["/hits/evt"][4] = 7;
  const auto input = input_with(folder, columns);
  const auto groups = find_keyed_groups(input->datasets(), names);
  ASSERT_TRUE(groups.ok()) << text_of(groups.status());
  const Status status = number_events(*input, *groups, names).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("\"/hits/evt\": row 4"));
  EXPECT_THAT(status.message(), HasSubstr("(4, 7)"));
}

TEST(ConcatKeys, ColumnsOfDifferentLengths) {
  const TestFolder folder;
  Columns columns = events();
  columns["/hits/run"].pop_back();
  const auto input = input_with(folder, columns);
  const auto groups = find_keyed_groups(input->datasets(), names);
  ASSERT_TRUE(groups.ok()) << text_of(groups.status());
  const Status status = number_events(*input, *groups, names).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), HasSubstr("\"/hits\""));
}

Status groups_of(const Columns& columns, std::uint64_t width = 1) {
  const TestFolder folder;
  return find_keyed_groups(input_with(folder, columns, width)->datasets(), names).status();
}

TEST(ConcatKeys, WhatCannotHaveKeys) {
  Columns columns = events();
  columns.erase("/spill/evt");
  const Status missing = groups_of(columns);
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_THAT(missing.message(), HasSubstr("\"/spill\" must contain the datasets run, evt"));
  columns = events();
  columns["/hits/evt.seq"] = {1, 2};
  const Status there = groups_of(columns);
  EXPECT_EQ(there.code(), Code::already_exists);
  EXPECT_THAT(there.message(), HasSubstr("/hits/evt.seq"));
  const Status wide = groups_of({{"/spill/run", {1, 2, 3, 4}}, {"/spill/evt", {1, 2, 3, 4}}}, 2);
  EXPECT_EQ(wide.code(), Code::unsupported);
  EXPECT_THAT(wide.message(), HasSubstr("one integer per row"));
}

}  // namespace
}  // namespace tailrace::test
