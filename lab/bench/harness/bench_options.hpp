// Command line of `tailrace-lab bench`.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_arguments.hpp"
#include "core/options.hpp"
#include "trz/base/box.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace CLI {
class App;
}

namespace tailrace::bench {

/// Arguments as strings from the command line.
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

/// Parsed and checked arguments.
struct BenchOptions {
  std::string workload;     ///< nyx, particles, climate, or a file.
  bool generated = false;   ///< Use generated data even if the real data exist.
  std::string data_folder;  ///< Folder of the real sets; empty: search for it (workload_sets.hpp).
  std::vector<FillChoice> fills;
  bool refine = false;  ///< Interpolate blocks larger than the data instead of repeating the data.
  Shape cells;          ///< Block of one rank; empty: from the data or the default.
  std::optional<std::uint64_t> bytes_per_rank;
  std::uint64_t seed = 1;
  std::string codec;  ///< Name without settings.
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
  std::string profile_path;   ///< Profile with codec curves for auto and orders; empty: built-in.
  double expected_ratio = 4;  ///< Expectation for the rows of layout hybrid.
  double expected_error = 0.5;
};

/// Make the parser, which fills `arguments`; `arguments` must outlive it.
std::unique_ptr<CLI::App> make_bench_parser(BenchArguments& arguments);

/// Parse and check the arguments. @error invalid_argument  names the option.
Result<BenchOptions> understand(const BenchArguments& arguments);

}  // namespace tailrace::bench
