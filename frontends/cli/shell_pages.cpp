// Manual pages and completions, made from the parser's commands and options.

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <utility>

#include "core/codec_registry.hpp"
#include "help_formatter.hpp"
#include "layout/layout.hpp"
#include "program.hpp"

namespace tailrace::cli {
namespace {

// --- the parser as pages

struct OptionPage {
  std::vector<std::string> names;  ///< "-o", "--output"; of an argument its one word.
  OptionValue value;
  bool argument = false;
  std::string group;
  std::string text;
  std::vector<std::string> choices;  ///< Values that a shell completes; empty: files.
};

struct CommandPage {
  std::string program;  ///< "tailrace".
  std::string name;     ///< Empty: the page of the program itself.
  std::string summary;  ///< One line.
  std::vector<std::string> paragraphs;
  std::string examples;  ///< Lines as they stand in --help.
  std::vector<OptionPage> options;
};

OptionPage option_page(const CLI::Option& option) {
  OptionPage page;
  page.argument = option.get_positional();
  page.group = page.argument ? "Arguments" : option.get_group();
  page.text = option.get_description();
  if (page.argument) {
    page.names = {option.get_name(true)};
    return page;
  }
  for (const std::string& name : option.get_snames()) page.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) page.names.push_back("--" + name);
  page.value = value_of(option);
  if (option.check_lname("codec")) {
    for (const CodecEntry* codec : codec_registry()) page.choices.emplace_back(codec->name);
  } else if (option.check_lname("layout")) {
    for (const LayoutEntry& layout : layout_registry()) page.choices.emplace_back(layout.name);
  }
  return page;
}

CommandPage command_page(const CLI::App& app) {
  CommandPage page;
  const bool is_command = app.get_parent() != nullptr;
  page.program = (is_command ? *app.get_parent() : app).get_name();
  if (is_command) page.name = app.get_name();
  std::istringstream text(app.get_description());
  std::getline(text, page.summary);
  std::string paragraph;
  bool examples = false;
  for (std::string line; std::getline(text, line);) {
    if (line == "Examples:") {
      examples = true;
    } else if (line.empty()) {
      if (!paragraph.empty()) page.paragraphs.push_back(std::exchange(paragraph, ""));
      examples = false;
    } else {
      std::string& into = examples ? page.examples : paragraph;
      into += line + "\n";
    }
  }
  if (!paragraph.empty()) page.paragraphs.push_back(paragraph);
  for (const CLI::Option* option : app.get_options({})) {
    if (option->get_group().empty()) continue;  // Hidden: --write-pages.
    page.options.push_back(option_page(*option));
  }
  return page;
}

/// The program itself, then its commands.
std::vector<CommandPage> all_pages(const CLI::App& app) {
  std::vector<CommandPage> pages{command_page(app)};
  for (const CLI::App* sub : app.get_subcommands({})) pages.push_back(command_page(*sub));
  // --help says "tailrace: what it is"; a page has the name already.
  pages[0].summary.erase(0, pages[0].summary.find(": ") + 2);
  return pages;
}

// --- manual pages

/// Lines of text as troff prints them: no line is a request, no dash a hyphen.
std::string troff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else {
      out += text[i];
    }
  }
  return out;
}

/// A text whose lines are lines, those that are indented too.
std::string troff_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (!out.empty()) out += ".br\n";
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (indent > 0) out += fmt::format("\\h'{}n'", indent);
    out += troff(line.substr(indent)) + "\n";
  }
  return out;
}

std::string option_heading(const OptionPage& option) {
  std::string out;
  for (const std::string& name : option.names) {
    out += (out.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", troff(name));
  }
  if (option.value.word.empty()) return out;
  const std::string unit = fmt::format("\\fI{}\\fR", troff(option.value.word));
  return out + (option.value.optional ? "[=" + unit + "]" : " " + unit);
}

std::string options_section(const CommandPage& page) {
  std::string out;
  std::vector<std::string> groups;
  for (const OptionPage& option : page.options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    out += fmt::format(".SS {}\n", troff(group));
    for (const OptionPage& option : page.options) {
      if (option.group != group) continue;
      out += fmt::format(".TP\n{}\n{}", option_heading(option), troff_lines(option.text));
    }
  }
  return out;
}

std::string usage_of(const CommandPage& page) {
  if (page.name.empty())
    return fmt::format("\\fB{}\\fR \\fICOMMAND\\fR ...\n", troff(page.program));
  std::string usage = fmt::format("\\fB{} {}\\fR", troff(page.program), troff(page.name));
  for (const OptionPage& option : page.options) {
    if (option.argument) usage += fmt::format(" [\\fI{}\\fR]", troff(option.names.front()));
  }
  return usage + " [\\fIOPTION\\fR...]\n";
}

constexpr const char* kExitSection =
    R"(.SH EXIT STATUS
.TP
0
Success.
.TP
1
A check failed: values beyond a bound, differences or damage.
.TP
2
The command line or an input is not valid; nothing was changed.
.TP
3
A resource failed: memory, storage or a limit.
)";

std::string page_name(const CommandPage& page) {
  return page.name.empty() ? page.program : page.program + "-" + page.name;
}

std::string man_page(const CommandPage& page, const std::vector<CommandPage>& all) {
  std::string title = page_name(page);
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string out = fmt::format(".TH \"{}\" 1 \"\" \"tailrace {}\" \"User commands\"\n",
                                troff(title), TAILRACE_VERSION);
  out += fmt::format(".SH NAME\n{} \\- {}\n", troff(page_name(page)), troff(page.summary));
  out += ".SH SYNOPSIS\n.ad l\n" + usage_of(page);
  const char* before = ".SH DESCRIPTION\n";
  for (const std::string& paragraph : page.paragraphs) {
    out += std::exchange(before, ".PP\n") + troff_lines(paragraph);
  }
  if (!page.options.empty()) out += ".SH OPTIONS\n" + options_section(page);
  if (page.name.empty()) {
    out += ".SH COMMANDS\n";
    for (const CommandPage& other : all) {
      if (other.name.empty()) continue;
      out += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", troff(page_name(other)), troff(other.summary));
    }
  }
  if (!page.examples.empty()) {
    out += fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", troff(folded_examples(page.examples, 70)));
  }
  return out + kExitSection +
         (page.name.empty() ? ""
                            : fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", troff(page.program)));
}

// --- completions

std::string joined_names(const CommandPage& page) {
  std::vector<std::string> names;
  for (const OptionPage& option : page.options) {
    if (!option.argument) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

/// The first sentence, for menus.
std::string first_sentence(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const std::size_t end = line.find(". ");
  std::string sentence = line.substr(0, end);
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

/// Within '...' of a shell.
std::string quoted_for_shell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string bash_completions(const std::vector<CommandPage>& pages) {
  std::string commands;
  std::string cases;
  std::string values;
  for (const CommandPage& page : pages) {
    if (page.name.empty()) continue;
    commands += page.name + " ";
    cases += fmt::format("    {}) words='{}' ;;\n", page.name, joined_names(page));
    for (const OptionPage& option : page.options) {
      if (option.choices.empty()) continue;
      for (const std::string& name : option.names) {
        values +=
            fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                        page.name, name, fmt::join(option.choices, " "));
      }
    }
  }
  return fmt::format(R"(# bash completion of {0} {1}
_{0}() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="" words word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in
      -*) ;;
      *) command="$word"; break ;;
    esac
  done
  case "$command ${{COMP_WORDS[COMP_CWORD-1]}}" in
{5}    *) ;;
  esac
  case "$command" in
    "") words='{2}{3}' ;;
{4}    *) words="" ;;
  esac
  COMPREPLY=()
  # A word that is not an option is a file name, which bash completes.
  if [[ -z "$command" || "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}}
complete -o default -F _{0} {0}
)",
                     pages[0].program, TAILRACE_VERSION, commands, joined_names(pages[0]), cases,
                     values);
}

std::string zsh_spec(const OptionPage& option) {
  std::string text;
  for (const char c : first_sentence(option.text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') text += '\\';
    text += c;
  }
  std::string unit;
  for (const char c : option.value.word) unit += c == ':' ? std::string("\\:") : std::string(1, c);
  std::string value;
  if (!unit.empty()) {
    const std::string what =
        option.choices.empty() ? "_files" : fmt::format("({})", fmt::join(option.choices, " "));
    value = (option.value.optional ? "::" : ":") + unit + ":" + what;
  }
  std::string out;
  for (std::string name : option.names) {
    if (!unit.empty()) name += option.value.optional ? "=-" : name.starts_with("--") ? "=" : "+";
    out += fmt::format("        '*{}[{}]{}' \\\n", name, quoted_for_shell(text),
                       quoted_for_shell(value));
  }
  return out;
}

std::string zsh_completions(const std::vector<CommandPage>& pages) {
  std::string commands;
  std::string cases;
  for (const CommandPage& page : pages) {
    if (page.name.empty()) continue;
    commands += fmt::format("    '{}:{}'\n", page.name, quoted_for_shell(page.summary));
    cases += fmt::format("    {})\n      _arguments \\\n", page.name);
    for (const OptionPage& option : page.options) {
      if (!option.argument) cases += zsh_spec(option);
    }
    cases += "        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef {0}
# zsh completion of {0} {1}
_{0}() {{
  local -a commands
  commands=(
{2}  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$command" in
{3}  esac
}}
_{0} "$@"
)",
                     pages[0].program, TAILRACE_VERSION, commands, cases);
}

std::string fish_completions(const std::vector<CommandPage>& pages) {
  const std::string& program = pages[0].program;
  std::string out = fmt::format("# fish completion of {} {}\n", program, TAILRACE_VERSION);
  for (const CommandPage& page : pages) {
    std::string when = "__fish_use_subcommand";
    if (!page.name.empty()) {
      out += fmt::format("complete -c {} -f -n '{}' -a {} -d '{}'\n", program, when, page.name,
                         quoted_for_shell(page.summary));
      when = "__fish_seen_subcommand_from " + page.name;
    }
    for (const OptionPage& option : page.options) {
      if (option.argument) continue;
      out += fmt::format("complete -c {} -n '{}'", program, when);
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.word.empty() && !option.value.optional) out += " -r";
      if (!option.choices.empty()) {
        out += fmt::format(" -f -a '{}'", fmt::join(option.choices, " "));
      }
      out += fmt::format(" -d '{}'\n", quoted_for_shell(first_sentence(option.text)));
    }
  }
  return out;
}

Status write_text(const std::string& path, const std::string& text) {
  ReportFile file;
  TAILRACE_TRY(file.open(path, true));
  return file.finish(text);
}

}  // namespace

Status write_shell_pages(const CLI::App& app, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder + "/man1", error);  // Writing reports a failure.
  const std::vector<CommandPage> pages = all_pages(app);
  for (const CommandPage& page : pages) {
    TAILRACE_TRY(
        write_text(fmt::format("{}/man1/{}.1", folder, page_name(page)), man_page(page, pages)));
  }
  const std::string name = folder + "/" + pages[0].program;
  TAILRACE_TRY(write_text(name + ".bash", bash_completions(pages)));
  TAILRACE_TRY(write_text(fmt::format("{}/_{}", folder, pages[0].program), zsh_completions(pages)));
  return write_text(name + ".fish", fish_completions(pages));
}

}  // namespace tailrace::cli
