// Options in one group of a command's help: the last mention of an option counts, but for lists.

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/options.hpp"

namespace tailrace::cli {

class Group {
 public:
  Group(CLI::App* app, const char* name) : app_(app), name_(name) {}

  template <class T>
  CLI::Option* operator()(const char* option, T& target, const char* unit,
                          const std::string& text) const {
    return app_->add_option(option, target, text)->type_name(unit)->group(name_)->take_last();
  }
  /// One value for each mention of the option: a list must not swallow the inputs that follow it.
  void list(const char* option, std::vector<std::string>& target, const char* unit,
            const std::string& text) const {
    app_->add_option(option, target, text)->type_name(unit)->group(name_)->expected(1)->take_all();
  }
  template <class T>
  CLI::Option* flag(const char* option, T& target, const std::string& text) const {
    return app_->add_flag(option, target, text)->group(name_);
  }
  /// An option whose text goes to core/options.hpp under the name `key`.
  void engine(const char* option, std::vector<KeyValue>& target, const char* key, const char* unit,
              const std::string& text) const {
    app_->add_option_function<std::string>(
            option, [&target, key](const std::string& value) { target.emplace_back(key, value); },
            text)
        ->type_name(unit)
        ->group(name_)
        ->take_last();
  }
  void engine_flag(const char* option, std::vector<KeyValue>& target, const char* key,
                   const std::string& text) const {
    app_->add_flag_callback(
            option, [&target, key] { target.emplace_back(key, "on"); }, text)
        ->group(name_);
  }

 private:
  CLI::App* app_;
  const char* name_;
};

/// --json and --help.
inline void report_options(CLI::App* app, std::string& json_path) {
  Group(app, "Reports")("--json", json_path, "FILE",
                        "Write the same numbers as JSON; '-' is stdout, in place of the table.");
  app->set_help_flag("-h,--help", "Print this and exit.")->group("Reports");
}

}  // namespace tailrace::cli
