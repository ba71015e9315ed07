// tailrace profile: measure this machine, or show an earlier profile.
//
// The new profile is written to a temporary file and renamed, so that the old one stays until then.
// The output is opened before the measurement, which takes minutes.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "commands.hpp"
#include "core/codec_registry.hpp"
#include "core/environment.hpp"
#include "measure/machine_identity.hpp"
#include "profile.hpp"

namespace tailrace::cli {
namespace {

struct ProfileArguments {
  std::string output = "tailrace_profile.json";
  bool force = false;
  std::string show;          ///< Print this profile instead of measuring; empty: measure.
  std::string folder = ".";  ///< Folder in which storage is measured.
  double time_s = 60;
  std::string largest = "512MiB";  ///< Bytes of a rank in one file.
  std::string stripe;
  std::string input;  ///< Fields to measure codecs on; empty: generated ones.
  std::string raw_format;
  std::string codecs = codec_variants_text();  ///< Candidates of codec=auto.
  std::string plugin_path;
  std::string plot_path;
  std::string json_path;
  bool quiet = false;
};

constexpr const char* kProfileDescription =
    R"help(Measure codecs, storage and latencies of this machine, for predictions

Examples:
  mpiexec -n 32 tailrace profile --dir /scratch/me -o machine.json --plot machine.png
      with the ranks per node and the folder of your jobs; takes about a minute
  tailrace profile --input snapshot.h5 --time 110
      codecs on your own data, more points
  tailrace profile --show machine.json
      show a profile, and whether it still applies to this machine
)help";

constexpr const char* kProfileFooter =
    R"help(Codecs are measured at bounds from rel=1e-2 to 1e-6 on all ranks at once, in CPU time of
one core: gather and encode, decode and copy. Storage: one shared file, written by 1, 2, 4 ...
all ranks in sizes from 1 MiB on, synced, read back, and always removed. docs/facility.md
explains the fits. Use it by repack --profile FILE, or TAILRACE_PROFILE=FILE.)help";

constexpr double kBudgetMaxS = 3600;

/// The words understood. @error invalid_argument  names the option.
Result<ProfilePlan> understand(const ProfileArguments& arguments) {
  ProfilePlan plan;
  plan.budget_s = arguments.time_s;
  if (!(plan.budget_s > 0 && plan.budget_s <= kBudgetMaxS)) {
    return Status(Code::invalid_argument, fmt::format("--time {}: must be above 0 and at most {} s",
                                                      arguments.time_s, kBudgetMaxS));
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(arguments.folder, error);
  if (error || !is_directory(folder.string())) {
    return Status(Code::not_found, "--dir " + arguments.folder + ": the folder does not exist");
  }
  plan.folder = folder.string();
  plan.input = arguments.input;
  plan.raw_format = arguments.raw_format;
  plan.plugin_path = arguments.plugin_path;
  TAILRACE_TAKE(plan.codecs, parse_profiled_codecs(arguments.codecs));
  TAILRACE_TAKE(plan.largest_bytes, parse_bytes(arguments.largest).within("--largest"));
  if (plan.largest_bytes < 4096) {
    return Status(Code::invalid_argument,
                  "--largest " + arguments.largest + ": must be at least 4096 bytes");
  }
  if (!arguments.stripe.empty()) {
    TAILRACE_TAKE(plan.stripe_bytes, parse_bytes(arguments.stripe).within("--stripe"));
  }
  return plan;
}

/// Tables, JSON and chart of one profile. Rank 0 alone.
Status report(const MachineProfile& profile, const std::string& file,
              const std::vector<std::string>& stale, const ProfileArguments& arguments,
              ReportFile& json) {
  if (!json.to_stdout() && !arguments.quiet) print_text(profile_tables(profile));
  if (json.wanted()) TAILRACE_TRY(json.finish(json_text(profile_json(profile, file, stale))));
  if (arguments.plot_path.empty()) return Status();
  return chart::write_figure(profile_figure(profile), arguments.plot_path).within("--plot");
}

Result<MachineProfile> load(const std::string& path) {
  TAILRACE_TAKE(const std::string text, read_settings_file(path));
  return parse_profile(text).within(path);
}

/// --show: rank 0 alone reads and prints.
Status show(Session& session, const ProfileArguments& arguments, ReportFile& json) {
  MachineProfile profile = built_in_profile();
  if (arguments.show != kBuiltInProfileName) {
    TAILRACE_TAKE(profile, load(arguments.show));
  }
  const std::vector<std::string> stale = staleness(profile, find_machine_identity(profile.folder));
  TAILRACE_TRY(report(profile, arguments.show, stale, arguments, json));
  for (const std::string& sentence : stale) session.remark("this profile is stale: " + sentence);
  return Status();
}

Status measure(Session& session, const ProfileArguments& arguments, ReportFile& json) {
  WholeFile file;
  TAILRACE_TRY(
      session.agree(session.speaks() ? file.open(arguments.output, arguments.force) : Status()));
  TAILRACE_TAKE(ProfilePlan plan, session.agree(understand(arguments)));
  TAILRACE_TAKE(ProfileOutcome outcome, measure_profile(session, plan));
  if (!session.speaks()) return Status();
  const std::string text = profile_text(outcome.profile);
  TAILRACE_TRY(file.finish(text));
  // Show the saved numbers, digit by digit.
  TAILRACE_TAKE(const MachineProfile saved, parse_profile(text));
  TAILRACE_TRY(report(saved, arguments.output, {}, arguments, json));
  if (!arguments.quiet) {
    for (const std::string& remark : outcome.remarks) session.remark(remark);
    if (!json.to_stdout()) {
      print_text(fmt::format("{}\nsaved as {}\n", wrapped("codecs on " + outcome.data, 2),
                             printable(arguments.output)));
    }
  }
  return Status();
}

int run_profile(Session& session, const ProfileArguments& arguments) {
  Status status = start_hdf5(session, arguments.plugin_path);
  if (status.ok()) status = session.agree(check_plot_path(arguments.plot_path));
  ReportFile json;
  if (status.ok()) status = session.agree(json.open(arguments.json_path, session.speaks()));
  if (status.ok() && !arguments.show.empty()) {
    status = session.agree(session.speaks() ? show(session, arguments, json) : Status());
  } else if (status.ok()) {
    // Failures of the measurement are agreed upon; those of rank 0's files are not yet.
    status = session.agree(measure(session, arguments, json));
  }
  return status.ok() ? kExitDone : session.fail(status);
}

}  // namespace

Command add_profile(CLI::App& app) {
  const auto arguments = std::make_shared<ProfileArguments>();
  ProfileArguments& profile = *arguments;
  CLI::App* sub = app.add_subcommand("profile", kProfileDescription);
  const Group reports(sub, "Reports");
  const Group output(sub, "Output");
  sub->footer(kProfileFooter);
  output("-o,--output", profile.output, "FILE",
         "The profile to create. Default tailrace_profile.json.");
  output.flag("--force", profile.force, "Replace an existing file.");
  output("--show", profile.show, "FILE",
         "Print this profile without measuring, and report if it is stale on this machine. "
         "'built-in' shows the profile that is used without a measured one.");
  const Group what(sub, "What is measured");
  what("--time", profile.time_s, "SECONDS", "Time limit of the whole measurement. Default 60.");
  what("--dir", profile.folder, "FOLDER",
       "Folder whose storage is measured. Default: the current folder.");
  what("--largest", profile.largest, "SIZE",
       "Most bytes that a rank writes to the test file; all ranks use at most half of the free "
       "space. Default 512MiB.");
  what("--stripe", profile.stripe, "SIZE",
       "Stripe size of the file system, to which writes are aligned (lfs getstripe -S). Default: "
       "unknown.");
  what("--input", profile.input, "FILE",
       "Measure codecs on the fields of this file: HDF5, netCDF, .npy, or raw binary. "
       "Default: generated cosmology-like fields.");
  what.raw(profile.raw_format, "The input");
  what("-c,--codecs", profile.codecs, "LIST",
       "Codecs with their settings, separated by commas. Missing plug-ins are left out. Default: "
       "the candidates of codec=auto (none, trz in eight settings, portable, deflate, zstd, sz3, "
       "zfp).");
  what("--plugin-path", profile.plugin_path, "FOLDERS",
       "Folders of HDF5 filter plug-ins, searched before HDF5_PLUGIN_PATH.");
  reports("--plot", profile.plot_path, "FILE", "Draw points and fits, .png or .svg.");
  report_options(sub, profile.json_path);
  reports.flag("-q,--quiet", profile.quiet, "No table, no remarks.");
  return [arguments](Session& session) { return run_profile(session, *arguments); };
}

}  // namespace tailrace::cli
