// Layout: where a chunk's bytes go. A policy that turns sizes into addresses; pure arithmetic.
//
// A layout says what must be known before an address can be given (sizes_needed) and where the base
// address comes from (base_from). The executor fetches that and calls place(). All layouts make the
// same standard HDF5 file; they differ only in gaps and in who waits for whom.
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

/// What a layout must know of a chunk's size before it can say where the chunk goes.
enum class SizesNeeded : std::uint8_t {
  none,       ///< The shape suffices.
  predicted,  ///< A prediction of the encoded size, before encoding.
  actual      ///< The encoded size itself.
};

/// Where the address of a rank's first byte comes from.
enum class BaseFrom : std::uint8_t {
  shape,   ///< A fixed place per field: base + chunk_index * capacity. No communication.
  prefix,  ///< An exclusive prefix sum over the ranks' capacities. Waits for the slowest rank: for
           ///< its encoder with SizesNeeded::actual, only for its sampling with predicted.
  claim    ///< An atomic move of the file's tail when the bytes are ready. Nobody waits.
};

/// The sizes of one chunk, as far as they are known.
struct ChunkSizes {
  std::uint64_t chunk_index = 0;      ///< Row-major in the field's grid.
  std::uint64_t raw_bytes = 0;        ///< Uncompressed, as it would be stored.
  std::uint64_t predicted_bytes = 0;  ///< Only for SizesNeeded::predicted.
  std::uint64_t encoded_bytes = 0;    ///< Only for SizesNeeded::actual.
};

/// A chunk's place: its address and how many bytes are reserved for it there.
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
  /// Whether chunks are stored unfiltered in one run of the file (HDF5's contiguous storage).
  virtual bool contiguous() const { return false; }
  /// Not null: a rank's chunks share one reserved run, the arena, into which they are packed by
  /// their encoded size as they become ready; this says how generous it is (layout/arena.hpp).
  virtual const SpaceGoal* arena_goal() const { return nullptr; }
  /// Bytes to reserve for one chunk. Not collective. Thread-safe.
  virtual std::uint64_t capacity(const ChunkSizes& sizes) const = 0;
  /// Addresses for `chunks`, none overlapping. With BaseFrom::shape, `base` is the address of the
  /// field's chunk 0; otherwise chunks are packed in the order given, from `base` on.
  /// Not collective. Thread-safe. Cost: O(chunks given).
  virtual std::vector<Placement> place(std::span<const ChunkSizes> chunks,
                                       std::uint64_t base) const;
};

/// One line per layout: name, summary for --help, how to make it for a field with these options.
struct LayoutEntry {
  std::string_view name;
  std::string_view summary;
  Result<std::unique_ptr<Layout>> (*make)(const FieldOptions& options);
};

/// All layouts, for --help and the conformance tests.
std::span<const LayoutEntry> layout_registry();

/// @param options  of the field: `space`, `expected_ratio` and `expected_error` count; its own
/// `layout` does not, since `name` is given.
/// @error invalid_argument  no layout of this name (the text lists those there are), or options
/// that it needs are missing.
Result<std::unique_ptr<Layout>> make_layout(std::string_view name,
                                            const FieldOptions& options = FieldOptions());

}  // namespace tailrace
