// ChunkPatches: chunks whose values are laid together from many slabs, over what the file holds.
//
// A Writer's chunk is covered by boxes exactly; a chunk of an ArrayFile is touched here and there,
// by any ranks, and the rest of it stays as it was. So neither the executor nor the pieces that
// travel between ranks look into such a chunk: its owner asks here. A FieldPlan with `patches` has
// jobs without local parts and without remote boxes, and its values are native numbers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/buffer.hpp"
#include "core/byte_stream.hpp"
#include "core/status.hpp"

namespace tailrace {

class ChunkPatches {
 public:
  struct Completed {
    bool store_raw = false;  ///< To be stored with every filter skipped.
    bool fresh = false;      ///< The file holds nothing of it: edges may be padded as one likes.
  };
  virtual ~ChunkPatches() = default;

  /// As a holder: add this rank's slabs of a chunk and their values to a message for its owner.
  /// Main thread.
  virtual void add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const = 0;
  /// As the owner: lay another rank's pieces into the chunk's values. Main thread.
  virtual void lay_pieces(std::uint64_t chunk_index, std::span<const std::byte> pieces,
                          Buffer& values) = 0;
  /// As the owner: lay this rank's own slabs, and fill what nobody has put by what the file holds.
  /// Once per chunk. Thread-safe. @error io_error, codec_failed  of what the file holds.
  virtual Result<Completed> complete(std::uint64_t chunk_index, Buffer& values) = 0;
  /// The place where the chunk lies and must stay; nothing: it goes where its layout says.
  virtual std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const = 0;
  /// Memory that one chunk takes besides its values while it is laid together.
  virtual std::uint64_t extra_bytes() const = 0;
};

}  // namespace tailrace
