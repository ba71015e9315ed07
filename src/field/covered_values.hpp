// What the values of covered cells become (core/covered_cells.hpp) where they need not be kept:
// what makes the chunk smallest, of what makes sense to who looks at it.
//
// That is one value, the mean of what was there, under a lossy codec also a smooth continuation of
// the chunk's other cells, or what was there: of analytic fields that may be the smallest. Loose
// bounds take the continuation, as they predict it; tight ones the mean. A chunk that is covered
// whole becomes its mean. All lie between the least and the greatest value of the chunk, where it
// holds several components between those of their own.

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

/// Replace the covered ones of a chunk's values. Values that are not finite, or fill values, are
/// not gone by; covered ones are replaced, too. Thread-safe. Cost: O(cells).
/// @param shape  how the values lie, at most three axes, slowest first.
/// @param covered  a mark for each value; not 0: covered.
/// @param smooth  continue the others; else one value.
void replace_covered(DType dtype, const Shape& shape, std::span<const std::uint8_t> covered,
                     bool smooth, std::optional<double> fill_value, std::span<std::byte> values);

/// For a field of f32 or f64 that is a plotfile's level, whose chunks and codec are settled. Null:
/// nothing would be gained.
/// @param boxes  by which its chunks are cut; null: by none.
std::shared_ptr<const ChunkEdit> edit_covered(std::shared_ptr<const CoveredCells> cells,
                                              const BoxSeries* boxes,
                                              const FieldDefinition& definition,
                                              const ResolvedField& resolved);

/// What a dataset's attributes say of cells whose values were not kept.
NamedAttribute covered_attribute(const CoveredCells& cells);

}  // namespace tailrace
