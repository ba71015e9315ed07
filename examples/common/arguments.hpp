// Arguments: "--name value" options of the applications. Options are declared once; parsing and
// help follow from the declaration. The class is small, so that the examples need no other library.

#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace app {

/// Thrown if the user requests something unavailable; the program prints the message and exits with
/// 2.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  Arguments(std::string program, std::string purpose)
      : program_(std::move(program)), purpose_(std::move(purpose)) {}

  /// Adds an option. The variable's value before parsing is the default, which the help shows.
  void add(const std::string& name, int& value, const std::string& help);
  void add(const std::string& name, double& value, const std::string& help);
  void add(const std::string& name, std::string& value, const std::string& help);
  void add(const std::string& name, bool& value, const std::string& help);  ///< Accepts on or off.
  /// Adds an option with a fixed list of values.
  void add(const std::string& name, std::string& value, const std::vector<std::string>& choices,
           const std::string& help);
  /// Adds an option for bytes with a unit: 25MB is 25e6, 25MiB is 25 * 2^20.
  void add_bytes(const std::string& name, double& value, const std::string& help);

  /// Parses the command line. Returns "" or an error that names the option, the expected value and
  /// the given one. Accepts "--name value" and "--name=value".
  std::string parse(int argc, char** argv);
  bool help_wanted() const { return help_wanted_; }
  std::string help() const;
  const std::string& program() const { return program_; }

 private:
  struct Option {
    std::string name, help, default_text;
    std::function<std::string(const std::string&)> set;  ///< Returns an error, or "".
  };
  void add_option(const std::string& name, const std::string& help, const std::string& default_text,
                  std::function<std::string(const std::string&)> set);

  std::string program_, purpose_;
  std::vector<Option> options_;
  bool help_wanted_ = false;
};

}  // namespace app
