// Byte order: swaps the bytes of elements, and wraps codecs of datasets in the other byte order.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/codec.hpp"

namespace tailrace {

/// Reverse the bytes of each element, in place. Elements of 1 byte stay as they are.
void swap_elements(std::span<std::byte> values, std::size_t element_bytes);

/// Codec of a dataset in the other byte order: swaps the bytes of elements before the inner codec
/// encodes them and after it has decoded them. The inner codec must not depend on the meaning of
/// the bytes.
class SwappingCodec : public CodecOver {
 public:
  SwappingCodec(std::unique_ptr<Codec> inner, std::size_t element_bytes)
      : CodecOver(std::move(inner)), element_bytes_(element_bytes) {}
  const Codec* keeping_decoded() const override { return nullptr; }
  bool keeps_value(double /*value*/) const override { return false; }
  Result<EncodedBytes> encode(Buffer values) const override {
    swap_elements(values.bytes(), element_bytes_);
    return CodecOver::encode(std::move(values));
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    Result<Buffer> values = CodecOver::decode(std::move(encoded));
    if (values.ok()) swap_elements(values->bytes(), element_bytes_);
    return values;
  }

 private:
  std::size_t element_bytes_;
};

}  // namespace tailrace
