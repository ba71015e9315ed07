#include "core/encoding_notes.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/version.hpp"

namespace tailrace {

bool is_own_attribute(std::string_view name) { return name.starts_with("tailrace_"); }

std::vector<EncodingNote> encoding_notes(const Codec& codec, const ErrorBound& asked,
                                         double absolute_bound, const Guards& guards,
                                         std::optional<double> max_error, const Losses& earlier) {
  if (!earlier.empty()) {
    std::vector<EncodingNote> total = encoding_notes_of_codec(codec);
    std::ranges::move(notes_of_losses(losses_after(earlier, codec, asked, absolute_bound)),
                      std::back_inserter(total));
    return total;
  }
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

Losses losses_after(const Losses& earlier, const Codec& codec, const ErrorBound& asked,
                    double absolute_bound) {
  Losses losses = earlier;
  if (!codec.lossy()) return losses;
  if (asked.mode == BoundMode::pw_rel) {
    losses.push_back(asked);
  } else if (std::isinf(absolute_bound)) {
    losses.emplace_back();
  } else if (absolute_bound > 0) {
    losses.push_back({BoundMode::abs, absolute_bound});
  }
  return losses;
}

std::vector<EncodingNote> notes_of_losses(const Losses& losses) {
  std::vector<EncodingNote> notes = {{losses_attribute, losses_text(losses)}};
  const std::optional<ErrorBound> total = total_of(losses);
  notes.push_back(
      {bound_mode_attribute, std::string(total ? bound_mode_name(total->mode) : unknown_word)});
  if (!total) return notes;
  notes.push_back({bound_asked_attribute, total->value});
  if (total->mode == BoundMode::abs) notes.push_back({absolute_bound_attribute, total->value});
  return notes;
}

std::vector<EncodingNote> encoding_notes_of_codec(const Codec& codec) {
  return {{codec_attribute, std::string(codec.name())},
          {codec_version_attribute, codec.version()},
          {version_attribute, std::string(version_text)}};
}

}  // namespace tailrace
