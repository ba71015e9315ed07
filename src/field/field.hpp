// Fields as the application defines them, and the reports on a field and on a step.
//
// Plain values, the same on every rank. field_state.hpp holds the engine's other data of a field.

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
  std::uint64_t more_unlimited = 0;  ///< Bit d: dimension d > 0 is unlimited too.
  /// The dataset whose filters the field's chunks keep: sources supply encoded chunks (BoxSource).
  /// Null: the chunks are encoded.
  std::shared_ptr<const StoredDataset> as_stored = nullptr;
  /// Boxes that are stored in the field one after the other, and that its chunks follow. Null: the
  /// field is an array.
  std::shared_ptr<const FieldBoxes> boxes = nullptr;
  /// Cells whose values may be dropped, under options.drop_covered. Null: all values are kept.
  std::shared_ptr<const CoveredCells> covered = nullptr;
  /// Masks for guard=region, in the form that region_levels() expects; empty: this caller cannot
  /// read masks.
  RegionMasks region_masks = {};
  /// HDF5's fill value of the dataset, which unwritten elements read as: the bytes of one element
  /// in native byte order. Empty: none is set. Default: options.fill_value.
  std::optional<Bytes> stored_fill = std::nullopt;
  /// True if the field is a copy of its source's values: the source's attributes are carried over,
  /// and only those about the encoding are rewritten (core/encoding_notes.hpp).
  bool keeps_source_notes = false;
  /// The dataset whose type, maximum extents, allocation time and fill time the field's dataset
  /// copies, as far as its layout and codec allow. Null: Tailrace's own choices.
  std::shared_ptr<const StoredDataset> like = nullptr;
  /// True if the values are stored in the dataset's header (compact). No rank puts them: the caller
  /// writes them by HDF5 once the dataset exists (Writer::on_metadata).
  bool in_header = false;
  /// Number of steps in one chunk of an entry, for a field over time. If it is more than one, the
  /// first dimension of the shape, and of a requested chunk shape, is time. An entry with fewer
  /// steps is the dataset's last.
  std::uint64_t steps_per_entry = 1;
  /// True if a note of a lossy encoding records options.fill_value, since nothing else in the
  /// dataset states it.
  bool notes_fill = false;
  /// Size of elements that are not numbers, such as compounds: codecs get their bytes, and `dtype`
  /// is u8. 0: elements of `dtype`.
  std::uint64_t opaque_bytes = 0;
  /// Names of the dataset's dimensions, slowest first, time included. Empty: they have no names.
  std::vector<std::string> dimensions = {};
  bool gathers_steps() const { return steps_per_entry > 1; }
  /// True if the last dimension counts the bytes of an element of `like`'s type.
  bool holds_bytes() const { return like != nullptr && like->bytes_axis; }
  bool grows() const {
    return extendable || more_unlimited != 0 || (like != nullptr && like->grows());
  }
  /// Extent up to which dimension d may grow; UINT64_MAX: unlimited.
  std::uint64_t limit(std::size_t d) const {
    if (d == 0 ? extendable : (more_unlimited >> d & 1U) != 0) return UINT64_MAX;
    return like != nullptr ? like->limit(d) : shape[d];
  }
  /// The field's name in messages: field "/path".
  std::string name() const { return "field \"" + path + "\""; }
  std::uint64_t element_bytes() const {
    return opaque_bytes > 0 ? opaque_bytes : dtype_bytes(dtype);
  }
  std::uint64_t raw_bytes() const { return n_elements(shape) * element_bytes(); }
  /// Extents of the dataset with `n` entries: `extents` of one entry, with a leading `n` for a
  /// field over time. If entries hold several steps, `extents` are those of the n-th entry.
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

/// Report on one field in one step. Sums and maxima are over all ranks; the same on every rank.
/// tailrace.h explains the listed numbers.
struct FieldReport {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  Shape chunk_shape;
  std::string other_type;  ///< Type of non-numeric elements, which are encoded as bytes; empty:
                           ///< `dtype`.
  ErrorBound bound;        ///< The requested bound.
  TAILRACE_FIELD_REPORT_LIST(TAILRACE_REPORT_MEMBER)
  double value_least = 0;  ///< Range of the finite, non-fill values; set only if it was needed.
  double value_greatest = 0;
  double verify_s = 0;          ///< Thread-seconds, all ranks; like encode_s.
  double expected_psnr_db = 0;  ///< Forecast from a sample's errors, under target=psnr=; 0: no
                                ///< target.
  /// Codecs that were compared for codec=auto, and the index of the chosen one; empty: the user
  /// named the codec. Only the step that chose has them: later steps of the field, or of its
  /// lineage, have none.
  std::vector<CandidateForecast> candidates;
  std::size_t chosen_candidate = 0;

  std::string_view type_text() const {
    return other_type.empty() ? dtype_name(dtype) : std::string_view(other_type);
  }
  /// The bound that max_error must not exceed, in its unit; 0 if the values are stored exactly.
  double bound_of_error() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
};

/// Report on one step. Times are the slowest rank's, or rank 0's where only rank 0 works; counts
/// are sums over the ranks.
struct StepReport {
  bool completed = true;  ///< False: a step was handed over, and no step preceded it.
  std::vector<FieldReport> fields;
  TAILRACE_STEP_REPORT_LIST(TAILRACE_REPORT_MEMBER)
  TAILRACE_APPLICATION_STEP_LIST(TAILRACE_REPORT_MEMBER)
  double read_s = 0;   ///< Slowest rank: pulling values from a BoxSource.
  double index_s = 0;  ///< Rank 0: chunk index, datasets, attributes.
};

/// One line for the user's log; never ends in a newline.
using LogCallback = std::function<void(const std::string&)>;

}  // namespace tailrace
