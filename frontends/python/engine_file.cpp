// Opens, reads, writes and closes files under one lock; edits a model.

#include "python/engine_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "array/array_variable.hpp"
#include "core/byte_order.hpp"
#include "describe/input_bytes.hpp"
#include "exec/comm_factory.hpp"
#include "filters/own_filters.hpp"
#include "hdf5/dataset_schema.hpp"
#include "hdf5/one_file.hpp"
#include "output/output.hpp"
#include "read/read_padded.hpp"

namespace tailrace::python {
namespace {

VariableStorage storage_of(const StoredDataset& dataset) {
  VariableStorage storage;
  switch (dataset.storage.kind) {
    case StoredForm::Kind::nothing: storage.kind = "nothing"; break;
    case StoredForm::Kind::compact: storage.kind = "compact"; break;
    case StoredForm::Kind::contiguous: storage.kind = "contiguous"; break;
    case StoredForm::Kind::chunked: storage.kind = "chunked"; break;
  }
  storage.type_text = dataset.type_text;
  // The reader converts numbers of other sizes or precisions, such as half, to these.
  storage.type_description =
      dataset.dtype ? describe_type(encoded_type(*dataset.dtype)) : describe_type(dataset.type);
  storage.chunk_shape = dataset.storage.chunk_shape;
  storage.filters = dataset.storage.filters;
  storage.plain_number = dataset.plain_number;
  storage.swapped = dataset.swapped;
  storage.elsewhere = dataset.foreign;
  storage.plain_edges = dataset.plain_edges;
  if (dataset.contiguous.encoded_bytes > 0) storage.data_address = dataset.contiguous.address;
  return storage;
}

Status no_such_variable(std::size_t variable) {
  return Status(Code::internal, "variable number " + std::to_string(variable) + " does not exist");
}

}  // namespace

EngineFile::EngineFile(std::string path) : path_(std::move(path)), pid_(::getpid()) {}

EngineFile::~EngineFile() {
  if (is_parents()) (void)array_.release();
}

bool EngineFile::is_parents() const { return array_ != nullptr && pid_ != ::getpid(); }

Result<std::unique_ptr<EngineFile>> EngineFile::open(Opening opening) {
  // Make Tailrace's files readable without plug-ins.
  TAILRACE_TRY(hdf5::register_own_filters());
  if (opening.comm == nullptr) opening.comm = make_self_comm();
  std::unique_ptr<EngineFile> file(new EngineFile(opening.path));
  TAILRACE_TRY(opening.mode == 'r' ? file->open_for_reading(std::move(opening))
                                   : file->open_for_writing(std::move(opening)));
  return file;
}

Status EngineFile::open_for_reading(Opening opening) {
  ReadOptions options;
  // Either all ranks continue or none.
  TAILRACE_TRY(opening.comm->agree(apply_read_options(opening.options, options)));
  if (options.plugin_path.empty()) options.plugin_path = opening.plugin_path;
  TAILRACE_TAKE(auto reader, Reader::open(std::move(opening.comm), opening.path, options));
  TAILRACE_TRY(reader->model_status());
  reader_ = std::move(reader);
  return Status();
}

Status EngineFile::open_for_writing(Opening opening) {
  ArrayFileOptions options;
  const Status mine = apply_glob_options(opening.options, options);
  if (options.file.plugin_path.empty()) options.file.plugin_path = opening.plugin_path;
  if (options.read.plugin_path.empty()) options.read.plugin_path = opening.plugin_path;
  options.file.replace = opening.mode == 'w';
  bool creates = opening.mode != 'a';
  if (!creates) {
    TAILRACE_TAKE(const bool exists, Output::recover(*opening.comm, opening.path, mine));
    creates = !exists;
  }
  TAILRACE_TAKE(array_,
                creates ? ArrayFile::create(std::move(opening.comm), opening.path, options, mine)
                        : ArrayFile::open(std::move(opening.comm), opening.path,
                                          ArrayFile::Access::write, options, mine));
  return Status();
}

Status EngineFile::check_open(bool to_write) const {
  if (!is_open()) return Status(Code::invalid_argument, path_ + " is closed");
  if (is_parents()) {
    return Status(Code::invalid_argument,
                  path_ + " was opened before fork(); only the parent process can write it");
  }
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

Result<std::vector<std::string>> EngineFile::remarks() {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  std::vector<std::string> remarks;
  for (const std::string& remark : model_now().remarks) {
    remarks.push_back(std::string(path_).append(": ").append(remark));
  }
  // A remark is, for example, that the lock of a dead job was taken over.
  if (array_ != nullptr && !array_->remark().empty()) remarks.push_back(array_->remark());
  return remarks;
}

std::vector<std::string> EngineFile::take_remarks() {
  const std::lock_guard lock(mutex_);
  return array_ != nullptr ? array_->take_remarks() : std::exchange(last_remarks_, {});
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

Result<bool> EngineFile::try_variable(const std::function<Status(NetcdfModel&)>& add,
                                      const std::string& options) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(true));
  NetcdfModel next = array_->model();
  TAILRACE_TRY(add(next));
  return array_->try_variable(next, options);
}

Result<bool> EngineFile::may_lose(std::size_t variable) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  return array_ == nullptr ? Result<bool>(false) : array_->may_lose(variable);
}

Result<std::size_t> EngineFile::dataset_of(std::size_t variable) const {
  const NetcdfModel& model = reader_->model();
  if (variable >= model.variables.size()) return no_such_variable(variable);
  return reader_->find(model.variables[variable].dataset_path);
}

Result<std::size_t> EngineFile::dataset_of(std::size_t variable, const Slab& slab) const {
  TAILRACE_TAKE(const std::size_t dataset, dataset_of(variable));
  const NetcdfModel& model = reader_->model();
  const ModelVariable& it = model.variables[variable];
  TAILRACE_TRY(
      check_slab(slab, model.shape_of(it)).within("variable \"" + model.path_of(it) + "\""));
  return dataset;
}

/// Return one element in native byte order, the value of elements that the dataset lacks.
Bytes EngineFile::fill_of(std::size_t variable, std::size_t dataset) const {
  const StoredDataset& stored = reader_->datasets()[dataset];
  const std::size_t n_bytes = stored.value_bytes();
  Bytes fill = stored.fill_value;
  if (fill.empty()) return Bytes(n_bytes);
  // The file's numbers differ in size from those in memory.
  if (fill.size() != n_bytes) return fill_element(reader_->model().variables[variable]);
  if (stored.swapped) swap_elements(fill, n_bytes);
  return fill;
}

Result<std::optional<VariableStorage>> EngineFile::storage(std::size_t variable) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  if (reader_ != nullptr) {
    TAILRACE_TAKE(const std::size_t dataset, dataset_of(variable));
    return std::optional<VariableStorage>(storage_of(reader_->datasets()[dataset]));
  }
  if (variable >= array_->model().variables.size()) return no_such_variable(variable);
  // Staged values are not in a file, and a new file's name may belong to the one that it replaces.
  if (!array_->in_place()) return std::optional<VariableStorage>();
  see_last_commit(array_->comm(), path_);
  TAILRACE_TAKE(std::unique_ptr<Reader> reader, Reader::open(make_self_comm(), path_));
  const Result<std::size_t> dataset =
      reader->find(array_->model().variables[variable].dataset_path);
  if (!dataset.ok()) return std::optional<VariableStorage>();
  return std::optional<VariableStorage>(storage_of(reader->datasets()[*dataset]));
}

Status EngineFile::put(std::size_t variable, const Slab& slab, std::span<const std::byte> values) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(true));
  return array_->put(variable, slab, values);
}

Status EngineFile::get(std::size_t variable, const Slab& slab, std::span<std::byte> values,
                       double abs_bound) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  if (array_ != nullptr) return array_->get(variable, slab, values);
  TAILRACE_TAKE(const std::size_t dataset, dataset_of(variable, slab));
  return read_padded(*reader_, dataset, slab, fill_of(variable, dataset), values, abs_bound);
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
  TAILRACE_TAKE(const std::size_t dataset, dataset_of(variable, slab));
  return read_texts_padded(*reader_, dataset, slab);
}

/// Check the length of a request's memory. Variables without numbers are refused elsewhere.
Status EngineFile::check_room(const ReadRequest& request, std::size_t n_bytes) const {
  std::uint64_t element_bytes = 0;
  if (reader_ != nullptr) {
    TAILRACE_TAKE(const std::size_t dataset, dataset_of(request.dataset));
    element_bytes = reader_->datasets()[dataset].value_bytes();
  } else if (request.dataset < array_->model().variables.size()) {
    element_bytes = model_type_bytes(array_->model().variables[request.dataset].type);
  }
  const std::uint64_t wanted = request.slab.n_elements() * element_bytes;
  if (n_bytes >= wanted) return Status();
  return Status(Code::invalid_argument, "the array has " + std::to_string(n_bytes) +
                                            " bytes, the selection " + std::to_string(wanted));
}

Status EngineFile::get_all(std::span<const ReadRequest> requests,
                           std::span<const std::size_t> n_bytes) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  Comm& comm = array_ != nullptr ? array_->comm() : reader_->comm();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Status fits = check_room(requests[i], n_bytes[i]);
    // Take part in the first agreement of the other ranks' read.
    if (!fits.ok()) return comm.agree(fits);
  }
  if (array_ != nullptr) return array_->get_all(requests);
  PaddedReads reads;
  TAILRACE_TRY(reader_->comm().agree(local_part([&]() -> Status {
    for (const ReadRequest& request : requests) {
      TAILRACE_TAKE(const std::size_t dataset, dataset_of(request.dataset, request.slab));
      reads.add(*reader_, {dataset, request.slab, request.values},
                fill_of(request.dataset, dataset));
    }
    return Status();
  })));
  return reads.read_all(*reader_);
}

Status EngineFile::fail_get_all(const std::string& why) {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  Comm& comm = array_ != nullptr ? array_->comm() : reader_->comm();
  return comm.agree(Status(Code::invalid_argument, why));
}

Status EngineFile::end_collective_put() {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  return array_ != nullptr ? array_->end_collective_put() : Status();
}

Status EngineFile::flush() {
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  return array_ != nullptr ? array_->flush() : Status();
}

Status EngineFile::close() {
  const std::lock_guard lock(mutex_);
  if (is_parents()) return check_open(true);
  Status closed;
  if (array_ != nullptr) {
    closed = array_->close();
    last_remarks_ = array_->take_remarks();
  }
  if (reader_ != nullptr) closed = reader_->close();
  array_.reset();
  reader_.reset();
  return closed;
}

Status EngineFile::abort() {
  const std::lock_guard lock(mutex_);
  if (is_parents()) return check_open(true);
  Status closed;
  if (array_ != nullptr) closed = array_->abort();
  if (reader_ != nullptr) closed = reader_->close();
  array_.reset();
  reader_.reset();
  return closed;
}

Result<std::variant<ReadReport, ArrayFileReport>> EngineFile::report() {
  using Report = std::variant<ReadReport, ArrayFileReport>;
  const std::lock_guard lock(mutex_);
  TAILRACE_TRY(check_open(false));
  return reader_ != nullptr ? Report(reader_->report()) : Report(array_->report());
}

// --- edits of a model

namespace {

/// Return the list itself; null if the position does not exist.
std::vector<ModelAttribute>* list_of(NetcdfModel& model, Owner owner, std::size_t position) {
  if (owner == Owner::group) {
    return position < model.groups.size() ? &model.groups[position].attributes : nullptr;
  }
  return position < model.variables.size() ? &model.variables[position].attributes : nullptr;
}

Status no_position(const char* what, std::size_t position) {
  return Status(Code::not_found,
                std::string(what) + " number " + std::to_string(position) + " does not exist");
}

Status no_owner(Owner owner, std::size_t position) {
  return no_position(owner == Owner::group ? "group" : "variable", position);
}

auto find_named(std::vector<ModelAttribute>& list, const std::string& name) {
  return std::ranges::find(list, name, &ModelAttribute::name);
}

}  // namespace

ModelEdit add_group(const std::string& path) {
  return [path](NetcdfModel& model) -> Status {
    const std::size_t slash = path.rfind('/');
    if (path.size() < 2 || path[0] != '/' || slash + 1 == path.size()) {
      return Status(Code::invalid_argument, "group \"" + path + "\": expected a path such as /g/h");
    }
    if (model.find_group(path)) {
      return Status(Code::already_exists, "group \"" + path + "\" already exists");
    }
    const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
    const std::optional<std::size_t> found = model.find_group(parent);
    if (!found) return Status(Code::not_found, "group \"" + parent + "\" does not exist");
    model.groups.push_back({path, *found, {}});
    return Status();
  };
}

ModelEdit add_dimension(std::size_t group, const std::string& name, std::uint64_t length,
                        bool unlimited) {
  return [=](NetcdfModel& model) -> Status {
    if (group >= model.groups.size()) return no_position("group", group);
    ModelDimension dimension;
    dimension.name = name;
    dimension.group = group;
    dimension.length = length;
    dimension.unlimited = unlimited;
    model.dimensions.push_back(std::move(dimension));
    return Status();
  };
}

ModelEdit add_variable(std::size_t group, const std::string& name, ModelType type,
                       const std::vector<std::size_t>& dimensions,
                       const std::optional<std::string>& fill) {
  return [=](NetcdfModel& model) -> Status {
    if (group >= model.groups.size()) return no_position("group", group);
    for (const std::size_t dimension : dimensions) {
      if (dimension >= model.dimensions.size()) return no_position("dimension", dimension);
    }
    ModelVariable variable;
    variable.name = name;
    variable.group = group;
    variable.type = type;
    variable.dimensions = dimensions;
    if (fill) {
      ModelAttribute attribute;
      attribute.name = "_FillValue";
      attribute.type = type;
      attribute.n_values = 1;
      if (type == ModelType::text) {
        attribute.texts = {*fill};
      } else {
        attribute.values.resize(fill->size());
        if (!fill->empty()) std::memcpy(attribute.values.data(), fill->data(), fill->size());
      }
      variable.attributes.push_back(std::move(attribute));
    }
    model.variables.push_back(std::move(variable));
    return Status();
  };
}

ModelEdit set_attribute(Owner owner, std::size_t position, const ModelAttribute& attribute) {
  return [=](NetcdfModel& model) -> Status {
    std::vector<ModelAttribute>* list = list_of(model, owner, position);
    if (list == nullptr) return no_owner(owner, position);
    const auto found = find_named(*list, attribute.name);
    if (found != list->end()) {
      *found = attribute;
    } else {
      list->push_back(attribute);
    }
    return Status();
  };
}

ModelEdit delete_attribute(Owner owner, std::size_t position, const std::string& name) {
  return [=](NetcdfModel& model) -> Status {
    std::vector<ModelAttribute>* list = list_of(model, owner, position);
    if (list == nullptr) return no_owner(owner, position);
    const auto found = find_named(*list, name);
    if (found == list->end()) {
      return Status(Code::not_found, "attribute \"" + name + "\" does not exist");
    }
    list->erase(found);
    return Status();
  };
}

ModelEdit rename_dimension(std::size_t dimension, const std::string& name) {
  return [=](NetcdfModel& model) -> Status {
    if (dimension >= model.dimensions.size()) return no_position("dimension", dimension);
    model.dimensions[dimension].name = name;
    return Status();
  };
}

ModelEdit rename_variable(std::size_t variable, const std::string& name) {
  return [=](NetcdfModel& model) -> Status {
    if (variable >= model.variables.size()) return no_position("variable", variable);
    model.variables[variable].name = name;
    return Status();
  };
}

Result<std::vector<ModelAttribute>> attributes_of(const NetcdfModel& model, Owner owner,
                                                  std::size_t position) {
  const bool known =
      owner == Owner::group ? position < model.groups.size() : position < model.variables.size();
  if (!known) return no_owner(owner, position);
  return owner == Owner::group ? model.groups[position].attributes
                               : model.variables[position].attributes;
}

}  // namespace tailrace::python
