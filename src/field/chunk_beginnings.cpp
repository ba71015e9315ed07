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
    return join_chunks(old, n_values_, raw_bytes_, encoded);
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

/// The first values of one chunk, as the file has them.
class StoredBeginning final : public ChunkBeginnings {
 public:
  StoredBeginning(const Codec& codec, EncodedBytes stored, std::uint64_t n_values,
                  std::uint64_t n_bytes, std::uint64_t raw_bytes)
      : codec_(codec),
        stored_(std::move(stored)),
        n_values_(n_values),
        n_bytes_(n_bytes),
        raw_bytes_(raw_bytes) {}

  Status complete(std::uint64_t /*chunk_index*/, Buffer& values) const override {
    EncodedBytes stored{Buffer::copy_of(stored_.buffer.bytes()), stored_.filter_mask};
    if (!stored.buffer.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
    TAILRACE_TAKE(const Buffer old, decode_chunk(codec_, std::move(stored), values.n_bytes()));
    std::memcpy(values.data(), old.data(), n_bytes_);
    return Status();
  }
  bool joins() const override { return true; }
  Status join(std::uint64_t /*chunk_index*/, EncodedBytes& encoded) const override {
    return join_chunks(stored_, n_values_, raw_bytes_, encoded);
  }
  std::optional<std::uint64_t> fixed_address(std::uint64_t /*chunk_index*/) const override {
    return std::nullopt;
  }
  std::uint64_t extra_bytes() const override { return 0; }  // Part of PatchedChunks' own.

 private:
  const Codec& codec_;
  EncodedBytes stored_;
  std::uint64_t n_values_;
  std::uint64_t n_bytes_;
  std::uint64_t raw_bytes_;
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

Status join_chunks(const EncodedBytes& stored, std::uint64_t n_first, std::uint64_t raw_bytes,
                   EncodedBytes& encoded) {
  if (stored.filter_mask != 0 || encoded.filter_mask != 0) return not_joined();
  const std::uint64_t both = stored.buffer.n_bytes() + encoded.buffer.n_bytes();
  const Status too_large(Code::unsupported, "the joined chunk would be larger than its values");
  if (both >= raw_bytes) return too_large;
  Buffer joined(trz::joined_bytes_max(stored.buffer.n_bytes(), encoded.buffer.n_bytes()));
  if (!joined.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
  TAILRACE_TAKE(const std::size_t n_bytes,
                trz::join(stored.buffer.bytes(), n_first, std::as_const(encoded.buffer).bytes(),
                          joined.bytes()));
  if (n_bytes >= raw_bytes) return too_large;
  joined.set_n_bytes(n_bytes);
  encoded.buffer = std::move(joined);
  return Status();
}

std::shared_ptr<const ChunkBeginnings> chunk_beginnings(const FieldState& field, Storage& storage) {
  if (field.n_begun == 0) return nullptr;
  return std::make_shared<const StoredBeginnings>(field, storage);
}

std::unique_ptr<const ChunkBeginnings> beginning_of_chunk(const Codec& codec, EncodedBytes stored,
                                                          std::uint64_t n_first,
                                                          std::uint64_t n_first_bytes,
                                                          std::uint64_t raw_bytes) {
  return std::make_unique<const StoredBeginning>(codec, std::move(stored), n_first, n_first_bytes,
                                                 raw_bytes);
}

bool keeps_beginnings(const Codec& codec) {
  return !codec.lossy() || (codec.name() == kYardstickCodec && codec.filters().size() == 1);
}

}  // namespace tailrace
