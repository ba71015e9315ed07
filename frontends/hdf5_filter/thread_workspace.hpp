// The working memory of this thread's calls: one for the HDF5 filter and the C interface together,
// kept from chunk to chunk and freed when the thread ends.

#pragma once

#include "codec/trz/workspace.hpp"

namespace tailrace {

inline trz::Workspace& thread_workspace() {
  thread_local trz::Workspace workspace;
  return workspace;
}

}  // namespace tailrace
