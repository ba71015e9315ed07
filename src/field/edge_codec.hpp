// Chunks that reach over the array's end, for guards of all values of a chunk: what is padded does
// not count.

#pragma once

#include <memory>
#include <string>

#include "core/codec.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Let chunks at the ends of the grid be encoded by codecs that know which of their values count;
/// all others, and the header, by `codec` as it is. A grid without such chunks changes nothing.
/// Cost: one codec for each set of axes at whose end chunks are cut, at most 2^(axes cut).
/// @param request  by which `codec` was made. Its chunks may have an axis more, the first, of 1.
Status encode_edges_apart(const ChunkGrid& grid, CodecRequest request,
                          const std::string& plugin_path, std::unique_ptr<Codec>& codec);

}  // namespace tailrace
