// concatenate: thousands of compressed HDF5 files into one, in parallel (Lee et al. 2022).
//
// Every dataset of the common schema is appended along its first dimension, in the order of the
// list. In files with dimensions (netCDF-4), only datasets with a record dimension are. Chunks that
// match a chunk of the output are copied; all others are decoded and encoded once, by all ranks in
// equal shares. src/concat/concat.cpp has the story; docs/concat.md describes the effect on disk.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Treatment of an input that cannot be appended (corrupt, missing, another schema).
enum class OnError : std::uint8_t {
  stop,  ///< Write nothing; the error names all such inputs.
  skip   ///< Leave the input out, and name it. Damage that is found late restarts the job.
};

/// Treatment of inputs in which an attribute differs that gives values their meaning (units), or in
/// files with dimensions the values of a fixed dataset.
enum class OnDifferent : std::uint8_t {
  error,      ///< Refuse the input.
  keep_first  ///< Keep the first input's; a remark names the dataset.
};

struct ConcatRequest {
  std::vector<std::string> inputs;  ///< Files in the order of their rows.
  std::string output;
  /// threads, memory, fsync, journal, replace, plugin path; layout claimed or dense in
  /// field_defaults.layout.
  FileOptions options;
  bool append = false;  ///< True: the output exists and gets more rows.
  bool resume = false;  ///< Continue the unfinished output of a killed run of the same request.
  OnError on_error = OnError::stop;
  OnDifferent on_different = OnDifferent::error;
  /// Names of dimensions along which the inputs are tiles of a domain; empty: those with the
  /// attribute `domain_decomposition`.
  std::vector<std::string> tile_dimensions;
  bool allow_missing_tiles = false;  ///< Write fill values where a tile is missing; else an error.

  std::uint64_t chunk_rows = 0;   ///< Rows of each chunk; 0: by chunk_bytes.
  std::uint64_t chunk_bytes = 0;  ///< Approximate chunk size; 0: the inputs' if large enough to be
                                  ///< worth it, else 1 MiB (docs/concat.md).
  /// Codec of the output. "keep" (default): the first input's; "none"; "deflate"; any other codec's
  /// name.
  std::string codec = "keep";
  std::vector<KeyValue> codec_settings;
  std::optional<std::uint32_t> level;   ///< Deflate level, if the output uses deflate; none: as
                                        ///< stored.
  std::uint64_t plain_below_bytes = 0;  ///< Datasets of fewer bytes are contiguous and
                                        ///< uncompressed.
  bool dedup = false;                   ///< Store equal encoded chunks of one rank once.
  /// Names in /spill that together identify an event. Each group that has all of them gets a
  /// dataset "LAST.seq" of int64 that numbers its rows' events, the same in all groups. Empty:
  /// none.
  std::vector<std::string> key_names;
  double commit_interval_s = 30;  ///< Minimum time between intermediate commits.
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> progress;  ///< Called on
                                                                                      ///< rank 0.
};

/// Wall time of a stage in seconds, over the ranks.
struct StageTime {
  double mean_s = 0;
  double max_s = 0;
};

struct ConcatReport {
  std::uint64_t n_files = 0;     ///< Appended files.
  std::uint64_t n_datasets = 0;  ///< Appended datasets of the schema.
  std::uint64_t n_empty = 0;     ///< Appended datasets without rows.
  std::uint64_t n_rows = 0;      ///< Sum over all datasets.
  std::uint64_t n_uneven = 0;    ///< Datasets of files whose row count differs from their group's.
  std::uint64_t raw_bytes = 0;
  std::uint64_t input_bytes = 0;   ///< Sum of the files' lengths.
  std::uint64_t output_bytes = 0;  ///< Length of the output file.
  std::uint64_t metadata_bytes = 0;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_copied = 0;      ///< Chunks that were copied as stored.
  std::uint64_t copied_bytes = 0;  ///< Encoded bytes of these chunks.
  std::uint64_t n_shared = 0;      ///< Chunks that point to another one's bytes (dedup).
  std::uint64_t n_rounds = 0;
  std::uint64_t n_commits = 0;
  std::uint64_t peak_bytes = 0;  ///< Maximum over ranks of the bytes that the memory cap counts.
  /// The stages are open (and schema), exchange, read, decode, encode, write, create (datasets),
  /// index, close. For read, decode, encode and write: busy time of all threads of a rank.
  std::vector<std::pair<std::string, StageTime>> stages;
  double total_s = 0;
  std::vector<std::string> skipped;  ///< "FILE: why" for each skipped input (OnError::skip).
  std::vector<std::string> remarks;
};

/// Concatenate. Collective over `comm`; every rank passes the same request and returns the same
/// Status and report. After a failure a new output does not exist, except for a resumable part
/// named OUTPUT.partial. An output that was to be extended is unchanged then.
///
/// Cost: an equal share of the files' work per rank. Communication: a broadcast of the schema;
/// prefix sums of O(datasets); one sparse exchange of encoded bytes per round; at commits a gather
/// of 32 bytes per chunk to rank 0.
/// @error invalid_argument (conflicts between files, all of them named), not_found, corrupt,
/// already_exists, no_space, io_error, plugin_missing
Result<ConcatReport> concatenate(Comm& comm, const ConcatRequest& request);

}  // namespace tailrace
