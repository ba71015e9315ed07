// The one table of options: names, values, meaning, who serves them and who must give them alike.
//
// From it come the parser of "key=value,key=value", the names that a misspelt one is compared with,
// the text by which ranks compare what they were given, the refusal of what a door does not
// serve, `tailrace options` and docs/options.md. A new option is a member of a struct in
// options.hpp and a line here. Single values that only some doors serve: policy/door_rules.hpp.
//
// Unknown keys are never dropped: keys that are none of these are codecs' settings, by name; what
// is no codec's either is an error. A field's own options win over the file's defaults.

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

/// Who has to give an option alike.
enum class Agreement : std::uint8_t {
  alike,  ///< All ranks: it steers what goes into the file, or who waits for whom.
  root,   ///< Rank 0's counts; what the others give is not looked at.
  own     ///< Each rank's own: it costs that rank time or memory, and decides nothing.
};

inline constexpr std::array<Door, 7> all_doors = {
    Door::steps, Door::python, Door::pnetcdf, Door::hdf5, Door::serial, Door::repack, Door::concat};
constexpr unsigned bit_of(Door door) { return static_cast<unsigned>(door); }
constexpr unsigned bits_of(std::initializer_list<Door> doors) {
  unsigned bits = 0;
  for (const Door door : doors) bits |= bit_of(door);
  return bits;
}
/// "steps", "python": the door's name in tables.
std::string_view door_name(Door door);
/// "the Python interface": the door, as messages name it.
std::string_view door_text(Door door);

template <class Options>
struct OptionEntry {
  std::string_view name;
  std::string_view values;   ///< "on|off", "BYTES": what may stand behind the '='.
  std::string_view meaning;  ///< One sentence.
  Agreement agreement = Agreement::alike;
  unsigned doors = 0;  ///< Those that serve it, as bits of Door.
  Status (*assign)(const KeyValue& entry, Options& options) = nullptr;
  /// The value as a text, equal for two structs exactly if the option is.
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

/// A line "key=value" for each option that ranks must give alike: equal on two ranks exactly if
/// they mean the same. Not collective; compare by agree_on_text().
std::string agreed_text(const FileOptions& options, Door door);
std::string agreed_text(const FieldOptions& options);

/// Refuse options that `door` does not serve, unless they have their defaults. Callers use
/// check_door() (policy/door_rules.hpp), which checks single values, too.
/// Not collective, and alike where agreed_text() is.
/// @error invalid_argument  names the option, who does not serve it, and what is served.
Status check_served(const FileOptions& options, Door door);
Status check_served(const FieldOptions& options, Door door);

/// The default as a user would write it; "none" where that is empty.
std::string default_text(const OptionEntry<FileOptions>& entry);
std::string default_text(const OptionEntry<FieldOptions>& entry);

/// "steps, python, serial": the doors of these bits; "all ranks", "rank 0's", "each rank's".
std::string served_by_text(unsigned doors);
std::string_view agreement_text(Agreement agreement);

/// The whole table as Markdown: docs/options.md, held to this by a test.
std::string option_table_markdown();

/// Check a key that is no field option.
/// @param codec  the codec that was named, whose setting it is to be; empty, or one that is not in
/// the registry: any codec's.
/// @error invalid_argument  names the key, the nearest of the names, and those there are.
Status check_codec_setting(std::string_view key, std::string_view codec);

}  // namespace tailrace
