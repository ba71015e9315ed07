// trz: Tailrace's own error-bounded codec. One chunk of values in, its bytes out, and back.
//
// This header is the codec as its users see it: the codec registry, the HDF5 filter plug-in, the
// benchmarks and the fuzzers. Every finite value decodes within the bound, by the decoder's own
// arithmetic; NaN, Inf, -0.0 under a bound of 0, and a named fill value return bit for bit. The
// bytes depend on the values and the settings alone: not on the machine, its instruction set, the
// compiler or the number of threads (where the zstd stage takes part, on zstd's version as well).
// Format: trz/docs/trz-format.md. How it works: docs/trz.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/guards.hpp"
#include "trz/base/status.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

/// fast: bit packing, no entropy coder. standard ("default"): Huffman. ratio: more candidates,
/// tighter coarse levels, zstd. max: what ratio does, and fitted interpolation; the smaller of
/// both.
enum class Preset : std::uint8_t { fast, standard, ratio, max };
/// Whether a preset tries more for less: ratio, and what contains it.
constexpr bool tries_more(Preset preset) { return preset >= Preset::ratio; }
enum class Predictor : std::uint8_t { automatic, none, lorenzo, interpolation };
enum class Spline : std::uint8_t { automatic, linear, cubic, natural };
enum class Choice : std::uint8_t { automatic, off, on };

/// What the user may set; everything left automatic is chosen per chunk from a sample.
struct Settings {
  Preset preset = Preset::standard;
  Predictor predictor = Predictor::automatic;
  int dimensions = 0;  ///< Prediction dimension 1..4 (Liang et al. 2019, V-D); 0: chosen.
  Spline spline = Spline::automatic;  ///< Of the interpolation.
  int last_axis = -1;  ///< Axis interpolated last, 0 is the fastest, 3 all jointly; -1: chosen.
  Choice lossless_stage = Choice::automatic;  ///< The zstd stage behind Huffman.
  /// Coarser views that a chunk's beginning shall hold, each of every second value of the next
  /// finer along every axis; 0..coarse_views_max. Left out where they would cost more than
  /// 2 % of the chunk, or its values are not interpolated.
  int coarse_views = 0;
  /// Bit planes that a chunk shall end with (refined.hpp), so that its beginning gives all values
  /// within 2, 4, ... times the bound; 0..bit_planes_max, for absolute bounds. Left out where they
  /// would cost more than 2 % of the chunk. Not together with coarse views.
  int bit_planes = 0;
  bool operator==(const Settings&) const = default;
};

/// How `bound` is meant. exact: every value bit for bit (bound ignored). absolute: |x - y| <=
/// bound. pointwise: |x - y| <= bound * |x|, zeros exactly.
enum class BoundKind : std::uint8_t { exact, absolute, pointwise };

inline constexpr int coarse_views_max = 3;
inline constexpr int bit_planes_max = 8;

/// A Huffman book shared by many chunks, kept outside them (in the filter's client data).
class Book;
/// What a book is made from (book.hpp).
struct BookHistograms;

/// What a chunk is, the same for encoder and decoder.
struct ChunkType {
  DType dtype = DType::f32;
  Shape shape;  ///< Slowest axis first; rank 0 is a scalar. Any rank.
  BoundKind kind = BoundKind::absolute;
  double bound = 0;
  std::optional<double> fill_value = std::nullopt;  ///< Kept exactly and cheaply.
  const Book* book = nullptr;
  /// What decoded values keep besides the bound; null: nothing. The encoder alone looks at them:
  /// what would break one is stored exactly, which every decoder takes for any other patch.
  const ValueGuards* guards = nullptr;
};

/// Greatest number of encoded bytes for n_bytes of values: n_bytes plus a header of at most 64.
std::size_t encoded_bytes_max(std::size_t n_bytes);

/// Working memory of one encode() or decode() call of a chunk of this type, in bytes, for budgets:
/// above what chunks of ordinary shapes touch. Thin shapes, N x 2 say, may take several times as
/// much, exact coding of integers that repeat up to twice as much; a decoder never
/// more than 16 times its output and the chunk, and 1 MB.
std::size_t working_bytes_max(std::size_t n_bytes, const ChunkType& type,
                              const Settings& settings = {});

/// Encode one chunk. `values` holds n_elements(type.shape) elements in native order; `out` has at
/// least encoded_bytes_max(values.size()) bytes. Not collective. Thread-safe, a workspace each.
/// @param counted  set to about what a book would count in this chunk, for a tenth more time; left
/// alone where the chunk has no codes (constant, exact, packed). Null: nobody asks.
/// @returns bytes written to `out`.
/// @error invalid_argument  sizes that do not match, a bound that is NaN or < 0, settings out of
/// range.
/// @error unsupported       a bound of kind pointwise for integers.   @error out_of_memory
Result<std::size_t> encode(const ChunkType& type, const Settings& settings,
                           std::span<const std::byte> values, std::span<std::byte> out,
                           Workspace& workspace, BookHistograms* counted = nullptr);

/// Decode. `values` has the chunk's exact uncompressed size; dtype and number of values in the
/// bytes must agree with it. Hostile bytes give an error, bounded memory and nothing else.
/// @error corrupt  not a trz chunk, another version, a wrong checksum, or inconsistent content.
/// @error not_found  the chunk refers to a shared book that `book` is not.   @error out_of_memory
Status decode(std::span<const std::byte> encoded, std::span<std::byte> values, const Book* book,
              Workspace& workspace);

/// Join two chunks of the same type and number of values to one that decodes to the first `n_first`
/// values of `first` and the others of `second`, as each decodes by itself. A chunk that is joined
/// already can be the first; parts of which nothing is left go. Not collective. Thread-safe.
/// @param out  at least joined_bytes_max() of both.  @returns bytes written to it.
/// @error invalid_argument  chunks that do not fit each other, or none of whose values would count.
/// @error unsupported       more than joined_parts_max parts.
/// @error corrupt           what is no chunk, or has changed.
inline constexpr std::size_t joined_parts_max = 64;
std::size_t joined_bytes_max(std::size_t n_first_bytes, std::size_t n_second_bytes);
Result<std::size_t> join(std::span<const std::byte> first, std::uint64_t n_first,
                         std::span<const std::byte> second, std::span<std::byte> out);

/// Bytes of a chunk.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t n_bytes = 0;
};

/// Coarser views that a chunk of this type may begin with: those asked for, as far as it has axes
/// that long.
int coarse_views_of(const ChunkType& type, const Settings& settings);

/// Where in a chunk the chunk lies that holds every 2^level-th value along every axis: decode() by
/// itself gives these, the very ones that decoding all gives. Its checksum is its own.
/// @param beginning  the chunk's first bytes: view_head_bytes, or all if it has fewer.
/// @param level      1..coarse_views_max.
/// @returns nothing: the chunk has no such view, or not along the axes of this type and settings.
inline constexpr std::size_t view_head_bytes = 192;
std::optional<ByteRange> coarse_view(const ChunkType& type, const Settings& settings,
                                     std::span<const std::byte> beginning, int level);
/// The same, along whatever axes the chunk has it.
std::optional<ByteRange> coarse_view(std::span<const std::byte> beginning, int level);

/// How many of a chunk's first bytes give all of its values within a coarser bound: what
/// decode_prefix() takes. Their checksums are their own.
/// @param beginning  the chunk's first bytes: prefix_head_bytes, or all if it has fewer.
/// @returns nothing: the chunk has no bit planes, or all of them are needed.
inline constexpr std::size_t prefix_head_bytes = 192;
std::optional<std::size_t> bound_prefix(std::span<const std::byte> beginning, double bound);

/// As decode(), of that many first bytes of a chunk. NaN, Inf and fill values are as in the whole.
Status decode_prefix(std::span<const std::byte> prefix, std::span<std::byte> values,
                     const Book* book, Workspace& workspace);

/// What a chunk says about itself without being decoded; for info, tests and the fuzzers.
struct ChunkSummary {
  DType dtype = DType::f32;
  std::uint64_t n_values = 0;
  std::string method;         ///< "interpolation cubic, last axis 0, 3 levels", "stored", ...
  std::uint64_t n_parts = 1;  ///< That are joined.
  std::uint64_t n_planes = 0;
};
Result<ChunkSummary> describe(std::span<const std::byte> encoded);

}  // namespace tailrace::trz
