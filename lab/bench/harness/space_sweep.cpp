// One write for each layout and ratio.

#include "space_sweep.hpp"

#include <fmt/format.h>

#include "measure.hpp"

namespace tailrace::bench {
namespace {

constexpr double kRatios[] = {1.1, 1.18, 1.25, 1.33, 1.43};

Result<SpaceRow> write_once(const BenchContext& context, const std::string& folder,
                            const std::string& layout, double ratio) {
  TailraceSpec spec;
  spec.layout = layout;
  spec.codec = context.options.codec;
  spec.settings = context.options.codec_settings;
  spec.space_ratio = ratio;
  Result<std::unique_ptr<Method>> method = make_tailrace_method(context, layout, spec);
  if (!method.ok()) return method.status();
  Result<Run> run = run_once(context, **method, folder + "/space.h5");
  if (!run.ok()) return run.status();
  SpaceRow row{layout, ratio, 0, 0, run->seconds};
  Result<ReadBack> found = (*method)->read_back(folder + "/space.h5");
  TAILRACE_TRY(context.comm.agree(found.status()));
  combine(context.comm, *found);
  TAILRACE_TRY(context.comm.agree((*method)->remove(folder + "/space.h5")));
  if (found->n_bad > 0) {
    return Status(Code::bound_broken,
                  layout + ": " + std::to_string(found->n_bad) + " values exceed their bounds");
  }
  const RunDetails& details = run->details;
  row.overflow_share =
      static_cast<double>(details.n_overflow_chunks) / static_cast<double>(details.n_chunks);
  row.overhead_share =
      static_cast<double>(details.slack_bytes) / static_cast<double>(found->encoded_bytes);
  return row;
}

}  // namespace

Result<std::vector<SpaceRow>> space_sweep(const BenchContext& context, const std::string& folder) {
  std::vector<SpaceRow> rows;
  const auto add = [&](const std::string& layout, double ratio, const std::string& label) {
    Result<SpaceRow> row = write_once(context, folder, layout, ratio);
    if (!row.ok()) return row.status();
    rows.push_back(*row);
    rows.back().layout = label;
    return Status();
  };
  for (const std::string layout : {"predictive", "arena"}) {
    for (const double ratio : kRatios) TAILRACE_TRY(add(layout, ratio, layout));
    TAILRACE_TRY(add(layout, 0, layout + ", default"));
  }
  TAILRACE_TRY(add("claimed", 0, "claimed"));
  return rows;
}

}  // namespace tailrace::bench
