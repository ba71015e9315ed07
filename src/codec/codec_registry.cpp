// The built-in codecs, one line each.

#include "codec/registry.hpp"

#include <array>
#include <string>

namespace tailrace {
namespace {

constexpr std::array<CodecEntry, 5> kRegistry = {{
    {"none", "the values as they are", make_null_codec},
    {"deflate",
     "lossless: byte shuffle and deflate (level=0..9, shuffle=on|off, engine=libdeflate|zlib)",
     make_deflate_codec},
    {"portable",
     "lossy within the bound, readable without any plug-in: rounded values, byte shuffle, deflate",
     make_portable_codec},
    {"trz",
     "lossy within the bound at memory speed, or lossless (preset=fast|default|ratio, predictor=, "
     "dimension=1..4, spline=, last_axis=, lossless=on|off); readers need libh5trz.so",
     make_trz_codec},
    {"xor",
     "lossless at memory speed: xor with neighbours, leading zeros counted (dimension=auto|1|2|3); "
     "readers need libh5xor.so",
     make_xor_codec},
}};

}  // namespace

std::span<const CodecEntry> codec_registry() { return kRegistry; }

Result<std::unique_ptr<Codec>> make_builtin_codec(const CodecRequest& request) {
  std::string known;
  for (const CodecEntry& entry : kRegistry) {
    if (entry.name == request.name) return entry.make(request);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Status(Code::not_found,
                "codec \"" + request.name + "\" is not built in; built in are " + known);
}

}  // namespace tailrace
