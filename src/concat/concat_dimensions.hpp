// ConcatDimensions: the rules for inputs with dimensions (netCDF-4, HDF5 with dimension scales).
//
// Files with dimensions are appended along record dimensions only (describe/dimension_survey.hpp).
// What does not grow is kept once, from the first input, and compared over all inputs by digests:
// each rank compares its own inputs with the first one's survey, which is broadcast with the
// schema. Files without dimensions cost nothing here: no call of HDF5, no collective.

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
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ConcatDimensions {
 public:
  explicit ConcatDimensions(const ConcatRequest& request) : request_(request), tiles_(request) {}

  /// True if the first input has dimensions; the same on every rank after unpack().
  bool on() const { return on_; }

  /// Survey the input that gives the schema; on the rank that has it. Sets on().
  /// @error corrupt, unsupported (a record dimension that is not a first one), invalid_argument
  /// (nothing grows, though there are several inputs)
  Status take_first(ConcatInput& input);
  void pack(ByteWriter& writer) const;
  void unpack(ByteReader& reader);

  /// Inputs that are tiles of a domain.
  const ConcatTiles& tiles() const { return tiles_; }

  /// Set `appended` to false for the datasets that do not grow.
  void mark_fixed(std::vector<StoredDataset>& datasets) const;
  /// Compare an input of this rank, while it has its schema, and record what differs.
  /// @param first_datasets  the first input's datasets.
  /// @param datasets  of the input: marked as by mark_fixed(), and given as many rows as their
  /// record dimension has; netCDF-4 variables may be shorter, and end with fill values.
  /// @error invalid_argument  lines that name what must not differ; what the survey returns
  Status compare(ConcatInput& input, std::uint64_t source,
                 std::span<const StoredDataset> first_datasets,
                 std::vector<StoredDataset>& datasets);
  /// Record what compare() has found: the input is not refused.
  void accept();
  /// compare() and accept() of the output that is appended to. Rank 0, after settle().
  Status compare_older(ConcatInput& older, std::vector<StoredDataset>& datasets);
  /// Gather what differs at rank 0, and lay out tiles. Collective if on(): one gather; of tiles two
  /// more and a broadcast.
  /// @param schema  of tiles: gets the domain's extents.
  /// @error invalid_argument  as ConcatTiles::settle()
  Status settle(Comm& comm, std::vector<StoredDataset>& schema);
  /// Digests of the values of an open input's datasets, by path; for ConcatTiles.
  static Result<std::vector<ValueDigest>> digests(ConcatInput& input,
                                                  std::span<const std::string> paths);
  ConcatTiles& tiles_to_compare() { return tiles_; }
  /// Paths and names of attributes that speak of one tile, and not of the output.
  std::vector<std::pair<std::string, std::string>> left_out_attributes() const;
  /// Lines for the user. Rank 0, after settle().
  std::vector<std::string> remarks() const;

 private:
  /// Inputs whose object differs from the first one's in one attribute, or in its values.
  struct Difference {
    std::uint64_t first_source = 0;
    std::uint64_t n_inputs = 0;
  };
  using Differences = std::map<std::pair<std::string, std::string>, Difference>;
  /// A coordinate along a record dimension in one input.
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
    std::vector<std::pair<std::string, std::string>> differences;
    std::vector<std::pair<std::string, ValueOrder>> orders;
  };
  Found found_;
  Differences differences_;  ///< By path of the object and attribute; no attribute: its values.
  std::map<std::string, std::vector<CoordinateOrder>> orders_;  ///< By path.
};

}  // namespace tailrace
