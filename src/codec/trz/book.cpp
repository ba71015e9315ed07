// Book: made from histograms with every possible symbol counted once more, written and read.

#include "codec/trz/book.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <string>

namespace tailrace::trz {
namespace {

constexpr std::uint8_t kMagic[4] = {'T', 'R', 'Z', 'B'};
constexpr std::uint8_t kVersion = 1;

/// Whether a signed value can stand in a field of class `class_index`: |value| <= largest, or the
/// marker of a misfit.
bool fits(int value, int largest, int marker) {
  return value == marker || (value >= -largest && value <= largest);
}

/// Whether a stream of this class can hold the byte.
bool is_class_symbol(std::size_t class_index, unsigned symbol) {
  const auto nibble = [](unsigned n) { return static_cast<int>(n) - (n >= 8 ? 16 : 0); };
  switch (class_index) {
    case 1: return true;
    case 2:
    case 3: {
      const int largest = class_index == 2 ? 3 : 7;
      return fits(nibble(symbol & 15), largest, -8) && fits(nibble(symbol >> 4), largest, -8);
    }
    case 4:
    case 5:
    case 6: {
      const int value = static_cast<int>(symbol) - (symbol >= 128 ? 256 : 0);
      return fits(value, (1 << class_index) - 1, -128);
    }
    default: return true;
  }
}

template <class IsSymbol>
CodeLengths smoothed_lengths(const Histogram& histogram, IsSymbol is_symbol) {
  const auto occurs = [](std::uint32_t count) { return count != 0; };
  if (std::none_of(histogram.begin(), histogram.end(), occurs)) return {};
  Histogram smoothed = histogram;
  for (unsigned s = 0; s < 256; ++s) {
    if (is_symbol(s) && smoothed[s] != UINT32_MAX) ++smoothed[s];
  }
  return code_lengths(smoothed, kCodeBitsMax);
}

bool is_empty(const CodeLengths& lengths) { return lengths == CodeLengths{}; }

Status corrupt(const std::string& what) { return {Code::corrupt, "shared book: " + what}; }

}  // namespace

Book Book::from_histograms(const BookHistograms& histograms) {
  Book book;
  const auto any = [](unsigned) { return true; };
  book.lengths_[0] =
      smoothed_lengths(histograms.class_ids, [](unsigned symbol) { return symbol < kClasses; });
  for (std::size_t k = 1; k < kClasses; ++k) {
    book.lengths_[k] = smoothed_lengths(
        histograms.class_bytes[k], [k](unsigned symbol) { return is_class_symbol(k, symbol); });
  }
  book.lengths_[kClasses] = smoothed_lengths(histograms.exceptions, any);
  const std::vector<std::uint8_t> bytes = book.serialize();
  book.id_ = libdeflate_crc32(0, bytes.data(), bytes.size());
  return book;
}

std::vector<std::uint8_t> Book::serialize() const {
  std::vector<std::uint8_t> bytes(std::begin(kMagic), std::end(kMagic));
  bytes.push_back(kVersion);
  std::uint8_t present[(kKinds + 7) / 8] = {};
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (!is_empty(lengths_[kind])) {
      present[kind / 8] = static_cast<std::uint8_t>(present[kind / 8] | (1U << (kind % 8)));
    }
  }
  bytes.insert(bytes.end(), std::begin(present), std::end(present));
  for (const CodeLengths& lengths : lengths_) {
    if (is_empty(lengths)) continue;
    std::uint8_t text[kLengthsBytesMax];
    bytes.insert(bytes.end(), text, text + write_lengths(lengths, text));
  }
  return bytes;
}

Result<Book> Book::parse(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kPresentBytes = (kKinds + 7) / 8;
  constexpr std::size_t kHeadBytes = sizeof kMagic + 1 + kPresentBytes;
  if (bytes.size() < kHeadBytes ||
      !std::equal(std::begin(kMagic), std::end(kMagic), bytes.begin())) {
    return corrupt("bytes do not begin with TRZB");
  }
  if (bytes[sizeof kMagic] != kVersion) {
    return corrupt("version is " + std::to_string(bytes[sizeof kMagic]) + ", expected 1");
  }
  const std::uint8_t* present = bytes.data() + sizeof kMagic + 1;
  if ((present[kPresentBytes - 1] >> (kKinds % 8)) != 0) return corrupt("a kind is unknown");
  Book book;
  std::span<const std::uint8_t> rest = bytes.subspan(kHeadBytes);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (((present[kind / 8] >> (kind % 8)) & 1) == 0) continue;
    const std::size_t n_read = read_lengths(rest, book.lengths_[kind]);
    if (n_read == 0) {
      return corrupt("code lengths of kind " + std::to_string(kind) + " are not a complete code");
    }
    rest = rest.subspan(n_read);
  }
  if (!rest.empty()) return corrupt(std::to_string(rest.size()) + " bytes too many");
  book.id_ = libdeflate_crc32(0, bytes.data(), bytes.size());
  return book;
}

}  // namespace tailrace::trz
