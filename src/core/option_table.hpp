// The table of all options: names, values, meaning, which interfaces serve them, and which must be
// the same on all ranks.
//
// The table drives the parser of "key=value,key=value", the suggestions for misspelt names, and the
// text by which ranks compare options. It also drives the refusal of options that a door does not
// serve, `tailrace options` and docs/options.md. To add an option, add a member to a struct in
// options.hpp and a line here. policy/door_rules.hpp has single values that only some doors serve.
//
// Unknown keys are never dropped: a key outside the table must be a setting of a codec; otherwise
// it is an error. A field's own options override the file's defaults.

#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Ranks that must give an option identically.
enum class Agreement : std::uint8_t {
  alike,  ///< All ranks: it affects the file's content, or which rank waits for which.
  root,   ///< Rank 0's value counts; other ranks' values are ignored.
  own     ///< Each rank's own value: it only affects that rank's time or memory.
};

inline constexpr std::array<Door, 7> kAllDoors = {
    Door::steps, Door::python, Door::pnetcdf, Door::hdf5, Door::serial, Door::repack, Door::concat};
constexpr unsigned bit_of(Door door) { return static_cast<unsigned>(door); }
constexpr unsigned bits_of(std::initializer_list<Door> doors) {
  unsigned bits = 0;
  for (const Door door : doors) bits |= bit_of(door);
  return bits;
}
/// Return the door's name in tables: "steps", "python".
std::string_view door_name(Door door);
/// Return the door's name in messages: "the Python interface".
std::string_view door_text(Door door);

template <class Options>
struct OptionEntry {
  std::string_view name;
  std::string_view values;   ///< "on|off", "BYTES": the possible values.
  std::string_view meaning;  ///< One sentence.
  Agreement agreement = Agreement::alike;
  unsigned doors = 0;  ///< Doors that serve it, as bits of Door.
  Status (*assign)(const KeyValue& entry, Options& options) = nullptr;
  /// Returns the value as a text; two structs give the same text exactly if the option is equal.
  std::string (*text)(const Options& options) = nullptr;
};
std::span<const OptionEntry<FileOptions>> file_option_table();
std::span<const OptionEntry<FieldOptions>> field_option_table();

/// Apply "codec=zfp,bound=abs=1e3" on top of `options`.
/// @error invalid_argument  a value that does not parse; the text names the key.
Status apply_field_options(std::string_view text, FieldOptions& options);
Status apply_field_option(const KeyValue& entry, FieldOptions& options);

/// Apply "threads=2,memory=256MB,codec=sz3,bound=rel=1e-3" on top of `options`; field keys become
/// the defaults of all fields. @error invalid_argument
Status apply_file_options(std::string_view text, FileOptions& options);
Status apply_file_option(const KeyValue& entry, FileOptions& options);

/// Make a line "key=value" for each option that must be alike on all ranks. Two ranks' texts are
/// equal exactly if their options are. Not collective; compare by agree_on_text().
std::string agreed_text(const FileOptions& options, Door door);
std::string agreed_text(const FieldOptions& options);

/// Check that `door` serves all options that differ from their defaults. Callers use check_door()
/// (policy/door_rules.hpp), which also checks single values. Not collective; alike on all ranks if
/// agreed_text() is.
/// @error invalid_argument  names the option, the door, and the options that it serves.
Status check_served(const FileOptions& options, Door door);
Status check_served(const FieldOptions& options, Door door);

/// Return the default in the user's syntax; "none" if that is empty.
std::string default_text(const OptionEntry<FileOptions>& entry);
std::string default_text(const OptionEntry<FieldOptions>& entry);

/// Return the names of these doors: "steps, python, serial". agreement_text() returns "all ranks",
/// "rank 0's", "each rank's".
std::string served_by_text(unsigned doors);
std::string_view agreement_text(Agreement agreement);

/// Return the complete table as Markdown; a test compares docs/options.md with it.
std::string option_table_markdown();

/// Check a key that is not a field option.
/// @param codec  the named codec, which must have this setting; if empty or not in the registry,
/// the setting may be any codec's.
/// @param value  the key's value, for the hint at bound=; empty: none.
/// @error invalid_argument  names the key, the nearest known name, and all known names.
Status check_codec_setting(std::string_view key, std::string_view codec,
                           std::string_view value = {});

}  // namespace tailrace
