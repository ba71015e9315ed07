// Replacement of the values of covered cells (core/covered_cells.hpp) that need not be kept: the
// choice that makes the chunk smallest, among those that still look sensible.
//
// The choices are the original values, which may be smallest for analytic fields, and one value,
// the mean of the covered cells. A lossy codec adds a third: a smooth continuation of the chunk's
// other cells. With loose bounds the continuation is smallest, because the predictor follows it;
// with tight bounds the mean is. A chunk that is completely covered becomes its mean. All new
// values lie within the range of the chunk's values; if the chunk holds several components, within
// that of their component.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/covered_cells.hpp"
#include "exec/field_plan.hpp"
#include "hdf5/hdf5_file.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace {

struct FieldDefinition;
struct ResolvedField;

/// Replace the covered values of a chunk. Values that are not finite, and fill values, do not
/// influence the result; covered ones are replaced too. Thread-safe. Cost: O(cells).
/// @param shape  shape of the values, at most three axes, slowest first.
/// @param covered  a mark for each value; not 0: covered.
/// @param smooth  continue the other values; else one value.
void replace_covered(DType dtype, const Shape& shape, std::span<const std::uint8_t> covered,
                     bool smooth, std::optional<double> fill_value, std::span<std::byte> values);

/// Make the edit of covered values for a field of f32 or f64 that is a plotfile's level. Its chunks
/// and codec are already resolved. Null: an edit would gain nothing.
/// @param boxes  boxes that the chunks follow; null: none.
std::shared_ptr<const ChunkEdit> edit_covered(std::shared_ptr<const CoveredCells> cells,
                                              const BoxSeries* boxes,
                                              const FieldDefinition& definition,
                                              const ResolvedField& resolved);

/// Attribute that records the cells whose values were not kept.
NamedAttribute covered_attribute(const CoveredCells& cells);

}  // namespace tailrace
