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

#include "core/comm.hpp"
#include "core/options.hpp"
#include "core/trace.hpp"
#include "exec/field_plan.hpp"
#include "field/field.hpp"
#include "hdf5/hdf5_file.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Called on the main thread from time to time within end_step. Bytes count this node's ranks.
struct Progress {
  std::uint64_t bytes_done = 0;  ///< Uncompressed bytes encoded so far.
  std::uint64_t bytes_total = 0;
};
using ProgressCallback = std::function<void(const Progress&)>;
/// Rank 0's access to the HDF5 file around the creation of a step's datasets (repack's carry-over).
using MetadataCallback = std::function<Status(Hdf5File&)>;

/// "the last step that is surely in the file is step 3", of Writer::last_committed_step().
std::string last_committed_text(const std::optional<std::uint64_t>& step);

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
  /// Without a close() before: the step under way is lost, as are steps that wait until a chunk of
  /// several is full (gathering_writer); a file that was never committed is removed. Not collective
  /// then, so that a rank can give up alone.
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
  /// Steps of a field whose chunks hold several wait until one is full, or for close(); those that
  /// wait outlive the failure of a later step. The report counts them.
  virtual Result<StepReport> end_step() = 0;
  /// Modes async and in_situ: wait until the step that was handed over last is committed.
  /// Collective. @returns its report; nothing if there is none to wait for.
  virtual Result<std::optional<StepReport>> wait() = 0;
  /// The last step that is surely in the file, as are those before it that did not fail; nothing:
  /// none is. Steps are numbered from 0 by the calls of end_step of this Writer. In the modes async
  /// and in_situ a commit is certain when the next end_step, or wait, has returned; a step of
  /// which a part waits for a chunk of several steps is not in the file. The same on every rank, as
  /// of the last collective call. Not collective.
  virtual std::optional<std::uint64_t> last_committed_step() const = 0;
  /// Mode in_situ: the application begins, or ends, to use a lane. Not collective.
  virtual void mark(Lane lane, bool begins) = 0;
  /// Modes async and in_situ: the application's thread is idle until `done`, and for `seconds` at
  /// most; encode what fits. Without `done` it returns as soon as nothing is left to encode.
  /// @param wait  called once, if at all, as soon as nothing is left for this thread to do: it
  ///              returns when `done` would say so, and saves asking, which takes the core from
  ///              whoever computes on it.
  /// Not collective.
  virtual void idle(double seconds, const std::function<bool()>& done,
                    const std::function<void()>& wait = {}) = 0;

  /// End a step that is still open, write what waits, also after a failure, commit, close.
  /// Collective. The object is unusable afterwards.
  virtual Status close() = 0;

  /// Chunk shape that Tailrace would choose for a field of this shape that `n_ranks` ranks share
  /// in whole chunks. Not collective.
  static Shape choose_chunk_shape(const Shape& shape, DType dtype, std::uint64_t chunk_bytes,
                                  int n_ranks);

  virtual void on_progress(ProgressCallback callback) = 0;
  virtual void on_log(LogCallback callback) = 0;
  /// Rank 0, once per step: before the step's datasets are created / after they and their
  /// attributes exist. A failure fails the step on every rank. With layout=front twice: first on a
  /// file that is thrown away, before any data are written.
  virtual void on_metadata(MetadataCallback before_datasets, MetadataCallback after_datasets) = 0;

  /// All trace events of all ranks so far, at rank 0 (empty elsewhere). Collective. options.trace.
  virtual std::vector<TraceEvent> gather_trace() = 0;
  /// Paths of the fields by index, for traces and tables.
  virtual std::vector<std::string> field_paths() const = 0;
};

}  // namespace tailrace
