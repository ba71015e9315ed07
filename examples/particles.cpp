// Particles that move from rank to rank: 1-D fields with another count on every rank and in every
// output.
//
// A disc of test particles turns around a star. Each rank owns a sector of the sky, and a particle
// that leaves a sector is sent to the rank of the next one. In the file, all particles of an output
// form one 1-D dataset per property; a rank's part starts where the preceding ranks' parts end.
//
//   mpiexec -n 4 ./particles disc.h5

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <tailrace/tailrace.hpp>

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#endif

namespace {

constexpr std::int64_t kParticles = 30000;
constexpr double kTimeStep = 0.02;  // a circular orbit of radius 1 takes 2 pi
constexpr double kTwoPi = 6.283185307179586;

struct Particle {
  double x, y, vx, vy;
  std::int64_t id;
};
using Particles = std::vector<Particle>;

int rank = 0;
int n_ranks = 1;

double sum_over_ranks(double value) {
#ifdef TAILRACE_WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
  return value;
}

// Number of particles of the ranks before this one.
std::uint64_t n_before(std::uint64_t n_mine) {
  std::uint64_t n = 0;
#ifdef TAILRACE_WITH_MPI
  MPI_Exscan(&n_mine, &n, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) n = 0;  // MPI leaves it undefined there
#else
  (void)n_mine;
#endif
  return n;
}

int rank_of(const Particle& p) {
  const double turns = std::atan2(p.y, p.x) / kTwoPi + 0.5;  // 0 to 1
  const int sector = static_cast<int>(turns * n_ranks);
  return sector < n_ranks ? sector : n_ranks - 1;
}

// Sends every particle to the rank of its sector.
Particles migrate(const Particles& particles) {
  std::vector<Particles> leaving(static_cast<std::size_t>(n_ranks));
  for (const Particle& p : particles) leaving[static_cast<std::size_t>(rank_of(p))].push_back(p);
  Particles mine = leaving[static_cast<std::size_t>(rank)];
#ifdef TAILRACE_WITH_MPI
  for (int distance = 1; distance < n_ranks; ++distance) {
    const int to = (rank + distance) % n_ranks;
    const int from = (rank + n_ranks - distance) % n_ranks;
    const Particles& out = leaving[static_cast<std::size_t>(to)];
    const int n_out = static_cast<int>(out.size() * sizeof(Particle));
    int n_in = 0;
    MPI_Sendrecv(&n_out, 1, MPI_INT, to, 0, &n_in, 1, MPI_INT, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    Particles in(static_cast<std::size_t>(n_in) / sizeof(Particle));
    MPI_Sendrecv(out.data(), n_out, MPI_BYTE, to, 1, in.data(), n_in, MPI_BYTE, from, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mine.insert(mine.end(), in.begin(), in.end());
  }
#endif
  return mine;
}

// A third of a disc between radius 0.5 and 1.5, so that some sectors are empty at first.
Particles first_particles() {
  Particles mine;
  for (std::int64_t id = rank; id < kParticles; id += n_ranks) {
    const double share = (static_cast<double>(id) + 0.5) / kParticles;
    const double radius = std::sqrt(0.25 + 2 * share);
    const double angle = std::fmod(static_cast<double>(id) * 0.6180339887498949, 1.0) * kTwoPi / 3;
    const double speed = 1 / std::sqrt(radius);
    mine.push_back({radius * std::cos(angle), radius * std::sin(angle), -speed * std::sin(angle),
                    speed * std::cos(angle), id});
  }
  return migrate(mine);
}

void kick(Particles& particles, double time) {
  for (Particle& p : particles) {
    const double r2 = p.x * p.x + p.y * p.y;
    const double pull = time / (r2 * std::sqrt(r2));
    p.vx -= p.x * pull, p.vy -= p.y * pull;
  }
}

void drift(Particles& particles, double time) {
  for (Particle& p : particles) p.x += p.vx * time, p.y += p.vy * time;
}

double angular_momentum(const Particles& particles) {
  double sum = 0;
  for (const Particle& p : particles) sum += p.x * p.vy - p.y * p.vx;
  return sum_over_ranks(sum);
}

template <class T, class Of>
void write_property(tailrace::File& file, const std::string& path, const Particles& particles,
                    const char* options, Of of) {
  std::vector<T> values;
  for (const Particle& p : particles) values.push_back(static_cast<T>(of(p)));
  auto field = file.define<T>(path, {kParticles}, options);
  field.put_copy({n_before(values.size()), values.size()}, values);
}

int run(const std::string& path) {
  Particles particles = first_particles();
  const double momentum_at_start = angular_momentum(particles);

  tailrace::Comm ranks;
#ifdef TAILRACE_WITH_MPI
  ranks = tailrace::mpi(MPI_COMM_WORLD);
#endif
  auto file = tailrace::File::create(path, ranks, "replace=on");
  for (int output = 0; output < 5; ++output) {
    const std::string group = "/output_" + std::to_string(output);
    const char* near = "codec=portable,bound=abs=1e-5";
    write_property<double>(file, group + "/x", particles, near, [](auto& p) { return p.x; });
    write_property<double>(file, group + "/y", particles, near, [](auto& p) { return p.y; });
    write_property<float>(file, group + "/vx", particles, near, [](auto& p) { return p.vx; });
    write_property<float>(file, group + "/vy", particles, near, [](auto& p) { return p.vy; });
    write_property<std::int64_t>(file, group + "/id", particles, "", [](auto& p) { return p.id; });
    file.set_attribute(group, "time", output * 50 * kTimeStep);
    const tailrace::StepReport report = file.end_step();
    if (rank == 0) {
      std::printf("%s: %zu particles here, %.1f times smaller\n", group.c_str(), particles.size(),
                  report.ratio);
    }
    for (int step = 0; step < 50; ++step) {
      kick(particles, kTimeStep / 2);
      drift(particles, kTimeStep);
      kick(particles, kTimeStep / 2);
    }
    particles = migrate(particles);
  }
  file.close();

  const double n = sum_over_ranks(static_cast<double>(particles.size()));
  const double change = std::abs(angular_momentum(particles) / momentum_at_start - 1);
  if (rank == 0) {
    std::printf("%.0f particles; angular momentum changed by %.1e of its amount\n", n, change);
  }
  return n == kParticles && change < 1e-12 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    std::printf("usage: %s [FILE]\nWrites FILE, disc.h5 if none is named.\n", argv[0]);
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
#ifdef TAILRACE_WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
#endif
  int failed = 1;
  try {
    failed = run(argc > 1 ? argv[1] : "disc.h5");
  } catch (const tailrace::Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
  }
#ifdef TAILRACE_WITH_MPI
  MPI_Finalize();
#endif
  return failed;
}
