// HelpFormatter: option texts broken at 100 columns, one blank line between groups.

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

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
};

}  // namespace tailrace::cli
