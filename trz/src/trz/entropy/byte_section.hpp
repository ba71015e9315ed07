// Byte sections: one stream of bytes in a chunk, in the smallest of six forms.
//
// The reader knows a section's decoded length from other data, or the length precedes the section.
// Forms:
//   stored    the bytes themselves.
//   constant  one byte that all bytes equal.
//   huffman   Huffman codes, with the code lengths in the section.
//   shared    Huffman codes, with the code lengths in a book outside the chunk.
//   zstd      zstd's output.
//   runs      run-length tokens (byte_kernels.hpp), in one of the first three forms.
// The writer knows the exact size of every form except zstd before writing it. It tries zstd only
// if the caller allows it. zstd's output, and therefore the choice of a form, may differ between
// versions of zstd; the decoded bytes never do.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/entropy/chunk_bytes.hpp"
#include "trz/entropy/huffman.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

/// When to try zstd on a section: never, if a sample promises a gain (repeats that Huffman coding
/// cannot use), if a search of up to 32 KiB does, or always.
enum class ZstdUse : std::uint8_t { never, promising, searched, always };

struct SectionPlan {
  ZstdUse zstd = ZstdUse::promising;
  int zstd_level = 1;
  /// Code lengths of a book, used without a histogram if every symbol has one; null: no book.
  const CodeLengths* shared = nullptr;
};

/// Upper limit of a section's size, form and code lengths included.
std::size_t section_bytes_max(std::size_t n_bytes);

/// True if a code of its own may shrink a section enough to be worth the search. The section has
/// n_bytes, and takes n_shared bytes with the book's `lengths`. Runs may help if it takes few bits
/// a byte; other code lengths may help if its size differs from the size expected of the book.
bool own_code_may_pay(std::size_t n_bytes, std::size_t n_shared, const CodeLengths& lengths);

/// Write one section. `out` has room for section_bytes_max(bytes.size()). Uses Slot::section.
/// Returns the bytes written, at least 1; 0 if out of memory.
std::size_t write_section(std::span<const std::uint8_t> bytes, const SectionPlan& plan,
                          std::uint8_t* out, Workspace& workspace);

/// Read one section of exactly bytes.size() decoded bytes from the front of `in`. Uses
/// Slot::section for the decoder's table and tokens. Returns the bytes consumed. Returns 0 if `in`
/// is truncated or inconsistent, if it needs a book and `shared` is null, or if out of memory.
std::size_t read_section(std::span<const std::uint8_t> in, std::span<std::uint8_t> bytes,
                         const CodeLengths* shared, Workspace& workspace);

/// Append one section to a chunk's writer, or read one at a chunk's reader. Returns false if space
/// or memory runs out or the section is invalid; an invalid section also sets in.failed().
bool add_section(std::span<const std::uint8_t> bytes, const SectionPlan& plan, ChunkWriter& out,
                 Workspace& workspace);
bool take_section(ChunkReader& in, std::span<std::uint8_t> bytes, const CodeLengths* shared,
                  Workspace& workspace);

}  // namespace tailrace::trz
