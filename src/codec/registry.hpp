// The makers of the built-in codecs, for their table in built_in_codecs.cpp, and codecs of ours for
// datasets that exist.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// The codec of a dataset whose only filter is trz, as its header has it: bound, settings, fill
/// value and book, so that chunks which are added keep the bound that the others have; and guards,
/// which the header does not know. Null: other filters, or client data that do not fit the dataset.
/// Not collective. Thread-safe.
std::unique_ptr<Codec> continued_codec(const std::vector<FilterSpec>& filters, DType dtype,
                                       const Shape& chunk_shape, const ValueGuards& guards);

// --- Each reads its settings from the request and returns a codec for that field, or says why not.
// None looks for plug-ins. Not collective. Thread-safe. @error invalid_argument, unsupported: see
// make_codec() in core/codec_registry.hpp.

Result<std::unique_ptr<Codec>> make_null_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_deflate_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_portable_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_trz_codec(const CodecRequest& request, const std::string&);
Result<std::unique_ptr<Codec>> make_xor_codec(const CodecRequest& request, const std::string&);

// --- Their filters as they stand in a dataset's header; see CodecEntry::stage.

using StoredStage = Result<std::unique_ptr<FilterStage>>;
StoredStage stored_deflate_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t);
StoredStage stored_fletcher32_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t);
StoredStage stored_trz_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t chunk_bytes);
StoredStage stored_xor_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t chunk_bytes);

}  // namespace tailrace
