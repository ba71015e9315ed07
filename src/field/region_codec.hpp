// Datasets with regions that have tighter bounds (guard=region=): a chunk that a region touches is
// encoded by a codec made for it, which knows the bound of each value.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "field/field.hpp"
#include "trz/base/regions.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Makes the codec of one chunk. @param counted  extents of the chunk within the array.
/// Thread-safe.
using RegionCodecMaker =
    std::function<Result<std::unique_ptr<Codec>>(RegionLevels tighter, const Shape& counted)>;

/// Encode chunks that regions touch by the codecs that `make` returns; all others, and the header,
/// use `codec` unchanged. Without regions this does nothing.
/// @param masks  in the form that region_levels() expects.
/// @param grows  the array may grow into the padding of chunks.
void tighten_in_regions(std::vector<RegionGuard> regions, RegionMasks masks, bool grows,
                        std::uint64_t element_bytes, RegionCodecMaker make,
                        std::unique_ptr<Codec>& codec);

/// Check that a new field can have the regions of these guards, for any bound.
/// @param by_boxes  its chunks follow a plotfile's boxes.
/// @error see tighten_field()
Status check_field_regions(const FieldDefinition& definition, const Guards& guards, bool by_boxes);

/// tighten_in_regions() for a new field; checks its regions.
/// @param request  the request that made `codec`.
/// @error invalid_argument  a box does not fit the dataset.
/// @error unsupported  levels of plotfiles; a mask that this caller cannot read; a region over time
/// that does not cover all of the first axis, which is time.
Status tighten_field(const FieldDefinition& definition, const CodecRequest& request,
                     const std::string& plugin_path, std::unique_ptr<Codec>& codec);

/// tighten_in_regions() for an existing dataset that records these guards.
/// @param make  makes the header's codec with the guards of one chunk.
/// @error invalid_argument  a region with another number of axes.
Status tighten_stored(const Guards& guards, const Shape& shape, std::uint64_t element_bytes,
                      std::function<std::unique_ptr<Codec>(const ValueGuards&)> make,
                      std::unique_ptr<Codec>& codec);

}  // namespace tailrace
