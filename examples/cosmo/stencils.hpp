// Stencils on meshes with ghosts: a gradient and a smoothing.

#pragma once

#include "cosmo/particle_mesh.hpp"

namespace cosmo {

/// Computes field = -grad(potential) per box length, fourth order, on planes 0 to count. The plane
/// above our last one serves the particles next to it. The stencil is antisymmetric, so the sum of
/// all forces is zero. Needs the potential's ghosts.
void negative_gradient(const Slabs& slabs, const Mesh& potential, VectorMesh& field);

/// Smooths `from` into `to` over 3^3 cells with the weights (1, 2, 1) / 4 in each direction, on
/// planes first to end - 1. The sum over all cells is conserved. Needs from's planes first - 1 to
/// end.
void smooth(const Slabs& slabs, const Mesh& from, Mesh& to, int first, int end);

}  // namespace cosmo
