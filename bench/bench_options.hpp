// What the command line of `tailrace bench` says.

#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "core/error_bound.hpp"
#include "core/options.hpp"
#include "core/status.hpp"

namespace tailrace::bench {

/// The words as they stand on the command line.
struct BenchArguments {
  std::string input;
  std::string synthetic = "nyx";
  std::string cells;
  std::string size_per_rank;
  std::string seed = "1";
  std::string codec = "sz3";
  std::string bound = "rel=1e-3";
  std::string chunk;
  std::string methods;
  std::string repeat = "5";
  std::string bandwidth = "unlimited";
  std::string fsync = "on";
  std::string folder = ".";
  std::string threads = "1";
  std::string memory = "1GiB";
  std::string plugin_path;
  std::string json_path;
  std::string index;  ///< Chunks of --index; empty: compare methods.
};

/// The same, understood.
struct BenchOptions {
  std::string input;  ///< Empty: synthetic fields.
  Shape cells;        ///< Block of one rank; empty: by the input or the default.
  std::optional<std::uint64_t> bytes_per_rank;
  std::uint64_t seed = 1;
  std::string codec;  ///< Name only.
  std::vector<KeyValue> codec_settings;
  ErrorBound bound;
  std::optional<Shape> chunk_shape;
  std::vector<std::string> method_patterns;
  std::uint64_t n_repeats = 5;
  std::uint64_t bandwidth_bytes_per_s = 0;  ///< 0: unlimited.
  bool fsync = true;
  std::string folder;
  std::uint64_t n_threads = 1;
  std::uint64_t memory_bytes = 1ULL << 30;
  std::string plugin_path;
};

/// The parser; filled into `arguments`, which must outlive it.
std::unique_ptr<CLI::App> make_bench_parser(BenchArguments& arguments);

/// @error invalid_argument  names the option.
Result<BenchOptions> understand(const BenchArguments& arguments);

}  // namespace tailrace::bench
