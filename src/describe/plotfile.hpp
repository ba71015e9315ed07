// Plotfiles as AMReX and Chombo write them: what lies in a level's dataset.
//
// The dataset has one dimension, box by box, and in each box component by component; the file's
// root names the components, the level's group has the boxes and where each begins. All of it must
// fit together, down to the number of elements; else nothing is known. Ghost cells that are
// written, too, do not fit.

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

/// "data:datatype=3" of "/level_0/data:datatype=3"; empty: not named as a level's data.
std::string_view level_data_name(std::string_view path);

/// A dataset of one dimension, whole: `n_numbers` whole numbers an element, converted to HDF5's
/// `memory_type`; nothing: there is none like that.
using WholeNumbers = std::function<std::optional<std::vector<std::int64_t>>(
    const std::string& path, std::int64_t memory_type, std::size_t n_numbers)>;

/// Lists longer than this are no level's.
inline constexpr std::uint64_t most_boxes = std::uint64_t{1} << 22;

/// What lies in a level's dataset of `length` elements; no runs: nothing that fits. Call with HDF5
/// locked.
/// @param file  HDF5's, whose root has the components' names.
/// @param location, path  where HDF5 finds the dataset.
BoxSeries find_level_boxes(std::int64_t file, std::int64_t location, const std::string& path,
                           std::uint64_t length, const WholeNumbers& numbers_of);
/// The same of a file whose values HDF5 reads.
BoxSeries read_level_boxes(std::int64_t file, const std::string& path, std::uint64_t length);

/// Which of a level's cells boxes of the next finer one cover, by that one's `boxes` and the
/// level's `ref_ratio`. Groups are named level_N, and the root's `num_levels` says which is the
/// finest. Call with HDF5 locked.
/// @param path  absolute, of the level's dataset.  @param boxes  what lies in it.
LevelCover find_level_cover(std::int64_t file, const std::string& path,
                            std::shared_ptr<const BoxSeries> boxes, const WholeNumbers& numbers_of);
LevelCover read_level_cover(std::int64_t file, const std::string& path,
                            std::shared_ptr<const BoxSeries> boxes);

}  // namespace tailrace
