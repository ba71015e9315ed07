// Code sections: the codes of a chunk in serialised form, after grouping or bit packing.
//
// Grouped form: class ids, planes, one stream for each class that occurs, exceptions. Packed form:
// widths and planes. Everything except planes is a byte section. Exceptions are a byte section of
// symbols and a string of bits.

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

/// Map a signed code to an unsigned number: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
constexpr std::uint32_t zigzag(std::int32_t code) {
  return (static_cast<std::uint32_t>(code) << 1) ^ static_cast<std::uint32_t>(code >> 31);
}
constexpr std::int32_t unzigzag(std::uint32_t z) {
  return static_cast<std::int32_t>((z >> 1) ^ (0U - (z & 1U)));
}

// --- Exceptions as symbols for the entropy coder, plus raw bits that it could not compress.
//
// An exception is a complete code c (group_kernels.hpp). Most exceptions are a little too large for
// their group; those at the edge of a mask are as large as the field's values. Let z = 2 c for
// c >= 0, else -2 c - 1. If z < 224 the symbol is z. Otherwise the symbol is 224 + L - 8, where
// L = 8..32 is the number of bits of z. The L - 1 bits below the leading one go to a string of
// bits, low bits first.
// Measured against "255 and 32 bits" on 130 pairs of field and bound: chunks are 1.1 to 1.9 %
// smaller on average from rel 1e-3 to 1e-6, and 3 to 5 % smaller for fields with masks.

inline constexpr unsigned kExceptionSymbols = 249;  ///< Number of symbols.

/// Symbol of one exception, for histograms.
unsigned exception_symbol(std::int32_t code);

/// Bytes of the string of bits for exceptions with these symbols; SIZE_MAX if a symbol is invalid.
std::size_t exception_bit_bytes(std::span<const std::uint8_t> symbols);

/// Write one symbol per code, and the string of bits, padded with zeros to a byte boundary. `bits`
/// has room for 4 bytes per code plus 8, all of which may be overwritten. Returns the size of the
/// string in bytes. Thread-safe. Cost: O(n), about 1 ns per code.
std::size_t put_exception_symbols(std::span<const std::int32_t> codes, std::uint8_t* symbols,
                                  std::uint8_t* bits);

/// The inverse of put_exception_symbols. Returns false if a symbol is invalid or bits.size() is not
/// exception_bit_bytes(symbols); `codes` are then unspecified. Never accesses memory out of range.
bool take_exception_symbols(std::span<const std::uint8_t> symbols,
                            std::span<const std::uint8_t> bits, std::int32_t* codes);

/// Options for writing the sections of one chunk.
struct SectionChoice {
  ZstdUse zstd = ZstdUse::promising;
  int zstd_level = 1;
  const Book* book = nullptr;
  BookHistograms* counted = nullptr;  ///< Receives approximate counts; null: not counted.
};

/// The streams that a CodeWriter fills. They are in the workspace.
class OutgoingCodes {
 public:
  /// Set up the streams for n_values codes. False if out of memory.
  bool prepare(std::size_t n_values, CodeForm form, Workspace& workspace);
  CodeWriter& writer() { return *writer_; }

  /// Complete the last group; call it after the predictor. Returns an upper limit of the bytes that
  /// write() needs.
  std::size_t finish();
  /// Write all sections. Returns false if memory or space runs out.
  bool write(const SectionChoice& choice, ChunkWriter& out, Workspace& workspace);

  /// Add the histograms of all streams, for a shared book.
  void count(BookHistograms& histograms) const;
  /// Add approximate histograms, in about a tenth of encode()'s time: long streams are counted in
  /// part, and the counts scaled up.
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
  /// Read all sections of n_values codes. False if the input is inconsistent, or if out of memory
  /// (memory_out() is then true).
  bool read(std::size_t n_values, CodeForm form, const Book* book, ChunkReader& in,
            Workspace& workspace);
  CodeReader& reader() { return *reader_; }
  /// True if all exceptions have been consumed; to be checked after all codes.
  bool used_up() const { return reader_->grouped.exceptions == reader_->grouped.exceptions_end; }
  bool memory_out() const { return memory_out_; }

 private:
  bool read_grouped(const Book* book, ChunkReader& in, Workspace& workspace);
  bool read_packed(ChunkReader& in, Workspace& workspace);
  bool read_classes(const Book* book, const std::size_t* counts, ChunkReader& in,
                    Workspace& workspace);
  bool read_exceptions(const Book* book, ChunkReader& in, Workspace& workspace);
  /// Consume the planes: returns them in place if enough bytes follow them, else a padded copy.
  const std::uint8_t* planes(std::size_t n_bytes, ChunkReader& in, Workspace& workspace);

  std::size_t n_groups_ = 0;
  bool memory_out_ = false;
  std::optional<CodeReader> reader_;
};

// --- Codes under a model: each code has a context, each context a frequency table (model.cpp).

inline constexpr unsigned kModelSymbols = 140;   ///< Number of symbols.
inline constexpr unsigned kFrequencyBits = 12;   ///< A table's frequencies sum to 2^12.
inline constexpr std::size_t kModelStates = 4;   ///< Code i belongs to state i % 4.
inline constexpr unsigned kStateLeastBits = 16;  ///< States are at least 2^16, words 16 bits.

/// Upper limit of the bytes that write_modelled writes.
std::size_t modelled_bytes_max(std::size_t n_codes, std::size_t code_bytes = 4);

/// Write the tables and all codes. Each context is below kContexts. Uses Slots planes, exceptions.
/// False if memory or space runs out. Thread-safe with one workspace per thread. Cost: O(n).
/// Code: int32_t or int64_t.
template <class Code>
bool write_modelled(const Code* codes, const std::uint8_t* contexts, std::size_t n_codes,
                    ChunkWriter& out, Workspace& workspace);

/// Reads the output of write_modelled in parts, since contexts depend on earlier codes.
class ModelReader {
 public:
  /// Read the tables. False if the input is inconsistent, or if out of memory (memory_out() is then
  /// true). Uses Slot class_bytes until the last read().
  bool open(ChunkReader& in, Workspace& workspace);
  bool memory_out() const { return memory_out_; }

  /// Read the next n codes. Each context is below kContexts. After a failure the codes are
  /// unspecified. Code: as written.
  template <class Code>
  void read(const std::uint8_t* contexts, std::size_t n, Code* codes);

  /// True if the input was complete and fully consumed; to be checked after all codes.
  bool finished() const;

 private:
  bool read_tables(ChunkReader& in, Workspace& workspace);
  template <bool kChecked>
  void read_symbols(const std::uint8_t* contexts, std::size_t n, std::uint8_t* symbols);
  std::uint32_t bits(unsigned n_bits);

  std::array<const std::uint32_t*, kContexts> table_{};
  std::array<std::uint32_t, kModelStates> state_{};
  std::size_t turn_ = 0;  ///< State that decodes the next code.
  const std::uint8_t* words_ = nullptr;
  std::size_t n_words_left_ = 0;
  std::span<const std::uint8_t> bit_bytes_;
  std::size_t bit_at_ = 0;
  bool failed_ = false;
  bool memory_out_ = false;
};

}  // namespace tailrace::trz
