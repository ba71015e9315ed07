// Counts codes for books and trains books.

#include "trz/book/book_counter.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trz/base/set_number.hpp"
#include "trz/chunk_header.hpp"
#include "trz/entropy/byte_section.hpp"
#include "trz/predict/choose.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/workspace.hpp"

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
    if (n_different < 2) continue;  // Empty or constant section: the same size both ways.
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
    // Sums must fit 32 bits, with room for the 1 that book.cpp adds to each count.
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
  const bool count = at % kCountOneIn == 0 || at < count_all_below_;
  return {count, !count && at % kTwinOneIn == 1};
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

// --- Training of shared books.

namespace {

template <class T>
Status count_floats(const ChunkType& type, const Settings& settings, const T* values,
                    BookHistograms& histograms, Workspace& workspace) {
  T fill_value{};
  const T* fill = nullptr;
  if (const double* const stated = set_number(type.fill_value); stated != nullptr) {
    fill_value = static_cast<T>(*stated);
    fill = &fill_value;
  }
  LatticeJob<T> job;
  job.values = values;
  job.extents = extents_of(type.shape, settings.dimensions);
  const Sampled sampled =
      sample_chunk<T>(values, job.extents, fill, type.bound, settings, workspace.isa());
  T found{};
  job.fill = sampled.fill_of(fill, found);
  const std::optional<Lattice<T>> lattice = make_lattice<T>(type.bound, sampled.offset);
  if (!lattice || sampled.all_equal || settings.preset == Preset::fast) return {};
  job.lattice = *lattice;
  job.prediction = sampled.best();

  const std::size_t n = values_in(job.extents);
  const Status memory_out(Code::out_of_memory, "trz: no memory to count a chunk's codes");
  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
  OutgoingCodes codes;
  if (bits == nullptr || !codes.prepare(n, job.form, workspace)) return memory_out;
  PatchMap patches(bits, n);
  if (!predict_all(job, codes, patches, workspace)) return memory_out;
  static_cast<void>(codes.finish());
  codes.count(histograms);
  return {};
}

}  // namespace

Status count_for_book(const ChunkType& type, const Settings& settings,
                      std::span<const std::byte> values, BookHistograms& histograms,
                      Workspace& workspace) {
  const std::uint64_t n = n_elements(type.shape);
  if (!is_floating(type.dtype) || type.kind != BoundKind::absolute || !(type.bound > 0)) {
    return {Code::invalid_argument, "trz: a shared book needs f32 or f64 and an absolute bound"};
  }
  if (n > values.size() || values.size() != n * dtype_bytes(type.dtype)) {
    return {Code::invalid_argument, "trz: the values do not fill a chunk of this shape"};
  }
  if (n < 2) return {};
  const FloatEnvironment environment;
  if (type.dtype == DType::f32) {
    return count_floats(type, settings, reinterpret_cast<const float*>(values.data()), histograms,
                        workspace);
  }
  return count_floats(type, settings, reinterpret_cast<const double*>(values.data()), histograms,
                      workspace);
}

}  // namespace tailrace::trz
