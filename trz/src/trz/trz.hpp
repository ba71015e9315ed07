// trz: Tailrace's error-bounded codec. Encodes one chunk of values to bytes and decodes it again.
//
// This header is the public interface, for the codec registry, the HDF5 filter plug-in, the
// benchmarks and the fuzzers. Every finite value decodes within the bound, as the decoder's
// arithmetic computes it. NaN, Inf, -0.0 under a bound of 0, and a named fill value decode bit for
// bit. The bytes depend only on the values and the settings, not on the machine, its instruction
// set, the compiler or the number of threads. If a chunk uses the zstd stage, its bytes also depend
// on zstd's version.
// Format: docs/trz-format.md. How it works: trz/DESIGN.md.

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

/// Trade-off of speed and size. fast: bit packing, no entropy coder. standard ("default"): Huffman
/// coding. ratio: more candidates, tighter coarse levels, zstd. max: everything that ratio tries,
/// and fitted interpolation; stores the smaller result.
enum class Preset : std::uint8_t { fast, standard, ratio, max };
/// True if the preset tries more candidates for a smaller chunk: ratio or max.
constexpr bool tries_more(Preset preset) { return preset >= Preset::ratio; }
enum class Predictor : std::uint8_t { automatic, none, lorenzo, interpolation };
enum class Spline : std::uint8_t { automatic, linear, cubic, natural };
enum class Choice : std::uint8_t { automatic, off, on };

/// Options of the user. The encoder chooses everything left automatic per chunk, from a sample.
struct Settings {
  Preset preset = Preset::standard;
  Predictor predictor = Predictor::automatic;
  int dimensions = 0;  ///< Prediction dimension 1..4 (Liang et al. 2019, V-D); 0: chosen.
  Spline spline = Spline::automatic;  ///< Spline of the interpolation.
  int last_axis = -1;  ///< Axis interpolated last: 0 the fastest, 3 all jointly; -1: chosen.
  Choice lossless_stage = Choice::automatic;  ///< The zstd stage after Huffman.
  /// Number of coarser views at the chunk's beginning, 0..kCoarseViewsMax. Each view holds every
  /// second value, along every axis, of the next finer one. Omitted if the views would cost more
  /// than 2 % of the chunk, or if its values are not interpolated.
  int coarse_views = 0;
  /// Number of bit planes at the chunk's end (refined.hpp), 0..kBitPlanesMax, for absolute bounds.
  /// They let the chunk's beginning decode to all values within 2, 4, ... times the bound. Omitted
  /// if the planes would cost more than 2 % of the chunk. Cannot be combined with coarse views.
  int bit_planes = 0;
  bool operator==(const Settings&) const = default;
};

/// Meaning of `bound`. exact: every value bit for bit (bound ignored). absolute: |x - y| <= bound.
/// pointwise: |x - y| <= bound * |x|, zeros exactly.
enum class BoundKind : std::uint8_t { exact, absolute, pointwise };

inline constexpr int kCoarseViewsMax = 3;
inline constexpr int kBitPlanesMax = 8;

/// Huffman book shared by many chunks and stored outside them, in the filter's client data.
class Book;
/// Counts from which a book is made (book.hpp).
struct BookHistograms;

/// Type, shape and bound of a chunk.
struct ChunkType {
  DType dtype = DType::f32;
  Shape shape;  ///< Slowest axis first; rank 0 is a scalar. Any rank.
  BoundKind kind = BoundKind::absolute;
  double bound = 0;
  std::optional<double> fill_value = std::nullopt;  ///< Stored exactly, at little cost.
  const Book* book = nullptr;
  /// Properties that decoded values must have in addition to the bound; null: none. Only the
  /// encoder reads them: it stores exactly every value that would break one, as an ordinary patch.
  const ValueGuards* guards = nullptr;
};

/// Greatest number of encoded bytes for n_bytes of values: n_bytes plus a header of at most 64.
std::size_t encoded_bytes_max(std::size_t n_bytes);

/// Working memory of one encode() or decode() call for a chunk of this type, in bytes, for memory
/// budgets. An upper bound for chunks of ordinary shapes. Thin shapes (N x 2, say) may need several
/// times as much, exact coding of repetitive integers up to twice as much. A decoder never needs
/// more than 16 times its output and the chunk, plus 1 MB.
std::size_t working_bytes_max(std::size_t n_bytes, const ChunkType& type,
                              const Settings& settings = {});

/// Encode one chunk. `values` holds n_elements(type.shape) elements in native byte order; `out` has
/// at least encoded_bytes_max(values.size()) bytes. Not collective. Thread-safe if each thread has
/// a workspace.
/// @param counted  set to approximately the counts that a book would need of this chunk, which
/// costs a tenth more time. Unchanged if the chunk has no codes (constant, exact, packed). Null:
/// not wanted.
/// @returns bytes written to `out`.
/// @error invalid_argument  sizes that do not match, a bound that is NaN or < 0, settings out of
/// range.
/// @error unsupported       a bound of kind pointwise for integers.   @error out_of_memory
Result<std::size_t> encode(const ChunkType& type, const Settings& settings,
                           std::span<const std::byte> values, std::span<std::byte> out,
                           Workspace& workspace, BookHistograms* counted = nullptr);

/// Decode one chunk. `values` has the chunk's exact uncompressed size; dtype and number of values
/// in the chunk must agree with it. Hostile bytes cause at worst an error; memory use stays
/// bounded.
/// @error corrupt  not a trz chunk, a wrong checksum, inconsistent content, or a version, feature,
/// method or type that only a later decoder knows.
/// @error not_found  the chunk needs a shared book other than `book`.   @error out_of_memory
Status decode(std::span<const std::byte> encoded, std::span<std::byte> values, const Book* book,
              Workspace& workspace);

/// Join two chunks of the same type and number of values to one. The result decodes to the first
/// `n_first` values of `first`, followed by the remaining values of `second`. `first` may be a
/// joined chunk; `second` may not. Parts that contribute no value are dropped. Not collective.
/// Thread-safe.
/// @param out  at least joined_bytes_max() bytes.  @returns bytes written to it.
/// @error invalid_argument  chunks that do not match, or an `n_first` that leaves one without
/// values.
/// @error unsupported       more than kJoinedPartsMax parts.
/// @error corrupt           not a trz chunk, or a damaged one.
inline constexpr std::size_t kJoinedPartsMax = 64;
std::size_t joined_bytes_max(std::size_t n_first_bytes, std::size_t n_second_bytes);
Result<std::size_t> join(std::span<const std::byte> first, std::uint64_t n_first,
                         std::span<const std::byte> second, std::span<std::byte> out);

/// Range of bytes of a chunk.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t n_bytes = 0;
};

/// Number of coarser views that a chunk of this type has: as many as requested, or fewer if its
/// axes are too short.
int coarse_views_of(const ChunkType& type, const Settings& settings);

/// Locate the inner chunk that holds every 2^level-th value along every axis. decode() accepts
/// these bytes as a chunk with its own checksum, and returns the same values as decoding the
/// complete chunk.
/// @param beginning  the chunk's first kViewHeadBytes bytes, or all if it has fewer.
/// @param level      1..kCoarseViewsMax.
/// @returns nothing if the chunk has no such view, or not along the axes of this type and settings.
inline constexpr std::size_t kViewHeadBytes = 192;
std::optional<ByteRange> coarse_view(const ChunkType& type, const Settings& settings,
                                     std::span<const std::byte> beginning, int level);
/// Locate a coarse view along whatever axes the chunk has it.
std::optional<ByteRange> coarse_view(std::span<const std::byte> beginning, int level);

/// Number of leading bytes that decode_prefix() needs to decode all values within a coarser bound.
/// Each of their parts has its own checksum.
/// @param beginning  the chunk's first kPrefixHeadBytes bytes, or all if it has fewer.
/// @returns nothing if the chunk has no bit planes, or needs all of them for `bound`.
inline constexpr std::size_t kPrefixHeadBytes = 192;
std::optional<std::size_t> bound_prefix(std::span<const std::byte> beginning, double bound);

/// Like decode(), but from the leading bytes that bound_prefix() returns. NaN, Inf and fill values
/// decode as from the complete chunk.
Status decode_prefix(std::span<const std::byte> prefix, std::span<std::byte> values,
                     const Book* book, Workspace& workspace);

/// Description of a chunk, read without decoding it; for info, tests and the fuzzers.
struct ChunkSummary {
  DType dtype = DType::f32;
  std::uint64_t n_values = 0;
  std::string method;         ///< "interpolation cubic, last axis 0, 3 levels", "stored", ...
  std::uint64_t n_parts = 1;  ///< Number of joined parts.
  std::uint64_t n_planes = 0;
};
Result<ChunkSummary> describe(std::span<const std::byte> encoded);

}  // namespace tailrace::trz
