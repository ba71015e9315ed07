// Chunks that reach beyond the end of the array, for guards over all values of a chunk: padding
// does not count.

#pragma once

#include <memory>
#include <string>

#include "core/codec.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Encode chunks at the ends of the grid by codecs that know which of their values count; all
/// others, and the header, use `codec` unchanged. A grid without such chunks changes nothing. Cost:
/// one codec for each set of axes at whose end chunks are cut, at most 2^(axes cut).
/// @param request  the request that made `codec`. Its chunks may have an additional first axis of
/// extent 1.
Status encode_edges_apart(const ChunkGrid& grid, CodecRequest request,
                          const std::string& plugin_path, std::unique_ptr<Codec>& codec);

}  // namespace tailrace
