// layout=front for writers that do not know all chunks before they write the first one.

#pragma once

#include <string>

#include "core/options.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::verbs {

/// Rewrite a complete, closed file with all metadata before its chunks. Chunks are copied as
/// stored; the time coordinate and its bounds become one chunk each (docs/layouts.md). The new file
/// is written as `path`.front and finally renamed to `path`. After a crash or failure the old file
/// is unchanged. A file that already has the name `path`.front is an error.
/// Collective. Cost: all ranks together read and write the file once; it temporarily needs its
/// space twice.
/// @param like  source of threads, memory, write buffer, plug-in path, fsync and alignment.
Status lay_in_front(const VerbRanks& ranks, const std::string& path, const FileOptions& like);

}  // namespace tailrace::verbs
