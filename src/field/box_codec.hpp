// Fields of one dimension in which boxes lie one behind the other, as plotfiles have them: chunks
// that are slabs of boxes, and bounds of components.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/verify.hpp"
#include "core/codec_registry.hpp"
#include "core/glob_options.hpp"
#include "core/options.hpp"
#include "hdf5/hdf5_file.hpp"
#include "policy/chunk_shape.hpp"
#include "trz/base/error_bound.hpp"

namespace tailrace {

/// What lies in a field, all of its elements.
struct FieldBoxes {
  std::shared_ptr<const BoxSeries> series;
  /// For each component, absolute, 0: exact; empty: the field's own bound is for all.
  std::vector<double> bounds;
};

/// A text that is equal on two ranks exactly if they know the same boxes and bounds, as good as.
std::string boxes_text(const FieldBoxes& boxes);

/// The length of chunks that follow the boxes; 0: they do not. Components with bounds of their own
/// want it also where larger chunks of several would be smaller.
std::uint64_t box_chunk_length(const BoxSeries& boxes, std::uint64_t element_bytes,
                               const FieldOptions& options, bool bounded);

/// The ranges of components, to be reduced by Reduction::min over ranks: the least value of each,
/// then the greatest negated.
std::vector<double> reducible(std::span<const ValueRange> ranges);
/// The bounds of components as absolute ones, by the reduced ranges.
std::vector<double> absolute_bounds(std::span<const ErrorBound> bounds,
                                    std::span<const double> reduced);

/// Whether components can have bounds of their own under these options. @error unsupported
Status check_component_bounds(const std::string& name, std::span<const ErrorBound> bounds,
                              const FieldOptions& options);

/// Let chunks of `length` elements be encoded as the slabs that they are, within the components'
/// bounds, if there are any: the header cannot say so, as all of a dataset's chunks have one shape
/// and bound there. A codec whose chunks do not tell their shape stays.
/// @param request  by which `codec`, whose filters the header has, was made.
Status encode_by_boxes(const BoxSeries& boxes, std::span<const double> bounds, std::uint64_t length,
                       CodecRequest request, const std::string& plugin_path,
                       std::unique_ptr<Codec>& codec);

/// What a dataset's attributes say of its components' bounds, in the place of one for all.
void describe_components(const BoxSeries& boxes, std::span<const double> bounds,
                         std::vector<NamedAttribute>& attributes);

}  // namespace tailrace
