// The table of options as plain words.

#include "support/option_cases.hpp"

#include "core/option_table.hpp"
#include "model/machine_profile.hpp"

namespace api_test {

std::vector<OptionCase> option_cases() {
  std::vector<OptionCase> cases;
  for (const auto& entry : tailrace::file_option_table()) {
    cases.push_back({std::string(entry.name), true, entry.agreement == tailrace::Agreement::alike});
  }
  for (const auto& entry : tailrace::field_option_table()) {
    cases.push_back(
        {std::string(entry.name), false, entry.agreement == tailrace::Agreement::alike});
  }
  return cases;
}

std::string profile_with_bandwidth(double bytes_per_s) {
  tailrace::MachineProfile profile = tailrace::built_in_profile();
  profile.write = tailrace::BandwidthModel::constant(bytes_per_s);
  profile.sync_latency_s = 0;
  return tailrace::profile_text(profile);
}

}  // namespace api_test
