// A codec for the chunks of any stored dataset: its filter pipeline and element type as they are.
//
// Filters of the registry (deflate, shuffle, Fletcher's checksum, our own codecs) run as the stages
// of a pipeline of ours, thread-safe and without any plug-in, and so do plug-ins; everything else
// (szip, nbit, scale-offset, filter classes that only this process's HDF5 knows) goes through HDF5
// in a file that lives in memory, one chunk at a time under the HDF5 lock.

#pragma once

#include <memory>
#include <string>

#include "core/codec.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Make the codec with which `storage`'s chunks (kind chunked, elements of `dataset.type`) are
/// decoded, and new ones encoded with the same pipeline. Values are raw bytes of the file's type,
/// in the file's byte order. What encode() returns decodes to the very values it was given: values
/// that a filter would change are refused. Not collective. Takes the HDF5 lock unless the filters
/// are built in. The codec is thread-safe.
/// @error plugin_missing  a filter that nobody can run; its chunks can still be copied as they are.
/// @error unsupported     `dataset` is not by_value, or HDF5 refuses its pipeline.
Result<std::unique_ptr<Codec>> make_stored_codec(const StoredDataset& dataset,
                                                 const StoredForm& storage,
                                                 const std::string& plugin_path);

/// Make the codec of a dataset whose chunks are copied as they are stored: it names the filters and
/// loads none, so that unknown ones are served. It neither encodes nor decodes.
std::unique_ptr<Codec> make_copying_codec(const StoredForm& storage);

}  // namespace tailrace
