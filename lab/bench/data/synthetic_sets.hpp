// Generated stand-ins for machines without the real sets: fields of the same kinds, from a seed.
//
// particles: a lattice of particles moved by the displacement of a Gaussian random field, in memory
// order, with velocities along it and a random part. climate: maps with bands by latitude, eddies
// and land, where values are missing. Made by no simulation; results on them are labelled so.

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

/// A kind of generated data.
struct SyntheticSet {
  const char* summary;  ///< How they are made, for labels.
  std::size_t n_fields;
  Shape shape;  ///< Block of a rank unless another is asked for.
  /// Same dimensions as `shape`; different seeds give independent blocks.
  std::vector<SyntheticField> (*make)(const Shape& cells, std::uint64_t seed);
};

/// `name`: nyx, particles or climate.
const SyntheticSet& synthetic_set(const std::string& name);

}  // namespace tailrace::bench
