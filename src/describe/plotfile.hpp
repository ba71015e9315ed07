// Plotfiles of AMReX and Chombo: the layout of a level's dataset.
//
// The dataset has one dimension. It stores box by box, and within each box component by component.
// The file's root group names the components; the level's group stores the boxes and their offsets.
// All of this must be consistent, down to the number of elements; otherwise the layout is unknown.
// Levels stored with ghost cells are inconsistent in this sense.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/box_series.hpp"
#include "core/covered_cells.hpp"

namespace tailrace {

/// Name of a level's dataset: "data:datatype=3" of "/level_0/data:datatype=3"; empty for another
/// name.
std::string_view level_data_name(std::string_view path);

/// Reads all elements of a dataset of one dimension as integers, `n_numbers` per element, converted
/// to HDF5's `memory_type`. Nothing: no such dataset exists.
using WholeNumbers = std::function<std::optional<std::vector<std::int64_t>>(
    const std::string& path, std::int64_t memory_type, std::size_t n_numbers)>;

/// Limit of boxes in a level; a longer list is rejected.
inline constexpr std::uint64_t most_boxes = std::uint64_t{1} << 22;

/// Find the layout of a level's dataset of `length` elements. A result without runs means that the
/// metadata are missing or inconsistent. Call with HDF5 locked.
/// @param file  HDF5's id of the file, whose root group names the components.
/// @param location, path  location of the dataset in HDF5.
BoxSeries find_level_boxes(std::int64_t file, std::int64_t location, const std::string& path,
                           std::uint64_t length, const WholeNumbers& numbers_of);
/// Find the layout of a level's dataset in a file whose values HDF5 reads.
BoxSeries read_level_boxes(std::int64_t file, const std::string& path, std::uint64_t length);

/// Find the cells of a level that boxes of the next finer level cover, from the finer level's
/// `boxes` and this level's `ref_ratio`. Groups are named level_N; the root's `num_levels`
/// identifies the finest. Call with HDF5 locked.
/// @param path  absolute path of the level's dataset.  @param boxes  its layout.
LevelCover find_level_cover(std::int64_t file, const std::string& path,
                            std::shared_ptr<const BoxSeries> boxes, const WholeNumbers& numbers_of);
LevelCover read_level_cover(std::int64_t file, const std::string& path,
                            std::shared_ptr<const BoxSeries> boxes);

}  // namespace tailrace
