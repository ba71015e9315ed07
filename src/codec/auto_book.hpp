// book=auto: the writer makes the shared books of a field from step to step.
//
// A codec is made for one dataset and does not know steps. For the codec, book=auto means "no book
// yet". The writer replaces it with a book's words as soon as it has one, and requests a codec that
// counts its chunks (field/field_book.hpp).

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/codec.hpp"
#include "trz/base/settings_reader.hpp"
#include "trz/base/status.hpp"
#include "trz/book/book_counter.hpp"

namespace tailrace::trz {

/// Share of the encoded bytes that a book may cost before the next datasets get another one.
inline constexpr double kMostBookLoss = 0.005;

/// Parsed form of book=auto, book_loss=PERCENT.
struct AutoBook {
  double most_loss = kMostBookLoss;  ///< Share of encoded bytes.
};

using CodecSettingList = SettingList;

/// Remove book=auto and book_loss from the settings.
/// @returns the request; nothing if book is not auto. Then book_loss is removed too: it belonged to
/// the auto that a book has replaced.
/// @error invalid_argument  book_loss is not a number above 0 and at most 100.
Result<std::optional<AutoBook>> take_auto_book(CodecSettingList& settings);

/// Replace auto by this book in the settings.
void name_book(std::span<const std::uint8_t> book_bytes, CodecSettingList& settings);

/// Make a trz codec whose chunks are counted. The counter may be null. Not collective. Thread-safe.
/// @error see make_codec
Result<std::unique_ptr<Codec>> make_counting_codec(const CodecRequest& request,
                                                   std::shared_ptr<BookCounter> counter);

}  // namespace tailrace::trz
