// A codec for the chunks of any stored dataset, with its filter pipeline and element type.
//
// Filters of the registry (deflate, shuffle, Fletcher's checksum, our own codecs) and plug-ins run
// as stages of our pipeline, thread-safe; the former need no plug-in. All other filters (szip,
// nbit, scale-offset, filter classes that only this process's HDF5 knows) run in HDF5. They use a
// file in memory, one chunk at a time under the HDF5 lock.

#pragma once

#include <memory>
#include <string>

#include "core/codec.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Make the codec that decodes `storage`'s chunks (kind chunked, elements of `dataset.type`) and
/// encodes new chunks with the same pipeline. Values are raw bytes of the file's type, in the
/// file's byte order. A result of encode() decodes to exactly the input values: values that a
/// filter would change are refused. Not collective. Takes the HDF5 lock unless the filters are
/// built in. The codec is thread-safe.
/// @error plugin_missing  no implementation of a filter is available; its chunks can still be
/// copied.
/// @error unsupported     `dataset` is not by_value, or HDF5 refuses its pipeline.
Result<std::unique_ptr<Codec>> make_stored_codec(const StoredDataset& dataset,
                                                 const StoredForm& storage,
                                                 const std::string& plugin_path);

/// Make the codec of a dataset whose chunks are copied as stored. It names the filters and loads
/// none, so that unknown filters are supported. It neither encodes nor decodes.
std::unique_ptr<Codec> make_copying_codec(const StoredForm& storage);

}  // namespace tailrace
