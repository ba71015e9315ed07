// ArrayFile: a netCDF-4 file whose variables are written and read in any order, by any ranks.
//
// A Writer takes whole fields, a step at a time. Programs that write through netCDF's interfaces do
// not work like that: they define, write parts of variables in any order, read them back, define
// more. Here every put is staged in memory (then in an unlinked file); a flush brings all that is
// staged into the file at once: each touched chunk goes to one rank, is completed by what the file
// holds of it, encoded, written and indexed, and the whole is committed. So a program that writes
// row by row still leaves chunks that were compressed once. Frontends: pnetcdf, python.
//
// Collectivity. create, open, change_model, set_*, settle, flush, get_all and close are collective.
// put and get are not. A failure on one rank within a collective call is returned on every rank.
// What a put has staged is seen by this rank's gets at once, by others after a flush.
//
// Invariant 1: the file is at its last flush at every moment; a crash loses what was staged since.
//   Recovery first completes a journal that the commit has left. Exception: variables without
//   filters of more than 64 KiB are overwritten where they lie, so that a crash within a flush
//   leaves some of their values old and some new.
// Invariant 2: where puts overlap, the later one wins: within a rank always, between ranks if a
//   collective call of the file lies between them; else either does, element by element.
// Invariant 3: values keep their bound however often their neighbours in a chunk are rewritten: a
//   chunk in which decoded values of a lossy codec are kept is stored exactly.

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

/// file.memory_bytes caps staging, too: half of it is for what is staged, beyond which it goes to
/// `spill_folder`.
struct ArrayFileOptions : GlobOptions {
  ArrayFileOptions() { file.door = Door::python; }
  ReadOptions read;
  /// The settings of file.field_defaults are the library's, for deflate where no codec is named.
  bool default_settings = false;
};

/// What TAILRACE_OPTIONS says, a text or a file ("@FILE", or its path) as rank 0 has it; the
/// default codec is deflate at level 1. Collective: one broadcast. @error invalid_argument
/// @param writes  whether codecs will encode, and are tried.
Status read_array_options(Comm& comm, ArrayFileOptions& options, bool writes = true);

/// What flushes have done so far; sums over all ranks, the same on every rank.
struct ArrayFileReport {
  std::uint64_t n_flushes = 0;
  std::uint64_t staged_bytes = 0;     ///< Put by callers.
  std::uint64_t n_chunks = 0;         ///< Encoded.
  std::uint64_t n_chunks_merged = 0;  ///< Of these, completed by what the file held.
  std::uint64_t n_raw_chunks = 0;
  std::uint64_t raw_bytes = 0;  ///< Uncompressed bytes of chunks encoded.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t lost_bytes = 0;  ///< Places of chunks that were written anew: gaps now.
  double flush_s = 0;
  double encode_s = 0;
  double write_s = 0;
  double hidden_s = 0;  ///< For which flushes went on beside the program.
};

/// Calls visit(name, number...) for every number, of several reports side by side.
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
  /// Without close() before: what was staged is lost. Local then.
  virtual ~ArrayFile() = default;

  /// The model with the lengths of unlimited dimensions as this rank knows them: those of the last
  /// collective call, grown by its own puts.
  virtual const NetcdfModel& model() const = 0;
  /// What the user should hear of how the file was come by (Output::remark()): rank 0; may be
  /// empty.
  virtual std::string remark() const = 0;
  /// The same of what close() has found: globs of the options that no variable's path matches.
  virtual std::string closing_remark() const = 0;
  /// Remarks on bounds that mean little for a variable's values (policy/bound_width), of all
  /// flushes since the last call. Empty on all ranks but 0. Callable after close(), too.
  virtual std::vector<std::string> take_remarks() = 0;
  /// Bring the file to `next` (see NetcdfLayout::change), which must be alike on all ranks.
  /// Datasets are created when values are flushed or the file is closed, so that their chunks
  /// follow the boxes that are put. Collective: one agreement on a hash.
  /// @error invalid_argument (also a file opened for reading)
  virtual Status change_model(const NetcdfModel& next) = 0;
  /// Options of one variable on top of those by glob, before its dataset exists. Collective.
  /// @error of options with which it cannot be stored, as far as that is known before values come
  virtual Status set_variable_options(std::size_t variable, const std::string& options) = 0;
  /// Try a variable before change_model() defines it, and with it options of its own. Collective.
  /// @param next  the model with the variable behind all others.
  /// @returns may_lose() of the variable.
  /// @error of options with which it cannot be stored, as far as that is known before values come
  virtual Result<bool> try_variable(const NetcdfModel& next, const std::string& options) = 0;
  /// True if values that are put into this variable may change when they are encoded. Not
  /// collective. @error invalid_argument  no such variable, or options that are refused.
  virtual Result<bool> may_lose(std::size_t variable) const = 0;
  /// Encode and decode this variable by the caller's codec (its filters() go into the header).
  /// For a variable that exists: to read it. Must be alike on all ranks.
  virtual Status set_codec(std::size_t variable, std::shared_ptr<const Codec> codec) = 0;

  /// Stage values of one slab: dense, row-major, of the variable's own type, native byte order
  /// (text_char: bytes). They are copied. A slab may reach beyond an unlimited dimension's end,
  /// which then grows. Not collective.
  /// @error bad_coverage, invalid_argument (also a file opened for reading), unsupported (type
  /// text, other)
  virtual Status put(std::size_t variable, const Slab& slab, std::span<const std::byte> values) = 0;
  /// The same of very many short pieces in one call: runs of elements, counted row-major in the
  /// lengths that the variable has now, in any order, and the values of all of them in that order.
  /// They may reach beyond the end of the slowest dimension, if that is unlimited. Not collective.
  /// Cost: O(runs log runs) and 12 bytes a run, where a slab takes 40 and more.
  /// @error as put()
  virtual Status put_runs(std::size_t variable, const ElementRuns& runs,
                          std::span<const std::byte> values) = 0;
  /// Read one slab: the file's values, with this rank's staged ones over them. Never-written
  /// elements are fill values. Not collective.
  virtual Status get(std::size_t variable, const Slab& slab, std::span<std::byte> values) = 0;
  /// Every rank's slabs at once, with all ranks' staged values (a flush, if there are any).
  /// Collective. @see Reader::read_all; ReadRequest::dataset is the variable's position here.
  virtual Status get_all(std::span<const ReadRequest> requests) = 0;
  /// Texts of a variable of type text. Not collective.
  virtual Result<std::vector<std::string>> get_texts(std::size_t variable, const Slab& slab) = 0;
  /// Set texts of a variable of type text, which rank 0 writes with HDF5 at the next flush.
  virtual Status put_texts(std::size_t variable, const Slab& slab,
                           std::span<const std::string> texts) = 0;

  /// Agree on the lengths of unlimited dimensions, and flush if some rank's staging is over its
  /// cap. Collective; cheap otherwise (one allreduce): for the end of every collective put.
  virtual Status settle() = 0;
  /// Write and commit all that is staged, and all definitions: a variable without values is in the
  /// file then, too, unless its codec or its bound comes from its first values (codec=auto, rel,
  /// psnr, targets). Chunks of such a one cannot follow the ranks' boxes. Collective. A new
  /// variable that cannot be stored stays staged: its error is returned, and all others are
  /// committed.
  virtual Status flush() = 0;
  /// Write and commit all that is staged, so that other ranks can read it independently. Unlike
  /// flush(), creates no dataset for a variable without values. Collective.
  virtual Status sync_to_read() = 0;
  /// Flush, create the datasets that are missing, close. Collective.
  virtual Status close() = 0;
  /// Drop what is staged since the last flush and close; a file that was never flushed is removed.
  /// Collective.
  virtual Status abort() = 0;

  virtual const ArrayFileReport& report() const = 0;
  virtual Comm& comm() = 0;
  virtual bool writable() const = 0;
  /// The file has its name. Until its first flush, a new file lies elsewhere, and its name may
  /// belong to an older one. Not collective, alike on all ranks.
  virtual bool in_place() const = 0;
  virtual const std::string& path() const = 0;
};

}  // namespace tailrace
