// trz_table: speed and ratio of every preset over chunk sizes and inputs, hostile ones included.
//
// Usage: trz_table [ROWS [SECONDS]]. It prints the rows whose name INPUT/PRESET/CHUNK_BYTES
// contains ROWS (default: all), as comma-separated values. Each number takes at least SECONDS of
// CPU time (default 0.02).
//
// Every chunk is decoded and checked against its bound before the program measures it. Speeds are
// uncompressed MB (10^6 bytes) per second of the thread's CPU time, medians of at least five
// calls. Two columns are ratios of zstd level 3: on shuffled bytes, and on the bytes as they are.
// All inputs come from fixed seeds.

#include <time.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "trz/base/byte_shuffle.hpp"
#include "trz/trz.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::trz;

constexpr std::size_t kRunsMin = 5;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "trz_table: %s\n", what.c_str());
  std::exit(EXIT_FAILURE);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Uniform numbers in [-1, 1), the same on every platform.
class Noise {
 public:
  float operator()() { return static_cast<float>(random_()) * 0x1p-31F - 1; }
  std::uint32_t bits() { return static_cast<std::uint32_t>(random_()); }

 private:
  std::mt19937 random_{1};
};

// --- inputs. Each function makes n values.

using Values = std::vector<float>;

/// Extents of a cube of n values, or of two cubes: n is a power of two.
Shape cube_of(std::size_t n) {
  std::size_t edge = 1;
  while ((2 * edge) * (2 * edge) * (2 * edge) <= n) edge *= 2;
  const auto e = static_cast<std::int64_t>(edge);
  Shape shape(3, e);
  shape[0] = static_cast<std::int64_t>(n) / e / e;
  return shape;
}

/// Add waves of 64 to 2 points; amplitudes fall with the wavelength's power 1.7.
Values smooth(std::size_t n) {
  const Shape shape = cube_of(n);
  const auto edge = static_cast<std::size_t>(shape[2]);
  Values values(n);
  Noise noise;
  constexpr std::size_t n_waves = 24;
  struct Wave {
    float k[3];
    float phase;
    float amplitude;
  };
  std::vector<Wave> waves(n_waves);
  for (std::size_t w = 0; w < n_waves; ++w) {
    const float length = 64 * std::pow(2.0F, -5.0F * static_cast<float>(w) / n_waves);
    for (float& k : waves[w].k) k = noise() * 6.2831853F / length;
    waves[w].phase = 3.14159F * noise();
    waves[w].amplitude = std::pow(length / 64, 1.7F);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(i % edge);
    const auto y = static_cast<float>(i / edge % edge);
    const std::size_t plane = i / edge / edge;
    const auto z = static_cast<float>(plane);
    float value = 0.002F * noise();
    for (const Wave& w : waves) {
      value += w.amplitude * std::sin(w.phase + w.k[0] * x + w.k[1] * y + w.k[2] * z);
    }
    values[i] = value;
  }
  return values;
}

Values white_noise(std::size_t n) {
  Values values(n);
  Noise noise;
  for (float& value : values) value = noise();
  return values;
}

Values random_bits(std::size_t n) {
  Values values(n);
  Noise noise;
  for (float& value : values) {
    const std::uint32_t bits = noise.bits();
    std::memcpy(&value, &bits, sizeof value);
  }
  return values;
}

Values constant_but_one(std::size_t n) {
  Values values(n, 3.25F);
  values[n / 3] = -7.5F;
  return values;
}

/// A measured series with two decimals: a random walk with jitter.
Values decimals(std::size_t n) {
  Values values(n);
  Noise noise;
  double walk = 1500;
  for (float& value : values) {
    walk += 8 * noise();
    value = static_cast<float>(std::nearbyint(walk + 30 * noise()) / 100);
  }
  return values;
}

Values integers(std::size_t n) {
  Values values = smooth(n);
  Noise noise;
  for (float& value : values) value = std::nearbyint(3000 * value + 20 * noise());
  return values;
}

/// White noise that repeats after `period` values.
Values repeated(std::size_t n, std::size_t period) {
  Values values = white_noise(std::min(n, period));
  values.resize(n);
  for (std::size_t i = period; i < n; ++i) values[i] = values[i - period];
  return values;
}

Values repeated_rows(std::size_t n) { return repeated(n, static_cast<std::size_t>(cube_of(n)[2])); }
Values period_4099(std::size_t n) { return repeated(n, 4099); }

Values sine(std::size_t n) {
  Values values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(std::sin(static_cast<double>(i) * 2 * std::numbers::pi / 1000));
  }
  return values;
}

Values offset(std::size_t n) {
  Values values = smooth(n);
  for (float& value : values) value += 1e6F;
  return values;
}

/// Velocities of particles, three components each, in the order of a space-filling curve.
Values particles(std::size_t n) {
  Values values(n);
  Noise noise;
  double flow[3] = {};
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 3 == 0) {
      for (double& component : flow) component = 0.995 * component + 0.1 * noise();
    }
    values[i] = static_cast<float>(flow[i % 3] + 0.3 * (noise() + noise() + noise()));
  }
  return values;
}

/// Four interleaved series.
Values thin(std::size_t n) {
  Values values(n);
  Noise noise;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t step = i / 4;
    const auto t = static_cast<double>(step);
    values[i] = static_cast<float>(std::sin(t / 50 + static_cast<double>(i % 4)) + 0.01 * noise());
  }
  return values;
}

Values masked(std::size_t n) {
  Values values = smooth(n);
  const Values mask = smooth(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (mask[(i * 3 / 4 + n / 7) % n] > 0.4F) values[i] = 1e30F;
  }
  return values;
}

Values denormals(std::size_t n) {
  Values values = smooth(n);
  for (float& value : values) value *= 1e-40F;
  return values;
}

Shape row_of(std::size_t n) { return Shape(1, static_cast<std::int64_t>(n)); }
Shape thin_of(std::size_t n) {
  Shape shape(3, 2);
  shape[0] = static_cast<std::int64_t>(n / 4);
  return shape;
}
Shape threes_of(std::size_t n) {
  Shape shape(2, 3);
  shape[0] = static_cast<std::int64_t>(n / 3);
  return shape;
}

struct Input {
  const char* name;
  Values (*make)(std::size_t n);
  Shape (*shape)(std::size_t n);
  double bound;  ///< Relative to the range without fill values; 0: lossless.
};

constexpr Input kInputs[] = {
    {"smooth", smooth, cube_of, 1e-3},
    {"noise", white_noise, cube_of, 1e-3},
    {"random_bits", random_bits, cube_of, 0},
    {"constant_but_one", constant_but_one, cube_of, 1e-3},
    {"decimals", decimals, row_of, 0},
    {"decimals_bounded", decimals, row_of, 1e-3},
    {"integers", integers, cube_of, 0},
    {"integers_bounded", integers, cube_of, 1e-4},
    {"repeated_rows", repeated_rows, cube_of, 1e-3},
    {"period_4099", period_4099, row_of, 1e-3},
    {"sine", sine, row_of, 1e-3},
    {"offset_1e6", offset, cube_of, 1e-2},
    {"particles", particles, threes_of, 1e-3},
    {"thin", thin, thin_of, 1e-3},
    {"masked", masked, cube_of, 1e-3},
    {"denormals", denormals, cube_of, 1e-3},
    {"smooth_lossless", smooth, cube_of, 0},
};

constexpr std::size_t kChunkBytes[] = {std::size_t{1} << 14, std::size_t{1} << 17,
                                       std::size_t{1} << 20, std::size_t{1} << 23,
                                       std::size_t{1} << 24};

constexpr std::pair<const char*, Preset> kPresets[] = {{"fast", Preset::fast},
                                                       {"default", Preset::standard},
                                                       {"ratio", Preset::ratio},
                                                       {"max", Preset::max}};

// --- measuring

/// Call `run` at least kRunsMin times and for at least `seconds`. @returns the median time.
template <class Run>
double median_seconds(double seconds, Run run) {
  std::vector<double> times;
  for (double total = 0; times.size() < kRunsMin || total < seconds;) {
    const double begin = cpu_seconds();
    run();
    times.push_back(cpu_seconds() - begin);
    total += times.back();
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Ratio of zstd level 3.
double zstd_ratio(std::span<const std::byte> values, bool shuffled) {
  std::vector<std::byte> bytes(values.begin(), values.end());
  if (shuffled) shuffle_bytes(sizeof(float), values, bytes);
  std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
  const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  if (ZSTD_isError(n) != 0) give_up("zstd failed");
  return static_cast<double>(bytes.size()) / static_cast<double>(n);
}

/// True if each decoded value equals its original bit for bit, or is within the bound.
bool within(const Values& values, const Values& decoded, double bound) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool equal =
        std::bit_cast<std::uint32_t>(values[i]) == std::bit_cast<std::uint32_t>(decoded[i]);
    if (equal) continue;
    const double error = static_cast<double>(values[i]) - static_cast<double>(decoded[i]);
    if (!(std::abs(error) <= bound)) return false;
  }
  return true;
}

double bound_of(const Input& input, const Values& values) {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  for (const float value : values) {
    if (value == 1e30F) continue;
    least = std::min(least, static_cast<double>(value));
    greatest = std::max(greatest, static_cast<double>(value));
  }
  return input.bound * (greatest - least);
}

class Table {
 public:
  Table(std::string wanted, double seconds) : wanted_(std::move(wanted)), seconds_(seconds) {
    std::puts("row,encode_mb_s,decode_mb_s,ratio,zstd3_shuffle_ratio,zstd3_ratio,method");
  }

  /// @returns the number of rows printed.
  int add(const Input& input, std::size_t n_bytes) {
    std::vector<std::pair<std::string, Preset>> rows;
    for (const auto& [preset_name, preset] : kPresets) {
      std::string name =
          std::string(input.name) + "/" + preset_name + "/" + std::to_string(n_bytes);
      if (name.find(wanted_) != std::string::npos) rows.emplace_back(std::move(name), preset);
    }
    if (rows.empty()) return 0;
    std::size_t n = n_bytes / sizeof(float);
    ChunkType type;
    type.shape = input.shape(n);
    n = static_cast<std::size_t>(n_elements(type.shape));
    const Values values = input.make(n);
    type.bound = input.bound == 0 ? 0 : bound_of(input, values);
    type.kind = input.bound == 0 ? BoundKind::exact : BoundKind::absolute;
    const auto bytes = std::as_bytes(std::span(values));
    const double shuffled = zstd_ratio(bytes, true);
    const double plain = zstd_ratio(bytes, false);
    for (const auto& [name, preset] : rows) measure(name, type, preset, values, shuffled, plain);
    return static_cast<int>(rows.size());
  }

 private:
  void measure(const std::string& name, const ChunkType& type, Preset preset, const Values& values,
               double shuffled, double plain) {
    Settings settings;
    settings.preset = preset;
    const auto bytes = std::as_bytes(std::span(values));
    std::vector<std::byte> encoded(encoded_bytes_max(bytes.size()));
    std::size_t n_encoded = 0;
    const auto run_encode = [&] {
      const Result<std::size_t> n = encode(type, settings, bytes, encoded, workspace_);
      if (!n.ok()) give_up(name + ": " + n.status().message());
      n_encoded = *n;
    };
    Values decoded(values.size());
    const auto run_decode = [&] {
      const auto chunk = std::span(encoded).first(n_encoded);
      const Status status =
          decode(chunk, std::as_writable_bytes(std::span(decoded)), nullptr, workspace_);
      if (!status.ok()) give_up(name + ": " + status.message());
    };
    run_encode();
    run_decode();
    if (!within(values, decoded, type.bound)) give_up(name + ": a value is beyond the bound");
    const auto megabytes = static_cast<double>(bytes.size()) * 1e-6;
    const double encode_speed = megabytes / median_seconds(seconds_, run_encode);
    const double decode_speed = megabytes / median_seconds(seconds_, run_decode);
    const Result<ChunkSummary> summary = describe(std::span(encoded).first(n_encoded));
    std::printf("%s,%.0f,%.0f,%.3f,%.3f,%.3f,\"%s\"\n", name.c_str(), encode_speed, decode_speed,
                static_cast<double>(bytes.size()) / static_cast<double>(n_encoded), shuffled, plain,
                summary.ok() ? summary->method.c_str() : "?");
    std::fflush(stdout);
  }

  std::string wanted_;
  double seconds_;
  Workspace workspace_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 0.02;
  if (argc > 3 || !(seconds >= 0)) give_up("usage: trz_table [ROWS [SECONDS]]");
  Table table(wanted, seconds);
  int n_rows = 0;
  for (const Input& input : kInputs) {
    for (const std::size_t n_bytes : kChunkBytes) n_rows += table.add(input, n_bytes);
  }
  if (n_rows == 0) give_up("no row's name contains " + wanted);
  return EXIT_SUCCESS;
}
