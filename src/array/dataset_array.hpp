// DatasetArray: the datasets of an HDF5 file whose metadata a program makes itself.
//
// HDF5's rule for parallel programs is that all ranks make the same changes of metadata. So here
// every rank has a file of its own that the program changes by HDF5's own calls: rank 0's is the
// one that is committed, the others' lie in memory and end with it (hdf5/private_storage.hpp). Only
// values go another way: they are staged as by an ArrayFile, and a flush brings them to rank 0's
// file, chunk by chunk, from all ranks. Frontend: hdf5, which knows the program's calls.
//
// A dataset has a number, the same on every rank, and lies at an address in each rank's file, which
// differs from rank to rank. Elements are bytes as the file's type has them; nothing is converted.
//
// Collectivity. create, open, settle, flush, sync_to_read, shrink and close are; add is called
// alike on all ranks without communication, and compared by the next of these. put and get are not.
// A flush that goes on beside the program is completed by whichever of them comes next.
//
// Invariant 1: what a flush stores goes to the dataset that the address means to rank 0, or, where
//   the program has deleted that, nowhere. Invariant 2: which datasets there are, and how each is
//   stored, every rank comes to by itself and alike; Comm::decide compares it.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/array_engine.hpp"
#include "array/element_runs.hpp"
#include "core/covered_cells.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "hdf5/commit_order.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/private_storage.hpp"
#include "policy/chunk_shape.hpp"

namespace tailrace {

class DatasetArray final : private ArrayEngine {
 public:
  /// Of a compound: where it lies in an element.
  struct Member {
    std::string name;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  /// A dataset that the program is about to create.
  struct Definition {
    std::string path;  ///< For options and messages.
    std::size_t element_bytes = 1;
    std::optional<DType> number;  ///< Elements are such numbers in this machine's byte order.
    Shape shape;
    Shape max_shape;              ///< UINT64_MAX: unlimited. Empty: like shape.
    std::vector<std::byte> fill;  ///< One element.
    bool fill_given = false;      ///< By the program; else zeros.
    Shape chunk_shape;            ///< The program's own; empty: ours to choose.
    bool by_value = true;         ///< Elements are their bytes; else values will be refused,
    bool addresses = false;       ///< but on rank 0, whose file they refer to.
    std::vector<Member> members;  ///< Of a compound, not those within them.
    std::string only_by_root;     ///< Why rank 0 must write it with HDF5; empty: it need not.
    bool own_filters = false;     ///< The program has set filters; they stay unless options say so.
    /// A plotfile's: what lies in it, all of its elements; null: not known.
    std::shared_ptr<const BoxSeries> boxes;
    bool of_level = false;  ///< Named as a plotfile's: components may have bounds of their own.
    /// Of a level: what the next finer one covers. Asked of rank 0 at the begin of flushes.
    std::function<LevelCover()> find_cover;
  };
  /// How it will be stored.
  struct Plan {
    bool in_chunks = false;       ///< By all ranks; else by rank 0, with HDF5.
    std::string why;              ///< It is rank 0's; for the report.
    bool keep_filters = false;    ///< The program's own list says how.
    bool placed_at_once = false;  ///< By rank 0, so small that it has its place from the start.
    StoredForm form;              ///< In chunks, else: what the creation list must say.
    std::shared_ptr<FieldState> field;
    std::shared_ptr<const BoxSeries> boxes;  ///< By which chunks are cut; null: by none.
    /// As asked, for each component; empty: the dataset has one.
    std::vector<ErrorBound> component_bounds;
    bool drops_covered = false;  ///< Values of covered cells need not be kept.
    std::string remark;          ///< What could not be done as asked; for the report.
    /// Globs over components that a component is called as, or may be.
    std::vector<std::string> component_globs;
  };

  /// Create a file, or open one to write. `options.file.hdf5_*_list` are the program's lists.
  /// @error as of Output::create, Output::open
  static Result<std::unique_ptr<DatasetArray>> create(std::unique_ptr<Comm> comm,
                                                      const std::string& path,
                                                      const ArrayFileOptions& options);
  static Result<std::unique_ptr<DatasetArray>> open(std::unique_ptr<Comm> comm,
                                                    const std::string& path,
                                                    const ArrayFileOptions& options);
  ~DatasetArray();

  Comm& comm() { return *comm_; }
  const std::string& path() const { return path_; }
  const ArrayFileReport& report() const { return report_; }
  std::string remark() const { return output_.remark(); }
  std::string closing_remark() const { return closing_remark_; }  ///< As ArrayFile's.
  std::vector<std::string> take_remarks() { return std::exchange(remarks_, {}); }  ///< Likewise.
  /// What has become of datasets, and which they are; for the report.
  const std::map<std::string, std::set<std::string>>& outcomes() const { return outcomes_; }
  /// Of this rank; HDF5's id of it, through which nothing of the program's is open.
  Hdf5File& metadata();

  /// Decide how a new dataset is stored. Not collective, alike everywhere.
  /// @error invalid_argument, unsupported  of the options that are for it
  Result<Plan> plan_new(const Definition& definition);
  /// It has been created, at this address of this rank's file. @returns its number
  /// @param values_at  where its values lie in one piece in that file; 0: that is not known.
  std::size_t add(const Definition& definition, const Plan& plan, std::uint64_t address,
                  std::uint64_t values_at);
  /// Bytes of small datasets that rank 0 has written itself, where they lie.
  std::uint64_t placed_bytes() const { return placed_bytes_; }
  /// Datasets that the file has already, or has got by HDF5 itself; they are looked at when they
  /// are first used.
  enum class Origin : std::uint8_t {
    created,  ///< Just now, empty.
    opened,   ///< With the file, at the same address on every rank.
    copied    ///< By HDF5, on every rank; a flush must follow before anything else.
  };
  std::size_t add_existing(const std::string& path, std::uint64_t address, Origin origin);
  /// The dataset at an address of this rank's file.
  std::optional<std::size_t> find(std::uint64_t address) const;
  /// The program has heard that a dataset could not be created; on all ranks, or the next
  /// collective call breaks off. Nobody may see it any more.
  void give_up(const std::string& path) {
    look_for_deleted();
    note_change("what could not be created", path);
  }
  /// The program may have deleted datasets: flushes look which of them are still there.
  void look_for_deleted() { deleted_ = true; }
  /// The same, before it deletes some, by links or counts, and after. Not collective, alike
  /// everywhere.
  void begin_deletion();
  void end_deletion();
  /// The program has changed how many links' worth an object of this rank's file is counted for,
  /// beside its links.
  void note_count(std::uint64_t address, int change);

  /// What is known of a dataset; looks at an existing one first. @error unsupported, corrupt
  struct Facts {
    std::size_t element_bytes = 1;
    const Shape* shape = nullptr;
    bool by_value = true;    ///< Elements are their bytes; else values are refused.
    bool by_root = false;    ///< Rank 0 writes it with HDF5.
    bool addresses = false;  ///< They refer to rank 0's file; it may have written them.
  };
  Result<Facts> facts(std::size_t dataset);
  const std::string& path_of(std::size_t dataset) const {
    return variables_[dataset].definition.path;
  }

  /// The puts that follow belong to one write, which comes after all that were made before.
  void begin_write() { call_epoch_ = std::max(call_epoch_, now_epoch()); }
  /// Stage the elements of a slab, dense and row-major. Not collective. @error out_of_memory, ...
  Status put(std::size_t dataset, const Slab& slab, std::span<const std::byte> values);
  /// The same of runs of elements, by their row-major numbers within the extents; where some come
  /// again the last counts. Cost: 12 bytes a run beside the values, without such repetitions.
  Status put_runs(std::size_t dataset, const ElementRuns& runs, std::span<const std::byte> values);
  /// Keep a failure of this rank, which the next collective call returns on all.
  void fail(const Status& failure) { static_cast<void>(note(failure)); }
  /// The same where this rank lacks more than values: there is no flush any more.
  void lose(const Status& failure) { ArrayEngine::lose(failure); }
  /// The number by which a member of a compound is put alone, dense and as the file has it; its
  /// order among other puts, also those of whole elements, is the same as theirs. Nothing: the
  /// dataset is not created here, or there is but one rank.
  std::optional<std::size_t> member_of(std::size_t dataset, const std::string& name) const;
  /// The file's elements at its last flush, this rank's staged ones over them. Not collective.
  /// @error unsupported  the last flush is under way and has values of the dataset, also others'
  Status get(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  /// The same of runs of elements; each chunk that they touch is read once.
  Status get_runs(std::size_t dataset, const ElementRuns& runs, std::span<std::byte> values);
  /// The program has given a dataset new extents by HDF5, alike everywhere. What is staged beyond
  /// them is dropped. Not collective.
  Status set_shape(std::size_t dataset, const Shape& shape);
  /// Whether its guards let it have this shape. Of one whose facts() are known.
  /// @error unsupported  it grows, and no values may be added: names dataset and guard.
  Status check_growth(std::size_t dataset, const Shape& shape) const;
  /// Whether the program has chunked it, so that HDF5 lets it grow and be cut. Of one whose facts()
  /// are known.
  bool may_change_extents(std::size_t dataset) const {
    return std::ranges::find(variables_[dataset].growing, true) !=
           variables_[dataset].growing.end();
  }
  /// Whether the file may hold values of it; the same everywhere.
  bool holds_values(std::size_t dataset) const {
    return live_[dataset].flushed || live_[dataset].origin != Origin::created;
  }
  /// Whether the dataset's chunks can be cut by HDF5 itself: it runs their filters.
  bool hdf5_can_cut(std::size_t dataset) const;
  /// HDF5 is about to cut a dataset's extents; a flush has been. It encodes the chunks at the new
  /// edge anew, and may leave the filter mask of a chunk that was stored raw, if the length is the
  /// same by chance. So this keeps what they hold, and after_cut() stages it again, for a flush
  /// that must follow at once. Errors are agreed: then nothing may be cut. Collective.
  Status before_cut(std::size_t dataset, const Shape& shape);
  /// Not collective. On failure this rank has lost what it kept.
  Status after_cut(std::size_t dataset);
  /// Or nothing was cut: HDF5 refuses such extents. Not collective.
  void undo_cut(std::size_t dataset) {
    live_[dataset].cut_to.reset();
    cut_parts_.clear();
  }

  /// What a collective write begins with: it is later than all writes before it, whosever they
  /// were. Not collective by itself: all ranks count alike.
  void begin_collective_put();
  /// What a collective write ends with: a flush if some rank stages more than its cap.
  Status settle();
  /// What a collective read begins with: a flush if some rank has staged anything.
  Status sync_to_read();
  /// What any other call begins with at which ranks meet. Errors are alike.
  Status meet() { return begin_collective(); }
  /// What closing begins with: waits until all ranks are there. What others begin meanwhile fails,
  /// on all ranks. @returns what has failed since they last met
  Status meet_to_close();
  Status flush();
  /// In mode async, where threads can do it (chunks by codecs of ours, at least one of them): take
  /// all values, and return; the next collective call of the file completes it, and returns what
  /// has failed. Else flush().
  Status flush_beside();
  /// The same as the last flush of the file; close() must follow some time.
  Status flush_beside_to_close();
  /// Complete what flush_beside() has begun, if anything. Collective then.
  Status wait() { return is_flushing() ? begin_collective() : Status(); }
  bool is_flushing() const { return flight_ != nullptr; }
  /// This process ends, without the others: threads drop what is left of a flush that is under way,
  /// and nothing is flushed any more. Not collective.
  void end_alone() { drop_flight(); }
  bool goes_beside() const { return options_.file.mode == StepMode::async; }
  Status close();
  /// Close without another word to the file, where it has been closed in vain.
  Status abort();
  bool broken() const { return !output_.broken().ok(); }

 private:
  struct Level {
    std::shared_ptr<const BoxSeries> boxes;    ///< By which chunks are cut.
    std::vector<ErrorBound> component_bounds;  ///< As asked; empty: the dataset has one.
    std::vector<double> absolute_bounds;       ///< What they come to; 0: exact.
  };
  /// Of a plotfile: cells whose values need not be kept.
  struct Cover {
    std::shared_ptr<const BoxSeries> boxes;  ///< Null: not known, and so neither is what is here.
    std::function<LevelCover()> find;
    bool known = false;
    std::shared_ptr<const CoveredCells> cells;  ///< Null: none, or not known.
    bool described = false;                     ///< The dataset's attributes tell of them.
  };
  struct Live {
    std::uint64_t address = 0;       ///< In this rank's file.
    std::uint64_t file_address = 0;  ///< In rank 0's, once committed; 0: it is not there.
    std::uint64_t values_at = 0;     ///< In this rank's file, in one piece; 0: not known.
    Origin origin = Origin::created;
    bool created = false;  ///< By a plan of ours.
    bool dead = false;     ///< Its address is another dataset's now.
    bool by_value = true;
    bool addresses = false;
    Status refused;  ///< Why no values can be put, though they can be read.
    bool flushed = false;
    bool described = false;   ///< Its attributes tell how it was stored.
    bool bound_open = false;  ///< The values of the first flush decide it.
    /// A member of a compound is staged as if it were a dataset: whose it is, and which.
    std::size_t whole = SIZE_MAX;
    Member member;
    std::vector<std::size_t> members;  ///< Of a compound: their numbers.
    std::unique_ptr<Level> level;      ///< Of a plotfile; null: its chunks follow no boxes.
    std::unique_ptr<Cover> cover;      ///< Null: all values are kept.
    Shape shape;
    Shape file_shape;             ///< At the last flush.
    std::optional<Shape> cut_to;  ///< Chunks that are not wholly within are not what they were.
    std::optional<std::vector<StoredChunk>> chunks;  ///< As of the last flush.
  };
  struct CutPart {
    Slab slab;
    std::vector<std::byte> values;
  };
  struct DecodedChunk {
    std::size_t dataset = 0;
    std::uint64_t chunk_index = 0;
    Buffer values;
  };

  DatasetArray(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options)
      : ArrayEngine(std::move(comm), std::move(path), options) {
    options_.file.door = Door::hdf5;
  }
  Status start(bool create);
  Status start_private(bool create);
  void preserve_at_root();
  void share_sharing();
  bool shares_chunks(std::size_t dataset) const;
  Status check_put(std::size_t dataset);
  /// What was put of a dataset, or of a member alone, on its way to rank 0.
  struct PackedPart {
    std::size_t dataset = 0;
    std::size_t staged_as = 0;  ///< The dataset, or one of its members.
    std::uint64_t epoch = 0;
    Slab slab;
    std::span<const std::byte> values;
  };
  static void pack_log(std::size_t dataset, const StagingLog& log, ByteWriter& writer);
  bool write_in_place(const PackedPart& part);
  std::vector<PackedPart> unpack_logs(const std::vector<Bytes>& packed) const;
  Status fold_members(std::vector<bool>& staged);
  Status lay_members(std::size_t dataset, const std::vector<Bytes>& packed);
  Status get_stored(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  void share_preserved();
  Result<FieldDefinition> define_new(const Definition& definition, Plan& plan) const;
  Status bound_components(const Definition& definition, FieldOptions& options, Plan& plan) const;
  Status resolve_new(FieldState& field, const Definition& definition, Plan& plan);
  std::vector<double> component_ranges(std::size_t dataset) const;
  Status resolve_component_bounds(const ArrayFlush& flush);
  static DatasetFacts facts_of_new(const Definition& definition);
  void begin_time(std::uint64_t latest);
  void add_members(std::size_t dataset, const Definition& definition);
  /// The dataset of which it is a member; itself.
  std::size_t whole_of(std::size_t dataset) const {
    return live_[dataset].whole == SIZE_MAX ? dataset : live_[dataset].whole;
  }
  Status lay_over(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  Status adopt(std::size_t dataset);
  Status adopt_codec(const StoredDataset& stored, bool created, ArrayVariable& variable,
                     Status& refused) const;
  std::uint64_t time_now() const;
  void leave_meeting();
  std::vector<bool> agree_on_staged();
  Status adopt_staged(std::vector<bool>& staged);
  Status learn_covers(const std::vector<bool>& staged);
  Status hear_cover(std::size_t dataset);
  Status flush_these(std::vector<bool> staged, bool hold_back, bool closing,
                     FlushMode mode = FlushMode::at_once);
  Status settle_to_read(std::size_t dataset);
  Status resolve_open_bounds(const ArrayFlush& flush);
  Status insert_at_root(ArrayFlush& flush, std::size_t f, std::span<const WrittenChunk> chunks);
  Status write_plain_at_root(const std::vector<Bytes>& plain);
  Status describe_at_root(bool closing);
  Result<bool> is_alive(std::size_t dataset);
  Status read_chunked(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  Status read_contiguous(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  Status read_by_hdf5(std::size_t dataset, const Slab& slab, std::span<std::byte> values);
  Result<const std::vector<StoredChunk>*> chunks_of(std::size_t dataset);
  Result<const Buffer*> decoded(std::size_t dataset, const StoredChunk& chunk);
  void drop_readers();

  /// A part, or a slab, as a box within the dense array of its slab.
  static Box box_of(const SlabPart& part);
  static Box box_of(const Slab& slab);
  std::uint64_t now_epoch() const;
  std::uint64_t phase_of(std::uint64_t epoch) const override;
  Shape shape_of(std::size_t dataset) const override { return live_[dataset].shape; }
  Shape committed_shape_of(std::size_t dataset) const override {
    const Live& live = live_[dataset];
    return live.file_shape.empty() ? live.shape : live.file_shape;
  }
  std::string quoted(std::size_t dataset) const override {
    return "dataset \"" + variables_[dataset].definition.path + "\"";
  }
  Status prepare_new(ArrayFlush& flush) override { return resolve_open_bounds(flush); }
  Status load_places(const ArrayFlush& flush) override;
  Bytes pack_plain(const ArrayFlush& flush) const override;
  void prepare_publish() override { drop_readers(); }
  Status publish_at_root(ArrayFlush& flush, const std::vector<std::vector<WrittenChunk>>& chunks,
                         const std::vector<Bytes>& plain) override;
  std::vector<bool> definable() const override {  // Each has a dataset.
    return std::vector<bool>(variables_.size());
  }
  void published(const ArrayFlush& flush) override;
  void handed_over(ArrayFlush& flush) override;
  void taken_back(const ArrayFlush& flush) override;
  void add_to_meeting(RankNumbers& along) override;

  // Of a file that was opened: what the other ranks go on seeing of it.
  bool opened_ = false;
  std::vector<std::string> sharing_;         ///< Datasets of which chunks lie where others do, too.
  PreservingStorage* preserving_ = nullptr;  ///< Rank 0.
  std::uint64_t opened_bytes_ = 0;
  std::uint64_t least_memory_bytes_ = 0;  ///< Of all ranks' memory=;
  std::uint64_t least_room_bytes_ = 0;    ///< and of what staging leaves of it.
  DirtyBytes preserved_;
  std::unique_ptr<PrivateStorage> private_storage_;  ///< All but rank 0.
  std::uint64_t private_end_ = 0;
  std::unique_ptr<Hdf5File> private_file_;
  std::vector<Live> live_;                 ///< Parallel to variables_.
  SpanSet placed_;                         ///< Where values of small datasets lie, or lay.
  std::uint64_t placed_bytes_ = 0;         ///< That rank 0 has written there.
  std::set<std::string> component_globs_;  ///< Those of all datasets created.
  std::map<std::string, std::set<std::string>> outcomes_;
  std::map<std::uint64_t, std::size_t> by_address_;
  std::size_t n_published_ = 0;  ///< Datasets whose address in the file all ranks know.
  std::uint64_t call_epoch_ = 0;
  std::uint64_t flushed_epoch_ = 0;  ///< Collective calls before the last flush of everything.
  bool flushed_to_close_ = false;    ///< Nothing is left to flush, or it is under way.
  /// Facts of this rank, and then the most of any.
  struct Meeting {
    std::uint64_t short_of_memory = 0;
    std::uint64_t latest = 0;  ///< By the clock.
    std::uint64_t most_calls = 0;
  } meeting_;
  std::uint64_t calls_since_flush_ = 0;  ///< The most of any rank, as agreed on last.
  std::uint64_t time_base_ = 0;          ///< Of the time in epochs; the same on every rank.
  std::vector<CutPart> cut_parts_;       ///< This rank's share, from before_cut() to after_cut().
  bool deleted_ = false;    ///< Ever: a deleted dataset lives on as long as somebody has it open.
  CountedObjects counted_;  ///< In this rank's file; of one that was opened once one is deleted.
  bool counted_known_ = false;
  std::optional<HeldObjects> held_;               ///< While something is deleted.
  int n_deletions_ = 0;                           ///< Under way, one within another.
  std::optional<std::set<std::uint64_t>> alive_;  ///< Rank 0, within a flush.
  // Of the last flush; each is made when it is first asked.
  std::unique_ptr<ChunkIndexReader> index_;
  std::int64_t plain_file_id_ = -1;
  std::optional<DecodedChunk> last_chunk_;
};

}  // namespace tailrace
