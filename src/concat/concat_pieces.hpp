// Pieces: stored chunks of the inputs on their way to the ranks that own the output's chunks.
//
// The rank that opened a file looks up the places of the line (concat_line.hpp) that each of its
// stored chunks overlaps. A chunk that equals a chunk of the output, including its filters, is
// copied into the file. Any other chunk is sent, still encoded, to the owners of the places, which
// decode it. A rank sends a chunk at most once to each owner in a round, and the bytes that it
// sends in a round are bounded. Messages contain parts and forms once, then 24 bytes and the
// encoded bytes per chunk.

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

/// Relation of a part's chunks to those of the output.
struct PartGeometry {
  /// @param box  box of a tile in the output; null: complete rows.
  PartGeometry(const LineDataset& output, const StoredForm& form, std::uint64_t first_row,
               std::uint64_t n_rows, const Box* box);

  /// The part's chunk grid: shape {n_rows, inner extents} of the part.
  ChunkGrid grid;
  std::uint64_t first_row;
  std::uint64_t chunk_rows;
  std::uint64_t output_rows;  ///< Rows of an output chunk.
  std::uint64_t n_inner = 1;  ///< Chunks of the part in one band of rows.
  std::uint64_t output_inner = 1;
  std::uint64_t n_bands;  ///< Bands of the part.
  bool rows_only;  ///< Complete rows, one chunk in each band on either side: rows determine the
                   ///< chunk.
  Shape start;     ///< Start of a tile in the output; empty: complete rows.

  /// First row of the output that a band of the part covers.
  std::uint64_t band_begin(std::uint64_t band) const { return first_row + band * chunk_rows; }
  std::uint64_t band_end(std::uint64_t band) const {
    return std::min(band_begin(band) + chunk_rows, first_row + grid.shape[0]);
  }
  /// Box that a chunk of the part covers in the output.
  Box box(std::uint64_t chunk) const;
  /// Index of the output chunk that coincides with a chunk of the part: both have the same box.
  std::uint64_t output_index(const LineDataset& output, std::uint64_t chunk) const;
  /// True if an output chunk has exactly these elements, provided that the chunk shapes are equal.
  bool coincides(const LineDataset& output, std::uint64_t chunk) const;
};

/// Call visit(chunk_index) for each output chunk that chunk `chunk` of the part touches.
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

/// Stored chunk that becomes an output chunk unchanged.
struct CopiedChunk {
  std::uint64_t place = 0;
  const ConcatPart* part = nullptr;
  std::uint64_t chunk = 0;  ///< Index in the part's grid.
  StoredChunk stored;       ///< encoded_bytes 0: never written, and not written in the output.
};

struct Outgoing {
  std::vector<Message> messages;  ///< One per owner, this rank included.
  std::vector<CopiedChunk> copies;
};

class PieceSender {
 public:
  /// @param forms  storage form of each dataset of the output, by dataset (interned like those of
  /// the parts); null for a dataset whose chunks may not be copied.
  PieceSender(const ConcatLine& line, std::vector<ConcatPart> parts,
              std::vector<const StoredForm*> forms);

  /// Raw bytes of the largest stored chunk that this rank may send.
  std::uint64_t largest_chunk_bytes() const;
  /// The place up to which this rank has at most `n_bytes` of encoded chunks after `first`, but at
  /// least one place and at most `end`.
  std::uint64_t end_within(std::uint64_t first, std::uint64_t end, std::uint64_t n_bytes) const;
  /// Read this rank's chunks for the places of a round. Rounds must come in order.
  /// @error io_error, corrupt, out_of_memory  names the input.
  Result<Outgoing> collect(const ConcatRound& round);
  /// Read the stored bytes of a chunk to be copied.
  Status read(const CopiedChunk& copy, std::span<std::byte> bytes) const;

 private:
  struct Entry {
    std::uint32_t part = 0;
    std::uint32_t filter_mask = 0;
    std::uint64_t chunk = 0;
    Extent extent;
  };
  /// Range of bands of a part: [begin, end).
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
  std::size_t next_part_ = 0;  ///< Earlier parts precede the current round.
};

/// A part in the form that the owner of its places receives.
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
  std::span<const std::byte> bytes;  ///< Empty: never written; the values are fill values.
};

/// All pieces that this rank has received in a round.
class Arrived {
 public:
  /// Unpack one message, and store it. Forms are interned in `forms`.
  /// @error internal  the message is truncated, or refers to something that does not exist.
  Status add(Message arrived, const ConcatLine& line, FormTable& forms);
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::deque<Message> messages_;
  std::deque<std::vector<ArrivedPart>> parts_;  ///< Keyed by message.
  std::vector<Piece> pieces_;
};

}  // namespace tailrace
