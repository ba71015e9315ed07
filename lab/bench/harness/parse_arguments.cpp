// Treatment of --help and of errors.

#include "parse_arguments.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace tailrace::bench {

std::optional<int> parse_arguments(CLI::App& app, cli::Session& session, int argc, char** argv,
                                   const std::string& program) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (session.speaks()) fmt::print("{}", app.help());
    return cli::kExitDone;
  } catch (const CLI::ParseError& error) {
    session.remark(fmt::format("{}; see {} --help", error.what(), program));
    return cli::kExitUsage;
  }
  return std::nullopt;
}

}  // namespace tailrace::bench
