// What the attributes of a dataset say of how it was encoded (docs/format.md), whoever writes them:
// the engine, or a serial program's own HDF5.

#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/codec.hpp"
#include "core/error_bound.hpp"
#include "core/guards.hpp"

namespace tailrace {

inline constexpr const char* codec_attribute = "tailrace_codec";
inline constexpr const char* bound_mode_attribute = "tailrace_bound_mode";
inline constexpr const char* bound_asked_attribute = "tailrace_bound_asked";
inline constexpr const char* absolute_bound_attribute = "tailrace_absolute_bound";
inline constexpr const char* max_error_attribute_name = "tailrace_max_error";
/// The guards that a dataset's values were written with, as guard= has them.
inline constexpr const char* guard_attribute = "tailrace_guard";

/// An attribute: a text, or one number.
struct EncodingNote {
  std::string name;
  std::variant<std::string, double> value;
};

/// @param absolute_bound  unit of the values; 0: kept exactly, or mode pw_rel.
/// @param max_error  measured, where chunks were verified.
std::vector<EncodingNote> encoding_notes(const Codec& codec, const ErrorBound& asked,
                                         double absolute_bound, const Guards& guards,
                                         std::optional<double> max_error);

}  // namespace tailrace
