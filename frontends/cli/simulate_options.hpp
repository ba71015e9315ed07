// The command line of `tailrace simulate`: its arguments, beside commands.hpp for their number.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli_common.hpp"

namespace CLI {
class App;
}

namespace tailrace::cli {

struct SimulateArguments {
  std::string application = "nyx";
  std::string recording;           ///< Instead of an application; empty: none.
  std::size_t n_ranks = 0;         ///< 0: 64, or as recorded.
  std::size_t ranks_per_node = 0;  ///< 0: 4, or as recorded.
  std::size_t n_iterations = 0;    ///< 0: 10, or as recorded.

  // Over the application's own.
  std::optional<double> iteration_s;
  std::optional<double> main_busy;
  std::optional<double> io_busy;
  std::optional<std::size_t> n_main_obstacles;
  std::optional<std::size_t> n_io_obstacles;
  std::optional<std::size_t> n_fields;
  std::string field_bytes;
  std::string chunk_bytes;
  std::optional<double> ratio;
  std::optional<double> ratio_difference;
  std::optional<double> ratio_spread;

  std::string bandwidth;        ///< Of a rank.
  std::string total_bandwidth;  ///< Of all ranks.
  std::string profile;
  std::string codec = "trz";
  std::string encode;  ///< Raw bytes per second; empty: as the profile says.

  std::string modes = "all";
  std::string scheduler = "auto";
  std::uint64_t search_operations = 400'000;
  std::string balance = "best";
  std::string buffer = "16MiB";
  std::string memory;  ///< Empty: no cap.
  std::string hold = "promise";
  std::size_t encode_threads = 1;
  std::string forecast = "given";
  std::optional<double> margin;  ///< Nothing: 1, recordings as the product.
  std::string io_collisions;     ///< wait, share; empty: wait, recordings share.
  bool shift_forecast = false;

  // Nothing: as of VirtualNoise, recordings 0.
  std::optional<double> noise_obstacles;
  std::optional<double> noise_ratio;
  std::optional<double> noise_encode;
  std::optional<double> noise_write;
  bool no_noise = false;
  bool unsynchronized = false;
  std::uint64_t seed = 1;
  std::uint64_t n_threads = 0;  ///< Of the simulator; 0: one a core.

  unsigned figure = 0;  ///< Of the paper: 3, 7, 8, 11; 0: a run.
  std::string trace_path;
  std::size_t trace_ranks = 4;
  std::string plot_path;
  std::string csv_path;
  std::string json_path;
  bool quiet = false;
};
int run_simulate(Session& session, const SimulateArguments& arguments);

/// Add the subcommand to the parser; it writes into `simulate`, which must outlive it.
void add_simulate(CLI::App& app, SimulateArguments& simulate);

}  // namespace tailrace::cli
