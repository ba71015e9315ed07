// netCDF classic files (CDF-1, CDF-2, CDF-5): the parsed header, an InputFile, and the copy of
// their data model to HDF5.
//
// Parses untrusted bytes without a netCDF library (docs/adr/0001-own-netcdf-classic-reader.md).
// Checks every count against the file's length before allocating memory for it. Source: the netCDF
// classic format specification (file grammar and its notes).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/input_bytes.hpp"
#include "describe/input_file.hpp"
#include "hdf5/hdf5_file.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The external types; the numbers are the format's own (nc_type).
enum class NetcdfType : std::uint32_t {
  byte_ = 1,
  char_ = 2,
  short_ = 3,
  int_ = 4,
  float_ = 5,
  double_ = 6,
  ubyte = 7,
  ushort = 8,
  uint = 9,
  int64 = 10,
  uint64 = 11,
};

/// Bytes of one value: 1, 2, 4 or 8.
std::size_t netcdf_type_bytes(NetcdfType type);
/// The dtype of a number type; no value for char.
std::optional<DType> netcdf_dtype(NetcdfType type);

struct NetcdfAttribute {
  std::string name;
  NetcdfType type = NetcdfType::char_;
  std::uint64_t n_values = 0;
  std::vector<std::byte> values;  ///< n_values values in native byte order.
};

struct NetcdfDimension {
  std::string name;
  std::uint64_t length = 0;  ///< Length; for the record dimension: the current number of records.
  bool record = false;
};

struct NetcdfVariable {
  std::string name;
  NetcdfType type = NetcdfType::float_;
  std::vector<std::size_t> dimensions;  ///< Positions in NetcdfHeader::dimensions.
  std::vector<NetcdfAttribute> attributes;
  bool record = false;  ///< Its first dimension is the record dimension.
  StridedArray array;   ///< Position of the values in the file.

  /// The attribute of this name, or nullptr.
  const NetcdfAttribute* attribute(const std::string& attribute_name) const;
};

struct NetcdfHeader {
  int version = 1;  ///< 1, 2 or 5.
  std::vector<NetcdfDimension> dimensions;
  std::vector<NetcdfAttribute> attributes;
  std::vector<NetcdfVariable> variables;
  std::uint64_t n_records = 0;
  std::uint64_t record_bytes = 0;  ///< Distance between records, including padding.
};

/// Read and check a file's header. The file must be long enough for all its variables.
/// Not collective. Thread-safe. @error corrupt, unsupported (more than 32 dimensions), io_error
Result<NetcdfHeader> read_netcdf_header(const InputBytes& input);

// --- Maps a netCDF classic file's model to HDF5 as the netCDF-4 library does: see InputFile.

/// HDF5 path that netCDF-4 gives a variable: "/name". If the variable is named like a dimension
/// other than its first, the dimension's scale has that name and the path is
/// "/_nc4_non_coord_name".
std::string netcdf4_variable_path(const NetcdfHeader& header, const NetcdfVariable& variable);

/// True if netCDF-4 or HDF5's dimension scales reserve an attribute's name. A file's attribute of
/// such a name is not carried over.
bool netcdf4_keeps_name(const std::string& attribute_name);

/// Write char variables with their values, before the fields exist.
/// @returns lines about what could not be carried over.  @error io_error, no_space, corrupt
Result<std::vector<std::string>> carry_over_netcdf_objects(const InputBytes& input,
                                                           const NetcdfHeader& header,
                                                           Hdf5File& output);

/// Write dimensions (as dimension scales), attributes, and the order of variables, after the fields
/// exist.
/// @param copied  see InputFile::carry_over_attributes().
Result<std::vector<std::string>> carry_over_netcdf_attributes(const NetcdfHeader& header,
                                                              Hdf5File& output,
                                                              const CopiedObjects& copied);

// --- NetcdfClassicInput: a netCDF classic file (CDF-1, CDF-2, CDF-5) as an InputFile.

/// Open a netCDF classic file. Not collective.
/// @error corrupt  a malformed header, or a file shorter than its header states.  @error io_error
Result<std::unique_ptr<InputFile>> open_netcdf_classic_input(std::shared_ptr<InputBytes> bytes);

}  // namespace tailrace
