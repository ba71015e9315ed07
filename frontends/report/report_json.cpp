// Layout of JSON documents.

#include "report_json.hpp"

namespace tailrace::report {

std::string json_text(const nlohmann::ordered_json& document) {
  const std::string indented =
      document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  for (std::size_t at = 0; at < indented.size(); ++at) {
    out += indented[at];
    if (indented[at] != '[') continue;
    // An array of numbers has no other bracket and no quote before its end.
    const std::size_t end = indented.find_first_of("[]{}\"", at + 1);
    if (end == std::string::npos || indented[end] != ']') continue;
    for (++at; at < end; ++at) {
      if (indented[at] == ',') out += ", ";
      if (std::string_view(", \n").find(indented[at]) == std::string_view::npos)
        out += indented[at];
    }
    out += ']';
  }
  return out + "\n";
}

}  // namespace tailrace::report
