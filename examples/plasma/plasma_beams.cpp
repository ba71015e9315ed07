// The phases of a step: push, fields, exchange of electrons, measurements.

#include "plasma_beams.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <complex>

namespace plasma {

Beams::Beams(MPI_Comm comm, const Setup& setup)
    : setup_(setup),
      slab_(Slab::of_rank(comm, setup.nx, setup.ny)),
      fields_(slab_),
      deposits_(slab_),
      electrons_(first_electrons(setup, slab_)) {
  const double area = setup.nx * setup.ny * setup.cell_width * setup.cell_width;
  first_energy_ = area * (std::sqrt(1 + setup.beam * setup.beam) - 1);
}

Measures Beams::advance(app::Lanes& lanes) {
  enum { kinetic, electric, magnetic, wave, n_sums = wave + 2 };
  std::array<double, n_sums> sums{};
  std::array<double, 2> divergences{};
  lanes.host([&] {
    const auto energies = field_energies(setup_.cell_width, fields_);
    sums[electric] = energies[0];
    sums[magnetic] = energies[1];
    const auto sum = mode_sum(setup_.along_x() ? fields_.ex : fields_.by, setup_.mode);
    sums[wave] = sum.real();
    sums[wave + 1] = sum.imag();
  });
  std::int64_t counted = 0;
  const auto deposit_all = [&] { deposit(setup_, slab_, electrons_, places_before_, deposits_); };
  const bool on_device = setup_.deposit_on == "device";
  lanes.offload([&] {
    counted = push(setup_, slab_, fields_, electrons_, places_before_);
    if (on_device) deposit_all();
  });
  if (!on_device) lanes.host(deposit_all);
  solve_fields(lanes);
  lanes.host([&] { divergences = largest_divergences(setup_.cell_width, fields_); });
  move_house(lanes);

  const double cell_area = setup_.cell_width * setup_.cell_width;
  sums[kinetic] = static_cast<double>(counted) * kKineticUnit * cell_area;
  lanes.exchange([&] {
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), n_sums, MPI_DOUBLE, MPI_SUM, slab_.comm);
    MPI_Allreduce(MPI_IN_PLACE, divergences.data(), 2, MPI_DOUBLE, MPI_MAX, slab_.comm);
  });
  Measures measures;
  measures.kinetic = sums[kinetic] / first_energy_;
  measures.electric = sums[electric] / first_energy_;
  measures.magnetic = sums[magnetic] / first_energy_;
  measures.amplitude = 2 * std::abs(std::complex<double>(sums[wave], sums[wave + 1])) /
                       (static_cast<double>(setup_.nx) * setup_.ny);
  measures.gauss = divergences[0];
  measures.div_b = divergences[1];
  return measures;
}

void Beams::solve_fields(app::Lanes& lanes) {
  const double ratio = setup_.ratio();
  lanes.exchange([&] { add_halos(slab_, deposits_.all()); });
  lanes.host([&] {
    take_deposits(deposits_, fields_);
    advance_magnetic_by_half(ratio, fields_);
  });
  lanes.exchange([&] { fill_halos(slab_, fields_.magnetic()); });
  lanes.host([&] { advance_electric(ratio, setup_.time_step, fields_); });
  lanes.exchange([&] { fill_halos(slab_, fields_.electric()); });
  lanes.host([&] { advance_magnetic_by_half(ratio, fields_); });
  lanes.exchange([&] { fill_halos(slab_, fields_.magnetic()); });
}

void Beams::move_house(app::Lanes& lanes) {
  Leavers leavers;
  lanes.host([&] { leavers = take_leavers(slab_, electrons_); });
  lanes.exchange([&] { migrate(slab_, leavers, electrons_); });
  lanes.host([&] { sort_by_cell(slab_, electrons_); });
}

std::int64_t Beams::n_electrons_of_all() const {
  auto n = static_cast<std::int64_t>(electrons_.size());
  MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT64_T, MPI_SUM, slab_.comm);
  return n;
}

std::uint64_t Beams::state_hash() const {
  std::uint64_t sum = 0;  // over electrons and nodes: their order and ranks do not matter
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  const auto add_real = [&](double value) { add(std::bit_cast<std::uint64_t>(value + 0.0)); };
  for (const Electron& e : electrons_) {
    hash = 0;
    add(static_cast<std::uint64_t>(e.id) + 1);
    for (const double value : {e.x, e.y, e.ux, e.uy, e.uz, e.weight}) add_real(value);
    sum += hash * 0xbf58476d1ce4e5b9u;
  }
  for (int j = 0; j < slab_.ny; ++j) {
    for (int i = 0; i < slab_.nx; ++i) {
      hash = 0;
      add(~(static_cast<std::uint64_t>(slab_.first_row + j) * static_cast<std::uint64_t>(slab_.nx) +
            static_cast<std::uint64_t>(i)));
      for (const Grid<double>* grid :
           {&fields_.ex, &fields_.ey, &fields_.ez, &fields_.bx, &fields_.by, &fields_.bz}) {
        add_real(grid->at(i, j));
      }
      sum += hash * 0xbf58476d1ce4e5b9u;
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, slab_.comm);
  return sum;
}

}  // namespace plasma
