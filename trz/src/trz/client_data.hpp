// Client data (cd_values) of the trz filter: the 32-bit words in an HDF5 dataset's header.
//
// The user supplies the first part; the filter's set_local appends what it learns about the
// dataset. Tailrace writes both parts itself with the same content, so that files of either origin
// are alike. The layout, bit by bit:
//
//   word 0   bits 0-7 version of this layout (1); bits 8-15 kind of bound (0 exact, 1 absolute,
//            2 pointwise); bit 16 the second part follows; bit 17 with a fill value; bit 18 with a
//            shared book; all others 0.
//   word 1   settings of four bits each from bit 0 on, 0 = chosen by the codec: preset (1 fast,
//            2 ratio, 3 max; 0 default); predictor (1 none, 2 lorenzo, 3 interpolation); dimensions
//            (1..4); spline (1 linear, 2 cubic, 3 natural); last axis + 1 (4: joint); lossless
//            stage (1 off, 2 on); coarse views (1..3); bit planes (1..8; not with coarse views).
//   word 2-3 the bound, a double: low half, high half.
//   [book]   number of bytes of the shared book (book.hpp), then those bytes, four to a word, the
//            first in the lowest bits. The last word is padded with zeros.
//   second part: dtype (bits 0-7, the number of DType) and rank (bits 8-15); the chunk's extents,
//            slowest first, a word each; [fill value, a double: low half, high half].
//
// No words at all mean exact coding. Pure, shared by registry, plug-in and command line.

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

/// The filter's number in HDF5 files. 256..511 is HDF5's range for testing and private use; The HDF
/// Group assigns numbers of 32768 and above on request (trz/docs/filter-registration.md). Files
/// with this number must remain readable after that.
inline constexpr std::uint32_t filter_id = 481;

/// The filter's name; HDF5 writes it into the dataset's header.
inline constexpr const char* filter_name = "trz";

/// Settings that the user requests: the first part.
struct FilterRequest {
  BoundKind kind = BoundKind::exact;
  double bound = 0;
  Settings settings;
  std::vector<std::uint8_t> book_bytes;  ///< Book::serialize(); empty: none.
  /// Drop the book if the chunks do not use it: exact chunks, and those that preset fast packs.
  void drop_idle_book() {
    if (kind == BoundKind::exact || settings.preset == Preset::fast) book_bytes.clear();
  }
  bool operator==(const FilterRequest&) const = default;
};

/// Properties of the dataset that the filter learns: the second part.
struct FilterChunk {
  DType dtype = DType::f32;
  Shape shape;                       ///< Shape of a chunk; 1..32 extents of 1..2^32-1.
  std::optional<double> fill_value;  ///< See recorded_fill().
  bool operator==(const FilterChunk&) const = default;

  /// Bytes of one chunk; UINT64_MAX on overflow.
  std::uint64_t n_bytes() const;
};

struct ClientData {
  FilterRequest request;
  std::optional<FilterChunk> chunk;  ///< Absent before set_local.
};

/// Pack the first part, or both parts.
std::vector<std::uint32_t> client_words(const FilterRequest& request);
std::vector<std::uint32_t> client_words(const FilterRequest& request, const FilterChunk& chunk);

/// Inverse of client_words(). Surplus words, unknown numbers and a bound that is NaN, infinite or <
/// 0 are errors.
/// @error invalid_argument  names the word.
Result<ClientData> read_client_words(std::span<const std::uint32_t> words);

/// The fill value to record: rounded to the field's type. None for integers, which are lossless,
/// and none for NaN, which decodes exactly in any case.
std::optional<double> recorded_fill(DType dtype, std::optional<double> fill_value);

/// Read the codec's keys: preset, predictor, dimension, spline, last_axis, lossless, coarse,
/// refine. A wrong value sets the error of `keys`.
Settings read_settings(SettingsReader& keys);

/// Read the key `book`: a shared book as in the words above, "41:0x425A5254:...": its number of
/// bytes, then those bytes, four to a word. Empty if the key is absent.
/// @error invalid_argument  the words are not a book.
Result<std::vector<std::uint8_t>> read_book_bytes(SettingsReader& keys);

/// Convert a bound and settings to a filter request.
/// @error unsupported  rel and psnr: a filter sees one chunk, padded at the dataset's edge, and
/// cannot know the range of the field.
Result<FilterRequest> request_of(const ErrorBound& bound, const Settings& settings);

/// Parse "abs=1e-3,preset=fast" (or pw_rel=1e-3, or bound=abs=1e-3, or no bound: exact).
/// @error invalid_argument  an unknown key or value, or two bounds.  @error unsupported  like
/// request_of().
Result<FilterRequest> parse_filter_request(std::string_view text);

}  // namespace tailrace::trz
