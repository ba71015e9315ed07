// The names that option texts may hold: of the file, of fields, and of codecs' settings.
//
// A misspelt name must not pass for a codec's setting, which is read only where that codec is made:
// late, or never, where a variable is kept by another one. So the parser knows every name.
// A test holds the lists against the parser and the codecs.

#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace tailrace {

/// Names of file options and of field options, without those of codecs.
std::span<const std::string_view> file_option_names();
std::span<const std::string_view> field_option_names();

/// What a codec reads; "id" stands for every plug-in by number.
struct CodecSettingNames {
  std::string_view codec;
  std::vector<std::string_view> names;
};
const std::vector<CodecSettingNames>& codec_setting_names();

/// Check a key that is no field option. Pure.
/// @param codec  the codec that was named, whose setting it is to be; empty, or one without a list:
/// any codec's.
/// @error invalid_argument  names the key, the nearest of the names, and those there are.
Status check_codec_setting(std::string_view key, std::string_view codec);

}  // namespace tailrace
