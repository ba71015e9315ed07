// Commands of `tailrace`, and their common grammar: groups of options, the layout of --help.
//
// Each command has a file: it parses arguments, calls a function of src/verbs and shows the report.
// Options that the engine knows by name are passed on as texts, which core/option_table parses. So
// the CLI, the C API and Python accept the same options and give the same errors.

#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "cli_common.hpp"
#include "core/options.hpp"
#include "verbs/repack.hpp"

namespace tailrace::cli {

/// Run a command after its arguments have been parsed. Collective over the session's ranks.
/// @returns the exit code, the same on every rank.
using Command = std::function<int(Session&)>;

/// Each adds a command and its options to the parser.
Command add_repack(CLI::App& app);
Command add_concat(CLI::App& app);
Command add_export(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_info(CLI::App& app);
Command add_recover(CLI::App& app);
Command add_options(CLI::App& app);
Command add_filter_args(CLI::App& app);
Command add_profile(CLI::App& app);
Command add_doctor(CLI::App& app);

/// The one-screen summary of a repack: tables, at most 100 columns wide and about one screen high.
std::string summary_text(const verbs::RepackReport& report);
/// The remark on an object that HDF5 cannot open. @param object  name and reason
inline std::string unreadable_text(const std::string& object) {
  return "left out, since it cannot be read: " + object;
}
/// Text of --why: a table for each field whose codec was chosen. The best candidates come first and
/// the chosen one is marked. Without such a field, a sentence that states this.
std::string why_text(const verbs::RepackReport& report);

/// The usual words for --plugin-path.
inline constexpr const char* kPluginPathHelp =
    "Folders of HDF5 filter plug-ins, separated by colons, searched before HDF5_PLUGIN_PATH.";
inline constexpr const char* kCompatibilityHelp =
    "Oldest readers of the file. everyone: format of HDF5 1.8, which netCDF-Java, pyfive and "
    "jsfive can read. v110: chunk indexes of HDF5 1.10, smaller and faster to write. Default "
    "everyone.";

/// Options in one group of a command's help: the last mention of an option counts, but for lists.
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
  /// An option KEY=VALUE of core/options.hpp, whatever its key.
  void any_option(const char* option, std::vector<KeyValue>& target,
                  const std::string& text) const {
    app_->add_option_function<std::vector<std::string>>(
            option,
            [&target](const std::vector<std::string>& entries) {
              for (const std::string& entry : entries) {
                const std::size_t equals = entry.find('=');
                if (equals == 0 || equals == std::string::npos) {
                  throw CLI::ValidationError("--option " + entry + ": expected KEY=VALUE");
                }
                target.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
              }
            },
            text)
        ->type_name("KEY=VALUE")
        ->group(name_)
        ->expected(1)
        ->take_all();
  }
  void engine_flag(const char* option, std::vector<KeyValue>& target, const char* key,
                   const std::string& text) const {
    app_->add_flag_callback(
            option, [&target, key] { target.emplace_back(key, "on"); }, text)
        ->group(name_);
  }
  /// An option that is said to a struct later: its value goes to `member`.
  template <class T, class Struct>
  void later(const char* option, std::vector<std::function<void(Struct&)>>& setters,
             T Struct::*member, const char* unit, const std::string& text) const {
    app_->add_option_function<T>(
            option,
            [&setters, member](const T& value) {
              setters.push_back([member, value](Struct& target) { target.*member = value; });
            },
            text)
        ->type_name(unit)
        ->group(name_)
        ->take_last();
  }
  /// --only and --exclude: "Export only datasets whose path matches."
  template <class Selection>
  void globs(Selection& selection, const std::string& verb, const std::string& nouns,
             const std::string& otherwise = "") const {
    list("--only", selection.only, "GLOB",
         verb + " only " + nouns + " whose path matches. Repeatable." + otherwise);
    list("--exclude", selection.exclude, "GLOB",
         "Leave out " + nouns + " whose path matches. Repeatable.");
  }
  /// --raw: "The input is raw binary, such as ..."
  void follow_external(bool& target) const {
    flag("--follow-external", target,
         "Also read values that the input stores in other files: external storage and sources of "
         "virtual datasets. Use it only for inputs that you trust. Default: leave them out.");
  }
  void raw(std::string& target, const std::string& what) const {
    (*this)("--raw", target, "TYPE:SHAPE", what + " is raw binary, such as f32:512x512x512.");
  }

 private:
  CLI::App* app_;
  const char* name_;
};

/// --help and --help-all, among the reports.
/// @param first  long names of the options that --help shows; none: all.
void help_option(CLI::App* app, std::initializer_list<const char*> first = {});

/// --json and --help. @param first  see help_option()
inline void report_options(CLI::App* app, std::string& json_path,
                           std::initializer_list<const char*> first = {}) {
  Group(app, "Reports")("--json", json_path, "FILE",
                        "Write the same numbers as JSON; '-' is stdout, in place of the table.");
  help_option(app, first);
}

/// A registry's entries below the text that introduces them, "  name: summary".
template <class Registry>
std::string help_of(std::string text, const Registry& registry) {
  for (const auto& entry : registry) {
    text.append("\n  ").append(entry.name).append(": ").append(entry.summary);
  }
  return text;
}

}  // namespace tailrace::cli
