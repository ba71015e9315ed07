// ArrayEngine: what is staged for the variables of one file, and how a flush brings it there.
//
// Which variables there are, how they are stored and what becomes of the metadata is the business
// of the file's kind, which derives from this: NetcdfArrayFile (netCDF's data model; it makes all
// metadata), DatasetArray (an HDF5 file whose metadata a program makes). array_flush.cpp tells the
// story of a flush.
//
// Invariant 4: the file's HDF5 metadata is touched by rank 0 only. What it does between two commits
// is not visible; if it fails, the file stays at its last flush and refuses all further work.
//
// Mode async: a flush that is handed over returns once every rank has its values and pieces; lanes
// encode and write them without MPI and HDF5, and the next collective call of the file completes
// it. Invariant 5: one flush is under way at most, on all ranks alike. Invariant 6: a flush that
// fails while it is under way is returned by the call that completes it, on all ranks, and what it
// had is staged again, before all that was put since.

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

#include "array/array_file.hpp"
#include "array/array_patches.hpp"
#include "array/array_staging.hpp"
#include "array/array_variable.hpp"
#include "exec/executor.hpp"
#include "output/output.hpp"

namespace tailrace {

/// All that belongs to one flush.
struct ArrayFlush {
  std::vector<std::size_t> variables;  ///< With staged values on some rank; the same everywhere.
  std::vector<std::size_t> created;    ///< Without a dataset before, and with one afterwards.
  Status refused;                      ///< Why a variable cannot be stored, and stays staged.
  bool hold_back = false;
  // Parallel to each other: the variables that are stored in chunks.
  std::vector<std::size_t> chunked;
  std::vector<PatchedField> fields;
  std::vector<std::unique_ptr<PatchedChunks>> patches;
  std::vector<FieldPlan> plans;
  std::vector<StagingLog> rest;  ///< What is held back; empty: nothing.
  PatchOwnership settled;
  ExecutorReport done;
  std::vector<WrittenChunk> fresh;  ///< Of this rank's chunks those that the index has not yet.
  Bytes plain;                      ///< As of pack_plain().
  std::vector<bool> larger_error;   ///< Than any flush of the variable has had before.
  std::vector<WrittenChunk> moved;  ///< Chunks that HDF5 put elsewhere; rank 0 only.
  /// Contiguous variables that HDF5 put elsewhere, with their addresses; rank 0 only.
  std::vector<std::pair<std::size_t, std::uint64_t>> moved_whole;
  bool closing = false;
  bool defining = false;           ///< FlushMode::define.
  std::uint64_t staged_bytes = 0;  ///< Put by this rank.
  // Of a flush that is handed over:
  bool beside = false;
  std::deque<StagingLog> taken;     ///< Parallel to `variables`: what it writes.
  std::uint64_t epochs_before = 0;  ///< What epochs of later puts lack behind those of its own.
  double start_s = 0;
  double lanes_s = 0;       ///< When lanes began,
  double handed_s = 0;      ///< the program went on,
  double completing_s = 0;  ///< and came back for it.
  LaneClock clock;
  Status handed;                       ///< What kept this rank from handing over all.
  std::unique_ptr<Executor> executor;  ///< Last: its threads use what stands above.
};

/// Mode of a flush. `at_once`: it ends before the call returns. `beside`: it may go on while the
/// program computes. `define`: as at_once, and it also creates the datasets of definable()
/// variables.
enum class FlushMode : std::uint8_t { at_once, beside, define };

class ArrayEngine {
 public:
  ArrayEngine(const ArrayEngine&) = delete;
  ArrayEngine& operator=(const ArrayEngine&) = delete;

 protected:
  ArrayEngine(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options);
  ~ArrayEngine() = default;

  // --- what a kind of file answers

  /// The extents that a variable has now, as agreed on; the same on every rank.
  virtual Shape shape_of(std::size_t variable) const = 0;
  /// The extents that a variable has in the file; where none are known, shape_of().
  virtual Shape committed_shape_of(std::size_t variable) const = 0;
  /// As messages call it: variable "/g/x".
  virtual std::string quoted(std::size_t variable) const = 0;
  /// Decide how the variables of the flush that are new are stored. Errors are agreed.
  virtual Status prepare_new(ArrayFlush& flush) = 0;
  /// Learn where the file has the chunks of those variables that were opened with it. Errors are
  /// agreed.
  virtual Status load_places(const ArrayFlush& flush) = 0;
  /// Between which collective calls a put of this epoch was made; ascends with it. Writes to places
  /// in the file are made phase by phase.
  virtual std::uint64_t phase_of(std::uint64_t epoch) const { return epoch; }
  /// This rank's values of what rank 0 writes: with HDF5, or where they lie (goes_with_commit()).
  virtual Bytes pack_plain(const ArrayFlush& flush) const = 0;
  /// Before a commit: nobody may keep the file open over it who is to read afterwards. Collective.
  virtual void prepare_publish() {}
  /// Bring the file's metadata up to date and commit. Rank 0 only.
  /// @param chunks  of all ranks, by place in flush.chunked.  @param plain  what ranks have packed.
  virtual Status publish_at_root(ArrayFlush& flush,
                                 const std::vector<std::vector<WrittenChunk>>& chunks,
                                 const std::vector<Bytes>& plain) = 0;
  /// Mark per variable: its dataset can be created before it has values. Marks of variables that
  /// have a dataset mean nothing. Not collective; equal on all ranks.
  virtual std::vector<bool> definable() const = 0;
  /// The flush is in the file. Every rank; collective calls are allowed.
  virtual void published(const ArrayFlush& flush) = 0;
  /// The flush is under way, and nothing is staged any more; or it has failed, and what it has
  /// taken is about to be staged again. Every rank. Not collective.
  virtual void handed_over(ArrayFlush& /*flush*/) {}
  virtual void taken_back(const ArrayFlush& /*flush*/) {}
  /// What else every rank says where ranks meet, the same numbers at every meeting: they become all
  /// ranks'. Not collective.
  virtual void add_to_meeting(RankNumbers& /*along*/) {}

  // --- what all kinds do alike

  /// Compare the options, and `more`, on all ranks.
  Status agree_on_options(const std::string& more = "");
  /// Open the existing file to change it. Refuses one whose chunks share places where HDF5 would
  /// hand out the place of one that is replaced; else names those that share in `sharing`, on rank
  /// 0. Collective. Cost: rank 0 looks at all chunk indexes (datasets_that_share_chunks()).
  Status open_output(std::vector<std::string>& sharing);
  Status check_writable() const;
  Status check_open() const;
  Status note(const Status& failure);
  /// Completes the flush that is under way, if any.
  /// @param all_close  not null: this rank closes the file; set to whether all do.
  Status begin_collective(bool* all_close = nullptr);
  /// Note a change that every rank makes by itself and alike. A rank that has failed to make it has
  /// other changes than the rest for good: the next collective call breaks off, on all ranks.
  void note_change(std::string_view what, std::string_view change);
  /// This rank cannot go on as the others do: the next collective call breaks off, on all ranks.
  void lose(const Status& failure);
  double now_s() const;
  /// Keep a sentence for the user; empty: none. Rank 0 alone needs it. Local.
  void note_remark(const std::function<std::string()>& make);
  /// Before the last words: which globs of the options none of all paths matches. Local.
  void note_idle_options(std::span<const std::string> paths,
                         const std::set<std::string>& component_globs);

  // array_flush.cpp
  Status flush_variables(const std::vector<bool>& staged, bool hold_back, bool closing,
                         FlushMode mode = FlushMode::at_once);
  std::uint64_t n_threads() const;
  /// True if the variable's values in the file change with the commit, under its journal: rank 0
  /// writes them. Those of a larger variable without filters are overwritten where they lie.
  bool goes_with_commit(std::size_t variable) const;
  /// True if rank 0 writes what the flush has of a variable: by HDF5, or with the commit.
  bool goes_to_root(const ArrayFlush& flush, std::size_t variable) const;
  /// Add values of a contiguous variable to the next commit. Rank 0 only.
  Status commit_contiguous(std::size_t variable, const Slab& slab, const std::byte* values);
  /// Whether a flush is under way that has values of a variable.
  bool is_under_way(std::size_t variable) const;
  /// The rank ends alone: threads drop what is left of a flush. Not collective.
  void drop_flight();
  /// What a flush has of the i-th of its variables.
  const StagingLog& staged_of(const ArrayFlush& flush, std::size_t i) const {
    return flush.taken.empty() ? variables_[flush.variables[i]].log : flush.taken[i];
  }

  std::unique_ptr<Comm> comm_;
  std::string path_;
  ArrayFileOptions options_;
  Output output_;
  bool was_there_ = false;      ///< The file was opened, not created.
  bool model_changed_ = false;  ///< Definitions since the last flush; the same on every rank.
  StagingMemory memory_;
  std::vector<ArrayVariable> variables_;
  ChunkPlaces places_;
  ArrayFileReport report_;
  std::string closing_remark_;
  std::vector<std::string> remarks_;       ///< Not taken yet; rank 0.
  std::uint64_t put_bytes_ = 0;            ///< By this rank since the last flush.
  std::unique_ptr<LaneStock> lane_stock_;  ///< From the first flush on.
  std::uint64_t epoch_ = 0;                ///< Collective calls so far: says which puts are later.
  std::unique_ptr<ArrayFlush> flight_;     ///< The flush that is under way.
  bool writable_ = false;
  bool closed_ = false;

 private:
  void list_variables(ArrayFlush& flush, const std::vector<bool>& staged) const;
  void forget_decisions(const ArrayFlush& flush);
  std::uint64_t expected_bytes(const ArrayFlush& flush) const;
  bool can_go_beside(const ArrayFlush& flush) const;
  Status hand_over(std::unique_ptr<ArrayFlush> flush);
  Status prepare_beside(ArrayFlush& flush);
  void take_staged(ArrayFlush& flush);
  Status stage_again(ArrayFlush& flush);
  Status complete_flight();
  void give_up_flight();
  Status write_variables(ArrayFlush& flush);
  Status finish_flush(ArrayFlush& flush);
  Status settle_chunks(ArrayFlush& flush);
  Status settle_owners(ArrayFlush& flush, const Status& mine, bool hold_back);
  void list_fresh(ArrayFlush& flush) const;
  Status pack(ArrayFlush& flush) const;
  ExecutorSettings prepare_encoding(ArrayFlush& flush);
  Status encode_chunks(ArrayFlush& flush);
  FieldPlan plan_of(std::size_t variable, PatchedChunks& patches) const;
  std::vector<JobForecast> forecasts_of(const ArrayFlush& flush) const;
  bool syncs() const { return options_.file.sync || !comm_->place().empty(); }
  void forget_staged(ArrayFlush& flush);
  Status stage_rest(ArrayFlush& flush);
  void add_up(const ArrayFlush& flush, std::uint64_t lost_bytes);
  Status write_plain(ArrayFlush& flush);
  Status place_contiguous(const ArrayFlush& flush);
  /// Elements of an entry of a contiguous variable, that were put in one phase.
  struct PhasePart {
    std::uint64_t phase = 0;
    std::size_t variable = 0;
    std::size_t entry = 0;
    std::uint64_t first = 0;  ///< Of the entry's dense array, up to `end`.
    std::uint64_t end = 0;
  };
  std::vector<PhasePart> phase_parts(const ArrayFlush& flush) const;
  Status write_contiguous(const PhasePart& part);
  Status write_contiguous(std::size_t variable, const Slab& slab, const std::byte* values);
  /// Writes bytes at an address of the file.
  using WriteRow = std::function<Status(std::uint64_t, std::span<const std::byte>)>;
  Status write_rows(std::size_t variable, const Slab& slab, const std::byte* values,
                    const WriteRow& write) const;
  Status publish(ArrayFlush& flush);
  void share_errors(ArrayFlush& flush);
  void take_moves(ArrayFlush& flush);

  std::chrono::steady_clock::time_point born_ = std::chrono::steady_clock::now();
  std::uint64_t changes_ = 0;  ///< A hash of all of them.
  Status lost_;                ///< Why this rank cannot go on; ok as a rule.
  Status put_status_;  ///< The first failed put of this rank since the last collective call.
};

}  // namespace tailrace
