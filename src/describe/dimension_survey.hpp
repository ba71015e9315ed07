// Survey of a file: its objects, links, dimensions, attributes and fixed values, as names and
// digests that can be compared without the file (describe/survey_differences).
//
// A concatenation of files with dimensions (netCDF-4, or HDF5 with dimension scales) appends along
// unlimited dimensions only. Datasets that do not grow must be equal in all inputs. The survey of
// each input contains their digests, so that ranks compare inputs without exchanging values. In
// files without dimensions, only scalars do not grow. Memory: a few numbers per attribute and
// object, and one piece of values. Callers hold an Hdf5Scope.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/byte_stream.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// True for a netCDF-4 file. @param file  hid_t
bool is_netcdf4(std::int64_t file);
/// True for a dimension scale. @param dataset  hid_t
bool is_dimension_scale(std::int64_t dataset);

/// Digest of values. It depends on each element and its index, not on chunks or filters.
using ValueDigest = std::array<std::uint64_t, 2>;

/// First value, last value and order of a coordinate.
struct ValueOrder {
  std::uint64_t n_values = 0;
  double first = 0;
  double last = 0;
  bool ascends = true;   ///< Each value is above the one before it.
  bool descends = true;  ///< Each value is below the one before it.
  bool operator==(const ValueOrder&) const = default;
};

/// Position of a tile in the domain along one dimension: the attribute `domain_decomposition`,
/// counted from 0 instead of 1.
struct TileSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t domain = 0;  ///< Length of the domain.
  /// False for a file that covers the domain, such as the output of a joining tool.
  bool is_part() const { return begin > 0 || end < domain; }
  bool operator==(const TileSpan&) const = default;
};

enum class SurveyedKind : std::uint8_t {
  group,
  dataset,
  named_type,
  link  ///< A soft or external link, or a further hard link to an object.
};

struct SurveyedObject {
  std::string path;  ///< "/" for the root group.
  SurveyedKind kind = SurveyedKind::group;
  bool scale = false;
  /// Path of the scale of each dimension of a dataset; empty: the dimension has no scale.
  std::vector<std::string> dimensions = {};
  /// Name and digest, sorted by name. Attributes that Tailrace maintains are left out; in files
  /// with dimensions, also those about the file's form, which HDF5 and netCDF maintain.
  std::vector<std::pair<std::string, std::uint64_t>> attributes = {};
  /// Type and values of a dataset that does not grow; a named type; the target of a link.
  std::optional<ValueDigest> values = {};
  std::optional<ValueOrder> order = {};  ///< Numeric scales of one dimension.
  std::optional<TileSpan> tile = {};     ///< Datasets with `domain_decomposition`.

  bool is_dataset() const { return kind == SurveyedKind::dataset; }
};

struct DimensionSurvey {
  std::vector<SurveyedObject> objects;
  std::uint64_t n_tiles = 0;  ///< `NumFilesInSet` of the root group; 0: the file is not a tile.

  const SurveyedObject* find(const std::string& path) const;
};

/// True for an attribute that refers to one tile: domain_decomposition, NumFilesInSet.
bool is_tile_attribute(std::string_view name);

/// Paths of datasets.
using PathSet = std::unordered_set<std::string>;
/// Chooses the datasets that do not grow. Called when all dimensions are known.
using ChooseFixed = std::function<Result<PathSet>(const DimensionSurvey&)>;

/// List objects and their dimensions only. @param file  hid_t  @error corrupt
Result<DimensionSurvey> list_dimensions(std::int64_t file);

/// Survey an open file. @param file  hid_t  @param choose_fixed  called once, before any value is
/// read.  @error corrupt, plugin_missing, out_of_memory; errors of `choose_fixed`
Result<DimensionSurvey> survey_dimensions(std::int64_t file, const ChooseFixed& choose_fixed);

class Hdf5Visitor;

/// Survey of a file without dimensions: groups, named types, links, datasets that do not grow, and
/// datasets with attributes. The caller walks over the file and forwards each call to visitor().
class PlainSurvey {
 public:
  /// @param file  hid_t, open until finish().
  static std::unique_ptr<PlainSurvey> start(std::int64_t file);
  virtual ~PlainSurvey() = default;

  /// Receiver of a walk's calls. Cost: two HDF5 calls per object.
  virtual Hdf5Visitor& visitor() = 0;
  /// Read attributes and values, after the walk. Cost: O(objects with attributes, and the values).
  /// @error corrupt, plugin_missing, out_of_memory
  virtual Result<DimensionSurvey> finish() = 0;
};
/// PlainSurvey with a walk of its own. @param file  hid_t
Result<DimensionSurvey> survey_plain(std::int64_t file);

/// Digest of the values of one dataset. @param file  hid_t  @error as survey_dimensions()
Result<ValueDigest> digest_dataset(std::int64_t file, const std::string& path);

/// Paths of the datasets that do not grow when files are concatenated, including scalars. Pure.
///
/// A dataset grows if its first unlimited dimension is a record dimension. A record dimension is an
/// unlimited dimension that follows another unlimited dimension in no dataset.
/// @error unsupported  a dataset whose record dimension is not its first one; names both.
Result<PathSet> fixed_datasets(std::span<const StoredDataset> datasets,
                               const DimensionSurvey& survey);

void pack_survey(ByteWriter& writer, const DimensionSurvey& survey);
DimensionSurvey unpack_survey(ByteReader& reader);

}  // namespace tailrace
