// White noise from a stateless generator, coloured in Fourier space, converted to displacements.

#include "cosmo/zeldovich.hpp"

#include <cmath>
#include <utility>

namespace cosmo {
namespace {

constexpr double kFullCircle = 6.283185307179586;

/// splitmix64: a random number for each counter, so that every rank knows every cell's number.
std::uint64_t mix(std::uint64_t counter) {
  std::uint64_t z = counter + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// Normally distributed, mean 0, variance 1 (Box & Muller 1958).
double normal(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t first = mix(mix(seed) + 2 * index);
  const std::uint64_t second = mix(mix(seed) + 2 * index + 1);
  const double u = (static_cast<double>(first >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(second >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(kFullCircle * v);
}

double power(const Spectrum& spectrum, int n, int k2) {
  if (k2 == 0) return 0;
  const double l = kFullCircle * spectrum.cutoff_cells / n;
  return std::pow(static_cast<double>(k2), spectrum.index / 2) *
         std::exp(-l * l * static_cast<double>(k2));
}

/// The amplitude for a linear variance of sigma^2: a sum over all modes, equal on all ranks.
double amplitude(const Spectrum& spectrum, int n) {
  double variance = 0;
  for (int x = 0; x < n; ++x) {
    const int kx = 2 * x <= n ? x : x - n;
    for (int y = 0; y < n; ++y) {
      const int ky = 2 * y <= n ? y : y - n;
      for (int z = 0; z < n; ++z) {
        const int kz = 2 * z <= n ? z : z - n;
        variance += power(spectrum, n, kx * kx + ky * ky + kz * kz);
      }
    }
  }
  return spectrum.sigma / std::sqrt(variance);
}

void fill_with_noise(const Slabs& slabs, std::uint64_t seed, Mesh& mesh) {
  for (int x = 0; x < slabs.count(); ++x) {
    const std::uint64_t plane = std::uint64_t(slabs.first()) + std::uint64_t(x);
    for (std::size_t cell = 0; cell < slabs.plane_cells(); ++cell) {
      mesh.plane(x)[cell] = normal(seed, plane * slabs.plane_cells() + cell);
    }
  }
}

/// psi at D = 1 on the mesh, in cells: delta = -div psi, so psi_k = i k / k^2 delta_k.
VectorMesh displacements(app::Lanes& lanes, const Slabs& slabs, SlabFft& fft,
                         const Spectrum& spectrum) {
  VectorMesh psi = vector_mesh(slabs);
  lanes.offload([&] {
    fill_with_noise(slabs, spectrum.seed, psi[0]);
    fft.forward_planes(psi[0]);
  });
  lanes.exchange([&] { fft.to_lines(); });
  std::vector<Complex> delta;
  lanes.offload([&] {
    // The noise's transform has the variance n^3; the inverse transform is a plain sum.
    const double scale = amplitude(spectrum, slabs.n) / std::pow(slabs.n, 1.5);
    fft.forward_lines();
    fft.visit([&](const Mode& mode, Complex& value) {
      value *= scale * std::sqrt(power(spectrum, slabs.n, mode.k2()));
    });
    delta = fft.modes();
  });
  for (int d = 0; d < 3; ++d) {
    lanes.offload([&] {
      fft.modes() = delta;
      fft.visit([&](const Mode& mode, Complex& value) {
        const double factor =
            mode.k2() == 0 ? 0 : mode.odd(d) * slabs.n / (kFullCircle * mode.k2());
        value *= Complex(0, factor);
      });
      fft.inverse_lines();
    });
    lanes.exchange([&] { fft.to_planes(); });
    lanes.offload([&] { fft.inverse_planes(psi[std::size_t(d)]); });
  }
  lanes.exchange([&] { fill_ghosts(slabs, {&psi[0], &psi[1], &psi[2]}); });
  return psi;
}

/// The undisturbed lattice in our slab: m per cell and direction, shifted by `shift` spacings from
/// the corner.
Particles lattice(const Slabs& slabs, int m, double shift) {
  Particles particles;
  for (int x = slabs.first() * m; x < (slabs.first() + slabs.count()) * m; ++x) {
    for (int y = 0; y < slabs.n * m; ++y) {
      for (int z = 0; z < slabs.n * m; ++z) {
        particles.at[0].push_back((x + shift) / m);
        particles.at[1].push_back((y + shift) / m);
        particles.at[2].push_back((z + shift) / m);
      }
    }
  }
  for (std::vector<double>& component : particles.p) component.assign(particles.count(), 0.0);
  return particles;
}

}  // namespace

InitialParticles zeldovich(app::Lanes& lanes, const Slabs& slabs, SlabFft& fft,
                           const Background& background, const Spectrum& spectrum, int m,
                           double growth) {
  const VectorMesh psi = displacements(lanes, slabs, fft, spectrum);
  InitialParticles initial;
  for (auto [particles, shift] : {std::pair(&initial.dark, 0.0), std::pair(&initial.gas, 0.5)}) {
    Migration migration(slabs);
    lanes.offload([&, to = particles, by = shift] {
      *to = lattice(slabs, m, by);
      // Used as momenta, the displacements in cells move the particles, and then become momenta.
      kick(slabs, *to, psi, 1.0);
      drift(slabs, *to, growth);
      const double momentum = background.growing_momentum(growth) / slabs.n;
      for (std::vector<double>& component : to->p) {
        for (double& p : component) p *= momentum;
      }
    });
    lanes.host([&, to = particles] { migration.pack(*to); });
    lanes.exchange([&] { migration.travel(); });
    lanes.host([&, to = particles] { migration.settle(*to); });
  }
  return initial;
}

}  // namespace cosmo
