// How a machine profile is shown: tables, JSON, a chart of points and fits.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "chart/chart.hpp"
#include "model/machine_profile.hpp"

namespace tailrace::cli {

/// Tables of fits and latencies, for people.
std::string profile_tables(const MachineProfile& profile);

/// The profile's own document, with schema_version, command, the file and why it is stale.
nlohmann::ordered_json profile_json(const MachineProfile& profile, const std::string& file,
                                    const std::vector<std::string>& stale);

/// Encode, decode, write and read: points as measured, lines as fitted.
chart::Figure profile_figure(const MachineProfile& profile);

}  // namespace tailrace::cli
