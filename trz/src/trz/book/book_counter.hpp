// BookCounter: what the chunks of a field show, while they are encoded, for a book of the next
// step.
//
// One chunk in sixteen has its codes counted on the way; of these it is also known what they would
// take with codes of their own, so that the loss by an ageing book is seen without encoding twice.
// One in two hundred is encoded both ways, for the time that the book saves. After Jin et al.
// 2024, section 4.3, whose book is that of the step before without a look at what it costs.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "trz/base/status.hpp"
#include "trz/book/book.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz {

/// Kinds of sections that a book has codes for: class ids, classes 1 to 31, exceptions.
inline constexpr std::size_t kBookKinds = kClasses + 1;

/// Bytes of one chunk's sections with a book, and with codes of their own.
struct BookCost {
  std::uint64_t book_bytes = 0;
  std::uint64_t own_bytes = 0;
};

/// What sections with these histograms take. Where the encoder looks beyond the book (a section
/// that suits it badly) the smaller counts, as it does there; runs and zstd are not foreseen.
/// Not collective. Thread-safe. Cost: about 10 microseconds for each kind that occurs.
BookCost book_cost(const Book& book, const BookHistograms& chunk);

/// Counts of many chunks; sums of tallies are tallies of all their chunks.
struct BookTally {
  std::vector<std::uint64_t> counts;  ///< kBookKinds times 256, or empty: nothing counted.
  std::uint64_t n_counted = 0;        ///< Chunks.
  std::uint64_t counted_bytes = 0;    ///< Encoded bytes of these.
  std::uint64_t book_bytes = 0;       ///< Of these, sections with the book as BookCost has them.
  std::uint64_t own_bytes = 0;
  std::uint64_t n_twins = 0;  ///< Chunks that were encoded both ways.
  std::uint64_t twin_book_ns = 0;
  std::uint64_t twin_own_ns = 0;

  /// Bit k is set if kind k occurs.
  std::uint64_t kinds() const;
  /// The 256 counts of one kind. Not for a tally without counts.
  std::span<std::uint64_t> of_kind(std::size_t kind) { return {counts.data() + 256 * kind, 256}; }
};

/// A book from counts; large ones are scaled down to what histograms hold.
Book book_from(const BookTally& tally);

class BookCounter {
 public:
  /// Seconds of the calling thread; this folder has no clock of its own.
  using Clock = std::function<double()>;

  static constexpr std::uint64_t count_one_in = 16;
  static constexpr std::uint64_t twin_one_in = 200;

  /// @param n_before  chunks that were encoded before, on other counters of the same field: where
  /// the rounds of 16 and 200 stand. Ranks that start apart look at chunks apart.
  /// @param n_first  this many chunks are counted all: for the first book.
  BookCounter(std::uint64_t n_before, std::uint64_t n_first, Clock clock)
      : n_chunks_(n_before), count_all_below_(n_before + n_first), clock_(std::move(clock)) {}

  /// What is to be done with the next chunk. Thread-safe.
  struct Task {
    bool count = false;
    bool twin = false;
  };
  Task next();
  double now_s() const { return clock_(); }

  /// Add a counted chunk of so many encoded bytes. `book`: by which it was encoded; may be null.
  /// Thread-safe.
  void add_counts(const BookHistograms& chunk, const Book* book, std::uint64_t encoded_bytes);
  /// Add a chunk that was encoded both ways. Thread-safe.
  void add_twin(double book_s, double own_s);

  /// All since the last call. Thread-safe; 67 KB where something was counted.
  BookTally take();
  /// n_before for the counter that follows this one.
  std::uint64_t n_chunks() const { return n_chunks_; }

 private:
  std::atomic<std::uint64_t> n_chunks_;
  std::uint64_t count_all_below_;
  Clock clock_;
  std::mutex mutex_;
  BookTally tally_;
};

// --- Training of shared books: count what chunks of a field would code, make one book for all.
//
// A book made from the previous step of an evolving field serves the next ones: chunks then save
// the making and the bytes of codes of their own (Jin et al. 2024, section 4.3). Measured:
// lab/bench/results.

/// Add one chunk's codes to the counts of a book to be. Chunks that would not be coded on a lattice
/// (constant, exact, or packed by the preset fast) add nothing.
/// @param values  n_elements(type.shape) elements in native order; type.book is ignored.
/// Not collective. Thread-safe, a workspace and histograms each. Cost: about that of encode().
/// @error invalid_argument  sizes that do not match, or no absolute bound on f32 or f64.
/// @error out_of_memory
Status count_for_book(const ChunkType& type, const Settings& settings,
                      std::span<const std::byte> values, BookHistograms& histograms,
                      Workspace& workspace);

}  // namespace tailrace::trz
