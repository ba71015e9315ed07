// Per-thread state shared by the HDF5 filter and the C interface: the codec's working memory and
// the last used shared book. Freed when the thread ends.

#pragma once

#include <cstdint>
#include <vector>

#include "trz/base/kept_by_thread.hpp"
#include "trz/book/book.hpp"
#include "trz/workspace.hpp"

namespace tailrace {

inline trz::Workspace& thread_workspace() { return kept_by_thread<trz::Workspace>(); }

/// Parse a shared book, or return the cached one; nullptr for no bytes. Valid until this thread's
/// next call.
/// @error corrupt
inline Result<const trz::Book*> thread_book(const std::vector<std::uint8_t>& bytes) {
  struct Last {
    std::vector<std::uint8_t> bytes;
    trz::Book book;
  };
  if (bytes.empty()) return static_cast<const trz::Book*>(nullptr);
  Last& last = kept_by_thread<Last>();
  if (bytes != last.bytes) {
    TAILRACE_TAKE(last.book, trz::Book::parse(bytes));
    last.bytes = bytes;
  }
  return static_cast<const trz::Book*>(&last.book);
}

}  // namespace tailrace
