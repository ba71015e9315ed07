// The five steps of section 3 of Lee et al. 2022: distribute the files, collect their rows, create
// the output, create the datasets, copy the datasets. A dataset is copied by reading the rows of
// the rank's files into one buffer and writing the buffer in one collective call.
//
// Settings of section 8: inputs in memory (core driver), POSIX reads, collective creation and
// writes. Chunks are of 1 MiB for columns and of 128 rows for images; empty datasets are
// contiguous. The metadata cache is fixed at 128 MiB, metadata blocks are of 4 MiB, metadata
// operations are collective. Fill values are never written, as in the bench's other rows.
//
// A rank whose reading fails continues with the buffer's content, so that every rank takes part in
// every collective call. All ranks return the failure at the end.

#include "concat_hdf5.hpp"

#include <hdf5.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "exec/comm_factory.hpp"
#include "hdf5/hdf5_compat.hpp"

#if TAILRACE_BENCH_NATIVE_PARALLEL
#include <mpi.h>
#endif

namespace tailrace::bench {

#if TAILRACE_BENCH_NATIVE_PARALLEL
namespace {

constexpr std::size_t kMetadataCacheBytes = 128 << 20;
constexpr hsize_t kMetadataBlockBytes = 4 << 20;

enum Stage : std::size_t { open, create, read, write, close, sync };

/// One dataset of the schema, from the rank's first file.
struct Dataset {
  std::string path;
  Hdf5Id type;
  std::vector<hsize_t> shape;  ///< [0]: rows in the file from which it was listed.
  std::uint64_t row_bytes = 0;
};

/// Lists the datasets below a group, depth-first in order of names.
class Listing {
 public:
  explicit Listing(std::vector<Dataset>& datasets) : datasets_(datasets) {}

  Status list(hid_t group, const std::string& path) {
    const std::string outer = std::exchange(path_, path);
    if (iterate_links(group, H5_INDEX_NAME, visit_link, this) < 0 && failure_.ok()) {
      failure_ = hdf5_failure(Code::corrupt, "listing \"" + path + "/\"");
    }
    path_ = outer;
    return failure_;
  }

 private:
  static herr_t visit_link(hid_t group, const char* name, const LinkInfo*, void* data) {
    auto& self = *static_cast<Listing*>(data);
    self.failure_ = self.add(group, name);
    return self.failure_.ok() ? 0 : -1;
  }

  Status add(hid_t group, const char* name) {
    const std::string path = path_ + "/" + name;
    const Hdf5Id object(H5Oopen(group, name, H5P_DEFAULT));
    if (!object.valid()) return hdf5_failure(Code::corrupt, "opening \"" + path + "\"");
    const H5I_type_t kind = H5Iget_type(object.get());
    if (kind == H5I_GROUP) return list(object.get(), path);
    if (kind != H5I_DATASET) return Status();
    Dataset dataset;
    dataset.path = path;
    dataset.type = Hdf5Id(H5Dget_type(object.get()));
    const Hdf5Id space(H5Dget_space(object.get()));
    const int n_dimensions = H5Sget_simple_extent_ndims(space.get());
    if (!dataset.type.valid() || n_dimensions < 0) {
      return hdf5_failure(Code::corrupt, "reading the shape of \"" + path + "\"");
    }
    if (n_dimensions < 1 || H5Tdetect_class(dataset.type.get(), H5T_VLEN) > 0 ||
        H5Tis_variable_str(dataset.type.get()) > 0) {
      return Status(Code::unsupported,
                    "\"" + path + "\": expected a dataset with rows of fixed-size elements");
    }
    dataset.shape.resize(static_cast<std::size_t>(n_dimensions));
    H5Sget_simple_extent_dims(space.get(), dataset.shape.data(), nullptr);
    dataset.row_bytes = H5Tget_size(dataset.type.get());
    for (std::size_t d = 1; d < dataset.shape.size(); ++d) dataset.row_bytes *= dataset.shape[d];
    datasets_.push_back(std::move(dataset));
    return Status();
  }

  std::vector<Dataset>& datasets_;
  std::string path_;
  Status failure_;
};

bool same_kind(const Dataset& a, const Dataset& b) {
  return a.path == b.path && a.row_bytes == b.row_bytes &&
         std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1, b.shape.end()) &&
         H5Tequal(a.type.get(), b.type.get()) > 0;
}

/// FNV-1a over the properties that must agree on all ranks.
std::uint64_t hash_of(const std::vector<Dataset>& datasets) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const Dataset& dataset : datasets) {
    for (const char c : dataset.path) add(static_cast<unsigned char>(c));
    for (std::size_t d = 1; d < dataset.shape.size(); ++d) add(dataset.shape[d]);
    add(dataset.row_bytes);
    add(static_cast<std::uint64_t>(H5Tget_class(dataset.type.get())));
  }
  return hash;
}

/// File held in memory, with the rows of each of its datasets.
struct Input {
  std::string path;
  Hdf5Id file;
  std::vector<std::uint64_t> n_rows;
};

/// Select rows of a space, or nothing if n_rows is 0.
void select_rows(hid_t space, const std::vector<hsize_t>& shape, hsize_t first, hsize_t n_rows) {
  if (n_rows == 0) {
    H5Sselect_none(space);
    return;
  }
  std::vector<hsize_t> start(shape.size(), 0);
  std::vector<hsize_t> count = shape;
  start[0] = first;
  count[0] = n_rows;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
}

Hdf5Id rows_space(std::vector<hsize_t> shape, hsize_t n_rows) {
  shape[0] = n_rows;
  return Hdf5Id(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
}

class Concatenation {
 public:
  Concatenation(Comm& comm, const Hdf5ConcatRequest& request) : comm_(comm), request_(request) {}

  Result<Hdf5ConcatReport> run() {
    comm_.barrier();
    begin_ = lap_ = std::chrono::steady_clock::now();
    TAILRACE_TRY(comm_.agree(open_inputs()));
    TAILRACE_TRY(agree_on_schema());
    take_lap(Stage::open);
    TAILRACE_TRY(comm_.agree(create_output()));
    take_lap(Stage::create);
    Status written;
    for (std::size_t d = 0; d < datasets_.size(); ++d) {
      if (total_rows_[d] > 0) concatenate_dataset(d, written);
    }
    outputs_.clear();
    inputs_.clear();
    const bool closed = H5Fclose(file_.get()) >= 0;
    file_.forget();
    if (!closed && written.ok()) written = hdf5_failure(Code::io_error, "closing the output");
    take_lap(Stage::close);
    TAILRACE_TRY(comm_.agree(written));
    if (request_.fsync) TAILRACE_TRY(comm_.agree(sync_output()));
    take_lap(Stage::sync);
    return report();
  }

 private:
  void take_lap(Stage stage) {
    const auto now = std::chrono::steady_clock::now();
    seconds_[stage] += std::chrono::duration<double>(now - lap_).count();
    lap_ = now;
  }

  /// Steps 1 and 2: load this rank's equal share of the files, and collect their datasets' rows.
  Status open_inputs() {
    // HDF5 keeps the descriptor of each file open after reading it into memory.
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
      files.rlim_cur = files.rlim_max;
      ::setrlimit(RLIMIT_NOFILE, &files);
    }
    const auto rank = static_cast<std::size_t>(comm_.rank());
    const auto n_ranks = static_cast<std::size_t>(comm_.n_ranks());
    const std::size_t n_files = request_.inputs.size();
    const std::size_t first = n_files * rank / n_ranks;
    const std::size_t end = n_files * (rank + 1) / n_ranks;
    for (std::size_t i = first; i < end; ++i) TAILRACE_TRY(open_input(request_.inputs[i]));
    if (first < end) return Status();
    TAILRACE_TRY(open_input(request_.inputs.front()));  // ranks without files need the schema
    inputs_.clear();
    input_bytes_ = 0;
    return Status();
  }

  Status open_input(const std::string& path) {
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fapl_core(access.get(), 1 << 20, false);
    Input input;
    input.path = path;
    input.file = Hdf5Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
    if (!input.file.valid()) {
      const Code code = std::filesystem::exists(path) ? Code::corrupt : Code::not_found;
      return hdf5_failure(code, "opening \"" + path + "\"");
    }
    std::vector<Dataset> found;
    const Hdf5Id root(H5Gopen2(input.file.get(), "/", H5P_DEFAULT));
    TAILRACE_TRY(Listing(found).list(root.get(), "").within("\"" + path + "\""));
    for (const Dataset& dataset : found) input.n_rows.push_back(dataset.shape[0]);
    if (datasets_.empty()) {
      datasets_ = std::move(found);
    } else if (!std::equal(found.begin(), found.end(), datasets_.begin(), datasets_.end(),
                           same_kind)) {
      return Status(Code::invalid_argument,
                    "\"" + path + "\": datasets differ from those of the first file of this rank");
    }
    hsize_t n_bytes = 0;
    H5Fget_filesize(input.file.get(), &n_bytes);
    input_bytes_ += n_bytes;
    inputs_.push_back(std::move(input));
    return Status();
  }

  /// Agree on the schema; compute each dataset's total rows and its number of collective writes.
  Status agree_on_schema() {
    const std::uint64_t hash = hash_of(datasets_);
    std::array<std::uint64_t, 2> hashes = {hash, ~hash};
    comm_.allreduce(hashes, Reduction::max);
    if (hashes[0] != ~hashes[1]) {
      return Status(Code::invalid_argument, "all files must have the same datasets");
    }
    own_rows_.assign(datasets_.size(), 0);
    n_rounds_.assign(datasets_.size(), 0);
    for (std::size_t d = 0; d < datasets_.size(); ++d) {
      for (const Input& input : inputs_) own_rows_[d] += input.n_rows[d];
      n_rounds_[d] = (own_rows_[d] + rows_per_round(d) - 1) / rows_per_round(d);
    }
    comm_.allreduce(n_rounds_, Reduction::max);
    const std::unique_ptr<PendingSum> sum = comm_.start_sum(own_rows_);
    while (!sum->complete()) {
    }
    first_rows_ = sum->before();
    total_rows_ = sum->total();
    std::uint64_t most_bytes = 0;
    for (std::size_t d = 0; d < datasets_.size(); ++d) {
      const std::uint64_t n_rows = std::min(own_rows_[d], rows_per_round(d));
      most_bytes = std::max(most_bytes, n_rows * datasets_[d].row_bytes);
    }
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(most_bytes);
    return Status();
  }

  std::uint64_t rows_per_round(std::size_t d) const {
    const std::uint64_t row_bytes = std::max<std::uint64_t>(datasets_[d].row_bytes, 1);
    return std::max<std::uint64_t>(request_.buffer_bytes / row_bytes, 1);
  }

  /// Steps 3 and 4. Collective, like the HDF5 functions.
  Status create_output() {
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
    H5AC_cache_config_t cache{};
    cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
    if (H5Pset_fapl_mpio(access.get(), MPI_COMM_WORLD, MPI_INFO_NULL) < 0 ||
        H5Pget_mdc_config(access.get(), &cache) < 0) {
      return hdf5_failure(Code::internal, "cannot set the file access property list");
    }
    cache.set_initial_size = 1;
    cache.initial_size = cache.min_size = cache.max_size = kMetadataCacheBytes;
    cache.incr_mode = H5C_incr__off;
    cache.flash_incr_mode = H5C_flash_incr__off;
    cache.decr_mode = H5C_decr__off;
    if (H5Pset_mdc_config(access.get(), &cache) < 0 ||
        H5Pset_meta_block_size(access.get(), kMetadataBlockBytes) < 0 ||
        H5Pset_coll_metadata_write(access.get(), true) < 0 ||
        H5Pset_all_coll_metadata_ops(access.get(), true) < 0) {
      return hdf5_failure(Code::internal, "cannot set the file access property list");
    }
    file_ = Hdf5Id(H5Fcreate(request_.output.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    if (!file_.valid()) return hdf5_failure(Code::io_error, "creating " + request_.output);
    transfer_ = Hdf5Id(H5Pcreate(H5P_DATASET_XFER));
    H5Pset_dxpl_mpio(transfer_.get(), H5FD_MPIO_COLLECTIVE);
    for (std::size_t d = 0; d < datasets_.size(); ++d) TAILRACE_TRY(create_dataset(d));
    return Status();
  }

  Status create_dataset(std::size_t d) {
    const Dataset& dataset = datasets_[d];
    std::vector<hsize_t> shape = dataset.shape;
    shape[0] = total_rows_[d];
    std::vector<hsize_t> limits = shape;
    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
    if (shape[0] > 0 && dataset.row_bytes > 0) {
      limits[0] = H5S_UNLIMITED;
      std::vector<hsize_t> chunk = shape;
      const bool column = dataset.row_bytes == H5Tget_size(dataset.type.get());
      chunk[0] =
          column ? request_.column_chunk_bytes / dataset.row_bytes : request_.image_chunk_rows;
      chunk[0] = std::clamp<hsize_t>(chunk[0], 1, shape[0]);
      H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
      if (request_.level > 0) H5Pset_deflate(creation.get(), request_.level);
    }
    const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links.get(), 1);
    const Hdf5Id space(
        H5Screate_simple(static_cast<int>(shape.size()), shape.data(), limits.data()));
    outputs_.emplace_back(H5Dcreate2(file_.get(), dataset.path.c_str(), dataset.type.get(),
                                     space.get(), links.get(), creation.get(), H5P_DEFAULT));
    if (outputs_.back().valid()) return Status();
    return hdf5_failure(Code::io_error, "creating \"" + dataset.path + "\"");
  }

  /// Step 5 for one dataset. Collective. `failure` receives the first failure of this rank.
  void concatenate_dataset(std::size_t d, Status& failure) {
    const Dataset& dataset = datasets_[d];
    const Hdf5Id space(H5Dget_space(outputs_[d].get()));
    for (std::uint64_t round = 0; round < n_rounds_[d]; ++round) {
      const std::uint64_t begin = std::min(round * rows_per_round(d), own_rows_[d]);
      const std::uint64_t end = std::min(begin + rows_per_round(d), own_rows_[d]);
      const Status done = read_rows(d, begin, end);
      if (failure.ok()) failure = done;
      take_lap(Stage::read);
      select_rows(space.get(), dataset.shape, first_rows_[d] + begin, end - begin);
      const Hdf5Id memory = rows_space(dataset.shape, std::max<std::uint64_t>(end - begin, 1));
      if (end == begin) H5Sselect_none(memory.get());
      if (H5Dwrite(outputs_[d].get(), dataset.type.get(), memory.get(), space.get(),
                   transfer_.get(), buffer_.get()) < 0 &&
          failure.ok()) {
        failure = hdf5_failure(Code::io_error, "writing \"" + dataset.path + "\"");
      }
      ++n_writes_;
      take_lap(Stage::write);
    }
  }

  /// Read rows [begin, end) of this rank's rows from their files into the buffer.
  Status read_rows(std::size_t d, std::uint64_t begin, std::uint64_t end) {
    const Dataset& dataset = datasets_[d];
    std::byte* target = buffer_.get();
    std::uint64_t file_begin = 0;
    for (const Input& input : inputs_) {
      const std::uint64_t file_end = file_begin + input.n_rows[d];
      const std::uint64_t from = std::max(begin, file_begin);
      const std::uint64_t to = std::min(end, file_end);
      if (from < to) {
        const Hdf5Id source(H5Dopen2(input.file.get(), dataset.path.c_str(), H5P_DEFAULT));
        const Hdf5Id space(H5Dget_space(source.get()));
        select_rows(space.get(), dataset.shape, from - file_begin, to - from);
        const Hdf5Id memory = rows_space(dataset.shape, to - from);
        if (H5Dread(source.get(), dataset.type.get(), memory.get(), space.get(), H5P_DEFAULT,
                    target) < 0) {
          return hdf5_failure(Code::corrupt,
                              "reading \"" + dataset.path + "\" of \"" + input.path + "\"");
        }
        target += (to - from) * dataset.row_bytes;
      }
      file_begin = file_end;
    }
    return Status();
  }

  Status sync_output() const {
    Result<std::unique_ptr<Storage>> storage = open_posix_storage(request_.output, false, false);
    return storage.ok() ? (*storage)->sync() : storage.status();
  }

  Hdf5ConcatReport report() {
    Hdf5ConcatReport report;
    report.n_files = request_.inputs.size();
    report.n_datasets = datasets_.size();
    report.n_writes = n_writes_;
    for (std::size_t d = 0; d < datasets_.size(); ++d) {
      report.raw_bytes += total_rows_[d] * datasets_[d].row_bytes;
      if (total_rows_[d] == 0) ++report.n_empty;
    }
    report.output_bytes = std::filesystem::file_size(request_.output);
    std::array<std::uint64_t, 1> input_bytes = {input_bytes_};
    comm_.allreduce(input_bytes, Reduction::sum);
    report.input_bytes = input_bytes[0];
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    std::array<std::uint64_t, 1> peak = {static_cast<std::uint64_t>(usage.ru_maxrss) << 10};
    comm_.allreduce(peak, Reduction::max);
    report.peak_rss_bytes = peak[0];
    std::array<double, 7> sums{};
    std::copy(seconds_.begin(), seconds_.end(), sums.begin());
    sums[6] = std::chrono::duration<double>(lap_ - begin_).count();
    std::array<double, 7> largest = sums;
    comm_.allreduce(sums, Reduction::sum);
    comm_.allreduce(largest, Reduction::max);
    constexpr std::array<const char*, 6> names = {"open",  "create", "read",
                                                  "write", "close",  "sync"};
    for (std::size_t i = 0; i < names.size(); ++i) {
      report.stages[i] = {names[i], sums[i] / comm_.n_ranks(), largest[i]};
    }
    report.total_s = largest[6];
    return report;
  }

  Comm& comm_;
  const Hdf5ConcatRequest& request_;
  std::vector<Dataset> datasets_;
  std::vector<Input> inputs_;                                                 ///< This rank's.
  std::vector<std::uint64_t> own_rows_, first_rows_, total_rows_, n_rounds_;  ///< Per dataset.
  std::unique_ptr<std::byte[]> buffer_;
  Hdf5Id file_;
  Hdf5Id transfer_;
  std::vector<Hdf5Id> outputs_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t n_writes_ = 0;
  std::chrono::steady_clock::time_point begin_, lap_;
  std::array<double, 6> seconds_{};
};

}  // namespace

Result<Hdf5ConcatReport> concat_with_hdf5(Comm& comm, const Hdf5ConcatRequest& request) {
  const Hdf5Scope scope;
  return Concatenation(comm, request).run();
}

#else

Result<Hdf5ConcatReport> concat_with_hdf5(Comm&, const Hdf5ConcatRequest&) {
  return Status(Code::unsupported, "this tailrace-bench was built without a parallel HDF5");
}

#endif

}  // namespace tailrace::bench
