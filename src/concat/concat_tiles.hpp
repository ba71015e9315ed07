// ConcatTiles: inputs that are tiles of a domain, as the ranks of an ocean model write them.
//
// The attribute `domain_decomposition` or --tile marks inputs as tiles. Datasets with a tiled
// dimension are laid out by the positions of their files (describe/tile_layout.hpp). Each part of
// the output comes from the first file that has it; other files with the same part (usually
// coordinates) are compared with it by digest.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "concat/concat.hpp"
#include "core/byte_stream.hpp"
#include "core/comm.hpp"
#include "describe/concat_input.hpp"
#include "describe/dimension_survey.hpp"
#include "describe/tile_layout.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ConcatTiles {
 public:
  explicit ConcatTiles(const ConcatRequest& request) : request_(request) {}

  bool on() const { return !axes_.empty(); }
  /// Choose the axes: those that --tile names, else those with `domain_decomposition`.
  /// @error invalid_argument  a name that is not a dimension; append, or keys
  Status choose_axes(const DimensionSurvey& first);
  void pack(ByteWriter& writer) const;
  void unpack(ByteReader& reader);
  /// True if one of these dimensions is tiled.
  bool is_tiled(const std::vector<std::string>& dimensions) const;

  /// Record the positions of an input of this rank.
  /// @param datasets  the input's datasets; their tiled extents are set to those of `first`, the
  /// first input's.
  /// @error invalid_argument  a dataset that differs in length from its dimension
  Status take(const DimensionSurvey& survey, const DimensionSurvey& first_survey,
              std::size_t source, std::span<const StoredDataset> first,
              std::vector<StoredDataset>& datasets);
  /// Accept the input of the last take().
  void accept();
  /// Lay out all tiles. Collective: a gather, a broadcast.
  /// @param schema  receives the domain's extents.
  /// @error invalid_argument  tiles that overlap, are named twice, or are missing
  Status lay_out(Comm& comm, const DimensionSurvey& first_survey,
                 std::vector<StoredDataset>& schema);

  /// True if a dataset of the schema is tiled.
  bool is_tiled(std::size_t dataset) const {
    return dataset < axes_of_.size() && !axes_of_[dataset].empty();
  }
  /// Box of a file's dataset in the output. @param schema  with the domain's extents
  Box box_of(std::size_t dataset, const StoredDataset& schema, std::size_t source) const {
    return layout_.box_of(axes_of_[dataset], schema.shape, source);
  }
  /// True if the output's values come from this file.
  bool owns(std::size_t dataset, std::size_t source) const {
    return layout_.owner(axes_of_[dataset], source) == source;
  }
  /// True if several files have the part of the dataset that this file has.
  bool is_shared(std::size_t dataset, std::size_t source) const {
    return layout_.n_sharing(axes_of_[dataset], source) > 1;
  }
  /// The parts of a dataset that no file has. @param schema  with the domain's extents
  std::vector<Box> missing(std::size_t dataset, const StoredDataset& schema) const {
    return layout_.missing(axes_of_[dataset], schema.shape);
  }

  /// Digest of a part that several files have.
  struct SharedDigest {
    std::uint32_t dataset = 0;
    std::uint32_t source = 0;
    ValueDigest digest = {};
  };
  /// Compare the parts that several files have. Collective: a gather, an agreement.
  /// @param digests  of this rank's shared parts
  Status compare_shared(Comm& comm, std::span<const SharedDigest> digests,
                        std::span<const StoredDataset> schema);

  /// Remarks for the user. Rank 0.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  Status check_missing(std::span<const StoredDataset> schema);

  const ConcatRequest& request_;
  std::vector<std::string> axes_;              ///< Paths of the dimensions' scales.
  std::vector<TileFacts> taken_;               ///< Facts of the last take(), by axis.
  std::vector<std::vector<TileFacts>> facts_;  ///< Facts of this rank's files, by axis.
  TileLayout layout_;
  std::vector<std::vector<std::uint32_t>> axes_of_;  ///< Tiled axes by dataset; empty: not tiled.
  std::vector<std::string> remarks_;
};

}  // namespace tailrace
