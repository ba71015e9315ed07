// Options, counters and requests of a Reader.

#pragma once

#include <tailrace/report_lists.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/slab.hpp"
#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Options of a reader. Most users leave them at their defaults.
struct ReadOptions {
  std::uint64_t n_threads = 0;                ///< 0: cores / ranks on the node, at least 2.
  std::uint64_t memory_bytes = 256ULL << 20;  ///< Limit on chunks in memory, see above.
  std::uint64_t read_bytes = 16ULL << 20;     ///< Largest single read of neighbouring chunks.
  std::uint64_t gap_bytes = 64ULL << 10;      ///< Bytes between chunks that are read over.
  bool prefetch = true;                       ///< Fetch and decode ahead of a run of slabs.
  std::string plugin_path;                    ///< Searched before HDF5_PLUGIN_PATH.
  /// Accepted absolute error of floating-point values; the field's own bound counts if it is
  /// coarser. Chunks that allow it are read in part. 0: full precision.
  double abs_bound = 0;
  bool follow_external = false;  ///< Read values in other files, see OtherFiles.
  bool skip_unreadable = false;  ///< Input files: skip objects that HDF5 cannot open.
  /// Let HDF5 read all values of an input file, as any other program would. Used by verify.
  bool by_hdf5 = false;
  /// Set if the caller writes the file and knows its committed content, even after a failed commit.
  bool own_output = false;
  /// Every value is requested once: the rest of a partly read chunk is cached, a used-up one is
  /// not.
  bool one_pass = false;
  /// Input files: also list datasets of other types as fields of bytes, if they are stored as plain
  /// bytes (StoredDataset::bytes_axis, InputFile::take_as_fields).
  bool others_as_bytes = false;
};

OtherFiles other_files_of(const ReadOptions& options);

/// Apply "threads=2,memory=256MB,read=16MiB,gap=64k,abs=1e-3" on top of `options`.
/// @error invalid_argument
Status apply_read_options(std::string_view text, ReadOptions& options);

/// Counters of a reader on this rank; tailrace/reader.h documents them.
struct ReadReport {
  TAILRACE_READ_REPORT_LIST(TAILRACE_REPORT_MEMBER)
};

template <class Visit>
void report_fields(const ReadReport& report, Visit&& visit) {
#define TAILRACE_VISIT(type, name, known) visit(#name, report.name);
  TAILRACE_READ_REPORT_LIST(TAILRACE_VISIT)
#undef TAILRACE_VISIT
}

/// One slab of a collective read; `values` receives its elements, dense and row-major.
struct ReadRequest {
  std::size_t dataset = 0;
  Slab slab;
  std::byte* values = nullptr;
};

}  // namespace tailrace
