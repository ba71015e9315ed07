// trz's joined chunks. Each part decodes to the same values as in the joined chunk, and joined
// parts can be joined again. Parts that do not fit and bytes that no encoder wrote are refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "support/test_tier.hpp"
#include "support/trz_cases.hpp"
#include "trz/chunk_header.hpp"
#include "unit/trz_support.hpp"

namespace tailrace::trz {
namespace {

using trz_cases::Case;
using trz_cases::Random;
using Bytes = std::vector<std::byte>;

Bytes encoded(const Case& chunk, Workspace& workspace) {
  Bytes bytes;
  EXPECT_TRUE(whole::round_trip(chunk, workspace, &bytes));
  return bytes;
}

Bytes decoded(const Bytes& chunk, std::size_t n_bytes, const Book* book, Workspace& workspace) {
  Bytes values(n_bytes);
  const Status status = decode(chunk, values, book, workspace);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

/// Allocates exactly the promised size.
Result<Bytes> joined(const Bytes& first, std::uint64_t n_first, const Bytes& second) {
  Bytes out(joined_bytes_max(first.size(), second.size()));
  TAILRACE_TAKE(const std::size_t n_bytes, join(first, n_first, second, out));
  out.resize(n_bytes);
  return out;
}

/// Another chunk of the same type and shape.
Case one_more(Case chunk, Random& random) {
  trz_cases::make_values(chunk, random);
  return chunk;
}

TEST(TrzJoined, PartsDecodeAsTheyDoAlone) {
  Random random(1);
  int n_joined = 0;
  for (int round = 0; round < test::tier_rounds(1500, 5); ++round) {
    const Case chunk = trz_cases::random_case(random, {});
    const std::size_t n = chunk.n_values();
    if (n < 2) continue;
    const Case other = one_more(chunk, random);
    Workspace workspace;
    const Bytes first = encoded(chunk, workspace);
    const Bytes second = encoded(other, workspace);
    const std::size_t n_first = 1 + random.below(n - 1);
    const Result<Bytes> both = joined(first, n_first, second);
    ASSERT_TRUE(both.ok()) << chunk.text() << ": " << both.status().message();
    const std::size_t n_bytes = chunk.values.size();
    const auto cut = static_cast<std::ptrdiff_t>(n_first * dtype_bytes(chunk.type.dtype));
    Bytes wanted = decoded(first, n_bytes, chunk.type.book, workspace);
    const Bytes behind = decoded(second, n_bytes, chunk.type.book, workspace);
    std::copy(behind.begin() + cut, behind.end(), wanted.begin() + cut);
    EXPECT_EQ(decoded(*both, n_bytes, chunk.type.book, workspace), wanted) << chunk.text();
    EXPECT_EQ((*both)[8] >> 4, std::byte{9});
    const Result<ChunkSummary> summary = describe(*both);
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(summary->method, "2 chunks, joined");
    EXPECT_EQ(summary->n_values, n);
    ++n_joined;
  }
  EXPECT_GT(n_joined, test::tier_rounds(1000, 5));
}

/// Adds part after part, like jobs that repeatedly continue within one chunk.
TEST(TrzJoined, APartIsAddedAtATime) {
  Random random(2);
  Case chunk;
  chunk.type.shape = {80, 6, 5};
  chunk.type.bound = 1e-3;
  trz_cases::make_values(chunk, random);
  Workspace workspace;
  const std::size_t plane = 30;
  Bytes all = encoded(chunk, workspace);
  Bytes wanted = decoded(all, chunk.values.size(), nullptr, workspace);
  for (std::size_t step = 1; step < 80; ++step) {
    const Bytes next = encoded(one_more(chunk, random), workspace);
    const Result<Bytes> grown = joined(all, step * plane, next);
    if (step >= kJoinedPartsMax) {
      EXPECT_EQ(grown.status().code(), Code::unsupported) << step;
      break;
    }
    ASSERT_TRUE(grown.ok()) << step << ": " << grown.status().message();
    all = *grown;
    const Bytes values = decoded(next, chunk.values.size(), nullptr, workspace);
    const auto from = static_cast<std::ptrdiff_t>(step * plane * sizeof(float));
    std::copy(values.begin() + from, values.end(), wanted.begin() + from);
    ASSERT_EQ(decoded(all, chunk.values.size(), nullptr, workspace), wanted) << step;
  }
  // Parts that are cut off completely are dropped.
  const Bytes next = encoded(one_more(chunk, random), workspace);
  const Result<Bytes> short_again = joined(all, plane / 2, next);
  ASSERT_TRUE(short_again.ok());
  EXPECT_EQ(describe(*short_again)->method, "2 chunks, joined");
}

TEST(TrzJoined, WhatDoesNotFitIsRefused) {
  Random random(3);
  Case chunk;
  chunk.type.shape = {8, 50};
  chunk.type.bound = 1e-3;
  trz_cases::make_values(chunk, random);
  Case longer = chunk;
  longer.type.shape = {9, 50};
  trz_cases::make_values(longer, random);
  Case wider = chunk;
  wider.type.dtype = DType::f64;
  trz_cases::make_values(wider, random);
  Workspace workspace;
  const Bytes first = encoded(chunk, workspace);
  const auto code_of = [&](const Bytes& a, std::uint64_t n, const Bytes& b) {
    return joined(a, n, b).status().code();
  };
  EXPECT_EQ(code_of(first, 50, encoded(longer, workspace)), Code::invalid_argument);
  EXPECT_EQ(code_of(first, 50, encoded(wider, workspace)), Code::invalid_argument);
  EXPECT_EQ(code_of(first, 0, first), Code::invalid_argument);
  EXPECT_EQ(code_of(first, 400, first), Code::invalid_argument);
  EXPECT_EQ(code_of(first, 399, first), Code::ok);
  const Bytes both = *joined(first, 50, first);
  EXPECT_EQ(code_of(first, 50, both), Code::invalid_argument);
  EXPECT_EQ(code_of(Bytes(40), 50, first), Code::corrupt);
  Bytes changed = first;
  changed.back() ^= std::byte{1};
  EXPECT_EQ(code_of(changed, 50, first), Code::corrupt);
  EXPECT_EQ(code_of(first, 50, changed), Code::corrupt);
  Bytes out(both.size() - 1);
  EXPECT_EQ(join(first, 50, first, out).status().code(), Code::invalid_argument);
}

void seal_again(Bytes& chunk) {
  seal({reinterpret_cast<std::uint8_t*>(chunk.data()), chunk.size()});
}

/// A joined chunk inside another, and truncations and many changes of one.
TEST(TrzJoined, HostileBytesAreRefused) {
  Random random(4);
  Case chunk;
  chunk.type.shape = {6, 40};
  chunk.type.bound = 1e-3;
  trz_cases::make_values(chunk, random);
  Workspace workspace;
  const Bytes first = encoded(chunk, workspace);
  const Bytes both = *joined(first, 40, encoded(one_more(chunk, random), workspace));
  Bytes values(chunk.values.size());
  for (std::size_t n = 10; n < both.size(); ++n) {
    Bytes cut(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(n));
    seal_again(cut);
    EXPECT_FALSE(decode(cut, values, nullptr, workspace).ok()) << n;
  }
  for (int round = 0; round < 20'000; ++round) {
    Bytes changed = both;
    const std::size_t most = std::min<std::size_t>(changed.size() - 8, round % 2 == 0 ? 24 : 4096);
    changed[8 + random.below(most)] = static_cast<std::byte>(random.below(256));
    seal_again(changed);
    ASSERT_TRUE(whole::stays_in_bounds(changed, values.size(), nullptr));
  }
  // A part that is itself joined would allow a short chunk to take arbitrarily long.
  Bytes nested(both.size() + first.size() + 100);
  ChunkWriter out({reinterpret_cast<std::uint8_t*>(nested.data()), nested.size()});
  ChunkHead of_whole;
  of_whole.method = Method::joined;
  of_whole.extents = {1, 1, 6, 40};
  of_whole.n_values = 240;
  write_head(of_whole, out);
  for (const std::uint64_t number :
       {std::uint64_t{2}, std::uint64_t{40}, both.size(), std::uint64_t{200}, first.size()}) {
    out.varint(number);
  }
  out.bytes(both.data(), both.size());
  out.bytes(first.data(), first.size());
  nested.resize(out.n_written());
  seal_again(nested);
  EXPECT_FALSE(decode(nested, values, nullptr, workspace).ok());
}

}  // namespace
}  // namespace tailrace::trz
