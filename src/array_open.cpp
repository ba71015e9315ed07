// Opening a file that exists: its model, and how each variable's dataset is stored.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "array_engine.hpp"
#include "container/chunk_index_reader.hpp"
#include "container/concat_types.hpp"
#include "layout/layout.hpp"
#include "stored_codec.hpp"
#include "stored_trz.hpp"

namespace tailrace {
namespace {

/// The pipeline of a dataset that exists. Values that it cannot keep exactly are refused, and so
/// stored raw; where the file has the other byte order, they are turned on the way.
class ExistingCodec final : public Codec {
 public:
  ExistingCodec(std::unique_ptr<StoredCodec> stored, std::size_t swapped_bytes)
      : stored_(std::move(stored)), swapped_bytes_(swapped_bytes) {}
  std::string_view name() const override { return stored_->name(); }
  std::string version() const override { return stored_->version(); }
  const std::vector<FilterSpec>& filters() const override { return stored_->filters(); }
  bool lossy() const override { return stored_->lossy(); }
  bool keeps_bound_by_construction() const override { return !stored_->lossy(); }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return stored_->encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return stored_->working_bytes(n_bytes);
  }
  Result<EncodedBytes> encode(Buffer values) const override {
    swap(values);
    return stored_->encode(std::move(values));
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    Result<Buffer> values = stored_->decode(std::move(encoded));
    if (values.ok()) swap(*values);
    return values;
  }

 private:
  void swap(Buffer& values) const {
    if (swapped_bytes_ < 2) return;
    std::byte* const end = values.data() + values.n_bytes();
    for (std::byte* at = values.data(); at + swapped_bytes_ <= end; at += swapped_bytes_) {
      std::reverse(at, at + swapped_bytes_);
    }
  }

  std::unique_ptr<StoredCodec> stored_;
  std::size_t swapped_bytes_;
};

std::string text_of(const ModelAttribute* attribute) {
  if (attribute == nullptr || attribute->type != ModelType::text_char) return "";
  return {reinterpret_cast<const char*>(attribute->values.data()), attribute->values.size()};
}

std::optional<double> number_of(const ModelAttribute* attribute) {
  if (attribute == nullptr || attribute->type != ModelType::f64 || attribute->n_values != 1) {
    return std::nullopt;
  }
  double number = 0;
  std::memcpy(&number, attribute->values.data(), sizeof number);
  return number;
}

bool same_filters(const std::vector<FilterSpec>& a, const std::vector<FilterSpec>& b) {
  const auto words = [](const FilterSpec& filter) {
    return filter.final_client_data.empty() ? filter.client_data : filter.final_client_data;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const FilterSpec& one, const FilterSpec& other) {
                      return one.filter_id == other.filter_id && words(one) == words(other);
                    });
}

}  // namespace

Status NetcdfArrayFile::start_open(Access access) {
  writable_ = access == Access::write;
  if (path_.empty()) {
    return comm_->agree(Status(Code::invalid_argument, "the file's path is empty"));
  }
  if (writable_) TAILRACE_TRY(open_output(*comm_, path_, options_.file, output_));
  in_place_ = true;
  TAILRACE_TRY(open_shared_reader());
  TAILRACE_TRY(reader_->model_status());
  model_ = reader_->model();
  for (const ModelDimension& dimension : model_.dimensions) {
    file_lengths_.push_back(dimension.length);
  }
  for (std::size_t v = 0; v < model_.variables.size(); ++v) {
    const ModelVariable& it = model_.variables[v];
    variables_.emplace_back(memory_, it.type);
    paths_.push_back(it.dataset_path.empty() ? model_.path_of(it) : it.dataset_path);
    variables_[v].growing = growing_dimensions(model_, it);
    variables_[v].fill = fill_element(it);
    TAILRACE_TRY(comm_->agree(adopt(v)));
  }
  file_paths_ = paths_;
  if (!writable_) return Status();
  Status opened;
  if (comm_->is_root()) {
    Result<std::unique_ptr<NetcdfLayout>> layout = NetcdfLayout::open(*output_.file, model_);
    opened = layout.status();
    if (layout.ok()) layout_ = std::move(*layout);
  }
  return comm_->agree(opened);
}

/// Take over what a dataset's header fixes. Alike on every rank.
Status NetcdfArrayFile::adopt(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  const Result<std::size_t> found = reader_->find(paths_[v]);
  if (!found.ok()) return found.status().within(quoted(v));
  variable.stored = std::make_shared<const StoredDataset>(reader_->datasets()[*found]);
  const StoredDataset& stored = *variable.stored;
  variable.places_known = false;
  variable.tells_max_error = false;
  variable.swapped = stored.dtype.has_value() && !decoded_type(stored.file.type);
  if (!stored.file.fill_value.empty() &&
      stored.file.fill_value.size() == variable.log.element_bytes() &&
      model_.variables[v].attribute("_FillValue") == nullptr) {
    variable.fill = stored.file.fill_value;
    if (variable.swapped) std::reverse(variable.fill.begin(), variable.fill.end());
  } else if (stored.file.fill_value.empty()) {
    variable.fill.assign(variable.fill.size(), std::byte{0});  // as HDF5 reads what is missing
  }
  FieldState& field = variable.field;
  field.definition.path = paths_[v];
  field.definition.dtype = array_dtype(variable.type).value_or(DType::u8);
  field.definition.shape = stored.shape();
  field.definition.extendable =
      std::find(variable.growing.begin(), variable.growing.end(), true) != variable.growing.end();
  field.chunk_shape = stored.file.storage.chunk_shape;
  field.layout = make_claimed_layout(FieldOptions()).value();
  field.in_file = true;
  switch (stored.file.storage.kind) {
    case StoredForm::Kind::chunked:
      variable.storage = array_dtype(variable.type) ? ArrayStorage::chunked : ArrayStorage::by_hdf5;
      break;
    case StoredForm::Kind::contiguous:
      variable.storage =
          array_dtype(variable.type) ? ArrayStorage::contiguous : ArrayStorage::by_hdf5;
      break;
    case StoredForm::Kind::compact:
    case StoredForm::Kind::nothing: variable.storage = ArrayStorage::by_hdf5; break;
  }
  return Status();
}

/// Where the opened file has the values of the variables that are touched, and how it encodes them.
/// Collective. Cost: for each such variable, once, an agreement and a sparse exchange.
Status NetcdfArrayFile::load_places(const ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    ArrayVariable& variable = variables_[v];
    if (variable.places_known || variable.storage == ArrayStorage::by_hdf5) continue;
    std::vector<StoredChunk> chunks;
    Status mine;
    if (variable.storage == ArrayStorage::chunked) mine = make_existing_codec(v);
    if (comm_->is_root() && mine.ok()) {
      Result<std::vector<StoredChunk>> found = read_chunk_index(path_, file_paths_[v]);
      mine = found.status();
      if (found.ok()) chunks = std::move(*found);
    }
    TAILRACE_TRY(comm_->agree(mine.within(quoted(v))));
    if (variable.storage == ArrayStorage::contiguous) {
      variable.address = chunks.empty() ? 0 : chunks.front().extent.address;
      comm_->allreduce(std::span<std::uint64_t>(&variable.address, 1), Reduction::max);
      // Without space yet: HDF5 takes it when it writes.
      if (variable.address == 0) variable.storage = ArrayStorage::by_hdf5;
    } else {
      // The shape in the file is that of the last flush; numbers of chunks do not depend on growth.
      const ChunkGrid grid{variable.stored->shape(), variable.field.chunk_shape};
      homes_.load(*comm_, {v, grid, ChunkNumbers(grid, variable.growing), {}}, chunks);
    }
    variable.places_known = true;
  }
  return Status();
}

Status NetcdfArrayFile::make_existing_codec(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  const ConcatDataset& dataset = variable.stored->file;
  if (variable.own_codec != nullptr) {
    if (!variable.swapped) {
      variable.field.codec = share_codec(variable.own_codec);
      return Status();
    }
    return Status(Code::unsupported, "a codec of the caller's cannot turn the file's byte order");
  }
  if (!variable.stored->dtype && variable.type != ModelType::text_char) {
    return Status(Code::unsupported,
                  "elements of type " + dataset.type_text + " cannot be written here");
  }
  if (!variable.swapped && variable.stored->dtype) {
    variable.field.codec = continued_trz_codec(dataset.storage.filters, *variable.stored->dtype,
                                               dataset.storage.chunk_shape);
    if (variable.field.codec != nullptr || continue_lossy(v)) return Status();
  }
  Result<std::unique_ptr<StoredCodec>> stored =
      make_stored_codec(dataset, dataset.storage, options_.file.plugin_path);
  if (!stored.ok()) return stored.status();
  if (variable.swapped && (*stored)->lossy()) {
    return Status(
        Code::unsupported,
        "values in another byte order cannot be written with filters that may lose digits");
  }
  variable.field.codec = std::make_unique<ExistingCodec>(
      std::move(*stored), variable.swapped ? variable.log.element_bytes() : 1);
  variable.field.verify = false;
  return Status();
}

/// Go on with a lossy plug-in where the variable's attributes name codec and bound, and what is
/// made of these is what the header has, word by word. @returns whether it is so.
bool NetcdfArrayFile::continue_lossy(std::size_t v) {
  ArrayVariable& variable = variables_[v];
  const ModelVariable& it = model_.variables[v];
  CodecRequest request;
  request.name = text_of(it.attribute("tailrace_codec"));
  const std::string mode = text_of(it.attribute("tailrace_bound_mode"));
  const std::optional<double> bound = number_of(it.attribute("tailrace_absolute_bound"));
  if (request.name != "sz3" && request.name != "zfp" && request.name != "sperr") return false;
  if (mode != "abs" && mode != "rel" && mode != "psnr") return false;
  if (!bound || !(*bound > 0) || !std::isfinite(*bound)) return false;
  const ConcatDataset& dataset = variable.stored->file;
  request.dtype = *variable.stored->dtype;
  if (!is_floating(request.dtype)) return false;
  request.chunk_shape = dataset.storage.chunk_shape;
  request.absolute_bound = *bound;
  if (!it.no_fill) request.fill_value = element_number(it.type, variable.fill);
  Result<std::unique_ptr<Codec>> codec = make_codec(request, options_.file.plugin_path);
  if (!codec.ok() || !same_filters((*codec)->filters(), dataset.storage.filters)) return false;
  FieldState& field = variable.field;
  field.codec = std::move(*codec);
  field.absolute_bound = *bound;
  field.definition.options.fill_value = request.fill_value;
  field.verify = !field.codec->keeps_bound_by_construction();
  const std::optional<double> max_error = number_of(it.attribute("tailrace_max_error"));
  variable.tells_max_error = max_error.has_value();
  field.max_error = max_error.value_or(0);
  return true;
}

}  // namespace tailrace
