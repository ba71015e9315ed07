// Client data of a header into a decoder, and into a codec.

#include "stored_trz.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/trz/client_data.hpp"
#include "codec/trz/trz.hpp"
#include "codec/trz/workspace.hpp"

namespace tailrace {
namespace {

/// Encodes as the header says. By trz's own promise every finite value decodes within its bound.
class ContinuedTrz final : public Codec {
 public:
  ContinuedTrz(FilterSpec filter, const trz::ClientData& data, std::unique_ptr<TrzDecoder> decoder)
      : filters_{std::move(filter)},
        settings_(data.request.settings),
        decoder_(std::move(decoder)) {
    type_.dtype = data.chunk->dtype;
    type_.shape = data.chunk->shape;
    type_.kind = data.request.kind;
    type_.bound = data.request.bound;
    type_.fill_value = data.chunk->fill_value;
    type_.book = decoder_->book.get();
  }

  std::string_view name() const override { return "trz"; }
  std::string version() const override { return "as stored"; }
  const std::vector<FilterSpec>& filters() const override { return filters_; }
  bool lossy() const override { return type_.kind != trz::BoundKind::exact; }
  bool keeps_bound_by_construction() const override { return true; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return trz::encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return trz::encoded_bytes_max(n_bytes) + trz::working_bytes_max(n_bytes, type_.kind);
  }

  Result<EncodedBytes> encode(Buffer values) const override {
    thread_local trz::Workspace workspace;
    EncodedBytes encoded{Buffer(trz::encoded_bytes_max(values.n_bytes()))};
    if (!encoded.buffer.allocated()) return no_memory(values.n_bytes());
    const Result<std::size_t> n_bytes = trz::encode(type_, settings_, std::as_const(values).bytes(),
                                                    encoded.buffer.bytes(), workspace);
    if (n_bytes.ok()) {
      encoded.buffer.set_n_bytes(*n_bytes);
      return encoded;
    }
    if (n_bytes.status().code() == Code::out_of_memory) return n_bytes.status();
    return Status(Code::codec_failed, n_bytes.status().message());
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    Buffer values(decoder_->n_bytes);
    if (!values.allocated()) return no_memory(decoder_->n_bytes);
    TAILRACE_TRY(decoder_->decode(std::as_const(encoded.buffer).bytes(), values.bytes()));
    return values;
  }

 private:
  static Status no_memory(std::uint64_t n_bytes) {
    return Status(Code::out_of_memory, "trz: no memory for " + std::to_string(n_bytes) + " bytes");
  }

  std::vector<FilterSpec> filters_;
  trz::Settings settings_;
  trz::ChunkType type_;
  std::unique_ptr<TrzDecoder> decoder_;
};

}  // namespace

Status TrzDecoder::decode(std::span<const std::byte> encoded, std::span<std::byte> values) const {
  thread_local trz::Workspace workspace;
  const Status done = trz::decode(encoded, values, book.get(), workspace);
  if (done.ok() || done.code() == Code::out_of_memory) return done;
  return Status(Code::codec_failed, done.message());
}

std::unique_ptr<TrzDecoder> trz_decoder(const FilterSpec& filter, bool& lossless) {
  if (filter.filter_id != trz::filter_id) return nullptr;
  Result<trz::ClientData> data = trz::read_client_words(filter.final_client_data);
  if (!data.ok() || !data->chunk) return nullptr;
  auto decoder = std::make_unique<TrzDecoder>();
  decoder->n_bytes = data->chunk->n_bytes();
  lossless = data->request.kind == trz::BoundKind::exact;
  if (data->request.book_bytes.empty()) return decoder;
  Result<trz::Book> book = trz::Book::parse(data->request.book_bytes);
  if (!book.ok()) return nullptr;
  decoder->book = std::make_unique<trz::Book>(*book);
  return decoder;
}

std::unique_ptr<Codec> continued_trz_codec(const std::vector<FilterSpec>& filters, DType dtype,
                                           const Shape& chunk_shape) {
  if (filters.size() != 1) return nullptr;
  bool lossless = false;
  std::unique_ptr<TrzDecoder> decoder = trz_decoder(filters[0], lossless);
  if (decoder == nullptr) return nullptr;
  const Result<trz::ClientData> data = trz::read_client_words(filters[0].final_client_data);
  if (data->chunk->dtype != dtype || data->chunk->shape != chunk_shape) return nullptr;
  return std::make_unique<ContinuedTrz>(filters[0], *data, std::move(decoder));
}

}  // namespace tailrace
