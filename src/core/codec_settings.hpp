// CodecSettings: reads a codec's own keys (level=5, shuffle=off, cd=1:2:3) out of a CodecRequest.
//
// Here rather than in src/codec because built-in codecs and plug-ins read their settings the same
// way.

#pragma once

#include <string_view>

#include "core/codec.hpp"
#include "trz/base/settings_reader.hpp"

namespace tailrace {

/// Not thread-safe; lives for the length of one make function.
class CodecSettings : public SettingsReader {
 public:
  /// `request` must outlive this object.
  explicit CodecSettings(const CodecRequest& request)
      : SettingsReader(request.name, request.settings) {}

  /// on or off.
  bool flag(std::string_view key, bool otherwise);
};

}  // namespace tailrace
