// The client data words of the trz filter: written words are read back, and all others are refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "trz/base/set_number.hpp"
#include "trz/book/book.hpp"
#include "trz/client_data.hpp"

namespace tailrace::trz {
namespace {

using ::testing::HasSubstr;

FilterRequest some_request() {
  FilterRequest request;
  request.kind = BoundKind::absolute;
  request.bound = 1e-3;
  request.settings.preset = Preset::ratio;
  request.settings.predictor = Predictor::lorenzo;
  request.settings.dimensions = 4;
  request.settings.spline = Spline::natural;
  request.settings.last_axis = 2;
  request.settings.lossless_stage = Choice::on;
  return request;
}

TEST(TrzClientData, PinnedWords) {
  // Files contain these words: a change here is a change of the format.
  EXPECT_EQ(client_words(FilterRequest{}), (std::vector<std::uint32_t>{1, 0, 0, 0}));
  EXPECT_EQ(client_words(some_request()),
            (std::vector<std::uint32_t>{0x101, 0x233422, 0xD2F1A9FC, 0x3F50624D}));
  FilterChunk chunk;
  chunk.dtype = DType::f64;
  chunk.shape = {7, 1, 4294967295};
  chunk.fill_value = 1.0;
  EXPECT_EQ(client_words(FilterRequest{}, chunk),
            (std::vector<std::uint32_t>{0x30001, 0, 0, 0, 0x301, 7, 1, 0xFFFFFFFF, 0, 0x3FF00000}));
}

/// Plug-ins older than bit planes refuse these bits.
TEST(TrzClientData, BitPlanesStandWhereNothingDid) {
  FilterRequest request = some_request();
  request.settings.bit_planes = 8;
  EXPECT_EQ(client_words(request)[1], 0x80233422U);
  const Result<ClientData> read = read_client_words(client_words(request));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->request, request);
  request.settings.bit_planes = 9;
  EXPECT_FALSE(read_client_words(client_words(request)).ok());
  request.settings.bit_planes = 1;
  request.settings.coarse_views = 1;
  EXPECT_FALSE(read_client_words(client_words(request)).ok());
  EXPECT_EQ(parse_filter_request("abs=1,refine=3")->settings.bit_planes, 3);
  for (const auto& [text, why] :
       {std::pair{"abs=1,refine=9", "refine must be one of off, 1, 2, 3, 4, 5, 6, 7, 8"},
        {"abs=1,refine=2,coarse=1", "coarse and refine exclude each other"}}) {
    EXPECT_THAT(parse_filter_request(text).status().message(), HasSubstr(why));
  }
}

TEST(TrzClientData, ReadsWhatIsWritten) {
  FilterRequest with_book = some_request();
  with_book.book_bytes = {'T', 'R', 'Z', 'B', 5};
  FilterRequest pointwise;
  pointwise.kind = BoundKind::pointwise;
  pointwise.bound = 0.5;
  pointwise.settings.preset = Preset::fast;
  for (const FilterRequest& request : {FilterRequest{}, some_request(), with_book, pointwise}) {
    Result<ClientData> first = read_client_words(client_words(request));
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_EQ(first->request, request);
    EXPECT_FALSE(first->chunk.has_value());
    for (const DType dtype : {DType::f32, DType::f64, DType::i8, DType::u64}) {
      for (const std::optional<double> fill : {std::optional<double>(), std::optional(-1e34)}) {
        const FilterChunk chunk{dtype, {3, 4, 5}, fill};
        const std::vector<std::uint32_t> words = client_words(request, chunk);
        Result<ClientData> both = read_client_words(words);
        ASSERT_TRUE(both.ok()) << both.status().message();
        EXPECT_EQ(both->request, request);
        EXPECT_EQ(both->chunk, chunk);
        // One word too few, or one too many, is invalid.
        EXPECT_FALSE(read_client_words(std::span(words).first(words.size() - 1)).ok());
        std::vector<std::uint32_t> longer = words;
        longer.push_back(0);
        EXPECT_FALSE(read_client_words(longer).ok());
      }
    }
  }
}

TEST(TrzClientData, NoWordsMeanExactly) {
  Result<ClientData> data = read_client_words({});
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->request, FilterRequest{});
}

TEST(TrzClientData, RefusesUnknownNumbers) {
  const FilterChunk chunk{DType::f32, {3, 4}, std::nullopt};
  const std::vector<std::uint32_t> words = client_words(some_request(), chunk);
  const auto with = [&](std::size_t index, std::uint32_t word) {
    std::vector<std::uint32_t> bent = words;
    bent[index] = word;
    return read_client_words(bent).ok();
  };
  EXPECT_TRUE(with(0, words[0]));
  EXPECT_FALSE(with(0, words[0] + 1));         // another version
  EXPECT_FALSE(with(0, words[0] | 3U << 8));   // another kind of bound
  EXPECT_FALSE(with(0, words[0] | 1U << 19));  // an unknown flag
  for (unsigned knob = 0; knob < 8; ++knob) EXPECT_FALSE(with(1, 0xFU << (4 * knob))) << knob;
  EXPECT_FALSE(with(3, 0xBF50624D));    // a bound below 0
  EXPECT_FALSE(with(3, 0x7FF00000));    // infinite, or NaN
  EXPECT_FALSE(with(4, 10 | 2U << 8));  // an unknown type
  EXPECT_FALSE(with(4, 0));             // rank 0
  EXPECT_FALSE(with(4, 33U << 8));      // rank 33
  EXPECT_FALSE(with(5, 0));             // an extent of 0
  EXPECT_FALSE(read_client_words(std::vector<std::uint32_t>{1U | 1U << 17, 0, 0, 0}).ok());
}

TEST(TrzClientData, RandomWordsAreReadOrRefused) {
  std::uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 33);
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint32_t> words(next() % 40);
    for (std::uint32_t& word : words) word = next() % 4 == 0 ? next() : next() % 8;
    if (!words.empty() && next() % 2 == 0) words[0] = 1 | (next() % 3) << 8 | (next() % 8) << 16;
    Result<ClientData> data = read_client_words(words);
    if (!data.ok() || words.empty()) continue;
    EXPECT_TRUE(std::isfinite(data->request.bound));
    const std::vector<std::uint32_t> again =
        data->chunk ? client_words(data->request, *data->chunk) : client_words(data->request);
    EXPECT_EQ(again.size(), words.size());
  }
}

TEST(TrzClientData, FillValuesAreRecordedInTheFieldsType) {
  EXPECT_EQ(recorded_fill(DType::f64, 0.1), 0.1);
  EXPECT_EQ(recorded_fill(DType::f32, 0.1), static_cast<double>(0.1F));
  EXPECT_EQ(recorded_fill(DType::f32, 1e300), std::numeric_limits<double>::infinity());
  EXPECT_EQ(recorded_fill(DType::f32, std::nan("")), std::nullopt);
  EXPECT_EQ(recorded_fill(DType::i32, 7.0), std::nullopt);
  EXPECT_EQ(recorded_fill(DType::f32, std::nullopt), std::nullopt);
}

TEST(TrzClientData, AnUnsetFillValueRaisesNoFloatingPointException) {
  for (const double left : {std::numeric_limits<double>::signaling_NaN(), 5e-324}) {
    std::optional<double> fill = left;
    fill.reset();  // Its memory keeps the number.
    std::feclearexcept(FE_ALL_EXCEPT);
    EXPECT_EQ(recorded_fill(DType::f32, fill), std::nullopt);
    EXPECT_EQ(recorded_fill(DType::f64, fill), std::nullopt);
    EXPECT_EQ(set_number(fill), nullptr);
    EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_UNDERFLOW), 0);
  }
  for (const double number : {0.0, -1.5, 5e-324, std::numeric_limits<double>::infinity()}) {
    const std::optional<double> set = number;
    EXPECT_EQ(set_number(set), &*set);
  }
  const std::optional<double> nan = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(set_number(nan), nullptr);
}

TEST(TrzClientData, TextBecomesARequest) {
  FilterRequest expected = some_request();
  Result<FilterRequest> request = parse_filter_request(
      "abs=1e-3,preset=ratio,predictor=lorenzo,dimension=4,spline=natural,last_axis=2,lossless=on");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(*request, expected);
  EXPECT_EQ(*parse_filter_request(""), FilterRequest{});
  EXPECT_EQ(*parse_filter_request("bound=none"), FilterRequest{});
  EXPECT_EQ(parse_filter_request("bound=pw_rel=0.5")->kind, BoundKind::pointwise);
  const auto why = [](const char* text) { return parse_filter_request(text).status().message(); };
  EXPECT_THAT(why("rel=1e-3"), HasSubstr("one chunk at a time"));
  EXPECT_THAT(why("psnr=60"), HasSubstr("one chunk at a time"));
  EXPECT_THAT(why("abs=1,pw_rel=0.1"), HasSubstr("more than one bound"));
  EXPECT_THAT(why("abs=0"), HasSubstr("> 0"));
  EXPECT_THAT(why("preset=best"), HasSubstr("default, fast, ratio"));
  EXPECT_THAT(why("level=3"), HasSubstr("unknown setting \"level\""));
}

TEST(TrzClientData, ABookIsGivenByItsWords) {
  BookHistograms histograms;
  histograms.class_ids[0] = 90;
  histograms.class_ids[3] = 9;
  FilterRequest request;
  request.kind = BoundKind::absolute;
  request.bound = 0.5;
  request.book_bytes = Book::from_histograms(histograms).serialize();
  const std::vector<std::uint32_t> words = client_words(request);
  std::string text = "abs=0.5,book=";
  for (std::size_t i = 4; i < words.size(); ++i) {
    text += (i == 4 ? "" : ":") + std::to_string(words[i]);
  }
  Result<FilterRequest> parsed = parse_filter_request(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, request);
  EXPECT_FALSE(parse_filter_request(text + ":0").ok());
  EXPECT_FALSE(parse_filter_request(text.substr(0, text.rfind(':'))).ok());
  EXPECT_FALSE(parse_filter_request("book=5:1:2").ok());
}

TEST(TrzClientData, AnIdleBookIsLeftOut) {
  const std::string book = "book=10:0x425A5254:1:0";  // A book without codes.
  const auto book_bytes = [&](const std::string& settings) {
    Result<FilterRequest> parsed = parse_filter_request(settings + book);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return parsed.ok() ? parsed->book_bytes.size() : 0;
  };
  EXPECT_EQ(book_bytes("abs=0.5,"), 10U);
  EXPECT_EQ(book_bytes("pw_rel=0.5,preset=ratio,"), 10U);
  EXPECT_EQ(book_bytes(""), 0U);
  EXPECT_EQ(book_bytes("abs=0.5,preset=fast,"), 0U);
}

}  // namespace
}  // namespace tailrace::trz
