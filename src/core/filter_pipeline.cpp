// HDF5's pipeline semantics, and the shuffle stage.
//
// Invariant: decode_into() of a pipeline of Tailrace's own stages allocates only to grow a thread's
// scratch memory, which tiny chunks use.

#include "core/filter_pipeline.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/codec_registry.hpp"
#include "trz/base/byte_shuffle.hpp"
#include "trz/base/kept_by_thread.hpp"

namespace tailrace {
namespace {

using ConstBytes = std::span<const std::byte>;

/// Return one of two reusable memory blocks of this thread; `which` is 0 or 1. The next call for
/// the same block invalidates its content. Empty if memory is short.
std::span<std::byte> scratch(std::size_t which, std::uint64_t n_bytes) {
  struct Blocks {
    std::array<Buffer, 2> blocks;
  };
  Buffer& block = kept_by_thread<Blocks>().blocks[which];
  if (block.capacity() < n_bytes) {
    block = Buffer();
    block = Buffer(n_bytes + n_bytes / 8);
  }
  return block.allocated() ? std::span(block.data(), n_bytes) : std::span<std::byte>();
}

FilterSpec shuffle_spec(std::size_t element_bytes) {
  // H5Pset_shuffle sets no client data; the filter's set_local adds the element's size.
  return {kShuffleFilterId,
          kOptionalFilter,
          {},
          {static_cast<std::uint32_t>(element_bytes)},
          "shuffle"};
}

class ShuffleStage final : public OwnStage {
 public:
  ShuffleStage(FilterSpec spec, std::size_t element_bytes)
      : OwnStage(std::move(spec)), element_bytes_(element_bytes) {}

  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override { return n_bytes; }
  Result<std::size_t> encode_into(ConstBytes values, std::span<std::byte> to) const override {
    shuffle_bytes(element_bytes_, values, to.first(values.size()));
    return values.size();
  }
  Result<std::size_t> decode_into(ConstBytes encoded, std::span<std::byte> to) const override {
    if (encoded.size() > to.size()) {
      return failed("expected at most " + std::to_string(to.size()) + " bytes, got " +
                    std::to_string(encoded.size()));
    }
    unshuffle_bytes(element_bytes_, encoded, to.first(encoded.size()));
    return encoded.size();
  }

 private:
  std::size_t element_bytes_;
};

class PipelineCodec final : public Codec {
 public:
  PipelineCodec(PipelineTraits traits, std::uint64_t chunk_bytes,
                std::vector<std::unique_ptr<FilterStage>> stages)
      : traits_(std::move(traits)),
        label_(traits_.name == kStoredCodecName ? "stored filters" : "codec " + traits_.name),
        chunk_bytes_(chunk_bytes),
        stages_(std::move(stages)) {
    TAILRACE_CHECK(stages_.size() <= filters_max);
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
    return encode_by_stages(0, std::move(encoded));
  }

  /// True if the first stage is Tailrace's own: it reads the values in place.
  bool encodes_apart() const override {
    return !stages_.empty() && stages_.front()->own() != nullptr;
  }
  Result<EncodedBytes> encode_from(ConstBytes values) const override {
    if (!encodes_apart()) return Codec::encode_from(values);
    if (values.size() != chunk_bytes_) return wrong_length("encode", values.size());
    EncodedBytes encoded;
    const Status done = stages_.front()->own()->encode_apart(values, encoded.buffer);
    if (!done.ok()) {
      if (!stages_.front()->optional() || done.code() != Code::codec_failed) {
        return done.within(label_);
      }
      encoded.filter_mask = 1;
      encoded.buffer = Buffer::copy_of(values);
      if (!encoded.buffer.allocated()) {
        return Status(Code::out_of_memory,
                      label_ + ": no memory for " + std::to_string(values.size()) + " bytes");
      }
    }
    return encode_by_stages(1, std::move(encoded));
  }

  bool keeps_value(double value) const override {
    return stages_.size() == 1 && stages_[0]->keeps_value(value);
  }
  const CoarseViews* coarse_views() const override {
    return stages_.size() == 1 ? stages_.front()->coarse_views() : nullptr;
  }
  const BoundPrefixes* bound_prefixes() const override {
    return stages_.size() == 1 ? stages_.front()->bound_prefixes() : nullptr;
  }

  std::optional<Estimate> estimate(const StridedValues& values) const override {
    if (stages_.empty()) return Estimate{static_cast<double>(values.n_bytes())};
    return stages_.size() == 1 ? stages_.front()->estimate(values) : std::nullopt;
  }

  Result<Buffer> decode(EncodedBytes encoded) const override {
    const Limits limits = limits_of(encoded.filter_mask);
    for (std::size_t i = stages_.size(); i-- > 0;) {
      if (skips(encoded.filter_mask, i)) continue;
      const Status done = stages_[i]->decode(encoded.buffer, limits[i]);
      if (!done.ok()) return done.within(label_);
    }
    if (encoded.buffer.n_bytes() != chunk_bytes_) {
      return wrong_length("decode", encoded.buffer.n_bytes());
    }
    return std::move(encoded.buffer);
  }

  Status decode_into(ConstBytes encoded, std::uint32_t filter_mask,
                     std::span<std::byte> values) const override {
    if (values.size() != chunk_bytes_) return wrong_length("decode", values.size());
    const Limits limits = limits_of(filter_mask);
    std::size_t first = 0;
    while (first < stages_.size() && skips(filter_mask, first)) ++first;
    std::size_t free_block = 0;
    for (std::size_t i = stages_.size(); i-- > first;) {
      if (skips(filter_mask, i)) continue;
      const std::span<std::byte> to = i == first ? values : scratch(free_block, limits[i]);
      if (to.size() < limits[i]) {
        return Status(Code::out_of_memory,
                      label_ + ": no memory for " + std::to_string(limits[i]) + " bytes");
      }
      TAILRACE_TAKE(const std::size_t n_bytes, stages_[i]->decode_into(encoded, to).within(label_));
      encoded = to.first(n_bytes);
      free_block = 1 - free_block;
    }
    if (encoded.size() != chunk_bytes_) return wrong_length("decode", encoded.size());
    if (first == stages_.size() && chunk_bytes_ > 0) {
      std::memcpy(values.data(), encoded.data(), chunk_bytes_);
    }
    return Status();
  }

 private:
  using Limits = std::array<std::uint64_t, filters_max>;

  Result<EncodedBytes> encode_by_stages(std::size_t first, EncodedBytes encoded) const {
    for (std::size_t i = first; i < stages_.size(); ++i) {
      const std::uint64_t limit = stages_[i]->encoded_bytes_max(encoded.buffer.n_bytes());
      const Status done = stages_[i]->encode(encoded.buffer);
      if (done.ok() && encoded.buffer.n_bytes() > limit) {
        return Status(Code::codec_failed, label_ + ": encoded to " +
                                              std::to_string(encoded.buffer.n_bytes()) +
                                              " bytes, expected at most " + std::to_string(limit));
      }
      if (done.ok()) continue;
      const bool skippable =
          stages_[i]->optional() && encoded.buffer.allocated() && done.code() == Code::codec_failed;
      if (!skippable) return done.within(label_);
      encoded.filter_mask |= 1U << i;
    }
    return encoded;
  }
  static bool skips(std::uint32_t filter_mask, std::size_t stage) {
    return (filter_mask >> stage & 1U) != 0;
  }
  /// Return upper limits on the length of each stage's input. They are exact as long as all earlier
  /// stages preserve the length.
  Limits limits_of(std::uint32_t filter_mask) const {
    Limits limits{};
    std::uint64_t limit = chunk_bytes_;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      limits[i] = limit;
      if (!skips(filter_mask, i)) limit = stages_[i]->stored_bytes_max(limit);
    }
    return limits;
  }

  Status wrong_length(std::string_view verb, std::size_t n_bytes) const {
    return Status(Code::codec_failed, label_ + ": cannot " + std::string(verb) +
                                          ": expected a chunk of " + std::to_string(chunk_bytes_) +
                                          " bytes, got " + std::to_string(n_bytes));
  }

  PipelineTraits traits_;
  std::string label_;  ///< Names the codec in messages.
  std::uint64_t chunk_bytes_;
  std::vector<std::unique_ptr<FilterStage>> stages_;
  std::vector<FilterSpec> filters_;
};

Status wrong_room(std::size_t n_bytes, std::size_t n_room) {
  return Status(Code::codec_failed, "decoded to " + std::to_string(n_bytes) + " bytes instead of " +
                                        std::to_string(n_room));
}

}  // namespace

// --- Default implementations for codecs and stages

Result<EncodedBytes> Codec::encode_from(ConstBytes values) const {
  Buffer copy = Buffer::copy_of(values);
  if (!copy.allocated()) {
    return Status(Code::out_of_memory,
                  "no memory for a copy of " + std::to_string(values.size()) + " bytes");
  }
  return encode(std::move(copy));
}

Status Codec::decode_into(ConstBytes encoded, std::uint32_t filter_mask,
                          std::span<std::byte> values) const {
  EncodedBytes copy{Buffer::copy_of(encoded), filter_mask};
  if (!copy.buffer.allocated()) {
    return Status(Code::out_of_memory,
                  "no memory for " + std::to_string(encoded.size()) + " bytes");
  }
  TAILRACE_TAKE(Buffer decoded, decode(std::move(copy)));
  if (decoded.n_bytes() != values.size()) return wrong_room(decoded.n_bytes(), values.size());
  if (!values.empty()) std::memcpy(values.data(), decoded.data(), values.size());
  return Status();
}

Status FilterStage::no_memory(std::uint64_t n_bytes) const {
  return Status(Code::out_of_memory,
                spec_.name + ": no memory for " + std::to_string(n_bytes) + " bytes");
}

Status FilterStage::failed(const std::string& why) const {
  return Status(Code::codec_failed, spec_.name + ": " + why);
}

Result<std::size_t> FilterStage::decode_into(ConstBytes encoded, std::span<std::byte> to) const {
  Buffer bytes = Buffer::copy_of(encoded);
  if (!bytes.allocated()) return no_memory(encoded.size());
  TAILRACE_TRY(decode(bytes, to.size()));
  if (bytes.n_bytes() > to.size()) return wrong_room(bytes.n_bytes(), to.size());
  if (bytes.n_bytes() > 0) std::memcpy(to.data(), bytes.data(), bytes.n_bytes());
  return bytes.n_bytes();
}

Status OwnStage::encode(Buffer& bytes) const {
  Buffer encoded;
  TAILRACE_TRY(encode_apart(std::as_const(bytes).bytes(), encoded));
  bytes = std::move(encoded);
  return Status();
}

Status OwnStage::encode_apart(ConstBytes values, Buffer& encoded) const {
  encoded = Buffer(encoded_bytes_max(values.size()));
  if (!encoded.allocated()) return no_memory(encoded_bytes_max(values.size()));
  TAILRACE_TAKE(const auto n_bytes, encode_into(values, encoded.bytes()));
  encoded.set_n_bytes(n_bytes);
  return Status();
}

Status OwnStage::decode(Buffer& bytes, std::uint64_t most_bytes) const {
  Buffer values(most_bytes);
  if (!values.allocated()) return no_memory(most_bytes);
  TAILRACE_TAKE(const auto n_bytes, decode_into(std::as_const(bytes).bytes(), values.bytes()));
  values.set_n_bytes(n_bytes);
  bytes = std::move(values);
  return Status();
}

std::unique_ptr<FilterStage> make_shuffle_stage(std::size_t element_bytes) {
  return std::make_unique<ShuffleStage>(shuffle_spec(element_bytes), element_bytes);
}

Result<std::unique_ptr<FilterStage>> stored_shuffle_stage(const FilterSpec& stored,
                                                          std::uint64_t element_bytes,
                                                          std::uint64_t) {
  // HDF5's set_local leaves the element size in the client data.
  if (!stored.final_client_data.empty()) element_bytes = stored.final_client_data.front();
  if (element_bytes == 0)
    return Status(Code::corrupt, "shuffle: the element size is 0 bytes, must be at least 1");
  return std::unique_ptr<FilterStage>(std::make_unique<ShuffleStage>(stored, element_bytes));
}

std::unique_ptr<Codec> make_pipeline_codec(PipelineTraits traits, std::uint64_t chunk_bytes,
                                           std::vector<std::unique_ptr<FilterStage>> stages) {
  return std::make_unique<PipelineCodec>(std::move(traits), chunk_bytes, std::move(stages));
}

std::unique_ptr<Codec> make_pipeline_codec(PipelineTraits traits, const CodecRequest& request,
                                           std::vector<std::unique_ptr<FilterStage>> stages) {
  return make_pipeline_codec(std::move(traits),
                             n_elements(request.chunk_shape) * dtype_bytes(request.dtype),
                             std::move(stages));
}

}  // namespace tailrace
