// The book counter: rounds, sums, the cost of a book, and the setting book=auto.

#include "trz/book/book_counter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codec/auto_book.hpp"
#include "core/codec_registry.hpp"
#include "trz/book/book.hpp"

namespace tailrace::trz {
namespace {

const Shape kShape = {32, 48, 64};
constexpr double kBound = 1e-3;

std::vector<float> rough_waves(unsigned seed, double noise) {
  std::mt19937 random(seed);
  std::normal_distribution<double> deviation(0, noise);
  std::vector<float> values;
  for (std::size_t i = 0; i < n_elements(kShape); ++i) {
    values.push_back(
        static_cast<float>(std::sin(0.01 * static_cast<double>(i % 4096)) + deviation(random)));
  }
  return values;
}

CodecRequest request(const std::string& book) {
  CodecRequest asked;
  asked.name = "trz";
  if (!book.empty()) asked.settings = {{"book", book}};
  asked.dtype = DType::f32;
  asked.chunk_shape = kShape;
  asked.absolute_bound = kBound;
  return asked;
}

Buffer buffer_of(const std::vector<float>& values) {
  return Buffer::copy_of(std::as_bytes(std::span(values)));
}

/// A clock that advances one second per call, so that encoding a twin takes one second either way.
BookCounter::Clock ticking() {
  return [now = std::make_shared<double>(0)] { return *now += 1; };
}

std::vector<std::byte> encoded_by(const Codec& codec, const std::vector<float>& values) {
  Result<EncodedBytes> encoded = codec.encode(buffer_of(values));
  EXPECT_TRUE(encoded.ok()) << encoded.status().message();
  const auto bytes = std::as_const(encoded->buffer).bytes();
  return {bytes.begin(), bytes.end()};
}

TEST(BookCounter, LooksAtOneInSixteenAndOneInTwoHundred) {
  BookCounter counter(7, 0, ticking());
  std::uint64_t n_counts = 0;
  std::uint64_t n_twins = 0;
  for (int i = 0; i < 3200; ++i) {
    const BookCounter::Task task = counter.next();
    EXPECT_FALSE(task.count && task.twin);
    n_counts += task.count ? 1 : 0;
    n_twins += task.twin ? 1 : 0;
  }
  EXPECT_EQ(n_counts, 200U);
  EXPECT_EQ(n_twins, 16U);
  EXPECT_EQ(counter.n_chunks(), 3207U);
  BookCounter eager(1, 3, ticking());
  for (const bool count : {true, true, true, false}) EXPECT_EQ(eager.next().count, count);
  EXPECT_TRUE(BookCounter(0, 0, ticking()).next().count);
}

TEST(BookCounter, CountingMakesABookAndChangesNoBytes) {
  const std::vector<float> values = rough_waves(1, 5e-3);
  const auto counter = std::make_shared<BookCounter>(0, 0, ticking());
  Result<std::unique_ptr<Codec>> counting = make_counting_codec(request("auto"), counter);
  ASSERT_TRUE(counting.ok()) << counting.status().message();
  Result<std::unique_ptr<Codec>> plain = make_codec(request(""));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ((*counting)->filters()[0].final_client_data, (*plain)->filters()[0].final_client_data);
  EXPECT_EQ(encoded_by(**counting, values), encoded_by(**plain, values));

  BookTally tally = counter->take();
  EXPECT_EQ(tally.n_counted, 1U);
  EXPECT_EQ(tally.counted_bytes, encoded_by(**plain, values).size());
  CodecRequest with_book = request("auto");
  name_book(book_from(tally).serialize(), with_book.settings);
  Result<std::unique_ptr<Codec>> sharing = make_codec(with_book);
  ASSERT_TRUE(sharing.ok()) << sharing.status().message();
  const std::size_t n_shared = encoded_by(**sharing, values).size();
  EXPECT_NEAR(static_cast<double>(n_shared), static_cast<double>(tally.counted_bytes),
              5e-3 * static_cast<double>(tally.counted_bytes));
  EXPECT_EQ(counter->take().n_counted, 0U);  // The tally has been taken already.
}

TEST(BookCounter, CostAgreesWithWhatTheEncoderWrites) {
  const std::vector<float> old_values = rough_waves(1, 2e-3);
  Workspace workspace;
  ChunkType type;
  type.shape = kShape;
  type.bound = kBound;
  BookHistograms old_counts;
  ASSERT_TRUE(
      count_for_book(type, {}, std::as_bytes(std::span(old_values)), old_counts, workspace).ok());
  const Book book = Book::from_histograms(old_counts);
  for (const double noise : {2e-3, 3e-3, 8e-3}) {
    const std::vector<float> values = rough_waves(2, noise);
    const auto bytes = std::as_bytes(std::span(values));
    std::vector<std::byte> out(encoded_bytes_max(bytes.size()));
    BookHistograms counted;
    const Result<std::size_t> own = encode(type, {}, bytes, out, workspace, &counted);
    type.book = &book;
    const Result<std::size_t> shared = encode(type, {}, bytes, out, workspace);
    type.book = nullptr;
    ASSERT_TRUE(own.ok() && shared.ok());
    const BookCost cost = book_cost(book, counted);
    const double told = static_cast<double>(cost.book_bytes) - static_cast<double>(cost.own_bytes);
    const double seen = static_cast<double>(*shared) - static_cast<double>(*own);
    // Within a thousandth of the chunk, because the cost does not model all of its forms.
    EXPECT_NEAR(told, seen, 1e-3 * static_cast<double>(*own)) << noise;
  }
}

TEST(BookCounter, TwinsLeaveTheBytesOfTheBook) {
  const std::vector<float> values = rough_waves(3, 5e-3);
  BookHistograms counts;
  Workspace workspace;
  ChunkType type;
  type.shape = kShape;
  type.bound = kBound;
  ASSERT_TRUE(count_for_book(type, {}, std::as_bytes(std::span(values)), counts, workspace).ok());
  CodecRequest with_book = request("auto");
  name_book(Book::from_histograms(counts).serialize(), with_book.settings);
  Result<std::unique_ptr<Codec>> plain = make_codec(with_book);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  const auto counter = std::make_shared<BookCounter>(0, 0, ticking());
  Result<std::unique_ptr<Codec>> counting = make_counting_codec(with_book, counter);
  ASSERT_TRUE(counting.ok());
  const std::vector<std::byte> expected = encoded_by(**plain, values);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(encoded_by(**counting, values), expected) << i;
  const BookTally tally = counter->take();
  EXPECT_EQ(tally.n_counted, 1U);
  EXPECT_EQ(tally.n_twins, 1U);
  EXPECT_EQ(tally.twin_book_ns, 1'000'000'000U);
  EXPECT_EQ(tally.twin_own_ns, 1'000'000'000U);
  EXPECT_GT(tally.own_bytes, 0U);
}

TEST(BookCounter, LargeCountsAreScaled) {
  BookTally tally;
  tally.counts.resize(256 * kBookKinds);
  tally.of_kind(1)[3] = std::uint64_t{1} << 40;
  tally.of_kind(1)[4] = std::uint64_t{1} << 39;
  tally.of_kind(1)[5] = 1;
  EXPECT_EQ(tally.kinds(), 2U);
  const Book book = book_from(tally);
  EXPECT_EQ(book.class_bytes(1).bits[3], 1);
  EXPECT_EQ(book.class_bytes(1).bits[4], 2);
  EXPECT_GT(book.class_bytes(1).bits[5], 2);
  EXPECT_EQ(BookTally().kinds(), 0U);
}

TEST(AutoBook, SettingsAreReadAndTakenOut) {
  CodecSettingList settings = {{"preset", "ratio"}, {"book", "auto"}, {"book_loss", "2"}};
  Result<std::optional<AutoBook>> wish = take_auto_book(settings);
  ASSERT_TRUE(wish.ok() && wish->has_value());
  EXPECT_DOUBLE_EQ((*wish)->most_loss, 0.02);
  EXPECT_EQ(settings, (CodecSettingList{{"preset", "ratio"}}));
  settings = {{"book", "auto"}};
  wish = take_auto_book(settings);
  ASSERT_TRUE(wish.ok() && wish->has_value());
  EXPECT_DOUBLE_EQ((*wish)->most_loss, 0.005);
  settings = {{"book", "4:1"}};
  EXPECT_FALSE(take_auto_book(settings)->has_value());
  EXPECT_EQ(settings.size(), 1U);
  for (const char* loss : {"0", "-1", "101", "nan", "much"}) {
    settings = {{"book", "auto"}, {"book_loss", loss}};
    EXPECT_EQ(take_auto_book(settings).status().code(), Code::invalid_argument) << loss;
  }
}

}  // namespace
}  // namespace tailrace::trz
