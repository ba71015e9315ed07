// What the command line of `tailrace-lab bench` says.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_words.hpp"
#include "core/options.hpp"
#include "trz/base/box.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace CLI {
class App;
}

namespace tailrace::bench {

/// The words as they stand on the command line.
struct BenchArguments {
  std::string workload;
  std::string synthetic;
  std::string data_folder;
  std::vector<std::string> fills;
  std::string fit = "tile";
  std::string cells;
  std::string size_per_rank;
  std::string seed = "1";
  std::string codec = "sz3";
  std::string bound = "rel=1e-3";
  std::vector<std::string> field_bounds;
  std::string chunk;
  std::string methods;
  std::string repeat = "5";
  std::string bandwidth = "unlimited";
  std::string fsync = "on";
  std::string folder = ".";
  std::string threads = "1";
  std::string memory = "1GiB";
  std::string plugin_path;
  std::string profile_path;
  std::string expect;
  std::string json_path;
  std::string report_path;
  std::string index;  ///< Chunks of --index; empty: compare methods.
};

/// The same, understood.
struct BenchOptions {
  std::string workload;     ///< nyx, particles, climate, or a file.
  bool generated = false;   ///< Made from a seed even where there are real data.
  std::string data_folder;  ///< Where the real sets lie; empty: looked for (workload_sets.hpp).
  std::vector<FillChoice> fills;
  bool refine = false;  ///< Larger blocks than the data: interpolate, not repeat.
  Shape cells;          ///< Block of one rank; empty: by the data or the default.
  std::optional<std::uint64_t> bytes_per_rank;
  std::uint64_t seed = 1;
  std::string codec;  ///< Name only.
  std::vector<KeyValue> codec_settings;
  std::vector<ErrorBound> bounds;
  std::vector<FieldBound> field_bounds;
  std::optional<Shape> chunk_shape;
  std::vector<std::string> method_patterns;
  std::uint64_t n_repeats = 5;
  std::vector<Bandwidth> bandwidths;
  bool fsync = true;
  std::string folder;
  std::uint64_t n_threads = 1;
  std::uint64_t memory_bytes = 1ULL << 30;
  std::string plugin_path;
  std::string profile_path;   ///< Codec curves for auto and orders; empty: the built-in ones.
  double expected_ratio = 4;  ///< Of layout hybrid's rows.
  double expected_error = 0.5;
};

/// The parser; filled into `arguments`, which must outlive it.
std::unique_ptr<CLI::App> make_bench_parser(BenchArguments& arguments);

/// @error invalid_argument  names the option.
Result<BenchOptions> understand(const BenchArguments& arguments);

}  // namespace tailrace::bench
