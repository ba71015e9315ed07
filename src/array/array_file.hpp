// ArrayFile: a netCDF-4 file whose variables are written and read in any order, by any ranks.
//
// A Writer accepts complete fields, one step at a time. Programs that use netCDF's interfaces
// define variables, write parts of them in any order, read them back, and define more. Here every
// put is staged in memory, then in an unlinked file. A flush writes all staged values together:
// each touched chunk goes to one rank, is completed with its stored values, encoded, written and
// indexed. Then the file is committed. So a program that writes row by row still leaves chunks that
// were compressed once. Frontends: pnetcdf, python.
//
// Collectivity. create, open, change_model, set_*, settle, flush, get_all and close are collective.
// put and get are not. A failure on one rank within a collective call is returned on every rank.
// Staged values are visible to this rank's gets immediately, to other ranks after a flush.
//
// Invariant 1: the file on disk is always at its last flush; a crash loses what was staged since.
// Recovery first completes a journal that the commit has left. Exception: unfiltered variables of
// more than 64 KiB are overwritten in place. A crash within a flush leaves some of their values old
// and some new.
// Invariant 2: where puts overlap, the later one wins. Within a rank this always holds; between
// ranks it holds if a collective call of the file lies between the puts. Otherwise either wins,
// element by element.
// Invariant 3: values stay within their error bound however often their neighbours in a chunk are
// rewritten. A chunk that retains decoded values of a lossy codec is stored exactly.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/element_runs.hpp"
#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/glob_options.hpp"
#include "core/options.hpp"
#include "core/slab.hpp"
#include "netcdf/netcdf_model.hpp"
#include "read/read.hpp"
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
Status read_array_options(Comm& comm, ArrayFileOptions& options, bool writes = true);

/// Statistics of all flushes so far; sums over all ranks, the same on every rank.
struct ArrayFileReport {
  std::uint64_t n_flushes = 0;
  std::uint64_t staged_bytes = 0;     ///< Put by callers.
  std::uint64_t n_chunks = 0;         ///< Chunks encoded.
  std::uint64_t n_chunks_merged = 0;  ///< Encoded chunks that were completed with stored values.
  std::uint64_t n_raw_chunks = 0;
  std::uint64_t raw_bytes = 0;  ///< Uncompressed bytes of encoded chunks.
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

class ArrayFile {
 public:
  /// Create an empty file. It appears under `path` at the first flush. Collective.
  /// @error already_exists  it exists and options.file.replace is off.  @error io_error, no_space
  static Result<std::unique_ptr<ArrayFile>> create(std::unique_ptr<Comm> comm,
                                                   const std::string& path,
                                                   const ArrayFileOptions& options);
  enum class Access : std::uint8_t { read, write };
  /// Open any HDF5 file. Collective. @error not_found, corrupt, unsupported
  static Result<std::unique_ptr<ArrayFile>> open(std::unique_ptr<Comm> comm,
                                                 const std::string& path, Access access,
                                                 const ArrayFileOptions& options);
  /// Destroy without close(): staged values are lost. Not collective.
  virtual ~ArrayFile() = default;

  /// The model, with lengths of unlimited dimensions as this rank knows them: those of the last
  /// collective call, grown by its later puts.
  virtual const NetcdfModel& model() const = 0;
  /// Remark for the user on how the file was created or opened (Output::remark()). Rank 0; may be
  /// empty.
  virtual std::string remark() const = 0;
  /// Remark for the user after close(): globs in the options that match no variable's path.
  virtual std::string closing_remark() const = 0;
  /// Return and clear the remarks on bounds that have little effect on a variable's values
  /// (policy/bound_width). They cover all flushes since the last call. Empty on all ranks but 0.
  /// Callable after close(), too.
  virtual std::vector<std::string> take_remarks() = 0;
  /// Change the file's definitions to `next` (see NetcdfLayout::change), which must be identical on
  /// all ranks. Datasets are created when values are flushed or the file is closed, so that their
  /// chunks follow the boxes that are put. Collective: one agreement on a hash.
  /// @error invalid_argument (also a file opened for reading)
  virtual Status change_model(const NetcdfModel& next) = 0;
  /// Add options of one variable, which override those by glob, before its dataset exists.
  /// Collective.
  /// @error if the options are known to be unusable before values are put
  virtual Status set_variable_options(std::size_t variable, const std::string& options) = 0;
  /// Try a variable and its options before change_model() defines it. Collective.
  /// @param next  the model with the variable added last.
  /// @returns may_lose() of the variable.
  /// @error if the options are known to be unusable before values are put
  virtual Result<bool> try_variable(const NetcdfModel& next, const std::string& options) = 0;
  /// True if encoding may change the values of this variable. Not collective.
  /// @error invalid_argument  no such variable, or its options are refused.
  virtual Result<bool> may_lose(std::size_t variable) const = 0;
  /// Encode and decode this variable by the caller's codec, whose filters() go into the header. For
  /// an existing variable, the codec is used to read it. Must be alike on all ranks.
  virtual Status set_codec(std::size_t variable, std::shared_ptr<const Codec> codec) = 0;

  /// Stage the values of one slab: dense, row-major, of the variable's own type, native byte order
  /// (text_char: bytes). The values are copied. A slab may reach beyond the end of an unlimited
  /// dimension, which then grows. Not collective.
  /// @error bad_coverage, invalid_argument (also a file opened for reading), unsupported (type
  /// text, other)
  virtual Status put(std::size_t variable, const Slab& slab, std::span<const std::byte> values) = 0;
  /// Stage very many short pieces in one call. `runs` are element runs in any order, counted
  /// row-major in the variable's current extents; `values` follow the order of the runs. Runs may
  /// reach beyond the end of the slowest dimension if it is unlimited. Not collective.
  /// Cost: O(runs log runs) and 12 bytes a run, where a slab takes 40 or more.
  /// @error as put()
  virtual Status put_runs(std::size_t variable, const ElementRuns& runs,
                          std::span<const std::byte> values) = 0;
  /// Read one slab: the file's values, overlaid with this rank's staged ones. Never-written
  /// elements are fill values. Not collective.
  virtual Status get(std::size_t variable, const Slab& slab, std::span<std::byte> values) = 0;
  /// Read the slabs of all ranks in one call, including the values that any rank has staged; if
  /// there are any, they are flushed first. Collective. @see Reader::read_all; ReadRequest::dataset
  /// is the variable's number here.
  virtual Status get_all(std::span<const ReadRequest> requests) = 0;
  /// Read texts of a variable of type text. Not collective.
  virtual Result<std::vector<std::string>> get_texts(std::size_t variable, const Slab& slab) = 0;
  /// Stage texts of a variable of type text; rank 0 writes them with HDF5 at the next flush.
  virtual Status put_texts(std::size_t variable, const Slab& slab,
                           std::span<const std::string> texts) = 0;

  /// End a collective put: agree on the lengths of unlimited dimensions, and flush if a rank's
  /// staging exceeds its cap. Collective; otherwise cheap (one allreduce).
  virtual Status settle() = 0;
  /// Write and commit all staged values and all definitions. Variables without values get a
  /// dataset, too, whose chunks cannot follow the ranks' boxes. Exception: those whose codec or
  /// bound depends on their first values (codec=auto, rel, psnr, targets). Collective. A new
  /// variable that cannot be stored stays staged: its error is returned, and all others are
  /// committed.
  virtual Status flush() = 0;
  /// Write and commit all staged values, so that other ranks can read them independently. Unlike
  /// flush(), creates no dataset for a variable without values. Collective.
  virtual Status sync_to_read() = 0;
  /// Flush, create the missing datasets, and close. Collective.
  virtual Status close() = 0;
  /// Drop the values staged since the last flush, and close. A file that was never flushed is
  /// removed. Collective.
  virtual Status abort() = 0;

  virtual const ArrayFileReport& report() const = 0;
  virtual Comm& comm() = 0;
  virtual bool writable() const = 0;
  /// True if the file has its final name. Until its first flush, a new file has a temporary one,
  /// and its final name may belong to an older file. Not collective, alike on all ranks.
  virtual bool in_place() const = 0;
  virtual const std::string& path() const = 0;
};

}  // namespace tailrace
