// Completing or joining stored chunks that hold fewer steps than they will have.

#include "field/chunk_beginnings.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "chunk/stored_chunk.hpp"
#include "core/codec_registry.hpp"
#include "field/field_state.hpp"
#include "trz/trz.hpp"

namespace tailrace {
namespace {

Status not_joined() {
  return Status(Code::unsupported,
                "cannot add steps to a chunk that is stored without filters or has " +
                    std::to_string(trz::kJoinedPartsMax) + " parts already");
}

class StoredBeginnings final : public ChunkBeginnings {
 public:
  StoredBeginnings(const FieldState& field, Storage& storage)
      : storage_(storage), codec_(*field.resolved.codec), chunks_(field.begun_chunks) {
    const std::uint64_t plane =
        n_elements(field.resolved.chunk_shape) / field.resolved.chunk_shape.front();
    n_values_ = field.n_begun * plane;
    n_bytes_ = n_values_ * dtype_bytes(field.definition.dtype);
    std::uint64_t longest = 0;
    for (const StoredChunk& chunk : chunks_) {
      longest = std::max(longest, chunk.extent.encoded_bytes);
    }
    raw_bytes_ = field.chunk_bytes();
    extra_bytes_ = raw_bytes_ + 2 * longest + codec_.encoded_bytes_max(raw_bytes_);
  }

  Status complete(std::uint64_t chunk_index, Buffer& values) const override {
    const StoredChunk* const chunk = find(chunk_index);
    if (chunk == nullptr)
      return Status(Code::corrupt, "the incomplete chunk is missing in the file");
    TAILRACE_TAKE(const Buffer old,
                  read_chunk(storage_, codec_, place_of(*chunk), values.n_bytes()));
    std::memcpy(values.data(), old.data(), n_bytes_);
    return Status();
  }

  bool joins() const override { return codec_.lossy(); }

  Status join(std::uint64_t chunk_index, EncodedBytes& encoded) const override {
    const StoredChunk* const chunk = find(chunk_index);
    TAILRACE_TAKE(const EncodedBytes old, fetch_chunk(storage_, place_of(*chunk)));
    if (old.filter_mask != 0 || encoded.filter_mask != 0) {
      return not_joined();
    }
    Buffer joined(trz::joined_bytes_max(old.buffer.n_bytes(), encoded.buffer.n_bytes()));
    if (!joined.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
    TAILRACE_TAKE(const std::size_t n_bytes,
                  trz::join(std::as_const(old.buffer).bytes(), n_values_,
                            std::as_const(encoded.buffer).bytes(), joined.bytes()));
    if (n_bytes >= raw_bytes_) {
      return Status(Code::unsupported, "the joined chunk would be larger than its values");
    }
    joined.set_n_bytes(n_bytes);
    encoded.buffer = std::move(joined);
    return Status();
  }

  std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const override {
    const StoredChunk* const chunk = codec_.filters().empty() ? find(chunk_index) : nullptr;
    return chunk == nullptr ? std::optional<std::uint64_t>() : chunk->extent.address;
  }

  std::uint64_t extra_bytes() const override { return extra_bytes_; }

  /// See check_begun_chunks().
  Status check(std::size_t first, std::size_t stride, bool must_join) const {
    Buffer values(raw_bytes_);
    if (!values.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
    for (std::size_t i = first; i < chunks_.size(); i += stride) {
      TAILRACE_TRY(complete(chunks_[i].chunk_index, values));
      if (!must_join || !joins()) continue;
      TAILRACE_TAKE(const EncodedBytes old, fetch_chunk(storage_, place_of(chunks_[i])));
      if (old.filter_mask != 0) return not_joined();
      TAILRACE_TAKE(const trz::ChunkSummary summary, trz::describe(old.buffer.bytes()));
      if (summary.n_parts == trz::kJoinedPartsMax) return not_joined();
    }
    return Status();
  }

 private:
  const StoredChunk* find(std::uint64_t chunk_index) const {
    const auto found =
        std::ranges::lower_bound(chunks_, chunk_index, {}, &StoredChunk::chunk_index);
    return found != chunks_.end() && found->chunk_index == chunk_index ? &*found : nullptr;
  }

  Storage& storage_;
  const Codec& codec_;
  std::vector<StoredChunk> chunks_;  ///< Chunks of the entry, by their number in it.
  std::uint64_t n_values_ = 0;       ///< Values of a chunk that the file holds.
  std::uint64_t n_bytes_ = 0;
  std::uint64_t raw_bytes_ = 0;  ///< Bytes of a complete chunk.
  std::uint64_t extra_bytes_ = 0;
};

}  // namespace

Status check_begun_chunks(const Comm& comm, const FieldState& field, Storage& storage) {
  if (field.n_begun == 0) return Status();
  const StoredBeginnings beginnings(field, storage);
  return beginnings
      .check(static_cast<std::size_t>(comm.rank()), static_cast<std::size_t>(comm.n_ranks()),
             !field.definition.options.fall_back_to_raw)
      .within(field.definition.name() + ": the incomplete last chunks in the file");
}

std::shared_ptr<const ChunkBeginnings> chunk_beginnings(const FieldState& field, Storage& storage) {
  if (field.n_begun == 0) return nullptr;
  return std::make_shared<const StoredBeginnings>(field, storage);
}

bool keeps_beginnings(const Codec& codec) {
  return !codec.lossy() || (codec.name() == kYardstickCodec && codec.filters().size() == 1);
}

}  // namespace tailrace
