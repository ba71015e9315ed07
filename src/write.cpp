// The story of a write. end_step() below is its table of contents:
//
//   put() -> Field -> Chunk -> Placement -> Encoded -> Extent -> chunk index
//
//   agree_on_definitions   all ranks mean the same fields
//   choose_chunk_shapes    chunks that follow the decomposition           (write_fields, layout)
//   resolve_bounds         rel and psnr become absolute                   (write_fields)
//   prepare_codecs         plug-ins loaded, client data fixed             (write_fields, codec)
//   settle_ownership       which rank encodes which chunk                 (exec/ownership)
//   encode_and_write       compress and write at once                     (exec/executor)
//   publish                datasets, chunk index, attributes, commit      (write_publish, container)
//
// Invariant 1: every stage ends in one agreement; all ranks go on, or all return the same error.
// Invariant 2: until publish, nothing refers to the step's bytes; a failed step only leaves free space
//   at the file's end, which the next step overwrites.
// Invariant 3: HDF5 metadata is touched by rank 0 only, and only in publish and close. If that fails,
//   the file stays at its last commit and the writer refuses all further work.
// Cost of a step, besides the data: about ten allreduces, two sparse exchanges (ownership), one gather
//   of 40 bytes per chunk to rank 0.

#include "write.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "core/byte_stream.hpp"
#include "exec/comm_factory.hpp"
#include "exec/executor.hpp"
#include "layout/chunk_shape.hpp"
#include "write_fields.hpp"
#include "write_publish.hpp"

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
  Status start_new();
  Status start_append();
  Status root_create();
  Hdf5File::Settings metadata_settings() const;
  Result<PutRecord> check_put(std::size_t field_index, const Box& box);
  Status note(const Status& failure);

  Status run_step(StepReport& report);
  Status agree_on_definitions();
  Status settle(Ownership& ownership);
  Status reserve_contiguous();
  std::vector<FieldPlan> make_plans() const;
  Status encode_and_write(const Ownership& ownership, ExecutorReport& done, double& sync_s);
  Status publish(const std::vector<WrittenChunk>& written, StepReport& report);
  Status publish_at_root(const std::vector<std::vector<WrittenChunk>>& chunks, StepReport& report);
  Status commit_at_root(StepReport& report);
  void add_up(const ExecutorReport& done, double sync_s, StepReport& report);
  void add_up_fields(const std::vector<FieldTally>& tallies, StepReport& report);
  void trace_root(TraceEvent::Kind kind, double start_s, double end_s);
  void forget_step(bool failed);
  std::uint64_t n_threads() const;

  std::unique_ptr<Comm> comm_;
  std::string path_;
  FileOptions options_;
  LaneClock clock_;
  Trace trace_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Tail> tail_;
  std::unique_ptr<Hdf5File> file_;  ///< Rank 0 only.

  std::vector<FieldState> fields_;
  std::vector<std::size_t> active_;  ///< Fields of the step under way, in plan order.
  std::vector<PendingAttribute> attributes_;
  Status put_status_;   ///< The first bad call since the last step, on this rank.
  Status broken_;       ///< Set once metadata could not be committed; the same on every rank.
  bool in_place_ = false;          ///< The file stands under its own name (committed, or appended to).
  std::uint64_t committed_end_ = 0;
  std::uint64_t n_steps_ = 0;
  bool closed_ = false;

  ProgressCallback progress_;
  LogCallback log_;
  MetadataCallback before_datasets_;
  MetadataCallback after_datasets_;
};

std::string options_text(const FileOptions& options) {
  FieldDefinition defaults{"/defaults", DType::f32, {}, options.field_defaults, false};
  return definition_text(defaults) + std::to_string(options.sync) +
         std::to_string(options.journal) + std::to_string(options.replace) +
         std::to_string(options.alignment_bytes);
}

/// FNV-1a, 64 bit: only to find that two ranks' texts differ.
std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

/// Check that all ranks have the same text; the error shows the first line that differs from rank
/// 0's. Collective. Cost: one allreduce; only on a difference a broadcast of rank 0's text.
Status agree_on_text(Comm& comm, const std::string& what, const std::string& text) {
  const std::uint64_t hash = hash_text(text);
  std::uint64_t extremes[2] = {hash, ~hash};
  comm.allreduce(std::span<std::uint64_t>(extremes), Reduction::min);
  if (extremes[0] == ~extremes[1]) return Status();
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  Bytes root_bytes(first, first + text.size());
  comm.broadcast(root_bytes, 0);
  const std::string root(reinterpret_cast<const char*>(root_bytes.data()), root_bytes.size());
  if (root == text) return Status();
  const auto differs = std::mismatch(root.begin(), root.end(), text.begin(), text.end());
  const auto line_at = [](const std::string& lines, std::size_t at) {
    const std::size_t start = at == 0 ? 0 : lines.rfind('\n', at - 1) + 1;
    return lines.substr(start, lines.find('\n', start) - start);
  };
  const auto at = static_cast<std::size_t>(differs.first - root.begin());
  return Status(Code::disagreement, "ranks disagree on " + what + ": rank 0 has {" +
                                        line_at(root, at) + "}, this rank has {" +
                                        line_at(text, at) + "}");
}

// --- opening --------------------------------------------------------------------------------------

Status FileWriter::start(bool append) {
  if (options_.direct_io) {
    options_.alignment_bytes = std::max<std::uint64_t>(options_.alignment_bytes, 4096);
  }
  const std::string text = "path " + path_ + "\noptions " + options_text(options_) + "\n";
  TAILRACE_TRY(comm_->agree(agree_on_text(*comm_, "the file", text)));
  if (path_.empty()) return Status(Code::invalid_argument, "the file's path is empty");
  return append ? start_append() : start_new();
}

Hdf5File::Settings FileWriter::metadata_settings() const {
  Hdf5File::Settings settings;
  settings.sync = options_.sync;
  settings.journal = options_.journal;
  settings.journal_path = path_ + ".journal";
  return settings;
}

/// The file under its temporary name; an older file of the final name stays until the first commit.
Status FileWriter::root_create() {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) == 0) {
    if (S_ISDIR(facts.st_mode)) {
      return Status(Code::invalid_argument, "\"" + path_ + "\" is a folder");
    }
    if (!options_.replace) {
      return Status(Code::already_exists, "\"" + path_ + "\" exists; option replace=on replaces it");
    }
  }
  Result<std::unique_ptr<Storage>> storage =
      open_posix_storage(path_ + partial_suffix, true, options_.direct_io);
  if (!storage.ok()) return storage.status();
  storage_ = std::move(*storage);
  return Status();
}

Status FileWriter::start_new() {
  TAILRACE_TRY(comm_->agree(comm_->is_root() ? root_create() : Status()));
  Status opened;
  if (!comm_->is_root()) {
    Result<std::unique_ptr<Storage>> storage =
        open_posix_storage(path_ + partial_suffix, false, options_.direct_io);
    opened = storage.status();
    if (storage.ok()) storage_ = std::move(*storage);
  }
  TAILRACE_TRY(comm_->agree(opened));
  Result<std::unique_ptr<Tail>> tail = comm_->create_tail(0);
  TAILRACE_TRY(comm_->agree(tail.status()));
  tail_ = std::move(*tail);
  Status created;
  if (comm_->is_root()) {
    Result<std::unique_ptr<Hdf5File>> file = Hdf5File::create(
        *storage_, [this](std::uint64_t n_bytes) { return tail_->claim(n_bytes); },
        metadata_settings());
    created = file.status();
    if (file.ok()) file_ = std::move(*file);
  }
  TAILRACE_TRY(comm_->agree(created));
  committed_end_ = tail_->end();
  return Status();
}

Status FileWriter::start_append() {
  Result<std::unique_ptr<Storage>> storage = open_posix_storage(path_, false, options_.direct_io);
  TAILRACE_TRY(comm_->agree(storage.status()));
  storage_ = std::move(*storage);
  in_place_ = true;
  Result<std::unique_ptr<Tail>> tail = comm_->create_tail(0);
  TAILRACE_TRY(comm_->agree(tail.status()));
  tail_ = std::move(*tail);
  Status opened;
  if (comm_->is_root()) {
    Result<std::unique_ptr<Hdf5File>> file = Hdf5File::open(
        *storage_, [this](std::uint64_t n_bytes) { return tail_->claim(n_bytes); },
        metadata_settings(), committed_end_);
    opened = file.status();
    if (file.ok()) file_ = std::move(*file);
  }
  TAILRACE_TRY(comm_->agree(opened));
  tail_->reset(committed_end_);
  return Status();
}

// --- recording ------------------------------------------------------------------------------------

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
    return note(Status(Code::invalid_argument,
                       "there is no field number " + std::to_string(field_index)));
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
    record->copy = Buffer::copy_of(
        {record->values, box.n_elements() * dtype_bytes(field.definition.dtype)});
    if (!record->copy.allocated()) {
      return note(Status(Code::out_of_memory, "no memory to copy a box of field \"" +
                                                  field.definition.path + "\""));
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

// --- a step ---------------------------------------------------------------------------------------

Result<StepReport> FileWriter::end_step() {
  if (!broken_.ok()) return broken_;
  if (closed_) return Status(Code::invalid_argument, "the file is closed");
  const double start_s = clock_.now_s();
  StepReport report;
  report.step_index = n_steps_;
  tail_->start_step();
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
  TAILRACE_TRY(comm_->agree(choose_chunk_shapes(*comm_, fields_)));
  active_.clear();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (fields_[f].active) active_.push_back(f);
  }
  TAILRACE_TRY(comm_->agree(resolve_bounds(*comm_, fields_)));
  TAILRACE_TRY(comm_->agree(
      prepare_codecs(fields_, options_.plugin_path, comm_->is_root() ? log_ : nullptr)));
  Ownership ownership;
  TAILRACE_TRY(comm_->agree(settle(ownership)));
  TAILRACE_TRY(reserve_contiguous());

  ExecutorReport done;
  double sync_s = 0;
  TAILRACE_TRY(comm_->agree(encode_and_write(ownership, done, sync_s)));
  add_up(done, sync_s, report);
  return publish(done.written, report);
}

/// All ranks must have made the same definitions and attributes, and none a bad call.
Status FileWriter::agree_on_definitions() {
  TAILRACE_TRY(comm_->agree(put_status_));
  std::string text;
  for (const FieldState& field : fields_) {
    if (field.is_new()) text += definition_text(field.definition);
  }
  for (const PendingAttribute& attribute : attributes_) {
    text += "attribute \"" + attribute.name + "\" of \"" + attribute.object_path + "\"\n";
  }
  return comm_->agree(agree_on_text(*comm_, "the definitions", text));
}

Status FileWriter::settle(Ownership& ownership) {
  std::vector<OwnedField> owned;
  for (const std::size_t f : active_) {
    const FieldState& field = fields_[f];
    owned.push_back({field.definition.path, field.grid(), field.definition.options.allow_holes,
                     std::span<const PutRecord>(field.puts)});
  }
  Result<Ownership> settled = settle_ownership(*comm_, owned);
  if (!settled.ok()) return settled.status();
  ownership = std::move(*settled);
  const auto pulled = [&](std::size_t field, const std::vector<LocalPart>& parts) {
    return std::any_of(parts.begin(), parts.end(), [&](const LocalPart& part) {
      return owned[field].puts[part.put_index].source != nullptr;
    });
  };
  const auto shared = [&](std::size_t field) {
    return Status(Code::invalid_argument, "field \"" + owned[field].path +
                                              "\": values from a source must be whole chunks");
  };
  for (const ChunkJob& job : ownership.jobs) {
    if ((job.local.size() > 1 || !job.remote.empty()) && pulled(job.field, job.local)) {
      return shared(job.field);
    }
  }
  for (const auto& [key, parts] : ownership.owed) {
    if (pulled(key.field, parts)) return shared(key.field);
  }
  return Status();
}

/// One run of the tail for all contiguous fields of the step. Collective: one broadcast if there are
/// any.
Status FileWriter::reserve_contiguous() {
  constexpr std::uint64_t kElementAlignment = 8;  // so that a reader may map the values in place
  std::uint64_t n_bytes = 0;
  for (const std::size_t f : active_) {
    FieldState& field = fields_[f];
    if (!field.layout->contiguous()) continue;
    field.base_address = n_bytes;
    n_bytes += (field.raw_bytes() + kElementAlignment - 1) / kElementAlignment * kElementAlignment;
  }
  if (n_bytes == 0) return Status();
  const std::uint64_t alignment = std::max(options_.alignment_bytes, kElementAlignment);
  Bytes packed(sizeof(std::uint64_t));
  if (comm_->is_root()) {
    std::uint64_t base = tail_->claim(n_bytes + alignment - 1);
    base = (base + alignment - 1) / alignment * alignment;
    std::memcpy(packed.data(), &base, sizeof base);
  }
  comm_->broadcast(packed, 0);
  std::uint64_t base = 0;
  std::memcpy(&base, packed.data(), sizeof base);
  for (const std::size_t f : active_) {
    if (fields_[f].layout->contiguous()) fields_[f].base_address += base;
  }
  return Status();
}

std::vector<FieldPlan> FileWriter::make_plans() const {
  std::vector<FieldPlan> plans;
  for (const std::size_t f : active_) {
    const FieldState& field = fields_[f];
    const FieldOptions& options = field.definition.options;
    FieldPlan plan;
    plan.field_index = f;
    plan.path = field.definition.path;
    plan.dtype = field.definition.dtype;
    plan.grid = field.grid();
    plan.puts = field.puts;
    plan.codec = field.codec.get();
    plan.layout = field.layout.get();
    plan.absolute_bound = field.absolute_bound;
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
  for (const std::size_t f : active_) bytes_total += fields_[f].raw_bytes();
  if (progress_) {
    settings.progress = [this, bytes_total] { progress_({tail_->done(), bytes_total}); };
  }
  {
    Executor executor(*comm_, *tail_, *storage_, plans, ownership, settings, clock_);
    TAILRACE_TRY(executor.run(done));
  }
  if (!options_.sync || done.n_writes == 0) return Status();
  const double start_s = clock_.now_s();
  const Status synced = storage_->sync();
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

// --- publishing -----------------------------------------------------------------------------------

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
  for (const std::size_t f : active_) {
    fields_[f].in_file = true;
    ++fields_[f].n_entries;
  }
  committed_end_ = tail_->end();
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
  if (before_datasets_) TAILRACE_TRY(before_datasets_(*file_));
  for (std::size_t p = 0; p < active_.size(); ++p) {
    TAILRACE_TRY(publish_field(*file_, fields_[active_[p]], chunks[p]));
  }
  TAILRACE_TRY(publish_attributes(*file_, attributes_));
  if (after_datasets_) TAILRACE_TRY(after_datasets_(*file_));
  report.index_s = clock_.now_s() - start_s;
  trace_root(TraceEvent::Kind::index, start_s, start_s + report.index_s);
  return commit_at_root(report);
}

Status FileWriter::commit_at_root(StepReport& report) {
  const double start_s = clock_.now_s();
  TAILRACE_TRY(file_->commit());
  if (!in_place_) TAILRACE_TRY(rename_durably(path_ + partial_suffix, path_, options_.sync));
  report.commit_s = clock_.now_s() - start_s;
  trace_root(TraceEvent::Kind::commit, start_s, start_s + report.commit_s);
  Result<std::uint64_t> n_bytes = storage_->file_bytes();
  if (!n_bytes.ok()) return n_bytes.status();
  report.file_bytes = *n_bytes;
  return Status();
}

void FileWriter::trace_root(TraceEvent::Kind kind, double start_s, double end_s) {
  if (options_.trace) trace_.add({kind, comm_->rank(), 0, -1, -1, start_s, end_s, 0, 0});
}

/// Sums and maxima over all ranks. Collective: four allreduces of O(fields) numbers.
void FileWriter::add_up(const ExecutorReport& done, double sync_s, StepReport& report) {
  add_up_fields(done.tallies, report);
  double slowest[6] = {done.read_s,     done.encode_s, done.write_s,
                       done.makespan_s, sync_s,        static_cast<double>(done.peak_memory_bytes)};
  comm_->allreduce(std::span<double>(slowest), Reduction::max);
  report.read_s = slowest[0];
  report.encode_s = slowest[1];
  report.write_s = slowest[2];
  report.makespan_s = slowest[3];
  report.sync_s = slowest[4];
  report.peak_memory_bytes = static_cast<std::uint64_t>(slowest[5]);
  double sums[4] = {done.hidden_s, std::min(done.encode_s, done.write_s),
                    static_cast<double>(done.n_writes), static_cast<double>(done.piece_bytes)};
  comm_->allreduce(std::span<double>(sums), Reduction::sum);
  report.hidden_share = sums[1] > 0 ? sums[0] / sums[1] : 1;
  report.n_writes = static_cast<std::uint64_t>(sums[2]);
  report.piece_bytes = static_cast<std::uint64_t>(sums[3]);
}

void FileWriter::add_up_fields(const std::vector<FieldTally>& tallies, StepReport& report) {
  std::vector<double> sums;
  std::vector<double> maxima;
  for (const FieldTally& tally : tallies) {
    sums.insert(sums.end(), {static_cast<double>(tally.n_chunks),
                             static_cast<double>(tally.n_raw_chunks),
                             static_cast<double>(tally.encoded_bytes), tally.encode_s,
                             tally.verify_s});
    maxima.push_back(tally.max_error);
  }
  comm_->allreduce(std::span<double>(sums), Reduction::sum);
  comm_->allreduce(std::span<double>(maxima), Reduction::max);
  for (std::size_t p = 0; p < active_.size(); ++p) {
    FieldState& field = fields_[active_[p]];
    const double* sum = sums.data() + 5 * p;
    field.max_error = std::max(field.max_error, maxima[p]);
    FieldReport entry;
    entry.path = field.definition.path;
    entry.dtype = field.definition.dtype;
    entry.shape = field.definition.shape;
    entry.chunk_shape = field.chunk_shape;
    entry.codec = field.codec->name();
    entry.codec_version = field.codec->version();
    entry.layout = field.layout->name();
    entry.bound = field.definition.options.bound;
    entry.absolute_bound = field.absolute_bound;
    entry.verified = field.verify;
    entry.max_error = maxima[p];
    entry.value_least = field.value_least;
    entry.value_greatest = field.value_greatest;
    entry.n_chunks = static_cast<std::uint64_t>(sum[0]);
    entry.n_raw_chunks = static_cast<std::uint64_t>(sum[1]);
    entry.raw_bytes = field.raw_bytes();
    entry.encoded_bytes = static_cast<std::uint64_t>(sum[2]);
    entry.encode_s = sum[3];
    entry.verify_s = sum[4];
    report.raw_bytes += entry.raw_bytes;
    report.encoded_bytes += entry.encoded_bytes;
    report.fields.push_back(std::move(entry));
  }
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
  if (broken_.ok()) tail_->reset(committed_end_);
}

// --- the end --------------------------------------------------------------------------------------

Status FileWriter::close() {
  if (closed_) return Status(Code::invalid_argument, "the file is closed already");
  Status ended = broken_;
  if (ended.ok()) {
    const bool open_step =
        !put_status_.ok() || !attributes_.empty() || !in_place_ ||
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
    if (broken_.ok() && in_place_) finished = file_->close();
    file_.reset();
    if (!in_place_) ::unlink((path_ + partial_suffix).c_str());
  }
  finished = comm_->agree(finished);
  storage_.reset();
  tail_.reset();
  return ended.ok() ? finished : ended;
}

FileWriter::~FileWriter() {
  if (closed_) return;
  file_.reset();
  if (comm_->is_root() && storage_ != nullptr && !in_place_) {
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
