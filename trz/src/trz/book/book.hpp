// Book: code lengths for every kind of section, shared by many chunks and stored outside them.
//
// A chunk with codes of its own costs a histogram, a tree and bytes in the chunk. Chunks of one
// field are similar, so one book can serve them all. The book is stored in the HDF5 filter's client
// data, and chunks refer to it by its id. A book has no code for kinds that do not occur in the
// training data; such a section gets a code of its own.
// Source: Jin et al. 2024, section 4.3. Layout: trz/docs/trz-format.md.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trz/base/status.hpp"
#include "trz/entropy/huffman.hpp"
#include "trz/kernels/group_kernels.hpp"

namespace tailrace::trz {

/// Input of a book: symbol counts over any number of chunks.
struct BookHistograms {
  Histogram class_ids{};
  std::array<Histogram, kClasses> class_bytes{};  ///< [0] is unused.
  Histogram exceptions{};
};

class Book {
 public:
  /// Create a book without any code.
  Book() = default;

  /// Make a book from counts. Each kind that occurs gets codes for all its symbols, also those with
  /// count 0, since 1 is added to each count. Not collective. Thread-safe. Cost: about 0.1 ms.
  static Book from_histograms(const BookHistograms& histograms);

  /// Serialise the book: at most 5 KB, usually less than 2 KB.
  std::vector<std::uint8_t> serialize() const;
  /// The inverse of serialize(). @error corrupt  not a book, or one of its codes is not complete.
  static Result<Book> parse(std::span<const std::uint8_t> bytes);

  /// CRC-32 of the serialised bytes, by which chunks refer to the book.
  std::uint32_t id() const { return id_; }

  const CodeLengths& class_ids() const { return lengths_[0]; }
  /// Code lengths of a class's bytes; class_index is in 1..kClasses - 1.
  const CodeLengths& class_bytes(std::size_t class_index) const { return lengths_[class_index]; }
  const CodeLengths& exceptions() const { return lengths_[kClasses]; }

 private:
  static constexpr std::size_t kKinds = kClasses + 1;  // Class ids, classes 1 to 31, exceptions.

  std::array<CodeLengths, kKinds> lengths_{};
  std::uint32_t id_ = 0;
};

}  // namespace tailrace::trz
