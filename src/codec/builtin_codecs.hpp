// The make functions of the built-in codecs; used by codec_registry.cpp alone.
//
// Each reads its settings from the request and returns a codec for that field, or says why not.
// Not collective. Thread-safe. @error invalid_argument, unsupported: see codec/registry.hpp.

#pragma once

#include <memory>

#include "core/codec.hpp"

namespace tailrace {

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
