// What the attributes of a dataset say of how it was encoded (docs/format.md), whoever writes them:
// the engine, or a serial program's own HDF5.

#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/codec.hpp"
#include "core/losses.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"

namespace tailrace {

inline constexpr const char* codec_attribute = "tailrace_codec";
inline constexpr const char* codec_version_attribute = "tailrace_codec_version";
inline constexpr const char* bound_mode_attribute = "tailrace_bound_mode";
inline constexpr const char* bound_asked_attribute = "tailrace_bound_asked";
inline constexpr const char* absolute_bound_attribute = "tailrace_absolute_bound";
inline constexpr const char* max_error_attribute_name = "tailrace_max_error";
/// The guards that a dataset's values were written with, as guard= has them.
inline constexpr const char* guard_attribute = "tailrace_guard";
/// Losses of values that were lossy before this encoding (losses_text()); the bound is their total.
inline constexpr const char* losses_attribute = "tailrace_losses";
/// Of a plotfile's components: their bounds, and which values are whose (field/box_codec.hpp).
inline constexpr const char* component_bounds_attribute = "tailrace_component_bounds";
inline constexpr const char* component_runs_attribute = "tailrace_component_runs";
inline constexpr const char* version_attribute = "tailrace_version";

/// As mode of the bound, and as codec by who does not know it: nobody says what the values have
/// lost. For datasets of which a note on the file that silent ones are exact is not true.
inline constexpr const char* unknown_word = "unknown";

/// All that may stand at a dataset of how it was encoded: who encodes it anew lets none of the old
/// ones stay. What says which of its cells count (tailrace_covered_cells) is none of them.
inline constexpr std::array encoding_note_names = {
    codec_attribute,          codec_version_attribute,  bound_mode_attribute,
    bound_asked_attribute,    absolute_bound_attribute, max_error_attribute_name,
    guard_attribute,          losses_attribute,         component_bounds_attribute,
    component_runs_attribute, version_attribute};

/// Whether an attribute is one of those that our files have: these, and the others whose names
/// begin alike (the file's note, covered cells, how far a concatenation is).
bool is_own_attribute(std::string_view name);

/// An attribute: a text, or one number.
struct EncodingNote {
  std::string name;
  std::variant<std::string, double> value;
};

/// @param absolute_bound  unit of the values; 0: kept exactly, or mode pw_rel.
/// @param max_error  measured, where chunks were verified.
/// @param earlier  losses of the values before this encoding. With any, the notes state the total,
/// or "unknown" where there is none, and neither guards nor max_error: these hold of the encoded
/// values, not of the originals.
std::vector<EncodingNote> encoding_notes(const Codec& codec, const ErrorBound& asked,
                                         double absolute_bound, const Guards& guards,
                                         std::optional<double> max_error,
                                         const Losses& earlier = {});
/// The losses of values that had `earlier` ones and are encoded with these parameters.
Losses losses_after(const Losses& earlier, const Codec& codec, const ErrorBound& asked,
                    double absolute_bound);
/// Losses, and the mode and bound of their total.
std::vector<EncodingNote> notes_of_losses(const Losses& losses);
/// Facts that the attributes of a dataset tell of its losses.
/// @param text    an attribute's text by its name; empty: absent or no text
/// @param number  an attribute's number by its name; nothing: absent or no number
template <class Text, class Number>
LossFacts loss_facts(const Text& text, const Number& number, bool lossy_filter) {
  return {text(losses_attribute), text(bound_mode_attribute), number(bound_asked_attribute),
          number(absolute_bound_attribute), lossy_filter};
}
/// Notes of how values are encoded, without what these have lost.
std::vector<EncodingNote> encoding_notes_of_codec(const Codec& codec);

}  // namespace tailrace
