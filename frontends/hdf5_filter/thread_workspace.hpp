// What each thread keeps from chunk to chunk, for the HDF5 filter and the C interface together: the
// codec's working memory, and the shared book that came last. Freed when the thread ends.

#pragma once

#include <cstdint>
#include <vector>

#include "codec/trz/book/book.hpp"
#include "codec/trz/workspace.hpp"

namespace tailrace {

inline trz::Workspace& thread_workspace() {
  thread_local trz::Workspace workspace;
  return workspace;
}

/// The book that these bytes are; nullptr for no bytes. Valid until this thread's next call.
/// @error corrupt
inline Result<const trz::Book*> thread_book(const std::vector<std::uint8_t>& bytes) {
  thread_local std::vector<std::uint8_t> last_bytes;
  thread_local trz::Book last_book;
  if (bytes.empty()) return static_cast<const trz::Book*>(nullptr);
  if (bytes != last_bytes) {
    TAILRACE_TAKE(last_book, trz::Book::parse(bytes));
    last_bytes = bytes;
  }
  return static_cast<const trz::Book*>(&last_book);
}

}  // namespace tailrace
