// Six fields that look like one block of a cosmological simulation, from a seed.
//
// A Gaussian random field with a cold-dark-matter spectrum gives the density contrast; densities
// are log-normal in it, the temperature follows the gas density with scatter, the velocities follow
// the contrast as in linear theory. So the fields have the smoothness, the heavy tails and the
// correlations on which compressors live. They are made by no simulation, and results on them are
// labelled so.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

inline constexpr std::array<const char*, 6> synthetic_nyx_names = {
    "baryon_density", "dark_matter_density", "temperature",
    "velocity_x",     "velocity_y",          "velocity_z"};

/// The six fields over `cells` (three dimensions), row-major, in the order of the names. Different
/// seeds give independent blocks. Cost: about 2 us a cell in all.
std::vector<std::vector<float>> make_synthetic_nyx(const Shape& cells, std::uint64_t seed);

}  // namespace tailrace
