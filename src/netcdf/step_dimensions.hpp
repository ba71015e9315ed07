// Named dimensions of a file that a simulation writes step by step.
//
// A field may name its dimensions. In HDF5 they are dimension scales, as netCDF-4 has them
// (netcdf_scales.hpp). Fields that name the same dimension share it. As in netCDF-4, a dimension
// lies in a group and is visible in the groups below it. A list with the name of its dimension is
// the dimension's coordinate.
//
//   DimensionTable   lengths of the dimensions: plain values, the same on every rank
//   StepDimensions   the scales in the file: rank 0 only
//
// Invariant 1: all checks run before any value of the step is written. publish() fails only if HDF5
// or the storage fails.
// Invariant 2: fields that share an unlimited dimension have the same number of entries whenever a
// step adds entries to them: entry n of each belongs to entry n of the dimension.
// Invariant 3: such a dimension may have a coordinate, its times. A step adds an entry to both the
// fields and the coordinate, or to neither.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/byte_stream.hpp"
#include "core/comm.hpp"
#include "netcdf/netcdf_model.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class Hdf5File;
class NetcdfScales;

/// A dataset of a step whose dimensions have names.
struct NamedDataset {
  std::string path;
  std::vector<std::string> names;  ///< One for each dimension, slowest first.
  Shape shape;                     ///< After the step.
  bool over_time = false;          ///< The first dimension is unlimited.
  const char* kind = "field";      ///< Word for messages.

  /// True if its values are the coordinate of its first dimension, which it names like itself.
  bool is_coordinate() const;
};

/// The values of a dimension, which are written once: a dataset of one dimension.
struct Coordinate {
  std::string path;  ///< "/x" is the coordinate of dimension "x" of the root group.
  DType dtype = DType::f64;
  Bytes values;

  std::uint64_t n_values() const { return values.size() / dtype_bytes(dtype); }
  NamedDataset dataset() const;
};

/// Text that is equal on two ranks exactly if their coordinates are, except for colliding
/// checksums.
std::string coordinate_text(const Coordinate& coordinate);

/// Lengths of the named dimensions of a file. Pure.
class DimensionTable {
 public:
  /// Add the datasets of a step: enter new dimensions, and let unlimited ones grow. After a failure
  /// the table must not be used. @error invalid_argument  the names or lengths do not fit.
  Status add(std::span<const NamedDataset> datasets);
  /// Check that entries and their times belong to the same step, once `datasets` are added.
  /// @param waiting  datasets that take part in the step and get their entries later.
  /// @param earlier  datasets that wait for entries and do not take part.
  /// @error invalid_argument  names the call that is missing.
  Status check_times(std::span<const NamedDataset> datasets, std::span<const NamedDataset> waiting,
                     std::span<const NamedDataset> earlier) const;
  /// Check that the step sets a time for each over-time field without names, once `datasets` are
  /// added. The times of such a field are the coordinates over time of the nearest group above it
  /// that has any.
  /// @param unnamed  put in the step: path and shape after it.
  /// @error invalid_argument  names the call that is missing.
  Status check_unnamed(std::span<const NamedDataset> unnamed,
                       std::span<const NamedDataset> datasets) const;
  /// Check that fields have the dimensions of these coordinates. `waiting`, `earlier`: as above.
  /// @error invalid_argument  lists the dimensions.
  Status check_coordinates(std::span<const Coordinate> coordinates,
                           std::span<const NamedDataset> waiting,
                           std::span<const NamedDataset> earlier) const;
  /// Check a new dataset that would be the coordinate of a dimension with entries already.
  /// @error invalid_argument  the earlier entries have no times.
  Status check_late_time(const NamedDataset& dataset) const;
  bool empty() const { return dimensions_.empty(); }
  /// The dimension whose scale is a dataset without values at `path`: the name of its first user;
  /// empty: no such dimension.
  std::string user_of_placeholder(const std::string& path) const;
  /// Paths of the dimensions that `earlier` lacks and that have no coordinate.
  std::vector<std::string> new_placeholders(const DimensionTable& earlier) const;
  /// Serialize the table for other ranks, and back.
  void pack(ByteWriter& writer) const;
  void take(ByteReader& reader);

 private:
  friend class StepDimensions;
  struct Dimension {
    std::uint64_t length = 0;  ///< Unlimited: entries of the longest dataset.
    bool unlimited = false;
    bool has_coordinate = false;
    bool is_used = false;                 ///< A dataset that is not its coordinate has it.
    std::string user;                     ///< A dataset that has it, for messages.
    std::uint64_t coordinate_length = 0;  ///< Unlimited: entries of the coordinate.
    std::uint64_t field_length = 0;       ///< Unlimited: entries of the longest other dataset.
    std::string field;                    ///< Unlimited: a dataset that is not the coordinate.

    /// Count the entries of a dataset along this unlimited dimension.
    void count_entries(const std::string& path, std::uint64_t n_entries, bool of_coordinate);
  };
  /// Path of the dimension that a dataset names: visible from its group, or new in its group.
  std::string path_of(const NamedDataset& dataset, std::size_t d) const;
  Status enter(const NamedDataset& dataset, std::size_t d);
  const Dimension* time_of(const NamedDataset& dataset) const;
  std::vector<std::string> times_above(const std::string& path) const;
  /// True if the dataset's last entry has no time, and the step that adds `datasets` sets none.
  bool lacks_time(const NamedDataset& dataset, std::span<const NamedDataset> datasets) const;

  std::map<std::string, Dimension> dimensions_;  ///< Key: the path.
};

/// The scales of a file's named dimensions. Rank 0 only; takes the HDF5 lock.
class StepDimensions {
 public:
  StepDimensions();
  ~StepDimensions();
  /// Read the named dimensions of a file that was opened. Cost: O(objects of the file).
  Result<DimensionTable> open(Hdf5File& file);
  /// Check that the file has room for new dimensions and coordinates, and that datasets of the file
  /// have the names of `datasets`. Changes nothing.
  /// @error already_exists, invalid_argument
  Status check(Hdf5File& file, std::span<const NamedDataset> datasets,
               std::span<const std::string> placeholders,
               std::span<const Coordinate> coordinates) const;
  /// Write coordinates that the file lacks, and the scales of the datasets, which are in the file.
  /// Call before the commit of the step.
  Status publish(Hdf5File& file, std::span<const NamedDataset> datasets,
                 std::span<const Coordinate> coordinates);

 private:
  std::size_t group_at(const std::string& path);
  Status add(const NamedDataset& dataset);
  Status write_coordinate(Hdf5File& file, const Coordinate& coordinate);

  NetcdfModel model_;                             ///< Datasets with names only, without attributes.
  std::unique_ptr<NetcdfScales> scales_;          ///< Null: no names yet.
  std::map<std::string, std::size_t> variables_;  ///< Number in the model, by path of the dataset.
};

}  // namespace tailrace
