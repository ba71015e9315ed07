#include "core/copied_notes.hpp"

#include <algorithm>
#include <vector>

#include "core/encoding_notes.hpp"
#include "trz/base/regions.hpp"

namespace tailrace {
namespace {

/// Suffix of the codec in RowNotes::as_requested if rows have different bounds.
constexpr const char* kSeveralBounds = ", several bounds";

bool names_encoder(const std::string& name) {
  return name == kCodecAttribute || name == kCodecVersionAttribute || name == kVersionAttribute;
}

}  // namespace

bool is_taken_over(const std::string& name, const CopiedNotes* notes) {
  if (!is_own_attribute(name)) return true;
  if (notes == nullptr || notes->instead.contains(name)) return false;
  return notes->of == CopyOf::chunks || (notes->of == CopyOf::values && !names_encoder(name));
}

CopiedNotes no_notes() {
  CopiedNotes notes{CopyOf::nothing};
  for (const char* name : kEncodingNoteNames) notes.instead[name] = std::nullopt;
  return notes;
}

CopiedNotes recorded_as_unknown() {
  CopiedNotes notes = no_notes();
  notes.instead[kCodecAttribute] = kUnknownWord;
  notes.instead[kBoundModeAttribute] = kUnknownWord;
  return notes;
}

bool is_recorded_unknown(const CopiedNotes& notes) {
  const auto mode = notes.instead.find(kBoundModeAttribute);
  if (mode == notes.instead.end() || !mode->second) return false;
  const auto* text = std::get_if<std::string>(&*mode->second);
  return text != nullptr && *text == kUnknownWord;
}

Guards guards_of_copy(Guards guards, bool same_chunks,
                      const std::function<bool(const std::string& mask)>& has_mask) {
  std::erase_if(guards.regions, [&](const RegionGuard& region) {
    return !region.mask.empty() && !has_mask(region.mask);
  });
  if (!same_chunks) {
    guards.sum = false;
    guards.monotone.clear();
  }
  return guards;
}

Guards guards_of_rows(const Guards& of_some, const Guards& of_others) {
  const auto of_any_rows = [](Guards guards) {
    guards.minmax = false;
    guards.sum = false;
    guards.monotone.clear();
    guards.regions.clear();
    return guards;
  };
  const Guards guards = of_any_rows(of_some);
  return guards == of_any_rows(of_others) ? guards : Guards();
}

RowNotes of_all_rows(const RowNotes& some, const RowNotes& others) {
  RowNotes all;
  const bool alike = some.as_requested == others.as_requested;
  const bool bounded = !some.codec.empty() && some.codec == others.codec &&
                       some.absolute_bound > 0 && others.absolute_bound > 0;
  all.recorded = some.recorded && others.recorded && (alike || bounded);
  if (!all.recorded) return all;
  all.as_requested = alike ? some.as_requested : some.codec + kSeveralBounds;
  all.codec = some.codec;
  all.absolute_bound = std::max(some.absolute_bound, others.absolute_bound);
  if (some.max_error && others.max_error)
    all.max_error = std::max(*some.max_error, *others.max_error);
  all.guards = guards_of_rows(some.guards, others.guards);
  return all;
}

CopiedNotes notes_of_rows(const RowNotes& some, const RowNotes& together) {
  CopiedNotes notes;
  if (together.as_requested != some.as_requested) {
    notes.instead[kBoundModeAttribute] = std::string(bound_mode_name(BoundMode::abs));
    notes.instead[kBoundAskedAttribute] = together.absolute_bound;
  }
  if (together.absolute_bound != some.absolute_bound) {
    notes.instead[kAbsoluteBoundAttribute] = together.absolute_bound;
  }
  if (together.max_error != some.max_error) {
    notes.instead[kMaxErrorAttributeName] = std::nullopt;
    if (together.max_error) notes.instead[kMaxErrorAttributeName] = *together.max_error;
  }
  if (together.guards != some.guards) {
    notes.instead[kGuardAttribute] = std::nullopt;
    if (!together.guards.empty()) notes.instead[kGuardAttribute] = guards_text(together.guards);
  }
  return notes;
}

}  // namespace tailrace
