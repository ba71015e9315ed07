// ConcatDimensions: the rules for inputs with dimensions (netCDF-4, HDF5 with dimension scales),
// and what is not appended: attributes, scalars, groups, links.
//
// Files with dimensions are appended along record dimensions only (describe/dimension_survey.hpp).
// Fixed datasets are stored once, from the first input, and compared over all inputs by digests.
// Each rank compares its inputs with the first one's survey, which is broadcast with the schema.

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "concat/concat.hpp"
#include "concat/concat_tiles.hpp"
#include "core/byte_stream.hpp"
#include "core/comm.hpp"
#include "describe/concat_input.hpp"
#include "describe/dimension_survey.hpp"
#include "describe/survey_differences.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ConcatDimensions {
 public:
  explicit ConcatDimensions(const ConcatRequest& request) : request_(request), tiles_(request) {}

  /// True if the first input has dimensions; the same on every rank after unpack().
  bool on() const { return on_; }

  /// Survey the input that defines the schema; on the rank that opened it. Sets on(). Without
  /// dimensions, the input must have been opened with its survey; so must those of compare().
  /// @error corrupt, unsupported (a record dimension that is not a first one), invalid_argument
  /// (several inputs, but no record dimension)
  Status take_first(ConcatInput& input);
  void pack(ByteWriter& writer) const;
  void unpack(ByteReader& reader);

  /// Inputs that are tiles of a domain.
  const ConcatTiles& tiles() const { return tiles_; }

  /// Set `appended` to false for the datasets that do not grow.
  void mark_fixed(std::vector<StoredDataset>& datasets) const;
  /// Compare an input of this rank, while it has its schema, and record the differences.
  /// @param first_datasets  the first input's datasets.
  /// @param datasets  the input's datasets: marked as by mark_fixed(), with their row counts set to
  /// the length of their record dimension. netCDF-4 variables may be shorter; fill values complete
  /// them.
  /// @error invalid_argument  lines that name forbidden differences; the survey's errors
  Status compare(ConcatInput& input, std::uint64_t source,
                 std::span<const StoredDataset> first_datasets,
                 std::vector<StoredDataset>& datasets);
  /// Store the findings of compare(): the input is accepted.
  void accept();
  /// compare() and accept() of the output that is appended to. Rank 0, after merge().
  Status compare_older(ConcatInput& older, std::vector<StoredDataset>& datasets);
  /// Gather the differences on rank 0, and lay out tiles. Collective: one gather; if on() one more;
  /// for tiles two more and a broadcast.
  /// @param schema  for tiles: receives the domain's extents.
  /// @error invalid_argument  see ConcatTiles::lay_out()
  Status merge(Comm& comm, std::vector<StoredDataset>& schema);
  /// Digests of the values of an open input's datasets, by path; for ConcatTiles.
  static Result<std::vector<ValueDigest>> digests(ConcatInput& input,
                                                  std::span<const std::string> paths);
  ConcatTiles& tiles_to_compare() { return tiles_; }
  /// Paths and names of attributes that refer to one tile, and not to the output.
  std::vector<std::pair<std::string, std::string>> left_out_attributes() const;
  /// Remarks for the user. Rank 0, after merge().
  std::vector<std::string> remarks() const;

 private:
  /// Order of a coordinate along a record dimension, in one input.
  struct CoordinateOrder {
    std::uint64_t source = 0;
    ValueOrder order;
  };

  void find_orders(const DimensionSurvey& survey);
  std::string source_name(std::uint64_t source) const;
  std::string order_remark(const std::string& path,
                           const std::vector<CoordinateOrder>& orders) const;

  const ConcatRequest& request_;
  bool on_ = false;
  DimensionSurvey first_;
  PathSet fixed_;
  ConcatTiles tiles_;
  /// Findings of the last compare().
  struct Found {
    std::uint64_t source = 0;
    std::vector<std::pair<std::string, ValueOrder>> orders;
  };
  Found found_;
  SurveyDifferences differences_;
  std::map<std::string, std::vector<CoordinateOrder>> orders_;  ///< Keyed by path.
};

}  // namespace tailrace
