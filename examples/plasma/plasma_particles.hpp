// The electrons: how they start, how they move, what current they leave, and who has them.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plasma_fields.hpp"

namespace plasma {

struct Electron {
  double x, y;        // cells, of the whole plane
  double ux, uy, uz;  // momentum over m c: gamma times velocity
  double weight;      // electrons that it stands for, over those of a cell at the mean density
  std::int64_t id;    // 0 .. number of electrons - 1, over all ranks; even and odd: the two beams
};

/// Two beams through each other, equal and opposite, so that neither charge nor current is left.
struct Setup {
  std::string problem = "weibel";  // beams along z, across the plane; two-stream: along x, in it
  int nx = 64, ny = 64;            // cells
  double cell_width = 0.2;         // c/omega_p, in both directions
  double time_step = 0.1;          // 1/omega_p
  int per_edge = 2;                // electrons of a beam along a cell's edge
  double beam = 0.6;               // momentum of the beams over m c
  double thermal = 0.001;          // spread of each component of the momentum over m c
  int mode = 2;                    // whole waves of the seed along x
  double seed = 3e-4;              // its amplitude in the momentum, over m c
  int random = 1;
  std::string deposit_on = "host";  // or device: where the current is summed

  std::int64_t n_electrons() const { return std::int64_t{2} * per_edge * per_edge * nx * ny; }
  double ratio() const { return time_step / cell_width; }
  bool along_x() const { return problem == "two-stream"; }
};

/// This rank's electrons at the start: both beams on the same lattice, so that charges cancel
/// exactly. The same electrons for any number of ranks. Not collective.
std::vector<Electron> first_electrons(const Setup& setup, const Slab& slab);

struct Place {
  double x, y;  // cells
};

/// Move all electrons by one time step in the field E, B of now (Boris 1970). They may lie outside
/// the slab afterwards, by less than a cell. Touches nothing but its arguments.
/// @param places_before  receives where each was.
/// @returns  the kinetic energy of now, in kKineticUnit.
std::int64_t push(const Setup& setup, const Slab& slab, const Fields& fields,
                  std::vector<Electron>& electrons, std::vector<Place>& places_before);

/// Leave on the grid the current of the step that push() made and the charge at its end, such that
/// charge is conserved exactly (Esirkepov 2001), by quadratic splines.
/// Touches nothing but its arguments.
void deposit(const Setup& setup, const Slab& slab, const std::vector<Electron>& electrons,
             const std::vector<Place>& places_before, Deposits& deposits);

/// A unit of energy, of m c^2 times the electrons of a cell at the mean density.
constexpr double kKineticUnit = 0x1p-36;

/// Electrons that have left the slab, by neighbour.
struct Leavers {
  std::vector<Electron> down, up;
};
/// Take them out and bring all positions back into the periodic plane. Not collective.
Leavers take_leavers(const Slab& slab, std::vector<Electron>& electrons);
/// Hand them over, and append those that come. Collective.
void migrate(const Slab& slab, const Leavers& leavers, std::vector<Electron>& electrons);

/// Bring electrons into the order of their cells: neighbours in space become neighbours in memory.
void sort_by_cell(const Slab& slab, std::vector<Electron>& electrons);

}  // namespace plasma
