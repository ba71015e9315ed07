// Attributes of a dataset that record how it was encoded (docs/format.md). The engine writes them,
// or a serial program's own HDF5.

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
/// Guards that a dataset's values were written with, in the syntax of guard=.
inline constexpr const char* guard_attribute = "tailrace_guard";
/// Losses of values that were already lossy before this encoding (losses_text()); the recorded
/// bound is their total.
inline constexpr const char* losses_attribute = "tailrace_losses";
/// Bounds of a plotfile's components, and the runs of values of each component
/// (field/box_codec.hpp).
inline constexpr const char* component_bounds_attribute = "tailrace_component_bounds";
inline constexpr const char* component_runs_attribute = "tailrace_component_runs";
inline constexpr const char* version_attribute = "tailrace_version";

/// Mode of the bound, or codec name, when the loss of the values is unknown. Marks datasets for
/// which the file's note that unmarked datasets are exact does not hold.
inline constexpr const char* unknown_word = "unknown";

/// Names of all attributes that can record how a dataset was encoded. A program that re-encodes the
/// dataset removes all old ones. tailrace_covered_cells, which marks the cells that count, is not
/// one of them.
inline constexpr std::array encoding_note_names = {
    codec_attribute,          codec_version_attribute,  bound_mode_attribute,
    bound_asked_attribute,    absolute_bound_attribute, max_error_attribute_name,
    guard_attribute,          losses_attribute,         component_bounds_attribute,
    component_runs_attribute, version_attribute};

/// Return true for attributes that Tailrace writes: the names above, and others with the same
/// prefix (the file's note, covered cells, the progress of a concatenation).
bool is_own_attribute(std::string_view name);

/// An attribute: a text, or one number.
struct EncodingNote {
  std::string name;
  std::variant<std::string, double> value;
};

/// Make the attributes that describe an encoding.
/// @param absolute_bound  unit of the values; 0: exact, or mode pw_rel.
/// @param max_error  measured, if chunks were verified.
/// @param earlier  losses of the values before this encoding. If not empty, the notes state the
/// total, or "unknown" if it cannot be bounded. They then omit guards and max_error, which hold for
/// the encoded values, not for the originals.
std::vector<EncodingNote> encoding_notes(const Codec& codec, const ErrorBound& asked,
                                         double absolute_bound, const Guards& guards,
                                         std::optional<double> max_error,
                                         const Losses& earlier = {});
/// Return the total losses of values with losses `earlier` that are encoded with these parameters.
Losses losses_after(const Losses& earlier, const Codec& codec, const ErrorBound& asked,
                    double absolute_bound);
/// Make the attributes for losses, and for the mode and bound of their total.
std::vector<EncodingNote> notes_of_losses(const Losses& losses);
/// Collect from the attributes of a dataset the facts about its losses.
/// @param text  returns an attribute's text by its name; empty: absent or not a text
/// @param number  returns an attribute's number by its name; nothing: absent or not a number
template <class Text, class Number>
LossFacts loss_facts(const Text& text, const Number& number, bool lossy_filter) {
  return {text(losses_attribute), text(bound_mode_attribute), number(bound_asked_attribute),
          number(absolute_bound_attribute), lossy_filter};
}
/// Make the attributes that describe the codec, without those about losses.
std::vector<EncodingNote> encoding_notes_of_codec(const Codec& codec);

}  // namespace tailrace
