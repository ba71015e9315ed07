// tailrace profile: measure this machine, or show what was measured before.
//
// The old profile stays until the new one is whole: it is written beside it and renamed. Whether
// the output can be written is found out before minutes of measuring, not after.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "commands.hpp"
#include "measure/machine_identity.hpp"
#include "profile_measure.hpp"
#include "profile_report.hpp"

namespace tailrace::cli {
namespace {

constexpr double kBudgetMaxS = 3600;

/// The output file while it is measured: NAME.partial, so that an older NAME stays.
class ProfileFile {
 public:
  /// @error already_exists, not_found, io_error  before anything was measured.
  Status open(const std::string& path, bool force) {
    path_ = path;
    if (is_directory(path)) {
      return Status(Code::invalid_argument, "--output " + path + ": is a folder, must be a file");
    }
    if (!force && std::filesystem::exists(path)) {
      return Status(Code::already_exists, path + " exists; --force replaces it");
    }
    return report_.open(partial(), true);
  }
  Status finish(const std::string& text) {
    TAILRACE_TRY(report_.finish(text));
    std::error_code error;
    std::filesystem::rename(partial(), path_, error);
    if (error) return Status(Code::io_error, "renaming " + partial() + ": " + error.message());
    path_.clear();
    return Status();
  }
  ~ProfileFile() {
    std::error_code error;
    if (report_.wanted() && !path_.empty()) std::filesystem::remove(partial(), error);
  }

 private:
  std::string partial() const { return path_ + ".partial"; }
  std::string path_;
  ReportFile report_;
};

Status check_plot(const std::string& path) {
  if (path.empty() || path.ends_with(".png") || path.ends_with(".svg")) return Status();
  return Status(Code::invalid_argument, "--plot " + path + ": must end with .png or .svg");
}

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
    return Status(Code::not_found, "--dir " + arguments.folder + ": there is no such folder");
  }
  plan.folder = folder.string();
  plan.input = arguments.input;
  plan.raw_format = arguments.raw_format;
  plan.plugin_path = arguments.plugin_path;
  Result<std::vector<ProfiledCodec>> codecs = parse_profiled_codecs(arguments.codecs);
  if (!codecs.ok()) return codecs.status();
  plan.codecs = std::move(*codecs);
  Result<std::uint64_t> largest = parse_bytes(arguments.largest);
  if (!largest.ok()) return largest.status().within("--largest");
  plan.largest_bytes = *largest;
  if (plan.largest_bytes < 4096) {
    return Status(Code::invalid_argument,
                  "--largest " + arguments.largest + ": must be at least 4096 bytes");
  }
  if (!arguments.stripe.empty()) {
    Result<std::uint64_t> stripe = parse_bytes(arguments.stripe);
    if (!stripe.ok()) return stripe.status().within("--stripe");
    plan.stripe_bytes = *stripe;
  }
  return plan;
}

/// Tables, JSON and chart of one profile. Rank 0 alone.
Status report(const MachineProfile& profile, const std::string& file,
              const std::vector<std::string>& stale, const ProfileArguments& arguments,
              ReportFile& json) {
  if (!json.to_stdout() && !arguments.quiet) fmt::print("{}", profile_tables(profile));
  if (json.wanted()) TAILRACE_TRY(json.finish(json_text(profile_json(profile, file, stale))));
  if (arguments.plot_path.empty()) return Status();
  return chart::write_figure(profile_figure(profile), arguments.plot_path).within("--plot");
}

Result<MachineProfile> load(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream || is_directory(path)) return Status(Code::not_found, path + ": cannot be read");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Result<MachineProfile> profile = parse_profile(text);
  if (!profile.ok()) return profile.status().within(path);
  return profile;
}

/// --show: rank 0 alone reads and prints.
Status show(Session& session, const ProfileArguments& arguments, ReportFile& json) {
  MachineProfile profile = built_in_profile();
  if (arguments.show != "built-in") {
    Result<MachineProfile> loaded = load(arguments.show);
    if (!loaded.ok()) return loaded.status();
    profile = std::move(*loaded);
  }
  const std::vector<std::string> stale = staleness(profile, find_machine_identity(profile.folder));
  TAILRACE_TRY(report(profile, arguments.show, stale, arguments, json));
  for (const std::string& sentence : stale) session.remark("stale here: " + sentence);
  return Status();
}

Status measure(Session& session, const ProfileArguments& arguments, ReportFile& json) {
  ProfileFile file;
  TAILRACE_TRY(
      session.settle(session.speaks() ? file.open(arguments.output, arguments.force) : Status()));
  Result<ProfilePlan> plan = understand(arguments);
  TAILRACE_TRY(session.settle(plan.status()));
  Result<ProfileOutcome> outcome = measure_profile(session, *plan);
  if (!outcome.ok()) return outcome.status();
  if (!session.speaks()) return Status();
  const std::string text = profile_text(outcome->profile);
  TAILRACE_TRY(file.finish(text));
  // What is shown is what was saved, digit by digit.
  const Result<MachineProfile> saved = parse_profile(text);
  if (!saved.ok()) return saved.status();
  TAILRACE_TRY(report(*saved, arguments.output, {}, arguments, json));
  if (!arguments.quiet) {
    for (const std::string& remark : outcome->remarks) session.remark(remark);
    if (!json.to_stdout()) {
      fmt::print("codecs on {}\nsaved as {}\n", outcome->data, arguments.output);
    }
  }
  return Status();
}

}  // namespace

int run_profile(Session& session, const ProfileArguments& arguments) {
  Status status = start_hdf5(session, arguments.plugin_path);
  if (status.ok()) status = session.settle(check_plot(arguments.plot_path));
  ReportFile json;
  if (status.ok()) status = session.settle(json.open(arguments.json_path, session.speaks()));
  if (status.ok() && !arguments.show.empty()) {
    status = session.settle(session.speaks() ? show(session, arguments, json) : Status());
  } else if (status.ok()) {
    // Failures of the measurement are agreed upon; those of rank 0's files are not yet.
    status = session.settle(measure(session, arguments, json));
  }
  return status.ok() ? exit_done : session.fail(status);
}

}  // namespace tailrace::cli
