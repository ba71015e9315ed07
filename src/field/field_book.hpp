// Books of a write: trz's Huffman codes, made from one step and shared by the chunks of the next.
//
// With codec trz,book=auto each rank counts codes in some of its chunks while it encodes them
// (trz/book/book_counter.hpp). At the step's end the counts are summed and every rank makes the
// same book from them. The next step's datasets of the lineage (lineage.hpp) store the book in
// their client data, so readers need only the filter. A dataset that grows over time has fixed
// client data from its first step on; its book comes from a sample of that step. Source: Jin et al.
// 2024, section 4.3; unlike there, a book is reused until it costs more than book_loss.
//
// Invariant: a book is the same on every rank before a codec is made with it.

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

/// A field's book and its statistics. All except counter and n_chunks is the same on every rank.
struct BookState {
  double most_loss = trz::kMostBookLoss;
  std::vector<std::uint8_t> bytes;  ///< Book in the dataset's client data; empty: none.
  std::vector<std::uint8_t> next;   ///< Book for the dataset of the next step.
  std::uint64_t age = 0;            ///< Steps that were written with `bytes`.
  std::uint64_t n_rests = 0;  ///< Steps to write without a book: a fresh one has cost too much.
  double ratio_loss = 0;      ///< Share of the encoded bytes that the book costs.
  double twin_book_s = 0;  ///< Encode time of twins with the book. A twin is a chunk encoded both
                           ///< ways; older ones fade.
  double twin_own_s = 0;   ///< Encode time of these twins with codes of their own.
  std::shared_ptr<trz::BookCounter> counter;  ///< Null: nothing is counted.
  std::uint64_t n_chunks = 0;  ///< Chunks that this rank has encoded since the book changed.
};

/// Prepare the books of new fields with codec trz,book=auto, and their counters. The book is that
/// of the lineage, that of the continued dataset, or, over time, one made from a sample. Sets the
/// book in the field's codec settings. Call after the choice of codecs, before prepare_codecs.
///
/// Collective. Cost: nothing if no field has book=auto; else one broadcast for each continued
/// field. New fields over time also need a prefix sum, one agreement, and two allreduces of at most
/// 67 KB for each field. They count one chunk in twenty.
/// @error invalid_argument  book_loss is not a percentage.
/// @error out_of_memory, and the errors of a source; the same on every rank.
Status prepare_books(Comm& comm, std::vector<FieldState>& fields);

/// Sums over the ranks of the counts of one field's counters in a step.
struct CountedSums {
  std::uint64_t n_counted = 0;
  std::uint64_t counted_bytes = 0;
  std::uint64_t book_bytes = 0;
  std::uint64_t own_bytes = 0;
  std::uint64_t n_twins = 0;
  std::uint64_t twin_book_ns = 0;
  std::uint64_t twin_own_ns = 0;
};

/// Updates of the books after a step, in two parts around the reduction over all ranks.
class BookLessons {
 public:
  /// Collect this rank's counts, and add them to `numbers`. Not collective.
  /// @param active  the step's fields; they must keep their addresses.
  BookLessons(std::span<FieldState* const> active, RankNumbers& numbers);
  /// Learn from the sums of all ranks. Sets book_bytes, book_ratio_loss and book_saved_s of the
  /// report. Makes the book of the next step if the field has none, or if the current one costs too
  /// much. `report` lists `active` in its order. Collective; ranks without chunks take part. Cost:
  /// nothing, except two allreduces when books are made (once, or at every change). One of them
  /// sends 256 numbers for each kind of code that occurs: about 20 KB a field, at most 67 KB.
  void learn(Comm& comm, StepReport& report);

 private:
  std::span<FieldState* const> active_;
  std::vector<std::size_t> counting_;  ///< Positions in `active_`.
  std::vector<trz::BookTally> tallies_;
  std::vector<CountedSums> sums_;  ///< Parallel to `counting_`.
};

/// The part of a complete field's book state that the next step's field inherits.
BookState inheritable(BookState book);

}  // namespace tailrace
