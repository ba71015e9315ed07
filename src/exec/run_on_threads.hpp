// run_on_threads: independent looks at many chunks or fields, before a step's lanes start.
//
// For short work that has no lane of its own: sampling. The executor's lanes have queues instead.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/status.hpp"

namespace tailrace {

/// Run task(0) ... task(n_tasks - 1), each once, on n_threads threads of which the caller's is one;
/// after a failure no further task is begun. Not collective; tasks make no MPI or HDF5 calls.
/// @returns the first failure.
Status run_on_threads(std::size_t n_tasks, std::uint64_t n_threads,
                      const std::function<Status(std::size_t)>& task);

}  // namespace tailrace
