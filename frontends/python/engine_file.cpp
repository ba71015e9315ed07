// Opening, reading, writing and closing, under one lock.

#include "python/engine_file.hpp"

#include <filesystem>

#include "exec/comm_factory.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5_filter/own_filters.hpp"

namespace tailrace::python {
namespace {

VariableStorage storage_of(const StoredDataset& dataset) {
  VariableStorage storage;
  switch (dataset.file.storage.kind) {
    case StoredForm::Kind::nothing: storage.kind = "nothing"; break;
    case StoredForm::Kind::compact: storage.kind = "compact"; break;
    case StoredForm::Kind::contiguous: storage.kind = "contiguous"; break;
    case StoredForm::Kind::chunked: storage.kind = "chunked"; break;
  }
  storage.type_text = dataset.file.type_text;
  // The reader turns numbers of other sizes or precisions, such as half, into these.
  storage.type_description = dataset.dtype ? describe_type(encoded_type(*dataset.dtype))
                                           : describe_type(dataset.file.type);
  storage.chunk_shape = dataset.file.storage.chunk_shape;
  storage.filters = dataset.file.storage.filters;
  return storage;
}

Status no_such_variable(std::size_t variable) {
  return Status(Code::internal, "there is no variable " + std::to_string(variable));
}

}  // namespace

Result<std::unique_ptr<EngineFile>> EngineFile::open(Opening opening) {
  // Files of ours are read without plug-ins.
  TAILRACE_TRY(hdf5::register_own_filters());
  if (opening.comm == nullptr) opening.comm = make_self_comm();
  std::unique_ptr<EngineFile> file(new EngineFile(opening.path));
  TAILRACE_TRY(opening.mode == 'r' ? file->open_for_reading(std::move(opening))
                                   : file->open_for_writing(std::move(opening)));
  return file;
}

Status EngineFile::open_for_reading(Opening opening) {
  ReadOptions options;
  // All ranks go on, or none.
  TAILRACE_TRY(opening.comm->agree(apply_read_options(opening.options, options)));
  if (options.plugin_path.empty()) options.plugin_path = opening.plugin_path;
  Result<std::unique_ptr<Reader>> reader =
      Reader::open(std::move(opening.comm), opening.path, options);
  if (!reader.ok()) return reader.status();
  TAILRACE_TRY((*reader)->model_status());
  reader_ = std::move(*reader);
  return Status();
}

Status EngineFile::open_for_writing(Opening opening) {
  ArrayFileOptions options;
  TAILRACE_TRY(opening.comm->agree(apply_array_file_options(opening.options, options)));
  if (options.file.plugin_path.empty()) options.file.plugin_path = opening.plugin_path;
  if (options.read.plugin_path.empty()) options.read.plugin_path = opening.plugin_path;
  options.file.replace = opening.mode == 'w';
  bool creates = opening.mode != 'a';
  if (!creates) {
    // One rank looks, so that all decide alike.
    std::error_code failure;
    std::uint64_t exists =
        opening.comm->is_root() && std::filesystem::exists(opening.path, failure);
    opening.comm->allreduce(std::span<std::uint64_t>(&exists, 1), Reduction::max);
    creates = exists == 0;
  }
  Result<std::unique_ptr<ArrayFile>> file =
      creates ? ArrayFile::create(std::move(opening.comm), opening.path, options)
              : ArrayFile::open(std::move(opening.comm), opening.path, ArrayFile::Access::write,
                                options);
  if (!file.ok()) return file.status();
  array_ = std::move(*file);
  return Status();
}

Status EngineFile::check_open(bool to_write) const {
  if (!is_open()) return Status(Code::invalid_argument, path_ + " is closed");
  if (to_write && array_ == nullptr) {
    return Status(Code::invalid_argument, path_ + " was opened for reading only");
  }
  return Status();
}

int EngineFile::rank() {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return 0;
  return array_ ? array_->comm().rank() : reader_->comm().rank();
}

int EngineFile::n_ranks() {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return 1;
  return array_ ? array_->comm().n_ranks() : reader_->comm().n_ranks();
}

Result<NetcdfModel> EngineFile::model() {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  return model_now();
}

Status EngineFile::edit(const std::function<Status(NetcdfModel&)>& edit) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(true));
  NetcdfModel next = array_->model();
  TAILRACE_TRY(edit(next));
  return array_->change_model(next);
}

Status EngineFile::set_variable_options(std::size_t variable, const std::string& options) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(true));
  return array_->set_variable_options(variable, options);
}

Result<std::size_t> EngineFile::dataset_of(std::size_t variable) const {
  const NetcdfModel& model = reader_->model();
  if (variable >= model.variables.size()) return no_such_variable(variable);
  return reader_->find(model.variables[variable].dataset_path);
}

Result<std::optional<VariableStorage>> EngineFile::storage(std::size_t variable) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  if (reader_ != nullptr) {
    const Result<std::size_t> dataset = dataset_of(variable);
    if (!dataset.ok()) return dataset.status();
    return std::optional<VariableStorage>(storage_of(reader_->datasets()[*dataset]));
  }
  if (variable >= array_->model().variables.size()) return no_such_variable(variable);
  // What is in the file already can be looked at by anybody; what is staged is nowhere yet.
  std::error_code failure;
  if (!std::filesystem::exists(path_, failure)) return std::optional<VariableStorage>();
  Result<std::unique_ptr<Reader>> reader = Reader::open(make_self_comm(), path_);
  if (!reader.ok()) return reader.status();
  const Result<std::size_t> dataset =
      (*reader)->find(array_->model().variables[variable].dataset_path);
  if (!dataset.ok()) return std::optional<VariableStorage>();
  return std::optional<VariableStorage>(storage_of((*reader)->datasets()[*dataset]));
}

Status EngineFile::put(std::size_t variable, const Slab& slab, std::span<const std::byte> values) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(true));
  return array_->put(variable, slab, values);
}

Status EngineFile::get(std::size_t variable, const Slab& slab, std::span<std::byte> values) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  if (array_ != nullptr) return array_->get(variable, slab, values);
  const Result<std::size_t> dataset = dataset_of(variable);
  if (!dataset.ok()) return dataset.status();
  return reader_->read(*dataset, slab, values);
}

Status EngineFile::put_texts(std::size_t variable, const Slab& slab,
                             std::span<const std::string> texts) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(true));
  return array_->put_texts(variable, slab, texts);
}

Result<std::vector<std::string>> EngineFile::get_texts(std::size_t variable, const Slab& slab) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  if (array_ != nullptr) return array_->get_texts(variable, slab);
  const Result<std::size_t> dataset = dataset_of(variable);
  if (!dataset.ok()) return dataset.status();
  return reader_->read_texts(*dataset, slab);
}

Status EngineFile::get_all(std::span<const ReadRequest> requests) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  if (array_ != nullptr) return array_->get_all(requests);
  std::vector<ReadRequest> of_datasets(requests.begin(), requests.end());
  Status found;
  for (ReadRequest& request : of_datasets) {
    const Result<std::size_t> dataset = dataset_of(request.dataset);
    if (!dataset.ok()) found = dataset.status();
    if (dataset.ok()) request.dataset = *dataset;
  }
  // A rank that cannot say what it wants takes part without wanting anything.
  if (!found.ok()) of_datasets.clear();
  const Status read = reader_->read_all(of_datasets);
  return found.ok() ? read : found;
}

Status EngineFile::settle() {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  return array_ != nullptr ? array_->settle() : Status();
}

Status EngineFile::flush() {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  return array_ != nullptr ? array_->flush() : Status();
}

Status EngineFile::close() {
  const std::lock_guard lock(mutex_);
  Status closed;
  if (array_ != nullptr) closed = array_->close();
  if (reader_ != nullptr) closed = reader_->close();
  array_.reset();
  reader_.reset();
  return closed;
}

Status EngineFile::abort() {
  const std::lock_guard lock(mutex_);
  Status closed;
  if (array_ != nullptr) closed = array_->abort();
  if (reader_ != nullptr) closed = reader_->close();
  array_.reset();
  reader_.reset();
  return closed;
}

Result<std::vector<std::pair<std::string, double>>> EngineFile::report() {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  using Pairs = std::vector<std::pair<std::string, double>>;
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  if (reader_ != nullptr) {
    const ReadReport& report = reader_->report();
    return Pairs{{"n_slabs", number(report.n_slabs)},
                 {"value_bytes", number(report.value_bytes)},
                 {"n_chunks", number(report.n_chunks)},
                 {"n_chunk_hits", number(report.n_chunk_hits)},
                 {"decoded_bytes", number(report.decoded_bytes)},
                 {"fetched_bytes", number(report.fetched_bytes)},
                 {"n_reads", number(report.n_reads)},
                 {"received_bytes", number(report.received_bytes)},
                 {"index_s", report.index_s},
                 {"fetch_s", report.fetch_s},
                 {"decode_s", report.decode_s}};
  }
  const ArrayFileReport& report = array_->report();
  return Pairs{{"n_flushes", number(report.n_flushes)},
               {"staged_bytes", number(report.staged_bytes)},
               {"n_chunks", number(report.n_chunks)},
               {"n_chunks_merged", number(report.n_chunks_merged)},
               {"n_raw_chunks", number(report.n_raw_chunks)},
               {"raw_bytes", number(report.raw_bytes)},
               {"encoded_bytes", number(report.encoded_bytes)},
               {"lost_bytes", number(report.lost_bytes)},
               {"flush_s", report.flush_s},
               {"encode_s", report.encode_s},
               {"write_s", report.write_s}};
}

}  // namespace tailrace::python
