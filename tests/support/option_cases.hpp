// The table of options in plain types, for tests that include only the public headers.

#pragma once

#include <string>
#include <vector>

namespace api_test {

struct OptionCase {
  std::string name;
  bool of_file = false;
  bool alike = false;     ///< All ranks must pass the same value.
  bool of_steps = false;  ///< Only a Writer accepts the option.
};
std::vector<OptionCase> option_cases();

/// Text of a machine profile in which each rank writes `bytes_per_s` while all ranks write.
std::string profile_with_bandwidth(double bytes_per_s);

}  // namespace api_test
