// Writer: writes fields, passed by put(), into one ordinary HDF5 file.
//
// write.cpp lists the stages: agree on the definitions, choose chunks, assign owners to chunks,
// resolve bounds, encode and write concurrently, gather the index, commit. The frontends (C, CLI,
// Python) translate into these calls and have no policy.
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

/// Progress of end_step, passed to a callback on its main thread. Bytes count this node's ranks.
struct Progress {
  std::uint64_t bytes_done = 0;  ///< Uncompressed bytes encoded so far.
  std::uint64_t bytes_total = 0;
};
using ProgressCallback = std::function<void(const Progress&)>;
/// Callback on rank 0 with the HDF5 file around the creation of a step's datasets (for repack).
using MetadataCallback = std::function<Status(Hdf5File&)>;

/// Format the result of Writer::last_committed_step(): "the last step that is surely in the file is
/// step 3".
std::string last_committed_text(const std::optional<std::uint64_t>& step);

/// Writes the steps of one file.
class Writer {
 public:
  /// Create a file. It appears under `path` at the first commit; until then an older file stays.
  /// Collective. Cost: O(log ranks).
  /// @error already_exists  the file exists and options.replace is off.  @error io_error, no_space
  static Result<std::unique_ptr<Writer>> create(std::unique_ptr<Comm> comm, const std::string& path,
                                                const FileOptions& options);
  /// Open an existing HDF5 file to add fields and steps. Collective.
  /// @error not_found, corrupt
  static Result<std::unique_ptr<Writer>> open(std::unique_ptr<Comm> comm, const std::string& path,
                                              const FileOptions& options);
  /// Destroy the writer. Without a close() before, the step in flight is lost, and so are steps
  /// that wait until a chunk of several is full (gathering_writer). A file that was never committed
  /// is removed. This is not collective, so that one rank can give up without the others.
  virtual ~Writer() = default;

  virtual Comm& comm() = 0;

  /// Record a field. Same calls in the same order on every rank. @returns its index, from 0 up.
  /// @error invalid_argument  bad path, shape or options.  @error already_exists
  virtual Result<std::size_t> define_field(const FieldDefinition& definition) = 0;
  /// Record an attribute of "/", a group, or a field. Same calls on every rank.
  virtual Status set_attribute(const std::string& object_path, const std::string& name,
                               AttributeValue value) = 0;
  /// Record that `values` (row-major, box.count) belong at `box`. Not collective; any number of
  /// calls. The memory must stay unchanged until end_step returns, unless `copy`. An empty box is
  /// allowed. @error invalid_argument, bad_coverage (box outside the shape)
  virtual Status put(std::size_t field_index, const Box& box, const void* values,
                     bool copy = false) = 0;
  /// Record a source of values, which are pulled chunk by chunk when they are needed. `source` must
  /// live until end_step returns. Pulled boxes must be whole chunks, so options.chunk_shape must be
  /// given.
  virtual Status put_source(std::size_t field_index, const Box& box, BoxSource& source) = 0;

  /// Record a failure of the caller: the next end_step returns it on every rank. Not collective.
  virtual void note_failure(const Status& failure) = 0;

  /// Write and commit all that was put since the last step. Collective. In the modes async and
  /// in_situ: commit the previous step, and hand this one over. The report and a failure are then
  /// those of the previous step (`completed` is false if there was none). Every field defined since
  /// the last end_step must have been put completely; a field with over_time may be put again in
  /// each step. On failure nothing of this step is in the file. Steps of a field whose chunks hold
  /// several steps wait until a chunk is full, or for close(). Waiting steps survive the failure of
  /// a later step. The report counts them.
  virtual Result<StepReport> end_step() = 0;
  /// Wait until the last handed-over step is committed. Modes async and in_situ. Collective.
  /// @returns its report; std::nullopt if no step was handed over.
  virtual Result<std::optional<StepReport>> wait() = 0;
  /// Return the last step that is certainly in the file; so is every earlier step that did not
  /// fail. std::nullopt: no step is. Steps are numbered from 0 by this Writer's calls of end_step.
  /// In the modes async and in_situ a commit is certain when the next end_step, or wait, has
  /// returned. A step with a part that waits for a chunk of several steps is not in the file. The
  /// same on every rank; changes only in collective calls. Not collective.
  virtual std::optional<std::uint64_t> last_committed_step() const = 0;
  /// Mark that the application begins, or ends, to use a lane. Mode in_situ. Not collective.
  virtual void mark(Lane lane, bool begins) = 0;
  /// Encode while the application's thread is idle: until `done`, at most for `seconds`. Modes
  /// async and in_situ. Without `done` it returns as soon as nothing is left to encode. Not
  /// collective.
  /// @param wait  called at most once, when this thread has nothing left to do. It must return when
  /// `done` would return true. It replaces polling, which takes the core from computing threads.
  virtual void idle(double seconds, const std::function<bool()>& done,
                    const std::function<void()>& wait = {}) = 0;

  /// End an open step, write the waiting steps (even after a failure), commit, close. Collective.
  /// The object is unusable afterwards.
  virtual Status close() = 0;

  /// Return the chunk shape that Tailrace would choose for a field of this shape, shared by
  /// `n_ranks` ranks in whole chunks. Not collective.
  static Shape choose_chunk_shape(const Shape& shape, DType dtype, std::uint64_t chunk_bytes,
                                  int n_ranks);

  virtual void on_progress(ProgressCallback callback) = 0;
  virtual void on_log(LogCallback callback) = 0;
  /// Set callbacks for rank 0, called once per step: before the step's datasets are created, and
  /// after they and their attributes exist. A failure fails the step on every rank. With
  /// layout=front each is called twice: first on a file that is discarded, before any data are
  /// written.
  virtual void on_metadata(MetadataCallback before_datasets, MetadataCallback after_datasets) = 0;

  /// Gather all trace events of all ranks so far at rank 0 (empty elsewhere). Collective. Needs
  /// options.trace.
  virtual std::vector<TraceEvent> gather_trace() = 0;
  /// Paths of the fields by index, for traces and tables.
  virtual std::vector<std::string> field_paths() const = 0;
};

}  // namespace tailrace
