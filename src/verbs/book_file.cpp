// Reads book files.

#include "verbs/book_file.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "core/codec_registry.hpp"
#include "core/environment.hpp"
#include "trz/book/book.hpp"

namespace tailrace::verbs {
namespace {

/// Limit of a book in client data: more than any book needs, and little of the 64 KB that HDF5
/// allows for a dataset's filters.
constexpr std::size_t book_bytes_max = 16384;

/// True for words such as "41:0x425A5254:...", false for a file name.
bool are_words(std::string_view text) {
  return text.find(':') != std::string_view::npos &&
         text.find_first_not_of("0123456789abcdefxABCDEFX:") == std::string_view::npos;
}

std::string words_text(const std::vector<std::uint8_t>& bytes) {
  std::string text = fmt::format("{}", bytes.size());
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < 4 && i + b < bytes.size(); ++b) {
      word |= static_cast<std::uint32_t>(bytes[i + b]) << (8 * b);
    }
    text += fmt::format(":{:#x}", word);
  }
  return text;
}

}  // namespace

Status load_book(std::string_view codec, std::vector<KeyValue>& settings) {
  if (!codec_entry(codec).has_books) return Status();
  for (auto& [key, value] : settings) {
    if (key != "book" || value == "auto" || are_words(value)) continue;
    const std::string where = fmt::format("book={}", value);
    if (value.empty()) {
      return Status(Code::invalid_argument,
                    "book= needs the name of a book file (made by tailrace-lab train-book)");
    }
    TAILRACE_TAKE(const std::string read, read_settings_file(value, book_bytes_max).within("book"));
    const std::vector<std::uint8_t> bytes(read.begin(), read.end());
    const Status parsed = trz::Book::parse(bytes).status();
    if (!parsed.ok()) return Status(Code::invalid_argument, parsed.message()).within(where);
    value = words_text(bytes);
  }
  return Status();
}

}  // namespace tailrace::verbs
