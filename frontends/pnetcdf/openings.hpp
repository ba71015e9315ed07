// Count of the files that the process has created and opened, and the report that none was served.

#pragma once

namespace tailrace::pnetcdf {

/// Server of a file, or the call's failure.
enum class Opening { by_tailrace, by_real_library, failed };

/// Count a call that creates or opens a file. Thread-safe.
void count_opening(Opening opening);

}  // namespace tailrace::pnetcdf
