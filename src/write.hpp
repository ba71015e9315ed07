// Writer: the story of a write. Fields come in by put(), one ordinary HDF5 file comes out.
//
// Reads like a table of contents in write.cpp: agree on the definitions, choose chunks, settle who
// owns which chunk, resolve bounds, encode and write at once, gather the index, commit. The
// frontends (C, CLI, Python) translate into these calls and hold no policy of their own.
//
// Collectivity. create, open, end_step and close are collective. define_field and set_attribute
// must be called alike by all ranks in the same order, but only record; end_step checks that the
// ranks agree. put is not collective. A failure on one rank is returned by end_step on every rank.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "container/hdf5_file.hpp"
#include "core/box.hpp"
#include "core/comm.hpp"
#include "core/dtype.hpp"
#include "core/obstacle.hpp"
#include "core/options.hpp"
#include "core/status.hpp"
#include "core/trace.hpp"
#include "exec/box_source.hpp"
#include "model/dump_time.hpp"

namespace tailrace {

/// A field as the application defines it; the same on every rank.
struct FieldDefinition {
  std::string path;  ///< Absolute HDF5 path; missing groups are created.
  DType dtype = DType::f32;
  Shape shape;  ///< Global extents (without the time dimension if options.over_time).
  FieldOptions options;
  bool extendable =
      false;  ///< The dataset's first dimension is unlimited (netCDF record dimension).
  std::uint64_t more_unlimited = 0;  ///< Bit d: dimension d > 0 is unlimited, too.
  bool grows() const { return extendable || more_unlimited != 0; }
};

/// What became of one field in one step; sums and maxima over all ranks, the same on every rank.
struct FieldReport {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  Shape chunk_shape;
  std::string codec;  ///< What was used; "deflate" for a constant field under rel.
  std::string codec_version;
  std::string layout;
  ErrorBound bound;            ///< As asked.
  double absolute_bound = 0;   ///< As used; 0: kept exactly, unless pointwise_bound is not 0.
  double pointwise_bound = 0;  ///< As used, mode pw_rel: fraction of each value.
  bool verified = false;
  double max_error = 0;  ///< Largest |decoded - original|, if verified; under pw_rel / |original|.
  double value_least = 0;  ///< Of the finite, non-fill values; only if they were needed.
  double value_greatest = 0;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_raw_chunks = 0;  ///< Stored unfiltered, because the codec broke its bound there.
  std::uint64_t raw_bytes = 0;     ///< Uncompressed bytes of the field.
  std::uint64_t encoded_bytes = 0;
  std::uint64_t predicted_bytes = 0;    ///< Of encoded ones, before encoding; 0: nobody asked.
  double mean_size_error = 0;           ///< Of chunks: |predicted - encoded| / encoded.
  std::uint64_t n_overflow_chunks = 0;  ///< Larger than the place that the layout kept for them.
  std::uint64_t reserved_bytes = 0;     ///< Set aside before sizes were known; 0: claimed, dense.
  double encode_s = 0;                  ///< Thread-seconds in encode, all ranks.
  double verify_s = 0;
  double expected_psnr_db = 0;   ///< Under target-psnr=: by the errors of a sample; 0: no target.
  std::uint64_t book_bytes = 0;  ///< Codec trz,book=auto: shared book in the header; 0: none.
  double book_ratio_loss = 0;    ///< Share of encoded bytes that it costs, by counted chunks.
  double book_saved_s = 0;       ///< Of encode time, by chunks that were encoded with and without
                                 ///< it, in this step and earlier ones; 0: none were yet.
  /// Codecs that were compared for codec=auto, and which one won; empty: it was named. By the step
  /// that chose: later steps of the field, or of its lineage, have none.
  std::vector<CandidateForecast> candidates;
  std::size_t chosen_candidate = 0;

  /// What max_error is held to: in its unit, 0 if the field is kept exactly.
  double bound_of_error() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
};

/// What became of one step.
struct StepReport {
  bool completed = true;  ///< False: a step was handed over, and there was none before it.
  std::uint64_t step_index = 0;
  std::vector<FieldReport> fields;
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t predicted_bytes = 0;
  double predict_s = 0;             ///< Slowest rank: sampling, order, reservations.
  double predicted_makespan_s = 0;  ///< Slowest rank: encode and write, as planned.
  std::uint64_t n_overflow_chunks = 0;
  std::uint64_t reserved_bytes = 0;
  /// Storage overhead: what the data takes of the file, all gaps included (unused reservations and
  /// holes, alignment, rests of extents claimed across nodes), less the encoded bytes.
  std::uint64_t slack_bytes = 0;
  double wait_s = 0;  ///< Slowest rank: time in which some encoded chunk waited for an address.
  std::uint64_t n_writes = 0;     ///< Data writes of all ranks.
  double read_s = 0;              ///< Slowest rank, pulling values from a BoxSource.
  std::string profile;            ///< That times were predicted from: "typical values", or a host.
  double choose_s = 0;            ///< Slowest rank: sampling for codec=auto, and the decision.
  double encode_s = 0;            ///< Slowest rank: seconds in which it encoded (lane time).
  double write_s = 0;             ///< Slowest rank: seconds in which its I/O lane wrote.
  double makespan_s = 0;          ///< Slowest rank: encode and write together, wall clock.
  double hidden_share = 0;        ///< Part of the shorter lane that ran behind the longer one.
  double index_s = 0;             ///< Rank 0: chunk index, datasets, attributes.
  double sync_s = 0;              ///< Slowest rank, fdatasync of the data.
  double commit_s = 0;            ///< Rank 0: metadata writes with their syncs, rename.
  double step_s = 0;              ///< end_step from call to return, slowest rank.
  std::uint64_t piece_bytes = 0;  ///< Values that travelled between ranks to chunk owners.
  std::uint64_t peak_memory_bytes = 0;  ///< Largest rank: buffers that Tailrace held at once.
  std::uint64_t file_bytes = 0;         ///< The file's length after the commit.
  // Modes async and in_situ; slowest rank, or the sum over the ranks for counts.
  double exposed_s = 0;       ///< That the application lost: end_step, wait, obstacles delayed.
  double handover_s = 0;      ///< Of this, taking the values and planning.
  double backpressure_s = 0;  ///< Of this, waiting for memory or for the step before.
  double idle_encode_s = 0;   ///< Encoding in the application's idle time.
  std::uint64_t n_delayed_obstacles = 0;  ///< Began late because a chunk was not finished.
  double largest_delay_s = 0;
  std::uint64_t n_moved_writes = 0;  ///< Chunks that another rank of the node wrote.
};

/// Called on the main thread from time to time within end_step. Bytes count this node's ranks.
struct Progress {
  std::uint64_t bytes_done = 0;  ///< Uncompressed bytes encoded so far.
  std::uint64_t bytes_total = 0;
};
using ProgressCallback = std::function<void(const Progress&)>;
/// One line for the user's log; never ends in a newline.
using LogCallback = std::function<void(const std::string&)>;
/// Rank 0's access to the HDF5 file around the creation of a step's datasets (repack's carry-over).
using MetadataCallback = std::function<Status(Hdf5File&)>;

/// The suffix of a new file's name until its first commit.
inline constexpr const char* partial_suffix = ".partial";

class Writer {
 public:
  /// Create a file. It appears under `path` at the first commit; until then any older file stays.
  /// Collective. Cost: O(log ranks).
  /// @error already_exists  the file exists and options.replace is off.  @error io_error, no_space
  static Result<std::unique_ptr<Writer>> create(std::unique_ptr<Comm> comm, const std::string& path,
                                                const FileOptions& options);
  /// Open an existing HDF5 file to add fields and steps. Collective.
  /// @error not_found, corrupt
  static Result<std::unique_ptr<Writer>> open(std::unique_ptr<Comm> comm, const std::string& path,
                                              const FileOptions& options);
  /// Without a close() before: the step under way is lost, a file that was never committed is
  /// removed. Not collective then, so that a rank can give up alone.
  virtual ~Writer() = default;

  virtual Comm& comm() = 0;

  /// Record a field. Same calls in the same order on every rank. @returns its index, from 0.
  /// @error invalid_argument  bad path, shape or options.  @error already_exists
  virtual Result<std::size_t> define_field(const FieldDefinition& definition) = 0;
  /// Record an attribute of "/", a group, or a field. Same calls on every rank.
  virtual Status set_attribute(const std::string& object_path, const std::string& name,
                               AttributeValue value) = 0;
  /// Record that `values` (row-major, box.count) belong at `box`. Not collective; may be called
  /// often, or never. The memory must stay untouched until end_step returns, unless `copy`.
  /// An empty box is ordinary. @error invalid_argument, bad_coverage (box outside the shape)
  virtual Status put(std::size_t field_index, const Box& box, const void* values,
                     bool copy = false) = 0;
  /// As put, but the values are pulled chunk by chunk when they are needed. `source` must live
  /// until end_step returns. Pulled boxes must be whole chunks (options.chunk_shape must be given).
  virtual Status put_source(std::size_t field_index, const Box& box, BoxSource& source) = 0;

  /// Note a failure of the caller's own: the next end_step returns it on every rank. Not
  /// collective.
  virtual void note_failure(const Status& failure) = 0;

  /// Write and commit all that was put since the last step. Collective. In the modes async and
  /// in_situ: commit the step before, and hand this one over; the report and a failure are then
  /// those of the step before (`completed` is false if there was none).
  /// Every field defined since the last end_step must have been put in whole; a field with
  /// over_time may be put again in each step. On failure nothing of this step is in the file.
  virtual Result<StepReport> end_step() = 0;
  /// Modes async and in_situ: wait until the step that was handed over last is committed.
  /// Collective. @returns its report; nothing if there is none to wait for.
  virtual Result<std::optional<StepReport>> wait() = 0;
  /// Mode in_situ: the application begins, or ends, to use a lane. Not collective.
  virtual void mark(Lane lane, bool begins) = 0;
  /// Modes async and in_situ: the application's thread is idle until `done`, and for `seconds` at
  /// most; encode what fits. Without `done` it returns as soon as nothing is left to encode.
  /// Not collective.
  virtual void idle(double seconds, const std::function<bool()>& done) = 0;

  /// End a step that is still open, commit, close. Collective. The object is unusable afterwards.
  virtual Status close() = 0;

  /// Chunk shape that Tailrace would choose for a field of this shape that `n_ranks` ranks share
  /// in whole chunks. Not collective.
  static Shape choose_chunk_shape(const Shape& shape, DType dtype, std::uint64_t chunk_bytes,
                                  int n_ranks);

  virtual void on_progress(ProgressCallback callback) = 0;
  virtual void on_log(LogCallback callback) = 0;
  /// Rank 0, once per step: before the step's datasets are created / after they and their
  /// attributes exist. A failure fails the step on every rank.
  virtual void on_metadata(MetadataCallback before_datasets, MetadataCallback after_datasets) = 0;

  /// All trace events of all ranks so far, at rank 0 (empty elsewhere). Collective. options.trace.
  virtual std::vector<TraceEvent> gather_trace() = 0;
  /// Paths of the fields by index, for traces and tables.
  virtual std::vector<std::string> field_paths() const = 0;
};

}  // namespace tailrace
