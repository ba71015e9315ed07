#include "field/region_codec.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "core/codec_registry.hpp"

namespace tailrace {
namespace {

class RegionCodec final : public CodecOver {
 public:
  RegionCodec(std::shared_ptr<const Codec> others, std::vector<RegionGuard> regions,
              RegionMasks masks, bool grows, std::uint64_t element_bytes, RegionCodecMaker make)
      : CodecOver(std::move(others)),
        regions_(std::move(regions)),
        masks_(std::move(masks)),
        behind_too_(grows && masks_.empty()),
        element_bytes_(element_bytes),
        make_(std::move(make)) {}

  const Codec* keeping_decoded() const override { return nullptr; }
  const Codec& of_chunk(std::uint64_t chunk_index) const override {
    return inner_->of_chunk(chunk_index);
  }

  Result<std::unique_ptr<Codec>> made_for(const ChunkGrid& grid,
                                          std::uint64_t chunk_index) const override {
    std::unique_ptr<Codec> codec;
    const Status made = local_part([&] {
      const Box own = grid.clipped_box(chunk_index);
      const Box box = behind_too_ ? grid.full_box(chunk_index) : own;
      TAILRACE_TAKE(RegionLevels levels, region_levels(regions_, masks_, box, grid.chunk_shape));
      if (levels.empty()) return Status();
      TAILRACE_TAKE(codec, make_(std::move(levels), own.count));
      return Status();
    });
    if (!made.ok()) return made.within("guard=region");
    return codec;
  }

  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    // The decoded values for the comparison, the chunk in the other of two encodings, and a level
    // for each value; with masks also their values, and a mark for each value.
    const std::uint64_t n_values = n_bytes / element_bytes_;
    const std::uint64_t of_masks = masks_.empty() ? 0 : 9 * n_values;
    return inner_->working_bytes(n_bytes) + n_bytes + inner_->encoded_bytes_max(n_bytes) +
           n_values + of_masks;
  }
  Result<EncodedBytes> encode_from(std::span<const std::byte> values) const override {
    return inner_->encode_from(values);
  }
  bool encodes_apart() const override { return inner_->encodes_apart(); }
  Status decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                     std::span<std::byte> values) const override {
    return inner_->decode_into(encoded, filter_mask, values);
  }
  /// The header's codec encodes chunks that no region touches.
  std::optional<Estimate> estimate(const StridedValues& values) const override {
    return inner_->estimate(values);
  }

 private:
  std::vector<RegionGuard> regions_;
  RegionMasks masks_;
  bool behind_too_;  ///< Values beyond the array's end count, because the array may grow.
  std::uint64_t element_bytes_;
  RegionCodecMaker make_;
};

std::string guards_prefix(const Guards& guards) { return "guard=" + guards_text(guards) + ": "; }

/// Remove time from the regions of a field over time, whose shape lacks it unless steps are
/// gathered.
Status drop_time(const FieldDefinition& definition, std::vector<RegionGuard>& regions) {
  for (RegionGuard& region : regions) {
    if (!region.mask.empty()) continue;
    if (region.begin[0] != 0 || region.end[0] != RegionGuard::kOpenEnd) {
      return Status(Code::unsupported, "guard=region=" + region_text(region) +
                                           ": the first axis of a field over time is time, and a "
                                           "region covers all steps; write * for that axis");
    }
    if (definition.gathers_steps()) continue;
    region.begin.erase(region.begin.begin());
    region.end.erase(region.end.begin());
  }
  return Status();
}

/// Bit d: dimension d may grow.
std::uint64_t growing_axes(const FieldDefinition& definition) {
  if (definition.options.over_time) return 1;
  return definition.more_unlimited | (definition.extendable ? 1U : 0U);
}

}  // namespace

void tighten_in_regions(std::vector<RegionGuard> regions, RegionMasks masks, bool grows,
                        std::uint64_t element_bytes, RegionCodecMaker make,
                        std::unique_ptr<Codec>& codec) {
  if (regions.empty()) return;
  std::shared_ptr<const Codec> others(std::move(codec));
  codec = std::make_unique<RegionCodec>(std::move(others), std::move(regions), std::move(masks),
                                        grows, element_bytes, std::move(make));
}

Status check_field_regions(const FieldDefinition& definition, const Guards& guards, bool by_boxes) {
  if (guards.regions.empty()) return Status();
  if (by_boxes || definition.covered != nullptr) {
    return Status(Code::unsupported,
                  guards_prefix(guards) + "region is not served for plotfile levels");
  }
  if (has_masks(guards.regions) && definition.region_masks.empty()) {
    return Status(Code::unsupported, guards_prefix(guards) + kMaskRefusal);
  }
  return check_regions(guards.regions, definition.with_entries(1, definition.shape),
                       growing_axes(definition));
}

Status tighten_field(const FieldDefinition& definition, const CodecRequest& request,
                     const std::string& plugin_path, std::unique_ptr<Codec>& codec) {
  std::vector<RegionGuard> regions = request.guards.regions;
  if (regions.empty()) return Status();
  TAILRACE_TRY(check_field_regions(definition, request.guards, definition.boxes != nullptr));
  if (definition.options.over_time) TAILRACE_TRY(drop_time(definition, regions));
  const auto make = [request, plugin_path](RegionLevels tighter, const Shape& counted) {
    CodecRequest of_chunk = request;
    of_chunk.tighter = std::move(tighter);
    of_chunk.counted = request.chunk_shape;
    std::ranges::copy(counted,
                      of_chunk.counted.end() - static_cast<std::ptrdiff_t>(counted.size()));
    if (of_chunk.counted == request.chunk_shape) of_chunk.counted.clear();
    return make_codec(of_chunk, plugin_path);
  };
  tighten_in_regions(std::move(regions), definition.region_masks, definition.grows(),
                     dtype_bytes(definition.dtype), make, codec);
  return Status();
}

Status tighten_stored(const Guards& guards, const Shape& shape, std::uint64_t element_bytes,
                      std::function<std::unique_ptr<Codec>(const ValueGuards&)> make,
                      std::unique_ptr<Codec>& codec) {
  constexpr std::uint64_t kAny = UINT64_MAX;  // The dataset may have been cut.
  TAILRACE_TRY(check_regions(guards.regions, shape, kAny));
  const auto make_one = [guards, make = std::move(make)](
                            RegionLevels tighter, const Shape&) -> Result<std::unique_ptr<Codec>> {
    ValueGuards of_chunk(guards, 0, 0);
    of_chunk.tighter = std::move(tighter);
    std::unique_ptr<Codec> made = make(of_chunk);
    if (made == nullptr)
      return Status(Code::internal, "cannot recreate the codec from the dataset's header");
    return made;
  };
  tighten_in_regions(guards.regions, {}, true, element_bytes, make_one, codec);
  return Status();
}

}  // namespace tailrace
