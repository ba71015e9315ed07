// Codec of a dataset whose chunks are encoded by different codecs; the header names one that
// decodes all chunks.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/codec.hpp"

namespace tailrace {

class ChunkwiseCodec : public CodecOver {
 public:
  /// @param which  index in `codecs` of the codec that encodes this chunk. Thread-safe.
  ChunkwiseCodec(std::vector<std::shared_ptr<const Codec>> codecs,
                 std::function<std::size_t(std::uint64_t chunk_index)> which)
      : CodecOver(nullptr), codecs_(std::move(codecs)), which_(std::move(which)) {}
  /// Take over the codec whose filters the header has. If allocation fails, `of_header` stays
  /// unchanged.
  void take(std::unique_ptr<Codec>& of_header) {
    inner_ = std::shared_ptr<const Codec>(std::move(of_header));
  }

  const Codec* keeping_decoded() const override { return nullptr; }
  const Codec& of_chunk(std::uint64_t chunk_index) const override {
    return *codecs_[which_(chunk_index)];
  }
  bool lossy() const override {
    return std::ranges::any_of(codecs_, [](const auto& codec) { return codec->lossy(); });
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    std::uint64_t most = inner_->working_bytes(n_bytes);
    for (const auto& codec : codecs_) most = std::max(most, codec->working_bytes(n_bytes));
    return most;
  }
  Status decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                     std::span<std::byte> values) const override {
    return inner_->decode_into(encoded, filter_mask, values);
  }

 private:
  std::vector<std::shared_ptr<const Codec>> codecs_;
  std::function<std::size_t(std::uint64_t)> which_;
};

}  // namespace tailrace
