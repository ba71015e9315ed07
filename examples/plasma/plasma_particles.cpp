// Boris's pusher, Esirkepov's current and the electrons' exchange between ranks.
//
// Each electron's arithmetic is independent, and electrons add integers to the grid (kChargeUnit).
// The plasma's bits are therefore the same on any number of ranks.

#include "plasma_particles.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

namespace plasma {
namespace {

// splitmix64 (Steele, Lea and Flood 2014): a good random number for every counter.
std::uint64_t random_bits(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Normally distributed, by Box and Muller.
double random_normal(int seed, std::int64_t id, std::int64_t axis) {
  const std::uint64_t counter =
      random_bits(static_cast<std::uint64_t>(seed)) + static_cast<std::uint64_t>(6 * id + 2 * axis);
  const double first = (static_cast<double>(random_bits(counter) >> 11) + 0.5) * 0x1p-53;
  const double second = static_cast<double>(random_bits(counter + 1) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
}

/// A quadratic spline around a position: the nearest node, and the weights of the node and its
/// neighbours.
struct Spline {
  int node;
  std::array<double, 3> share;  // weights of node - 1, node, node + 1

  explicit Spline(double position) : node(static_cast<int>(std::floor(position + 0.5))), share() {
    const double d = position - node;
    share = {0.5 * (0.5 - d) * (0.5 - d), 0.75 - d * d, 0.5 * (0.5 + d) * (0.5 + d)};
  }
};

double gathered(const Grid<double>& grid, const Spline& x, const Spline& y, int first_row) {
  double sum = 0;
  for (int b = 0; b < 3; ++b) {
    double row = 0;
    for (int a = 0; a < 3; ++a) {
      row += x.share[static_cast<std::size_t>(a)] *
             grid.at(x.node - 1 + a, y.node - 1 + b - first_row);
    }
    sum += y.share[static_cast<std::size_t>(b)] * row;
  }
  return sum;
}

/// A charge's weights at five nodes before a step, and their change in it. Node 2 is the nearest
/// one before the step. Only [first, last] are touched: three nodes, or four if the nearest node
/// has changed.
struct Way {
  std::array<double, 5> before{}, change{};
  std::size_t first, last;

  Way(const Spline& from, const Spline& to)
      : first(to.node < from.node ? 0 : 1), last(to.node > from.node ? 4 : 3) {
    const int shifted = 1 + to.node - from.node;  // 0, 1 or 2
    const auto first_after = static_cast<std::size_t>(shifted);
    for (std::size_t a = 0; a < 3; ++a) {
      before[1 + a] = from.share[a];
      change[first_after + a] = to.share[a];
    }
    for (std::size_t a = 0; a < 5; ++a) change[a] -= before[a];
  }
  double middle(std::size_t a) const { return before[a] + change[a] / 2; }
};

/// The nearest integer, |value| < 2^51: the value is added to a number whose last bit has the value
/// 1. Truncation, which is always towards zero, would accumulate over the electrons of a beam.
std::int64_t rounded(double value) {
  constexpr double kOnes = 0x1.8p52;
  return std::bit_cast<std::int64_t>(value + kOnes) - std::bit_cast<std::int64_t>(kOnes);
}

/// @param i, j    the nearest node before the step.
/// @param charge  of the electron, in kChargeUnit.
/// @param speed   of one cell in a step.
void deposit_one(const Way& x, const Way& y, int i, int j, double charge, double speed, double vz,
                 Deposits& deposits) {
  std::array<double, 5> along_y{};  // the current accumulated up to this row
  for (std::size_t b = y.first; b <= y.last; ++b) {
    const int row = j - 2 + static_cast<int>(b);
    double along_x = 0;
    for (std::size_t a = x.first; a <= x.last; ++a) {
      const int column = i - 2 + static_cast<int>(a);
      along_x -= x.change[a] * y.middle(b);
      along_y[a] -= y.change[b] * x.middle(a);
      deposits.jx.at(column, row) += rounded(charge * speed * along_x);
      deposits.jy.at(column, row) += rounded(charge * speed * along_y[a]);
      const double way = x.middle(a) * y.middle(b) + x.change[a] * y.change[b] / 12;
      deposits.jz.at(column, row) += rounded(charge * vz * way);
      const double end = (x.before[a] + x.change[a]) * (y.before[b] + y.change[b]);
      deposits.rho.at(column, row) += rounded(charge * end);
    }
  }
}

double inverse_gamma(const Electron& e) {
  return 1 / std::sqrt(1 + e.ux * e.ux + e.uy * e.uy + e.uz * e.uz);
}

}  // namespace

std::vector<Electron> first_electrons(const Setup& setup, const Slab& slab) {
  std::vector<Electron> electrons;
  const int s = setup.per_edge;
  const int n_columns = setup.nx * s;
  for (int row = slab.first_row * s; row < (slab.first_row + slab.ny) * s; ++row) {
    for (int column = 0; column < n_columns; ++column) {
      for (int beam = 0; beam < 2; ++beam) {
        Electron electron{};
        electron.x = (column + 0.5) / s;
        electron.y = (row + 0.5) / s;
        electron.weight = 1.0 / (2 * s * s);
        electron.id = (std::int64_t{row} * n_columns + column) * 2 + beam;
        const double sign = beam == 0 ? 1 : -1;
        const double wave = std::sin(2 * std::numbers::pi * setup.mode * electron.x / setup.nx);
        // Weibel: the beams separate sideways. Two-stream: both bunch in the same way, and charge
        // accumulates.
        electron.ux = setup.thermal * random_normal(setup.random, electron.id, 0);
        electron.ux += (setup.along_x() ? 1 : sign) * setup.seed * wave;
        electron.uy = setup.thermal * random_normal(setup.random, electron.id, 1);
        electron.uz = setup.thermal * random_normal(setup.random, electron.id, 2);
        (setup.along_x() ? electron.ux : electron.uz) += sign * setup.beam;
        electrons.push_back(electron);
      }
    }
  }
  return electrons;
}

std::int64_t push(const Setup& setup, const Slab& slab, const Fields& f,
                  std::vector<Electron>& electrons, std::vector<Place>& places_before) {
  const double half = -setup.time_step / 2;  // charge over mass is -1
  const double ratio = setup.ratio();
  const int row = slab.first_row;
  std::int64_t kinetic = 0;
  places_before.clear();
  for (Electron& e : electrons) {
    const Spline x(e.x), y(e.y), x_half(e.x - 0.5), y_half(e.y - 0.5);
    const double kick_x = half * gathered(f.ex, x_half, y, row);
    const double kick_y = half * gathered(f.ey, x, y_half, row);
    const double kick_z = half * gathered(f.ez, x, y, row);
    const double ux = e.ux + kick_x;
    const double uy = e.uy + kick_y;
    const double uz = e.uz + kick_z;
    const double squared = ux * ux + uy * uy + uz * uz;
    const double gamma = std::sqrt(1 + squared);
    kinetic += static_cast<std::int64_t>(e.weight * squared / (gamma + 1) / kKineticUnit);
    const double tx = half / gamma * gathered(f.bx, x, y_half, row);
    const double ty = half / gamma * gathered(f.by, x_half, y, row);
    const double tz = half / gamma * gathered(f.bz, x_half, y_half, row);
    const double s = 2 / (1 + tx * tx + ty * ty + tz * tz);
    const double wx = ux + uy * tz - uz * ty;
    const double wy = uy + uz * tx - ux * tz;
    const double wz = uz + ux * ty - uy * tx;
    e.ux = ux + s * (wy * tz - wz * ty) + kick_x;
    e.uy = uy + s * (wz * tx - wx * tz) + kick_y;
    e.uz = uz + s * (wx * ty - wy * tx) + kick_z;
    places_before.push_back({e.x, e.y});
    const double cells = inverse_gamma(e) * ratio;
    e.x += e.ux * cells;
    e.y += e.uy * cells;
  }
  return kinetic;
}

void deposit(const Setup& setup, const Slab& slab, const std::vector<Electron>& electrons,
             const std::vector<Place>& places_before, Deposits& deposits) {
  deposits.clear();
  for (std::size_t k = 0; k < electrons.size(); ++k) {
    const Electron& e = electrons[k];
    const Spline x(places_before[k].x), y(places_before[k].y);
    deposit_one(Way(x, Spline(e.x)), Way(y, Spline(e.y)), x.node, y.node - slab.first_row,
                -e.weight / kChargeUnit, 1 / setup.ratio(), e.uz * inverse_gamma(e), deposits);
  }
}

Leavers take_leavers(const Slab& slab, std::vector<Electron>& electrons) {
  const auto wrapped = [](double position, double length) {
    if (position < 0) position += length;
    return position >= length ? position - length : position;
  };
  Leavers leavers;
  std::size_t n_kept = 0;
  for (Electron& e : electrons) {
    const bool below = e.y < slab.first_row;
    const bool above = e.y >= slab.first_row + slab.ny;
    e.x = wrapped(e.x, slab.nx);
    if (below || above) e.y = wrapped(e.y, slab.ny_all);
    if (slab.n_ranks > 1 && (below || above)) {
      (below ? leavers.down : leavers.up).push_back(e);
    } else {
      electrons[n_kept++] = e;
    }
  }
  electrons.resize(n_kept);
  return leavers;
}

void migrate(const Slab& slab, const Leavers& leavers, std::vector<Electron>& electrons) {
  if (slab.n_ranks == 1) return;
  const auto pass = [&](const std::vector<Electron>& out, int to, int from) {
    const auto n_out = static_cast<int>(out.size() * sizeof(Electron));
    int n_in = 0;
    MPI_Sendrecv(&n_out, 1, MPI_INT, to, 0, &n_in, 1, MPI_INT, from, 0, slab.comm,
                 MPI_STATUS_IGNORE);
    const std::size_t n_before = electrons.size();
    electrons.resize(n_before + static_cast<std::size_t>(n_in) / sizeof(Electron));
    MPI_Sendrecv(out.data(), n_out, MPI_BYTE, to, 1, electrons.data() + n_before, n_in, MPI_BYTE,
                 from, 1, slab.comm, MPI_STATUS_IGNORE);
  };
  pass(leavers.down, slab.down, slab.up);
  pass(leavers.up, slab.up, slab.down);
}

void sort_by_cell(const Slab& slab, std::vector<Electron>& electrons) {
  const auto cell_of = [&](const Electron& e) {
    return static_cast<std::size_t>(static_cast<int>(e.y) - slab.first_row) *
               static_cast<std::size_t>(slab.nx) +
           static_cast<std::size_t>(e.x);
  };
  std::vector<std::size_t> next(
      static_cast<std::size_t>(slab.nx) * static_cast<std::size_t>(slab.ny) + 1);
  for (const Electron& e : electrons) ++next[cell_of(e) + 1];
  for (std::size_t c = 1; c < next.size(); ++c) next[c] += next[c - 1];
  std::vector<Electron> sorted(electrons.size());
  for (const Electron& e : electrons) sorted[next[cell_of(e)]++] = e;
  electrons.swap(sorted);
}

}  // namespace plasma
