// The table of options in plain types.

#include "support/option_cases.hpp"

#include "core/option_table.hpp"
#include "model/machine_profile.hpp"

namespace api_test {

std::vector<OptionCase> option_cases() {
  std::vector<OptionCase> cases;
  const auto add = [&cases](const auto& table, bool of_file) {
    for (const auto& entry : table) {
      const bool of_steps = (entry.doors & tailrace::bit_of(tailrace::Door::steps)) != 0;
      cases.push_back({std::string(entry.name), of_file,
                       entry.agreement == tailrace::Agreement::alike, of_steps});
    }
  };
  add(tailrace::file_option_table(), true);
  add(tailrace::field_option_table(), false);
  return cases;
}

std::string profile_with_bandwidth(double bytes_per_s) {
  tailrace::MachineProfile profile = tailrace::built_in_profile();
  profile.write = tailrace::BandwidthModel::constant(bytes_per_s);
  profile.sync_latency_s = 0;
  return tailrace::profile_text(profile);
}

}  // namespace api_test
