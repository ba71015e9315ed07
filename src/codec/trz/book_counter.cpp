// BookCounter: rounds, sums, and the cost of a book by histograms.

#include "codec/trz/book_counter.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "codec/trz/byte_section.hpp"

namespace tailrace::trz {
namespace {

const Histogram& kind_of(const BookHistograms& histograms, std::size_t kind) {
  if (kind == 0) return histograms.class_ids;
  return kind < kClasses ? histograms.class_bytes[kind] : histograms.exceptions;
}
Histogram& kind_of(BookHistograms& histograms, std::size_t kind) {
  return const_cast<Histogram&>(kind_of(std::as_const(histograms), kind));
}

const CodeLengths& lengths_of(const Book& book, std::size_t kind) {
  if (kind == 0) return book.class_ids();
  return kind < kClasses ? book.class_bytes(kind) : book.exceptions();
}

std::uint64_t own_section_bytes(const Histogram& histogram, std::uint64_t n_symbols) {
  const CodeLengths lengths = code_lengths(histogram, code_limit(n_symbols));
  std::uint8_t text[kLengthsBytesMax];
  const std::uint64_t bits = encoded_bits(histogram, lengths);
  return std::min(n_symbols, write_lengths(lengths, text) + huffman_bytes(n_symbols, bits));
}

}  // namespace

BookCost book_cost(const Book& book, const BookHistograms& chunk) {
  BookCost cost;
  for (std::size_t kind = 0; kind < kBookKinds; ++kind) {
    const Histogram& histogram = kind_of(chunk, kind);
    const std::uint64_t n = std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
    const auto n_different = std::count_if(histogram.begin(), histogram.end(),
                                           [](std::uint32_t count) { return count != 0; });
    if (n_different < 2) continue;  // Nothing, or a constant section: both ways alike.
    const std::uint64_t own_bytes = own_section_bytes(histogram, n);
    const CodeLengths& lengths = lengths_of(book, kind);
    const std::uint64_t bits = encoded_bits(histogram, lengths);
    std::uint64_t book_bytes = own_bytes;
    if (bits != UINT64_MAX) {
      book_bytes = huffman_bytes(n, bits);
      if (own_code_may_pay(n, book_bytes, lengths)) book_bytes = std::min(book_bytes, own_bytes);
    }
    cost.book_bytes += book_bytes;
    cost.own_bytes += own_bytes;
  }
  return cost;
}

std::uint64_t BookTally::kinds() const {
  std::uint64_t mask = 0;
  for (std::size_t at = 0; at < counts.size(); ++at) {
    if (counts[at] != 0) mask |= std::uint64_t{1} << (at / 256);
  }
  return mask;
}

Book book_from(const BookTally& tally) {
  BookHistograms histograms;
  for (std::size_t kind = 0; kind < kBookKinds && !tally.counts.empty(); ++kind) {
    const std::uint64_t* counts = tally.counts.data() + 256 * kind;
    const std::uint64_t sum = std::accumulate(counts, counts + 256, std::uint64_t{0});
    // Room for one more of each symbol (book.cpp), and for sums of 32 bits.
    const std::uint64_t divisor = sum / (UINT32_MAX / 2) + 1;
    for (std::size_t s = 0; s < 256; ++s) {
      kind_of(histograms, kind)[s] =
          static_cast<std::uint32_t>((counts[s] + divisor - 1) / divisor);
    }
  }
  return Book::from_histograms(histograms);
}

BookCounter::Task BookCounter::next() {
  const std::uint64_t at = n_chunks_.fetch_add(1, std::memory_order_relaxed);
  const bool count = at % count_one_in == 0 || at < count_all_below_;
  return {count, !count && at % twin_one_in == 1};
}

void BookCounter::add_counts(const BookHistograms& chunk, const Book* book,
                             std::uint64_t encoded_bytes) {
  const BookCost cost = book == nullptr ? BookCost() : book_cost(*book, chunk);
  const std::scoped_lock lock(mutex_);
  tally_.counts.resize(256 * kBookKinds);
  for (std::size_t kind = 0; kind < kBookKinds; ++kind) {
    const Histogram& histogram = kind_of(chunk, kind);
    for (std::size_t s = 0; s < 256; ++s) tally_.counts[256 * kind + s] += histogram[s];
  }
  ++tally_.n_counted;
  tally_.counted_bytes += encoded_bytes;
  tally_.book_bytes += cost.book_bytes;
  tally_.own_bytes += cost.own_bytes;
}

void BookCounter::add_twin(double book_s, double own_s) {
  const std::scoped_lock lock(mutex_);
  ++tally_.n_twins;
  tally_.twin_book_ns += static_cast<std::uint64_t>(std::llround(1e9 * book_s));
  tally_.twin_own_ns += static_cast<std::uint64_t>(std::llround(1e9 * own_s));
}

BookTally BookCounter::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(tally_, BookTally());
}

}  // namespace tailrace::trz
