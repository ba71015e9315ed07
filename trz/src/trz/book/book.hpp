// Book: code lengths for every kind of section, shared by many chunks and kept outside them.
//
// Making a chunk's own codes costs a histogram, a tree and bytes in the chunk; chunks of one field
// are alike, so one book can serve them all (it travels in the HDF5 filter's client data, and
// chunks name it by its id). Kinds that the training data lack have no code: their sections fall
// back to codes of their own. Source: Jin et al. 2024, section 4.3. Layout: trz/docs/trz-format.md.

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

/// What a book is made from: counts over any number of chunks.
struct BookHistograms {
  Histogram class_ids{};
  std::array<Histogram, kClasses> class_bytes{};  ///< [0] stays unused.
  Histogram exceptions{};
};

class Book {
 public:
  /// A book without any code.
  Book() = default;

  /// Codes for every symbol that the kinds which occur can have, seen or not (one is added to each
  /// count). Not collective. Thread-safe. Cost: about 0.1 ms.
  static Book from_histograms(const BookHistograms& histograms);

  /// The book as bytes: at most 5 KB, usually fewer than 2 KB.
  std::vector<std::uint8_t> serialize() const;
  /// @error corrupt  not a book, or one of its codes is not complete.
  static Result<Book> parse(std::span<const std::uint8_t> bytes);

  /// CRC-32 of the serialised bytes; chunks refer to the book by it.
  std::uint32_t id() const { return id_; }

  const CodeLengths& class_ids() const { return lengths_[0]; }
  /// class_index: 1..kClasses - 1.
  const CodeLengths& class_bytes(std::size_t class_index) const { return lengths_[class_index]; }
  const CodeLengths& exceptions() const { return lengths_[kClasses]; }

 private:
  static constexpr std::size_t kKinds = kClasses + 1;  // Class ids, classes 1 to 31, exceptions.

  std::array<CodeLengths, kKinds> lengths_{};
  std::uint32_t id_ = 0;
};

}  // namespace tailrace::trz
