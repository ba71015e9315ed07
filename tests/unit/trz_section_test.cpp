// Byte sections and shared books. Every form is restored, and its size stays below the limit.
// Truncated, flipped or random bytes are refused or give other values, without any access out of
// range.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "trz/book/book.hpp"
#include "trz/entropy/byte_section.hpp"
#include "trz/entropy/patches.hpp"

namespace tailrace::trz {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets peaked_octets(std::size_t n, double decay, unsigned seed) {
  std::mt19937 random(seed);
  std::geometric_distribution<int> magnitude(1 - decay);
  Octets bytes(n);
  for (std::uint8_t& byte : bytes) {
    const int m = std::min(magnitude(random), 127);
    byte = static_cast<std::uint8_t>((random() & 1) != 0 ? m : -m);
  }
  return bytes;
}

Octets noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Octets bytes(n);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Writes, reads back, and returns the section; buffers of exact size for ASan.
Octets expect_round_trip(const Octets& bytes, const SectionPlan& plan) {
  Workspace workspace;
  Octets section(section_bytes_max(bytes.size()));
  const std::size_t n_bytes = write_section(bytes, plan, section.data(), workspace);
  EXPECT_GT(n_bytes, 0U);
  EXPECT_LE(n_bytes, section.size());
  section.resize(n_bytes);
  Octets with_more = section;
  with_more.insert(with_more.end(), 20, 0x55);
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    Workspace other(isa);
    Octets again(section_bytes_max(bytes.size()));
    again.resize(write_section(bytes, plan, again.data(), other));
    EXPECT_EQ(again, section) << isa_name(isa);
    Octets decoded(bytes.size());
    EXPECT_EQ(read_section(section, decoded, plan.shared, other), n_bytes);
    EXPECT_EQ(decoded, bytes) << isa_name(isa);
    EXPECT_EQ(read_section(with_more, decoded, plan.shared, other), n_bytes);
  }
  return section;
}

SectionPlan plan_of(ZstdUse zstd, const CodeLengths* shared = nullptr) { return {zstd, 1, shared}; }

TEST(TrzSection, every_form_comes_back) {
  for (const std::size_t n : {0U, 1U, 2U, 3U, 10U, 100U, 257U, 5000U, 100000U, 700001U}) {
    for (const ZstdUse zstd :
         {ZstdUse::never, ZstdUse::promising, ZstdUse::searched, ZstdUse::always}) {
      for (const double decay : {0.01, 0.5, 0.9}) {
        expect_round_trip(peaked_octets(n, decay, 1), plan_of(zstd));
      }
      expect_round_trip(noise(n, 1), plan_of(zstd));
      expect_round_trip(Octets(n, 7), plan_of(zstd));
    }
  }
}

TEST(TrzSection, forms_are_chosen_by_size) {
  EXPECT_EQ(expect_round_trip(Octets(100000, 3), plan_of(ZstdUse::always)).size(), 2U);
  EXPECT_EQ(expect_round_trip(noise(100000, 3), plan_of(ZstdUse::always)).size(), 100001U);
  const Octets codes = peaked_octets(100000, 0.6, 3);
  const std::size_t n_huffman = expect_round_trip(codes, plan_of(ZstdUse::never)).size();
  EXPECT_LT(n_huffman, 100000U * 2 / 5);
  Octets repeats;
  for (int i = 0; i < 20; ++i) repeats.insert(repeats.end(), codes.begin(), codes.begin() + 5000);
  EXPECT_LT(expect_round_trip(repeats, plan_of(ZstdUse::always)).size(), n_huffman / 8);
  Octets runs(100000, 0);
  for (std::size_t i = 0; i < runs.size(); i += 997) runs[i] = 1;
  EXPECT_LT(expect_round_trip(runs, plan_of(ZstdUse::promising)).size(), 2000U);
}

TEST(TrzSection, a_search_finds_repeats_that_lie_far_apart) {
  const Octets part = peaked_octets(6000, 0.6, 3);
  Octets twice = part;
  twice.insert(twice.end(), part.begin(), part.end());
  const std::size_t n_huffman = expect_round_trip(part, plan_of(ZstdUse::never)).size();
  // A sample of the middle sees no repeat, and bytes without repeats are not tried.
  EXPECT_GT(expect_round_trip(twice, plan_of(ZstdUse::promising)).size(), 2 * n_huffman - 200);
  EXPECT_LT(expect_round_trip(twice, plan_of(ZstdUse::searched)).size(), n_huffman * 5 / 4);
  EXPECT_EQ(expect_round_trip(part, plan_of(ZstdUse::searched)).size(), n_huffman);
}

TEST(TrzSection, a_mask_that_repeats_from_row_to_row_takes_few_bytes) {
  // Edges move little from row to row, so that zeros and ones come in runs and rows in repeats.
  constexpr std::size_t row = 2000;
  constexpr std::size_t n = 400 * row;
  std::vector<std::uint32_t> values(n, 7);
  std::vector<std::uint64_t> words(PatchMap::words_of(n));
  PatchMap patches(words.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i % row % 160 < 70 + i / row / 100) patches.mark(i);
  }
  Workspace workspace;
  Octets bytes(patches_bytes_max(n, patches.count(), 4));
  for (const ZstdUse zstd : {ZstdUse::promising, ZstdUse::searched, ZstdUse::always}) {
    ChunkWriter out(bytes);
    ASSERT_TRUE(write_patches(values.data(), patches, plan_of(zstd), out, workspace));
    EXPECT_LT(out.n_written(), 500U);
    std::vector<std::uint32_t> patched(n, 0);
    ChunkReader in({bytes.data(), out.n_written()});
    bool memory_out = false;
    ASSERT_TRUE(apply_patches(in, patched.data(), n, workspace, &memory_out));
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(patched[i], i % row % 160 < 70 + i / row / 100 ? 7U : 0U) << i;
    }
  }
}

/// Mostly `common`, sometimes other bytes, in runs of all lengths.
Octets with_runs(std::size_t n, std::uint8_t common, double share, unsigned seed) {
  std::mt19937 random(seed);
  Octets bytes(n, common);
  for (std::uint8_t& byte : bytes) {
    if (static_cast<double>(random() % 10000) >= 10000 * share) {
      byte = static_cast<std::uint8_t>(random() % 5);
    }
  }
  return bytes;
}

TEST(TrzSection, runs_of_a_frequent_byte_cost_less_than_a_bit_a_byte) {
  for (const std::size_t n : {64U, 65U, 100U, 1000U, 1023U, 40000U, 600001U}) {
    for (const double share : {0.5, 0.7, 0.9, 0.99, 0.9999}) {
      for (const int common : {0, 3, 255}) {
        SCOPED_TRACE(testing::Message() << n << " bytes, share " << share);
        const Octets bytes = with_runs(n, static_cast<std::uint8_t>(common), share, 5);
        for (const ZstdUse zstd : {ZstdUse::never, ZstdUse::always}) {
          const Octets section = expect_round_trip(bytes, plan_of(zstd));
          if (n > 30000 && share > 0.8) {
            EXPECT_LT(section.size(), n / 8);
          }
          if (n > 30000 && share > 0.6 && zstd == ZstdUse::never) {
            EXPECT_EQ(section[0], 5);
          }
        }
      }
    }
  }
}

TEST(TrzSection, runs_at_the_ends_and_longer_than_255) {
  for (const std::size_t n_first : {0U, 1U, 2U, 255U, 256U, 511U, 70000U}) {
    for (const std::size_t n_last : {0U, 1U, 3U, 254U, 66000U}) {
      Octets bytes(n_first, 9);
      for (int i = 0; i < 50; ++i) {
        bytes.push_back(static_cast<std::uint8_t>(i));
        bytes.push_back(9);
      }
      bytes.resize(bytes.size() + n_last, 9);
      expect_round_trip(bytes, plan_of(ZstdUse::never));
    }
  }
}

TEST(TrzSection, hostile_bytes_stay_in_range) {
  std::mt19937 random(17);
  Workspace workspace;
  const Octets codes = peaked_octets(6000, 0.7, 3);
  const CodeLengths flat = [] {
    Histogram ones;
    ones.fill(1);
    return code_lengths(ones, 8);
  }();
  const SectionPlan plans[] = {plan_of(ZstdUse::never), plan_of(ZstdUse::always),
                               plan_of(ZstdUse::never, &flat), plan_of(ZstdUse::never)};
  const Octets runs = with_runs(6000, 0, 0.9, 4);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::size_t n = 1 + random() % 6000;
    Octets section(section_bytes_max(n));
    section.resize(write_section(std::span(trial % 4 == 3 ? runs : codes).first(n),
                                 plans[trial % 4], section.data(), workspace));
    switch (random() % 3) {
      case 0: section.resize(random() % section.size()); break;
      case 1:
        for (int flip = 0; flip < 2; ++flip) {
          section[random() % std::min<std::size_t>(section.size(), 60)] ^=
              static_cast<std::uint8_t>(1U << (random() % 8));
        }
        break;
      default:
        for (std::size_t i = 1; i < section.size(); ++i) {
          section[i] = static_cast<std::uint8_t>(random());
        }
    }
    section.shrink_to_fit();
    Octets decoded(trial % 2 == 0 ? n : 1 + random() % 6000);
    EXPECT_LE(read_section(section, decoded, trial % 8 == 0 ? nullptr : &flat, workspace),
              section.size());
  }
}

TEST(TrzSection, a_truncated_section_is_refused) {
  Workspace workspace;
  for (const ZstdUse zstd : {ZstdUse::never, ZstdUse::always}) {
    const Octets codes = peaked_octets(3000, 0.5, 9);
    const Octets section = expect_round_trip(codes, plan_of(zstd));
    for (std::size_t n = 0; n < section.size(); ++n) {
      const Octets shorter(section.begin(), section.begin() + static_cast<std::ptrdiff_t>(n));
      Octets decoded(codes.size());
      EXPECT_EQ(read_section(shorter, decoded, nullptr, workspace), 0U) << n;
    }
  }
}

BookHistograms sample_histograms() {
  BookHistograms histograms;
  count_bytes(peaked_octets(3000, 0.5, 1), histograms.class_bytes[7]);
  count_bytes(peaked_octets(3000, 0.3, 1), histograms.class_bytes[1]);
  count_bytes(Octets(500, 5), histograms.class_ids);
  for (const std::uint8_t low : Octets{0, 1, 15, 8})
    count_bytes(Octets(100, low), histograms.class_bytes[2]);
  count_bytes(peaked_octets(100, 0.9, 1), histograms.exceptions);
  return histograms;
}

TEST(TrzBook, comes_back_with_the_same_id) {
  const Book book = Book::from_histograms(sample_histograms());
  const Octets bytes = book.serialize();
  EXPECT_LT(bytes.size(), 1000U);
  const Result<Book> back = Book::parse(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->id(), book.id());
  EXPECT_EQ(back->serialize(), bytes);
  for (std::size_t k = 1; k < kClasses; ++k) {
    EXPECT_EQ(back->class_bytes(k), book.class_bytes(k)) << k;
  }
  EXPECT_EQ(back->class_ids(), book.class_ids());
  EXPECT_EQ(back->exceptions(), book.exceptions());
}

TEST(TrzBook, has_a_code_for_every_symbol_of_the_kinds_that_occur) {
  const Book book = Book::from_histograms(sample_histograms());
  const auto n_codes = [](const CodeLengths& lengths) {
    return 256 - std::count(lengths.bits.begin(), lengths.bits.end(), 0);
  };
  EXPECT_EQ(n_codes(book.class_bytes(1)), 256);
  EXPECT_EQ(n_codes(book.class_bytes(2)), 256);
  EXPECT_EQ(n_codes(book.class_bytes(3)), 0);
  EXPECT_EQ(n_codes(book.class_bytes(7)), 256);
  EXPECT_EQ(n_codes(book.class_ids()), 32);
  EXPECT_EQ(n_codes(book.exceptions()), 256);
}

TEST(TrzBook, serves_sections_and_its_sizes_are_exact) {
  const Book book = Book::from_histograms(sample_histograms());
  for (const std::size_t n : {std::size_t{100}, std::size_t{5000}, std::size_t{200000}}) {
    const Octets codes = peaked_octets(n, 0.55, 77);
    const Octets section = expect_round_trip(codes, plan_of(ZstdUse::never, &book.class_bytes(7)));
    Histogram histogram{};
    count_bytes(codes, histogram);
    const std::uint64_t bits = encoded_bits(histogram, book.class_bytes(7));
    EXPECT_EQ(section[0], 3);
    EXPECT_EQ(section.size() - huffman_bytes(n, bits), n < 128 ? 2U : n < 40000 ? 3U : 4U);
    Workspace workspace;
    Octets decoded(n);
    EXPECT_EQ(read_section(section, decoded, nullptr, workspace), 0U);
  }
  // If a symbol has no code, or the book makes the section larger, another form is used.
  const Octets ids = peaked_octets(1000, 0.9, 5);
  EXPECT_NE(expect_round_trip(ids, plan_of(ZstdUse::never, &book.class_ids()))[0], 3);
  EXPECT_NE(expect_round_trip(ids, plan_of(ZstdUse::never, &book.class_bytes(3)))[0], 3);
  EXPECT_NE(expect_round_trip(noise(1000, 5), plan_of(ZstdUse::never, &book.class_bytes(7)))[0], 3);
}

TEST(TrzBook, does_not_keep_runs_and_repeats_from_their_forms) {
  const Book book = Book::from_histograms(sample_histograms());
  const SectionPlan plan = plan_of(ZstdUse::promising, &book.class_bytes(7));
  EXPECT_EQ(expect_round_trip(with_runs(50000, 0, 0.95, 2), plan)[0], 5);
  Octets repeats;
  for (int i = 0; i < 100; ++i) {
    const Octets codes = peaked_octets(300, 0.7, 3);
    repeats.insert(repeats.end(), codes.begin(), codes.end());
  }
  EXPECT_EQ(expect_round_trip(repeats, plan)[0], 4);
}

TEST(TrzBook, steps_aside_where_its_lengths_do_not_suit) {
  const Book book = Book::from_histograms(sample_histograms());
  const SectionPlan plan = plan_of(ZstdUse::never, &book.class_bytes(7));
  for (const double decay : {0.3, 0.5, 0.7, 0.9, 0.97}) {
    const Octets bytes = peaked_octets(40000, decay, 11);
    const std::size_t n_own = expect_round_trip(bytes, plan_of(ZstdUse::never, nullptr)).size();
    EXPECT_LE(expect_round_trip(bytes, plan).size(), n_own + n_own / 32) << decay;
  }
}

TEST(TrzBook, truncated_and_random_books_are_refused) {
  std::mt19937 random(3);
  const Octets bytes = Book::from_histograms(sample_histograms()).serialize();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(Book::parse(std::span(bytes).first(n)).ok()) << n;
  }
  Octets longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(Book::parse(longer).ok());
  for (int trial = 0; trial < 5000; ++trial) {
    Octets flipped = bytes;
    flipped[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << (random() % 8));
    const Result<Book> book = Book::parse(flipped);
    if (book.ok()) {
      EXPECT_EQ(book->serialize().size(), flipped.size());
    }
  }
}

}  // namespace
}  // namespace tailrace::trz
