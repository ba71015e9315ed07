#include "verbs/element_bytes.hpp"

#include <algorithm>

#include "core/codec_registry.hpp"
#include "policy/chunk_shape.hpp"

namespace tailrace::verbs {
namespace {

/// Smaller datasets save less than their chunk index takes.
constexpr std::uint64_t compressed_bytes_min = std::uint64_t{64} << 10;
constexpr std::uint64_t sampled_parts = 4;
constexpr std::uint64_t sampled_part_bytes = std::uint64_t{256} << 10;
/// Readers pay for chunks and their index: a saving of less than a 20th is not worth it.
constexpr double encoded_share_max = 0.95;

/// The shape of the elements, without the axis of their bytes.
Shape element_shape(const Shape& extents) { return Shape(extents.begin(), extents.end() - 1); }

/// Parts of whole elements, as a grid over the field: its chunks, or slabs.
ChunkGrid parts_of(const StoredDataset& field) {
  if (field.chunked()) return {field.shape, field.storage.chunk_shape};
  Shape part = slab_shape_for(element_shape(field.shape), field.shape.back(), sampled_part_bytes);
  part.push_back(field.shape.back());
  return {field.shape, std::move(part)};
}

/// The beginning of a box, of whole elements.
Box shortened(Box box) {
  for (std::size_t d = 0; d + 1 < box.count.size(); ++d) {
    const std::uint64_t row_bytes = box.n_elements() / box.count[d];
    box.count[d] = std::clamp<std::uint64_t>(sampled_part_bytes / row_bytes, 1, box.count[d]);
  }
  return box;
}

Result<bool> pays(InputFile& input, std::size_t field_index) {
  const StoredDataset& field = input.fields()[field_index];
  const ChunkGrid parts = parts_of(field);
  // Chunks that the file lacks are not stored in the output either.
  TAILRACE_TAKE(const auto there, input.chunks_there(field_index));
  const std::uint64_t n_parts = there ? there->size() : parts.n_chunks();
  std::uint64_t plain_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  const std::uint64_t n_looked_at = std::min(n_parts, sampled_parts);
  for (std::uint64_t i = 0; i < n_looked_at; ++i) {
    const std::uint64_t part = i * n_parts / n_looked_at;
    const Box box = shortened(parts.clipped_box(there ? (*there)[part] : part));
    Buffer values(box.n_elements());
    if (!values.allocated()) return Status(Code::out_of_memory, "no memory for a sample");
    TAILRACE_TRY(input.read(field_index, box, values.bytes()));
    CodecRequest request{std::string(exact_codec), {}, DType::u8, box.count};
    request.element_bytes = field.shape.back();
    TAILRACE_TAKE(const std::unique_ptr<Codec> codec, make_codec(request, ""));
    TAILRACE_TAKE(const EncodedBytes encoded, codec->encode_from(values.bytes()));
    plain_bytes += values.n_bytes();
    encoded_bytes += encoded.buffer.n_bytes();
  }
  return static_cast<double>(encoded_bytes) < encoded_share_max * static_cast<double>(plain_bytes);
}

}  // namespace

FieldOptions options_of_bytes(FieldOptions lossless) {
  if (lossless.codec != exact_codec) lossless.codec_settings.clear();
  lossless.codec = exact_codec;
  lossless.codec_given = lossless.codec_given_for_field = lossless.bound_given = true;
  lossless.bound = ErrorBound();
  lossless.guards = Guards();
  lossless.fill_value.reset();
  lossless.chunk_shape.reset();
  lossless.drop_covered = false;
  return lossless;
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
    if (!field.bytes_axis || n_elements(field.shape) < compressed_bytes_min) continue;
    TAILRACE_TAKE(const bool smaller, pays(input, f).within("dataset \"" + field.path + "\""));
    found[f] = smaller;
  }
  return found;
}

}  // namespace tailrace::verbs
