// Attributes of a field: those of conventions, interpreted alike for HDF5, netCDF-4 and netCDF
// classic; and Tailrace's own, for `tailrace verify` and `tailrace info`.
//
// The Writer sets Tailrace's attributes (docs/format.md). A dataset without them is ordinary:
// `by_tailrace` is false, and nothing is known about its error bound.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/copied_notes.hpp"
#include "core/losses.hpp"
#include "core/stated_attribute.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/guards.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

struct FieldAttributes {
  bool by_tailrace = false;  ///< tailrace_codec exists, or the file's note covers the dataset.
  /// True if the dataset records its losses as unknown. Then by_tailrace is false, whatever the
  /// file's note says.
  bool losses_unknown = false;
  std::string codec;           ///< "sz3"; empty: lossless, and the filters identify it.
  std::string codec_version;   ///< Plug-in file and version, or "built in".
  std::string version;         ///< Version of the Tailrace that wrote the dataset.
  ErrorBound bound;            ///< Bound as requested.
  double absolute_bound = 0;   ///< Bound as used, in the field's unit; 0: exact, or mode pw_rel.
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; else 0.
  Guards guards;               ///< Properties that the values preserve in addition to the bound.
  /// Bounds of all lossy encodings, if the dataset was encoded from lossy values; the bound is
  /// their total. Also set under losses_unknown.
  std::optional<Losses> losses;
  std::string guards_unknown;  ///< Text of the guard attribute if it cannot be parsed.
  /// Largest measured error, if the field was verified; under pw_rel as a fraction of the value.
  std::optional<double> max_error;
  /// Absolute bounds of a plotfile's components, if they have separate ones; 0: exact. The bound
  /// above is then the largest of them.
  std::vector<double> component_bounds;
  /// Start of each box, then the end of the last; empty: unknown. A box holds all components, one
  /// after the other.
  std::vector<std::int64_t> box_offsets;
  /// Covered cells of a plotfile's level whose values were not preserved: their number per
  /// component, and the checksum of their positions (CoveredCells).
  struct Covered {
    std::uint64_t n_cells = 0;
    std::uint64_t checksum = 0;
  };
  std::optional<Covered> covered;

  /// Limit for max_error, in the same unit; 0 if the field is exact.
  double bound_of_error() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
};

/// Read the attributes of `field_paths` in the HDF5 file `path`, in that order. The entries of a
/// file that is not HDF5 are empty. Not collective. One thread at a time per process (takes HDF5's
/// lock).
/// @error corrupt  a dataset does not exist, or an attribute has another type than we write.
Result<std::vector<FieldAttributes>> read_field_attributes(
    const std::string& path, std::span<const std::string> field_paths);

/// Read what a dataset's attributes state about the losses of its rows, to combine rows of several
/// datasets. Statements about parts of rows (components, covered cells) count as missing. So do
/// statements that are incomplete, unreadable, or contain a number that is not a valid bound. Call
/// with HDF5 locked.
/// @param dataset  HDF5's id (hid_t).
RowNotes read_row_notes(std::int64_t dataset);
/// True if the file states that datasets without notes are exact. Call with HDF5 locked.
/// @param file  hid_t
bool has_file_note(std::int64_t file);
/// True if the file's note covers a dataset of this form without notes: it is chunked, and none of
/// its filters always loses digits.
bool covered_by_file_note(const StoredForm& form);

/// Read the attributes of an object whose names pass the filter, sorted by name. Only the name is
/// returned of an attribute that is neither text nor number, or that exceeds a StatedAttribute's
/// limits. Call with HDF5 locked. @param object  HDF5's id (hid_t). @error corrupt
Result<std::vector<StatedAttribute>> read_stated_attributes(std::int64_t object,
                                                            AttributeFilter wanted);

/// Version of the HDF5 library in this process, such as "1.10.8".
std::string hdf5_library_version();

// --- Conventions.
//
// Fill values must survive a lossy codec exactly and stay out of the value range; coordinates
// (axes, latitudes, cell bounds) must stay exact because readers compare and search them. Source:
// the CF conventions, sections 2.5.1 (missing data), 5 (coordinates), 7.1 (bounds).

/// Convert the fill value of an attribute to the field's precision and range. No value if the dtype
/// or a double cannot represent it (64-bit integers beyond 2^53): then no element of the field can
/// equal the fill value that FieldOptions holds. Thread-safe.
std::optional<double> fill_for_dtype(double value, DType dtype);
std::optional<double> fill_for_dtype(std::int64_t value, DType dtype);
std::optional<double> fill_for_dtype(std::uint64_t value, DType dtype);

/// A `coordinates` or `bounds` attribute: blank-separated names, resolved from a group.
struct NamedCoordinates {
  std::string group_path;  ///< "/" or "/a/b": group of the variable with the attribute.
  std::string names;
};

/// Set `coordinate` on every field that one of the attributes names, and on every field whose name
/// ends in "_bnds" or "_bounds". Names are looked up in the group, then in the groups above it.
void mark_coordinates(const std::vector<NamedCoordinates>& named,
                      std::vector<StoredDataset>& datasets);

}  // namespace tailrace
