// The one-screen summary of a repack, and the codecs that were compared.

#pragma once

#include <string>

#include "verbs/repack.hpp"

namespace tailrace::cli {

/// The tables, at most 100 columns wide and about one screen high.
std::string summary_text(const verbs::RepackReport& report);

/// --why: a table for each field whose codec was chosen: the best candidates first, the one that
/// was taken marked. Says so if there is no such field.
std::string why_text(const verbs::RepackReport& report);

}  // namespace tailrace::cli
