// HelpFormatter: the layout of --help and --help-all, one blank line between groups.
//
// --help of a command with many options fits about one screen: the first three examples and the
// options that show_first() names. --help-all prints everything.
//
// Descriptions and footers are wrapped to the terminal: lines of one indentation are a paragraph;
// "  name   text" is an entry, continued below its text; commands stay on their lines.

#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

namespace tailrace::cli {

/// Placeholder of an option's value in texts.
struct OptionValue {
  std::string word;       ///< "FILE"; empty: it takes none.
  bool optional = false;  ///< A flag that may be given one, --why[=predicted].
};
OptionValue value_of(const CLI::Option& option);

/// Examples within `columns`: commands go on behind a backslash, remarks as they are.
std::string folded_examples(const std::string& examples, std::size_t columns);

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();
  /// Let --help of a command show these options alone, by their long names.
  void show_first(const CLI::App* command, std::initializer_list<const char*> options);
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;

 private:
  /// The lines of one option: its names, its value and a text.
  std::string entry_of(const CLI::Option& option, const std::string& text,
                       bool is_positional = false) const;
  std::string short_help(const CLI::App* app, const std::string& name,
                         const std::set<std::string>& shown) const;

  std::map<const CLI::App*, std::set<std::string>> shown_first_;
};

}  // namespace tailrace::cli
