// Initial conditions: a Gaussian random field with a power-law spectrum, and the particles that it
// displaces (Zel'dovich 1970).

#pragma once

#include <cstdint>

#include "common/lanes.hpp"
#include "cosmo/background.hpp"
#include "cosmo/particle_mesh.hpp"
#include "cosmo/slab_fft.hpp"

namespace cosmo {

struct Spectrum {
  double index = -1.5;      ///< P(k) is proportional to k^index ...
  double cutoff_cells = 2;  ///< ... times exp(-(k l)^2), l in cells, so that the mesh resolves it.
  double sigma = 2;         ///< Root mean square of linear delta at D = 1, over the mesh's modes.
  std::uint64_t seed = 42;
};

/// Dark matter and gas on lattices of m^3 particles per cell, displaced and moving as the growing
/// mode at `growth`. The gas's lattice is shifted by half a spacing in each direction. The field
/// does not depend on the number of ranks. Collective.
struct InitialParticles {
  Particles dark, gas;
};
InitialParticles zeldovich(app::Lanes& lanes, const Slabs& slabs, SlabFft& fft,
                           const Background& background, const Spectrum& spectrum, int m,
                           double growth);

}  // namespace cosmo
