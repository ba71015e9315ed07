#include "core/encoding_notes.hpp"

#include "core/version.hpp"

namespace tailrace {

bool is_own_attribute(std::string_view name) { return name.starts_with("tailrace_"); }

std::vector<EncodingNote> encoding_notes(const Codec& codec, const ErrorBound& asked,
                                         double absolute_bound, const Guards& guards,
                                         std::optional<double> max_error) {
  const BoundMode mode = codec.lossy() ? asked.mode : BoundMode::none;
  std::vector<EncodingNote> notes = {{codec_attribute, std::string(codec.name())},
                                     {codec_version_attribute, codec.version()},
                                     {bound_mode_attribute, std::string(bound_mode_name(mode))}};
  if (mode != BoundMode::none) notes.push_back({bound_asked_attribute, asked.value});
  if (mode != BoundMode::pw_rel) notes.push_back({absolute_bound_attribute, absolute_bound});
  if (codec.lossy() && !guards.empty()) notes.push_back({guard_attribute, guards_text(guards)});
  if (max_error) notes.push_back({max_error_attribute_name, *max_error});
  notes.push_back({version_attribute, std::string(version_text)});
  return notes;
}

std::vector<EncodingNote> encoding_notes_of_codec(const Codec& codec) {
  return {{codec_attribute, std::string(codec.name())},
          {codec_version_attribute, codec.version()},
          {version_attribute, std::string(version_text)}};
}

}  // namespace tailrace
