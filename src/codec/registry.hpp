// The registry of built-in codecs. A new codec is one file and one line in codec_registry.cpp.

#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/codec.hpp"

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

}  // namespace tailrace
