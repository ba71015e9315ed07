// --why: the codecs that were compared for each field, with what was predicted of them, and what a
// sample showed where --why=measured asked for it.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "summary.hpp"

namespace tailrace::cli {

/// A table for each field whose codec was chosen: the best candidates first, the one that was taken
/// marked. Says so if there is no such field.
std::string why_text(const RepackOutcome& outcome);

/// The same of one field: an array, in the order of preference at equal merit.
nlohmann::ordered_json candidates_json(const FieldReport& field);

}  // namespace tailrace::cli
