// Layout: the policy that converts chunk sizes to addresses; pure arithmetic.
//
// A layout declares which sizes it needs for an address (sizes_needed) and how the base address is
// determined (base_from). The executor obtains both and calls place(). All layouts produce the same
// standard HDF5 file; they differ only in gaps and in which ranks wait for others.
// Source: Bicer et al. 2014 (sparse, dense, hybrid), Jin et al. 2022 (predictive); claimed and
// arena are ours. docs/layouts.md compares them.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Size of a chunk that a layout needs to determine its address.
enum class SizesNeeded : std::uint8_t {
  none,       ///< The shape is sufficient.
  predicted,  ///< A prediction of the encoded size, before encoding.
  actual      ///< The encoded size itself.
};

/// Origin of the address of a rank's first byte.
enum class BaseFrom : std::uint8_t {
  shape,   ///< Fixed position per field: base + chunk_index * capacity. No communication.
  prefix,  ///< Exclusive prefix sum over the ranks' capacities. Waits for the slowest rank: for its
           ///< encoder with SizesNeeded::actual, only for its sampling with predicted.
  claim    ///< Atomic advance of the file's tail when the bytes are ready. No rank waits.
};

/// Known sizes of one chunk.
struct ChunkSizes {
  std::uint64_t chunk_index = 0;      ///< Row-major index in the field's grid.
  std::uint64_t raw_bytes = 0;        ///< Size if stored uncompressed.
  std::uint64_t predicted_bytes = 0;  ///< Only for SizesNeeded::predicted.
  std::uint64_t encoded_bytes = 0;    ///< Only for SizesNeeded::actual.
};

/// Address of a chunk, and the number of bytes reserved there.
struct Placement {
  std::uint64_t address = 0;
  std::uint64_t capacity = 0;
};

class Layout {
 public:
  virtual ~Layout() = default;
  virtual std::string_view name() const = 0;
  virtual SizesNeeded sizes_needed() const = 0;
  virtual BaseFrom base_from() const = 0;
  /// True if chunks are stored unfiltered in one run of the file (HDF5's contiguous storage).
  virtual bool contiguous() const { return false; }
  /// Space goal of an arena (layout/arena.hpp), or null. With an arena, a rank's chunks share one
  /// reserved run, into which they are packed by their encoded size as they become ready.
  virtual const SpaceGoal* arena_goal() const { return nullptr; }
  /// Bytes to reserve for one chunk. Not collective. Thread-safe.
  virtual std::uint64_t capacity(const ChunkSizes& sizes) const = 0;
  /// Compute disjoint addresses for `chunks`. With BaseFrom::shape, `base` is the address of the
  /// field's chunk 0; otherwise chunks are packed in the given order, starting at `base`.
  /// Not collective. Thread-safe. Cost: O(number of chunks).
  virtual std::vector<Placement> place(std::span<const ChunkSizes> chunks,
                                       std::uint64_t base) const;
};

/// Registry entry of a layout: name, summary for --help, factory for a field's options.
struct LayoutEntry {
  std::string_view name;
  std::string_view summary;
  Result<std::unique_ptr<Layout>> (*make)(const FieldOptions& options);
};

/// All layouts, for --help and the conformance tests.
std::span<const LayoutEntry> layout_registry();

/// Create a layout by name.
/// @param options  options of the field: `space`, `expected_ratio` and `expected_error` are used,
/// `layout` is ignored.
/// @error invalid_argument  unknown name (the text lists the known ones), or required options are
/// missing.
Result<std::unique_ptr<Layout>> make_layout(std::string_view name,
                                            const FieldOptions& options = FieldOptions());

}  // namespace tailrace
