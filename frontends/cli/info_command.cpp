// tailrace info: one screen about a file, of any format that Tailrace reads.

#include "commands.hpp"
#include "hdf5_filter/own_filters.hpp"
#include "report/info_text.hpp"

namespace tailrace::cli {

int run_info(Session& session, const InfoArguments& arguments) {
  const auto look = [&]() -> Result<Shown> {
    TAILRACE_TRY(hdf5::register_own_filters());
    const Result<verbs::InfoReport> report = verbs::file_info(arguments.request);
    if (!report.ok()) return report.status();
    return Shown{info_text(*report), json_text(json_of(*report)), {}, exit_done};
  };
  return run_and_show(session, arguments.json_path, false, [&] { return at_root(session, look); });
}

}  // namespace tailrace::cli
