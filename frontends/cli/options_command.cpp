// tailrace options: prints the table of all options. Options of a file and of its fields are not
// specific to the command line: tailrace.h, Python and PnetCDF accept them too.

#include <fmt/format.h>

#include <algorithm>

#include "commands.hpp"
#include "core/codec_registry.hpp"
#include "core/option_table.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* kOptionsDescription =
    R"help(List the options of files, fields and codecs, as key=value

Examples:
  tailrace options
  tailrace options layout
      its values, which interfaces support it, and which ranks must agree on it
)help";

template <class Entry>
std::string entry_text(const Entry& entry) {
  std::string meaning(entry.meaning);
  if (meaning.find("efault") == std::string::npos) {
    meaning += fmt::format(" Default: {}.", default_text(entry));
  }
  return fmt::format("  {}\n      {}\n",
                     wrapped(fmt::format("{}={}", entry.name, entry.values), 2, 6),
                     wrapped(meaning, 6, 6));
}

/// Everything that docs/options.md says about option `name`; "" if no entry has that name.
template <class Entries>
std::string option_text(const Entries& entries, std::string_view name, const char* owner) {
  const auto found =
      std::ranges::find_if(entries, [&](const auto& entry) { return entry.name == name; });
  if (found == entries.end()) return "";
  const std::string whom =
      fmt::format("default: {}; supported by: {}; value used: {}", default_text(*found),
                  served_by_text(found->doors),
                  found->agreement == Agreement::alike ? std::string_view("the same on all ranks")
                                                       : agreement_text(found->agreement));
  return fmt::format("Option of a {}\n{}      {}\n", owner, entry_text(*found),
                     wrapped(whom, 6, 6));
}

/// Settings of the codec `name`, or each codec that has the setting `name`; all codecs if empty.
std::string codec_text(std::string_view name) {
  std::string text;
  for (const CodecEntry* codec : codec_registry()) {
    const std::vector<std::string_view>& own = codec->settings;
    const bool has = std::find(own.begin(), own.end(), name) != own.end();
    if (name.empty() || has || codec->name == name) {
      const std::string names = fmt::format("{}", fmt::join(own, ", "));
      text +=
          fmt::format("  {:<12}{}\n", codec->name, names.empty() ? "-" : wrapped(names, 14, 14));
    }
  }
  return text.empty() ? text : "Settings of codecs, after codec=NAME\n" + text;
}

std::string all_options_text() {
  std::string text = "Options of a file\n";
  for (const auto& entry : file_option_table()) text += entry_text(entry);
  text += "\nOptions of a field; in a file's options, the defaults of all its fields\n";
  for (const auto& entry : field_option_table()) text += entry_text(entry);
  return text + "\n" + codec_text("") +
         "\n'tailrace options NAME' shows one option in detail; docs/options.md lists all.\n";
}

}  // namespace

Command add_options(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("options", kOptionsDescription);
  sub->add_option("NAME", *name, "An option, or a codec or a setting of one. Default: all.");
  help_option(sub);
  return [name](Session& session) {
    return run_at_root(session, [&]() -> Status {
      std::string text =
          name->empty() ? all_options_text() : option_text(file_option_table(), *name, "file");
      if (text.empty()) text = option_text(field_option_table(), *name, "field");
      if (text.empty()) text = codec_text(*name);
      if (text.empty()) return check_codec_setting(*name, "");
      print_text(text);
      return Status();
    });
  };
}

}  // namespace tailrace::cli
