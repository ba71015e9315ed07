// Storage that buffers all writes until the first sync. With it, the bench makes Tailrace encode
// everything before it writes, to measure what the overlap gains.

#pragma once

#include <memory>
#include <string>

#include "core/storage.hpp"

namespace tailrace::bench {

/// Open `path` as an ordinary file. Writes before the first sync() are buffered. That sync() writes
/// them, combining neighbours, stores the seconds of the writes in `flush_s` (which must outlive
/// the storage), and makes them durable. Later writes go to the file directly. Not collective.
/// @error  like open_posix_storage()
Result<std::unique_ptr<Storage>> open_deferred_storage(const std::string& path, bool create,
                                                       double& flush_s);

}  // namespace tailrace::bench
