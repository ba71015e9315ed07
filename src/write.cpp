// The story of a write. end_step() below is its table of contents:
//
//   put() -> Field -> Chunk -> Placement -> Encoded -> Extent -> chunk index
//
//   agree_on_definitions   all ranks mean the same fields
//   adopt_existing         over-time fields of an opened file go on       (write_append, container)
//   choose_chunk_shapes    chunks that follow the decomposition           (write_fields, layout)
//   resolve_bounds         rel and psnr become absolute                   (write_fields)
//   prepare_codecs         plug-ins loaded, client data fixed             (write_fields, codec)
//   settle_ownership       which rank encodes which chunk                 (exec/ownership)
//   encode_and_write       compress and write at once                     (exec/executor)
//   publish                datasets, chunk index, attributes, commit      (write_publish,
//   container)
//
// Invariant 1: every stage ends in one agreement; all ranks go on, or all return the same error.
// Invariant 2: until publish, nothing refers to the step's bytes; a failed step only leaves free
// space
//   at the file's end, which the next step overwrites.
// Invariant 3: HDF5 metadata is touched by rank 0 only, and only in publish and close. If that
// fails,
//   the file stays at its last commit and the writer refuses all further work.
// Cost of a step, besides the data: about ten allreduces, two sparse exchanges (ownership), one
// gather
//   of 40 bytes per chunk to rank 0.

#include "write.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "container/journal.hpp"
#include "core/agree_on_text.hpp"
#include "exec/executor.hpp"
#include "layout/chunk_shape.hpp"
#include "write_append.hpp"
#include "write_fields.hpp"
#include "write_open.hpp"
#include "write_publish.hpp"
#include "write_report.hpp"

namespace tailrace {
namespace {

class FileWriter final : public Writer {
 public:
  FileWriter(std::unique_ptr<Comm> comm, std::string path, const FileOptions& options)
      : comm_(std::move(comm)), path_(std::move(path)), options_(options) {}
  ~FileWriter() override;

  Status start(bool append);

  Comm& comm() override { return *comm_; }
  Result<std::size_t> define_field(const FieldDefinition& definition) override;
  Status set_attribute(const std::string& object_path, const std::string& name,
                       AttributeValue value) override;
  Status put(std::size_t field_index, const Box& box, const void* values, bool copy) override;
  Status put_source(std::size_t field_index, const Box& box, BoxSource& source) override;
  void note_failure(const Status& failure) override { (void)note(failure); }
  Result<StepReport> end_step() override;
  Status close() override;
  void on_progress(ProgressCallback callback) override { progress_ = std::move(callback); }
  void on_log(LogCallback callback) override { log_ = std::move(callback); }
  void on_metadata(MetadataCallback before, MetadataCallback after) override {
    before_datasets_ = std::move(before);
    after_datasets_ = std::move(after);
  }
  std::vector<TraceEvent> gather_trace() override;
  std::vector<std::string> field_paths() const override;

 private:
  Result<PutRecord> check_put(std::size_t field_index, const Box& box);
  Status note(const Status& failure);

  Status run_step(StepReport& report);
  Status agree_on_definitions();
  Status settle(Ownership& ownership);
  std::vector<FieldPlan> make_plans() const;
  Status encode_and_write(const Ownership& ownership, ExecutorReport& done, double& sync_s);
  Status publish(const std::vector<WrittenChunk>& written, StepReport& report);
  Status publish_at_root(const std::vector<std::vector<WrittenChunk>>& chunks, StepReport& report);
  Status commit_at_root(StepReport& report);
  void trace_root(TraceEvent::Kind kind, double start_s, double end_s);
  void forget_step(bool failed);
  std::uint64_t n_threads() const;

  std::unique_ptr<Comm> comm_;
  std::string path_;
  FileOptions options_;
  LaneClock clock_;
  Trace trace_;
  OutputFile output_;

  std::vector<FieldState> fields_;
  std::vector<FieldState*> active_;  ///< Fields of the step under way, in plan order.
  std::vector<PendingAttribute> attributes_;
  Status put_status_;      ///< The first bad call since the last step, on this rank.
  Status broken_;          ///< Set once metadata could not be committed; the same on every rank.
  bool appended_ = false;  ///< The file was opened, not created.
  bool in_place_ = false;  ///< The file stands under its own name (committed, or appended to).
  std::uint64_t n_steps_ = 0;
  bool closed_ = false;

  ProgressCallback progress_;
  LogCallback log_;
  MetadataCallback before_datasets_;
  MetadataCallback after_datasets_;
};

// --- opening
// --------------------------------------------------------------------------------------

Status FileWriter::start(bool append) {
  if (options_.direct_io) {
    options_.alignment_bytes = std::max<std::uint64_t>(options_.alignment_bytes, 4096);
  }
  TAILRACE_TRY(comm_->agree(agree_on_text(*comm_, "the file", output_text(path_, options_))));
  if (path_.empty()) return Status(Code::invalid_argument, "the file's path is empty");
  in_place_ = appended_ = append;
  return append ? open_output(*comm_, path_, options_, output_)
                : create_output(*comm_, path_, options_, output_);
}

// --- recording
// ------------------------------------------------------------------------------------

/// Keep the first failure of this rank's calls, for end_step to share.
Status FileWriter::note(const Status& failure) {
  if (put_status_.ok()) put_status_ = failure;
  return failure;
}

Result<std::size_t> FileWriter::define_field(const FieldDefinition& definition) {
  if (Status checked = check_definition(definition); !checked.ok()) return note(checked);
  for (const FieldState& field : fields_) {
    if (!field.retired && field.definition.path == definition.path) {
      return note(Status(Code::already_exists,
                         "field \"" + definition.path + "\" has been defined before"));
    }
  }
  fields_.emplace_back();
  fields_.back().definition = definition;
  return fields_.size() - 1;
}

Status FileWriter::set_attribute(const std::string& object_path, const std::string& name,
                                 AttributeValue value) {
  if (object_path.empty() || object_path.front() != '/' || name.empty()) {
    return note(Status(Code::invalid_argument, "attribute \"" + name + "\" of \"" + object_path +
                                                   "\": expected an absolute path and a name"));
  }
  attributes_.push_back({object_path, name, std::move(value)});
  return Status();
}

Result<PutRecord> FileWriter::check_put(std::size_t field_index, const Box& box) {
  if (field_index >= fields_.size() || fields_[field_index].retired) {
    return note(
        Status(Code::invalid_argument, "there is no field number " + std::to_string(field_index)));
  }
  FieldState& field = fields_[field_index];
  if (Status checked = check_box(field.definition, box); !checked.ok()) return note(checked);
  if (field.in_file && !field.definition.options.over_time) {
    return note(Status(Code::invalid_argument, "field \"" + field.definition.path +
                                                   "\" is in the file already; only over-time "
                                                   "fields are put again"));
  }
  field.put_called = true;
  PutRecord record;
  record.box = box;
  return record;
}

Status FileWriter::put(std::size_t field_index, const Box& box, const void* values, bool copy) {
  Result<PutRecord> record = check_put(field_index, box);
  if (!record.ok()) return record.status();
  if (box.empty()) return Status();
  FieldState& field = fields_[field_index];
  if (values == nullptr) {
    return note(Status(Code::invalid_argument, "field \"" + field.definition.path + "\": box " +
                                                   box_text(box) + " was put without values"));
  }
  record->values = static_cast<const std::byte*>(values);
  if (copy) {
    record->copy =
        Buffer::copy_of({record->values, box.n_elements() * dtype_bytes(field.definition.dtype)});
    if (!record->copy.allocated()) {
      return note(Status(Code::out_of_memory,
                         "no memory to copy a box of field \"" + field.definition.path + "\""));
    }
    record->values = record->copy.data();
  }
  field.puts.push_back(std::move(*record));
  return Status();
}

Status FileWriter::put_source(std::size_t field_index, const Box& box, BoxSource& source) {
  Result<PutRecord> record = check_put(field_index, box);
  if (!record.ok()) return record.status();
  if (box.empty()) return Status();
  record->source = &source;
  fields_[field_index].puts.push_back(std::move(*record));
  return Status();
}

// --- a step
// ---------------------------------------------------------------------------------------

Result<StepReport> FileWriter::end_step() {
  if (!broken_.ok()) return broken_;
  if (closed_) return Status(Code::invalid_argument, "the file is closed");
  const double start_s = clock_.now_s();
  StepReport report;
  report.step_index = n_steps_;
  output_.tail->start_step();
  const Status done = run_step(report);
  forget_step(!done.ok());
  if (!done.ok()) return done;
  ++n_steps_;
  double step_s = clock_.now_s() - start_s;
  comm_->allreduce(std::span<double>(&step_s, 1), Reduction::max);
  report.step_s = step_s;
  return report;
}

Status FileWriter::run_step(StepReport& report) {
  TAILRACE_TRY(agree_on_definitions());
  TAILRACE_TRY(adopt_existing(*comm_, output_.file.get(), path_, appended_, fields_));
  TAILRACE_TRY(comm_->agree(choose_chunk_shapes(*comm_, fields_)));
  active_.clear();
  for (FieldState& field : fields_) {
    if (field.active) active_.push_back(&field);
  }
  TAILRACE_TRY(comm_->agree(resolve_bounds(*comm_, fields_)));
  Status prepared =
      prepare_codecs(fields_, options_.plugin_path, comm_->is_root() ? log_ : nullptr);
  if (prepared.ok() && comm_->is_root()) prepared = check_continued_codecs(fields_);
  TAILRACE_TRY(comm_->agree(prepared));
  Ownership ownership;
  TAILRACE_TRY(comm_->agree(settle(ownership)));
  reserve_contiguous(*comm_, *output_.tail, options_.alignment_bytes, active_);

  ExecutorReport done;
  double sync_s = 0;
  TAILRACE_TRY(comm_->agree(encode_and_write(ownership, done, sync_s)));
  add_up_step(*comm_, active_, done, sync_s, report);
  return publish(done.written, report);
}

/// All ranks must have made the same definitions and attributes, and none a bad call.
Status FileWriter::agree_on_definitions() {
  TAILRACE_TRY(comm_->agree(put_status_));
  std::string text;
  for (const FieldState& field : fields_) {
    if (field.is_new()) text += definition_text(field.definition);
  }
  for (const PendingAttribute& attribute : attributes_) text += attribute_text(attribute);
  return comm_->agree(agree_on_text(*comm_, "the definitions", text));
}

Status FileWriter::settle(Ownership& ownership) {
  std::vector<OwnedField> owned;
  for (const FieldState* field : active_) {
    owned.push_back({field->definition.path, field->grid(), field->definition.options.allow_holes,
                     std::span<const PutRecord>(field->puts)});
  }
  Result<Ownership> settled = settle_ownership(*comm_, owned);
  if (!settled.ok()) return settled.status();
  ownership = std::move(*settled);
  return check_pulled_chunks(owned, ownership);
}

std::vector<FieldPlan> FileWriter::make_plans() const {
  std::vector<FieldPlan> plans;
  for (const FieldState* active : active_) {
    const FieldState& field = *active;
    const FieldOptions& options = field.definition.options;
    FieldPlan plan;
    plan.field_index = static_cast<std::size_t>(active - fields_.data());
    plan.path = field.definition.path;
    plan.dtype = field.definition.dtype;
    plan.grid = field.grid();
    plan.puts = field.puts;
    plan.codec = field.codec.get();
    plan.layout = field.layout.get();
    plan.absolute_bound = field.absolute_bound;
    plan.pointwise_bound = field.pointwise_bound;
    plan.fill_value = options.fill_value;
    plan.verify = field.verify;
    plan.fall_back_to_raw = options.fall_back_to_raw;
    plan.allow_holes = options.allow_holes;
    plan.pad_with_fill = field.definition.extendable;
    plan.base_address = field.base_address;
    plans.push_back(std::move(plan));
  }
  return plans;
}

/// @returns this rank's own failure.
Status FileWriter::encode_and_write(const Ownership& ownership, ExecutorReport& done,
                                    double& sync_s) {
  const std::vector<FieldPlan> plans = make_plans();
  ExecutorSettings settings;
  settings.n_threads = n_threads();
  settings.memory_bytes = options_.memory_bytes;
  settings.write_buffer_bytes = options_.write_buffer_bytes;
  settings.alignment_bytes = options_.alignment_bytes;
  settings.trace = options_.trace ? &trace_ : nullptr;
  std::uint64_t bytes_total = 0;
  for (const FieldState* field : active_) bytes_total += field->raw_bytes();
  if (progress_) {
    settings.progress = [this, bytes_total] { progress_({output_.tail->done(), bytes_total}); };
  }
  {
    Executor executor(*comm_, *output_.tail, *output_.storage, plans, ownership, settings, clock_);
    TAILRACE_TRY(executor.run(done));
  }
  if (!options_.sync || done.n_writes == 0) return Status();
  const double start_s = clock_.now_s();
  const Status synced = output_.storage->sync();
  sync_s = clock_.now_s() - start_s;
  if (options_.trace) {
    trace_.add({TraceEvent::Kind::sync, comm_->rank(), io_lane_number, -1, -1, start_s,
                start_s + sync_s, 0, 0});
  }
  return synced;
}

std::uint64_t FileWriter::n_threads() const {
  if (options_.n_threads > 0) return options_.n_threads;
  const auto n_ranks = static_cast<unsigned>(comm_->n_ranks_on_node());
  return std::max(std::thread::hardware_concurrency() / n_ranks, 1U);
}

// --- publishing
// -----------------------------------------------------------------------------------

Status FileWriter::publish(const std::vector<WrittenChunk>& written, StepReport& report) {
  const auto chunks = gather_written(*comm_, written, active_.size());
  const Status published =
      comm_->agree(comm_->is_root() ? publish_at_root(chunks, report) : Status());
  if (!published.ok()) {
    broken_ = published.within("the file stays at its last commit");
    return published;
  }
  in_place_ = true;
  attributes_.clear();
  for (FieldState* field : active_) {
    field->in_file = true;
    ++field->n_entries;
  }
  output_.committed_end = output_.tail->end();
  double root_numbers[4] = {report.index_s, report.commit_s, static_cast<double>(report.file_bytes),
                            0};
  comm_->allreduce(std::span<double>(root_numbers), Reduction::max);
  report.index_s = root_numbers[0];
  report.commit_s = root_numbers[1];
  report.file_bytes = static_cast<std::uint64_t>(root_numbers[2]);
  return Status();
}

Status FileWriter::publish_at_root(const std::vector<std::vector<WrittenChunk>>& chunks,
                                   StepReport& report) {
  const double start_s = clock_.now_s();
  if (before_datasets_) TAILRACE_TRY(before_datasets_(*output_.file));
  for (std::size_t p = 0; p < active_.size(); ++p) {
    TAILRACE_TRY(publish_field(*output_.file, *active_[p], chunks[p]));
  }
  TAILRACE_TRY(publish_attributes(*output_.file, attributes_));
  if (after_datasets_) TAILRACE_TRY(after_datasets_(*output_.file));
  report.index_s = clock_.now_s() - start_s;
  trace_root(TraceEvent::Kind::index, start_s, start_s + report.index_s);
  return commit_at_root(report);
}

Status FileWriter::commit_at_root(StepReport& report) {
  const double start_s = clock_.now_s();
  TAILRACE_TRY(output_.file->commit());
  if (!in_place_) {
    TAILRACE_TRY(rename_durably(path_ + partial_suffix, path_, options_.sync));
    TAILRACE_TRY(remove_journal(journal_path_of(path_)));  // an older file's, if there is one
  }
  report.commit_s = clock_.now_s() - start_s;
  trace_root(TraceEvent::Kind::commit, start_s, start_s + report.commit_s);
  Result<std::uint64_t> n_bytes = output_.storage->file_bytes();
  if (!n_bytes.ok()) return n_bytes.status();
  report.file_bytes = *n_bytes;
  return Status();
}

void FileWriter::trace_root(TraceEvent::Kind kind, double start_s, double end_s) {
  if (options_.trace) trace_.add({kind, comm_->rank(), 0, -1, -1, start_s, end_s, 0, 0});
}

/// Forget what was put. After a failure also forget the step's own fields, and hand its space back.
void FileWriter::forget_step(bool failed) {
  for (FieldState& field : fields_) {
    field.puts.clear();
    field.put_called = false;
    field.active = false;
    if (!failed || field.in_file) continue;
    field.retired = true;
    field.codec.reset();
    field.layout.reset();
  }
  put_status_ = Status();
  if (!failed) return;
  attributes_.clear();
  if (broken_.ok()) output_.tail->reset(output_.committed_end);
}

// --- the end
// --------------------------------------------------------------------------------------

Status FileWriter::close() {
  if (closed_) return Status(Code::invalid_argument, "the file is closed already");
  Status ended = broken_;
  if (ended.ok()) {
    const bool open_step = !put_status_.ok() || !attributes_.empty() || !in_place_ ||
                           std::any_of(fields_.begin(), fields_.end(), [](const FieldState& field) {
                             return field.put_called || field.is_new();
                           });
    std::uint64_t any_open = open_step ? 1 : 0;
    comm_->allreduce(std::span<std::uint64_t>(&any_open, 1), Reduction::max);
    if (any_open != 0) ended = end_step().status();
  }
  closed_ = true;
  Status finished;
  if (comm_->is_root()) {
    if (broken_.ok() && in_place_) finished = output_.file->close();
    output_.file.reset();
    if (!in_place_) ::unlink((path_ + partial_suffix).c_str());
  }
  finished = comm_->agree(finished);
  output_.storage.reset();
  output_.tail.reset();
  return ended.ok() ? finished : ended;
}

/// Without close() this rank may be alone here, so nothing collective happens.
FileWriter::~FileWriter() {
  if (closed_) return;
  comm_->abandon();
  if (output_.tail != nullptr) output_.tail->abandon();
  output_.file.reset();
  if (comm_->is_root() && output_.storage != nullptr && !in_place_) {
    ::unlink((path_ + partial_suffix).c_str());
  }
}

std::vector<TraceEvent> FileWriter::gather_trace() {
  const std::vector<TraceEvent> mine = trace_.take();
  const std::vector<Bytes> all = comm_->gather(std::as_bytes(std::span(mine)), 0);
  std::vector<TraceEvent> events;
  for (const Bytes& bytes : all) {
    const std::size_t first = events.size();
    events.resize(first + bytes.size() / sizeof(TraceEvent));
    if (!bytes.empty()) std::memcpy(&events[first], bytes.data(), bytes.size());
  }
  return events;
}

std::vector<std::string> FileWriter::field_paths() const {
  std::vector<std::string> paths;
  for (const FieldState& field : fields_) paths.push_back(field.definition.path);
  return paths;
}

Result<std::unique_ptr<Writer>> make_writer(std::unique_ptr<Comm> comm, const std::string& path,
                                            const FileOptions& options, bool append) {
  auto writer = std::make_unique<FileWriter>(std::move(comm), path, options);
  if (Status started = writer->start(append); !started.ok()) return started;
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::create(std::unique_ptr<Comm> comm, const std::string& path,
                                               const FileOptions& options) {
  return make_writer(std::move(comm), path, options, false);
}

Result<std::unique_ptr<Writer>> Writer::open(std::unique_ptr<Comm> comm, const std::string& path,
                                             const FileOptions& options) {
  return make_writer(std::move(comm), path, options, true);
}

Shape Writer::choose_chunk_shape(const Shape& shape, DType dtype, std::uint64_t chunk_bytes,
                                 int n_ranks) {
  return chunk_shape_to_share(shape, dtype_bytes(dtype), chunk_bytes,
                              static_cast<std::uint64_t>(n_ranks));
}

}  // namespace tailrace
