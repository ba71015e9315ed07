// xor: the lossless codec of trz/src/xor as a codec of the registry.
//
// One filter stage. Its client data equal those that the plug-in's set_local would write, so that
// any HDF5 with libh5xor.so reads and appends to our files.

#include <utility>
#include <vector>

#include "codec/registry.hpp"
#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"
#include "xor/xor_chunk.hpp"

namespace tailrace {
namespace {

FilterSpec xor_spec(const neighbour_xor::ChunkType& type) {
  // Mandatory: a reader must have the filter.
  return {neighbour_xor::filter_id, 0, neighbour_xor::client_words(type.dimension),
          neighbour_xor::client_words(type), neighbour_xor::filter_name};
}

class XorStage final : public OwnStage {
 public:
  XorStage(FilterSpec spec, neighbour_xor::ChunkType type)
      : OwnStage(std::move(spec)), type_(std::move(type)) {}

  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return neighbour_xor::encoded_bytes_max(n_bytes);
  }
  Result<std::size_t> encode_into(std::span<const std::byte> values,
                                  std::span<std::byte> to) const override {
    Result<std::size_t> n_bytes =
        neighbour_xor::encode(type_, values, to, neighbour_xor::best_build());
    if (!n_bytes.ok()) return Status(Code::codec_failed, n_bytes.status().message());
    return n_bytes;
  }
  Result<std::size_t> decode_into(std::span<const std::byte> encoded,
                                  std::span<std::byte> to) const override {
    const std::uint64_t n_bytes = n_elements(type_.shape) * type_.element_bytes;
    if (n_bytes > to.size()) {
      return failed("expected a chunk of at most " + std::to_string(to.size()) +
                    " bytes, its client data have " + std::to_string(n_bytes));
    }
    const Status done =
        neighbour_xor::decode(encoded, to.first(n_bytes), neighbour_xor::best_build());
    if (!done.ok()) return Status(Code::codec_failed, done.message());
    return n_bytes;
  }

 private:
  neighbour_xor::ChunkType type_;
};

}  // namespace

StoredStage stored_xor_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t chunk_bytes) {
  Result<neighbour_xor::ClientData> data =
      neighbour_xor::read_client_words(stored.final_client_data);
  std::unique_ptr<FilterStage> stage;
  if (data.ok() && data->chunk &&
      n_elements(data->chunk->shape) * data->chunk->element_bytes == chunk_bytes) {
    stage = std::make_unique<XorStage>(stored, std::move(*data->chunk));
  }
  return stage;
}

Result<std::unique_ptr<Codec>> make_xor_codec(const CodecRequest& request, const std::string&) {
  CodecSettings settings(request);
  // "auto" comes first, so that the index of a choice is the dimension.
  const std::size_t dimension = settings.choice("dimension", {"auto", "1", "2", "3"}, 0);
  TAILRACE_TRY(settings.finish());
  if (request.chunk_shape.empty()) {
    return Status(Code::unsupported, "codec xor: a scalar cannot be chunked; use codec none");
  }
  neighbour_xor::ChunkType type;
  type.element_bytes = dtype_bytes(request.dtype);
  type.shape = request.chunk_shape;
  type.dimension = static_cast<int>(dimension);
  std::vector<std::unique_ptr<FilterStage>> stages;
  stages.push_back(std::make_unique<XorStage>(xor_spec(type), type));
  return make_pipeline_codec({.name = "xor"}, request, std::move(stages));
}

}  // namespace tailrace
