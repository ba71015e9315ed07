// The electrons: initial state, motion, deposited current, and exchange between ranks.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plasma_fields.hpp"

namespace plasma {

struct Electron {
  double x, y;        // cells, of the complete plane
  double ux, uy, uz;  // momentum over m c: gamma times velocity
  double weight;      // electrons that it represents, over those of a cell at the mean density
  std::int64_t id;    // 0 .. number of electrons - 1, over all ranks; even and odd: the two beams
};

/// Two beams through each other, equal and opposite, so that the net charge and current are zero.
struct Setup {
  std::string problem = "weibel";  // beams along z; or two-stream: along x, in the plane
  int nx = 64, ny = 64;            // cells.
  double cell_width = 0.2;         // c/omega_p, in both directions.
  double time_step = 0.1;          // 1/omega_p.
  int per_edge = 2;                // electrons of a beam along a cell's edge.
  double beam = 0.6;               // momentum of the beams over m c.
  double thermal = 0.001;          // spread of each component of the momentum over m c.
  int mode = 2;                    // complete waves of the seed along x.
  double seed = 3e-4;              // amplitude of the seed in the momentum, over m c.
  int random = 1;
  std::string deposit_on = "host";  // or device: where the current is summed

  std::int64_t n_electrons() const { return std::int64_t{2} * per_edge * per_edge * nx * ny; }
  double ratio() const { return time_step / cell_width; }
  bool along_x() const { return problem == "two-stream"; }
};

/// This rank's electrons at the start: both beams on the same lattice, so that charges cancel
/// exactly. The electrons are the same for any number of ranks. Not collective.
std::vector<Electron> first_electrons(const Setup& setup, const Slab& slab);

struct Place {
  double x, y;  // cells
};

/// Moves all electrons by one time step in the current field E, B (Boris 1970). Afterwards they may
/// lie outside the slab, by less than a cell. Touches nothing except its arguments.
/// @param places_before  receives the previous positions.
/// @returns  the kinetic energy before the move, in kKineticUnit.
std::int64_t push(const Setup& setup, const Slab& slab, const Fields& fields,
                  std::vector<Electron>& electrons, std::vector<Place>& places_before);

/// Deposits the current of the step that push() made and the charge at its end. Charge is conserved
/// exactly (Esirkepov 2001), with quadratic splines. Touches nothing except its arguments.
void deposit(const Setup& setup, const Slab& slab, const std::vector<Electron>& electrons,
             const std::vector<Place>& places_before, Deposits& deposits);

/// Unit of energy, in m c^2 times the electrons of a cell at the mean density.
constexpr double kKineticUnit = 0x1p-36;

/// Electrons that have left the slab, by neighbour.
struct Leavers {
  std::vector<Electron> down, up;
};
/// Removes electrons that have left the slab, and wraps all positions into the periodic plane. Not
/// collective.
Leavers take_leavers(const Slab& slab, std::vector<Electron>& electrons);
/// Sends the leavers to the neighbours, and appends received electrons. Collective.
void migrate(const Slab& slab, const Leavers& leavers, std::vector<Electron>& electrons);

/// Sorts electrons into the order of their cells: neighbours in space become neighbours in memory.
void sort_by_cell(const Slab& slab, std::vector<Electron>& electrons);

}  // namespace plasma
