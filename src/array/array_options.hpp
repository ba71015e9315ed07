// Options and statistics of files whose variables are written in any order.

#pragma once

#include <cstdint>

#include "chunk/read_options.hpp"
#include "core/comm.hpp"
#include "core/glob_options.hpp"
#include "core/options.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Options of an ArrayFile. file.memory_bytes also caps staging: half of it is for staged values;
/// beyond that they spill to an unlinked file in `spill_folder`.
struct ArrayFileOptions : GlobOptions {
  ArrayFileOptions() { file.door = Door::python; }
  ReadOptions read;
  /// True if file.field_defaults has the library's default settings, which apply to deflate when no
  /// codec is named.
  bool default_settings = false;
};

/// Read TAILRACE_OPTIONS on rank 0: a text or a file ("@FILE", or its path). Sets deflate level 1
/// as the default codec. Collective: one broadcast. @error invalid_argument
/// @param writes  true if codecs will encode; then they are tried.
/// @param flags  null, or a number that rank 0's replaces, unless rank 0 cannot read the options.
Status read_array_options(Comm& comm, ArrayFileOptions& options, bool writes = true,
                          int* flags = nullptr);

/// Statistics of all flushes so far; sums over all ranks, the same on every rank.
struct ArrayFileReport {
  std::uint64_t n_flushes = 0;
  std::uint64_t staged_bytes = 0;     ///< Put by callers.
  std::uint64_t n_chunks = 0;         ///< Chunks encoded.
  std::uint64_t n_chunks_merged = 0;  ///< Encoded chunks that were completed with stored values.
  std::uint64_t n_raw_chunks = 0;
  std::uint64_t n_chunks_in_waits = 0;  ///< Encoded while the program waited in MPI.
  std::uint64_t raw_bytes = 0;          ///< Uncompressed bytes of encoded chunks.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t lost_bytes = 0;  ///< Old places of rewritten chunks: gaps now.
  double flush_s = 0;
  double encode_s = 0;
  double write_s = 0;
  double hidden_s = 0;  ///< Flush time that overlapped with the program.
};

/// Call visit(name, number...) for every number, of several reports side by side.
template <class Visit, class... Reports>
void array_report_fields(Visit&& visit, Reports&... reports) {
  visit("n_flushes", reports.n_flushes...);
  visit("staged_bytes", reports.staged_bytes...);
  visit("n_chunks", reports.n_chunks...);
  visit("n_chunks_merged", reports.n_chunks_merged...);
  visit("n_raw_chunks", reports.n_raw_chunks...);
  visit("n_chunks_in_waits", reports.n_chunks_in_waits...);
  visit("raw_bytes", reports.raw_bytes...);
  visit("encoded_bytes", reports.encoded_bytes...);
  visit("lost_bytes", reports.lost_bytes...);
  visit("flush_s", reports.flush_s...);
  visit("encode_s", reports.encode_s...);
  visit("write_s", reports.write_s...);
  visit("hidden_s", reports.hidden_s...);
}
template <class Visit>
void report_fields(const ArrayFileReport& report, Visit&& visit) {
  array_report_fields(visit, report);
}

}  // namespace tailrace
