// Agreement on a text: that all ranks have made the same definitions, without sending them around;
// and on rank 0's word, where one rank's look is enough.

#pragma once

#include <string>

#include "core/comm.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Check that all ranks have the same text, line by line; `what` names it in the error, which shows
/// the first line that differs from rank 0's. Collective. The error is on the ranks that differ
/// only: the caller agrees. Cost: one allreduce; only on a difference a broadcast of rank 0's text.
/// @error disagreement
Status agree_on_text(Comm& comm, const std::string& what, const std::string& text);

/// Rank 0's Status on every rank, without its rank in the text; what others bring does not count.
/// Collective. Cost: one broadcast.
Status as_rank_0_says(Comm& comm, const Status& mine);

}  // namespace tailrace
