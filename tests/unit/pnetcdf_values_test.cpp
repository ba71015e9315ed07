// Layers of the PnetCDF frontend that need no file: type conversion, and names.

#include <gtest/gtest.h>
#include <pnetcdf.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "pnetcdf/netcdf_rules.hpp"

namespace tailrace::pnetcdf {
namespace {

struct Converted {
  int status = NC_NOERR;
  double value = 0;
};

template <class From, class To>
Converted convert(From from, ModelType from_type, ModelType to_type, To fill, bool loose = false) {
  To to{};
  Converted result;
  result.status = convert_values(reinterpret_cast<const std::byte*>(&from), from_type,
                                 reinterpret_cast<std::byte*>(&to), to_type, 1,
                                 reinterpret_cast<const std::byte*>(&fill), loose);
  result.value = static_cast<double>(to);
  return result;
}

TEST(PnetcdfValues, FractionsAreCutOff) {
  const Converted down = convert(-2.9, ModelType::f64, ModelType::i32, -1);
  EXPECT_EQ(down.status, NC_NOERR);
  EXPECT_EQ(down.value, -2);
}

TEST(PnetcdfValues, WhatDoesNotFitBecomesTheFillValue) {
  EXPECT_EQ(convert(128, ModelType::i32, ModelType::i8, std::int8_t{-7}).value, -7);
  EXPECT_EQ(convert(128, ModelType::i32, ModelType::i8, std::int8_t{-7}).status, NC_ERANGE);
  EXPECT_EQ(convert(-1, ModelType::i32, ModelType::u64, std::uint64_t{9}).status, NC_ERANGE);
  EXPECT_EQ(convert(1e39, ModelType::f64, ModelType::f32, 5.0F).value, 5);
  EXPECT_EQ(convert(std::nan(""), ModelType::f64, ModelType::i16, std::int16_t{3}).value, 3);
}

TEST(PnetcdfValues, NanAndSmallStayWhatTheyAre) {
  EXPECT_TRUE(std::isnan(convert(std::nan(""), ModelType::f64, ModelType::f32, 5.0F).value));
  EXPECT_EQ(convert(1e-300, ModelType::f64, ModelType::f32, 5.0F).status, NC_NOERR);
}

TEST(PnetcdfValues, EdgesOf64BitIntegers) {
  const double two_to_63 = std::ldexp(1.0, 63);
  EXPECT_EQ(convert(two_to_63, ModelType::f64, ModelType::i64, std::int64_t{1}).status, NC_ERANGE);
  EXPECT_EQ(convert(-two_to_63, ModelType::f64, ModelType::i64, std::int64_t{1}).status, NC_NOERR);
  EXPECT_EQ(convert(two_to_63, ModelType::f64, ModelType::u64, std::uint64_t{1}).value, two_to_63);
  EXPECT_EQ(convert(std::ldexp(1.0, 64), ModelType::f64, ModelType::u64, std::uint64_t{1}).status,
            NC_ERANGE);
  EXPECT_EQ(convert(std::numeric_limits<std::uint64_t>::max(), ModelType::u64, ModelType::i64,
                    std::int64_t{1})
                .status,
            NC_ERANGE);
}

TEST(PnetcdfValues, LooseBytesKeepTheirBits) {
  const std::uint8_t high = 200;
  EXPECT_EQ(convert(high, ModelType::u8, ModelType::i8, std::int8_t{1}, true).value, -56);
  EXPECT_EQ(convert(high, ModelType::u8, ModelType::i8, std::int8_t{1}, false).status, NC_ERANGE);
}

TEST(PnetcdfValues, OneBadValueSparesTheOthers) {
  const std::vector<std::int32_t> from = {1, 70000, 3};
  std::vector<std::int16_t> to(3);
  const std::int16_t fill = -1;
  EXPECT_EQ(convert_values(reinterpret_cast<const std::byte*>(from.data()), ModelType::i32,
                           reinterpret_cast<std::byte*>(to.data()), ModelType::i16, 3,
                           reinterpret_cast<const std::byte*>(&fill), false),
            NC_ERANGE);
  EXPECT_EQ(to, (std::vector<std::int16_t>{1, -1, 3}));
}

TEST(PnetcdfNames, AsNetcdfHasThem) {
  EXPECT_EQ(check_name("temperature_2m"), NC_NOERR);
  EXPECT_EQ(check_name("_FillValue"), NC_NOERR);
  EXPECT_EQ(check_name("gr\xc3\xb6\xc3\x9f"
                       "e"),
            NC_NOERR);
  EXPECT_EQ(check_name("with blank"), NC_NOERR);
  for (const char* bad : {"", " leading", "trailing ", "a/b", "a\tb", "-a", "\xc3", "\xed\xa0\x80",
                          "\xf5\x80\x80\x80", "\xc0\xaf"}) {
    EXPECT_EQ(check_name(bad), NC_EBADNAME) << bad;
  }
  EXPECT_EQ(check_name(nullptr), NC_EBADNAME);
  EXPECT_EQ(check_name(std::string(NC_MAX_NAME, 'a').c_str()), NC_NOERR);
  EXPECT_EQ(check_name(std::string(NC_MAX_NAME + 1, 'a').c_str()), NC_EMAXNAME);
}

}  // namespace
}  // namespace tailrace::pnetcdf
