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

inline constexpr const char* kCodecAttribute = "tailrace_codec";
inline constexpr const char* kCodecVersionAttribute = "tailrace_codec_version";
inline constexpr const char* kBoundModeAttribute = "tailrace_bound_mode";
inline constexpr const char* kBoundAskedAttribute = "tailrace_bound_asked";
inline constexpr const char* kAbsoluteBoundAttribute = "tailrace_absolute_bound";
inline constexpr const char* kMaxErrorAttributeName = "tailrace_max_error";
/// Guards that a dataset's values were written with, in the syntax of guard=.
inline constexpr const char* kGuardAttribute = "tailrace_guard";
/// Losses of values that were already lossy before this encoding (losses_text()); the recorded
/// bound is their total.
inline constexpr const char* kLossesAttribute = "tailrace_losses";
/// Bounds of a plotfile's components, and the runs of values of each component
/// (field/box_codec.hpp).
inline constexpr const char* kComponentBoundsAttribute = "tailrace_component_bounds";
inline constexpr const char* kComponentRunsAttribute = "tailrace_component_runs";
/// Fill value that a lossy encoding stored exactly, although the dataset declares none or another.
inline constexpr const char* kFillValueAttribute = "tailrace_fill_value";
inline constexpr const char* kVersionAttribute = "tailrace_version";

/// Mode of the bound, or codec name, when the loss of the values is unknown. Marks datasets for
/// which the file's note that unmarked datasets are exact does not hold.
inline constexpr const char* kUnknownWord = "unknown";

/// Names of all attributes that can record how a dataset was encoded. A program that re-encodes the
/// dataset removes all old ones. tailrace_covered_cells, which marks the cells that count, is not
/// one of them.
inline constexpr std::array kEncodingNoteNames = {
    kCodecAttribute,           kCodecVersionAttribute,  kBoundModeAttribute, kBoundAskedAttribute,
    kAbsoluteBoundAttribute,   kMaxErrorAttributeName,  kGuardAttribute,     kLossesAttribute,
    kComponentBoundsAttribute, kComponentRunsAttribute, kFillValueAttribute, kVersionAttribute};

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
std::vector<EncodingNote> encoding_notes(const Codec& codec, const ErrorBound& requested,
                                         double absolute_bound, const Guards& guards,
                                         std::optional<double> max_error,
                                         const Losses& earlier = {});
/// Return the total losses of values with losses `earlier` that are encoded with these parameters.
Losses losses_after(const Losses& earlier, const Codec& codec, const ErrorBound& requested,
                    double absolute_bound);
/// Make the attributes for losses, and for the mode and bound of their total.
std::vector<EncodingNote> notes_of_losses(const Losses& losses);
/// Collect from the attributes of a dataset the facts about its losses.
/// @param text  returns an attribute's text by its name; empty: absent or not a text
/// @param number  returns an attribute's number by its name; nothing: absent or not a number
template <class Text, class Number>
LossFacts loss_facts(const Text& text, const Number& number, bool lossy_filter) {
  return {text(kLossesAttribute), text(kBoundModeAttribute), number(kBoundAskedAttribute),
          number(kAbsoluteBoundAttribute), lossy_filter};
}
/// Make the attributes that describe the codec, without those about losses.
std::vector<EncodingNote> encoding_notes_of_codec(const Codec& codec);

}  // namespace tailrace
