// Code sections: the codes of a chunk as they stand in its bytes, behind groups or bit packing.
//
// Grouped: class ids, planes, the stream of every class that occurs, exceptions. Packed: widths and
// planes. Everything but planes is a byte section. Exceptions are a section of symbols and a string
// of bits.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "trz/book/book.hpp"
#include "trz/entropy/byte_section.hpp"
#include "trz/entropy/chunk_bytes.hpp"
#include "trz/entropy/code_stream.hpp"
#include "trz/kernels/fitted_kernels.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

/// A signed code as an unsigned number: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
constexpr std::uint32_t zigzag(std::int32_t code) {
  return (static_cast<std::uint32_t>(code) << 1) ^ static_cast<std::uint32_t>(code >> 31);
}
constexpr std::int32_t unzigzag(std::uint32_t z) {
  return static_cast<std::int32_t>((z >> 1) ^ (0U - (z & 1U)));
}

// --- Exceptions as bytes for the entropy coder, and the bits that it would gain nothing on.
//
// An exception is a whole code (group_kernels.hpp), most often a little too large for its group, at
// the edge of a mask as large as the field's values. Let z = 2 c for c >= 0, else -2 c - 1. Below
// 224 its symbol is z itself; otherwise the symbol is 224 + L - 8, where L = 8..32 is the number of
// bits of z, and the L - 1 bits below the leading one follow in a string of bits, low ones first.
// Measured against "255 and 32 bits" on 130 pairs of field and bound: chunks 1.1 to 1.9 % smaller
// on average from rel 1e-3 to 1e-6, and 3 to 5 % where fields have masks.

inline constexpr unsigned kExceptionSymbols = 249;  ///< Symbols are below this.

/// The symbol of one exception, for histograms.
unsigned exception_symbol(std::int32_t code);

/// Bytes of the string of bits that exceptions with these symbols have; SIZE_MAX if one is none.
std::size_t exception_bit_bytes(std::span<const std::uint8_t> symbols);

/// Write one symbol per code, and the string of bits, filled up with zeros to a whole byte.
/// `bits` has room for 4 bytes a code and 8 more (all of which may be overwritten). Returns the
/// bytes of the string. Thread-safe. Cost: O(n), about 1 ns a code.
std::size_t put_exception_symbols(std::span<const std::int32_t> codes, std::uint8_t* symbols,
                                  std::uint8_t* bits);

/// The inverse. Returns false if a symbol is none, or bits.size() is not exception_bit_bytes().
/// Then `codes` are unspecified; nothing is read or written out of range.
bool take_exception_symbols(std::span<const std::uint8_t> symbols,
                            std::span<const std::uint8_t> bits, std::int32_t* codes);

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

// --- Codes under a model: each has a context, and each context a table of frequencies (model.cpp).

inline constexpr unsigned kModelSymbols = 140;   ///< Symbols are below this.
inline constexpr unsigned kFrequencyBits = 12;   ///< A table's frequencies sum to 2^12.
inline constexpr std::size_t kModelStates = 4;   ///< Code i belongs to state i % 4.
inline constexpr unsigned kStateLeastBits = 16;  ///< States are at least 2^16, words 16 bits.

/// Upper limit of write_modelled's bytes.
std::size_t modelled_bytes_max(std::size_t n_codes);

/// Write the tables and all codes. Each context is below kContexts. Uses Slots planes, exceptions.
/// False when memory or room is out. Thread-safe with a workspace each. Cost: O(n).
bool write_modelled(const std::int32_t* codes, const std::uint8_t* contexts, std::size_t n_codes,
                    ChunkWriter& out, Workspace& workspace);

/// Reads what write_modelled wrote, part by part, since contexts follow from codes before.
class ModelReader {
 public:
  /// Read the tables. False on anything inconsistent, or when memory is out (then memory_out()).
  /// Uses Slot class_bytes until the last read().
  bool open(ChunkReader& in, Workspace& workspace);
  bool memory_out() const { return memory_out_; }

  /// The next n codes. Each context is below kContexts. Zeros, or whatever, once it failed.
  void read(const std::uint8_t* contexts, std::size_t n, std::int32_t* codes);

  /// After all codes: whether everything was there, and nothing is left.
  bool finished() const;

 private:
  bool read_tables(ChunkReader& in, Workspace& workspace);
  template <bool kChecked>
  void read_symbols(const std::uint8_t* contexts, std::size_t n, std::uint8_t* symbols);
  std::uint32_t bits(unsigned n_bits);

  std::array<const std::uint32_t*, kContexts> table_{};
  std::array<std::uint32_t, kModelStates> state_{};
  std::size_t turn_ = 0;  ///< Whose code is next.
  const std::uint8_t* words_ = nullptr;
  std::size_t n_words_left_ = 0;
  std::span<const std::uint8_t> bit_bytes_;
  std::size_t bit_at_ = 0;
  bool failed_ = false;
  bool memory_out_ = false;
};

}  // namespace tailrace::trz
