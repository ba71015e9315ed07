#include "field/edge_codec.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/codec_registry.hpp"
#include "field/chunkwise_codec.hpp"

namespace tailrace {
namespace {

/// The axes at whose end the last chunk is cut.
std::vector<std::size_t> cut_axes(const ChunkGrid& grid) {
  std::vector<std::size_t> axes;
  for (std::size_t d = 0; d < grid.shape.size(); ++d) {
    if (grid.shape[d] % grid.chunk_shape[d] != 0) axes.push_back(d);
  }
  return axes;
}

/// Codec of a grid with edge chunks. It estimates all chunks by the header's codec, from which they
/// differ only in the padding.
class EdgeCodec final : public ChunkwiseCodec {
 public:
  using ChunkwiseCodec::ChunkwiseCodec;
  std::optional<Estimate> estimate(const StridedValues& values) const override {
    return inner_->estimate(values);
  }
};

}  // namespace

Status encode_edges_apart(const ChunkGrid& grid, CodecRequest request,
                          const std::string& plugin_path, std::unique_ptr<Codec>& codec) {
  const std::vector<std::size_t> axes = cut_axes(grid);
  if (axes.empty()) return Status();
  constexpr std::size_t kMostCut = 8;
  if (axes.size() > kMostCut) {
    return Status(Code::unsupported,
                  "guard=" + guards_text(request.guards) + ": chunks of " +
                      shape_text(grid.chunk_shape) + " extend past the end of " +
                      std::to_string(axes.size()) +
                      " axes, at most 8 are possible; choose a chunk= that divides the shape");
  }
  // Codec number n is for chunks that are cut along the k-th of these axes, for each bit k of n.
  std::vector<std::shared_ptr<const Codec>> codecs;
  const std::size_t n_sets = std::size_t{1} << axes.size();
  for (std::size_t set = 0; set < n_sets; ++set) {
    request.counted = request.chunk_shape;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if ((set >> k & 1U) == 0) continue;
      const std::size_t d = axes[k];
      const std::size_t first = request.chunk_shape.size() - grid.shape.size();
      request.counted[first + d] = grid.shape[d] % grid.chunk_shape[d];
    }
    TAILRACE_TAKE(std::unique_ptr<Codec> made, make_codec(request, plugin_path));
    codecs.push_back(std::move(made));
  }
  const auto which = [grid, axes](std::uint64_t chunk_index) {
    const Shape at = grid.coordinates(chunk_index);
    std::size_t set = 0;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const std::size_t d = axes[k];
      const bool last = at[d] == grid.shape[d] / grid.chunk_shape[d];
      set |= last ? std::size_t{1} << k : 0;
    }
    return set;
  };
  auto made = std::make_unique<EdgeCodec>(std::move(codecs), which);
  made->take(codec);
  codec = std::move(made);
  return Status();
}

}  // namespace tailrace
