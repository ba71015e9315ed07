// CodecSettings: reads a codec's own keys (level=5, shuffle=off, cd=1:2:3) from a CodecRequest.
//
// Part of core because built-in codecs and plug-ins read their settings in the same way.

#pragma once

#include <string_view>

#include "core/codec.hpp"
#include "trz/base/settings_reader.hpp"

namespace tailrace {

/// Not thread-safe; used within one make function.
class CodecSettings : public SettingsReader {
 public:
  /// `request` must outlive this object.
  explicit CodecSettings(const CodecRequest& request)
      : SettingsReader(request.name, request.settings) {}

  /// Return the switch `key` (on or off), or `otherwise` if it is not set.
  bool flag(std::string_view key, bool otherwise);
};

}  // namespace tailrace
