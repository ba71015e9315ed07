// concatenate: thousands of compressed HDF5 files into one, in parallel (Lee et al. 2022).
//
// Every dataset of the common schema is appended along its first dimension in the order of the
// list; of files with dimensions (netCDF-4), only datasets with a record dimension are. Chunks
// whose place fits go into the output as they are; the others are decoded and encoded once, by all
// ranks alike. The story is src/concat/concat.cpp; what it does on disk, docs/concat.md.

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

/// What becomes of an input that cannot be appended (corrupt, missing, another schema).
enum class OnError : std::uint8_t {
  stop,  ///< Nothing is written; all such inputs are named together.
  skip   ///< It is left out, and named; damage that is found late lets the job begin anew.
};

/// Treatment of inputs with dimensions in which a dataset that does not grow has other values, or
/// an attribute that gives values their meaning (units) differs.
enum class OnDifferent : std::uint8_t {
  error,      ///< The input cannot be appended.
  keep_first  ///< The first input's are kept; a remark names the dataset.
};

struct ConcatRequest {
  std::vector<std::string> inputs;  ///< In the order of the rows.
  std::string output;
  /// threads, memory, fsync, journal, replace, plugin path; layout claimed or dense in
  /// field_defaults.layout.
  FileOptions options;
  bool append = false;  ///< The output exists and gets more rows.
  bool resume = false;  ///< Go on with what a killed run of the same request has left.
  OnError on_error = OnError::stop;
  OnDifferent on_different = OnDifferent::error;
  /// Names of dimensions along which the inputs are tiles of a domain; empty: those with the
  /// attribute `domain_decomposition`.
  std::vector<std::string> tile_dimensions;
  bool allow_missing_tiles = false;  ///< Fill values where a tile is missing; else an error.

  std::uint64_t chunk_rows = 0;   ///< Rows of each chunk; 0: by chunk_bytes.
  std::uint64_t chunk_bytes = 0;  ///< About so large; 0: as the inputs' where these are large
                                  ///< enough to be worth it, else 1 MiB (docs/concat.md).
  /// "keep": as the first input has it (the default); "none"; "deflate"; any other codec's name.
  std::string codec = "keep";
  std::vector<KeyValue> codec_settings;
  std::optional<std::uint32_t> level;   ///< Of deflate, where the output uses it; none: as stored.
  std::uint64_t plain_below_bytes = 0;  ///< Datasets of fewer bytes are contiguous, not compressed.
  bool dedup = false;                   ///< Equal encoded chunks of one rank are stored once.
  /// Names in /spill that together identify an event; each group that has them all gets a dataset
  /// "LAST.seq" of int64 that numbers its rows' events, the same in all groups. Empty: none.
  std::vector<std::string> key_names;
  double commit_interval_s = 30;  ///< At least so long between commits on the way.
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> progress;  ///< Rank 0.
};

/// Seconds of wall time of a stage, over the ranks.
struct StageTime {
  double mean_s = 0;
  double max_s = 0;
};

struct ConcatReport {
  std::uint64_t n_files = 0;     ///< Appended.
  std::uint64_t n_datasets = 0;  ///< Appended ones of the schema.
  std::uint64_t n_empty = 0;     ///< Of these, without any row.
  std::uint64_t n_rows = 0;      ///< Of all datasets.
  std::uint64_t n_uneven = 0;    ///< Datasets of files whose rows differ from their group's.
  std::uint64_t raw_bytes = 0;
  std::uint64_t input_bytes = 0;   ///< The files' lengths.
  std::uint64_t output_bytes = 0;  ///< The file's length.
  std::uint64_t metadata_bytes = 0;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_copied = 0;      ///< Chunks that were taken over as they were stored.
  std::uint64_t copied_bytes = 0;  ///< Encoded.
  std::uint64_t n_shared = 0;      ///< dedup: chunks that point to another's bytes.
  std::uint64_t n_rounds = 0;
  std::uint64_t n_commits = 0;
  std::uint64_t peak_bytes = 0;  ///< Largest of any rank: what the cap counts.
  /// open (and schema), exchange, read, decode, encode, write, create (datasets), index, close.
  /// read, decode, encode and write are busy time of all threads of a rank.
  std::vector<std::pair<std::string, StageTime>> stages;
  double total_s = 0;
  std::vector<std::string> skipped;  ///< "FILE: why", with OnError::skip.
  std::vector<std::string> remarks;
};

/// Concatenate. Collective over `comm`; every rank passes the same request and returns the same
/// Status and report. On failure a new output does not exist (a resumable part of it may, as
/// OUTPUT.partial), and an output that was to be appended to is as it was.
/// Cost: the files' share of work per rank; communication: a broadcast of the schema, prefix sums
/// of O(datasets), per round one sparse exchange of encoded bytes, at commits a gather of 32 bytes
/// per chunk to rank 0.
/// @error invalid_argument (conflicts between files, all of them named), not_found, corrupt,
/// already_exists, no_space, io_error, plugin_missing
Result<ConcatReport> concatenate(Comm& comm, const ConcatRequest& request);

}  // namespace tailrace
