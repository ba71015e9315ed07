// A codec for the chunks of any stored dataset: its filter pipeline and element type as they are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codec/trz/book/book.hpp"
#include "core/box.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/status.hpp"
#include "hdf5/dataset_schema.hpp"

namespace tailrace {

// --- Chunks of our own codec as they stand in any file: decoded without its plug-in, into place;
// and more of them, by what the header says of the bound.

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

// --- A codec for the chunks of any stored dataset: its filter pipeline and element type as they
// are.
//
// Pipelines of shuffle, deflate and Fletcher's checksum are ours (thread-safe, libdeflate), and so
// are those with plug-ins that are known to be re-entrant; everything else (szip, nbit,
// scale-offset, plug-ins that we do not know) goes through HDF5 in a file that lives in memory, one
// chunk at a time under the HDF5 lock. In this room because it takes built-in stages from src/codec
// and HDF5's from src/container.

/// A Codec that can also decode into memory that is there: what tiny chunks need.
class StoredCodec : public Codec {
 public:
  /// Decode the stored bytes of one chunk; bit i of `filter_mask` says that filter i was skipped.
  /// `values` takes exactly the chunk's uncompressed bytes, in the file's byte order.
  /// Not collective. Thread-safe. Pipelines of ours allocate nothing once a thread is warm; the
  /// others go through decode().
  /// @error codec_failed  the bytes do not decode to a chunk of this shape, or their checksum is
  /// wrong; `values` is then undefined.
  virtual Status decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                             std::span<std::byte> values) const;
};

/// Make the codec with which `storage`'s chunks (kind chunked, elements of `dataset.type`) are
/// decoded, and new ones encoded with the same pipeline. Values are raw bytes of the file's type,
/// in the file's byte order. Not collective. Takes the HDF5 lock unless the filters are built in.
/// The codec is thread-safe.
/// @error plugin_missing  a filter that nobody can run; its chunks can still be copied as they are.
/// @error unsupported     `dataset` is not by_value, or HDF5 refuses its pipeline.
Result<std::unique_ptr<StoredCodec>> make_stored_codec(const StoredDataset& dataset,
                                                       const StoredForm& storage,
                                                       const std::string& plugin_path);

/// The filters of deflate at `level` (0 to 9) for elements of `element_bytes`, with or without
/// shuffle (which elements of one byte never get), as they stand in a dataset's header: what
/// `--codec deflate` writes.
std::vector<FilterSpec> deflate_filters(std::uint32_t level, bool shuffle,
                                        std::uint64_t element_bytes);

}  // namespace tailrace
