// book=auto: that the writer makes the books of a field by itself, from step to step.
//
// A codec is made for one dataset and knows nothing of steps, so for it the setting means "no book
// yet"; the writer puts a book's words in its place as soon as it has one, and asks for a codec
// that counts (write_book.hpp).

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/trz/book_counter.hpp"
#include "core/codec.hpp"
#include "core/status.hpp"

namespace tailrace::trz {

/// Share of the encoded bytes that a book may cost before the next datasets get another one.
inline constexpr double kMostBookLoss = 0.005;

/// What book=auto, book_loss=PERCENT say.
struct AutoBook {
  double most_loss = kMostBookLoss;  ///< Share of encoded bytes.
};

using CodecSettingList = std::vector<std::pair<std::string, std::string>>;

/// The settings' wish, taken out of them; nothing where book is not auto (then book_loss is taken
/// out all the same: it says what was asked before a book took auto's place).
/// @error invalid_argument  book_loss is no number above 0 and at most 100.
Result<std::optional<AutoBook>> take_auto_book(CodecSettingList& settings);

/// The same settings with this book in the place of auto.
void name_book(std::span<const std::uint8_t> book_bytes, CodecSettingList& settings);

/// A trz codec whose chunks are counted. The counter may be null. Not collective. Thread-safe.
/// @error as of make_builtin_codec.
Result<std::unique_ptr<Codec>> make_counting_codec(const CodecRequest& request,
                                                   std::shared_ptr<BookCounter> counter);

}  // namespace tailrace::trz
