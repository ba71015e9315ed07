// Rules on single values, and the page that shows them.

#include "policy/door_rules.hpp"

#include <algorithm>
#include <array>

#include "core/codec_registry.hpp"
#include "trz/base/regions.hpp"

namespace tailrace {
namespace {

constexpr unsigned kAllBits = 127;

bool asks_for_plugin(const FieldOptions& field) {
  if (!field.codec_given || field.codec == kAutoCodec) return false;
  const CodecEntry* const entry = find_codec(field.codec);
  return entry == nullptr || entry->plugin || entry->loss == Loss::unknown;
}

bool learns_book(const FieldOptions& field) {
  return std::ranges::find(field.codec_settings, KeyValue{"book", "auto"}) !=
         field.codec_settings.end();
}

constexpr auto rules = std::to_array<ValueRule>({
    {"attributes=one",
     [](const FileOptions* file, const FieldOptions&) {
       return file != nullptr && file->notes == Notes::one;
     },
     kAllBits & ~bit_of(Door::serial),
     "the root group belongs to the program; use attributes=off or attributes=all"},
    {"codec=zstd",
     [](const FileOptions*, const FieldOptions& field) { return asks_for_plugin(field); },
     kAllBits & ~bit_of(Door::serial), "HDF5 itself runs the filter plug-ins"},
    {"codec=trz,bound=abs=1,book=auto",
     [](const FileOptions*, const FieldOptions& field) { return learns_book(field); },
     bits_of({Door::steps, Door::repack}), "a shared book is learned from the steps of a field"},
    {"guard=minmax",
     [](const FileOptions*, const FieldOptions& field) { return field.guards.minmax; },
     bits_of({Door::steps, Door::repack}), "it needs all values of a field at once"},
    {"guard=sum",
     [](const FileOptions*, const FieldOptions& field) {
       return field.guards.of_all() && !field.guards.minmax;
     },
     bits_of({Door::steps, Door::repack}), "it needs all values of a chunk at once"},
    {"guard=region=/mask:1e-3",
     [](const FileOptions*, const FieldOptions& field) { return has_masks(field.guards.regions); },
     bits_of({Door::repack}),
     "a mask works only with tailrace repack, which reads it from its input file"},
    {"guard=region=0..2:1e-3",
     [](const FileOptions*, const FieldOptions& field) {
       return !field.guards.regions.empty() && !has_masks(field.guards.regions);
     },
     kAllBits & ~bit_of(Door::serial), "chunks of a region need a codec of their own"},
    {"layout=contiguous",
     [](const FileOptions*, const FieldOptions& field) { return field.layout == "contiguous"; },
     bits_of({Door::steps, Door::python, Door::pnetcdf, Door::repack}),
     "this interface stores datasets in chunks"},
    {"layout=arena",
     [](const FileOptions*, const FieldOptions& field) {
       return field.layout != "claimed" && field.layout != "dense" &&
              field.layout != "contiguous" && field.layout != kFrontLayout;
     },
     kAllBits & ~bit_of(Door::concat), "concat writes chunks one after another"},
    {"layout=front",
     [](const FileOptions*, const FieldOptions& field) { return field.layout == kFrontLayout; },
     bits_of({Door::steps, Door::pnetcdf, Door::repack, Door::concat}),
     "layout=front needs a file that is written all at once"},
});

/// Return the name of the option that a rule is about.
std::string_view option_of(const ValueRule& rule) {
  return rule.example.substr(0, rule.example.find('='));
}

/// Find the option table's entry of a name; null: not in the table.
template <class Options>
const OptionEntry<Options>* find_entry(std::span<const OptionEntry<Options>> table,
                                       std::string_view name) {
  const auto found = std::ranges::find(table, name, &OptionEntry<Options>::name);
  return found == table.end() ? nullptr : &*found;
}

/// Format the option of a rule that applies, with its value: "layout=sparse".
std::string value_of(const ValueRule& rule, const FileOptions* file, const FieldOptions& field) {
  const std::string_view option = option_of(rule);
  const auto* const of_field = find_entry(field_option_table(), option);
  return std::string(option) + "=" +
         (of_field != nullptr ? of_field->text(field)
                              : find_entry(file_option_table(), option)->text(*file));
}

Status check_rules(const FileOptions* file, const FieldOptions& field, Door door) {
  for (const ValueRule& rule : rules) {
    if ((rule.doors & bit_of(door)) != 0 || !rule.selected(file, field)) continue;
    return Status(Code::unsupported, "option " + value_of(rule, file, field) + ": not served by " +
                                         std::string(door_text(door)) + ", since " +
                                         std::string(rule.why) +
                                         "; served by: " + served_by_text(doors_of(rule)));
  }
  return Status();
}

}  // namespace

std::span<const ValueRule> value_rules() { return rules; }

unsigned doors_of(const ValueRule& rule) {
  const auto* const of_field = find_entry(field_option_table(), option_of(rule));
  return rule.doors &
         (of_field != nullptr ? of_field->doors
                              : find_entry(file_option_table(), option_of(rule))->doors);
}

Status check_door(const FieldOptions& options, Door door) {
  TAILRACE_TRY(check_served(options, door));
  return check_rules(nullptr, options, door);
}

Status check_door(const FileOptions& options, Door door) {
  TAILRACE_TRY(check_served(options, door));
  if (options.compatibility == Compatibility::v110 &&
      options.field_defaults.layout == kFrontLayout) {
    return Status(Code::invalid_argument,
                  "options layout=front and compatibility=v110 exclude each other: layout=front "
                  "writes metadata as compatibility=everyone does");
  }
  return check_rules(&options, options.field_defaults, door);
}

Status check_door(const GlobOptions& options) {
  TAILRACE_TRY(check_door(options.file, options.file.door));
  for (const auto& [pattern, text] : options.variable_options) {
    FieldOptions own;
    TAILRACE_TRY(apply_field_options(text, own).within("options of \"" + pattern + "\""));
    TAILRACE_TRY(check_door(own, options.file.door).within("options of \"" + pattern + "\""));
  }
  return Status();
}

Status check_front_of_file(const FieldOptions& options) {
  if (options.layout != kFrontLayout) return Status();
  return Status(Code::invalid_argument,
                "layout=front applies to the whole file; set it in the file's options");
}

// --- docs/options.md

namespace {

std::string cells_of(unsigned doors) {
  std::string cells;
  for (const Door door : kAllDoors) cells += (doors & bit_of(door)) != 0 ? " | yes" : " | no";
  return cells;
}

template <class Entries>
std::string door_rows(const Entries& entries) {
  std::string text;
  for (const auto& entry : entries) {
    text += "| `" + std::string(entry.name) + "=`" + cells_of(entry.doors) + " | |\n";
    for (const ValueRule& rule : rules) {
      if (option_of(rule) != entry.name) continue;
      text += "| `" + std::string(rule.example) + "`" + cells_of(doors_of(rule)) + " | " +
              std::string(rule.why) + " |\n";
    }
  }
  return text;
}

}  // namespace

std::string options_page() {
  std::string text = option_table_markdown();
  text +=
      "\n## Which interface serves which option\n\n*steps*: C, C++ and Fortran. *python*: the "
      "Python package. *pnetcdf*: PnetCDF programs\n([PnetCDF](pnetcdf.md)). *hdf5*: programs on "
      "parallel HDF5 ([HDF5](hdf5.md)). *serial*: programs on\nserial HDF5 ([serial "
      "tools](hdf5.md#serial-programs-and-tools)). *repack* and *concat*: the commands, which\n"
      "also have flags of their own. An option with *no* is refused with an error.\n\n| option |";
  for (const Door door : kAllDoors) text += " " + std::string(door_name(door)) + " |";
  text += " why not |\n|---|---|---|---|---|---|---|---|---|\n";
  return text + door_rows(file_option_table()) + door_rows(field_option_table());
}

}  // namespace tailrace
