// Fields as the application defines them, and what is reported of them and of a step.
//
// Plain values, the same on every rank. What the engine knows of a field besides: field_state.hpp.

#pragma once

#include <tailrace/report_lists.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "hdf5/dataset_schema.hpp"
#include "model/dump_time.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/regions.hpp"

namespace tailrace {

class CoveredCells;
struct FieldBoxes;

/// A field as the application defines it; the same on every rank.
struct FieldDefinition {
  std::string path;  ///< Absolute HDF5 path; missing groups are created.
  DType dtype = DType::f32;
  Shape shape;  ///< Global extents (without the time dimension if options.over_time).
  FieldOptions options;
  bool extendable =
      false;  ///< The dataset's first dimension is unlimited (netCDF record dimension).
  std::uint64_t more_unlimited = 0;  ///< Bit d: dimension d > 0 is unlimited, too.
  /// Its chunks keep the filters that this dataset has: sources give them encoded (BoxSource).
  std::shared_ptr<const StoredDataset> as_stored = nullptr;
  /// Boxes that lie in it one behind the other, which its chunks follow; null: it is an array.
  std::shared_ptr<const FieldBoxes> boxes = nullptr;
  /// Under options.drop_covered: the cells whose values need not be kept; null: all are.
  std::shared_ptr<const CoveredCells> covered = nullptr;
  /// Of guard=region, as region_levels() takes them; empty: a mask cannot be read here.
  RegionMasks region_masks = {};
  /// HDF5's fill value of the dataset, which unwritten elements read as: the bytes of one element
  /// in native byte order; empty: none is set. Default: options.fill_value.
  std::optional<Bytes> stored_fill = std::nullopt;
  /// A copy of the same values: what its source says of them is carried over, and only how they are
  /// encoded is said anew (core/encoding_notes.hpp).
  bool words_of_source = false;
  /// The dataset whose type, limits and times of allocation and filling the field's dataset gets,
  /// as far as its layout and codec allow; null: Tailrace's own.
  std::shared_ptr<const StoredDataset> like = nullptr;
  /// The values lie in the dataset's header (compact). No rank puts any: the caller writes them by
  /// HDF5 when the dataset exists (Writer::on_metadata).
  bool in_header = false;
  /// Over time: steps that a chunk of an entry holds. More than one: the shape, and the chunk shape
  /// that is asked for, have time in front; an entry of fewer steps is the dataset's last.
  std::uint64_t steps_per_entry = 1;
  bool gathers_steps() const { return steps_per_entry > 1; }
  /// The last dimension counts the bytes of an element of `like`'s type.
  bool holds_bytes() const { return like != nullptr && like->bytes_axis; }
  bool grows() const {
    return extendable || more_unlimited != 0 || (like != nullptr && like->grows());
  }
  /// Extent up to which dimension d may grow; UINT64_MAX: without limit.
  std::uint64_t limit(std::size_t d) const {
    if (d == 0 ? extendable : (more_unlimited >> d & 1U) != 0) return UINT64_MAX;
    return like != nullptr ? like->limit(d) : shape[d];
  }
  /// As messages call it: field "/path".
  std::string name() const { return "field \"" + path + "\""; }
  std::uint64_t raw_bytes() const { return n_elements(shape) * dtype_bytes(dtype); }
  /// Of the dataset: `extents` of one entry, with a leading `n` for a field over time. Where
  /// entries are of several steps, of the n-th.
  Shape with_entries(std::uint64_t n, Shape extents) const {
    if (!options.over_time) return extents;
    if (!gathers_steps()) {
      extents.insert(extents.begin(), n);
    } else if (n > UINT64_MAX / steps_per_entry) {
      extents.front() = UINT64_MAX;
    } else if (n > 1) {
      extents.front() += (n - 1) * steps_per_entry;
    }
    return extents;
  }
};

/// What became of one field in one step; sums and maxima over all ranks, the same on every rank.
/// tailrace.h says what the listed numbers mean.
struct FieldReport {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  Shape chunk_shape;
  std::string other_type;  ///< Of elements that are no numbers, encoded as bytes; empty: `dtype`.
  ErrorBound bound;        ///< As asked.
  TAILRACE_FIELD_REPORT_LIST(TAILRACE_REPORT_MEMBER)
  double value_least = 0;  ///< Of the finite, non-fill values; only if they were needed.
  double value_greatest = 0;
  double verify_s = 0;          ///< Thread-seconds, all ranks; as encode_s.
  double expected_psnr_db = 0;  ///< Under target=psnr=: by the errors of a sample; 0: no target.
  /// Codecs that were compared for codec=auto, and which one won; empty: it was named. By the step
  /// that chose: later steps of the field, or of its lineage, have none.
  std::vector<CandidateForecast> candidates;
  std::size_t chosen_candidate = 0;

  std::string_view type_text() const {
    return other_type.empty() ? dtype_name(dtype) : std::string_view(other_type);
  }
  /// What max_error is held to: in its unit, 0 if the field is kept exactly.
  double bound_of_error() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
};

/// What became of one step: times of the slowest rank, of rank 0 where it alone works, and sums
/// over the ranks for counts.
struct StepReport {
  bool completed = true;  ///< False: a step was handed over, and there was none before it.
  std::vector<FieldReport> fields;
  TAILRACE_STEP_REPORT_LIST(TAILRACE_REPORT_MEMBER)
  TAILRACE_APPLICATION_STEP_LIST(TAILRACE_REPORT_MEMBER)
  double read_s = 0;   ///< Slowest rank, pulling values from a BoxSource.
  double index_s = 0;  ///< Rank 0: chunk index, datasets, attributes.
};

/// One line for the user's log; never ends in a newline.
using LogCallback = std::function<void(const std::string&)>;

}  // namespace tailrace
