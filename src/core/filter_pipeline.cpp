// HDF5's pipeline semantics, and the shuffle stage.

#include "core/filter_pipeline.hpp"

#include <algorithm>

#include "core/byte_shuffle.hpp"

namespace tailrace {
namespace {

class ShuffleStage final : public FilterStage {
 public:
  explicit ShuffleStage(std::size_t element_bytes) : element_bytes_(element_bytes) {
    spec_.filter_id = shuffle_filter_id;
    spec_.flags = 1;
    // H5Pset_shuffle gives no client data; the filter's set_local adds the element's size.
    spec_.final_client_data = {static_cast<std::uint32_t>(element_bytes)};
    spec_.name = "shuffle";
  }

  const FilterSpec& spec() const override { return spec_; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override { return n_bytes; }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override { return n_bytes; }

  Status encode(Buffer& bytes) const override {
    Buffer shuffled(bytes.n_bytes());
    if (!shuffled.allocated()) return out_of_memory(bytes.n_bytes());
    shuffle_bytes(element_bytes_, std::as_const(bytes).bytes(), shuffled.bytes());
    bytes = std::move(shuffled);
    return Status();
  }

  Status decode(Buffer& bytes, std::uint64_t decoded_bytes) const override {
    if (bytes.n_bytes() != decoded_bytes) {
      return Status(Code::codec_failed, "shuffle: expected " + std::to_string(decoded_bytes) +
                                            " bytes, got " + std::to_string(bytes.n_bytes()));
    }
    Buffer plain(bytes.n_bytes());
    if (!plain.allocated()) return out_of_memory(bytes.n_bytes());
    unshuffle_bytes(element_bytes_, std::as_const(bytes).bytes(), plain.bytes());
    bytes = std::move(plain);
    return Status();
  }

 private:
  static Status out_of_memory(std::size_t n_bytes) {
    return Status(Code::out_of_memory,
                  "shuffle: no memory for " + std::to_string(n_bytes) + " bytes");
  }

  std::size_t element_bytes_;
  FilterSpec spec_;
};

class PipelineCodec final : public Codec {
 public:
  PipelineCodec(PipelineTraits traits, const CodecRequest& request,
                std::vector<std::unique_ptr<FilterStage>> stages)
      : traits_(std::move(traits)),
        chunk_bytes_(n_elements(request.chunk_shape) * dtype_bytes(request.dtype)),
        stages_(std::move(stages)) {
    for (const auto& stage : stages_) filters_.push_back(stage->spec());
  }

  std::string_view name() const override { return traits_.name; }
  std::string version() const override { return traits_.version; }
  const std::vector<FilterSpec>& filters() const override { return filters_; }
  bool lossy() const override { return traits_.lossy; }
  bool keeps_bound_by_construction() const override { return traits_.keeps_bound_by_construction; }

  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    for (const auto& stage : stages_)
      n_bytes = std::max(n_bytes, stage->encoded_bytes_max(n_bytes));
    return n_bytes;
  }

  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    std::uint64_t most = 0;
    for (const auto& stage : stages_) {
      most = std::max(most, stage->working_bytes(n_bytes));
      n_bytes = std::max(n_bytes, stage->encoded_bytes_max(n_bytes));
    }
    return most;
  }

  Result<EncodedBytes> encode(Buffer values) const override {
    if (values.n_bytes() != chunk_bytes_) return wrong_length("encode", values.n_bytes());
    EncodedBytes encoded;
    encoded.buffer = std::move(values);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const std::uint64_t limit = stages_[i]->encoded_bytes_max(encoded.buffer.n_bytes());
      const Status done = stages_[i]->encode(encoded.buffer);
      if (done.ok() && encoded.buffer.n_bytes() > limit) {
        return Status(Code::codec_failed,
                      "codec " + traits_.name + ": " + std::to_string(encoded.buffer.n_bytes()) +
                          " bytes came out, at most " + std::to_string(limit) + " were expected");
      }
      if (done.ok()) continue;
      const bool skippable = (stages_[i]->spec().flags & 1U) != 0 && encoded.buffer.allocated() &&
                             done.code() == Code::codec_failed;
      if (!skippable) return done.within("codec " + traits_.name);
      encoded.filter_mask |= 1U << i;
    }
    return encoded;
  }

  std::optional<Estimate> estimate(const StridedValues& values) const override {
    if (stages_.empty()) return Estimate{static_cast<double>(values.n_bytes())};
    return stages_.size() == 1 ? stages_.front()->estimate(values) : std::nullopt;
  }

  Result<Buffer> decode(EncodedBytes encoded) const override {
    for (std::size_t i = stages_.size(); i-- > 0;) {
      if ((encoded.filter_mask >> i & 1U) != 0) continue;
      const Status done = stages_[i]->decode(encoded.buffer, chunk_bytes_);
      if (!done.ok()) return done.within("codec " + traits_.name);
    }
    if (encoded.buffer.n_bytes() != chunk_bytes_) {
      return wrong_length("decode", encoded.buffer.n_bytes());
    }
    return std::move(encoded.buffer);
  }

 private:
  Status wrong_length(std::string_view verb, std::size_t n_bytes) const {
    return Status(Code::codec_failed, "codec " + traits_.name + ": " + std::string(verb) +
                                          ": a chunk has " + std::to_string(chunk_bytes_) +
                                          " bytes, got " + std::to_string(n_bytes));
  }

  PipelineTraits traits_;
  std::uint64_t chunk_bytes_;
  std::vector<std::unique_ptr<FilterStage>> stages_;
  std::vector<FilterSpec> filters_;
};

}  // namespace

std::unique_ptr<FilterStage> make_shuffle_stage(std::size_t element_bytes) {
  return std::make_unique<ShuffleStage>(element_bytes);
}

std::unique_ptr<Codec> make_pipeline_codec(PipelineTraits traits, const CodecRequest& request,
                                           std::vector<std::unique_ptr<FilterStage>> stages) {
  return std::make_unique<PipelineCodec>(std::move(traits), request, std::move(stages));
}

}  // namespace tailrace
