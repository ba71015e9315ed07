// Linear theory of the two instabilities, and the fit of a line to a logarithm.

#include "plasma_theory.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace plasma {

namespace {

double wave_number(const Setup& setup) {
  return 2 * std::numbers::pi * setup.mode / (setup.nx * setup.cell_width);
}

}  // namespace

double growth_rate(const Setup& setup) {
  const double k = wave_number(setup);
  const double gamma = std::sqrt(1 + setup.beam * setup.beam);
  const double speed = setup.beam / gamma;
  const double stiff = std::pow(gamma, -3);
  if (setup.along_x()) {
    const double a = k * speed * k * speed;
    const double square = a + stiff / 2 - std::sqrt(8 * a * stiff + stiff * stiff) / 2;
    return square < 0 ? std::sqrt(-square) : 0;
  }
  const double b = k * k + stiff;
  return std::sqrt((std::sqrt(b * b + 4 * speed * speed * k * k / gamma) - b) / 2);
}

bool can_be_compared(const Setup& setup, std::size_t n_steps) {
  const double rate = growth_rate(setup);
  const bool cold = setup.thermal * wave_number(setup) < 0.02 * rate;
  const auto n_electrons = static_cast<double>(setup.n_electrons());
  const bool clear = setup.seed > 5 * setup.thermal * std::sqrt(2 / n_electrons);
  const double e_foldings_before = rate * setup.time_step * static_cast<double>(n_steps) / 2;
  return cold && clear && e_foldings_before > 2;
}

Growth measured_growth(const std::vector<double>& amplitudes, double time_step) {
  // The first half contains other waves that the start excites and that do not grow.
  const auto begin = amplitudes.begin() + static_cast<std::ptrdiff_t>(amplitudes.size() / 2);
  const auto end = amplitudes.end();
  const auto n = static_cast<double>(end - begin);
  if (n < 8) return {};
  double mean_log = 0;
  for (auto a = begin; a != end; ++a) mean_log += std::log(*a) / n;
  double products = 0;
  double squares = 0;
  for (auto a = begin; a != end; ++a) {
    const double time = (static_cast<double>(a - begin) - (n - 1) / 2) * time_step;
    products += time * (std::log(*a) - mean_log);
    squares += time * time;
  }
  const double rate = products / squares;
  return {rate, rate * n * time_step};
}

}  // namespace plasma
