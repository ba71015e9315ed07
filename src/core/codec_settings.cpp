// Settings that need the option table's parser: switches.

#include "core/codec_settings.hpp"

#include "core/options.hpp"

namespace tailrace {

bool CodecSettings::flag(std::string_view key, bool otherwise) {
  const std::string* text = find(key);
  if (text == nullptr) return otherwise;
  Result<bool> value = parse_switch(key, *text);
  if (value.ok()) return *value;
  fail(key, "on or off", *text);
  return otherwise;
}

}  // namespace tailrace
