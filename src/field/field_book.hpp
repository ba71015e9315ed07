// Books of a write: trz's Huffman codes, made from one step and shared by the chunks of the next.
//
// With codec trz,book=auto each rank counts some of its chunks while it encodes them
// (trz/book/book_counter.hpp); at the step's end the counts are added up and every rank makes
// the same book of them, which the next step's datasets of the lineage (lineage.hpp) hold in their
// client data: readers need the filter and nothing else. A dataset that grows over time has its
// client data from its first step on, so its book comes from a sample of that step. Source: Jin et
// al. 2024, section 4.3; unlike there, a book is kept until it costs more than book_loss.
//
// Invariant: a book is the same on every rank before a codec is made of it.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/auto_book.hpp"
#include "core/comm.hpp"
#include "trz/base/status.hpp"
#include "trz/book/book_counter.hpp"

namespace tailrace {

struct FieldState;
struct StepReport;

/// A field's book, and what is known of it. All but counter and n_chunks is the same on every rank.
struct BookState {
  double most_loss = trz::kMostBookLoss;
  std::vector<std::uint8_t> bytes;  ///< In the dataset's client data; empty: none.
  std::vector<std::uint8_t> next;   ///< For the dataset of the next step.
  std::uint64_t age = 0;            ///< Steps that were written with `bytes`.
  std::uint64_t n_rests = 0;        ///< Steps to go without: a fresh book has cost too much.
  double ratio_loss = 0;            ///< Share of the encoded bytes that the book costs.
  double twin_book_s = 0;           ///< Chunks encoded both ways: with the book,
  double twin_own_s = 0;            ///< and with codes of their own. Older ones fade.
  std::shared_ptr<trz::BookCounter> counter;  ///< Null: nothing is counted.
  std::uint64_t n_chunks = 0;                 ///< That this rank has encoded, of all steps.
};

/// Prepare the books of new fields with codec trz,book=auto: that of the lineage, that of
/// the dataset which is continued, or, over time, one of a sample; and the counters. Names the book
/// in the field's codec settings. After the choice of codecs, before prepare_codecs.
/// Collective. Cost: nothing where no field has book=auto; else one broadcast for each continued
/// field, and for new ones over time a prefix sum, one agreement, the counting of one chunk in
/// twenty and two allreduces, of at most 67 KB for each field.
/// @error invalid_argument  book_loss is no percentage.  @error out_of_memory, and what a source
/// returns; the same on every rank.
Status prepare_books(Comm& comm, std::vector<FieldState>& fields);

/// Sums over the ranks of what one field's counters have seen in a step.
struct CountedSums {
  std::uint64_t n_counted = 0;
  std::uint64_t counted_bytes = 0;
  std::uint64_t book_bytes = 0;
  std::uint64_t own_bytes = 0;
  std::uint64_t n_twins = 0;
  std::uint64_t twin_book_ns = 0;
  std::uint64_t twin_own_ns = 0;
};

/// What a step teaches the books of its fields, in two parts around the sums over all ranks.
class BookLessons {
 public:
  /// Take what this rank has counted, and leave it in `numbers`. Not collective.
  /// @param active  the step's fields; must stay where they are.
  BookLessons(std::span<FieldState* const> active, RankNumbers& numbers);
  /// Learn from all ranks': fills book_bytes, book_ratio_loss and book_saved_s of the report, and
  /// makes the book of the next step where there is none yet or this one costs too much. `report`
  /// lists `active` in its order. Collective; ranks without chunks take part. Cost: nothing, but
  /// where books are made (once, or at every change) two allreduces, one of 256 numbers for each
  /// kind of code that occurs, about 20 KB a field and 67 KB at most.
  void learn(Comm& comm, StepReport& report);

 private:
  std::span<FieldState* const> active_;
  std::vector<std::size_t> counting_;  ///< Positions in `active_`.
  std::vector<trz::BookTally> tallies_;
  std::vector<CountedSums> sums_;  ///< Parallel to `counting_`.
};

/// What the next step's field takes over of a complete one's book.
BookState inheritable(BookState book);

}  // namespace tailrace
