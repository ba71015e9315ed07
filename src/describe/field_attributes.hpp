// What attributes say of a field: by convention, alike for HDF5, netCDF-4 and classic; and those of
// Tailrace's own, for `tailrace verify` and `tailrace info`.
//
// The attributes are those that the Writer sets (docs/format.md). A dataset without them is
// ordinary: then `by_tailrace` is false, and nothing is known about its error bound.

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
  bool by_tailrace = false;    ///< tailrace_codec is there, or the file's note speaks for it.
  bool said_unknown = false;   ///< It says that nobody knows: not by_tailrace, whatever the note.
  std::string codec;           ///< "sz3"; empty: lossless, as its filters say.
  std::string codec_version;   ///< Plug-in file and version, or "built in".
  std::string version;         ///< Of the Tailrace that wrote it.
  ErrorBound bound;            ///< As asked.
  double absolute_bound = 0;   ///< As used, unit of the field; 0: kept exactly, or mode pw_rel.
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; else 0.
  Guards guards;               ///< What values keep besides the bound.
  /// Bounds of all encodings with loss, where the dataset was encoded from lossy values: the bound
  /// is their total. Also under said_unknown.
  std::optional<Losses> losses;
  std::string guards_unknown;  ///< The attribute's text where it cannot be read as guards.
  /// Largest measured error, if it was verified; under pw_rel as a fraction of the value.
  std::optional<double> max_error;
  /// Of a plotfile's components, where they have bounds of their own: absolute ones, 0: exact. The
  /// bound above is the largest then.
  std::vector<double> component_bounds;
  /// Where each box begins, and the last one's end; empty: not to be found. A box has all
  /// components, one behind the other.
  std::vector<std::int64_t> box_offsets;
  /// Of a plotfile's level: that covered cells have not kept their values, how many of a component
  /// these are, and the checksum of where (CoveredCells).
  struct Covered {
    std::uint64_t n_cells = 0;
    std::uint64_t checksum = 0;
  };
  std::optional<Covered> covered;

  /// What max_error is held to: in its unit, 0 if the field is kept exactly.
  double bound_of_error() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
};

/// Read them for `field_paths` of the HDF5 file `path`, in that order. A file that is not HDF5
/// gives empty entries. Not collective. One thread at a time per process (takes HDF5's lock).
/// @error corrupt  a dataset that is not there, or an attribute of another type than we write.
Result<std::vector<FieldAttributes>> read_field_attributes(
    const std::string& path, std::span<const std::string> field_paths);

/// What a dataset's attributes say of what its rows have lost, for who puts rows of several
/// together. Not said: also what is said of parts of rows alone (components, covered cells), and
/// what cannot be read, lacks a number or has one that is no bound. Call with HDF5 locked. @param
/// dataset  HDF5's id (hid_t).
RowNotes read_row_notes(std::int64_t dataset);
/// Whether the file says that datasets which say nothing are exact. The same. @param file  hid_t
bool has_file_note(std::int64_t file);
/// Whether that is said of a silent dataset of this form: of chunks without a filter that always
/// loses digits.
bool covered_by_file_note(const StoredForm& form);

/// The attributes of an object whose names the filter takes, in the order of their names. An
/// attribute that is neither texts nor numbers, or is larger than a StatedAttribute holds, has its
/// name alone. Call with HDF5 locked. @param object  HDF5's id (hid_t). @error corrupt
Result<std::vector<StatedAttribute>> read_stated_attributes(std::int64_t object,
                                                            AttributeFilter wanted);

/// "1.10.8": the version of the HDF5 library in this process.
std::string hdf5_library_version();

// --- Conventions.
//
// Fill values must survive a lossy codec exactly and stay out of the value range; coordinates
// (axes, latitudes, cell bounds) must stay exact because readers compare and search them. Source:
// the CF conventions, sections 2.5.1 (missing data), 5 (coordinates), 7.1 (bounds).

/// A fill value as an attribute gives it, turned to the field's own precision and range.
/// No value if the dtype cannot hold it, or a double cannot (64-bit integers beyond 2^53):
/// then no element of the field can equal it as FieldOptions spells it. Thread-safe.
std::optional<double> fill_for_dtype(double value, DType dtype);
std::optional<double> fill_for_dtype(std::int64_t value, DType dtype);
std::optional<double> fill_for_dtype(std::uint64_t value, DType dtype);

/// A `coordinates` or `bounds` attribute: blank-separated names, seen from a group.
struct NamedCoordinates {
  std::string group_path;  ///< "/" or "/a/b", where the naming variable lives.
  std::string names;
};

/// Set `coordinate` on every field that one of the attributes names (looked up in the group, then
/// in the groups above it) and on every field whose name ends in "_bnds" or "_bounds".
void mark_coordinates(const std::vector<NamedCoordinates>& named,
                      std::vector<StoredDataset>& datasets);

}  // namespace tailrace
