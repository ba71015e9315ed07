// Six fields that resemble one block of a cosmological simulation, generated from a seed.
//
// A Gaussian random field with a cold-dark-matter spectrum is the density contrast. Densities are
// log-normal in it, the temperature follows the gas density with scatter, and the velocities follow
// the contrast as in linear theory. The fields therefore have the smoothness, heavy tails and
// correlations that compressors exploit. No simulation made them, and results on them are labelled
// as synthetic.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

inline constexpr std::array<const char*, 6> kSyntheticNyxNames = {
    "baryon_density", "dark_matter_density", "temperature",
    "velocity_x",     "velocity_y",          "velocity_z"};

/// Generate the six fields over `cells` (three dimensions), row-major, in the order of the names.
/// Different seeds give independent blocks. Cost: about 2 us a cell for all six.
std::vector<std::vector<float>> make_synthetic_nyx(const Shape& cells, std::uint64_t seed);

}  // namespace tailrace
