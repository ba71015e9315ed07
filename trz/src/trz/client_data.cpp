// Packing and unpacking of the filter's client data.

#include "trz/client_data.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "trz/base/set_number.hpp"
#include "trz/book/book.hpp"

namespace tailrace::trz {
namespace {

constexpr std::uint32_t kLayoutVersion = 1;
constexpr std::uint32_t kFlagChunk = 1U << 16;
constexpr std::uint32_t kFlagFill = 1U << 17;
constexpr std::uint32_t kFlagBook = 1U << 18;
constexpr std::uint32_t kFlags = kFlagChunk | kFlagFill | kFlagBook;
constexpr std::uint32_t kBookBytesMax = 16384;  // Above any book's size; HDF5's limit is 64 KB.
constexpr std::uint32_t kDTypes = 10;

/// Number of a preset in the words. standard is 0, so that a word of 0 leaves all settings
/// automatic.
std::uint32_t preset_number(Preset preset) {
  switch (preset) {
    case Preset::standard: return 0;
    case Preset::fast: return 1;
    case Preset::ratio: return 2;
    case Preset::max: return 3;
  }
  return 0;
}
Preset preset_of(std::uint32_t number) {
  constexpr Preset presets[] = {Preset::standard, Preset::fast, Preset::ratio, Preset::max};
  return presets[number];
}

std::uint32_t knob_word(const Settings& settings) {
  return preset_number(settings.preset) | static_cast<std::uint32_t>(settings.predictor) << 4 |
         static_cast<std::uint32_t>(settings.dimensions) << 8 |
         static_cast<std::uint32_t>(settings.spline) << 12 |
         static_cast<std::uint32_t>(settings.last_axis + 1) << 16 |
         static_cast<std::uint32_t>(settings.lossless_stage) << 20 |
         static_cast<std::uint32_t>(settings.coarse_views) << 24 |
         static_cast<std::uint32_t>(settings.bit_planes) << 28;
}

void append_double(double value, std::vector<std::uint32_t>& words) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  words.push_back(static_cast<std::uint32_t>(bits));
  words.push_back(static_cast<std::uint32_t>(bits >> 32));
}

void append_request(const FilterRequest& request, std::uint32_t flags,
                    std::vector<std::uint32_t>& words) {
  if (!request.book_bytes.empty()) flags |= kFlagBook;
  words.push_back(kLayoutVersion | static_cast<std::uint32_t>(request.kind) << 8 | flags);
  words.push_back(knob_word(request.settings));
  append_double(request.kind == BoundKind::exact ? 0 : request.bound, words);
  if (request.book_bytes.empty()) return;
  words.push_back(static_cast<std::uint32_t>(request.book_bytes.size()));
  for (std::size_t i = 0; i < request.book_bytes.size(); ++i) {
    if (i % 4 == 0) words.push_back(0);
    words.back() |= static_cast<std::uint32_t>(request.book_bytes[i]) << (8 * (i % 4));
  }
}

Status bad_words(const std::string& why) {
  return Status(Code::invalid_argument, "trz client data: " + why);
}

/// Reader that returns words front to back and remembers if it ran out of them.
class WordReader {
 public:
  explicit WordReader(std::span<const std::uint32_t> words) : words_(words) {}

  std::uint32_t next() {
    if (at_ < words_.size()) return words_[at_++];
    truncated_ = true;
    return 0;
  }
  double next_double() {
    const std::uint64_t low = next();
    return std::bit_cast<double>(low | static_cast<std::uint64_t>(next()) << 32);
  }
  std::span<const std::uint32_t> next_words(std::size_t n) {
    truncated_ = truncated_ || n > words_.size() - at_;
    if (truncated_) return {};
    at_ += n;
    return words_.subspan(at_ - n, n);
  }
  bool truncated() const { return truncated_; }
  std::size_t n_left() const { return words_.size() - at_; }

 private:
  std::span<const std::uint32_t> words_;
  std::size_t at_ = 0;
  bool truncated_ = false;
};

Status read_knobs(std::uint32_t word, Settings& settings) {
  const auto knob = [word](int index) { return word >> (4 * index) & 15U; };
  if (knob(0) > 3 || knob(1) > 3 || knob(2) > 4 || knob(3) > 3 || knob(4) > 4 || knob(5) > 2 ||
      knob(6) > unsigned{kCoarseViewsMax} || knob(7) > unsigned{kBitPlanesMax} ||
      (knob(6) > 0 && knob(7) > 0)) {
    return bad_words("word 1 is " + std::to_string(word) +
                     ", which is not a valid set of settings");
  }
  settings.preset = preset_of(knob(0));
  settings.predictor = static_cast<Predictor>(knob(1));
  settings.dimensions = static_cast<int>(knob(2));
  settings.spline = static_cast<Spline>(knob(3));
  settings.last_axis = static_cast<int>(knob(4)) - 1;
  settings.lossless_stage = static_cast<Choice>(knob(5));
  settings.coarse_views = static_cast<int>(knob(6));
  settings.bit_planes = static_cast<int>(knob(7));
  return Status();
}

/// Read the bytes of a shared book without parsing them.
Status read_book(WordReader& reader, std::vector<std::uint8_t>& bytes) {
  const std::uint32_t n_bytes = reader.next();
  if (n_bytes == 0 || n_bytes > kBookBytesMax) {
    return bad_words("invalid length of the shared book: " + std::to_string(n_bytes) + " bytes");
  }
  for (const std::uint32_t word : reader.next_words((n_bytes + 3) / 4)) {
    for (int i = 0; i < 4; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    }
  }
  if (!reader.truncated()) bytes.resize(n_bytes);
  return Status();
}

Status read_request(WordReader& reader, std::uint32_t first, FilterRequest& request) {
  const std::uint32_t kind = first >> 8 & 0xFFU;
  if ((first & 0xFFU) != kLayoutVersion || kind > 2 || (first & ~(kFlags | 0xFFFFU)) != 0) {
    return bad_words(
        "word 0 is " + std::to_string(first) +
        ", which this version does not know; make the words with tailrace filter-args");
  }
  request.kind = static_cast<BoundKind>(kind);
  TAILRACE_TRY(read_knobs(reader.next(), request.settings));
  request.bound = reader.next_double();
  if (!(request.bound >= 0) || !std::isfinite(request.bound)) {
    return bad_words("words 2 and 3 are not a bound, which must be finite and >= 0");
  }
  return (first & kFlagBook) == 0 ? Status() : read_book(reader, request.book_bytes);
}

Status read_chunk(WordReader& reader, bool with_fill, FilterChunk& chunk) {
  const std::uint32_t type = reader.next();
  const std::uint32_t rank = type >> 8;
  if ((type & 0xFFU) >= kDTypes || rank == 0 || rank > kMaxRank) {
    return bad_words("invalid type and rank of the chunk: " + std::to_string(type));
  }
  chunk.dtype = static_cast<DType>(type & 0xFFU);
  for (const std::uint32_t extent : reader.next_words(rank)) {
    if (extent == 0) return bad_words("the chunk has an extent of 0");
    chunk.shape.push_back(extent);
  }
  if (with_fill) chunk.fill_value = reader.next_double();
  return Status();
}

}  // namespace

std::uint64_t FilterChunk::n_bytes() const {
  const std::uint64_t n = n_elements(shape);
  const std::uint64_t element_bytes = dtype_bytes(dtype);
  return n > UINT64_MAX / element_bytes ? UINT64_MAX : n * element_bytes;
}

std::vector<std::uint32_t> client_words(const FilterRequest& request) {
  std::vector<std::uint32_t> words;
  append_request(request, 0, words);
  return words;
}

std::vector<std::uint32_t> client_words(const FilterRequest& request, const FilterChunk& chunk) {
  std::vector<std::uint32_t> words;
  append_request(request, kFlagChunk | (chunk.fill_value ? kFlagFill : 0U), words);
  words.push_back(static_cast<std::uint32_t>(chunk.dtype) |
                  static_cast<std::uint32_t>(chunk.shape.size()) << 8);
  for (const std::uint64_t extent : chunk.shape) {
    words.push_back(static_cast<std::uint32_t>(extent));
  }
  if (chunk.fill_value) append_double(*chunk.fill_value, words);
  return words;
}

Result<ClientData> read_client_words(std::span<const std::uint32_t> words) {
  ClientData data;
  if (words.empty()) return data;
  WordReader reader(words);
  const std::uint32_t first = reader.next();
  TAILRACE_TRY(read_request(reader, first, data.request));
  if ((first & kFlagChunk) != 0) {
    data.chunk.emplace();
    TAILRACE_TRY(read_chunk(reader, (first & kFlagFill) != 0, *data.chunk));
  } else if ((first & kFlagFill) != 0) {
    return bad_words("a fill value without a chunk");
  }
  if (reader.truncated())
    return bad_words("the words end too early, after " + std::to_string(words.size()));
  if (reader.n_left() > 0) {
    return bad_words(std::to_string(reader.n_left()) + " extra words follow the end");
  }
  return data;
}

std::optional<double> recorded_fill(DType dtype, std::optional<double> fill_value) {
  const double* const fill = set_number(fill_value);
  if (fill == nullptr || !is_floating(dtype)) return std::nullopt;
  if (dtype == DType::f64) return *fill;
  constexpr auto greatest = static_cast<double>(std::numeric_limits<float>::max());
  if (std::fabs(*fill) > greatest) {
    return std::copysign(std::numeric_limits<double>::infinity(), *fill);
  }
  return static_cast<double>(static_cast<float>(*fill));
}

Settings read_settings(SettingsReader& keys) {
  Settings settings;
  settings.preset = preset_of(
      static_cast<std::uint32_t>(keys.choice("preset", {"default", "fast", "ratio", "max"}, 0)));
  settings.predictor = static_cast<Predictor>(
      keys.choice("predictor", {"auto", "none", "lorenzo", "interpolation"}, 0));
  settings.dimensions = static_cast<int>(keys.choice("dimension", {"auto", "1", "2", "3", "4"}, 0));
  settings.spline =
      static_cast<Spline>(keys.choice("spline", {"auto", "linear", "cubic", "natural"}, 0));
  settings.last_axis =
      static_cast<int>(keys.choice("last_axis", {"auto", "0", "1", "2", "joint"}, 0)) - 1;
  settings.lossless_stage = static_cast<Choice>(keys.choice("lossless", {"auto", "off", "on"}, 0));
  settings.coarse_views = static_cast<int>(keys.choice("coarse", {"off", "1", "2", "3"}, 0));
  settings.bit_planes =
      static_cast<int>(keys.choice("refine", {"off", "1", "2", "3", "4", "5", "6", "7", "8"}, 0));
  if (settings.coarse_views > 0 && settings.bit_planes > 0) {
    keys.refuse("coarse and refine exclude each other");
  }
  return settings;
}

Result<std::vector<std::uint8_t>> read_book_bytes(SettingsReader& keys) {
  const std::vector<std::uint32_t> words = keys.words("book");
  std::vector<std::uint8_t> bytes;
  if (words.empty()) return bytes;
  WordReader reader(words);
  TAILRACE_TRY(read_book(reader, bytes));
  if (reader.truncated() || reader.n_left() > 0) {
    return bad_words("a shared book of " + std::to_string(words[0]) + " bytes does not fit " +
                     std::to_string(words.size() - 1) + " words");
  }
  const Status parsed = Book::parse(bytes).status();
  if (!parsed.ok()) return Status(Code::invalid_argument, parsed.message());
  return bytes;
}

Result<FilterRequest> request_of(const ErrorBound& bound, const Settings& settings) {
  FilterRequest request;
  request.settings = settings;
  request.bound = bound.value;
  switch (bound.mode) {
    case BoundMode::none: break;
    case BoundMode::abs: request.kind = BoundKind::absolute; break;
    case BoundMode::pw_rel: request.kind = BoundKind::pointwise; break;
    case BoundMode::rel:
    case BoundMode::psnr:
      return Status(
          Code::unsupported,
          "trz as an HDF5 filter: " + std::string(bound_mode_name(bound.mode)) +
              "= is relative to the range of the whole field, and a filter sees one chunk at a "
              "time; give the resulting absolute bound as abs=, or use tailrace");
  }
  return request;
}

Result<FilterRequest> parse_filter_request(std::string_view text) {
  SettingList keys;
  ErrorBound bound;
  TAILRACE_TAKE(const SettingList entries, split_settings(text));
  for (const auto& [key, value] : entries) {
    const bool is_mode = key == "abs" || key == "rel" || key == "psnr" || key == "pw_rel";
    if (!is_mode && key != "bound") {
      keys.emplace_back(key, value);
      continue;
    }
    const std::string words = is_mode ? key + "=" + value : value;
    TAILRACE_TAKE(ErrorBound parsed, parse_error_bound(words).within("codec trz"));
    if (!bound.lossless()) {
      return Status(Code::invalid_argument, "codec trz: more than one bound is given");
    }
    bound = parsed;
  }
  SettingsReader settings(filter_name, keys);
  const Settings read = read_settings(settings);
  Result<std::vector<std::uint8_t>> book_bytes = read_book_bytes(settings);
  TAILRACE_TRY(settings.finish());
  if (!book_bytes.ok()) return book_bytes.status();
  Result<FilterRequest> request = request_of(bound, read);
  if (!request.ok()) return request;
  request->book_bytes = std::move(*book_bytes);
  request->drop_idle_book();
  return request;
}

}  // namespace tailrace::trz
