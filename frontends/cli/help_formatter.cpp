// Layout of --help.

#include "help_formatter.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli_common.hpp"

namespace tailrace::cli {
namespace {

constexpr std::size_t text_column = 28;

/// "  name        text", the text wrapped in its own column; each '\n' in it begins a new line.
std::string entry(const std::string& name, const std::string& text) {
  std::string out = "  " + name;
  if (out.size() + 1 > text_column) {
    out += "\n" + std::string(text_column, ' ');
  } else {
    out.resize(text_column, ' ');
  }
  const std::string indent(text_column, ' ');
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    // A line that is indented by itself goes on below its own text.
    const std::string line = text.substr(from, to - from);
    const std::size_t own = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t column = text_column + own;
    out += (from == 0 ? "" : "\n" + indent) + line.substr(0, own) +
           wrapped(line.substr(own), column + (own > 0 ? 2 : 0), column);
    from = to + 1;
  }
  return out + "\n";
}

}  // namespace

OptionValue value_of(const CLI::Option& option) {
  const std::string unit = option.get_type_name();
  // CLI11 shows what such a flag means without a value, "--why{predicted}".
  const std::string shown = option.get_name(false, true);
  if (const std::size_t brace = shown.find('{'); brace != std::string::npos) {
    return {unit.empty() ? shown.substr(brace + 1, shown.find('}') - brace - 1) : unit, true};
  }
  return {option.get_type_size() != 0 ? unit : "", false};
}

HelpFormatter::HelpFormatter() { label("Positionals", "Arguments"); }

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = make_option_name(option, is_positional);
  if (const std::size_t comma = name.find(','); comma != std::string::npos) {
    name.insert(comma + 1, " ");
  }
  const OptionValue value = value_of(*option);
  if (value.optional) {
    name = fmt::format("{}[={}]", name.substr(0, name.find('{')), value.word);
  } else if (!is_positional && !value.word.empty()) {
    name += " " + value.word;
  }
  return entry(name, option->get_description());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  // The first line of a command's description is its summary.
  const std::string text = command->get_description();
  return entry(command->get_name(), text.substr(0, text.find('\n')));
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  // CLI11 puts two empty lines between groups, and none behind the text that follows the examples.
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n")) {
    text.erase(at, 1);
  }
  return text;
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  if (app->get_parent() == nullptr) {
    return "Usage: tailrace COMMAND ...     (tailrace COMMAND --help tells more)\n";
  }
  std::string usage = fmt::format("Usage: {}", name);
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    usage += " " + make_option_usage(option);
  }
  for (const CLI::Option* option : app->get_options(
           [](const CLI::Option* o) { return o->nonpositional() && o->get_required(); })) {
    usage += " -" + option->get_snames().front() + " " + option->get_type_name();
  }
  return usage + " [OPTION...]\n";
}

}  // namespace tailrace::cli
