// Losses that accumulate (core/losses.hpp): their texts, their total, and the attributes of a
// dataset.

#include "core/losses.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

namespace tailrace {
namespace {

Losses losses(const std::string& text) {
  const Result<Losses> parsed = parse_losses(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Losses();
}

TEST(Losses, TextsAreReadAsTheyAreWritten) {
  for (const char* text : {"", "abs=0.01", "pw_rel=0.001 then pw_rel=0.25", "unknown",
                           "abs=0.01 then unknown then abs=1e+300"}) {
    EXPECT_EQ(losses_text(losses(text)), text);
  }
  for (const char* text : {"none", "rel=0.1", "psnr=80", "abs", "abs=0", "abs=-1", "abs=nan",
                           "pw_rel=1", "abs=1 then", "abs=1 thenabs=1", "abs=1, abs=1"}) {
    EXPECT_FALSE(parse_losses(text).ok()) << text;
  }
  std::string many = "abs=1";
  for (int i = 0; i < 100; ++i) many += " then abs=1";
  EXPECT_FALSE(parse_losses(many).ok());
}

TEST(Losses, TotalIsTheSumRoundedUp) {
  EXPECT_EQ(total_of({}), ErrorBound());
  EXPECT_EQ(total_of(losses("abs=0.01")), (ErrorBound{BoundMode::abs, 0.01}));
  EXPECT_EQ(total_of(losses("abs=0.01 then abs=0.01")), (ErrorBound{BoundMode::abs, 0.02}));
  // The exact sum of these two doubles lies between two others.
  const double a = 1;
  const double b = 0x1p-60;
  const std::optional<ErrorBound> up = total_of({{BoundMode::abs, a}, {BoundMode::abs, b}});
  ASSERT_TRUE(up);
  EXPECT_EQ(up->value, std::nextafter(1.0, 2.0));
  const std::optional<ErrorBound> shares = total_of(losses("pw_rel=0.5 then pw_rel=0.25"));
  ASSERT_TRUE(shares);
  EXPECT_EQ(*shares, (ErrorBound{BoundMode::pw_rel, 0.875}));
}

TEST(Losses, NoTotalIsStatedWhereThereIsNone) {
  for (const char* text :
       {"unknown", "abs=1 then unknown", "abs=1 then pw_rel=0.1", "pw_rel=0.1 then abs=1",
        "pw_rel=0.5 then pw_rel=0.5", "abs=1e308 then abs=1e308"}) {
    EXPECT_FALSE(total_of(losses(text))) << text;
  }
}

TEST(Losses, SinceAnEarlierFileAreThoseBehind) {
  const Losses all = losses("abs=1 then abs=2 then pw_rel=0.1");
  EXPECT_EQ(losses_since(all, {}), all);
  EXPECT_EQ(losses_since(all, losses("abs=1 then abs=2")), losses("pw_rel=0.1"));
  EXPECT_EQ(losses_since(all, all), Losses());
  EXPECT_FALSE(losses_since(all, losses("abs=2")));
  EXPECT_FALSE(losses_since(losses("abs=1"), all));
}

/// The loss that a dataset's attributes record, by losses_text().
std::string told(const std::string& mode, std::optional<double> asked,
                 std::optional<double> absolute, bool lossy_filter = false,
                 const std::string& recorded = "") {
  return losses_text(losses_of({recorded, mode, asked, absolute, lossy_filter}));
}

TEST(Losses, OfADatasetByWhatItSays) {
  const std::nullopt_t no = std::nullopt;
  EXPECT_EQ(told("", no, no), "");
  EXPECT_EQ(told("none", no, 0.0, true), "");
  EXPECT_EQ(told("rel", 0.1, 0.0), "");
  EXPECT_EQ(told("rel", 0.1, 3.0), "abs=3");
  EXPECT_EQ(told("component", no, 3.0), "abs=3");
  EXPECT_EQ(told("pw_rel", 0.1, no), "pw_rel=0.1");
  EXPECT_EQ(told("", no, no, true), "unknown");
  EXPECT_EQ(told("unknown", no, no, true), "unknown");
  EXPECT_EQ(told("unknown", no, no), "");  // It is unknown whether there is a loss.
  EXPECT_EQ(told("abs", no, no), "unknown");
  EXPECT_EQ(told("none", no, HUGE_VAL), "unknown");
  EXPECT_EQ(told("abs", 3.0, 3.0, false, "abs=1 then abs=2"), "abs=1 then abs=2");
  EXPECT_EQ(told("", no, no, false, "nonsense"), "unknown");
}

}  // namespace
}  // namespace tailrace
