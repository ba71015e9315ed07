// Byte sections: one stream of bytes in a chunk, in the smallest of six forms.
//
// A section's decoded length is known to the reader from elsewhere (or written before it). Forms:
// stored, constant (one byte for all), huffman (code lengths within the section), shared (code
// lengths from a book outside the chunk), zstd, and runs (byte_kernels.hpp, then one of the first
// three). The writer knows the exact size of every form but zstd's before writing it; zstd is tried
// only where the caller allows it. What zstd writes may differ between its versions, and so the
// choice of a form: the bytes decoded never do.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trz/entropy/chunk_bytes.hpp"
#include "trz/entropy/huffman.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

/// What zstd may do to a section: never, where a sample promises a gain (runs and repeats that
/// Huffman cannot see), or always compare.
enum class ZstdUse : std::uint8_t { never, promising, always };

struct SectionPlan {
  ZstdUse zstd = ZstdUse::promising;
  int zstd_level = 1;
  /// Use these lengths if every symbol has one, without a histogram. Null for none.
  const CodeLengths* shared = nullptr;
};

/// Upper limit of a section's bytes, form and lengths included.
std::size_t section_bytes_max(std::size_t n_bytes);

/// Whether codes of its own may make a section smaller, by more than the search for them is worth,
/// than its n_shared bytes with a book's lengths: by runs where few bits do for a byte, or by other
/// code lengths where it takes other than what the book's were made for.
bool own_code_may_pay(std::size_t n_bytes, std::size_t n_shared, const CodeLengths& lengths);

/// Write one section. `out` has room for section_bytes_max(bytes.size()). Uses Slot::section.
/// Returns bytes written, at least 1; 0 when memory is out.
std::size_t write_section(std::span<const std::uint8_t> bytes, const SectionPlan& plan,
                          std::uint8_t* out, Workspace& workspace);

/// Read one section of exactly bytes.size() decoded bytes from the front of `in`. Uses
/// Slot::section for the decoder's table and tokens. Returns bytes consumed, or 0 if `in` is
/// truncated or inconsistent, or names a shared book and `shared` is null, or when memory is out.
std::size_t read_section(std::span<const std::uint8_t> in, std::span<std::uint8_t> bytes,
                         const CodeLengths* shared, Workspace& workspace);

/// The same behind what a chunk's writer has written, or at what its reader has come to. False when
/// room or memory is out; the reader fails for good where the section does.
bool add_section(std::span<const std::uint8_t> bytes, const SectionPlan& plan, ChunkWriter& out,
                 Workspace& workspace);
bool take_section(ChunkReader& in, std::span<std::uint8_t> bytes, const CodeLengths* shared,
                  Workspace& workspace);

}  // namespace tailrace::trz
