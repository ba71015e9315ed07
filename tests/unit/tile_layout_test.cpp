// Positions of tiles in a domain, from attributes or from values of coordinates.

#include "describe/tile_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tailrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TileFacts by_values(std::uint64_t source, double first, double last, std::uint64_t n) {
  TileFacts facts;
  facts.source = source;
  facts.n_values = n;
  facts.order = {n, first, last, first <= last, first >= last};
  return facts;
}

TileFacts by_attribute(std::uint64_t source, std::uint64_t begin, std::uint64_t end) {
  TileFacts facts;
  facts.source = source;
  facts.n_values = end - begin;
  facts.has_span = true;
  facts.span = {begin, end, 20};
  return facts;
}

Result<TileLayout> layout_of(const std::vector<std::vector<TileFacts>>& facts, std::size_t n) {
  const std::vector<std::string> names = {"/y", "/x"};
  return TileLayout::make(std::span(names).first(facts.size()), facts, n,
                          [](std::uint64_t s) { return "in_" + std::to_string(s); });
}

TEST(TileLayout, ValuesGiveTheOrder) {
  // Two rows of two tiles; y descends, x ascends, and the list is unordered.
  const auto layout = layout_of(
      {{by_values(0, 1, 0, 2), by_values(1, 5, 3, 3), by_values(2, 1, 0, 2), by_values(3, 5, 3, 3)},
       {by_values(0, 10, 13, 4), by_values(1, 0, 9, 10), by_values(2, 0, 9, 10),
        by_values(3, 10, 13, 4)}},
      4);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  const std::vector<std::string> dimensions = {"/time", "/y", "/x"};
  const std::vector<std::uint32_t> axes = layout->axes_of(dimensions);
  EXPECT_THAT(axes, ElementsAre(TileLayout::nowhere, 0U, 1U));
  EXPECT_EQ(layout->domain_shape(axes, {7, 2, 4}), (Shape{7, 5, 14}));
  EXPECT_EQ(layout->box_of(axes, {7, 2, 4}, 0), (Box{{0, 3, 10}, {7, 2, 4}}));
  EXPECT_EQ(layout->box_of(axes, {7, 3, 10}, 1), (Box{{0, 0, 0}, {7, 3, 10}}));
  EXPECT_THAT(layout->missing(axes, {7, 5, 14}), ElementsAre());
  // The coordinate y of in_2 equals that of in_0.
  const std::vector<std::uint32_t> y = {0};
  EXPECT_EQ(layout->owner(y, 2), 0U);
  EXPECT_EQ(layout->n_sharing(y, 2), 2U);
  EXPECT_EQ(layout->n_sharing(axes, 2), 1U);
}

TEST(TileLayout, AttributesLeaveGaps) {
  const auto layout = layout_of({{by_attribute(0, 5, 9), by_attribute(1, 12, 20)}}, 2);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  const std::vector<std::uint32_t> axes = {0};
  EXPECT_EQ(layout->domain_shape(axes, {4}), Shape{20});
  EXPECT_THAT(layout->missing(axes, {20}), ElementsAre(Box{{0}, {5}}, Box{{9}, {3}}));
  ByteWriter writer;
  layout->pack(writer);
  ByteReader reader(writer.bytes());
  const TileLayout copy = TileLayout::unpack(reader);
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(copy.box_of(axes, {8}, 1), (Box{{12}, {8}}));
}

TEST(TileLayout, WhatDoesNotFitTogetherIsNamed) {
  const auto refusal = [](const std::vector<TileFacts>& facts) {
    return layout_of({facts}, facts.size()).status().message();
  };
  EXPECT_THAT(refusal({by_attribute(0, 0, 9), by_attribute(1, 8, 20)}),
              HasSubstr("in_0 and in_1 overlap along dimension \"/y\": 1 to 9, and 9 to 20"));
  EXPECT_THAT(refusal({by_values(0, 0, 9, 10), by_values(1, 5, 14, 10)}),
              HasSubstr("in_0 and in_1 overlap"));
  EXPECT_THAT(refusal({by_values(0, 0, 9, 10), by_values(1, 0, 9, 10)}),
              HasSubstr("in_0 and in_1 are the same tile: /y 1 to 10"));
  EXPECT_THAT(refusal({by_values(0, 0, 9, 10), by_values(1, 14, 10, 5)}),
              HasSubstr("ascends in some inputs and descends in others"));
  EXPECT_THAT(refusal({by_values(0, 0, 9, 10), by_attribute(1, 10, 20)}),
              HasSubstr("domain_decomposition is missing"));
}

}  // namespace
}  // namespace tailrace
