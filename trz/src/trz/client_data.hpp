// The 32-bit words by which an HDF5 dataset's header tells the trz filter what to do (cd_values).
//
// The user gives the first part; the filter's set_local appends what it finds out about the
// dataset. Tailrace writes both parts itself, the same words, so that files of either origin are
// alike. All numbers, bit by bit:
//
//   word 0   bits 0-7 version of this layout (1); bits 8-15 kind of bound: 0 exact, 1 absolute,
//            2 pointwise; bit 16 the second part follows; bit 17 with a fill value; bit 18 with a
//            shared book; all others 0
//   word 1   knobs of four bits each from bit 0 on, 0 = chosen by the codec: preset (0 default,
//            1 fast, 2 ratio), predictor (1 none, 2 lorenzo, 3 interpolation), dimensions (1..4),
//            spline (1 linear, 2 cubic, 3 natural), last axis + 1 (4: joint), lossless stage
//            (1 off, 2 on), coarse views (1..3), bit planes (1..8; not with coarse views)
//   word 2-3 the bound, a double: low half, high half
//   [book]   number of bytes of the shared book (book.hpp), then those, four to a word, the first
//            in the lowest bits, the last word filled up with zeros
//   second part: dtype (bits 0-7, the number of DType) and rank (bits 8-15); the chunk's extents,
//            slowest first, a word each; [fill value, a double: low half, high half]
//
// No words at all mean: every value exactly. Pure, shared by registry, plug-in and command line.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trz/base/error_bound.hpp"
#include "trz/base/settings_reader.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz {

/// The filter's number in HDF5 files. 256..511 is HDF5's range for testing and private use; The
/// HDF Group gives a number of 32768 and above on request (docs/hdf5-filter-registration.md). Then
/// this one goes on to be read.
inline constexpr std::uint32_t filter_id = 481;

/// The filter's name; HDF5 writes it into the dataset's header.
inline constexpr const char* filter_name = "trz";

/// What a user asks of the filter: the first part.
struct FilterRequest {
  BoundKind kind = BoundKind::exact;
  double bound = 0;
  Settings settings;
  std::vector<std::uint8_t> book_bytes;  ///< Book::serialize(); empty: none.
  /// Leave the book out if it has no part in the chunks: exact ones, and those that fast packs.
  void drop_idle_book() {
    if (kind == BoundKind::exact || settings.preset == Preset::fast) book_bytes.clear();
  }
  bool operator==(const FilterRequest&) const = default;
};

/// What the filter learns from the dataset: the second part.
struct FilterChunk {
  DType dtype = DType::f32;
  Shape shape;                       ///< Of a chunk; 1..32 extents of 1..2^32-1.
  std::optional<double> fill_value;  ///< See recorded_fill().
  bool operator==(const FilterChunk&) const = default;

  /// Bytes of one chunk; UINT64_MAX if that many do not fit.
  std::uint64_t n_bytes() const;
};

struct ClientData {
  FilterRequest request;
  std::optional<FilterChunk> chunk;  ///< Absent before set_local.
};

/// The words of the first part alone, and of both parts.
std::vector<std::uint32_t> client_words(const FilterRequest& request);
std::vector<std::uint32_t> client_words(const FilterRequest& request, const FilterChunk& chunk);

/// The inverse. Words beyond the layout, unknown numbers and a bound that is NaN, infinite or < 0
/// are errors. @error invalid_argument  says which word.
Result<ClientData> read_client_words(std::span<const std::uint32_t> words);

/// The fill value as the words record it: rounded to the field's type, and only where it says more
/// than the values do. Integers are lossless, and NaN returns exactly in any case: none for those.
std::optional<double> recorded_fill(DType dtype, std::optional<double> fill_value);

/// The codec's own keys: preset, predictor, dimension, spline, last_axis, lossless, coarse, refine.
/// A wrong value is left in `keys` as its error.
Settings read_settings(SettingsReader& keys);

/// The key book: a shared book as it stands in the words above, "41:0x425A5254:...": its number of
/// bytes, then those, four to a word. No bytes where the key is absent.
/// @error invalid_argument  the words are no book.
Result<std::vector<std::uint8_t>> read_book_bytes(SettingsReader& keys);

/// What a bound and settings come to for a filter. @error unsupported  rel and psnr: a filter sees
/// one chunk, padded at the dataset's edge, and cannot know the range of the field.
Result<FilterRequest> request_of(const ErrorBound& bound, const Settings& settings);

/// "abs=1e-3,preset=fast" (or pw_rel=1e-3, or bound=abs=1e-3, or no bound: exact) into a request.
/// @error invalid_argument  an unknown key or value, or two bounds.  @error unsupported  as above.
Result<FilterRequest> parse_filter_request(std::string_view text);

}  // namespace tailrace::trz
