// HelpFormatter: --help in the columns that there are, one blank line between groups.
//
// Descriptions and footers are written at any width and broken anew: lines of one indentation are
// a paragraph; "  name   text" is an entry, which goes on below its text; commands stay commands.

#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tailrace::cli {

/// What stands for an option's value in texts.
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
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
};

}  // namespace tailrace::cli
