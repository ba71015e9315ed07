// tailrace man, tailrace completions: manual pages and what shells complete, made of the parser's
// own commands and options, so that neither can be behind --help.

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "commands.hpp"
#include "help_formatter.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* man_description =
    R"help(Write the manual pages into a folder, as installing does

Examples:
  tailrace man ~/.local/share/man/man1
)help";

constexpr const char* completions_description =
    R"help(Print what a shell needs to complete commands and options

Examples:
  tailrace completions bash > ~/.local/share/bash-completion/completions/tailrace
  tailrace completions zsh > ~/.zfunc/_tailrace
  tailrace completions fish > ~/.config/fish/completions/tailrace.fish
)help";

// --- what there is to tell

struct OptionPage {
  std::vector<std::string> names;  ///< "-o", "--output"; of an argument its one word.
  OptionValue value;
  bool argument = false;
  std::string group;
  std::string text;
};

struct CommandPage {
  std::string name;     ///< Empty: tailrace itself.
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
  return page;
}

CommandPage command_page(const CLI::App& app) {
  CommandPage page;
  if (app.get_parent() != nullptr) page.name = app.get_name();
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
    page.options.push_back(option_page(*option));
  }
  return page;
}

/// tailrace itself, then its commands.
std::vector<CommandPage> all_pages(const CLI::App& app) {
  std::vector<CommandPage> pages{command_page(app)};
  for (const CLI::App* sub : app.get_subcommands({})) pages.push_back(command_page(*sub));
  // "tailrace: what it is" stands in --help; a page says the name by itself.
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
  if (page.name.empty()) return "\\fBtailrace\\fR \\fICOMMAND\\fR ...\n";
  std::string usage = fmt::format("\\fBtailrace {}\\fR", troff(page.name));
  for (const OptionPage& option : page.options) {
    if (option.argument) usage += fmt::format(" [\\fI{}\\fR]", troff(option.names.front()));
  }
  return usage + " [\\fIOPTION\\fR...]\n";
}

constexpr const char* exit_section =
    R"(.SH EXIT STATUS
.TP
0
All is done.
.TP
1
A check has found a difference: values beyond a bound, damage.
.TP
2
The command line or an input cannot be used; nothing was changed.
.TP
3
Something failed on the way: memory, the disk, a limit.
)";

std::string page_name(const CommandPage& page) {
  return page.name.empty() ? "tailrace" : "tailrace-" + page.name;
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
  return out + exit_section + (page.name.empty() ? "" : ".SH SEE ALSO\n\\fBtailrace\\fR(1)\n");
}

Status write_man_pages(const CLI::App& app, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::vector<CommandPage> pages = all_pages(app);
  for (const CommandPage& page : pages) {
    const std::string path = fmt::format("{}/{}.1", folder, page_name(page));
    std::ofstream file(path, std::ios::trunc);
    file << man_page(page, pages);
    file.close();
    if (!file) return Status(Code::io_error, "cannot write " + path);
  }
  return Status();
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
  for (const CommandPage& page : pages) {
    if (page.name.empty()) continue;
    commands += page.name + " ";
    cases += fmt::format("    {}) words='{}' ;;\n", page.name, joined_names(page));
  }
  return fmt::format(R"(# bash completion of tailrace {}, made by: tailrace completions bash
_tailrace() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="" words word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in
      -*) ;;
      *) command="$word"; break ;;
    esac
  done
  case "$command" in
    "") words='{}{}' ;;
{}    *) words="" ;;
  esac
  COMPREPLY=()
  # What is no option is a file's name.
  if [[ -z "$command" || "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}}
complete -o default -F _tailrace tailrace
)",
                     TAILRACE_VERSION, commands, joined_names(pages[0]), cases);
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
  if (!unit.empty()) value = (option.value.optional ? "::" : ":") + unit + ":_files";
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
  return fmt::format(R"(#compdef tailrace
# zsh completion of tailrace {}, made by: tailrace completions zsh
_tailrace() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$command" in
{}  esac
}}
_tailrace "$@"
)",
                     TAILRACE_VERSION, commands, cases);
}

std::string fish_completions(const std::vector<CommandPage>& pages) {
  std::string out = fmt::format(
      "# fish completion of tailrace {}, made by: tailrace completions fish\n", TAILRACE_VERSION);
  for (const CommandPage& page : pages) {
    std::string when = "__fish_use_subcommand";
    if (!page.name.empty()) {
      out += fmt::format("complete -c tailrace -f -n '{}' -a {} -d '{}'\n", when, page.name,
                         quoted_for_shell(page.summary));
      when = "__fish_seen_subcommand_from " + page.name;
    }
    for (const OptionPage& option : page.options) {
      if (option.argument) continue;
      out += fmt::format("complete -c tailrace -n '{}'", when);
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.word.empty() && !option.value.optional) out += " -r";
      out += fmt::format(" -d '{}'\n", quoted_for_shell(first_sentence(option.text)));
    }
  }
  return out;
}

}  // namespace

Command add_man(CLI::App& app) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("man", man_description);
  sub->add_option("FOLDER", *folder, "Where they go; it is made if need be.")->required();
  help_option(sub);
  return [&app, folder](Session& session) {
    return run_at_root(session, [&] { return write_man_pages(app, *folder); });
  };
}

Command add_completions(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("completions", completions_description);
  sub->add_option("SHELL", *shell, "bash, zsh or fish.")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  help_option(sub);
  return [&app, shell](Session& session) {
    return run_at_root(session, [&]() -> Status {
      const std::vector<CommandPage> pages = all_pages(app);
      fmt::print("{}", *shell == "bash"  ? bash_completions(pages)
                       : *shell == "zsh" ? zsh_completions(pages)
                                         : fish_completions(pages));
      return Status();
    });
  };
}

}  // namespace tailrace::cli
