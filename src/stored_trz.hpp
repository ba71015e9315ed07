// Chunks of our own codec as they stand in any file: decoded without its plug-in, into place; and
// more of them, by what the header says of the bound.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/trz/book.hpp"
#include "core/box.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/status.hpp"

namespace tailrace {

struct TrzDecoder {
  std::uint64_t n_bytes = 0;        ///< Of a decoded chunk.
  std::unique_ptr<trz::Book> book;  ///< Null: chunks have codes of their own.

  /// Thread-safe. @error codec_failed, out_of_memory
  Status decode(std::span<const std::byte> encoded, std::span<std::byte> values) const;
};

/// The decoder of a stored filter; none where it is another filter, or its client data cannot be
/// read. @param lossless  receives whether the filter is.
std::unique_ptr<TrzDecoder> trz_decoder(const FilterSpec& filter, bool& lossless);

/// The codec of a dataset whose only filter is trz, as its header has it: bound, settings, fill
/// value and book, so that chunks which are added keep the bound that the others have. Null: other
/// filters, or client data that do not fit the dataset. Not collective.
std::unique_ptr<Codec> continued_trz_codec(const std::vector<FilterSpec>& filters, DType dtype,
                                           const Shape& chunk_shape);

}  // namespace tailrace
