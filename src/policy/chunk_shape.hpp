// Chunk shapes: from the decomposition, so that ranks own whole chunks where they can.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/box_series.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

/// What all ranks' boxes of one field have in common, from two small allreduces.
struct DecompositionFacts {
  /// Per dimension the greatest common divisor of all cuts (box borders that are not the field's
  /// own); the field's extent where nothing is cut.
  Shape cut_gcd;
  /// Per dimension the largest extent of any one box; at least 1.
  Shape largest_box;
  bool any_put = true;  ///< Whether any rank has put a box, be it empty.
};

/// Fold one box's borders into the facts: cut_gcd (from 0 on) and largest_box, a number for each
/// dimension. The shape's own borders are no cuts, an empty box has none.
void add_cuts(const Shape& shape, const Box& box, std::uint64_t* cut_gcd,
              std::uint64_t* largest_box);

/// Blocks of this size and more are chunks of their own even if they are below the target.
inline constexpr std::uint64_t smallest_own_chunk_bytes = 64U << 10;

/// Choose a chunk shape of at most 2 * target_bytes.
/// Blocks between common cuts are kept whole or split evenly, so no box border crosses a chunk.
/// Where such blocks would be tiny because the cuts are irregular, the largest box serves as the
/// measure and borders do cross chunks; where they are tiny because there are very many ranks,
/// neighbouring blocks are merged. Not collective. @param element_bytes 1, 2, 4 or 8. @returns
/// extents >= 1.
Shape chunk_shape_for(const Shape& shape, std::uint64_t element_bytes, std::uint64_t target_bytes,
                      const DecompositionFacts& facts);

/// Chunk shape for a field that nobody has cut yet and `n_owners` will share in whole chunks: like
/// chunk_shape_for, but made smaller (down to 1 MiB) until every owner has several chunks.
Shape chunk_shape_to_share(const Shape& shape, std::uint64_t element_bytes,
                           std::uint64_t target_bytes, std::uint64_t n_owners);

/// Chunk shape for a field that `n_ranks` share in blocks of its first dimension: the blocks divide
/// evenly, several for each rank, but of 1 MiB at least. @returns extents >= 1.
Shape chunk_shape_by_rows(const Shape& shape, std::uint64_t element_bytes,
                          std::uint64_t target_bytes, std::uint64_t n_ranks);

/// The chunks of at least `least_bytes` that are the fewest parts of the field's slowest dimension
/// that can be cut so, and whole in all behind it: what readers of maps and of published files
/// expect. A smaller field is one chunk. Fewer than twice as many bytes, but where one element more
/// would be. Not collective. @returns extents >= 1.
Shape chunk_shape_of_least(const Shape& shape, std::uint64_t element_bytes,
                           std::uint64_t least_bytes);

/// Slab shape for contiguous storage: whole in all dimensions behind the first that is cut. Along
/// that dimension slabs divide the blocks between common cuts, so that ranks own whole slabs,
/// unless they would be tiny. @param cut_gcd  as in DecompositionFacts.
Shape slab_shape_for(const Shape& shape, std::uint64_t element_bytes, std::uint64_t target_bytes,
                     const Shape& cut_gcd = {});

// --- Chunks of boxes that lie one behind the other, as plotfiles have them.

/// The length of chunks none of which holds cells of two components of a box: it divides the cells
/// of each box. The longest of at most `most` elements by which every chunk is a box or a slab of
/// it; where there is none, the longest. @returns 0 if such chunks would have fewer than `least`,
/// or be millions.
std::uint64_t chunk_length_for(const BoxSeries& boxes, std::uint64_t least, std::uint64_t most);

/// What the chunks of such a length are. Immutable: for all threads.
class BoxChunks {
 public:
  BoxChunks(const BoxSeries& boxes, std::uint64_t chunk_length);
  /// The cells that chunks have, each shape once: the whole box, a slab of it, or, where its rows
  /// do not fit the length, one dimension.
  const std::vector<Shape>& shapes() const { return shapes_; }
  struct Part {
    std::size_t shape = 0;  ///< Of shapes().
    std::size_t component = 0;
  };
  Part part(std::uint64_t chunk_index) const;

 private:
  struct Run {
    std::uint64_t first_chunk = 0;
    std::uint64_t chunks_of_component = 1;
    std::size_t shape = 0;
  };
  std::vector<Run> runs_;
  std::vector<Shape> shapes_;
  std::size_t n_components_;
};

}  // namespace tailrace
