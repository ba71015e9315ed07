// Stages of a read: the list of datasets (describe/stored_file); addresses of chunks (read_index);
// finding, fetching, decoding, caching and prefetching the chunks of a slab (read_chunks); and
// chunks that several ranks want (read_shared).
//
// Invariant 1: a rank that fails in a collective call still takes part in all of it, and every rank
// returns the same error.
// Invariant 2: a prepared dataset lives until refresh() or the end, after all work that was begun
// ahead.

#include "read/read.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "core/checked_product.hpp"
#include "core/comm.hpp"
#include "core/utf8.hpp"
#include "describe/stored_file.hpp"
#include "hdf5/one_file.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace {
namespace {

/// Most datasets of a file in which a misspelt path is compared with all.
constexpr std::size_t kMostToSuggest = 1000;

}  // namespace

Reader::Reader(std::unique_ptr<Comm> comm, std::string path, const ReadOptions& options)
    : comm_(std::move(comm)), path_(std::move(path)), options_(options) {
  chunks_ = std::make_unique<ChunkReader>(options_, n_decode_threads(*comm_, options_));
}

Reader::~Reader() {
  // This rank may be the only one here: objects that only all ranks can free stay.
  if (!closed_) chunks_->abandon();
  chunks_.reset();
  if (!closed_) comm_->abandon();
}

Status Reader::open_everywhere() {
  TAILRACE_TRY(list());
  // A file that this job writes was checked when it was opened for that.
  return options_.own_output ? Status() : check_one_file(*comm_, path_);
}

Status Reader::list() {
  Status listed;
  Bytes packed;
  model_ = NetcdfModel();
  model_status_ = Status();
  if (comm_->is_root()) {
    listed = open_file();
    if (listed.ok()) {
      const Result<DatasetList> list = file_->list(CatalogDetail::storage);
      listed = list.status();
      if (listed.ok()) packed = pack_dataset_list(*list);
      // Datasets can be read without a model; callers that need it check its status.
      Result<NetcdfModel> model = read_netcdf_model(file_->hdf5_id());
      model_status_ = model.status();
      if (model.ok()) model_ = std::move(*model);
    }
  }
  TAILRACE_TRY(agree_with_root(*comm_, listed));
  comm_->broadcast(packed, 0);
  TAILRACE_TAKE(DatasetList list, comm_->agree(unpack_dataset_list(packed)));
  Bytes model;
  if (comm_->is_root()) model = pack_model(model_);
  comm_->broadcast(model, 0);
  model_ = unpack_model(model);
  model_status_ = agree_with_root(*comm_, model_status_);
  list_ = std::move(list);
  by_path_.clear();
  for (std::size_t i = 0; i < list_.datasets.size(); ++i) {
    by_path_.emplace(list_.datasets[i].path, i);
  }
  attributes_by_path_.clear();
  for (const ModelGroup& group : model_.groups) {
    attributes_by_path_.emplace(group.path, &group.attributes);
  }
  for (const ModelVariable& variable : model_.variables) {
    attributes_by_path_.emplace(variable.dataset_path, &variable.attributes);
    attributes_by_path_.emplace(model_.path_of(variable), &variable.attributes);
  }
  return Status();
}

Result<std::size_t> Reader::find(const std::string& path) const {
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) return found->second;
  const std::optional<std::size_t> alias = list_.find(path);
  if (alias) return *alias;
  std::string hint;
  if (by_path_.size() <= kMostToSuggest) {
    std::vector<std::string_view> paths;
    for (const StoredDataset& dataset : list_.datasets) paths.push_back(dataset.path);
    hint = did_you_mean(path, paths);
  }
  return Status(Code::not_found,
                "file \"" + path_ + "\": dataset \"" + path + "\" does not exist" + hint);
}

// --- attributes

Result<std::span<const ModelAttribute>> Reader::attributes(const std::string& object_path) const {
  TAILRACE_TRY(model_status_);
  auto found = attributes_by_path_.find(object_path);
  if (found == attributes_by_path_.end()) {
    // A further link to a dataset; otherwise the error of find() names the object.
    TAILRACE_TAKE(const std::size_t dataset, find(object_path));
    found = attributes_by_path_.find(list_.datasets[dataset].path);
  }
  if (found == attributes_by_path_.end()) {
    return Status(Code::unsupported, "file \"" + path_ + "\": the attributes of \"" + object_path +
                                         "\" cannot be read; netCDF-4 has no such object");
  }
  return std::span<const ModelAttribute>(*found->second);
}

Result<const ModelAttribute*> Reader::attribute(const std::string& object_path,
                                                const std::string& name) const {
  TAILRACE_TAKE(const auto all, attributes(object_path));
  std::vector<std::string_view> names;
  for (const ModelAttribute& each : all) {
    if (each.name == name) return &each;
    names.push_back(each.name);
  }
  return Status(Code::not_found, "file \"" + path_ + "\": attribute \"" + name + "\" of \"" +
                                     object_path + "\" does not exist" + did_you_mean(name, names));
}

// --- steps

namespace {

bool grows_by_steps(const StoredDataset& dataset) {
  return !dataset.max_shape.empty() && dataset.max_shape.front() == UINT64_MAX;
}

}  // namespace

std::uint64_t Reader::n_steps() const {
  std::optional<std::uint64_t> least;
  for (const StoredDataset& dataset : list_.datasets) {
    if (!grows_by_steps(dataset)) continue;
    least = std::min(least.value_or(UINT64_MAX), dataset.shape.front());
  }
  return least.value_or(0);
}

Result<std::uint64_t> Reader::n_steps(const std::string& path) const {
  TAILRACE_TAKE(const std::size_t number, find(path));
  const StoredDataset& dataset = list_.datasets[number];
  if (grows_by_steps(dataset)) return dataset.shape.front();
  return Status(Code::invalid_argument,
                dataset_text(number) +
                    ": has no steps, because its first dimension is not unlimited; read it as a "
                    "whole");
}

Result<ReadRequest> Reader::step_request(const std::string& path, std::uint64_t step,
                                         const std::uint64_t* start, const std::uint64_t* count,
                                         std::span<std::byte> values) const {
  TAILRACE_TAKE(const std::uint64_t n, n_steps(path));
  TAILRACE_TAKE(const std::size_t number, find(path));
  if (step >= n) {
    return Status(Code::invalid_argument, dataset_text(number) + ": step " + std::to_string(step) +
                                              " does not exist; it has " + counted(n, "step") +
                                              ", counted from 0");
  }
  const Shape& shape = list_.datasets[number].shape;
  Slab slab;
  slab.start = {step};
  slab.count = {1};
  for (std::size_t d = 1; d < shape.size(); ++d) {
    slab.start.push_back(start == nullptr ? 0 : start[d - 1]);
    const std::uint64_t rest = shape[d] - std::min(shape[d], slab.start[d]);
    slab.count.push_back(count == nullptr ? rest : count[d - 1]);
  }
  std::uint64_t n_bytes = 0;
  TAILRACE_TRY(check_slab_of(number, slab, n_bytes));
  if (n_bytes != values.size()) {
    return Status(Code::invalid_argument, dataset_text(number) + ": the part of the step has " +
                                              std::to_string(n_bytes) + " bytes, the buffer has " +
                                              std::to_string(values.size()));
  }
  return ReadRequest{number, std::move(slab), values.data()};
}

Status Reader::open_index(std::span<const std::size_t> datasets) {
  Status mine;
  for (const std::size_t number : datasets) {
    if (mine.ok()) mine = check_number(number);
  }
  TAILRACE_TRY(comm_->agree(mine));
  for (const std::size_t number : datasets) {
    if (!by_chunks(number)) continue;
    ReadDataset* dataset = nullptr;
    TAILRACE_TRY(chunks_->prepare(number, list_.datasets[number], dataset));  // Same on all ranks.
    TAILRACE_TRY(open_index_of(*dataset));
  }
  return Status();
}

Status Reader::read(std::size_t number, const Slab& slab, std::span<std::byte> values,
                    double abs_bound) {
  if (!(abs_bound >= 0)) {
    return Status(Code::invalid_argument, "the bound is negative or NaN, expected >= 0");
  }
  std::uint64_t n_bytes = 0;
  TAILRACE_TRY(check_slab_of(number, slab, n_bytes));
  if (n_bytes != values.size()) {
    return Status(Code::invalid_argument, dataset_text(number) + ": slab " + slab_text(slab) +
                                              " has " + std::to_string(n_bytes) +
                                              " bytes, the buffer has " +
                                              std::to_string(values.size()));
  }
  ++report_.n_slabs;
  if (slab.empty()) return Status();
  report_.value_bytes += n_bytes;
  TAILRACE_TRY(open_file());
  return chunks_->read(*file_, number, list_.datasets[number], slab, values, abs_bound);
}

Result<std::vector<std::string>> Reader::read_texts(std::size_t number, const Slab& slab) {
  TAILRACE_TRY(check_number(number));
  const Status fits = check_slab(slab, list_.datasets[number].shape);
  if (!fits.ok()) return fits.within(dataset_text(number));
  TAILRACE_TRY(open_file());
  return file_->read_texts(list_.datasets[number], slab);
}

Status Reader::use_codec(std::size_t number, std::shared_ptr<const Codec> codec) {
  TAILRACE_TRY(check_number(number));
  if (!list_.datasets[number].chunked()) return Status();
  ReadDataset* dataset = nullptr;
  TAILRACE_TRY(chunks_->prepare(number, list_.datasets[number], dataset));
  if (dataset->codec == codec) return Status();
  chunks_->forget();  // Values that another codec has decoded.
  dataset->codec = std::move(codec);
  dataset->reads_ahead = false;  // The caller expects its codec's calls within its own.
  return Status();
}

Status Reader::read_all(std::span<const ReadRequest> requests) {
  Status mine;
  for (const ReadRequest& request : requests) {
    if (mine.ok()) mine = check_request(request);
  }
  if (mine.ok() && !requests.empty()) mine = open_file();
  // A rank that fails here requests nothing, but takes part.
  if (!mine.ok()) requests = {};
  TAILRACE_TRY(open_wanted_indexes(requests));
  Result<WantedChunks> wanted = wanted_chunks(requests);
  if (mine.ok()) mine = wanted.status();
  SharedRead together(*comm_, chunks_->all_prepared(), requests,
                      wanted.ok() ? std::move(*wanted) : WantedChunks());
  const Status assigned = comm_->n_ranks() > 1 ? together.assign_decoders() : Status();
  if (mine.ok()) mine = assigned;
  for (const ReadRequest& request : requests) {
    if (mine.ok()) mine = read_unshared(request, together);
  }
  if (comm_->n_ranks() > 1) mine = together.run(*chunks_, file_.get(), mine);
  report_.received_bytes += together.received_bytes();
  return comm_->agree(mine);
}

Status Reader::refresh() {
  chunks_->forget_all();
  file_.reset();
  return list();
}

const ReadReport& Reader::report() const {
  const ReadCounts& counts = chunks_->counts();
  report_.n_chunks = counts.n_chunks;
  report_.n_chunk_hits = counts.n_chunk_hits;
  report_.decoded_bytes = counts.decoded_bytes;
  report_.fetched_bytes = counts.fetched_bytes;
  report_.n_reads = counts.n_reads;
  report_.fetch_s = double(counts.fetch_ns) * 1e-9;
  report_.decode_s = double(counts.decode_ns) * 1e-9;
  return report_;
}

Status Reader::close() {
  chunks_->forget_all();
  file_.reset();
  closed_ = true;
  return Status();
}

std::string Reader::dataset_text(std::size_t number) const {
  return "dataset \"" + list_.datasets[number].path + "\"";
}

Status Reader::check_number(std::size_t number) const {
  if (closed_) return Status(Code::invalid_argument, "file \"" + path_ + "\" is closed");
  if (number < list_.datasets.size()) return Status();
  return Status(Code::invalid_argument, "file \"" + path_ + "\": dataset number " +
                                            std::to_string(number) +
                                            " does not exist; the file has " +
                                            std::to_string(list_.datasets.size()) + " datasets");
}

Status Reader::check_slab_of(std::size_t number, const Slab& slab, std::uint64_t& n_bytes) const {
  TAILRACE_TRY(check_number(number));
  const Status fits = check_slab(slab, list_.datasets[number].shape);
  if (!fits.ok()) return fits.within(dataset_text(number));
  const std::uint64_t n = slab.n_elements();
  if (n == UINT64_MAX || !multiply_checked(n, list_.datasets[number].value_bytes(), n_bytes)) {
    return Status(Code::invalid_argument,
                  dataset_text(number) + ": slab " + slab_text(slab) + " exceeds 2^64 bytes");
  }
  return Status();
}

Status Reader::check_request(const ReadRequest& request) const {
  std::uint64_t n_bytes = 0;
  TAILRACE_TRY(check_slab_of(request.dataset, request.slab, n_bytes));
  if (n_bytes == 0 || request.values != nullptr) return Status();
  return Status(Code::invalid_argument, dataset_text(request.dataset) + ": the buffer for slab " +
                                            slab_text(request.slab) + " is NULL");
}

bool Reader::by_chunks(std::size_t number) const {
  const StoredDataset& listed = list_.datasets[number];
  return !listed.by_hdf5() && listed.chunked() && n_elements(listed.shape) > 0;
}

Status Reader::open_wanted_indexes(std::span<const ReadRequest> requests) {
  std::vector<std::uint64_t> bits(list_.datasets.size() / 64 + 1, 0);
  for (const ReadRequest& request : requests) {
    if (request.slab.empty() || !by_chunks(request.dataset)) continue;
    bits[request.dataset / 64] |= std::uint64_t{1} << request.dataset % 64;
  }
  // A single rank reads a complete index only once look-ups have cost as much.
  if (comm_->n_ranks() > 1) comm_->allreduce(std::span(bits), Reduction::bit_or);
  for (std::size_t number = 0; number < list_.datasets.size(); ++number) {
    if ((bits[number / 64] >> number % 64 & 1) == 0) continue;
    ReadDataset* dataset = nullptr;
    // Same on all ranks: it only depends on the list.
    TAILRACE_TRY(chunks_->prepare(number, list_.datasets[number], dataset));
    if (comm_->n_ranks() == 1) continue;
    TAILRACE_TRY(open_index_of(*dataset));
  }
  return Status();
}

Status Reader::open_index_of(ReadDataset& dataset) {
  const auto start = std::chrono::steady_clock::now();
  const Status opened = dataset.index.open(*comm_, file_.get(), *dataset.listed, dataset.n_chunks);
  report_.index_s +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return opened;
}

Result<WantedChunks> Reader::wanted_chunks(std::span<const ReadRequest> requests) {
  WantedChunks wanted;
  if (comm_->n_ranks() == 1) return wanted;
  std::vector<std::uint64_t> batch;
  std::vector<StoredChunk> stored;
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    const ReadRequest& request = requests[i];
    if (request.slab.empty() || !by_chunks(request.dataset)) continue;
    ReadDataset& dataset = chunks_->prepared(request.dataset);
    if (chunks_->reads_parts(dataset, request.slab)) continue;
    TouchedChunks touched(dataset.grid, request.slab);
    while (true) {
      touched.next(65536, batch);
      if (batch.empty()) break;
      TAILRACE_TRY(dataset.index.find(*file_, *dataset.listed, dataset.n_chunks, batch, stored));
      for (const StoredChunk& chunk : stored) {
        if (chunk.extent.encoded_bytes == 0) continue;
        wanted[{request.dataset, chunk.chunk_index}].push_back(i);
      }
    }
  }
  return wanted;
}

Status Reader::read_unshared(const ReadRequest& request, const SharedRead& together) {
  const std::uint64_t n_bytes =
      request.slab.n_elements() * list_.datasets[request.dataset].value_bytes();
  if (comm_->n_ranks() == 1 || n_bytes == 0 || !by_chunks(request.dataset)) {
    return read(request.dataset, request.slab, {request.values, n_bytes});
  }
  ++report_.n_slabs;
  report_.value_bytes += n_bytes;
  ReadDataset& dataset = chunks_->prepared(request.dataset);
  // Its chunks were not announced, but other ranks may share them.
  if (chunks_->reads_parts(dataset, request.slab)) {
    return chunks_->read(*file_, dataset, request.slab, request.values);
  }
  return chunks_->read(*file_, dataset, request.slab, request.values,
                       [&](std::uint64_t chunk_index) {
                         return together.shared({request.dataset, chunk_index});
                       });
}

Status Reader::open_file() {
  if (file_ != nullptr) return Status();
  TAILRACE_TAKE(file_, StoredFile::open(path_, other_files_of(options_), options_.own_output));
  return Status();
}

Result<std::unique_ptr<Reader>> Reader::open(std::unique_ptr<Comm> comm, const std::string& path,
                                             const ReadOptions& options) {
  std::unique_ptr<Reader> reader(new Reader(std::move(comm), path, options));
  const Status listed = reader->open_everywhere();
  if (listed.ok()) return reader;
  static_cast<void>(reader->close());  // close() is possible, since all ranks have failed.
  return listed;
}

}  // namespace tailrace
