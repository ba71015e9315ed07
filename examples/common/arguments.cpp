// Reading "--name value".

#include "common/arguments.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace app {
namespace {

/// Parses the complete text as a number; returns false if it is not a number.
bool read_number(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

std::string short_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

}  // namespace

void Arguments::add_option(const std::string& name, const std::string& help,
                           const std::string& default_text,
                           std::function<std::string(const std::string&)> set) {
  options_.push_back({name, help, default_text, std::move(set)});
}

void Arguments::add(const std::string& name, int& value, const std::string& help) {
  add_option(name, help, std::to_string(value), [&value](const std::string& text) -> std::string {
    double number = 0;
    if (!read_number(text, number) || number < 0 || number > 2147483647.0 ||
        number != static_cast<double>(static_cast<int>(number))) {
      return "expected a whole number";
    }
    value = static_cast<int>(number);
    return "";
  });
}

void Arguments::add(const std::string& name, double& value, const std::string& help) {
  add_option(name, help, short_text(value), [&value](const std::string& text) -> std::string {
    return read_number(text, value) ? "" : "expected a number";
  });
}

void Arguments::add(const std::string& name, std::string& value, const std::string& help) {
  add_option(name, help, value, [&value](const std::string& text) -> std::string {
    value = text;
    return "";
  });
}

void Arguments::add(const std::string& name, bool& value, const std::string& help) {
  add_option(name, help + " (on, off)", value ? "on" : "off",
             [&value](const std::string& text) -> std::string {
               if (text != "on" && text != "off") return "expected on or off";
               value = text == "on";
               return "";
             });
}

void Arguments::add(const std::string& name, std::string& value,
                    const std::vector<std::string>& choices, const std::string& help) {
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  add_option(name, help + " (" + list + ")", value,
             [&value, choices, list](const std::string& text) -> std::string {
               if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
                 return "expected one of " + list;
               }
               value = text;
               return "";
             });
}

void Arguments::add_bytes(const std::string& name, double& value, const std::string& help) {
  add_option(name, help, short_text(value), [&value](const std::string& text) -> std::string {
    const std::vector<std::pair<std::string, double>> units = {
        {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
        {"kB", 1e3},     {"KB", 1e3},        {"MB", 1e6},
        {"GB", 1e9},     {"B", 1.0},         {"", 1.0}};
    for (const auto& [unit, factor] : units) {
      if (!text.ends_with(unit)) continue;
      double number = 0;
      if (!read_number(text.substr(0, text.size() - unit.size()), number) || number < 0) break;
      value = number * factor;
      return "";
    }
    return "expected bytes, such as 25MB";
  });
}

std::string Arguments::parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      help_wanted_ = true;
      return "";
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto option = std::find_if(options_.begin(), options_.end(),
                                     [&](const Option& known) { return known.name == name; });
    if (option == options_.end()) return "unknown option " + name + "; --help lists them";
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      return name + ": expected a value";
    }
    const std::string wrong = option->set(value);
    if (!wrong.empty()) return name + ": " + wrong + ", got \"" + value + "\"";
  }
  return "";
}

std::string Arguments::help() const {
  std::string text = program_ + ": " + purpose_ + "\n\n";
  std::size_t width = 0;
  for (const Option& option : options_) width = std::max(width, option.name.size());
  for (const Option& option : options_) {
    text += "  " + option.name + std::string(width + 2 - option.name.size(), ' ') + option.help;
    if (!option.default_text.empty()) text += " [" + option.default_text + "]";
    text += "\n";
  }
  return text;
}

}  // namespace app
