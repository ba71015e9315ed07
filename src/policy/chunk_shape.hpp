// Chunk shapes from the decomposition, so that ranks own complete chunks if possible.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/box_series.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

/// Common properties of all ranks' boxes of one field, from two small allreduces.
struct DecompositionFacts {
  /// Greatest common divisor of all cuts in each dimension; the field's extent if it has no cuts. A
  /// cut is a box border inside the field.
  Shape cut_gcd;
  /// Largest extent of any single box in each dimension; at least 1.
  Shape largest_box;
  bool any_put = true;  ///< True if any rank has put a box, even an empty one.
};

/// Add one box's borders to the facts: cut_gcd (initially 0) and largest_box, each with one number
/// per dimension. Borders of the field are not cuts, and an empty box has none.
void add_cuts(const Shape& shape, const Box& box, std::uint64_t* cut_gcd,
              std::uint64_t* largest_box);

/// Blocks of this size or more become separate chunks even if they are below the target.
inline constexpr std::uint64_t kSmallestOwnChunkBytes = 64U << 10;

/// Smallest step that gets chunks of its own. Steps that share a chunk rewrite it at every flush.
inline constexpr std::uint64_t kStepChunkBytesMin = 256U << 10;

/// Choose a chunk shape of at most 2 * target_bytes.
/// Blocks between common cuts stay complete or are split evenly, so that no box border crosses a
/// chunk. If irregular cuts would make these blocks tiny, the largest box determines the shape, and
/// borders do cross chunks. If very many ranks make them tiny, neighbouring blocks are merged. Not
/// collective.
/// @param element_bytes  size of an element, at least 1
/// @returns extents >= 1
Shape chunk_shape_for(const Shape& shape, std::uint64_t element_bytes, std::uint64_t target_bytes,
                      const DecompositionFacts& facts);

/// Choose a chunk shape for a field without known boxes that `n_owners` will share in complete
/// chunks. Like chunk_shape_for(), but smaller (down to 1 MiB) until every owner has several
/// chunks.
Shape chunk_shape_to_share(const Shape& shape, std::uint64_t element_bytes,
                           std::uint64_t target_bytes, std::uint64_t n_owners);

/// Choose a chunk shape for a field that `n_ranks` share in blocks of its first dimension. Chunks
/// divide the blocks evenly, several per rank, but have at least 1 MiB. Some dimensions are taken
/// for steps or components, which programs write one by one: of more than three, those before the
/// last three; of two or three, the first, if every other one is at least 8 times as long. Chunks
/// have extent 1 there, unless a step has less than kStepChunkBytesMin.
/// @returns extents >= 1
Shape chunk_shape_by_rows(const Shape& shape, std::uint64_t element_bytes,
                          std::uint64_t target_bytes, std::uint64_t n_ranks);

/// Choose the smallest chunks of at least `least_bytes` that cut only one dimension, evenly: later
/// dimensions are complete, earlier ones have extent 1. Readers of maps and of published files
/// expect this. A smaller field is one chunk. A chunk has less than twice `least_bytes`, apart from
/// rounding up to complete rows. Not collective.
/// @returns extents >= 1
Shape chunk_shape_of_least(const Shape& shape, std::uint64_t element_bytes,
                           std::uint64_t least_bytes);

/// Choose a slab shape for contiguous storage: complete in all dimensions after the first that is
/// cut. Along that dimension slabs divide the blocks between common cuts, so that ranks own
/// complete slabs, unless they would be tiny.
/// @param cut_gcd  see DecompositionFacts
Shape slab_shape_for(const Shape& shape, std::uint64_t element_bytes, std::uint64_t target_bytes,
                     const Shape& cut_gcd = {});

// --- Chunks of consecutive boxes, the form of plotfiles.

/// Choose a chunk length that divides the cells of each box, so that no chunk holds cells of two
/// components. It is the longest one of at most `most` elements for which every chunk is a box or a
/// slab of a box; if none exists, the longest.
/// @returns 0 if such chunks would have fewer than `least` elements, or would be millions.
std::uint64_t chunk_length_for(const BoxSeries& boxes, std::uint64_t least, std::uint64_t most);

/// Shapes of the chunks of such a length. Immutable, so all threads may share it.
class BoxChunks {
 public:
  BoxChunks(const BoxSeries& boxes, std::uint64_t chunk_length);
  /// Return the distinct shapes of chunks in cells: the complete box, or a slab of it. Of one
  /// dimension if the length does not fit the box's rows.
  const std::vector<Shape>& shapes() const { return shapes_; }
  struct Part {
    std::size_t shape = 0;  ///< Index into shapes().
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
