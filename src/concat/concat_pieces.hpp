// Pieces: stored chunks of the inputs on their way to the ranks that own the output's chunks.
//
// Whoever holds a file looks up which places of the line (concat_line.hpp) each of its stored
// chunks falls on. A chunk that coincides with a chunk of the output, filters and all, goes into
// the file as it is. Any other is sent, still encoded, to the owner or owners of the places; they
// decode it. A rank never sends a chunk twice to the same owner in a round, and what it sends in a
// round is bounded. Messages carry parts and forms once, then 24 bytes and the encoded bytes per
// chunk.

#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "concat/concat_inputs.hpp"
#include "concat/concat_line.hpp"
#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// How a part's chunks and those of the output lie to each other.
struct PartGeometry {
  /// @param box  where a tile lies in the output; null: whole rows.
  PartGeometry(const LineDataset& output, const StoredForm& form, std::uint64_t first_row,
               std::uint64_t n_rows, const Box* box);

  /// The part's own chunks: shape {n_rows, inner extents} of the part.
  ChunkGrid grid;
  std::uint64_t first_row;
  std::uint64_t chunk_rows;
  std::uint64_t output_rows;  ///< Of a chunk of the output.
  std::uint64_t n_inner = 1;  ///< Chunks of the part beside each other in one band of rows.
  std::uint64_t output_inner = 1;
  std::uint64_t n_bands;  ///< Of the part.
  bool rows_only;         ///< Whole rows, one chunk in each band on either side: rows say it all.
  Shape start;            ///< Of a tile in the output; empty: whole rows.

  /// The rows of the output that a band of the part covers.
  std::uint64_t band_begin(std::uint64_t band) const { return first_row + band * chunk_rows; }
  std::uint64_t band_end(std::uint64_t band) const {
    return std::min(band_begin(band) + chunk_rows, first_row + grid.shape[0]);
  }
  /// What a chunk of the part covers, in the output.
  Box box(std::uint64_t chunk) const;
  /// Chunks of a part and of the output that coincide have the same box: the index of the latter.
  std::uint64_t output_index(const LineDataset& output, std::uint64_t chunk) const;
  /// True if a chunk of the output has exactly these elements, where chunks are of one shape.
  bool coincides(const LineDataset& output, std::uint64_t chunk) const;
};

/// Call visit(chunk_index) for each chunk of the output that chunk `chunk` of the part touches.
void for_each_touched(const PartGeometry& part, const LineDataset& output, std::uint64_t chunk,
                      const auto& visit) {
  if (part.rows_only) {
    const std::uint64_t last = (part.band_end(chunk) - 1) / part.output_rows;
    for (std::uint64_t k = part.band_begin(chunk) / part.output_rows; k <= last; ++k) visit(k);
    return;
  }
  for_each_position(output.grid.touched(part.box(chunk)),
                    [&](const Shape& at) { visit(output.grid.index_of(at)); });
}

/// A stored chunk that becomes a chunk of the output as it is.
struct CopiedChunk {
  std::uint64_t place = 0;
  const ConcatPart* part = nullptr;
  std::uint64_t chunk = 0;  ///< In the part's grid.
  StoredChunk stored;       ///< encoded_bytes 0: never written, and so it stays.
};

struct Outgoing {
  std::vector<Message> messages;  ///< One per owner, this rank included.
  std::vector<CopiedChunk> copies;
};

class PieceSender {
 public:
  /// @param forms  how each dataset of the output is stored, by dataset (interned as the parts'
  /// are); null where nothing may be copied as it is.
  PieceSender(const ConcatLine& line, std::vector<ConcatPart> parts,
              std::vector<const StoredForm*> forms);

  /// Raw bytes of the largest stored chunk that this rank may send.
  std::uint64_t largest_chunk_bytes() const;
  /// The place up to which this rank has at most `n_bytes` of encoded chunks behind `first`, but
  /// one place at least and `end` at most.
  std::uint64_t end_within(std::uint64_t first, std::uint64_t end, std::uint64_t n_bytes) const;
  /// Read what this rank has for the places of a round. Rounds come in order.
  /// @error io_error, corrupt, out_of_memory  names the input.
  Result<Outgoing> collect(const ConcatRound& round);
  /// The stored bytes of a chunk to be copied.
  Status read(const CopiedChunk& copy, std::span<std::byte> bytes) const;

 private:
  struct Entry {
    std::uint32_t part = 0;
    std::uint32_t filter_mask = 0;
    std::uint64_t chunk = 0;
    Extent extent;
  };
  /// Bands of a part: [begin, end).
  struct Bands {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  /// The bands of a part that touch chunks in these places.
  Bands bands_in(const ConcatPart& part, const PartGeometry& geometry, std::uint64_t first,
                 std::uint64_t end) const;
  static PartGeometry geometry_of(const LineDataset& output, const ConcatPart& part) {
    return {output, *part.form, part.first_row, part.n_rows, part.box};
  }
  StoredChunk stored_chunk(const ConcatPart& part, const PartGeometry& geometry,
                           std::uint64_t chunk) const;
  bool copies(const ConcatPart& part, const PartGeometry& geometry, std::uint64_t chunk) const;
  void visit_part(std::size_t part_index, const ConcatRound& round,
                  std::vector<std::vector<Entry>>& by_owner, Outgoing& outgoing) const;
  Result<Bytes> pack(const std::vector<Entry>& entries) const;

  const ConcatLine& line_;
  std::vector<ConcatPart> parts_;
  std::vector<const StoredForm*> forms_;
  std::size_t next_part_ = 0;  ///< Earlier parts lie before the current round.
};

/// A part as its owner sees it.
struct ArrivedPart {
  std::uint32_t dataset = 0;
  std::int32_t source = 0;
  const StoredForm* form = nullptr;
  PartGeometry geometry;
};

/// A stored chunk that has arrived.
struct Piece {
  const ArrivedPart* part = nullptr;
  std::uint64_t chunk = 0;
  std::uint32_t filter_mask = 0;
  std::span<const std::byte> bytes;  ///< Empty: never written, fill values.
};

/// All pieces of a round that have come to this rank.
class Arrived {
 public:
  /// Unpack one message; keeps it. Forms are interned in `forms`.
  /// @error internal  the message is cut short, or names what there is not.
  Status add(Message arrived, const ConcatLine& line, FormTable& forms);
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::deque<Message> messages_;
  std::deque<std::vector<ArrivedPart>> parts_;  ///< By message.
  std::vector<Piece> pieces_;
};

}  // namespace tailrace
