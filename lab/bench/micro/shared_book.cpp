// shared_book: measures what a shared Huffman book saves and costs over consecutive steps of a
// field.
//
//   shared_book [--early EARLY.h5:DATASET] STEPS.h5 DATASET... > shared_book.csv
//
// A dataset holds steps of one field, axes (t, z, y, x), z = y = x. Each step from the second on is
// encoded with its own codes and with shared books: those of the same step, of the step before, of
// the first step, and with --early of a step long before. Chunks are of 8 MiB, 1 MiB (one step, if
// it is 64^3 f32) and 128 KiB. A chunk of 8 MiB combines eight copies of the step, each with its
// axes permuted and reversed differently, so that no bytes repeat.
//
// Results are checked before timing. All variants run in turn for seven rounds; times are thread
// CPU, medians, summed over a step's chunks. After Jin et al. 2024, section 5.3, figure 6. Built by
// hand; lab/bench/results/README.md has the command and the results.

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "trz/book/book_counter.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::trz;

constexpr std::size_t kRounds = 7;
constexpr double kRelativeBounds[] = {1e-2, 1e-3, 1e-4, 1e-5};

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "shared_book: %s\n", message.c_str());
  std::exit(2);
}

/// Steps of one field, cubes of n^3 values.
struct Steps {
  std::string name;
  std::size_t n_steps = 0;
  std::size_t n = 0;
  std::vector<float> values;

  const float* step(std::size_t t) const { return values.data() + t * n * n * n; }
};

Steps read_steps(const char* path, const char* dataset_path) {
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = file < 0 ? -1 : H5Dopen2(file, dataset_path, H5P_DEFAULT);
  if (dataset < 0) give_up(std::string(path) + ": cannot open " + dataset_path);
  const hid_t space = H5Dget_space(dataset);
  hsize_t extents[4] = {};
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank != 3 && rank != 4) give_up("the dataset must have three or four dimensions");
  H5Sget_simple_extent_dims(space, extents + (4 - rank), nullptr);
  if (rank == 3) extents[0] = 1;
  if (extents[1] != extents[2] || extents[2] != extents[3]) give_up("the steps must be cubes");
  Steps steps{dataset_path, extents[0], extents[1], {}};
  steps.values.resize(extents[0] * extents[1] * extents[2] * extents[3]);
  if (H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, steps.values.data()) < 0) {
    give_up("the dataset cannot be read");
  }
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
  return steps;
}

/// Division of a step into chunks, or combination of copies.
struct Cut {
  const char* label;
  Shape shape;
};
using Chunks = std::vector<std::vector<float>>;

/// Eight copies of a cube, arranged 2 x 2 x 2. Copy i has its axes permuted by ways[i % 6] and
/// reversed according to the bits of i.
std::vector<float> eight_orientations(const float* cube, std::size_t n) {
  constexpr std::size_t ways[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1},
                                      {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
  std::vector<float> all(8 * n * n * n);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t* way = ways[i % 6];
    for (std::size_t z = 0; z < n; ++z) {
      for (std::size_t y = 0; y < n; ++y) {
        for (std::size_t x = 0; x < n; ++x) {
          std::array<std::size_t, 3> from{};
          from[way[0]] = (i & 1) != 0 ? n - 1 - z : z;
          from[way[1]] = (i & 2) != 0 ? n - 1 - y : y;
          from[way[2]] = (i & 4) != 0 ? n - 1 - x : x;
          const std::size_t to_z = z + (i >> 2 & 1) * n;
          const std::size_t to_y = y + (i >> 1 & 1) * n;
          const std::size_t to_x = x + (i & 1) * n;
          all[(to_z * 2 * n + to_y) * 2 * n + to_x] = cube[(from[0] * n + from[1]) * n + from[2]];
        }
      }
    }
  }
  return all;
}

Chunks chunks_of(const Steps& steps, std::size_t t, const Cut& cut) {
  if (cut.shape[0] > steps.n) return {eight_orientations(steps.step(t), steps.n)};
  Chunks chunks;
  const std::size_t chunk_values = n_elements(cut.shape);
  for (const float* at = steps.step(t); at < steps.step(t + 1); at += chunk_values) {
    chunks.emplace_back(at, at + chunk_values);
  }
  return chunks;
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Results of one step with one source of codes.
struct Measured {
  const char* codes;
  const Book* book;
  std::size_t encoded_bytes = 0;
  double encode_s = 0;
  double decode_s = 0;
};

/// Encode, decode and time one chunk with all variants, in turn.
void measure_chunk(ChunkType type, const std::vector<float>& values, std::span<Measured> ways,
                   Workspace& workspace) {
  const Settings settings;
  const auto bytes = std::as_bytes(std::span(values));
  std::vector<std::byte> encoded(encoded_bytes_max(bytes.size()));
  std::vector<float> decoded(values.size());
  const auto decoded_bytes = std::as_writable_bytes(std::span(decoded));
  std::vector<std::vector<double>> encode_s(ways.size());
  std::vector<std::vector<double>> decode_s(ways.size());
  for (std::size_t round = 0; round <= kRounds; ++round) {
    for (std::size_t k = 0; k < ways.size(); ++k) {
      const std::size_t w = (k + round) % ways.size();
      type.book = ways[w].book;
      const double start = thread_cpu_s();
      const Result<std::size_t> n_encoded = encode(type, settings, bytes, encoded, workspace);
      const double middle = thread_cpu_s();
      if (!n_encoded.ok()) give_up(n_encoded.status().message());
      const Status done =
          decode(std::span(encoded).first(*n_encoded), decoded_bytes, ways[w].book, workspace);
      const double end = thread_cpu_s();
      if (!done.ok()) give_up(done.message());
      if (round == 0) {  // This round also warms up.
        if (!compare_values(type.dtype, bytes, decoded_bytes, type.bound).within_bound()) {
          give_up("a bound is broken");
        }
        ways[w].encoded_bytes += *n_encoded;
        continue;
      }
      encode_s[w].push_back(middle - start);
      decode_s[w].push_back(end - middle);
    }
  }
  for (std::size_t w = 0; w < ways.size(); ++w) {
    ways[w].encode_s += median(encode_s[w]);
    ways[w].decode_s += median(decode_s[w]);
  }
}

/// Make the book of one step, and measure the time.
Book book_of(const ChunkType& type, const Chunks& chunks, double& train_s, Workspace& workspace) {
  BookHistograms histograms;
  const double start = thread_cpu_s();
  for (const std::vector<float>& values : chunks) {
    const Status counted =
        count_for_book(type, Settings{}, std::as_bytes(std::span(values)), histograms, workspace);
    if (!counted.ok()) give_up(counted.message());
  }
  Book book = Book::from_histograms(histograms);
  train_s = thread_cpu_s() - start;
  return book;
}

/// Measure all steps. `early`: one step of the field long before, or null.
void measure(const Steps& steps, const Steps* early, const Cut& cut, double relative_bound,
             double range, Workspace& workspace) {
  ChunkType type;
  type.shape = cut.shape;
  type.bound = relative_bound * range;
  double train_s = 0;
  Chunks chunks = chunks_of(steps, 0, cut);
  const Book first = book_of(type, chunks, train_s, workspace);
  Book previous = first;
  Book of_early;
  double unused_s = 0;
  if (early != nullptr) {
    of_early = book_of(type, chunks_of(*early, 0, cut), unused_s, workspace);
  }
  for (std::size_t t = 1; t < steps.n_steps; ++t) {
    chunks = chunks_of(steps, t, cut);
    double same_train_s = 0;
    const Book same = book_of(type, chunks, same_train_s, workspace);
    std::vector<Measured> ways = {
        {"own", nullptr}, {"same", &same}, {"previous", &previous}, {"first", &first}};
    if (early != nullptr) ways.push_back({"early", &of_early});
    for (const std::vector<float>& values : chunks) {
      measure_chunk(type, values, ways, workspace);
    }
    for (const Measured& way : ways) {
      const std::size_t book_bytes = way.book == nullptr ? 0 : way.book->serialize().size();
      const double train = way.book == &previous ? train_s : way.book == &same ? same_train_s : 0;
      std::printf("%s,%g,%s,%zu,%s,%zu,%zu,%zu,%.6g,%.6g,%.6g,%zu\n", steps.name.c_str(),
                  relative_bound, cut.label, t, way.codes, chunks.size(),
                  chunks.size() * chunks[0].size() * sizeof(float), way.encoded_bytes, way.encode_s,
                  way.decode_s, train, book_bytes);
    }
    previous = same;
    train_s = same_train_s;
  }
  std::fflush(stdout);
}

std::string processor() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Steps> early;
  if (argc > 2 && std::string(argv[1]) == "--early") {
    const std::string where = argv[2];
    const std::size_t colon = where.find(':');
    if (colon == std::string::npos) give_up("--early takes FILE.h5:DATASET");
    early = read_steps(where.substr(0, colon).c_str(), where.substr(colon + 1).c_str());
    argc -= 2;
    argv += 2;
  }
  if (argc < 3) give_up("usage: shared_book [--early FILE.h5:DATASET] STEPS.h5 DATASET...");
  Workspace workspace;
  std::printf("# %s, %s, g++ %s; one thread, seconds of thread CPU, medians of %zu, in turn\n",
              processor().c_str(), isa_name(workspace.isa()), __VERSION__, kRounds);
  std::printf("# chunks of 8 MiB: eight copies of a step, each with its axes in another order\n");
  std::printf("# train_s: making the book that was used, from the whole step before\n");
  std::printf(
      "field,relative_bound,chunk,step,codes,n_chunks,raw_bytes,encoded_bytes,encode_s,"
      "decode_s,train_s,book_bytes\n");
  for (int i = 2; i < argc; ++i) {
    const Steps steps = read_steps(argv[1], argv[i]);
    const ValueRange range = value_range(DType::f32, std::as_bytes(std::span(steps.values)));
    const std::uint64_t n = steps.n;
    const Cut cuts[] = {
        {"8 MiB", {2 * n, 2 * n, 2 * n}}, {"1 MiB", {n, n, n}}, {"128 KiB", {n / 8, n, n}}};
    for (const double bound : kRelativeBounds) {
      for (const Cut& cut : cuts) {
        measure(steps, early ? &*early : nullptr, cut, bound, range.greatest - range.least,
                workspace);
      }
    }
  }
  return 0;
}
