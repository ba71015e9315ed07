// Particles and maps from a seed; synthetic_nyx.cpp makes nyx.

#include "synthetic_sets.hpp"

#include <cmath>
#include <numbers>
#include <random>

#include "cli/synthetic_nyx.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {
namespace {

/// Uniform and normal numbers that do not depend on the standard library: the engines of <random>
/// are portable, its distributions are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// Uniform number in (0, 1].
  double uniform() { return (static_cast<double>(engine_() >> 11) + 1) * 0x1p-53; }
  double normal() {  // Box and Muller
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 engine_;
};

std::vector<SyntheticField> make_nyx(const Shape& cells, std::uint64_t seed) {
  std::vector<std::vector<float>> values = make_synthetic_nyx(cells, seed);
  std::vector<SyntheticField> fields;
  for (std::size_t f = 0; f < values.size(); ++f) {
    fields.push_back({kSyntheticNyxNames[f], std::move(values[f]), std::nullopt});
  }
  return fields;
}

/// Wave of random direction; the sum of such waves is a smooth random field on the unit cube.
struct Wave {
  double k[3];
  double phase;
  double amplitude;
};

constexpr std::size_t kWaves = 24;

std::vector<Wave> make_waves(Random& random) {
  std::vector<Wave> waves(kWaves);
  for (Wave& wave : waves) {
    double squared = 0;
    for (double& k : wave.k) {
      k = std::round(4 * random.normal());
      squared += k * k;
    }
    wave.phase = 2 * std::numbers::pi * random.uniform();
    wave.amplitude = random.normal() / (1 + squared);
  }
  return waves;
}

std::vector<SyntheticField> make_particles(const Shape& cells, std::uint64_t seed) {
  constexpr double kDisplacement = 0.6;   // lattice spacings per unit of the field's gradient
  constexpr double kBox = 20;             // Mpc/h, as in the real run
  constexpr double kFlow = 60;            // km/s per unit of displacement
  constexpr double kRandomVelocity = 25;  // km/s
  const std::uint64_t n = cells.front();
  const auto edge = static_cast<std::uint64_t>(std::ceil(std::cbrt(static_cast<double>(n))));
  Random random(seed);
  const std::vector<Wave> waves = make_waves(random);
  const char* names[6] = {"x", "y", "z", "vx", "vy", "vz"};
  std::vector<SyntheticField> fields;
  for (const char* name : names) fields.push_back({name, std::vector<float>(n), std::nullopt});
  for (std::uint64_t p = 0; p < n; ++p) {
    const std::uint64_t at[3] = {p / (edge * edge), p / edge % edge, p % edge};
    double place[3];
    for (int d = 0; d < 3; ++d) {
      place[d] = (static_cast<double>(at[d]) + 0.5) / static_cast<double>(edge);
    }
    double displacement[3] = {0, 0, 0};
    for (const Wave& wave : waves) {
      const double angle =
          2 * std::numbers::pi *
              (wave.k[0] * place[0] + wave.k[1] * place[1] + wave.k[2] * place[2]) +
          wave.phase;
      for (int d = 0; d < 3; ++d) displacement[d] += wave.amplitude * wave.k[d] * std::cos(angle);
    }
    for (std::size_t d = 0; d < 3; ++d) {
      const double moved = place[d] + (kDisplacement * displacement[d] + 0.1 * random.normal()) /
                                          static_cast<double>(edge);
      fields[d].values[p] = static_cast<float>(kBox * (moved - std::floor(moved)));
      fields[3 + d].values[p] =
          static_cast<float>(kFlow * displacement[d] + kRandomVelocity * random.normal());
    }
  }
  return fields;
}

constexpr double kNothing = -1e10;  // value on land, as in the real ocean maps

std::vector<SyntheticField> make_climate(const Shape& cells, std::uint64_t seed) {
  Random random(seed);
  const std::vector<Wave> eddies = make_waves(random);
  const std::vector<Wave> coasts = make_waves(random);
  const auto at = [&](const std::vector<Wave>& waves, const double(&place)[3]) {
    double sum = 0;
    for (const Wave& wave : waves) {
      sum += wave.amplitude *
             std::cos(2 * std::numbers::pi *
                          (wave.k[0] * place[0] + wave.k[1] * place[1] + wave.k[2] * place[2]) +
                      wave.phase);
    }
    return sum;
  };
  std::vector<SyntheticField> fields = {{"ocean_temperature", {}, kNothing},
                                        {"ocean_salinity", {}, kNothing},
                                        {"air_temperature", {}, std::nullopt}};
  for_each_position(whole_box(cells), [&](const Shape& position) {
    double place[3];
    for (std::size_t d = 0; d < 3; ++d) {
      place[d] = static_cast<double>(position[d]) / static_cast<double>(cells[d]);
    }
    const double latitude = std::numbers::pi * (place[1] - 0.5);
    const double depth = place[0];
    const double eddy = at(eddies, place);
    // Coasts do not move with depth; the sea floor rises towards them.
    const double shore[3] = {0, place[1], place[2]};
    const bool land = at(coasts, shore) > 0.15 - 0.2 * depth;
    const double warm = 28 * std::cos(latitude) * std::exp(-2 * depth) + 1.5 * eddy;
    const double noise = 0.02 * random.normal();
    fields[0].values.push_back(static_cast<float>(land ? kNothing : warm + noise));
    fields[1].values.push_back(
        static_cast<float>(land ? kNothing : 34.5 + std::cos(2 * latitude) + 0.3 * eddy + noise));
    fields[2].values.push_back(static_cast<float>(
        288 - 30 * std::sin(latitude) * std::sin(latitude) - 60 * depth + 3 * eddy + 10 * noise));
  });
  return fields;
}

}  // namespace

const SyntheticSet& synthetic_set(const std::string& name) {
  static const SyntheticSet nyx = {
      "Gaussian random fields with a cold-dark-matter spectrum, log-normal densities",
      kSyntheticNyxNames.size(),
      {128, 128, 128},
      make_nyx};
  static const SyntheticSet particles = {
      "a lattice moved by smooth random waves, velocities with a random part",
      6,
      {262144},
      make_particles};
  static const SyntheticSet climate = {
      "maps with bands by latitude, eddies, and fill values on land",
      3,
      {20, 90, 180},
      make_climate};
  if (name == "particles") return particles;
  if (name == "climate") return climate;
  TAILRACE_CHECK(name == "nyx");
  return nyx;
}

}  // namespace tailrace::bench
