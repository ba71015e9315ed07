// ArrayFile: a netCDF-4 file whose variables are written and read in any order, by any ranks.
//
// A Writer accepts complete fields, one step at a time. Programs that use netCDF's interfaces
// define variables, write parts of them in any order, read them back, and define more. Here every
// put is staged in memory, then in an unlinked file. A flush writes all staged values together:
// each touched chunk goes to one rank, is completed with its stored values, encoded, written and
// indexed. Then the file is committed. So a program that writes row by row still leaves chunks that
// were compressed once. Frontends: pnetcdf, python. An ArrayFile follows netCDF's data model and
// writes all metadata itself. array_file.cpp implements its calls, opening and reading;
// array_prepare.cpp the decisions at a variable's first flush; array_flush.cpp its part of a flush.
//
// Collectivity. create, open, change_model, set_*, end_collective_put, flush, get_all and close are
// collective. put and get are not. A failure on one rank within a collective call is returned on
// every rank. Staged values are visible to this rank's gets immediately, to other ranks after a
// flush.
//
// Invariant 1: the file on disk is always at its last flush; a crash loses what was staged since.
// Recovery first completes a journal that the commit has left. Exception: unfiltered variables of
// more than 64 KiB are overwritten in place. A crash within a flush leaves some of their values old
// and some new.
// Invariant 2: where puts overlap, the later one wins. Within a rank this always holds; between
// ranks it holds if a collective call of the file lies between the puts. Otherwise either wins,
// element by element.
// Invariant 3: values stay within their error bound however often their neighbours in a chunk are
// rewritten: none is encoded with loss from decoded values. See array_patches.hpp.
//
// Modes async and in_situ: flush_concurrently() returns while threads encode the flush, and the
// next collective call completes it. A rank's own gets do not see the values of such a flush.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/array_engine.hpp"
#include "array/array_options.hpp"
#include "array/element_runs.hpp"
#include "core/codec.hpp"
#include "core/comm.hpp"
#include "core/slab.hpp"
#include "model/machine_profile.hpp"
#include "netcdf/netcdf_model.hpp"
#include "output/publish_fields.hpp"
#include "read/read.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ArrayFile final : private ArrayEngine {
 public:
  /// Create an empty file. It appears under `path` at the first flush. Collective. Cost: two
  /// agreements and a broadcast.
  /// @param mine  this rank's failure before the call, which becomes that of all ranks.
  /// @param along  numbers that are reduced over all ranks, also if the call fails.
  /// @error already_exists  it exists and options.file.replace is off.  @error io_error, no_space
  static Result<std::unique_ptr<ArrayFile>> create(std::unique_ptr<Comm> comm,
                                                   const std::string& path,
                                                   const ArrayFileOptions& options,
                                                   const Status& mine = Status(),
                                                   const RankNumbers& along = {});
  enum class Access : std::uint8_t { read, write };
  /// Open any HDF5 file. Collective. @error not_found, corrupt, unsupported
  static Result<std::unique_ptr<ArrayFile>> open(std::unique_ptr<Comm> comm,
                                                 const std::string& path, Access access,
                                                 const ArrayFileOptions& options,
                                                 const Status& mine = Status(),
                                                 const RankNumbers& along = {});
  /// Destroy without close(): staged values are lost. Not collective.
  ~ArrayFile();

  /// The model, with lengths of unlimited dimensions as this rank knows them: those of the last
  /// collective call, grown by its later puts.
  const NetcdfModel& model() const { return model_; }
  /// Remark for the user on how the file was created or opened (Output::remark()). Rank 0; may be
  /// empty.
  std::string remark() const { return output_.remark(); }
  /// Remark for the user after close(): globs in the options that match no variable's path.
  std::string closing_remark() const { return closing_remark_; }
  /// Return and clear the remarks on bounds that have little effect on a variable's values
  /// (policy/bound_width). They cover all flushes since the last call. Empty on all ranks but 0.
  /// Callable after close(), too.
  std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }
  /// Attributes of definitions: equal on all ranks, or rank 0's where they differ.
  enum class Attributes : std::uint8_t { equal, of_root };
  /// Change the file's definitions to `next` (see NetcdfLayout::change), which must be identical on
  /// all ranks. Datasets are created when values are flushed or the file is closed, so that their
  /// chunks follow the boxes that are put. Collective. Cost: one agreement on hashes and one
  /// broadcast; another reduction and broadcast if lengths or attributes differ.
  /// @error invalid_argument (also a file opened for reading)
  Status change_model(const NetcdfModel& next, Attributes attributes = Attributes::equal);
  /// Add options of one variable, which override those by glob, before its dataset exists.
  /// Collective.
  /// @error if the options are known to be unusable before values are put
  Status set_variable_options(std::size_t variable, const std::string& options);
  /// Try a variable and its options before change_model() defines it. Collective.
  /// @param next  the model with the variable added last.
  /// @returns may_lose() of the variable.
  /// @error if the options are known to be unusable before values are put
  Result<bool> try_variable(const NetcdfModel& next, const std::string& options);
  /// True if encoding may change the values of this variable. Not collective.
  /// @error invalid_argument  no such variable, or its options are refused.
  Result<bool> may_lose(std::size_t variable) const;
  /// Encode and decode this variable by the caller's codec, whose filters() go into the header. For
  /// an existing variable, the codec is used to read it. Must be alike on all ranks.
  Status set_codec(std::size_t variable, std::shared_ptr<const Codec> codec);

  /// Stage the values of one slab: dense, row-major, of the variable's own type, native byte order
  /// (text_char: bytes). The values are copied. A slab may reach beyond the end of an unlimited
  /// dimension, which then grows. Not collective.
  /// @error bad_coverage, invalid_argument (also a file opened for reading), unsupported (type
  /// text, other)
  Status put(std::size_t variable, const Slab& slab, std::span<const std::byte> values);
  /// Stage very many short pieces in one call. `runs` are element runs in any order, counted
  /// row-major in the variable's current extents; `values` follow the order of the runs. Runs may
  /// reach beyond the end of the slowest dimension if it is unlimited. Not collective.
  /// Cost: O(runs log runs) and 12 bytes a run, where a slab takes 40 or more.
  /// @error as put()
  Status put_runs(std::size_t variable, const ElementRuns& runs, std::span<const std::byte> values);
  /// Read one slab: the file's values, overlaid with this rank's staged ones. Never-written
  /// elements are fill values. Not collective.
  Status get(std::size_t variable, const Slab& slab, std::span<std::byte> values);
  /// Read the slabs of all ranks in one call, including the values that any rank has staged; if
  /// there are any, they are flushed first. Collective. @see Reader::read_all; ReadRequest::dataset
  /// is the variable's number here.
  Status get_all(std::span<const ReadRequest> requests);
  /// Read texts of a variable of type text. Not collective.
  Result<std::vector<std::string>> get_texts(std::size_t variable, const Slab& slab);
  /// Stage texts of a variable of type text; rank 0 writes them with HDF5 at the next flush.
  Status put_texts(std::size_t variable, const Slab& slab, std::span<const std::string> texts);

  /// End a collective put: agree on the lengths of unlimited dimensions, and flush if a rank's
  /// staging exceeds its cap. Collective; otherwise cheap (one allreduce).
  Status end_collective_put();
  /// Write and commit all staged values and all definitions. Variables without values get a
  /// dataset, too, whose chunks cannot follow the ranks' boxes. Exception: those whose codec or
  /// bound depends on their first values (codec=auto, rel, psnr, targets). Collective. A new
  /// variable that cannot be stored stays staged: its error is returned, and all others are
  /// committed.
  Status flush();
  /// Like flush(). In the modes async and in_situ it returns while threads encode and write, unless
  /// the flush creates a dataset. The next collective call completes it. Until then no rank may
  /// call get(). Collective.
  Status flush_concurrently();
  /// Write and commit all staged values, so that other ranks can read them independently. Unlike
  /// flush(), creates no dataset for a variable without values. Collective.
  Status sync_to_read();
  /// Flush, create the missing datasets, and close. Collective. Cost without values: two agreements
  /// and a broadcast; with values see array_flush.cpp.
  Status close();
  /// Drop the values staged since the last flush, and close. A file that was never flushed is
  /// removed. Collective.
  Status abort();

  const ArrayFileReport& report() const { return report_; }
  /// Stop the threads of a flush in flight, because this rank ends without the others. The file
  /// stays at the flush before. Not collective.
  void end_alone() { drop_flight(); }
  bool flushes_concurrently() const { return options_.file.mode != StepMode::sync; }
  bool uses_idle_time() const { return options_.file.mode == StepMode::in_situ; }
  Comm& comm() { return *comm_; }
  bool writable() const { return writable_; }
  /// True if the file has its final name. Until its first flush, a new file has a temporary one,
  /// and its final name may belong to an older file. Not collective, alike on all ranks.
  bool in_place() const { return !writable_ || output_.in_place(); }
  const std::string& path() const { return path_; }

 private:
  ArrayFile(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options)
      : ArrayEngine(std::move(comm), std::move(path), options) {}
  Status start_create(const Status& mine, const RankNumbers& along);
  Status start_open(Access access, const Status& mine, const RankNumbers& along);
  // array_file.cpp
  Status check_mode() const;
  Status check_variable(std::size_t variable) const;
  Status check_put(std::size_t variable, const Slab& slab, std::uint64_t n_elements) const;
  Result<Slab> check_runs(std::size_t variable, const ElementRuns& runs,
                          std::uint64_t n_given) const;
  void grow(std::size_t variable, const Slab& slab);
  /// Variable that stages the values of a dataset with several names: the first of these.
  std::size_t first_name(std::size_t variable) const {
    return variable < first_names_.size() ? first_names_[variable] : variable;
  }
  void add_to_meeting(RankNumbers& along) override;
  std::size_t first_unlimited() const;  ///< Its number; the number of dimensions if none is.
  /// Reduce over all ranks: the lengths of unlimited dimensions, whether a rank has staged more
  /// than its cap, and `more` (by maximum). Collective: one allreduce.
  void agree_on_lengths(std::span<std::uint64_t> more);
  /// Agree on the variables that have staged values on any rank, and on the lengths of unlimited
  /// dimensions. Call it after begin_collective(), which has agreed on the staged values of the
  /// first 64 variables and on one length. Collective; costs one allreduce if more is needed.
  std::vector<bool> agree_on_staged();
  Status take_model(const NetcdfModel& next);
  void take_attributes(NetcdfModel& model);
  std::string quoted(std::size_t variable) const override;
  Status finish(bool commit);
  Status adopt(std::size_t variable);
  void note_first_names();
  Status load_places(const ArrayFlush& flush) override;
  Result<std::vector<StoredChunk>> stored_chunks(std::size_t variable, const ChunkGrid& grid);
  Status make_existing_codec(std::size_t variable);
  Status continue_own(std::size_t variable);
  bool continue_lossy(std::size_t variable);
  Status read_file(std::size_t variable, const Slab& slab, std::span<std::byte> values);
  Status check_get(std::size_t variable, const Slab& slab, std::uint64_t n_given) const;
  Result<Reader*> fresh_reader();
  Status use_own_codec(std::size_t variable, Reader& reader, std::size_t dataset) const;
  void prepare_publish() override;
  Status open_shared_reader();
  static void place_texts(const Slab& from, const std::vector<std::string>& texts, const Slab& to,
                          std::vector<std::string>& target);

  // array_prepare.cpp
  Status prepare_new(ArrayFlush& flush) override;
  FieldDefinition define(std::size_t variable, const Shape& shape) const;
  /// @param own_options  options of the variable itself.
  Result<FieldDefinition> define_new(std::size_t variable, ModelRoles& roles,
                                     const std::vector<std::string>& own_options) const;
  Status choose_shape(std::size_t variable, const DecompositionFacts& facts,
                      FieldState& field) const;
  Status check_memory(const FieldPlan& plan) const;
  Status try_options(std::size_t variable, const std::vector<std::string>& own_options) const;
  Status leave_out_refused(ArrayFlush& flush, const std::vector<Status>& mine,
                           std::vector<std::size_t>& variables, std::vector<FieldState>& fields);
  Status choose_codecs(std::vector<FieldState>& fields, std::vector<Status>& prepared);

  // array_flush.cpp
  Shape shape_of(std::size_t variable) const override {
    return model_.shape_of(model_.variables[variable]);
  }
  Shape committed_shape_of(std::size_t variable) const override;
  Status publish_at_root(ArrayFlush& flush, const std::vector<std::vector<WrittenChunk>>& chunks,
                         const std::vector<Bytes>& plain) override;
  std::vector<bool> definable(bool closing) const override;
  void published(const ArrayFlush& flush) override;
  void handed_over(ArrayFlush& flush) override;
  void completing(ArrayFlush& flush) override;
  void completed(const ArrayFlush& flush) override;
  Shape text_chunk_shape(std::size_t variable) const;
  Status write_plain_at_root(const std::vector<Bytes>& plain);
  Bytes pack_plain(const ArrayFlush& flush) const override;
  Status create_at_root(std::size_t variable);

  std::unique_ptr<NetcdfLayout> layout_;  ///< Rank 0 only.
  NetcdfModel model_;
  /// Numbers of this rank; after a meeting, the maximum over all ranks.
  struct Meeting {
    std::uint64_t short_of_memory = 0;
    std::uint64_t length = 0;      ///< Length of the first unlimited dimension.
    std::uint64_t staged = 0;      ///< bits_of_staged(), of any rank.
    std::uint64_t details = 0;     ///< Hash of what need not be equal on all ranks.
    std::uint64_t complement = 0;  ///< Complement of `details`; both are reduced by maximum.
    bool alike() const { return details == ~complement; }
  } meeting_;
  std::string details_;                   ///< Text for Meeting::details; empty: the lengths.
  std::vector<std::size_t> first_names_;  ///< Indexed by variable of the opened file.
  bool has_further_names_ = false;        ///< A dataset has several names.
  Shape file_lengths_;                    ///< Lengths of all dimensions, at the last flush.
  NotesOfFile notes_of_file_;             ///< Rank 0 only.
  std::vector<std::string> paths_;        ///< Paths of the variables' datasets.
  std::vector<std::string> file_paths_;   ///< Paths at the last flush, before later renames.
  std::optional<MachineProfile> profile_;
  // Readers that see the last flush, opened on first use.
  std::unique_ptr<Reader> reader_;        ///< Shared by all ranks.
  std::unique_ptr<Reader> local_reader_;  ///< Used for independent reads of this rank.
};

}  // namespace tailrace
