// The registry of built-in codecs. A new codec is one file and one line in codec_registry.cpp.

#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/codec.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {

/// A built-in codec: its name, one line for `--help`, and how to make it.
struct CodecEntry {
  std::string_view name;
  std::string_view summary;
  Result<std::unique_ptr<Codec>> (*make)(const CodecRequest& request);
};

/// All built-in codecs, for --help, the conformance tests and docs.
std::span<const CodecEntry> codec_registry();

/// Make the built-in codec that `request` names: none, deflate, portable, trz, xor.
/// Not collective. Thread-safe. @error not_found  no such built-in codec.
/// @error unsupported  a bound > 0 asked of a lossless codec is fine (it is kept); a dtype it
/// cannot.
/// @error invalid_argument  unknown setting or value out of range.
Result<std::unique_ptr<Codec>> make_builtin_codec(const CodecRequest& request);

// --- Filters of our own codecs in datasets that exist, without any plug-in: readers and
// concatenations decode and encode with them directly, on all threads.

/// The stage that a dataset's header describes, if the filter is xor and its client data are those
/// of chunks of `chunk_bytes`; null otherwise, and the plug-in may say why. Lossless, and safe on
/// every input. Decodes to chunk_bytes whatever length it is told. Not collective. Thread-safe.
std::unique_ptr<FilterStage> make_own_stage(const FilterSpec& stored, std::uint64_t chunk_bytes);

// --- The make functions of the built-in codecs; used by codec_registry.cpp alone.
//
// Each reads its settings from the request and returns a codec for that field, or says why not.
// Not collective. Thread-safe. @error invalid_argument, unsupported: see codec/registry.hpp.

/// none: null_codec.cpp. No settings.
Result<std::unique_ptr<Codec>> make_null_codec(const CodecRequest& request);
/// deflate: deflate.cpp. level, shuffle, engine.
Result<std::unique_ptr<Codec>> make_deflate_codec(const CodecRequest& request);
/// portable: portable.cpp. level, shuffle, engine.
Result<std::unique_ptr<Codec>> make_portable_codec(const CodecRequest& request);
/// trz: trz_codec.cpp. preset, predictor, dimension, spline, last_axis, lossless, book, book_loss.
Result<std::unique_ptr<Codec>> make_trz_codec(const CodecRequest& request);
/// xor: xor_codec.cpp. dimension.
Result<std::unique_ptr<Codec>> make_xor_codec(const CodecRequest& request);

}  // namespace tailrace
