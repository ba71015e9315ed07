#include "field/box_codec.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "core/encoding_notes.hpp"
#include "field/chunkwise_codec.hpp"

namespace tailrace {
std::string boxes_text(const FieldBoxes& boxes) {
  // A checksum, since there may be millions of boxes.
  std::uint64_t digest = boxes.bounds.size();
  const auto add = [&](std::uint64_t word) { digest = (digest ^ word) * 0x100000001B3U; };
  std::uint64_t n_boxes = 0;
  for (const BoxSeries::Run& run : boxes.series->runs) {
    add(run.n_boxes);
    for (const std::uint64_t extent : run.cells) add(extent);
    n_boxes += run.n_boxes;
  }
  for (const std::string& component : boxes.series->components) {
    add(std::hash<std::string>()(component));
  }
  for (const double bound : boxes.bounds) add(std::bit_cast<std::uint64_t>(bound));
  return std::to_string(n_boxes) + " boxes, their bounds and shapes of checksum " +
         std::to_string(digest);
}

// 512 cells are the smallest box that AMReX makes by default. Codecs that ignore shapes need large
// chunks.
std::uint64_t box_chunk_length(const BoxSeries& boxes, std::uint64_t element_bytes,
                               const FieldOptions& options, bool bounded) {
  constexpr std::uint64_t kLeastCells = 512;
  const std::uint64_t least_bytes =
      codec_entry(options.codec).chunks_store_shape ? 16U << 10 : 256U << 10;
  return chunk_length_for(boxes, bounded ? kLeastCells : least_bytes / element_bytes,
                          2 * options.chunk_bytes / element_bytes);
}

std::vector<double> reducible(std::span<const ValueRange> ranges) {
  std::vector<double> least;
  least.reserve(2 * ranges.size());
  for (const ValueRange& range : ranges) least.push_back(range.least);
  for (const ValueRange& range : ranges) least.push_back(-range.greatest);
  return least;
}

std::vector<double> absolute_bounds(std::span<const ErrorBound> bounds,
                                    std::span<const double> reduced) {
  std::vector<double> absolute;
  absolute.reserve(bounds.size());
  for (std::size_t c = 0; c < bounds.size(); ++c) {
    const double least = reduced[c];
    const double greatest = -reduced[bounds.size() + c];
    const bool any = least <= greatest;
    absolute.push_back(absolute_bound(bounds[c], any ? least : 0, any ? greatest : 0));
  }
  return absolute;
}

Status check_component_bounds(const std::string& name, std::span<const ErrorBound> bounds,
                              const FieldOptions& options) {
  const bool pointwise = std::ranges::any_of(
      bounds, [](const ErrorBound& bound) { return bound.mode == BoundMode::pw_rel; });
  const bool other_codec =
      options.codec_given && options.codec != kAutoCodec && options.codec != kYardstickCodec;
  const bool other_guard = options.guards.of_bound() || !options.guards.regions.empty();
  if (!pointwise && !other_codec && !other_guard) return Status();
  return Status(
      Code::unsupported,
      name + ": bounds of components need codec " + std::string(kYardstickCodec) +
          ", and exclude pw_rel bounds, guard=gradient, guard=laplacian and guard=region");
}

Status encode_by_boxes(const BoxSeries& boxes, std::span<const double> bounds, std::uint64_t length,
                       CodecRequest request, const std::string& plugin_path,
                       std::unique_ptr<Codec>& codec) {
  if (codec->name() != request.name)
    return Status();  // Values that are all equal have another
                      // codec.
  if (!codec_entry(request.name).chunks_store_shape) return Status();
  if (!request.guards.regions.empty() && (codec->lossy() || !bounds.empty())) {
    return Status(Code::unsupported, "guard=" + guards_text(request.guards) +
                                         ": region is not served for plotfile levels");
  }
  BoxChunks chunks(boxes, length);
  std::vector<std::shared_ptr<const Codec>> codecs;
  for (const Shape& shape : chunks.shapes()) {
    request.chunk_shape = shape;
    for (std::size_t c = 0; c < boxes.components.size(); ++c) {
      const bool as_before = c > 0 && (bounds.empty() || request.absolute_bound == bounds[c]);
      if (!bounds.empty()) request.absolute_bound = bounds[c];
      if (as_before) {
        codecs.push_back(codecs.back());
        continue;
      }
      TAILRACE_TAKE(std::unique_ptr<Codec> made, make_codec(request, plugin_path));
      codecs.push_back(std::move(made));
    }
  }
  const std::size_t n_components = codecs.size() / chunks.shapes().size();
  auto made = std::make_unique<ChunkwiseCodec>(
      std::move(codecs), [chunks = std::move(chunks), n_components](std::uint64_t chunk_index) {
        const BoxChunks::Part part = chunks.part(chunk_index);
        return part.shape * n_components + part.component;
      });
  made->take(codec);
  codec = std::move(made);
  return Status();
}

void describe_components(const BoxSeries& boxes, std::span<const double> bounds,
                         std::vector<NamedAttribute>& attributes) {
  // tailrace_absolute_bound is the largest component bound.
  for (NamedAttribute& attribute : attributes) {
    if (attribute.name == kBoundModeAttribute) attribute.value = {std::string("component")};
  }
  // The component runs are a separate attribute, because programs may change the bounds. Long
  // attributes do not fit into HDF5's object headers.
  constexpr std::size_t kMostRuns = 2000;
  std::vector<std::uint64_t> runs;
  for (const BoxSeries::Run& run : boxes.runs) {
    runs.insert(runs.end(), {run.n_boxes, n_elements(run.cells)});
  }
  if (runs.size() <= 2 * kMostRuns) attributes.push_back({kComponentRunsAttribute, {runs}});
  attributes.push_back(
      {kComponentBoundsAttribute, {std::vector<double>(bounds.begin(), bounds.end())}});
}

}  // namespace tailrace
