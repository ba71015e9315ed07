// Writing the bytes of a drawing to a file.

#pragma once

#include <string>
#include <string_view>

#include "core/status.hpp"

namespace tailrace::chart {

/// Write `bytes` to `path`, replacing what is there; after a failure nothing is left there.
/// Not collective. @error not_found  no such folder.  @error io_error, no_space
Status write_chart_file(std::string_view bytes, const std::string& path);

}  // namespace tailrace::chart
