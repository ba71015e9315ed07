// tailrace verify: is every value of the compressed file as near to the original as was promised?

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "progress_bar.hpp"
#include "verify_concat.hpp"
#include "verify_files.hpp"
#include "verify_report.hpp"

namespace tailrace::cli {

int run_verify(Session& session, const VerifyArguments& arguments) {
  if (!arguments.concat_output.empty()) return run_verify_concat(session, arguments);
  search_plugins_in(arguments.plugin_path);
  ReportFile json;
  const Status opened = session.settle(json.open(arguments.json_path, session.speaks()));
  if (!opened.ok()) return session.fail(opened);

  VerifyOutcome outcome;
  ProgressBar bar("verify", session.speaks() && !arguments.quiet);
  const Status status = verify_files(
      session, arguments, [&](std::uint64_t done, std::uint64_t total) { bar.update(done, total); },
      outcome);
  bar.clear();
  if (!status.ok()) return session.fail(status);

  // Only rank 0 holds all findings; its verdict is everybody's exit code.
  Status saved;
  std::uint64_t n_failed = 0;
  if (session.speaks()) {
    n_failed = n_failures(outcome);
    if (!arguments.quiet && !json.to_stdout()) fmt::print("{}", verify_text(outcome));
    if (json.wanted()) saved = json.finish(json_text(verify_json(outcome)));
  }
  saved = session.settle(saved);
  if (!saved.ok()) return session.fail(saved);
  session.comm.allreduce(std::span<std::uint64_t>(&n_failed, 1), Reduction::max);
  return n_failed == 0 ? exit_done : exit_check_failed;
}

}  // namespace tailrace::cli
