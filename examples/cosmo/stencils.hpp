// What a cell needs of its neighbours: a gradient and a smoothing, on meshes with ghosts.

#pragma once

#include "cosmo/particle_mesh.hpp"

namespace cosmo {

/// field = -grad(potential) per box length, fourth order, on planes 0 to count (the one above our
/// last serves the particles beside it). Antisymmetric, so that forces add up to nothing. Needs
/// the potential's ghosts.
void negative_gradient(const Slabs& slabs, const Mesh& potential, VectorMesh& field);

/// to = from averaged over 3^3 cells with the weights (1, 2, 1) / 4 in each direction, on planes
/// first to end - 1. The sum over all cells stays. Needs from's planes first - 1 to end.
void smooth(const Slabs& slabs, const Mesh& from, Mesh& to, int first, int end);

}  // namespace cosmo
