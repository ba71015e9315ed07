// Decoding a chunk: head, method, patches. Checks every length before using it.

#include <algorithm>
#include <cstring>
#include <string>

#include "trz/base/printable.hpp"
#include "trz/chunk_header.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/exact/decimals.hpp"
#include "trz/exact/exact.hpp"
#include "trz/joined.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/predict/pointwise.hpp"
#include "trz/refined.hpp"
#include "trz/trz.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kSlack = 64;

/// Input and output of decoding one chunk.
struct Decoding {
  ChunkReader& in;
  const ChunkHead& head;
  const Book* book;
  std::span<std::byte> values;
  Workspace& workspace;
  /// All bytes of an outermost chunk or of a part of a joined one; else empty.
  std::span<const std::uint8_t> whole = {};
  bool may_be_joined = false;  ///< True for an outermost chunk.
};

template <class T>
DecodeFailure finish_with_patches(Decoding& d) {
  bool memory_out = false;
  auto* bits = reinterpret_cast<BitsOf<T>*>(d.values.data());
  if (apply_patches(d.in, bits, d.head.n_values, d.workspace, &memory_out)) {
    return DecodeFailure::none;
  }
  return memory_out ? DecodeFailure::memory_out : DecodeFailure::corrupt;
}

template <class T>
DecodeFailure decode_absolute(Decoding& d) {
  auto* values = reinterpret_cast<T*>(d.values.data());
  const DecodeFailure failure = read_lattice<T>(d.in, d.head.extents, d.book, values, d.workspace);
  return failure != DecodeFailure::none ? failure : finish_with_patches<T>(d);
}

/// Map ranks to values. False if a rank exceeds the number of words.
template <class Rank, class T>
bool look_up(const Rank* ranks, std::size_t n, const T* words, std::size_t n_words, T* values) {
  Rank greatest = 0;
  for (std::size_t i = 0; i < n; ++i) greatest = std::max(greatest, ranks[i]);
  if (greatest >= n_words) return false;
  for (std::size_t i = 0; i < n; ++i) values[i] = words[ranks[i]];
  return true;
}

template <class T>
DecodeFailure decode_vocabulary(Decoding& d) {
  const std::size_t n = d.head.n_values;
  const std::uint64_t n_words_read = d.in.varint();
  if (d.in.failed() || n_words_read < 2 || n_words_read > kWordsMax || n_words_read > n) {
    return DecodeFailure::corrupt;
  }
  const auto n_words = static_cast<std::size_t>(n_words_read);
  auto* words = d.workspace.area<T>(Slot::vocabulary, n_words + kSlack);
  if (words == nullptr) return DecodeFailure::memory_out;
  DecodeFailure failure = read_lattice<T>(d.in, {1, 1, 1, n_words}, nullptr, words, d.workspace);
  // A vocabulary uses no book, so a missing book means corruption.
  if (failure == DecodeFailure::book_missing) return DecodeFailure::corrupt;
  if (failure != DecodeFailure::none) return failure;

  ChunkHead head = d.head;
  head.method = Method::exact;
  head.dtype = n_words <= kWordsOfOneByte ? DType::u8 : DType::u16;
  const std::size_t n_bytes = n * dtype_bytes(head.dtype);
  const std::uint64_t n_encoded = d.in.varint();
  const std::uint8_t* encoded =
      n_encoded > d.in.rest().size() ? nullptr : d.in.take(static_cast<std::size_t>(n_encoded));
  if (encoded == nullptr) return DecodeFailure::corrupt;
  auto* ranks = d.workspace.area<std::byte>(Slot::ranks, n_bytes + kSlack);
  if (ranks == nullptr) return DecodeFailure::memory_out;
  ChunkReader in({encoded, static_cast<std::size_t>(n_encoded)});
  failure = decode_exact_chunk(in, head, nullptr, {ranks, n_bytes}, d.workspace);
  if (failure == DecodeFailure::book_missing) return DecodeFailure::corrupt;
  if (failure != DecodeFailure::none) return failure;
  auto* values = reinterpret_cast<T*>(d.values.data());
  const bool known =
      head.dtype == DType::u8
          ? look_up(reinterpret_cast<const std::uint8_t*>(ranks), n, words, n_words, values)
          : look_up(reinterpret_cast<const std::uint16_t*>(ranks), n, words, n_words, values);
  return known && in.at_end() ? finish_with_patches<T>(d) : DecodeFailure::corrupt;
}

template <class T>
DecodeFailure decode_fitted(Decoding& d) {
  auto* values = reinterpret_cast<T*>(d.values.data());
  const DecodeFailure failure = read_fitted<T>(d.in, d.head.extents, values, d.workspace);
  return failure != DecodeFailure::none ? failure : finish_with_patches<T>(d);
}

template <class T>
DecodeFailure decode_nested(Decoding& d) {
  auto* values = reinterpret_cast<T*>(d.values.data());
  const DecodeFailure failure = read_nested<T>(d.in, d.head.extents, d.book, values, d.workspace);
  return failure != DecodeFailure::none ? failure : finish_with_patches<T>(d);
}

template <class T, class Y>
DecodeFailure decode_pointwise_as(Decoding& d) {
  const std::size_t n = d.head.n_values;
  auto* values = reinterpret_cast<T*>(d.values.data());
  auto* y = d.workspace.area<Y>(Slot::transform_values, n + kSlack);
  const std::size_t sign_bytes = pointwise_sign_bytes(n);
  auto* signs = d.workspace.area<std::uint8_t>(Slot::signs, sign_bytes + kSlack);
  if (y == nullptr || signs == nullptr) return DecodeFailure::memory_out;
  const DecodeFailure failure = read_lattice<Y>(d.in, d.head.extents, d.book, y, d.workspace);
  if (failure != DecodeFailure::none) return failure;
  if (!take_section(d.in, {signs, sign_bytes}, nullptr, d.workspace)) return DecodeFailure::corrupt;
  pointwise_inverse(y, signs, n, values, d.workspace.isa());
  return finish_with_patches<T>(d);
}

DecodeFailure decode_pointwise(Decoding& d) {
  const auto work = d.in.number<std::uint8_t>();
  const bool single = work == static_cast<std::uint8_t>(DType::f32);
  const bool wide = work == static_cast<std::uint8_t>(DType::f64);
  if (d.head.dtype == DType::f64) {
    return wide ? decode_pointwise_as<double, double>(d) : DecodeFailure::corrupt;
  }
  if (single) return decode_pointwise_as<float, float>(d);
  return wide ? decode_pointwise_as<float, double>(d) : DecodeFailure::corrupt;
}

DecodeFailure decode_stored(Decoding& d) {
  const std::uint8_t* from = d.in.take(d.values.size());
  if (from == nullptr) return DecodeFailure::corrupt;
  if (!d.values.empty()) std::memcpy(d.values.data(), from, d.values.size());
  return DecodeFailure::none;
}

DecodeFailure decode_constant(Decoding& d) {
  const std::size_t element_bytes = dtype_bytes(d.head.dtype);
  const std::uint8_t* from = d.in.take(element_bytes);
  if (from == nullptr || d.values.empty()) return DecodeFailure::corrupt;
  // Doubling copies: the part already filled is the source of the next.
  std::memcpy(d.values.data(), from, element_bytes);
  for (std::size_t done = element_bytes; done < d.values.size();) {
    const std::size_t n_bytes = std::min(done, d.values.size() - done);
    std::memcpy(d.values.data() + done, d.values.data(), n_bytes);
    done += n_bytes;
  }
  return DecodeFailure::none;
}

DecodeFailure decode_method(Decoding& d);

DecodeFailure decode_decimal(Decoding& d) {
  const auto inner = [&d](ChunkReader& in, const ChunkHead& head, std::span<std::byte> values) {
    Decoding within{in, head, nullptr, values, d.workspace};
    return decode_method(within);
  };
  const DecodeFailure failure = decode_decimal_chunk(d.in, d.head, d.values, inner, d.workspace);
  if (failure != DecodeFailure::none) return failure;
  return d.head.dtype == DType::f32 ? finish_with_patches<float>(d)
                                    : finish_with_patches<double>(d);
}

/// Decode each part to as many values as the joined chunk has, and copy those that the part
/// supplies.
DecodeFailure decode_joined(Decoding& d) {
  JoinedParts parts;
  if (!read_parts(d.in, d.head, parts)) return DecodeFailure::corrupt;
  const std::size_t element_bytes = dtype_bytes(d.head.dtype);
  std::size_t begin = 0;
  for (const JoinedPart& part : parts.all()) {
    std::span<std::byte> values = d.values;
    if (begin > 0) {
      auto* apart = d.workspace.area<std::byte>(Slot::joined, d.values.size());
      if (apart == nullptr) return DecodeFailure::memory_out;
      values = {apart, d.values.size()};
    }
    ChunkReader in(part.chunk);
    ChunkHead head;
    const HeadFailure head_failure = read_head(part.chunk, in, head);
    if (head_failure != HeadFailure::none) return failure_within(head_failure);
    if (head.dtype != d.head.dtype || head.n_values != d.head.n_values) {
      return DecodeFailure::corrupt;
    }
    Decoding alone{in, head, d.book, values, d.workspace, part.chunk};
    const DecodeFailure failure = decode_method(alone);
    if (failure != DecodeFailure::none) return failure;
    if (!in.at_end()) return DecodeFailure::corrupt;
    const std::size_t n_bytes = part.n_values * element_bytes;
    if (begin > 0) std::memcpy(d.values.data() + begin, values.data() + begin, n_bytes);
    begin += n_bytes;
  }
  return DecodeFailure::none;
}

/// @param planes  planes that must be present.
DecodeFailure decode_planes(Decoding& d, PlanesRead planes) {
  const auto coarser = [&d](ChunkReader& in, const ChunkHead& head, std::span<std::byte> values) {
    Decoding within{in, head, d.book, values, d.workspace};
    return decode_method(within);
  };
  if (d.whole.empty()) return DecodeFailure::corrupt;
  d.in.take(d.in.rest().size());
  return decode_refined(d.whole, planes, d.values, coarser, d.workspace);
}

DecodeFailure decode_method(Decoding& d) {
  const bool floating = is_floating(d.head.dtype);
  switch (d.head.method) {
    case Method::stored: return decode_stored(d);
    case Method::constant: return decode_constant(d);
    case Method::exact: return decode_exact_chunk(d.in, d.head, d.book, d.values, d.workspace);
    case Method::lattice:
      if (!floating || d.head.n_values == 0) return DecodeFailure::corrupt;
      return d.head.dtype == DType::f32 ? decode_absolute<float>(d) : decode_absolute<double>(d);
    case Method::pointwise:
      if (!floating || d.head.n_values == 0) return DecodeFailure::corrupt;
      return decode_pointwise(d);
    case Method::vocabulary:
      if (!floating || d.head.n_values == 0) return DecodeFailure::corrupt;
      return d.head.dtype == DType::f32 ? decode_vocabulary<float>(d)
                                        : decode_vocabulary<double>(d);
    case Method::fitted:
      if (!floating || d.head.n_values == 0) return DecodeFailure::corrupt;
      return d.head.dtype == DType::f32 ? decode_fitted<float>(d) : decode_fitted<double>(d);
    case Method::nested:
      if (!floating || d.head.n_values == 0) return DecodeFailure::corrupt;
      return d.head.dtype == DType::f32 ? decode_nested<float>(d) : decode_nested<double>(d);
    case Method::decimal:
      if (!floating || d.head.n_values == 0) return DecodeFailure::corrupt;
      return decode_decimal(d);
    case Method::joined: return d.may_be_joined ? decode_joined(d) : DecodeFailure::corrupt;
    case Method::refined: return decode_planes(d, PlanesRead::all);
  }
  return DecodeFailure::corrupt;
}

Status corrupt(const std::string& what) { return {Code::corrupt, "trz chunk: " + what}; }

Status newer(const std::string& why) { return corrupt("needs a newer trz: " + why); }

/// Versions 2 to 7 are those of chunks that were written before format 1 was defined.
Status version_status(unsigned version) {
  const std::string text = "format version " + std::to_string(version);
  if (version < 2 || version > 7) return newer(text + ", expected 1");
  return corrupt(text +
                 " is of a development version older than format 1, which no release reads; write "
                 "the data again");
}

Status head_status(HeadFailure failure, std::span<const std::uint8_t> chunk) {
  switch (failure) {
    case HeadFailure::none: return {};
    case HeadFailure::no_trz: return corrupt("not a trz chunk (wrong magic number)");
    case HeadFailure::checksum: return corrupt("the checksum is wrong: the bytes have changed");
    case HeadFailure::content: return corrupt("the header is invalid");
    case HeadFailure::version: return version_status(chunk[kVersionAt]);
    case HeadFailure::features:
      return newer("unknown feature bits 0x" + hexadecimal(chunk[kExtentsAt] & kFeatureBits, 2));
    case HeadFailure::method:
      return newer("unknown method " + std::to_string(chunk[kKindsAt] >> 4));
    case HeadFailure::dtype:
      return newer("unknown element type " + std::to_string(chunk[kKindsAt] & 0x0F));
  }
  return {};
}

Status check_room(const ChunkHead& head, std::span<const std::byte> values) {
  const std::size_t element_bytes = dtype_bytes(head.dtype);
  const bool fits =
      values.size() % element_bytes == 0 && head.n_values == values.size() / element_bytes;
  return fits ? Status() : corrupt("its number of values does not match the chunk's shape");
}

Status decoded_status(DecodeFailure failure) {
  switch (failure) {
    case DecodeFailure::none: break;
    case DecodeFailure::corrupt: return corrupt("its content is inconsistent");
    case DecodeFailure::newer: return newer("unknown form of a chunk within it");
    case DecodeFailure::book_missing:
      return {Code::not_found, "trz chunk: it needs a shared book that the dataset does not have"};
    case DecodeFailure::memory_out:
      return {Code::out_of_memory, "trz: no memory for the working areas of a chunk"};
  }
  return {};
}

}  // namespace

Status decode(std::span<const std::byte> encoded, std::span<std::byte> values, const Book* book,
              Workspace& workspace) {
  const FloatEnvironment environment;
  ChunkReader in(as_uint8(encoded));
  ChunkHead head;
  TAILRACE_TRY(head_status(read_head(as_uint8(encoded), in, head), as_uint8(encoded)));
  TAILRACE_TRY(check_room(head, values));
  Decoding decoding{in, head, book, values, workspace, as_uint8(encoded), true};
  TAILRACE_TRY(decoded_status(decode_method(decoding)));
  return in.at_end() ? Status() : corrupt("extra bytes follow its end");
}

std::optional<std::size_t> bound_prefix(std::span<const std::byte> beginning, double bound) {
  const std::optional<RefinedParts> parts = read_refined_parts(as_uint8(beginning));
  if (!parts) return std::nullopt;
  for (int n = 0; n < parts->n_planes; ++n) {
    if (parts->bound_of(n) <= bound) return parts->end_of(n);
  }
  return std::nullopt;
}

Status decode_prefix(std::span<const std::byte> prefix, std::span<std::byte> values,
                     const Book* book, Workspace& workspace) {
  const FloatEnvironment environment;
  ChunkReader in(as_uint8(prefix));
  ChunkHead head;
  TAILRACE_TRY(head_status(read_head_alone(in, head), as_uint8(prefix)));
  TAILRACE_TRY(check_room(head, values));
  if (head.method != Method::refined) return corrupt("it has no bit planes");
  Decoding decoding{in, head, book, values, workspace, as_uint8(prefix)};
  return decoded_status(decode_planes(decoding, PlanesRead::some));
}

namespace {

/// @param extents  the chunk's, folded to three; nothing: any.
std::optional<ByteRange> view_within(std::span<const std::uint8_t> bytes, int level,
                                     std::optional<Extents> extents) {
  ByteRange range{0, SIZE_MAX};
  while (true) {
    if (range.begin >= bytes.size()) return std::nullopt;
    ChunkReader in(bytes.subspan(range.begin));
    ChunkHead head;
    if (read_head_alone(in, head) != HeadFailure::none) return std::nullopt;
    const Extents seen = folded_to_three(head.extents);
    if (extents && seen != *extents) return std::nullopt;
    if (level-- == 0) return range;
    if (head.method != Method::nested) return std::nullopt;
    const std::uint64_t n_bytes = in.varint();
    if (in.failed() || n_bytes > range.n_bytes) return std::nullopt;
    range = {bytes.size() - in.rest().size(), static_cast<std::size_t>(n_bytes)};
    extents = halved(seen);
  }
}

}  // namespace

int coarse_views_of(const ChunkType& type, const Settings& settings) {
  Extents extents = extents_of(type.shape, settings.dimensions);
  int n_views = 0;
  for (; n_views < settings.coarse_views && can_nest(extents); ++n_views) extents = halved(extents);
  return n_views;
}

std::optional<ByteRange> coarse_view(const ChunkType& type, const Settings& settings,
                                     std::span<const std::byte> beginning, int level) {
  return view_within(as_uint8(beginning), level,
                     folded_to_three(extents_of(type.shape, settings.dimensions)));
}

std::optional<ByteRange> coarse_view(std::span<const std::byte> beginning, int level) {
  return view_within(as_uint8(beginning), level, std::nullopt);
}

Result<ChunkSummary> describe(std::span<const std::byte> encoded) {
  ChunkReader in(as_uint8(encoded));
  ChunkHead head;
  TAILRACE_TRY(head_status(read_head(as_uint8(encoded), in, head), as_uint8(encoded)));
  ChunkSummary summary;
  summary.dtype = head.dtype;
  summary.n_values = head.n_values;
  switch (head.method) {
    case Method::stored: summary.method = "stored"; break;
    case Method::constant: summary.method = "constant"; break;
    case Method::exact: summary.method = "exact"; break;
    case Method::vocabulary:
      summary.method = "vocabulary of " + std::to_string(in.varint()) + " words";
      break;
    case Method::fitted: summary.method = "fitted interpolation"; break;
    case Method::decimal: summary.method = decimal_text(in, head.dtype); break;
    case Method::joined:
      summary.n_parts = in.varint();
      summary.method = std::to_string(summary.n_parts) + " chunks, joined";
      break;
    case Method::refined: {
      const std::optional<RefinedParts> parts = read_refined_parts(as_uint8(encoded));
      if (!parts) return corrupt("its content is inconsistent");
      summary.n_planes = static_cast<std::uint64_t>(parts->n_planes);
      summary.method = std::to_string(parts->n_planes) + " bit plane" +
                       (parts->n_planes == 1 ? "" : "s") + " over a coarser chunk";
      break;
    }
    case Method::nested: {
      int n_views = 0;
      while (n_views < kCoarseViewsMax && coarse_view(encoded, n_views + 1)) ++n_views;
      summary.method = "interpolation over " + std::to_string(n_views) + " coarse view" +
                       (n_views == 1 ? "" : "s");
      break;
    }
    case Method::lattice:
      summary.method =
          head.dtype == DType::f32 ? lattice_text<float>(in) : lattice_text<double>(in);
      break;
    case Method::pointwise: {
      const bool single = in.number<std::uint8_t>() == static_cast<std::uint8_t>(DType::f32);
      summary.method =
          "pointwise, " + (single ? lattice_text<float>(in) : lattice_text<double>(in));
      break;
    }
  }
  return summary;
}

}  // namespace tailrace::trz
