// Layout of --help.

#include "help_formatter.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "cli_common.hpp"

namespace tailrace::cli {
namespace {

constexpr std::size_t kTextColumn = 28;

/// Help is read as it stands, through a pager, too: it never has lines of any length.
std::size_t help_columns() {
  constexpr std::size_t usual_columns = 80;
  return text_room().prose == 0 ? usual_columns : text_room().prose;
}

/// "  name        text", the text wrapped in its own column; each '\n' in it begins a new line.
std::string entry(const std::string& name, const std::string& text) {
  std::string out = "  " + name;
  if (out.size() + 1 > kTextColumn) {
    out += "\n" + std::string(kTextColumn, ' ');
  } else {
    out.resize(kTextColumn, ' ');
  }
  const std::string indent(kTextColumn, ' ');
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    // A line that is indented by itself goes on below its own text.
    const std::string line = text.substr(from, to - from);
    const std::size_t own = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t column = kTextColumn + own;
    out += (from == 0 ? "" : "\n" + indent) + line.substr(0, own) +
           wrapped(line.substr(own), column + (own > 0 ? 2 : 0), column, help_columns());
    from = to + 1;
  }
  return out + "\n";
}

constexpr std::size_t kIndentOfCommands = 2;
constexpr std::size_t kIndentOfRest = 6;

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool is_command(std::string_view line) {
  constexpr std::array programs = {"tailrace ", "tailrace-lab ", "mpiexec ", "h5repack "};
  line.remove_prefix(indent_of(line));
  return std::ranges::any_of(programs, [&](const char* p) { return line.starts_with(p); });
}

/// Column at which the text of "  name   text" begins; 0: the line is not an entry.
std::size_t text_of_entry(std::string_view line) {
  const std::size_t gap = line.find("  ", indent_of(line));
  if (gap == std::string_view::npos) return 0;
  return std::min(line.find_first_not_of(' ', gap), line.size()) % line.size();
}

/// A text as it is written, in the columns that there are.
std::string broken_anew(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  std::string command;
  std::string paragraph;
  std::size_t column = 0;  // Where the paragraph's lines go on.
  const auto end_paragraph = [&] {
    const std::size_t indent = indent_of(paragraph);
    if (!paragraph.empty()) {
      out += paragraph.substr(0, indent) +
             wrapped(paragraph.substr(indent), column, indent, help_columns()) + "\n";
    }
    if (!command.empty()) out += folded_examples(command, help_columns());
    paragraph.clear();
    command.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (command.ends_with("\\\n")) {
      command += line + "\n";
    } else if (indent_of(line) == line.size()) {
      end_paragraph();
      out += "\n";
    } else if (is_command(line)) {
      end_paragraph();
      command = line + "\n";
    } else if (const std::size_t entry = text_of_entry(line);
               entry == 0 && !paragraph.empty() && indent_of(line) == column) {
      paragraph += " " + line.substr(column);
    } else {
      end_paragraph();
      paragraph = line;
      column = entry > 0 ? entry : indent_of(line);
    }
  }
  end_paragraph();
  return out;
}

/// A description up to the end of its third example.
std::string opening_of(const std::string& description) {
  constexpr int most_examples = 3;
  std::istringstream lines(description);
  std::string out;
  int n_examples = 0;
  bool examples = false;
  bool goes_on = false;  // The line continues a command.
  for (std::string line; std::getline(lines, line);) {
    if (examples && line.empty()) break;
    if (examples && !goes_on && indent_of(line) == kIndentOfCommands) ++n_examples;
    if (n_examples > most_examples) break;
    goes_on = line.ends_with('\\');
    examples = examples || line == "Examples:";
    out += line + "\n";
  }
  return out;
}

/// An option's text without its lists and what refers to other parts of --help-all: the first line,
/// and the sentence about the default.
std::string first_words(const std::string& text) {
  std::string first = text.substr(0, text.find('\n'));
  const std::size_t reference = first.find(" (see \"");
  if (reference != std::string::npos) {
    first.erase(reference, first.find(')', reference) + 1 - reference);
  }
  const std::size_t rest = text.rfind("\nDefault");
  if (rest != std::string::npos) first += " " + text.substr(rest + 1);
  return first;
}

}  // namespace

std::string folded_examples(const std::string& examples, std::size_t columns) {
  std::istringstream lines(examples);
  std::string out;
  bool goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    const bool command = goes_on || indent_of(line) == kIndentOfCommands;
    goes_on = line.ends_with('\\');
    while (line.size() > columns) {
      // The backslash needs room, too, and an option stays with its value.
      const std::size_t last = columns - (command ? 2 : 0);
      std::size_t space = command ? line.rfind(" --", last) : std::string::npos;
      if (space == std::string::npos || space <= indent_of(line)) space = line.rfind(' ', last);
      if (space == std::string::npos || space <= kIndentOfRest) break;
      out += line.substr(0, space) + (command ? " \\\n" : "\n");
      line = std::string(kIndentOfRest, ' ') + line.substr(space + 1);
    }
    out += line + "\n";
  }
  return out;
}

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
  return entry_of(*option, option->get_description(), is_positional);
}

std::string HelpFormatter::entry_of(const CLI::Option& option, const std::string& text,
                                    bool is_positional) const {
  std::string name = make_option_name(&option, is_positional);
  if (const std::size_t comma = name.find(','); comma != std::string::npos) {
    name.insert(comma + 1, " ");
  }
  const OptionValue value = value_of(option);
  if (value.optional) {
    name = fmt::format("{}[={}]", name.substr(0, name.find('{')), value.word);
  } else if (!is_positional && !value.word.empty()) {
    name += " " + value.word;
  }
  return entry(name, text);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  // The first line of a command's description is its summary.
  const std::string text = command->get_description();
  return entry(command->get_name(), text.substr(0, text.find('\n')));
}

void HelpFormatter::show_first(const CLI::App* command,
                               std::initializer_list<const char*> options) {
  shown_first_[command] = {options.begin(), options.end()};
}

std::string HelpFormatter::short_help(const CLI::App* app, const std::string& name,
                                      const std::set<std::string>& shown) const {
  std::string out = broken_anew(opening_of(app->get_description()));
  out += "\n" + make_usage(app, name) + make_positionals(app) + "\nOptions:\n";
  for (const CLI::Option* option : app->get_options({})) {
    const bool is_shown = std::ranges::any_of(
        option->get_lnames(), [&](const std::string& each) { return shown.contains(each); });
    if (is_shown) out += entry_of(*option, first_words(option->get_description()));
  }
  return out + fmt::format("\nAll options and their values: {} --help-all\n", name);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  const auto shown = shown_first_.find(app);
  if (shown != shown_first_.end() && mode == CLI::AppFormatMode::Normal) {
    return short_help(app, name.empty() ? app->get_name() : name, shown->second);
  }
  // CLI11 puts two empty lines between groups, and none behind the text that follows the examples.
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n")) {
    text.erase(at, 1);
  }
  return text;
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return broken_anew(CLI::Formatter::make_description(app));
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return broken_anew(CLI::Formatter::make_footer(app));
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  if (!app->get_subcommands({}).empty()) {
    return fmt::format("Usage: {0} COMMAND ...     (see {0} COMMAND --help)\n", app->get_name());
  }
  std::string usage =
      fmt::format("Usage: {}", app->get_parent() == nullptr ? app->get_name() : name);
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
