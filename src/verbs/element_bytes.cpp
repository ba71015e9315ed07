#include "verbs/element_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/codec_registry.hpp"
#include "core/option_table.hpp"
#include "policy/chunk_shape.hpp"

namespace tailrace::verbs {
namespace {

/// Size limit: smaller datasets save less than their chunk index costs.
constexpr std::uint64_t kCompressedBytesMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kSampledParts = 4;
constexpr std::uint64_t kSampledPartBytes = std::uint64_t{256} << 10;
/// Readers pay for chunks and their index: a saving below a 20th is not worth it.
constexpr double kEncodedShareMax = 0.95;

/// Shape of the elements, without the axis of their bytes.
Shape element_shape(const Shape& extents) { return Shape(extents.begin(), extents.end() - 1); }

/// Parts of complete elements, as a grid over the field: its chunks, or slabs.
ChunkGrid parts_of(const StoredDataset& field) {
  if (field.chunked()) return {field.shape, field.storage.chunk_shape};
  Shape part = slab_shape_for(element_shape(field.shape), field.shape.back(), kSampledPartBytes);
  part.push_back(field.shape.back());
  return {field.shape, std::move(part)};
}

/// The first part of a box, in complete elements.
Box shortened(Box box) {
  for (std::size_t d = 0; d + 1 < box.count.size(); ++d) {
    const std::uint64_t row_bytes = box.n_elements() / box.count[d];
    box.count[d] = std::clamp<std::uint64_t>(kSampledPartBytes / row_bytes, 1, box.count[d]);
  }
  return box;
}

/// True if the pattern addresses this dataset of another type, rather than matching it by a
/// wildcard.
bool names(const FieldPattern& pattern, std::span<const StoredDataset> numbers) {
  if (!has_wildcard(pattern.glob)) return true;
  return std::ranges::none_of(
      numbers, [&](const StoredDataset& field) { return glob_matches(pattern.glob, field.path); });
}

bool asks_for_nothing(const KeyValue& entry) {
  return (entry.first == "bound" || entry.first == "codec") && entry.second == "none";
}

Status does_not_apply(const FieldPattern& pattern, const KeyValue& entry, const std::string& path,
                      const std::string& type, const std::string& why) {
  return Status(Code::invalid_argument,
                fmt::format("--field '{}': {}={} does not apply to dataset \"{}\" ({}): {}",
                            pattern.glob, entry.first, entry.second, path, type, why));
}

/// Check that a chunk=SHAPE of elements fits the dataset.
Status check_chunk(const StoredDataset& field, const KeyValue& entry) {
  FieldOptions trial;
  TAILRACE_TRY(apply_field_option(entry, trial));
  if (!trial.chunk_shape) return Status();
  bool fits = trial.chunk_shape->size() + 1 == field.shape.size();
  for (std::size_t d = 0; fits && d < trial.chunk_shape->size(); ++d) {
    fits = (*trial.chunk_shape)[d] <= field.limit(d);
  }
  return fits ? Status()
              : Status(Code::invalid_argument, "chunk shape " + shape_text(*trial.chunk_shape) +
                                                   " does not fit the shape " +
                                                   shape_text(element_shape(field.shape)));
}

/// Apply one entry. @returns why it does not apply; empty: it does
std::string take_entry(const StoredDataset& field, const KeyValue& entry, BytesRequest& request) {
  const auto& [key, value] = entry;
  if (key == "bound" && value != "none") return "values of this type are always stored exactly";
  if (key == "bound") return "";
  if ((key == "codec" && value == plain_codec) || (key == "layout" && value == "contiguous")) {
    request.as_stored = true;
    return "";
  }
  if (key == "codec" && value != kExactCodec) {
    return fmt::format("datasets of this type can only use {} or none", kExactCodec);
  }
  if (key == "chunk") {
    const Status fits = check_chunk(field, entry);
    if (!fits.ok()) return fits.message();
  } else if (key != "codec" && !check_codec_setting(key, kExactCodec).ok()) {
    return "only codec=, chunk= and bound=none apply";
  }
  request.as_stored = false;
  request.options.push_back(entry);
  return "";
}

Result<bool> pays(InputFile& input, std::size_t field_index) {
  const StoredDataset& field = input.fields()[field_index];
  const ChunkGrid parts = parts_of(field);
  // Chunks that the file lacks are not stored in the output either.
  TAILRACE_TAKE(const auto there, input.chunks_there(field_index));
  const std::uint64_t n_parts = there ? there->size() : parts.n_chunks();
  std::uint64_t plain_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  const std::uint64_t n_looked_at = std::min(n_parts, kSampledParts);
  for (std::uint64_t i = 0; i < n_looked_at; ++i) {
    const std::uint64_t part = i * n_parts / n_looked_at;
    const Box box = shortened(parts.clipped_box(there ? (*there)[part] : part));
    Buffer values(box.n_elements());
    if (!values.allocated()) {
      return Status(Code::out_of_memory, "not enough memory for a sample of " +
                                             std::to_string(box.n_elements()) + " bytes");
    }
    TAILRACE_TRY(input.read(field_index, box, values.bytes()));
    CodecRequest request{std::string(kExactCodec), {}, DType::u8, box.count};
    request.element_bytes = field.shape.back();
    TAILRACE_TAKE(const std::unique_ptr<Codec> codec, make_codec(request, ""));
    TAILRACE_TAKE(const EncodedBytes encoded, codec->encode_from(values.bytes()));
    plain_bytes += values.n_bytes();
    encoded_bytes += encoded.buffer.n_bytes();
  }
  return static_cast<double>(encoded_bytes) < kEncodedShareMax * static_cast<double>(plain_bytes);
}

}  // namespace

FieldOptions options_of_bytes(FieldOptions lossless) {
  if (lossless.codec != kExactCodec) lossless.codec_settings.clear();
  lossless.codec = kExactCodec;
  lossless.codec_given = lossless.codec_given_for_field = lossless.bound_given = true;
  lossless.bound = ErrorBound();
  lossless.guards = Guards();
  lossless.fill_value.reset();
  lossless.chunk_shape.reset();
  if (lossless.layout == "contiguous") lossless.layout = "claimed";
  lossless.drop_covered = false;
  return lossless;
}

Result<BytesRequest> request_of_bytes(const StoredDataset& field,
                                      std::span<const FieldPattern> patterns,
                                      std::span<const StoredDataset> numbers) {
  BytesRequest request;
  for (const FieldPattern& pattern : patterns) {
    if (!glob_matches(pattern.glob, field.path)) continue;
    const bool named = names(pattern, numbers);
    bool of_other_codec = false;
    for (const KeyValue& entry : pattern.options) {
      const bool is_setting = check_codec_setting(entry.first, "").ok() && entry.first != "codec";
      if (of_other_codec && is_setting) continue;
      const std::string why = take_entry(field, entry, request);
      if (why.empty()) {
        request.compressed = request.compressed || (named && entry.first != "bound");
        continue;
      }
      if (named) return does_not_apply(pattern, entry, field.path, field.type_text, why);
      of_other_codec = of_other_codec || entry.first == "codec";
      if (entry.first == "bound") {
        request.bound = true;
      } else if (request.unapplied.empty()) {
        request.unapplied = entry.first + "=" + entry.second;
      }
    }
  }
  return request;
}

Status check_not_requested(const OtherDataset& other, std::span<const FieldPattern> patterns,
                           std::span<const StoredDataset> numbers, const std::string& why) {
  for (const FieldPattern& pattern : patterns) {
    if (!glob_matches(pattern.glob, other.path) || !names(pattern, numbers)) continue;
    for (const KeyValue& entry : pattern.options) {
      if (asks_for_nothing(entry)) continue;
      return does_not_apply(pattern, entry, other.path, other.type,
                            why.empty() ? "the dataset is copied as stored, since it has filters, "
                                          "is compact, or points to data elsewhere in the file"
                                        : why);
    }
  }
  return Status();
}

std::vector<OtherDataset> large_ones(std::span<const OtherDataset> others) {
  std::vector<OtherDataset> large(others.begin(), others.end());
  std::erase_if(large, [](const OtherDataset& other) {
    return other.is_dimension || other.n_bytes < kCompressedBytesMin;
  });
  return large;
}

Shape chunk_shape_of_bytes(const StoredDataset& field, std::uint64_t chunk_bytes, int n_ranks) {
  Shape chunk = chunk_shape_to_share(element_shape(field.shape), field.shape.back(), chunk_bytes,
                                     static_cast<std::uint64_t>(n_ranks));
  chunk.push_back(field.shape.back());
  return chunk;
}

std::string kind_of_bytes(const StoredDataset& field) {
  return field.type_text.substr(0, field.type_text.find(' '));
}

Result<std::vector<bool>> find_bytes_that_pay(InputFile& input) {
  std::vector<bool> found(input.fields().size());
  for (std::size_t f = 0; f < found.size(); ++f) {
    const StoredDataset& field = input.fields()[f];
    if (!field.bytes_axis || n_elements(field.shape) < kCompressedBytesMin) continue;
    TAILRACE_TAKE(const bool smaller, pays(input, f).within("dataset \"" + field.path + "\""));
    found[f] = smaller;
  }
  return found;
}

}  // namespace tailrace::verbs
