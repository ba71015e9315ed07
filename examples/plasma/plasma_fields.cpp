// Maxwell's equations by central differences in space and time (Yee 1966).

#include "plasma_fields.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plasma {
namespace {

template <class Work>
void for_each_node(const Grid<double>& grid, Work&& work) {
  for (int j = 0; j < grid.ny(); ++j) {
    for (int i = 0; i < grid.nx(); ++i) work(i, j);
  }
}

double half_square_sum(const Grid<double>& grid) {
  double sum = 0;
  for_each_node(grid, [&](int i, int j) { sum += grid.at(i, j) * grid.at(i, j); });
  return sum / 2;
}

}  // namespace

void take_deposits(Deposits& deposits, Fields& fields) {
  const auto take = [](const Counted& from, Grid<double>& to, double more) {
    for_each_node(to, [&](int i, int j) {
      to.at(i, j) = static_cast<double>(from.at(i, j)) * kChargeUnit + more;
    });
  };
  take(deposits.jx, fields.jx, 0);
  take(deposits.jy, fields.jy, 0);
  take(deposits.jz, fields.jz, 0);
  take(deposits.rho, fields.rho, 1);
}

void advance_magnetic_by_half(double ratio, Fields& f) {
  const double half = ratio / 2;
  for_each_node(f.bx, [&](int i, int j) {
    f.bx.at(i, j) -= half * (f.ez.at(i, j + 1) - f.ez.at(i, j));
    f.by.at(i, j) += half * (f.ez.at(i + 1, j) - f.ez.at(i, j));
    f.bz.at(i, j) +=
        half * ((f.ex.at(i, j + 1) - f.ex.at(i, j)) - (f.ey.at(i + 1, j) - f.ey.at(i, j)));
  });
}

void advance_electric(double ratio, double time_step, Fields& f) {
  for_each_node(f.ex, [&](int i, int j) {
    f.ex.at(i, j) += ratio * (f.bz.at(i, j) - f.bz.at(i, j - 1)) - time_step * f.jx.at(i, j);
    f.ey.at(i, j) -= ratio * (f.bz.at(i, j) - f.bz.at(i - 1, j)) + time_step * f.jy.at(i, j);
    f.ez.at(i, j) +=
        ratio * ((f.by.at(i, j) - f.by.at(i - 1, j)) - (f.bx.at(i, j) - f.bx.at(i, j - 1))) -
        time_step * f.jz.at(i, j);
  });
}

std::array<double, 2> largest_divergences(double cell_width, const Fields& f) {
  std::array<double, 2> largest{};
  for_each_node(f.rho, [&](int i, int j) {
    const double div_e =
        (f.ex.at(i, j) - f.ex.at(i - 1, j) + f.ey.at(i, j) - f.ey.at(i, j - 1)) / cell_width;
    const double div_b =
        (f.bx.at(i + 1, j) - f.bx.at(i, j) + f.by.at(i, j + 1) - f.by.at(i, j)) / cell_width;
    largest[0] = std::max(largest[0], std::abs(div_e - f.rho.at(i, j)));
    largest[1] = std::max(largest[1], std::abs(div_b));
  });
  return largest;
}

std::array<double, 2> field_energies(double cell_width, const Fields& f) {
  const double area = cell_width * cell_width;
  return {area * (half_square_sum(f.ex) + half_square_sum(f.ey) + half_square_sum(f.ez)),
          area * (half_square_sum(f.bx) + half_square_sum(f.by) + half_square_sum(f.bz))};
}

std::complex<double> mode_sum(const Grid<double>& grid, int mode) {
  std::complex<double> sum = 0;
  for (int i = 0; i < grid.nx(); ++i) {
    double column = 0;
    for (int j = 0; j < grid.ny(); ++j) column += grid.at(i, j);
    sum += column * std::polar(1.0, -2 * std::numbers::pi * mode * i / grid.nx());
  }
  return sum;
}

}  // namespace plasma
