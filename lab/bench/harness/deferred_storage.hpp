// A storage that keeps what it is given until the first sync and writes it then: how the bench
// makes Tailrace encode all and write afterwards, to see what overlap alone gains.

#pragma once

#include <memory>
#include <string>

#include "core/storage.hpp"

namespace tailrace::bench {

/// Open `path` as an ordinary file. Writes before the first sync() are kept in memory; that sync()
/// writes them, neighbours as one write, stores the seconds that took into `flush_s` (which must
/// outlive the storage), and makes them durable. What comes later is written at once.
/// Not collective. @error as of open_posix_storage.
Result<std::unique_ptr<Storage>> open_deferred_storage(const std::string& path, bool create,
                                                       double& flush_s);

}  // namespace tailrace::bench
