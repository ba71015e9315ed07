// Reader: reads hyperslabs of an HDF5 file and decodes them in parallel.
//
// read.cpp lists the stages. It lists the datasets, reads a chunk index once and shares it within
// each node. It finds the chunks that a slab touches, fetches neighbouring ones in large reads, and
// decodes them on threads, directly into the caller's memory. Decoded chunks that a slab used in
// part are cached, and the next chunks are prefetched. Serves any HDF5 file from any writer, with
// built-in filters or any plug-in; also contiguous, compact, virtual and external datasets.
//
// Collectivity. open, open_index, read_all, refresh and close are collective; read is not. A
// failure on one rank within a collective call is returned on every rank, and names the rank.
//
// Memory: encoded and decoded chunks in memory take at most ReadOptions::memory_bytes in addition
// to the caller's buffers, or what one chunk takes if that is more. The chunk index is not counted:
// 12 to 40 bytes a chunk of the datasets that are read, once per node.

#pragma once

#include <tailrace/report_lists.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm.hpp"
#include "core/slab.hpp"
#include "describe/input_file.hpp"
#include "hdf5/dataset_schema.hpp"
#include "netcdf/netcdf_model.hpp"
#include "trz/base/dtype.hpp"
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

/// Reads slabs of one HDF5 file.
class Reader {
 public:
  /// Open a file: rank 0 lists its datasets and broadcasts the list. Collective.
  /// Cost: O(objects) at rank 0, one broadcast.
  /// @error not_found, io_error, corrupt (not HDF5, damaged, or truncated)
  static Result<std::unique_ptr<Reader>> open(std::unique_ptr<Comm> comm, const std::string& path,
                                              const ReadOptions& options = {});
  virtual ~Reader() = default;

  virtual const std::vector<StoredDataset>& datasets() const = 0;
  /// Return the index of the dataset with this path (or a second hard link to it). @error not_found
  virtual Result<std::size_t> find(const std::string& path) const = 0;
  /// Dimensions, variables and attributes as netCDF-4 presents them; for any HDF5 file. Same
  /// everywhere.
  virtual const NetcdfModel& model() const = 0;
  /// Reason why the model is missing although the datasets could be listed; else ok. Same
  /// everywhere.
  virtual const Status& model_status() const = 0;

  /// Read the chunk indexes of these datasets once, and share them within each node. Without this
  /// call, independent reads let each rank read the index on its own. Collective. Cost: 0.2 us a
  /// chunk at rank 0, one broadcast of 12 to 40 bytes a chunk.
  virtual Status open_index(std::span<const std::size_t> datasets) = 0;

  /// Read one slab: numbers in native byte order, other types as the file's bytes. Not collective.
  /// One thread at a time. Elements of chunks that were never written have the dataset's fill
  /// value.
  /// @error invalid_argument, bad_coverage  the slab.
  /// @error corrupt, codec_failed  a chunk: the text names dataset, chunk and address.
  /// @error plugin_missing
  /// @error unsupported  elements that are references or of variable length; for strings:
  /// read_texts.
  /// @param abs_bound  same as ReadOptions::abs_bound; the coarser of both counts.
  virtual Status read(std::size_t dataset, const Slab& slab, std::span<std::byte> values,
                      double abs_bound) = 0;
  Status read(std::size_t dataset, const Slab& slab, std::span<std::byte> values) {
    return read(dataset, slab, values, 0);
  }
  /// Read variable-length or fixed-length strings. Not collective. @error unsupported  not strings.
  virtual Result<std::vector<std::string>> read_texts(std::size_t dataset, const Slab& slab) = 0;

  /// Read this rank's slabs, any number, of any datasets. A chunk that several ranks want is
  /// fetched and decoded by one of them, which sends the others their parts. Collective. Cost:
  /// O(own chunks) work and one message per pair of ranks that share a chunk; two sparse exchanges,
  /// a few allreduces. The memory limit determines the number of rounds.
  virtual Status read_all(std::span<const ReadRequest> requests) = 0;

  /// List and index the file again, after it has changed (another commit). Collective.
  virtual Status refresh() = 0;

  virtual const ReadReport& report() const = 0;
  virtual Comm& comm() = 0;
  /// Close the file. Collective. Without it the destructor is local.
  virtual Status close() = 0;
};

// --- Inputs of the verbs.

/// Open a file as fields, by its content instead of its name. Chunks of HDF5 files are fetched and
/// decoded as by a Reader. HDF5 itself reads only three kinds of datasets: in other files
/// (external, virtual), in a header (compact), and with filters that Tailrace cannot run. Datasets
/// in other files are fields only with options.follow_external. Not collective.
/// @error not_found, corrupt (truncated or foreign; says what was expected), unsupported (says
/// which format).
Result<std::unique_ptr<InputFile>> open_input_file(const std::string& path,
                                                   const std::optional<RawFormat>& raw = {},
                                                   const ReadOptions& options = {});

}  // namespace tailrace
