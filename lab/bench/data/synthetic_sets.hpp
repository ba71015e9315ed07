// Generated stand-ins for the real sets: fields of the same kinds, from a seed.
//
// particles: a lattice of particles, displaced by the gradient of a Gaussian random field, in
// memory order; velocities follow the displacement, plus a random part. climate: maps with bands by
// latitude, eddies, and land where values are missing. No simulation made them, and results are
// labelled so.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace::bench {

struct SyntheticField {
  std::string name;
  std::vector<float> values;
  std::optional<double> fill_value;
};

/// Kind of generated data.
struct SyntheticSet {
  const char* summary;  ///< Description of the method, for labels.
  std::size_t n_fields;
  Shape shape;  ///< Default block of a rank.
  /// Generate fields over `cells`, which has as many dimensions as `shape`. Different seeds give
  /// independent blocks.
  std::vector<SyntheticField> (*make)(const Shape& cells, std::uint64_t seed);
};

/// Set `name`: nyx, particles or climate.
const SyntheticSet& synthetic_set(const std::string& name);

}  // namespace tailrace::bench
