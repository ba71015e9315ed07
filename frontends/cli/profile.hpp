// What the files of `tailrace profile` know of each other: what is to be measured, on what, within
// which time; and how a machine profile is shown: tables, JSON, a chart of points and fits.

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

/// A codec as it stands in the profile ("trz,preset=fast"), and taken apart.
struct ProfiledCodec {
  std::string label;
  std::string name;
  std::vector<KeyValue> settings;
};

struct ProfilePlan {
  double budget_s = 60;
  std::string folder;      ///< That is written to; absolute.
  std::string input;       ///< Whose fields the codecs are measured on; empty: generated ones.
  std::string raw_format;  ///< Of the input.
  std::vector<ProfiledCodec> codecs;
  std::uint64_t largest_bytes = 512U << 20;
  std::uint64_t stripe_bytes = 0;  ///< As the user knows it.
  std::string plugin_path;
};

/// A profile and what the user should know beside it.
struct ProfileOutcome {
  MachineProfile profile;
  std::vector<std::string> remarks;
  std::string data;  ///< What the codecs were measured on.
};

/// "trz,preset=fast,sz3": a word with '=' belongs to the codec before it.
/// @error invalid_argument  names the option.
Result<std::vector<ProfiledCodec>> parse_profiled_codecs(const std::string& text);

/// Measure everything. Collective; the outcome is the same on every rank.
/// @error not_found, invalid_argument, io_error, no_space, out_of_memory
Result<ProfileOutcome> measure_profile(Session& session, const ProfilePlan& plan);

/// Tables of fits and latencies, for people.
std::string profile_tables(const MachineProfile& profile);

/// The profile's own document, with schema_version, command, the file and why it is stale.
nlohmann::ordered_json profile_json(const MachineProfile& profile, const std::string& file,
                                    const std::vector<std::string>& stale);

/// Encode, decode, write and read: points as measured, lines as fitted.
chart::Figure profile_figure(const MachineProfile& profile);

}  // namespace tailrace::cli
