// InputFile: an existing file as a list of arrays that can be read box by box.
//
// Formats: HDF5 with any layout and filters (netCDF-4 included), netCDF classic (CDF-1, 2 and 5),
// NumPy .npy, and raw binary with a given dtype and shape. Each rank opens the file by itself and
// reads what it needs; nothing is collective. What is not an array of a plain number type (strings,
// compounds, enums, attributes, links) is carried over by rank 0 with carry_over_objects()
// and carry_over_attributes().

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "core/dtype.hpp"
#include "core/status.hpp"

namespace tailrace {

class Hdf5File;

/// One array of an input file.
struct InputField {
  std::string path;  ///< "/group/name"; for .npy and raw: "/" + the file's stem.
  DType dtype = DType::f32;
  Shape shape;
  Shape chunk_shape;                 ///< The input's own chunks; empty if it has none.
  std::optional<double> fill_value;  ///< _FillValue or missing_value, else a non-zero HDF5 fill.
  bool coordinate = false;           ///< A dimension scale or coordinate variable: kept lossless.
  bool extendable = false;           ///< The first dimension is unlimited.
  std::uint64_t more_unlimited = 0;  ///< Bit d: dimension d > 0 is unlimited, too.
  std::uint64_t stored_bytes = 0;    ///< Bytes that the input spends on it.
  bool lossy_attribute = false;      ///< Already lossy: by tailrace_bound_mode, its filters, ...
};

/// How to read a file that does not describe itself.
struct RawFormat {
  DType dtype = DType::f32;
  Shape shape;
};

class InputFile {
 public:
  /// Open by content, not by name. @error not_found, corrupt (truncated or foreign; says what was
  /// expected), unsupported (says which format).
  static Result<std::unique_ptr<InputFile>> open(const std::string& path,
                                                 const std::optional<RawFormat>& raw = {});
  virtual ~InputFile() = default;

  /// "HDF5", "netCDF-4", "netCDF classic", "npy", "raw".
  virtual const std::string& format() const = 0;
  /// The number arrays, in the file's own order: creation order for HDF5 groups that track it (else
  /// by name), definition order for netCDF classic. A group's members follow the group, depth
  /// first; an object with several hard links stands at its first. Everything else is carry_over's.
  virtual const std::vector<InputField>& fields() const = 0;
  /// Read one box, row-major in native byte order. One thread at a time per process (HDF5).
  /// `values` holds box.n_elements() elements. @error io_error, corrupt, plugin_missing
  virtual Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) = 0;
  /// Copy into `output` what the fields do not cover, before the fields are created: groups with
  /// their creation order, other objects (strings, compounds, ...), links, named types.
  /// Rank 0 only. @returns lines that tell the user what could not be carried over (none is best).
  virtual Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) = 0;
  /// Copy attributes of all groups and fields and attach dimension scales; after the fields exist.
  virtual Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output) = 0;
};

// --- Hdf5Input: an HDF5 or netCDF-4 file as an InputFile.

/// Open an HDF5 file for reading. Not collective; takes the HDF5 lock.
/// @error corrupt  truncated or damaged, with HDF5's own reason.  @error io_error
Result<std::unique_ptr<InputFile>> open_hdf5_input(const std::string& path);

}  // namespace tailrace
