// A sound wave in a periodic box: 3-D domain decomposition, written from C++.
//
// Every rank holds a block with a halo of one cell around it. The block inside the halo is not
// contiguous in memory: a view selects it. Two fields per output: the pressure within 1e-4 of its
// range, and the rank that computed each cell, exactly.
//
//   mpiexec -n 4 ./write_volume wave.h5

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <tailrace/tailrace.hpp>

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#endif

namespace {

constexpr int kCells = 45;          // in each direction of the complete box
constexpr double kCourant2 = 0.09;  // (c dt / dx)^2; stable below 1/3
constexpr double kTwoPi = 6.283185307179586;

// This rank's block, its neighbours, and the exchange of faces.
struct Blocks {
  std::array<int, 3> n_blocks{1, 1, 1}, at{0, 0, 0}, first{}, n{};
  int rank = 0;
#ifdef TAILRACE_WITH_MPI
  MPI_Comm comm = MPI_COMM_NULL;
#endif

  Blocks() {
#ifdef TAILRACE_WITH_MPI
    int n_ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    n_blocks = {0, 0, 0};
    MPI_Dims_create(n_ranks, 3, n_blocks.data());
    const std::array<int, 3> periodic{1, 1, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 3, n_blocks.data(), periodic.data(), 0, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Cart_coords(comm, rank, 3, at.data());
#endif
    for (int d = 0; d < 3; ++d) {
      first[d] = kCells * at[d] / n_blocks[d];
      n[d] = kCells * (at[d] + 1) / n_blocks[d] - first[d];
    }
  }

  tailrace::Comm ranks() const {
#ifdef TAILRACE_WITH_MPI
    return tailrace::mpi(comm);
#else
    return tailrace::serial();
#endif
  }

  // Sends `face` to the next block in this direction, and receives the face of the block before it.
  void shift([[maybe_unused]] std::vector<double>& face, [[maybe_unused]] int dimension,
             [[maybe_unused]] int direction) const {
#ifdef TAILRACE_WITH_MPI
    int from = 0, to = 0;
    MPI_Cart_shift(comm, dimension, direction, &from, &to);
    MPI_Sendrecv_replace(face.data(), static_cast<int>(face.size()), MPI_DOUBLE, to, 0, from, 0,
                         comm, MPI_STATUS_IGNORE);
#endif
  }

  double sum(double value) const {
#ifdef TAILRACE_WITH_MPI
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, comm);
#endif
    return value;
  }
};

// One value per cell of our block and its halo; (0,0,0) is the first cell inside.
struct Grid {
  std::array<int, 3> n;
  std::vector<double> values;

  explicit Grid(const Blocks& blocks)
      : n(blocks.n),
        values(std::size_t(n[0] + 2) * std::size_t(n[1] + 2) * std::size_t(n[2] + 2)) {}
  double& operator()(int i, int j, int k) {
    return values[(std::size_t(i + 1) * std::size_t(n[1] + 2) + std::size_t(j + 1)) *
                      std::size_t(n[2] + 2) +
                  std::size_t(k + 1)];
  }

  // Visit the layer of cells whose index along `dimension` is `index`.
  template <class Visit>
  void visit_layer(int dimension, int index, Visit&& visit) {
    std::array<int, 3> end = n, begin{0, 0, 0};
    begin[dimension] = index, end[dimension] = index + 1;
    for (int i = begin[0]; i < end[0]; ++i)
      for (int j = begin[1]; j < end[1]; ++j)
        for (int k = begin[2]; k < end[2]; ++k) visit((*this)(i, j, k));
  }

  void fill_halo(const Blocks& blocks) {
    std::vector<double> face;
    for (int d = 0; d < 3; ++d) {
      for (const int direction : {1, -1}) {
        const bool up = direction > 0;
        face.clear();
        visit_layer(d, up ? n[d] - 1 : 0, [&](double& value) { face.push_back(value); });
        blocks.shift(face, d, direction);
        const double* next = face.data();
        visit_layer(d, up ? -1 : n[d], [&](double& value) { value = *next++; });
      }
    }
  }
};

// One leapfrog step of the wave equation, past <- 2 now - past + (c dt/dx)^2 laplace(now). Returns
// the energy that this scheme conserves: the mean of kinetic and strain energy of the two levels.
double leap(Grid& past, Grid& now, const Blocks& blocks) {
  now.fill_halo(blocks);
  double energy = 0;
  for (int i = 0; i < now.n[0]; ++i)
    for (int j = 0; j < now.n[1]; ++j)
      for (int k = 0; k < now.n[2]; ++k) {
        const double here = now(i, j, k);
        const double laplace = now(i - 1, j, k) + now(i + 1, j, k) + now(i, j - 1, k) +
                               now(i, j + 1, k) + now(i, j, k - 1) + now(i, j, k + 1) - 6 * here;
        double& value = past(i, j, k);
        const double next = 2 * here - value + kCourant2 * laplace;
        energy += (next - here) * (next - here) - kCourant2 * next * laplace;
        value = next;
      }
  std::swap(past, now);
  return blocks.sum(energy);
}

int run(const std::string& path) {
  const Blocks blocks;
  Grid past(blocks), now(blocks);
  for (int i = 0; i < now.n[0]; ++i)
    for (int j = 0; j < now.n[1]; ++j)
      for (int k = 0; k < now.n[2]; ++k) {
        const double x = kTwoPi / kCells * (blocks.first[0] + i);
        const double y = kTwoPi / kCells * (blocks.first[1] + j);
        const double z = kTwoPi / kCells * (blocks.first[2] + k);
        past(i, j, k) = now(i, j, k) = std::exp(std::cos(x) + std::cos(y) * std::cos(2 * z));
      }

  auto file =
      tailrace::File::create(path, blocks.ranks(), "codec=portable,bound=rel=1e-4,replace=on");
  const tailrace::Shape shape{kCells, kCells, kCells};
  const auto box = tailrace::Box::from_start_count(blocks.first, blocks.n);
  const std::vector<std::int32_t> ranks(box.n_elements(), blocks.rank);

  double first_energy = 0, last_energy = 0;
  for (int step = 0; step <= 60; ++step) {
    if (step % 20 == 0) {
      const std::string group = "/step_" + std::to_string(step);
      auto pressure = file.define<double>(group + "/pressure", shape);
      auto rank = file.define<std::int32_t>(group + "/rank", shape, "bound=none");
      const auto [nx, ny, nz] = now.n;
      pressure.put(box, tailrace::view(now.values, {nx + 2, ny + 2, nz + 2}).interior(1));
      rank.put(box, ranks);
      pressure.set_attribute("units", "Pa");
      file.set_attribute(group, "step", step);
      const tailrace::StepReport report = file.end_step();
      if (blocks.rank == 0) {
        std::printf("%s: %.1f times smaller, %.3f s\n", group.c_str(), report.ratio, report.step_s);
      }
    }
    last_energy = leap(past, now, blocks);
    if (step == 0) first_energy = last_energy;
  }
  file.close();

  const double drift = std::abs(last_energy / first_energy - 1);
  if (blocks.rank == 0) std::printf("energy changed by %.1e of its amount\n", drift);
  return drift < 1e-10 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    std::printf("usage: %s [FILE]\nWrites FILE, wave.h5 if none is named.\n", argv[0]);
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
#ifdef TAILRACE_WITH_MPI
  MPI_Init(&argc, &argv);
#endif
  int failed = 1;
  try {
    failed = run(argc > 1 ? argv[1] : "wave.h5");
  } catch (const tailrace::Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
  }
#ifdef TAILRACE_WITH_MPI
  MPI_Finalize();
#endif
  return failed;
}
