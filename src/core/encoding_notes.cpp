#include "core/encoding_notes.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/version.hpp"

namespace tailrace {

bool is_own_attribute(std::string_view name) { return name.starts_with("tailrace_"); }

std::vector<EncodingNote> encoding_notes(const Codec& codec, const ErrorBound& requested,
                                         double absolute_bound, const Guards& guards,
                                         std::optional<double> max_error, const Losses& earlier) {
  if (!earlier.empty()) {
    std::vector<EncodingNote> total = encoding_notes_of_codec(codec);
    std::ranges::move(notes_of_losses(losses_after(earlier, codec, requested, absolute_bound)),
                      std::back_inserter(total));
    return total;
  }
  const BoundMode mode = codec.lossy() ? requested.mode : BoundMode::none;
  std::vector<EncodingNote> notes = {{kCodecAttribute, std::string(codec.name())},
                                     {kCodecVersionAttribute, codec.version()},
                                     {kBoundModeAttribute, std::string(bound_mode_name(mode))}};
  if (mode != BoundMode::none) notes.push_back({kBoundAskedAttribute, requested.value});
  if (mode != BoundMode::pw_rel) notes.push_back({kAbsoluteBoundAttribute, absolute_bound});
  if (codec.lossy() && !guards.empty()) notes.push_back({kGuardAttribute, guards_text(guards)});
  if (max_error) notes.push_back({kMaxErrorAttributeName, *max_error});
  notes.push_back({kVersionAttribute, std::string(version_text)});
  return notes;
}

Losses losses_after(const Losses& earlier, const Codec& codec, const ErrorBound& requested,
                    double absolute_bound) {
  Losses losses = earlier;
  if (!codec.lossy()) return losses;
  if (requested.mode == BoundMode::pw_rel) {
    losses.push_back(requested);
  } else if (std::isinf(absolute_bound)) {
    losses.emplace_back();
  } else if (absolute_bound > 0) {
    losses.push_back({BoundMode::abs, absolute_bound});
  }
  return losses;
}

std::vector<EncodingNote> notes_of_losses(const Losses& losses) {
  std::vector<EncodingNote> notes = {{kLossesAttribute, losses_text(losses)}};
  const std::optional<ErrorBound> total = total_of(losses);
  notes.push_back(
      {kBoundModeAttribute, std::string(total ? bound_mode_name(total->mode) : kUnknownWord)});
  if (!total) return notes;
  notes.push_back({kBoundAskedAttribute, total->value});
  if (total->mode == BoundMode::abs) notes.push_back({kAbsoluteBoundAttribute, total->value});
  return notes;
}

std::vector<EncodingNote> encoding_notes_of_codec(const Codec& codec) {
  return {{kCodecAttribute, std::string(codec.name())},
          {kCodecVersionAttribute, codec.version()},
          {kVersionAttribute, std::string(version_text)}};
}

}  // namespace tailrace
