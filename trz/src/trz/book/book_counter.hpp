// BookCounter: collects counts from a field's chunks during encoding, for the book of the next
// step.
//
// The encoder counts the codes of one chunk in sixteen. From these counts follows the size with
// codes of the chunk's own, so the loss through an ageing book is known without encoding twice. One
// chunk in two hundred is encoded both ways, to measure the time that the book saves.
// Source: Jin et al. 2024, section 4.3, who use the previous step's book without checking its cost.

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

/// Number of kinds of sections in a book: class ids, classes 1 to 31, exceptions.
inline constexpr std::size_t kBookKinds = kClasses + 1;

/// Size of one chunk's sections in bytes, with a book and with codes of their own.
struct BookCost {
  std::uint64_t book_bytes = 0;
  std::uint64_t own_bytes = 0;
};

/// Compute the size of sections with these histograms. Like the encoder, use the smaller size if
/// the book suits a section badly (own_code_may_pay). Runs and zstd are not considered.
/// Not collective. Thread-safe. Cost: about 10 microseconds for each kind that occurs.
BookCost book_cost(const Book& book, const BookHistograms& chunk);

/// Counts of many chunks. Adding tallies member by member gives the tally of all their chunks.
struct BookTally {
  std::vector<std::uint64_t> counts;  ///< kBookKinds times 256; empty: nothing counted.
  std::uint64_t n_counted = 0;        ///< Number of chunks counted.
  std::uint64_t counted_bytes = 0;    ///< Encoded bytes of the counted chunks.
  std::uint64_t book_bytes = 0;       ///< Sum of BookCost::book_bytes over the counted chunks.
  std::uint64_t own_bytes = 0;        ///< Sum of BookCost::own_bytes over the counted chunks.
  std::uint64_t n_twins = 0;          ///< Number of chunks encoded both ways.
  std::uint64_t twin_book_ns = 0;     ///< Time to encode the twins with the book.
  std::uint64_t twin_own_ns = 0;      ///< Time to encode the twins with codes of their own.

  /// Bit mask of the kinds that occur: bit k is set for kind k.
  std::uint64_t kinds() const;
  /// The 256 counts of one kind. `counts` must not be empty.
  std::span<std::uint64_t> of_kind(std::size_t kind) { return {counts.data() + 256 * kind, 256}; }
};

/// Make a book from counts. Large counts are scaled down to the range of a Histogram.
Book book_from(const BookTally& tally);

class BookCounter {
 public:
  /// Clock of the calling thread in seconds, provided by the caller.
  using Clock = std::function<double()>;

  static constexpr std::uint64_t kCountOneIn = 16;
  static constexpr std::uint64_t kTwinOneIn = 200;

  /// @param n_before  number of chunks encoded with earlier counters of the field; it sets the
  /// position in the cycles of 16 and 200. Ranks with different values select different chunks.
  /// @param n_first  number of chunks at the start that are all counted, for the first book.
  BookCounter(std::uint64_t n_before, std::uint64_t n_first, Clock clock)
      : n_chunks_(n_before), count_all_below_(n_before + n_first), clock_(std::move(clock)) {}

  /// Work to do on the next chunk. next() is thread-safe.
  struct Task {
    bool count = false;  ///< Count its codes.
    bool twin = false;   ///< Encode it both with the book and with codes of its own.
  };
  Task next();
  double now_s() const { return clock_(); }

  /// Add a counted chunk. Thread-safe.
  /// @param book           the book with which the chunk was encoded; may be null.
  /// @param encoded_bytes  size of the encoded chunk.
  void add_counts(const BookHistograms& chunk, const Book* book, std::uint64_t encoded_bytes);
  /// Add a chunk that was encoded both ways. Thread-safe.
  void add_twin(double book_s, double own_s);

  /// Return and reset the tally since the last call. Thread-safe. Size: 67 KB if anything was
  /// counted.
  BookTally take();
  /// Value of n_before for the counter that succeeds this one.
  std::uint64_t n_chunks() const { return n_chunks_; }

 private:
  std::atomic<std::uint64_t> n_chunks_;
  std::uint64_t count_all_below_;
  Clock clock_;
  std::mutex mutex_;
  BookTally tally_;
};

// --- Training of shared books: count the codes of a field's chunks, then make one book for all.
//
// A book made from the previous step of an evolving field serves the next steps. Chunks then need
// neither time nor bytes for codes of their own (Jin et al. 2024, section 4.3). Measurements:
// lab/bench/results.

/// Add one chunk's codes to the counts of a future book. Chunks that are not coded on a lattice
/// (constant, exact, or packed by preset fast) add nothing. type.book is ignored.
/// @param values  n_elements(type.shape) elements in native byte order.
/// Not collective. Thread-safe if each thread has its own workspace and histograms. Cost: about
/// that of encode().
/// @error invalid_argument  sizes that do not match, or no absolute bound on f32 or f64.
/// @error out_of_memory
Status count_for_book(const ChunkType& type, const Settings& settings,
                      std::span<const std::byte> values, BookHistograms& histograms,
                      Workspace& workspace);

}  // namespace tailrace::trz
