// Reader: the story of a read. An HDF5 file goes in, hyperslabs come out, decoded in parallel.
//
// Reads like a table of contents in read.cpp: list the datasets, read a chunk index once and share
// it within each node, find the chunks that a slab touches, fetch neighbouring chunks in large
// reads, decode them on threads straight into the caller's memory, keep what was decoded but is not
// used up, fetch ahead what is likely to come. Any HDF5 file, whoever wrote it, with built-in
// filters or any plug-in; contiguous, compact, virtual and external datasets too.
//
// Collectivity. open, open_index, read_all, refresh and close are collective; read is not. A
// failure on one rank within a collective call is returned by it on every rank, the rank named.
// Memory: what is in memory at once (encoded chunks fetched, chunks decoded and kept) is at most
// ReadOptions::memory_bytes beside the caller's, or what one chunk takes if that is more; the chunk
// index is not counted: 12 to 40 bytes a
// chunk of the datasets that are read, once per node.

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

struct ReadOptions {
  std::uint64_t n_threads = 0;                ///< 0: cores / ranks on the node, at least 2.
  std::uint64_t memory_bytes = 256ULL << 20;  ///< See above.
  std::uint64_t read_bytes = 16ULL << 20;     ///< Largest single read of neighbouring chunks.
  std::uint64_t gap_bytes = 64ULL << 10;      ///< Bytes between chunks that are read over.
  bool prefetch = true;                       ///< Fetch and decode ahead of a run of slabs.
  std::string plugin_path;                    ///< Searched before HDF5_PLUGIN_PATH.
  /// Values of floating-point fields need be no nearer to the originals than this, or than their
  /// field's own bound if that is coarser: chunks that allow it are read in part.
  double abs_bound = 0;
  bool follow_external = false;  ///< Read values that lie in other files, see OtherFiles.
  bool skip_unreadable = false;  ///< Of an input: leave out objects that HDF5 cannot open.
  /// Of an input: have HDF5 itself read all, as any program would: for who checks what was written.
  bool by_hdf5 = false;
  /// The caller writes the file and knows what of it is committed, also where a commit has failed.
  bool own_output = false;
  /// Each value is asked for once: what a slab leaves of a chunk is kept, no chunk used up.
  bool one_pass = false;
  /// List datasets of other types that lie in an input as plain bytes as fields, too
  /// (StoredDataset::bytes_axis, InputFile::take_as_fields).
  bool others_as_bytes = false;
};

OtherFiles other_files_of(const ReadOptions& options);

/// Apply "threads=2,memory=256MB,read=16MiB,gap=64k,abs=1e-3" on top of `options`.
/// @error invalid_argument
Status apply_read_options(std::string_view text, ReadOptions& options);

/// What a reader has done so far on this rank; tailrace/reader.h says what the numbers mean.
struct ReadReport {
  TAILRACE_READ_REPORT_LIST(TAILRACE_REPORT_MEMBER)
};

template <class Visit>
void report_fields(const ReadReport& report, Visit&& visit) {
#define TAILRACE_VISIT(type, name, known) visit(#name, report.name);
  TAILRACE_READ_REPORT_LIST(TAILRACE_VISIT)
#undef TAILRACE_VISIT
}

/// One slab of a collective read; `values` takes its elements, dense and row-major.
struct ReadRequest {
  std::size_t dataset = 0;
  Slab slab;
  std::byte* values = nullptr;
};

class Reader {
 public:
  /// Open a file: rank 0 lists its datasets and says so to all. Collective.
  /// Cost: O(objects) at rank 0, one broadcast.
  /// @error not_found, io_error, corrupt (not HDF5, damaged, or truncated)
  static Result<std::unique_ptr<Reader>> open(std::unique_ptr<Comm> comm, const std::string& path,
                                              const ReadOptions& options = {});
  virtual ~Reader() = default;

  virtual const std::vector<StoredDataset>& datasets() const = 0;
  /// The dataset of this path (a second hard link is found too). @error not_found
  virtual Result<std::size_t> find(const std::string& path) const = 0;
  /// Dimensions, variables and attributes as netCDF-4 sees them; of any HDF5 file. Same everywhere.
  virtual const NetcdfModel& model() const = 0;
  /// Why there is no model, though the datasets could be listed; ok else. Same everywhere.
  virtual const Status& model_status() const = 0;

  /// Read the chunk indexes of these datasets, once, and share them within each node. Without it,
  /// the first independent read of a dataset has this rank read its index by itself. Collective.
  /// Cost: 0.2 us a chunk at rank 0, one broadcast of 12 to 40 bytes a chunk.
  virtual Status open_index(std::span<const std::size_t> datasets) = 0;

  /// Read one slab: numbers in native byte order, anything else as the file's bytes.
  /// Not collective. One thread at a time. Elements of chunks that were never written are the
  /// dataset's fill value.
  /// @error invalid_argument, bad_coverage  the slab.  @error corrupt, codec_failed  a chunk: the
  /// text names dataset, chunk and address.  @error plugin_missing
  /// @error unsupported  elements that point elsewhere (variable length, references): read_texts.
  /// @param abs_bound  as ReadOptions::abs_bound, of which the coarser counts.
  virtual Status read(std::size_t dataset, const Slab& slab, std::span<std::byte> values,
                      double abs_bound) = 0;
  Status read(std::size_t dataset, const Slab& slab, std::span<std::byte> values) {
    return read(dataset, slab, values, 0);
  }
  /// Variable-length and fixed-length strings. Not collective. @error unsupported  no strings.
  virtual Result<std::vector<std::string>> read_texts(std::size_t dataset, const Slab& slab) = 0;

  /// Every rank reads its own slabs, any number, of any datasets. A chunk that several ranks want
  /// is fetched and decoded by one of them, which sends the others their parts. Collective. Cost:
  /// O(own chunks) work and messages (as many as there are pairs of ranks that share a chunk); two
  /// sparse exchanges, a few allreduces; rounds as the memory needs.
  virtual Status read_all(std::span<const ReadRequest> requests) = 0;

  /// The file has changed (another commit): list and index anew. Collective.
  virtual Status refresh() = 0;

  virtual const ReadReport& report() const = 0;
  virtual Comm& comm() = 0;
  /// Close the file. Collective. A destructor without it is local.
  virtual Status close() = 0;
};

// --- Inputs of the verbs.

/// Open a file as fields, by its content, not by its name. Chunks of HDF5 files are fetched and
/// decoded as by a Reader; HDF5 itself reads only what lies in other files (external, virtual; only
/// with options.follow_external, else these are no fields) or in a header (compact), and what has
/// filters that we cannot run. Not collective.
/// @error not_found, corrupt (truncated or foreign; says what was expected), unsupported (says
/// which format).
Result<std::unique_ptr<InputFile>> open_input_file(const std::string& path,
                                                   const std::optional<RawFormat>& raw = {},
                                                   const ReadOptions& options = {});

}  // namespace tailrace
