// Code sections: the codes of a chunk as they stand in its bytes, behind groups or bit packing.
//
// Grouped: class ids, planes, the stream of every class that occurs, exceptions. Packed: widths and
// planes. Everything but planes is a byte section. Exceptions are a section of symbols and a string
// of bits (exception_symbols.hpp).

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "codec/trz/book/book.hpp"
#include "codec/trz/entropy/byte_section.hpp"
#include "codec/trz/entropy/chunk_bytes.hpp"
#include "codec/trz/entropy/code_stream.hpp"
#include "codec/trz/workspace.hpp"

namespace tailrace::trz {

/// What the sections of one chunk may use.
struct SectionChoice {
  ZstdUse zstd = ZstdUse::promising;
  int zstd_level = 1;
  const Book* book = nullptr;
  BookHistograms* counted = nullptr;  ///< Set to about what the streams hold; null: nobody asks.
};

/// The streams that a CodeWriter fills, in the workspace.
class OutgoingCodes {
 public:
  /// False when memory is out.
  bool prepare(std::size_t n_values, CodeForm form, Workspace& workspace);
  CodeWriter& writer() { return *writer_; }

  /// After the predictor is done: complete the last group. Returns an upper limit of write()'s
  /// bytes; 0 when memory is out.
  std::size_t finish();
  /// Returns false when memory or room is out.
  bool write(const SectionChoice& choice, ChunkWriter& out, Workspace& workspace);

  /// Histograms of all streams, for a shared book.
  void count(BookHistograms& histograms) const;
  /// The same in about a tenth of encode()'s time: of long streams a part is counted, and scaled.
  void count_some(BookHistograms& histograms) const;

 private:
  std::size_t class_count(std::size_t class_index) const {
    return static_cast<std::size_t>(writer_->grouped.bytes[class_index] -
                                    class_begin_[class_index]);
  }
  bool write_exceptions(const SectionChoice& choice, ChunkWriter& out, Workspace& workspace);

  CodeForm form_ = CodeForm::grouped;
  std::optional<CodeWriter> writer_;
  std::uint8_t* class_begin_[kClasses] = {};
  std::uint8_t* ids_begin_ = nullptr;
  std::uint8_t* planes_begin_ = nullptr;
  std::int32_t* exceptions_begin_ = nullptr;
};

/// The streams that a CodeReader consumes.
class IncomingCodes {
 public:
  /// Read all sections of n_values codes. False on anything inconsistent or when memory is out
  /// (then `memory_out()`).
  bool read(std::size_t n_values, CodeForm form, const Book* book, ChunkReader& in,
            Workspace& workspace);
  CodeReader& reader() { return *reader_; }
  /// After all codes have been taken: whether every exception has been, too.
  bool used_up() const { return reader_->grouped.exceptions == reader_->grouped.exceptions_end; }
  bool memory_out() const { return memory_out_; }

 private:
  bool read_grouped(const Book* book, ChunkReader& in, Workspace& workspace);
  bool read_packed(ChunkReader& in, Workspace& workspace);
  bool read_classes(const Book* book, const std::size_t* counts, ChunkReader& in,
                    Workspace& workspace);
  bool read_exceptions(const Book* book, ChunkReader& in, Workspace& workspace);
  /// Planes in place if enough bytes follow them, else a copy with slack.
  const std::uint8_t* planes(std::size_t n_bytes, ChunkReader& in, Workspace& workspace);

  std::size_t n_groups_ = 0;
  bool memory_out_ = false;
  std::optional<CodeReader> reader_;
};

}  // namespace tailrace::trz
