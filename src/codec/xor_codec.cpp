// xor: the lossless codec of src/codec/xor as a codec of the registry.
//
// One filter stage. Its client data are the words that the plug-in's set_local would have left, so
// that any HDF5 with libh5xor.so reads and appends to our files.

#include <utility>
#include <vector>

#include "codec/registry.hpp"
#include "codec/xor/xor_chunk.hpp"
#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {
namespace {

class XorStage final : public FilterStage {
 public:
  explicit XorStage(neighbour_xor::ChunkType type) : type_(std::move(type)) {
    spec_.filter_id = neighbour_xor::filter_id;
    spec_.flags = 0;  // Mandatory: a reader must have the filter.
    spec_.client_data = neighbour_xor::client_words(type_.dimension);
    spec_.final_client_data = neighbour_xor::client_words(type_);
    spec_.name = neighbour_xor::filter_name;
  }

  const FilterSpec& spec() const override { return spec_; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return neighbour_xor::encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return neighbour_xor::encoded_bytes_max(n_bytes);
  }

  Status encode(Buffer& bytes) const override {
    Buffer encoded(neighbour_xor::encoded_bytes_max(bytes.n_bytes()));
    if (!encoded.allocated()) return out_of_memory(bytes.n_bytes());
    Result<std::size_t> n_encoded = neighbour_xor::encode(
        type_, std::as_const(bytes).bytes(), encoded.bytes(), neighbour_xor::best_build());
    if (!n_encoded.ok()) return Status(Code::codec_failed, n_encoded.status().message());
    encoded.set_n_bytes(*n_encoded);
    bytes = std::move(encoded);
    return Status();
  }

  Status decode(Buffer& bytes, std::uint64_t decoded_bytes) const override {
    // Where other stages come before, callers may not know: the type does.
    if (decoded_bytes == UINT64_MAX) decoded_bytes = n_elements(type_.shape) * type_.element_bytes;
    Buffer values(decoded_bytes);
    if (!values.allocated()) return out_of_memory(decoded_bytes);
    const Status done = neighbour_xor::decode(std::as_const(bytes).bytes(), values.bytes(),
                                              neighbour_xor::best_build());
    if (!done.ok()) return Status(Code::codec_failed, done.message());
    bytes = std::move(values);
    return Status();
  }

 private:
  static Status out_of_memory(std::uint64_t n_bytes) {
    return Status(Code::out_of_memory, "xor: no memory for " + std::to_string(n_bytes) + " bytes");
  }

  neighbour_xor::ChunkType type_;
  FilterSpec spec_;
};

}  // namespace

std::unique_ptr<FilterStage> make_own_stage(const FilterSpec& stored, std::uint64_t chunk_bytes) {
  if (stored.filter_id != neighbour_xor::filter_id) return nullptr;
  Result<neighbour_xor::ClientData> data =
      neighbour_xor::read_client_words(stored.final_client_data);
  if (!data.ok() || !data->chunk) return nullptr;
  if (n_elements(data->chunk->shape) * data->chunk->element_bytes != chunk_bytes) return nullptr;
  return std::make_unique<XorStage>(std::move(*data->chunk));
}

Result<std::unique_ptr<Codec>> make_xor_codec(const CodecRequest& request) {
  CodecSettings settings(request);
  // "auto" stands first, so that a choice's place is the dimension.
  const std::size_t dimension = settings.choice("dimension", {"auto", "1", "2", "3"}, 0);
  TAILRACE_TRY(settings.finish());
  if (request.chunk_shape.empty()) {
    return Status(Code::unsupported, "codec xor: a scalar cannot be chunked; take codec none");
  }
  neighbour_xor::ChunkType type;
  type.element_bytes = dtype_bytes(request.dtype);
  type.shape = request.chunk_shape;
  type.dimension = static_cast<int>(dimension);
  std::vector<std::unique_ptr<FilterStage>> stages;
  stages.push_back(std::make_unique<XorStage>(std::move(type)));
  return make_pipeline_codec({.name = "xor"}, request, std::move(stages));
}

}  // namespace tailrace
