// Requests of the climate model E3SM to PnetCDF in its cases F (atmosphere on a cubed sphere), G
// (ocean on hexagons) and I (land). Many variables share a few decompositions. Each rank's part of
// a variable is one ncmpi_iput_varn of very many short pieces, with one ncmpi_wait_all per time
// step.
//
//   mpiexec -n 2 e3sm_pattern F out.nc [--json FILE] [--records N] [--columns N]
//
// Dimensions, numbers of variables and lengths of pieces are those of the small data sets in the
// documentation of the E3SM-IO benchmark. A fixed generator assigns the pieces to ranks. Values are
// smooth in space, with some noise. The program uses PnetCDF only.

#include <mpi.h>
#include <pnetcdf.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

void check(int status, const char* what) {
  if (status == NC_NOERR) return;
  std::fprintf(stderr, "e3sm_pattern: %s: %s\n", what, ncmpi_strerror(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

using Rng = std::mt19937;

/// Consecutive elements in a decomposition's dimensions, row-major.
struct Piece {
  std::uint64_t first = 0;
  std::uint64_t n = 0;
};

struct Decomposition {
  std::vector<std::uint64_t> shape;  ///< Without the time dimension.
  std::vector<Piece> pieces;         ///< Pieces of this rank; none spans two rows.
};

/// Cut `n` elements into pieces of `least` to `most`, and distribute them over the ranks.
std::vector<Piece> deal(std::uint64_t n, std::uint64_t least, std::uint64_t most, Rng& random,
                        int rank, int n_ranks) {
  std::vector<Piece> mine;
  for (std::uint64_t first = 0; first < n;) {
    const std::uint64_t length = std::min(n - first, least + random() % (most - least + 1));
    if (static_cast<int>(random() % static_cast<unsigned>(n_ranks)) == rank) {
      mine.push_back({first, length});
    }
    first += length;
  }
  return mine;
}

/// Repeat the pieces on every level; levels are the slowest dimension.
Decomposition below_levels(std::uint64_t n_levels, const Decomposition& surface) {
  Decomposition all{{n_levels}, {}};
  all.shape.insert(all.shape.end(), surface.shape.begin(), surface.shape.end());
  std::uint64_t n = 1;
  for (const std::uint64_t length : surface.shape) n *= length;
  for (std::uint64_t level = 0; level < n_levels; ++level) {
    for (const Piece& piece : surface.pieces) {
      all.pieces.push_back({level * n + piece.first, piece.n});
    }
  }
  return all;
}

/// Extend each cell by all its levels; levels are the fastest dimension.
Decomposition of_columns(const Decomposition& cells, std::uint64_t n_levels) {
  Decomposition all{{cells.shape[0], n_levels}, {}};
  for (const Piece& piece : cells.pieces) {
    for (std::uint64_t i = 0; i < piece.n; ++i) {
      all.pieces.push_back({(piece.first + i) * n_levels, n_levels});
    }
  }
  return all;
}

struct Case {
  std::vector<Decomposition> decompositions;
  std::vector<std::size_t> n_variables;  ///< Number of variables per decomposition.
  bool doubles = false;
};

/// Case F. The short pieces are in random order, like those of a space-filling curve.
Case atmosphere(std::uint64_t n_columns, int rank, int n_ranks) {
  Rng random(1);
  Case made;
  Decomposition wide{{n_columns}, deal(n_columns, 9, 36, random, rank, n_ranks)};
  Decomposition narrow{{n_columns}, deal(n_columns, 1, 4, random, rank, n_ranks)};
  std::shuffle(narrow.pieces.begin(), narrow.pieces.end(), Rng(2));
  Decomposition deep = below_levels(72, narrow);
  made.decompositions = {std::move(wide), std::move(narrow), std::move(deep)};
  made.n_variables = {1, 323, 63};
  return made;
}

Case ocean(std::uint64_t n_cells, int rank, int n_ranks) {
  Rng random(3);
  const std::uint64_t n_edges = n_cells * 879 / 285;
  const std::uint64_t n_vertices = n_cells * 593 / 285;
  const auto on = [&](std::uint64_t n) {
    return Decomposition{{n}, deal(n, 1, 3, random, rank, n_ranks)};
  };
  const Decomposition cells = on(n_cells);
  const Decomposition edges = on(n_edges);
  const Decomposition vertices = on(n_vertices);
  Case made;
  made.decompositions = {cells,
                         edges,
                         of_columns(cells, 100),
                         of_columns(edges, 100),
                         of_columns(vertices, 100),
                         of_columns(cells, 101)};
  made.n_variables = {6, 2, 25, 2, 2, 4};
  made.doubles = true;
  return made;
}

/// Case I. Land points, a third of all points, in pieces along a latitude.
Case land(std::uint64_t n_longitudes, int rank, int n_ranks) {
  Rng random(4);
  const std::uint64_t n_latitudes = n_longitudes * 2 / 3;
  Decomposition surface{{n_latitudes, n_longitudes}, {}};
  for (std::uint64_t row = 0; row < n_latitudes; ++row) {
    for (std::uint64_t at = random() % 12; at < n_longitudes; at += random() % 24) {
      const std::uint64_t end = std::min(n_longitudes, at + 1 + random() % 12);
      while (at < end) {
        const std::uint64_t n = std::min<std::uint64_t>(end - at, 1 + random() % 2);
        if (static_cast<int>(random() % static_cast<unsigned>(n_ranks)) == rank) {
          surface.pieces.push_back({row * n_longitudes + at, n});
        }
        at += n;
      }
    }
  }
  Case made;
  for (const std::uint64_t n_levels : {15, 10, 9, 17}) {
    made.decompositions.push_back(below_levels(n_levels, surface));
  }
  made.decompositions.insert(made.decompositions.begin(), std::move(surface));
  made.n_variables = {465, 75, 4, 1, 1};
  return made;
}

float value_at(std::size_t variable, std::uint64_t record, std::uint64_t element) {
  const double place = static_cast<double>(element) * 0.01;
  std::uint64_t noise = (element + 1) * 0x9E3779B97F4A7C15U + variable * 0xC2B2AE3D27D4EB4FU;
  noise ^= noise >> 29U;
  return static_cast<float>(250 + 30 * std::sin(place + static_cast<double>(variable)) +
                            static_cast<double>(record) + 1e-3 * static_cast<double>(noise % 64));
}

/// start and count of each piece, with time as first dimension, as varn expects them.
struct Places {
  std::vector<MPI_Offset> numbers;
  std::vector<MPI_Offset*> starts;
  std::vector<MPI_Offset*> counts;
  MPI_Offset n_elements = 0;

  explicit Places(const Decomposition& decomposition) {
    const std::size_t rank = decomposition.shape.size() + 1;
    const std::size_t n = decomposition.pieces.size();
    numbers.resize(2 * rank * n);
    for (std::size_t i = 0; i < n; ++i) {
      MPI_Offset* start = numbers.data() + 2 * rank * i;
      MPI_Offset* count = start + rank;
      starts.push_back(start);
      counts.push_back(count);
      std::uint64_t at = decomposition.pieces[i].first;
      std::fill_n(count, rank, 1);
      for (std::size_t d = rank - 1; d > 0; --d) {
        const std::uint64_t length = decomposition.shape[d - 1];
        start[d] = static_cast<MPI_Offset>(at % length);
        at /= length;
      }
      count[rank - 1] = static_cast<MPI_Offset>(decomposition.pieces[i].n);
      n_elements += count[rank - 1];
    }
  }
  void set_record(std::uint64_t record) {
    for (MPI_Offset* start : starts) start[0] = static_cast<MPI_Offset>(record);
  }
};

double cpu_s() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return s(used.ru_utime) + s(used.ru_stime);
}

/// Memory of this process, current or peak, from /proc/self/status.
double memory_bytes(const char* which) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == which && status >> kib) return 1024 * kib;
  }
  return 0;
}

struct Options {
  char which = 'F';
  std::string path;
  std::string json;
  std::uint64_t n_records = 1;
  std::uint64_t size = 0;
};

Options parse(int n, char** arguments) {
  Options options;
  const auto usage = [] {
    std::fprintf(stderr,
                 "use: e3sm_pattern F|G|I FILE [--json FILE] [--records N] [--columns N]\n"
                 "N columns of F (866), cells of G (285), longitudes of I (144)\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  };
  if (n < 3 || std::strlen(arguments[1]) != 1 || std::strchr("FGI", arguments[1][0]) == nullptr) {
    usage();
  }
  options.which = arguments[1][0];
  options.path = arguments[2];
  for (int i = 3; i + 1 < n; i += 2) {
    const std::string word = arguments[i];
    if (word == "--json") {
      options.json = arguments[i + 1];
    } else if (word == "--records") {
      options.n_records = std::strtoull(arguments[i + 1], nullptr, 10);
    } else if (word == "--columns") {
      options.size = std::strtoull(arguments[i + 1], nullptr, 10);
    } else {
      usage();
    }
  }
  return options;
}

struct Variable {
  int id = 0;
  std::size_t decomposition = 0;
};

std::vector<Variable> define(int ncid, const Case& made) {
  int time = 0;
  check(ncmpi_def_dim(ncid, "time", NC_UNLIMITED, &time), "time");
  std::vector<Variable> variables;
  for (std::size_t d = 0; d < made.decompositions.size(); ++d) {
    std::vector<int> dimensions = {time};
    for (std::size_t k = 0; k < made.decompositions[d].shape.size(); ++k) {
      const std::string name = "d" + std::to_string(d) + "_" + std::to_string(k);
      int id = 0;
      check(ncmpi_def_dim(ncid, name.c_str(),
                          static_cast<MPI_Offset>(made.decompositions[d].shape[k]), &id),
            name.c_str());
      dimensions.push_back(id);
    }
    for (std::size_t v = 0; v < made.n_variables[d]; ++v) {
      const std::string name = "m" + std::to_string(d) + "_" + std::to_string(v);
      Variable variable{0, d};
      check(ncmpi_def_var(ncid, name.c_str(), made.doubles ? NC_DOUBLE : NC_FLOAT,
                          static_cast<int>(dimensions.size()), dimensions.data(), &variable.id),
            name.c_str());
      check(ncmpi_put_att_text(ncid, variable.id, "units", 1, "1"), "units");
      // Fill values make unwritten elements detectable: they are not zero.
      check(ncmpi_def_var_fill(ncid, variable.id, 0, nullptr), "fill");
      variables.push_back(variable);
    }
  }
  check(ncmpi_enddef(ncid), "enddef");
  return variables;
}

}  // namespace

int main(int n_arguments, char** arguments) {
  MPI_Init(&n_arguments, &arguments);
  int rank = 0;
  int n_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const Options options = parse(n_arguments, arguments);
  const auto or_else = [&](std::uint64_t n) { return options.size > 0 ? options.size : n; };
  const Case made = options.which == 'F'   ? atmosphere(or_else(866), rank, n_ranks)
                    : options.which == 'G' ? ocean(or_else(285), rank, n_ranks)
                                           : land(or_else(144), rank, n_ranks);
  std::vector<Places> places;
  for (const Decomposition& decomposition : made.decompositions) {
    places.emplace_back(decomposition);
  }
  // Allocate the program's buffers before the clock starts.
  std::vector<std::vector<double>> doubles;
  std::vector<std::vector<float>> floats;
  double n_pieces = 0;
  double value_bytes = 0;
  std::size_t number = 0;
  for (std::size_t d = 0; d < places.size(); ++d) {
    for (std::size_t v = 0; v < made.n_variables[d]; ++v) {
      const auto n = static_cast<std::size_t>(places[d].n_elements);
      if (made.doubles) {
        doubles.emplace_back(n);
      } else {
        floats.emplace_back(n);
      }
      n_pieces += static_cast<double>(made.decompositions[d].pieces.size());
      value_bytes += static_cast<double>(n) * (made.doubles ? 8 : 4);
    }
  }
  const auto fill = [&](std::uint64_t record) {
    number = 0;
    for (std::size_t d = 0; d < places.size(); ++d) {
      for (std::size_t v = 0; v < made.n_variables[d]; ++v, ++number) {
        std::size_t i = 0;
        for (const Piece& piece : made.decompositions[d].pieces) {
          for (std::uint64_t k = 0; k < piece.n; ++k, ++i) {
            const float value = value_at(number, record, piece.first + k);
            if (made.doubles) {
              doubles[number][i] = value;
            } else {
              floats[number][i] = value;
            }
          }
        }
      }
    }
  };
  fill(0);
  const double held_before = memory_bytes("VmRSS:");
  MPI_Barrier(MPI_COMM_WORLD);
  double computing_s = 0;
  double computing_cpu_s = 0;
  double post_s = 0;
  double wait_s = 0;
  const double start_cpu_s = cpu_s();
  const double start_s = MPI_Wtime();
  int ncid = 0;
  check(ncmpi_create(MPI_COMM_WORLD, options.path.c_str(), NC_CLOBBER | NC_64BIT_DATA,
                     MPI_INFO_NULL, &ncid),
        "create");
  const std::vector<Variable> variables = define(ncid, made);
  std::vector<int> requests(variables.size());
  std::vector<int> statuses(variables.size());
  for (std::uint64_t record = 0; record < options.n_records; ++record) {
    if (record > 0) {
      const double from_s = MPI_Wtime();
      const double from_cpu_s = cpu_s();
      fill(record);
      computing_s += MPI_Wtime() - from_s;
      computing_cpu_s += cpu_s() - from_cpu_s;
    }
    const double posting_s = MPI_Wtime();
    for (Places& some : places) some.set_record(record);
    for (std::size_t v = 0; v < variables.size(); ++v) {
      Places& at = places[variables[v].decomposition];
      const int n = static_cast<int>(at.starts.size());
      check(made.doubles ? ncmpi_iput_varn_double(ncid, variables[v].id, n, at.starts.data(),
                                                  at.counts.data(), doubles[v].data(), &requests[v])
                         : ncmpi_iput_varn_float(ncid, variables[v].id, n, at.starts.data(),
                                                 at.counts.data(), floats[v].data(), &requests[v]),
            "iput_varn");
    }
    const double waiting_s = MPI_Wtime();
    post_s += waiting_s - posting_s;
    check(ncmpi_wait_all(ncid, static_cast<int>(requests.size()), requests.data(), statuses.data()),
          "wait_all");
    for (const int status : statuses) check(status, "a request");
    wait_s += MPI_Wtime() - waiting_s;
  }
  const double closing_s = MPI_Wtime();
  check(ncmpi_close(ncid), "close");
  const double close_s = MPI_Wtime() - closing_s;
  double most[] = {MPI_Wtime() - start_s - computing_s,  post_s,      wait_s,  close_s,
                   memory_bytes("VmHWM:") - held_before, value_bytes, n_pieces};
  double sum[] = {cpu_s() - start_cpu_s - computing_cpu_s, value_bytes / (made.doubles ? 8 : 4)};
  MPI_Allreduce(MPI_IN_PLACE, most, 7, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    char text[600];
    std::snprintf(
        text, sizeof text,
        "{\"case\": \"%c\", \"ranks\": %d, \"variables\": %zu, \"pieces\": %.0f, "
        "\"value_bytes\": %.0f, \"total_s\": %.6f, \"post_s\": %.6f, \"wait_s\": %.6f, "
        "\"close_s\": %.6f, \"cpu_s\": %.6f, \"memory_bytes\": %.0f, \"elements\": %.0f}\n",
        options.which, n_ranks, variables.size(), most[6], most[5], most[0], most[1], most[2],
        most[3], sum[0], most[4], sum[1]);
    std::printf("%s", text);
    if (!options.json.empty()) std::ofstream(options.json) << text;
  }
  MPI_Finalize();
  return 0;
}
