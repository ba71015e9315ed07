// layout=front for writers that do not know their chunks before the first one is written.

#pragma once

#include <string>

#include "core/options.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::verbs {

/// Lay a whole, closed file anew, with all its metadata before its chunks, which are copied as they
/// are stored; the time coordinate and its bounds become one chunk each (docs/layouts.md). Beside
/// the file the new one is written, as `path`.front, and takes its name at last: a crash or a
/// failure leaves the file as it was, and something that has the name `path`.front already is one.
/// Collective. Cost: the file is read and written once, by all ranks, and takes its space twice.
/// @param like  of which threads, memory, fsync and alignment are taken.
/// @error as repack(); the same on every rank.
Status lay_in_front(const VerbRanks& ranks, const std::string& path, const FileOptions& like);

}  // namespace tailrace::verbs
