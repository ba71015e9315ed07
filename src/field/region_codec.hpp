// Datasets of which regions keep tighter bounds (guard=region=): each chunk that a region touches
// is encoded by a codec of its own, which knows which of its values lie where.

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

/// Makes the codec of one chunk. @param counted  of the chunk what is the array's. Thread-safe.
using RegionCodecMaker =
    std::function<Result<std::unique_ptr<Codec>>(RegionLevels tighter, const Shape& counted)>;

/// Let chunks that regions touch be encoded by what `make` makes of them; all others, and the
/// header, by `codec` as it is. No regions change nothing.
/// @param masks  as region_levels() takes them.  @param grows  what pads chunks may become values.
void tighten_in_regions(std::vector<RegionGuard> regions, RegionMasks masks, bool grows,
                        std::uint64_t element_bytes, RegionCodecMaker make,
                        std::unique_ptr<Codec>& codec);

/// Whether a new field can have these guards' regions, whatever its bound comes to.
/// @param by_boxes  its chunks follow a plotfile's boxes.  @error as tighten_field
Status check_field_regions(const FieldDefinition& definition, const Guards& guards, bool by_boxes);

/// The same for a new field, whose regions are checked. @param request  by which `codec` was made.
/// @error invalid_argument  a box that is none of the dataset; time is along its first axis, and
/// all of it is meant.  @error unsupported  levels of plotfiles; a mask that nobody reads here.
Status tighten_field(const FieldDefinition& definition, const CodecRequest& request,
                     const std::string& plugin_path, std::unique_ptr<Codec>& codec);

/// The same for a dataset that is there and records these guards. @param make  the codec of its
/// header with guards of one chunk. @error invalid_argument  a region of another number of axes.
Status tighten_stored(const Guards& guards, const Shape& shape, std::uint64_t element_bytes,
                      std::function<std::unique_ptr<Codec>(const ValueGuards&)> make,
                      std::unique_ptr<Codec>& codec);

}  // namespace tailrace
