// ArrayEngine: staged values of one file's variables, and the flush that writes them.
//
// A derived class defines the variables, how they are stored, and how the metadata is written:
// ArrayFile (netCDF's data model; writes all metadata itself) and DatasetArray (an HDF5 file
// whose metadata the program writes). array_flush.cpp describes a flush stage by stage.
//
// Invariant 4: only rank 0 touches the file's HDF5 metadata. Its changes become visible at a
// commit. If it fails, the file stays at its last flush and refuses all further work.
//
// Modes async and in_situ: a flush that is handed over returns once every rank has collected its
// values and pieces. Lanes encode and write them without MPI or HDF5, and the next collective call
// of the file completes the flush. Invariant 5: at most one flush is in flight, and on all ranks
// the same. Invariant 6: if a flush fails in flight, the call that completes it returns the error
// on all ranks. Its values are staged again, before all later puts.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/array_options.hpp"
#include "array/array_patches.hpp"
#include "array/array_staging.hpp"
#include "array/array_variable.hpp"
#include "exec/executor.hpp"
#include "output/output.hpp"

namespace tailrace {

/// State of one flush.
struct ArrayFlush {
  std::vector<std::size_t> variables;  ///< Staged on any rank; the same everywhere.
  std::vector<std::size_t> created;    ///< They get their dataset in this flush.
  Status refused;                      ///< Why a variable cannot be stored and stays staged.
  bool hold_back = false;
  // Parallel arrays over the variables that are stored in chunks.
  std::vector<std::size_t> chunked;
  std::vector<PatchedField> fields;
  std::vector<std::unique_ptr<PatchedChunks>> patches;
  std::vector<FieldPlan> plans;
  std::vector<StagingLog> rest;  ///< Values that are held back; empty if none.
  PatchOwnership assigned;
  ExecutorReport done;
  std::vector<WrittenChunk> fresh;  ///< This rank's chunks that the index does not have yet.
  Bytes plain;                      ///< Result of pack_plain().
  std::vector<bool> larger_error;   ///< Than in all earlier flushes of the variable.
  std::vector<WrittenChunk> moved;  ///< Chunks that HDF5 relocated; rank 0 only.
  /// Contiguous variables that HDF5 relocated, with their new addresses; rank 0 only.
  std::vector<std::pair<std::size_t, std::uint64_t>> moved_whole;
  bool closing = false;
  bool defining = false;           ///< FlushMode::define.
  std::uint64_t staged_bytes = 0;  ///< Put by this rank.
  // Members of a flush that is handed over:
  bool handed_over = false;
  std::deque<StagingLog> taken;  ///< The values to write, parallel to `variables`.
  /// Offset to add to the epochs of later puts to compare them with this flush's.
  std::uint64_t epochs_before = 0;
  Shape lengths;  ///< ArrayFile: lengths of all dimensions at the hand-over.
  double start_s = 0;
  double lanes_s = 0;       ///< Time at which the lanes started.
  double handed_s = 0;      ///< Time at which the call returned to the program.
  double completing_s = 0;  ///< Time at which the completing call began.
  LaneClock clock;
  Status handed;                       ///< First failure of this rank while handing over.
  std::unique_ptr<Executor> executor;  ///< Last member: its threads use those above.
};

/// Mode of a flush. `at_once`: it ends before the call returns. `concurrent`: in the modes async
/// and in_situ, it may proceed while the program computes. `define`: like at_once, and it also
/// creates the datasets of definable() variables. `define_concurrent`: like define, and it may
/// proceed while the program computes if it creates no dataset.
enum class FlushMode : std::uint8_t { at_once, concurrent, define, define_concurrent };

class ArrayEngine {
 public:
  ArrayEngine(const ArrayEngine&) = delete;
  ArrayEngine& operator=(const ArrayEngine&) = delete;

 protected:
  ArrayEngine(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options);
  ~ArrayEngine() = default;

  // --- hooks of the derived class

  /// Current extents of a variable, as agreed; the same on every rank.
  virtual Shape shape_of(std::size_t variable) const = 0;
  /// Extents of a variable in the file; shape_of() if they are unknown.
  virtual Shape committed_shape_of(std::size_t variable) const = 0;
  /// Name of a variable for messages: variable "/g/x".
  virtual std::string quoted(std::size_t variable) const = 0;
  /// Decide how the new variables of the flush are stored. Errors are agreed.
  virtual Status prepare_new(ArrayFlush& flush) = 0;
  /// Find the stored chunks of the flush's variables that existed when the file was opened. Errors
  /// are agreed.
  virtual Status load_places(const ArrayFlush& flush) = 0;
  /// Phase of an epoch: the interval between two collective calls in which the put was made. Phases
  /// ascend with epochs. In-place writes are made phase by phase.
  virtual std::uint64_t phase_of(std::uint64_t epoch) const { return epoch; }
  /// Pack this rank's values that rank 0 writes: by HDF5, or in place (goes_with_commit()).
  virtual Bytes pack_plain(const ArrayFlush& flush) const = 0;
  /// Prepare a commit by closing every open handle through which the file is read later.
  /// Collective.
  virtual void prepare_publish() {}
  /// Update the file's metadata and commit. Rank 0 only.
  /// @param chunks  of all ranks, by position in flush.chunked.
  /// @param plain  results of pack_plain() of all ranks.
  virtual Status publish_at_root(ArrayFlush& flush,
                                 const std::vector<std::vector<WrittenChunk>>& chunks,
                                 const std::vector<Bytes>& plain) = 0;
  /// Mark the variables whose dataset can be created before they have values. Marks of variables
  /// that already have a dataset are undefined. Not collective; equal on all ranks.
  /// @param closing  the file ends: variables that still have none get one.
  virtual std::vector<bool> definable(bool closing) const = 0;
  /// Hook after the commit of a flush. Called on every rank; collective calls are allowed.
  virtual void published(const ArrayFlush& flush) = 0;
  /// Hooks for flushes in flight. handed_over(): the flush is in flight and nothing is staged.
  /// completing(), completed(): around the stages that complete it. taken_back(): the flush has
  /// failed and its values are about to be staged again. Called on every rank. Not collective.
  virtual void handed_over(ArrayFlush& /*flush*/) {}
  virtual void completing(ArrayFlush& /*flush*/) {}
  virtual void completed(const ArrayFlush& /*flush*/) {}
  virtual void taken_back(const ArrayFlush& /*flush*/) {}
  /// Add numbers to be reduced where ranks meet, in every meeting the same number of them. After
  /// the meeting they hold the result of all ranks. Not collective.
  virtual void add_to_meeting(RankNumbers& /*along*/) {}

  // --- shared by all kinds of files

  /// Compare the options on all ranks. Collective: one agreement, also on this rank's failure.
  Status agree_on_options(const Status& mine, const RankNumbers& along = {});
  /// Open the existing file for changes. If datasets share chunk addresses, rank 0 lists them in
  /// `sharing`. Refused if HDF5 would then reuse the space of a replaced chunk. Collective. Cost:
  /// rank 0 reads all chunk indexes (datasets_that_share_chunks()).
  Status open_output(std::vector<std::string>& sharing);
  Status check_writable() const;
  Status check_open() const;
  Status note(const Status& failure);
  /// Begin a collective call, which completes the flush in flight, if any. Cost: one agreement.
  /// @param all_close  null, or this rank closes the file; set to whether all ranks do.
  /// @param definitions  text that all ranks must have alike.
  /// @param checked  this rank's failure before the call.
  Status begin_collective(bool* all_close = nullptr, const std::string& definitions = "",
                          const Status& checked = Status());
  /// True if the numbers of the last begin_collective() still hold: it has completed no flush.
  bool meeting_is_current() const { return meeting_is_current_; }
  /// Mark the first variables that have staged values on this rank, a bit each; see kBitsOfStaged.
  std::uint64_t bits_of_staged() const;
  static constexpr std::size_t kBitsOfStaged = 64;
  /// Note a change that every rank makes independently and identically. A rank that fails to make
  /// it differs from the others for good: the next collective call breaks off on all ranks.
  void note_change(std::string_view what, std::string_view change);
  /// Mark this rank as unable to continue: the next collective call breaks off on all ranks.
  void lose(const Status& failure);
  double now_s() const;
  /// Store a remark for the user; an empty one is dropped. Only rank 0 evaluates `make`. Local.
  void note_remark(const std::function<std::string()>& make);
  /// Note the variables of which chunks are stored unfiltered because the codec broke the bound.
  void note_raw_chunks();
  /// Prepare the closing remark: globs in the options that match none of `paths`. Local.
  void note_idle_options(std::span<const std::string> paths,
                         const std::set<std::string>& component_globs);

  // array_flush.cpp
  Status flush_variables(const std::vector<bool>& staged, bool hold_back, bool closing,
                         FlushMode mode = FlushMode::at_once);
  std::uint64_t n_threads() const;
  /// True if rank 0 writes the variable's values with the commit, under its journal. Larger
  /// unfiltered variables are overwritten in place.
  bool goes_with_commit(std::size_t variable) const;
  /// True if rank 0 writes the flush's values of a variable: by HDF5, or with the commit.
  bool goes_to_root(const ArrayFlush& flush, std::size_t variable) const;
  /// Add values of a contiguous variable to the next commit. Rank 0 only.
  Status commit_contiguous(std::size_t variable, const Slab& slab, const std::byte* values);
  /// True if the flush in flight has values of a variable.
  bool is_under_way(std::size_t variable) const;
  /// Drop a flush in flight because this rank ends without the others. Its threads stop. Not
  /// collective.
  void drop_flight();
  /// Staged values that a flush writes for its i-th variable.
  const StagingLog& staged_of(const ArrayFlush& flush, std::size_t i) const {
    return flush.taken.empty() ? variables_[flush.variables[i]].log : flush.taken[i];
  }

  std::unique_ptr<Comm> comm_;
  std::string path_;
  ArrayFileOptions options_;
  Output output_;
  bool was_there_ = false;      ///< The file was opened, not created.
  bool model_changed_ = false;  ///< Definitions changed since the last flush; same on all ranks.
  StagingMemory memory_;
  std::vector<ArrayVariable> variables_;
  ChunkPlaces places_;
  KeptOriginals originals_;
  ArrayFileReport report_;
  std::string closing_remark_;
  std::vector<std::string> remarks_;       ///< Not yet returned by take_remarks(); rank 0.
  std::uint64_t put_bytes_ = 0;            ///< Put by this rank since the last flush.
  std::unique_ptr<LaneStock> lane_stock_;  ///< Created by the first flush.
  std::uint64_t epoch_ = 0;                ///< Number of collective calls so far; orders the puts.
  std::unique_ptr<ArrayFlush> flight_;     ///< The flush in flight.
  bool writable_ = false;
  bool closed_ = false;

 private:
  void list_variables(ArrayFlush& flush, const std::vector<bool>& staged) const;
  std::uint64_t end_before_flush();
  void forget_decisions(const ArrayFlush& flush);
  std::uint64_t expected_bytes(const ArrayFlush& flush) const;
  bool can_hand_over(const ArrayFlush& flush) const;
  Status hand_over(std::unique_ptr<ArrayFlush> flush);
  Status prepare_hand_over(ArrayFlush& flush);
  void take_staged(ArrayFlush& flush);
  Status stage_again(ArrayFlush& flush);
  Status complete_flight();
  void give_up_flight();
  Status write_variables(ArrayFlush& flush);
  Status finish_flush(ArrayFlush& flush);
  Status find_chunks(ArrayFlush& flush);
  Status assign_owners(ArrayFlush& flush, const Status& mine, bool hold_back);
  void list_fresh(ArrayFlush& flush) const;
  Status pack(ArrayFlush& flush) const;
  ExecutorSettings prepare_encoding(ArrayFlush& flush);
  Status encode_chunks(ArrayFlush& flush);
  FieldPlan plan_of(std::size_t variable, PatchedChunks& patches) const;
  std::uint64_t room_for_originals(const ArrayFlush& flush, std::uint64_t memory_bytes) const;
  std::vector<JobForecast> forecasts_of(const ArrayFlush& flush) const;
  bool syncs() const { return options_.file.sync || !comm_->place().empty(); }
  void forget_staged(ArrayFlush& flush);
  Status stage_rest(ArrayFlush& flush);
  Status add_up(const ArrayFlush& flush, const Result<std::uint64_t>& lost_bytes);
  Status write_plain(ArrayFlush& flush);
  Status place_contiguous(const ArrayFlush& flush, bool& placed);
  /// Part of an entry of a contiguous variable: elements that were put in one phase.
  struct PhasePart {
    std::uint64_t phase = 0;
    std::size_t variable = 0;
    std::size_t entry = 0;
    std::uint64_t first = 0;  ///< First element in the entry's dense array.
    std::uint64_t end = 0;
  };
  std::vector<PhasePart> phase_parts(const ArrayFlush& flush) const;
  Status write_contiguous(const PhasePart& part);
  Status write_contiguous(std::size_t variable, const Slab& slab, const std::byte* values);
  /// Callback that writes bytes at a file address.
  using WriteRow = std::function<Status(std::uint64_t, std::span<const std::byte>)>;
  Status write_rows(std::size_t variable, const Slab& slab, const std::byte* values,
                    const WriteRow& write) const;
  Status publish(ArrayFlush& flush);
  void share_errors(ArrayFlush& flush);
  void add_moves(const ArrayFlush& flush, ByteWriter& message) const;
  void take_moves(ArrayFlush& flush, ByteReader& message);

  std::chrono::steady_clock::time_point born_ = std::chrono::steady_clock::now();
  std::uint64_t changes_ = 0;  ///< Hash of all noted changes.
  bool meeting_is_current_ = false;
  Status lost_;        ///< Why this rank cannot continue; normally ok.
  Status put_status_;  ///< The first failed put of this rank since the last collective call.
};

}  // namespace tailrace
