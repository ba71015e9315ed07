// Steps that repeat the previous one skip the work that only depends on definitions and boxes;
// other steps must not. Ranks are threads (ThreadComm).

#include <gtest/gtest.h>

#include <cstring>

#include "container_support.hpp"
#include "engine_support.hpp"
#include "support/options_of.hpp"
#include "thread_comm.hpp"

namespace tailrace::test {
namespace {

constexpr std::uint64_t kRows = 12;
constexpr std::uint64_t kColumns = 10;

/// Actions of a rank in one step. They are alike on all ranks except for the rows that each holds.
struct StepStory {
  bool puts_u = true;
  bool puts_v = true;
  bool reversed = false;   ///< The last rank holds the first rows.
  bool in_pieces = false;  ///< Each row is a separate put.
  bool says_more = false;  ///< The step also sets an attribute.
  bool fails = false;      ///< Rank 0 puts outside the shape.
};

const std::vector<StepStory> kStory = {
    {},
    {},
    {},
    {},
    {true, true, true},  // other owners
    {true, true, true},
    {true, true, true},
    {true, false, true},  // one field less
    {true, false, true},
    {true, false, true},
    {true, true, false, true},  // the field again, in pieces
    {true, true, false, true},
    {true, true, false, true},
    {true, true, false, true, true},  // the attribute must not get lost
    {true, true, false, true},
    {true, true, false, true, false, true},  // fails on one rank, and so on all
    {true, true, false, true},
    {false, true, false, true},
};

std::int32_t value_of(std::uint64_t field, std::uint64_t entry, std::uint64_t row,
                      std::uint64_t column) {
  return static_cast<std::int32_t>(((field * 50 + entry) * 100 + row) * 100 + column);
}

void put_rows(Writer& writer, std::size_t index, std::uint64_t entry, std::uint64_t first,
              std::uint64_t n_rows, bool in_pieces, std::vector<std::int32_t>& values) {
  values.clear();
  for (std::uint64_t r = 0; r < n_rows; ++r) {
    for (std::uint64_t c = 0; c < kColumns; ++c) {
      values.push_back(value_of(index, entry, first + r, c));
    }
  }
  const std::uint64_t n_puts = in_pieces ? n_rows : 1;
  for (std::uint64_t p = 0; p < n_puts; ++p) {
    const Box box{{first + p, 0}, {in_pieces ? 1 : n_rows, kColumns}};
    ASSERT_TRUE(writer.put(index, box, values.data() + p * kColumns, false).ok());
  }
}

class RepeatedSteps : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(RepeatedSteps, WriteTheSameAsSteps) {
  const auto& [mode, n_ranks] = GetParam();
  const TestFolder folder;
  const std::string path = folder / "out.h5";
  const FileOptions options = options_of("mode=" + mode + ",codec=deflate,chunk=4x5");
  std::vector<std::uint64_t> n_entries;
  run_ranks(n_ranks, [&, n = static_cast<std::uint64_t>(n_ranks)](std::unique_ptr<Comm> comm) {
    const auto rank = static_cast<std::uint64_t>(comm->rank());
    auto writer = Writer::create(std::move(comm), path, options);
    ASSERT_TRUE(writer.ok());
    std::vector<std::uint64_t> entries(2);
    for (const char* name : {"/u", "/v"}) {
      FieldDefinition definition{
          name, DType::i32, {kRows, kColumns}, options.field_defaults, false};
      definition.options.over_time = true;
      ASSERT_TRUE((*writer)->define_field(definition).ok());
    }
    std::vector<std::int32_t> values[2];
    for (const StepStory& story : kStory) {
      const std::uint64_t part = story.reversed ? n - 1 - rank : rank;
      const std::uint64_t first = kRows * part / n;
      const std::uint64_t n_rows = kRows * (part + 1) / n - first;
      const bool puts[2] = {story.puts_u, story.puts_v};
      for (std::size_t f = 0; f < 2; ++f) {
        if (!puts[f]) continue;
        put_rows(**writer, f, entries[f], first, n_rows, story.in_pieces, values[f]);
      }
      if (story.says_more) {
        ASSERT_TRUE((*writer)->set_attribute("/u", "more", {std::string("said")}).ok());
      }
      if (story.fails && rank == 0) {
        EXPECT_FALSE((*writer)->put(0, {{kRows, 0}, {1, kColumns}}, values[0].data()).ok());
      }
      Status ended = (*writer)->end_step().status();
      if (ended.ok()) ended = (*writer)->wait().status();
      EXPECT_EQ(ended.ok(), !story.fails) << ended.message();
      for (std::size_t f = 0; f < 2; ++f) entries[f] += puts[f] && ended.ok() ? 1 : 0;
    }
    EXPECT_TRUE((*writer)->close().ok());
    if (rank == 0) n_entries = entries;
  });
  for (std::size_t f = 0; f < 2; ++f) {
    const std::vector<std::byte> bytes = read_field(path, f == 0 ? "/u" : "/v");
    ASSERT_EQ(bytes.size(), n_entries[f] * kRows * kColumns * sizeof(std::int32_t));
    const auto* values = reinterpret_cast<const std::int32_t*>(bytes.data());
    for (std::uint64_t e = 0; e < n_entries[f]; ++e) {
      for (std::uint64_t r = 0; r < kRows; ++r) {
        for (std::uint64_t c = 0; c < kColumns; ++c) {
          ASSERT_EQ(*values++, value_of(f, e, r, c)) << f << " " << e << " " << r << " " << c;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RepeatedSteps,
                         testing::Combine(testing::Values("sync", "async", "in_situ"),
                                          testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_on_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace tailrace::test
