// The table of options as plain words, for tests that see the public headers only.

#pragma once

#include <string>
#include <vector>

namespace api_test {

struct OptionCase {
  std::string name;
  bool of_file = false;
  bool alike = false;     ///< All ranks must give the same.
  bool of_steps = false;  ///< A Writer serves it; others it refuses.
};
std::vector<OptionCase> option_cases();

/// The text of a machine profile whose ranks write so much a second each, at once.
std::string profile_with_bandwidth(double bytes_per_s);

}  // namespace api_test
