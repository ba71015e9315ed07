#include "field/box_codec.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

namespace tailrace {
namespace {

/// Chunks of one dimension for HDF5, each of which is encoded as the slab of a box that it is.
class BoxCodec final : public CodecOver {
 public:
  /// @param codecs  for each shape, for each component
  BoxCodec(BoxChunks chunks, std::vector<std::shared_ptr<const Codec>> codecs)
      : CodecOver(nullptr), chunks_(std::move(chunks)), codecs_(std::move(codecs)) {}
  /// The codec whose filters the header has. Without memory it stays where it is.
  void take(std::unique_ptr<Codec>& of_header) {
    inner_ = std::shared_ptr<const Codec>(std::move(of_header));
  }

  const Codec& of_chunk(std::uint64_t chunk_index) const override {
    const BoxChunks::Part part = chunks_.part(chunk_index);
    return *codecs_[part.shape * (codecs_.size() / chunks_.shapes().size()) + part.component];
  }
  bool lossy() const override {
    return std::ranges::any_of(codecs_, [](const auto& codec) { return codec->lossy(); });
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    std::uint64_t most = inner_->working_bytes(n_bytes);
    for (const auto& codec : codecs_) most = std::max(most, codec->working_bytes(n_bytes));
    return most;
  }
  Status decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                     std::span<std::byte> values) const override {
    return inner_->decode_into(encoded, filter_mask, values);
  }

 private:
  BoxChunks chunks_;
  std::vector<std::shared_ptr<const Codec>> codecs_;
};

}  // namespace

std::string boxes_text(const FieldBoxes& boxes) {
  // There may be millions.
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

// 512 cells are the least box that AMReX makes by itself. Codecs that make nothing of shapes want
// large chunks.
std::uint64_t box_chunk_length(const BoxSeries& boxes, std::uint64_t element_bytes,
                               const FieldOptions& options, bool bounded) {
  constexpr std::uint64_t kLeastCells = 512;
  const std::uint64_t least_bytes =
      codec_entry(options.codec).chunks_say_shape ? 16U << 10 : 256U << 10;
  return chunk_length_for(boxes, bounded ? kLeastCells : least_bytes / element_bytes,
                          2 * options.chunk_bytes / element_bytes);
}

Result<std::vector<ComponentBound>> parse_component_bounds(std::string_view entry,
                                                           std::string_view form) {
  const std::size_t colon = entry.substr(0, entry.find('=')).rfind(':');
  const std::string glob(trimmed(entry.substr(0, std::min(colon, entry.size()))));
  if (colon == std::string_view::npos || glob.empty()) {
    return Status(Code::invalid_argument, "expected " + std::string(form));
  }
  TAILRACE_TAKE(const std::vector<KeyValue> pairs,
                split_key_values(trimmed(entry.substr(colon + 1))));
  std::vector<ComponentBound> components;
  for (const auto& [key, value] : pairs) {
    if (key != "bound") {
      return Status(Code::invalid_argument,
                    "a component shares its dataset with others, and can have a bound= of its "
                    "own, not " +
                        key + "=");
    }
    TAILRACE_TAKE(const ErrorBound bound, parse_error_bound(value));
    components.push_back({glob, bound});
  }
  return components;
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
      options.codec_given && options.codec != auto_codec && options.codec != yardstick_codec;
  if (!pointwise && !other_codec && options.guards.gradient == 0) return Status();
  return Status(Code::unsupported, name + ": components with bounds of their own need codec " +
                                       std::string(yardstick_codec) +
                                       ", and no bound of mode pw_rel nor guard=gradient beside "
                                       "them");
}

Status encode_by_boxes(const BoxSeries& boxes, std::span<const double> bounds, std::uint64_t length,
                       CodecRequest request, const std::string& plugin_path,
                       std::unique_ptr<Codec>& codec) {
  if (codec->name() != request.name) return Status();  // Of values that are all alike.
  if (!codec_entry(request.name).chunks_say_shape) return Status();
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
  auto made = std::make_unique<BoxCodec>(std::move(chunks), std::move(codecs));
  made->take(codec);
  codec = std::move(made);
  return Status();
}

void describe_components(const BoxSeries& boxes, std::span<const double> bounds,
                         std::vector<NamedAttribute>& attributes) {
  // tailrace_absolute_bound is the largest of them.
  for (NamedAttribute& attribute : attributes) {
    if (attribute.name == "tailrace_bound_mode") attribute.value = {std::string("component")};
  }
  // Which values these are of is said apart from what a program may change; HDF5 has no room for
  // long attributes.
  constexpr std::size_t kMostRuns = 2000;
  std::vector<std::uint64_t> runs;
  for (const BoxSeries::Run& run : boxes.runs) {
    runs.insert(runs.end(), {run.n_boxes, n_elements(run.cells)});
  }
  if (runs.size() <= 2 * kMostRuns) attributes.push_back({"tailrace_component_runs", {runs}});
  attributes.push_back(
      {"tailrace_component_bounds", {std::vector<double>(bounds.begin(), bounds.end())}});
}

}  // namespace tailrace
