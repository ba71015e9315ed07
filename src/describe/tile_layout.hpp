// TileLayout: positions of files that are tiles of a domain.
//
// A file has one span along each axis (a dimension that is cut). Spans come from the attribute
// `domain_decomposition` if the coordinate has it (FMS: MOM, FV3), else from the order of the
// coordinate's values. Along an axis, spans of different files are equal or do not overlap. So all
// tiles together are cells of one rectangular grid; cells may be missing. Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/byte_stream.hpp"
#include "describe/dimension_survey.hpp"
#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// One file along one axis.
struct TileFacts {
  std::uint64_t source = 0;    ///< Position of the file in the list.
  std::uint64_t n_values = 0;  ///< Length of the dimension in the file.
  bool has_span = false;
  TileSpan span;     ///< Valid if has_span.
  ValueOrder order;  ///< Order of the coordinate's values; valid unless has_span.
};

/// A tiled dimension. Spans ascend; together they cover the domain.
struct TileAxis {
  std::string path;  ///< Path of the dimension's scale.
  std::vector<TileSpan> spans;
  std::uint64_t domain() const { return spans.empty() ? 0 : spans.back().end; }
};

class TileLayout {
 public:
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  /// Compute the layout.
  /// @param facts  per axis, for all participating files, by source.
  /// @param name  name of a source, for messages.
  /// @error invalid_argument  spans that overlap, coordinates without order; names both files.
  static Result<TileLayout> make(std::span<const std::string> axes,
                                 std::span<const std::vector<TileFacts>> facts,
                                 std::size_t n_sources,
                                 const std::function<std::string(std::uint64_t)>& name);

  /// Axis of each dimension of a dataset; nowhere: the dimension is not tiled.
  std::vector<std::uint32_t> axes_of(std::span<const std::string> dimensions) const;

  /// Extents of the dataset in the domain. @param shape  in any one file
  Shape domain_shape(std::span<const std::uint32_t> axes, Shape shape) const;
  /// Box of one file's dataset within the domain.
  Box box_of(std::span<const std::uint32_t> axes, const Shape& shape, std::size_t source) const;
  /// The first of the files that contain the cell of `source`, for a dataset with these axes.
  std::size_t owner(std::span<const std::uint32_t> axes, std::size_t source) const;
  /// Number of files that contain the cell of `source`.
  std::size_t n_sharing(std::span<const std::uint32_t> axes, std::size_t source) const;
  /// Cells of a dataset that no file contains. @param shape  of the domain
  std::vector<Box> missing(std::span<const std::uint32_t> axes, const Shape& shape) const;
  /// Text of a missing cell: "/y 11 to 20, /x 1 to 15".
  std::string cell_text(std::span<const std::uint32_t> axes, const Box& box) const;

  void pack(ByteWriter& writer) const;
  static TileLayout unpack(ByteReader& reader);

 private:
  /// The files that contain a cell.
  struct CellUse {
    std::size_t first = 0;
    std::size_t n_files = 0;
  };
  using Cells = std::map<std::vector<std::uint32_t>, CellUse>;
  /// Spans of a file along the axes of a dataset; empty: the file does not participate.
  std::vector<std::uint32_t> cell_of(std::span<const std::uint32_t> axes, std::size_t source) const;
  const Cells& cells_of(std::span<const std::uint32_t> axes) const;

  std::vector<TileAxis> axes_;
  std::vector<std::vector<std::uint32_t>> span_of_;           ///< Indexed by source and axis.
  mutable std::map<std::vector<std::uint32_t>, Cells> used_;  ///< Cells by axes; filled on request.
};

}  // namespace tailrace
