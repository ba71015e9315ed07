// Arguments: "--name value" options of the applications. Declared once, they parse and explain
// themselves. Small, so that the examples need no other library.

#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace app {

/// Something the user asked for cannot be had: the program says so and exits with 2.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  Arguments(std::string program, std::string purpose)
      : program_(std::move(program)), purpose_(std::move(purpose)) {}

  /// The variable's value before parsing is the default, which the help shows.
  void add(const std::string& name, int& value, const std::string& help);
  void add(const std::string& name, double& value, const std::string& help);
  void add(const std::string& name, std::string& value, const std::string& help);
  void add(const std::string& name, bool& value, const std::string& help);  ///< on or off
  /// One of several words.
  void add(const std::string& name, std::string& value, const std::vector<std::string>& choices,
           const std::string& help);
  /// Bytes with a unit: 25MB is 25e6, 25MiB is 25 * 2^20.
  void add_bytes(const std::string& name, double& value, const std::string& help);

  /// "" if all is well. Otherwise what is wrong, naming the option, what was expected and what
  /// came. Accepts "--name value" and "--name=value".
  std::string parse(int argc, char** argv);
  bool help_wanted() const { return help_wanted_; }
  std::string help() const;
  const std::string& program() const { return program_; }

 private:
  struct Option {
    std::string name, help, default_text;
    std::function<std::string(const std::string&)> set;  ///< Returns what is wrong, or "".
  };
  void add_option(const std::string& name, const std::string& help, const std::string& default_text,
                  std::function<std::string(const std::string&)> set);

  std::string program_, purpose_;
  std::vector<Option> options_;
  bool help_wanted_ = false;
};

}  // namespace app
