// What `tailrace info` tells of a file, as text and as JSON.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "commands.hpp"

namespace tailrace::cli {

struct InfoReport {
  std::string text;
  nlohmann::ordered_json json;
};

/// Not collective. @error not_found, corrupt, unsupported
Result<InfoReport> describe_file(const InfoArguments& arguments);

}  // namespace tailrace::cli
