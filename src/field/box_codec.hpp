// One-dimensional fields that store boxes one after the other, as plotfiles do: chunks that are
// slabs of boxes, and bounds for each component.

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

/// Boxes that a field stores; they cover all of its elements.
struct FieldBoxes {
  std::shared_ptr<const BoxSeries> series;
  /// Absolute bound for each component, 0: exact; empty: the field's bound applies to all.
  std::vector<double> bounds;
};

/// Text that is equal on two ranks if they know the same boxes and bounds, and almost surely
/// different otherwise.
std::string boxes_text(const FieldBoxes& boxes);

/// Length of chunks that follow the boxes; 0: the chunks do not follow them. With bounds for each
/// component, chunks follow the boxes even if larger chunks of several boxes would compress better.
std::uint64_t box_chunk_length(const BoxSeries& boxes, std::uint64_t element_bytes,
                               const FieldOptions& options, bool bounded);

/// Ranges of components in a form that Reduction::min reduces over ranks: the least value of each,
/// then the negated greatest.
std::vector<double> reducible(std::span<const ValueRange> ranges);
/// Absolute bounds of components, from the reduced ranges.
std::vector<double> absolute_bounds(std::span<const ErrorBound> bounds,
                                    std::span<const double> reduced);

/// Check that components can have separate bounds under these options. @error unsupported
Status check_component_bounds(const std::string& name, std::span<const ErrorBound> bounds,
                              const FieldOptions& options);

/// Encode chunks of `length` elements as the slabs that they are, within the components' bounds, if
/// any. The header cannot express this, because it records one chunk shape and one bound for the
/// dataset. A codec whose chunks do not record their shape is left unchanged.
/// @param request  the request that made `codec`, whose filters the header has.
Status encode_by_boxes(const BoxSeries& boxes, std::span<const double> bounds, std::uint64_t length,
                       CodecRequest request, const std::string& plugin_path,
                       std::unique_ptr<Codec>& codec);

/// Replace the attributes for one bound by those for the components' bounds.
void describe_components(const BoxSeries& boxes, std::span<const double> bounds,
                         std::vector<NamedAttribute>& attributes);

}  // namespace tailrace
