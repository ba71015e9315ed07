// Makers of the built-in codecs, for the table in built_in_codecs.cpp, and codecs for existing
// datasets.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// Make the codec of a dataset whose only filter is trz, from its header: bound, settings, fill
/// value and book. Added chunks thus have the same bound as the others. The header does not record
/// guards. Null: other filters, or client data that do not fit the dataset. Not collective.
/// Thread-safe.
std::unique_ptr<Codec> continued_codec(const std::vector<FilterSpec>& filters, DType dtype,
                                       const Shape& chunk_shape, const ValueGuards& guards);

// --- Makers: each reads its settings from the request and returns a codec for that field, or the
// reason why not. None looks for plug-ins. Not collective. Thread-safe. @error invalid_argument,
// unsupported: see make_codec() in core/codec_registry.hpp.

Result<std::unique_ptr<Codec>> make_null_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_deflate_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_portable_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_trz_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_xor_codec(const CodecRequest& request, const std::string&);

// --- Stages for filters stored in a dataset's header; see CodecEntry::stage.

using StoredStage = Result<std::unique_ptr<FilterStage>>;
StoredStage stored_deflate_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t);
StoredStage stored_fletcher32_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t);
StoredStage stored_trz_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t chunk_bytes);
StoredStage stored_xor_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t chunk_bytes);

}  // namespace tailrace
