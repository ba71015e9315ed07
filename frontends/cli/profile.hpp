// Interface between the files of `tailrace profile`: the plan of measurements (what, on which data,
// within which time), and the output of a machine profile: tables, JSON, a chart of points and
// fits.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "chart/chart.hpp"
#include "cli_common.hpp"
#include "core/options.hpp"
#include "model/machine_profile.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace::cli {

/// Codec of a profile: its label ("trz,preset=fast") and the parsed name and settings.
struct ProfiledCodec {
  std::string label;
  std::string name;
  std::vector<KeyValue> settings;
};

struct ProfilePlan {
  double budget_s = 60;
  std::string folder;      ///< Absolute folder that test files are written to.
  std::string input;       ///< File whose fields the codecs encode; empty: generated fields.
  std::string raw_format;  ///< Raw format of the input.
  std::vector<ProfiledCodec> codecs;
  std::uint64_t largest_bytes = 512U << 20;
  std::uint64_t stripe_bytes = 0;  ///< Stripe size of the file system, as the user states it.
  std::string plugin_path;
};

/// Profile, and remarks on it for the user.
struct ProfileOutcome {
  MachineProfile profile;
  std::vector<std::string> remarks;
  std::string data;  ///< Data that the codecs were measured on.
};

/// Parse "trz,preset=fast,sz3": an item with '=' is a setting of the codec before it.
/// @error invalid_argument  names the option.
Result<std::vector<ProfiledCodec>> parse_profiled_codecs(const std::string& text);

/// Measure everything. Collective; the outcome is the same on every rank.
/// @error not_found, invalid_argument, io_error, no_space, out_of_memory
Result<ProfileOutcome> measure_profile(Session& session, const ProfilePlan& plan);

/// Tables of fits and latencies, for people.
std::string profile_tables(const MachineProfile& profile);

/// JSON form of the profile, with schema_version, command, the file and why it is stale.
nlohmann::ordered_json profile_json(const MachineProfile& profile, const std::string& file,
                                    const std::vector<std::string>& stale);

/// Chart of encode, decode, write and read: measured points, fitted lines.
chart::Figure profile_figure(const MachineProfile& profile);

}  // namespace tailrace::cli
