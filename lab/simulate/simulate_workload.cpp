// Generated iterations; see the header.
//
// All ranks have the obstacles of one pattern, drawn once, because ranks of an application do the
// same at the same time; each rank and iteration has separate noise. Ratios of chunks are constant
// over iterations, except for the noise (3.4: about 1.5 % difference in Nyx).

#include "simulate/simulate_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/obstacle_forecast.hpp"
#include "simulate/random_flow_shop.hpp"

namespace tailrace {
namespace {

constexpr double kRatioLeast = 1.1;
/// Lower limit of a noise factor, because a normal variable has unbounded tails.
constexpr double kFactorLeast = 0.2;
constexpr double kObstacleLeastS = 1e-6;

enum Stream : std::uint64_t { pattern_stream, node_stream, chunk_stream, noise_stream };

double noisy_factor(RandomDraws& draws, double sigma) {
  return std::max(1 + sigma * draws.normal(), kFactorLeast);
}

std::vector<Obstacle> noisy_lane(std::span<const Obstacle> expected, double sigma_s,
                                 RandomDraws& draws) {
  std::vector<Obstacle> actual;
  double free_from_s = 0;
  for (const Obstacle& obstacle : expected) {
    const double start_s = obstacle.start_s + sigma_s * draws.normal();
    const double end_s = obstacle.end_s + sigma_s * draws.normal();
    Obstacle& now = actual.emplace_back();
    now.start_s = std::max(start_s, free_from_s);
    now.end_s = std::max(end_s, now.start_s + kObstacleLeastS);
    free_from_s = now.end_s;
  }
  return actual;
}

class GeneratedStory : public VirtualStory {
 public:
  GeneratedStory(const VirtualApplication& application, const VirtualStorySettings& settings,
                 const LaneObstacles& pattern, double mean_ratio, std::size_t rank)
      : application_(application), settings_(settings), rank_(rank) {
    base_.forecast.obstacles = pattern;
    base_.forecast.iteration_s = application.iteration_s;
    const double sigma_s = settings.noise.obstacles * application.iteration_s;
    base_.main_margin_s = settings.margin * sigma_s;
    if (settings.io_margin) base_.io_margin_s = base_.main_margin_s;
    RandomDraws draws(stream_seed(settings.seed, chunk_stream, rank));
    for (std::size_t field = 0; field < application.n_fields; ++field) {
      const std::uint64_t n_chunks =
          (application.field_bytes + application.chunk_bytes - 1) / application.chunk_bytes;
      for (std::uint64_t chunk = 0; chunk < n_chunks; ++chunk) {
        // Divide the field evenly, as the paper does (5.2).
        const std::uint64_t raw_bytes = application.field_bytes / n_chunks;
        const double spread = application.chunk_spread;
        const double ratio = mean_ratio * std::exp(spread * draws.normal() - 0.5 * spread * spread);
        add_chunk(raw_bytes, std::max(ratio, kRatioLeast));
      }
    }
  }

  VirtualRank next() override {
    VirtualRank rank = base_;
    if (settings_.learned && seen_.n_iterations() > 0) {
      rank.forecast.obstacles = seen_.next();
      rank.forecast.iteration_s = seen_.iteration_s();
      rank.main_margin_s = settings_.margin * seen_.spread_s(Lane::main);
      if (settings_.io_margin) rank.io_margin_s = settings_.margin * seen_.spread_s(Lane::io);
    }
    const std::uint64_t position = (static_cast<std::uint64_t>(rank_) << 24) + n_drawn_++;
    const std::uint64_t seed = stream_seed(settings_.seed, noise_stream, position);
    const double sigma_s = settings_.noise.obstacles * application_.iteration_s;
    rank.actual.iteration_s = application_.iteration_s;
    rank.actual.obstacles = noisy_obstacles(base_.forecast.obstacles, sigma_s, ~seed);
    RandomDraws draws(seed);
    for (std::size_t job = 0; job < ratios_.size(); ++job) draw_job(rank, job, draws);
    if (settings_.learned) seen_.add_iteration(rank.actual.obstacles, rank.actual.iteration_s);
    return rank;
  }

 private:
  void add_chunk(std::uint64_t raw_bytes, double ratio) {
    const double encoded_bytes = static_cast<double>(raw_bytes) / ratio;
    ratios_.push_back(ratio);
    base_.raw_bytes.push_back(raw_bytes);
    base_.encoded_bytes.push_back(static_cast<std::uint64_t>(encoded_bytes));
    base_.forecast.jobs.push_back(
        {settings_.costs.encode_s(static_cast<double>(raw_bytes), encoded_bytes),
         settings_.costs.write_s(encoded_bytes)});
  }

  void draw_job(VirtualRank& rank, std::size_t job, RandomDraws& draws) const {
    const VirtualNoise& noise = settings_.noise;
    const auto raw = static_cast<double>(rank.raw_bytes[job]);
    const double ratio = std::max(ratios_[job] * noisy_factor(draws, noise.ratio), 1.0);
    const double encode = noisy_factor(draws, noise.encode);
    const double write = noisy_factor(draws, noise.write);
    rank.encoded_bytes[job] = static_cast<std::uint64_t>(raw / ratio);
    const auto encoded = static_cast<double>(rank.encoded_bytes[job]);
    // The expected ratio determines the encoder's speed, whose noise has a separate deviation.
    rank.actual.jobs.push_back(
        {rank.forecast.jobs[job].encode_s / encode, settings_.costs.write_s(encoded) / write});
  }

  VirtualApplication application_;
  VirtualStorySettings settings_;
  std::size_t rank_;
  VirtualRank base_;
  std::vector<double> ratios_;
  ObstacleForecast seen_;
  std::size_t n_drawn_ = 0;
};

const std::array<VirtualApplication, 3>& applications() {
  // nyx: 256^3 cells of f32 a rank, six fields and three of particles, ratio 16, chunks of 8 MiB
  // (5.1, 5.4.2); an iteration of about 4 s (table 1). warpx: 128 x 128 x 1024 cells of f64, the
  // six components of E and B, ratio 273.9 (5.1, 5.4.2); an iteration of about 1.7 s. The latter
  // follows from appendix B: 38.74 s are 121.9 % more than 10 iterations without output.
  static const std::array<VirtualApplication, 3> known = {{
      {.name = "nyx", .n_fields = 9, .ratio_difference = 10},
      {.name = "warpx",
       .iteration_s = 1.75,
       .n_fields = 6,
       .field_bytes = 128U << 20,
       .mean_ratio = 273.9,
       .ratio_difference = 100},
      {.name = "uniform", .chunk_spread = 0},
  }};
  return known;
}

Status check(const VirtualApplication& application) {
  const auto refuse = [](const std::string& text) { return Status(Code::invalid_argument, text); };
  if (!(application.iteration_s > 0)) return refuse("iteration time: must be above 0 s");
  for (const double share : {application.main_busy_share, application.io_busy_share}) {
    if (!(share >= 0 && share < 1)) {
      return refuse(fmt::format("busy share {}: must be at least 0 and below 1", share));
    }
  }
  if (application.n_fields == 0 || application.field_bytes == 0 || application.chunk_bytes == 0) {
    return refuse("number of fields, field bytes and chunk bytes must be above 0");
  }
  if (!(application.mean_ratio >= kRatioLeast)) {
    return refuse(
        fmt::format("ratio {}: must be at least {}", application.mean_ratio, kRatioLeast));
  }
  if (!(application.ratio_difference >= 0) || !(application.chunk_spread >= 0)) {
    return refuse("spread of ratios: must be at least 0");
  }
  return Status();
}

}  // namespace

std::span<const VirtualApplication> virtual_applications() { return applications(); }

Result<VirtualApplication> virtual_application(std::string_view name) {
  std::string known;
  for (const VirtualApplication& application : applications()) {
    if (application.name == name) return application;
    known += (known.empty() ? "" : ", ") + application.name;
  }
  return Status(Code::invalid_argument,
                fmt::format("application \"{}\": unknown name; expected one of {}", name, known));
}

std::uint64_t stream_seed(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  // splitmix64 (Steele et al. 2014) over all three, so that no two streams start alike.
  std::uint64_t state = seed;
  for (const std::uint64_t part : {stream, position}) {
    state += 0x9e3779b97f4a7c15U + part;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9U;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebU;
    state ^= state >> 31;
  }
  return state;
}

double mean_encode_s(std::span<const JobCost> jobs) {
  double sum_s = 0;
  for (const JobCost& job : jobs) sum_s += job.encode_s;
  return jobs.empty() ? 0 : sum_s / static_cast<double>(jobs.size());
}

std::vector<double> node_ratios(std::size_t n_ranks, double mean, double difference,
                                std::uint64_t seed) {
  RandomDraws draws(seed);
  std::vector<double> ratios(n_ranks);
  double sum = 0;
  for (double& ratio : ratios) sum += ratio = draws.normal();
  const auto [least, greatest] = std::minmax_element(ratios.begin(), ratios.end());
  const double stretch = n_ranks > 1 ? difference / (*greatest - *least) : 0;
  const double centre = n_ranks > 0 ? sum / static_cast<double>(n_ranks) : 0;
  for (double& ratio : ratios) ratio = std::max(mean + stretch * (ratio - centre), kRatioLeast);
  return ratios;
}

LaneObstacles noisy_obstacles(const LaneObstacles& expected, double sigma_s, std::uint64_t seed) {
  if (sigma_s == 0) return expected;
  RandomDraws draws(seed);
  LaneObstacles actual;
  actual.main = noisy_lane(expected.main, sigma_s, draws);
  actual.io = noisy_lane(expected.io, sigma_s, draws);
  return actual;
}

Result<VirtualWorkload> generated_workload(const VirtualApplication& application,
                                           std::size_t n_ranks, std::size_t ranks_per_node,
                                           std::size_t n_iterations,
                                           const VirtualStorySettings& settings) {
  TAILRACE_TRY(check(application));
  if (n_ranks == 0 || ranks_per_node == 0 || n_iterations == 0) {
    return Status(Code::invalid_argument, "ranks, ranks per node and iterations must be above 0");
  }
  FlowShopShape shape;
  shape.n_jobs = 0;
  shape.iteration_s = application.iteration_s;
  shape.n_main_obstacles = application.main_busy_share > 0 ? application.n_main_obstacles : 0;
  shape.n_io_obstacles = application.io_busy_share > 0 ? application.n_io_obstacles : 0;
  shape.main_obstacle_share = application.main_busy_share;
  shape.io_obstacle_share = application.io_busy_share;
  const LaneObstacles pattern =
      random_flow_shop(shape, stream_seed(settings.seed, pattern_stream, 0)).obstacles;
  VirtualWorkload workload{n_ranks, ranks_per_node, n_iterations, {}};
  workload.open = [=](std::size_t rank) -> std::unique_ptr<VirtualStory> {
    const std::size_t node = rank / ranks_per_node;
    const std::size_t on_node = std::min(ranks_per_node, n_ranks - node * ranks_per_node);
    const std::vector<double> ratios =
        node_ratios(on_node, application.mean_ratio, application.ratio_difference,
                    stream_seed(settings.seed, node_stream, node));
    return std::make_unique<GeneratedStory>(application, settings, pattern,
                                            ratios[rank % ranks_per_node], rank);
  };
  return workload;
}

}  // namespace tailrace
