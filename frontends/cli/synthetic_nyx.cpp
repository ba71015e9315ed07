// Random fields by Fourier synthesis.
//
// A spectrum of independent complex amplitudes needs no symmetry: the real part of its transform is
// a real Gaussian field, and the imaginary part is an independent one. Multipliers m with m(-k) =
// conj(m(k)), such as those of smoothing and of velocity, act on both parts separately. Spectrum:
// Bardeen, Bond, Kaiser and Szalay 1986, eq. G3, with shape parameter 0.2.

#include "synthetic_nyx.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "trz/base/status.hpp"

namespace tailrace {
namespace {

using Complex = std::complex<float>;

constexpr double kCellMpc = 20.0 / 128;  // Mpc/h a cell, as in the real Nyx runs of 20 Mpc/h
constexpr double kShape = 0.2;           // Gamma, h/Mpc
constexpr double kGasSmoothing = 1.0;    // cells; pressure smooths the gas ...
constexpr double kDarkSmoothing = 0.5;   // ... but not the dark matter
constexpr double kGasSigma = 1.0;        // of ln(density); three decades between extremes
constexpr double kDarkSigma = 1.3;
constexpr double kMeanGas = 6.4e9;            // Msun/Mpc^3
constexpr double kMeanDark = 3.4e10;          // Msun/Mpc^3
constexpr double kMeanTemperature = 1.2e4;    // K
constexpr double kTemperatureSlope = 0.6;     // T ~ density^0.6 in photo-ionised gas
constexpr double kTemperatureScatter = 0.15;  // of ln T
constexpr double kVelocitySpread = 120;       // km/s

/// SplitMix64 (Steele et al. 2014): short, and the same numbers on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// Uniform number in (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11) + 1) * 0x1p-53; }
  /// Two independent normal numbers (Box and Muller).
  Complex normal_pair() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    return {static_cast<float>(radius * std::cos(angle)),
            static_cast<float>(radius * std::sin(angle))};
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

/// A cube of complex numbers whose edge is a power of two.
struct Cube {
  explicit Cube(std::size_t edge_cells) : edge(edge_cells), values(edge * edge * edge) {}
  std::size_t edge;
  std::vector<Complex> values;
};

/// In-place Fourier transform of one line (Cooley and Tukey); `roots` are exp(2 pi i j / n), j < n
/// / 2.
void transform_line(std::vector<Complex>& line, const std::vector<Complex>& roots) {
  const std::size_t n = line.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(line[i], line[j]);
  }
  for (std::size_t length = 2; length <= n; length *= 2) {
    const std::size_t step = n / length;
    for (std::size_t start = 0; start < n; start += length) {
      for (std::size_t k = 0; k < length / 2; ++k) {
        const Complex a = line[start + k];
        const Complex b = line[start + k + length / 2] * roots[k * step];
        line[start + k] = a + b;
        line[start + k + length / 2] = a - b;
      }
    }
  }
}

/// Transform from wave numbers to space, along all three dimensions.
void transform(Cube& cube) {
  const std::size_t n = cube.edge;
  std::vector<Complex> roots(n / 2);
  for (std::size_t j = 0; j < n / 2; ++j) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
    roots[j] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  std::vector<Complex> line(n);
  for (const std::size_t stride : {std::size_t{1}, n, n * n}) {
    for (std::size_t l = 0; l < n * n; ++l) {
      const std::size_t start = l / stride * stride * n + l % stride;
      for (std::size_t i = 0; i < n; ++i) line[i] = cube.values[start + i * stride];
      transform_line(line, roots);
      for (std::size_t i = 0; i < n; ++i) cube.values[start + i * stride] = line[i];
    }
  }
}

/// Wave number in h/Mpc of index i; indices in the upper half are negative wave numbers.
double wave_number(std::size_t i, std::size_t n) {
  const double signed_index = static_cast<double>(i) - (i > n / 2 ? static_cast<double>(n) : 0.0);
  return 2 * std::numbers::pi * signed_index / (static_cast<double>(n) * kCellMpc);
}

/// Square root of the power spectrum, up to a constant; k in h/Mpc.
double amplitude(double k) {
  const double q = k / kShape;
  const double transfer =
      std::log(1 + 2.34 * q) / (2.34 * q) *
      std::pow(1 + 3.89 * q + std::pow(16.1 * q, 2) + std::pow(5.46 * q, 3) + std::pow(6.71 * q, 4),
               -0.25);
  return std::sqrt(k) * transfer;
}

/// Multiply each wave number except 0 by multiplier(kx, ky, kz, k); set wave number 0 to 0.
template <class Multiplier>
Cube multiplied(const Cube& spectrum, Multiplier&& multiplier) {
  Cube result(spectrum.edge);
  const std::size_t n = spectrum.edge;
  for (std::size_t at = 1; at < spectrum.values.size(); ++at) {
    const double k[3] = {wave_number(at / (n * n), n), wave_number(at / n % n, n),
                         wave_number(at % n, n)};
    const double length = std::sqrt(k[0] * k[0] + k[1] * k[1] + k[2] * k[2]);
    result.values[at] = spectrum.values[at] * Complex(multiplier(k, length));
  }
  return result;
}

Cube smoothed(const Cube& spectrum, double cells) {
  const double radius = cells * kCellMpc;
  Cube field = multiplied(spectrum, [&](const double*, double k) {
    return Complex(static_cast<float>(std::exp(-0.5 * k * k * radius * radius)), 0);
  });
  transform(field);
  return field;
}

/// Real or imaginary part of the cube over the block's cells, scaled to mean 0 and variance 1.
std::vector<float> cut_normalised(const Cube& cube, const Shape& cells, bool real_part) {
  std::vector<float> values;
  values.reserve(n_elements(cells));
  double sum = 0;
  double squares = 0;
  for_each_position(whole_box(cells), [&](const Shape& at) {
    const Complex z = cube.values[(at[0] * cube.edge + at[1]) * cube.edge + at[2]];
    values.push_back(real_part ? z.real() : z.imag());
    sum += values.back();
    squares += double{values.back()} * values.back();
  });
  const double n = static_cast<double>(values.size());
  const double spread = std::sqrt(std::max(squares / n - sum / n * (sum / n), 1e-300));
  for (float& value : values) value = static_cast<float>((value - sum / n) / spread);
  return values;
}

/// Log-normal values of this mean; `sigma` is the standard deviation of the logarithm.
std::vector<float> log_normal(const std::vector<float>& normal, double mean, double sigma) {
  std::vector<float> values(normal.size());
  std::transform(normal.begin(), normal.end(), values.begin(), [&](float g) {
    return static_cast<float>(mean * std::exp(sigma * double{g} - 0.5 * sigma * sigma));
  });
  return values;
}

}  // namespace

std::vector<std::vector<float>> make_synthetic_nyx(const Shape& cells, std::uint64_t seed) {
  TAILRACE_CHECK(cells.size() == 3);
  const std::uint64_t longest = std::max({cells[0], cells[1], cells[2], std::uint64_t{2}});
  Cube white(std::bit_ceil(longest));
  Random random(seed * 0x2545F4914F6CDD1DU + 1);
  for (Complex& value : white.values) value = random.normal_pair();
  const Cube contrast = multiplied(
      white, [](const double*, double k) { return Complex(static_cast<float>(amplitude(k)), 0); });

  std::vector<std::vector<float>> fields;
  const Cube gas = smoothed(contrast, kGasSmoothing);
  const std::vector<float> gas_normal = cut_normalised(gas, cells, true);
  const std::vector<float> scatter = cut_normalised(gas, cells, false);
  fields.push_back(log_normal(gas_normal, kMeanGas, kGasSigma));
  fields.push_back(log_normal(cut_normalised(smoothed(contrast, kDarkSmoothing), cells, true),
                              kMeanDark, kDarkSigma));
  std::vector<float> temperature(gas_normal.size());
  for (std::size_t i = 0; i < temperature.size(); ++i) {
    temperature[i] = static_cast<float>(
        kMeanTemperature * std::exp(kTemperatureSlope * kGasSigma * double{gas_normal[i]} +
                                    kTemperatureScatter * double{scatter[i]}));
  }
  fields.push_back(std::move(temperature));
  for (std::size_t d = 0; d < 3; ++d) {
    // Linear theory: the velocity's divergence is minus the growth rate times the contrast.
    Cube velocity = multiplied(contrast, [&](const double* k, double length) {
      return Complex(0, static_cast<float>(k[d] / (length * length)));
    });
    transform(velocity);
    std::vector<float> values = cut_normalised(velocity, cells, true);
    for (float& value : values) value *= static_cast<float>(kVelocitySpread);
    fields.push_back(std::move(values));
  }
  return fields;
}

}  // namespace tailrace
