// HDF5's own rows: the parallel library, used as its documentation recommends, with its best
// settings. Also the same calls served by Tailrace (hdf5-unchanged), if libtailrace_hdf5.so is
// preloaded.
//
// Datasets are created collectively and written one after the other, one hyperslab per rank,
// directly from the application's memory. Uncompressed datasets are contiguous: with chunks, an
// independent write of part of a rank's block would be split into pieces of one row each. Fill
// values are never written (they would double the storage time) and metadata is written
// collectively, as the HDF Group recommends. Filters run inside H5Dwrite.

#include <dlfcn.h>
#include <hdf5.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "core/codec_registry.hpp"
#include "core/storage.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "method.hpp"

#if TAILRACE_BENCH_NATIVE_PARALLEL
#include <mpi.h>
#endif

namespace tailrace::bench {

#if TAILRACE_BENCH_NATIVE_PARALLEL
namespace {

std::vector<hsize_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// Environment variable of this process, set for the lifetime of the object.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// TAILRACE_OPTIONS that make a served file equal to those of the other rows. Without a codec,
/// datasets get no options, like those of any program.
std::string options_of_served(const BenchContext& context, const std::string& codec_name) {
  const BenchOptions& options = context.options;
  std::string text = "fsync=" + std::string(options.fsync ? "on" : "off") +
                     ",threads=" + std::to_string(options.n_threads) +
                     ",memory=" + std::to_string(options.memory_bytes);
  if (!options.plugin_path.empty()) text += ",plugin-path=" + options.plugin_path;
  if (codec_name.empty()) return text;
  std::string codec = "codec=" + codec_name;
  for (const auto& [key, value] : codec_settings_of(options, codec_name)) {
    codec += "," + key + "=" + value;
  }
  for (const BenchField& field : context.work.fields) {
    text += "\n" + field.path + ": " + codec + ",verify=off";
    text += ",chunk=" + shape_text(field.chunk_shape) + (field.chunk_shape.size() == 1 ? "x" : "");
    if (codec_name != "none" && field.absolute_bound > 0) {
      text += ",bound=" + error_bound_text({BoundMode::abs, field.absolute_bound});
    }
    if (field.fill_value) text += ",fill=" + number_text(*field.fill_value);
  }
  return text;
}

class NativeMethod final : public Method {
 public:
  NativeMethod(const BenchContext& context, std::string name, bool collective,
               std::string codec_name, bool served)
      : Method(std::move(name)),
        context_(context),
        collective_(collective),
        codec_name_(std::move(codec_name)),
        served_(served) {}

  /// Compute the client data of every field's filters once: users of HDF5 pass them as constants.
  Status prepare() {
    filters_.resize(context_.work.fields.size());
    if (served_) options_ = options_of_served(context_, codec_name_);
    if (codec_name_.empty()) return Status();
    for (std::size_t f = 0; f < filters_.size(); ++f) {
      const BenchField& field = context_.work.fields[f];
      Result<std::unique_ptr<Codec>> codec = make_bench_codec(
          context_.options, codec_name_, codec_settings_of(context_.options, codec_name_), field);
      if (!codec.ok()) return codec.status().within("field \"" + field.path + "\"");
      if (codec_name_ != "none") codec_version_ = (*codec)->version();
      if (!served_) filters_[f] = (*codec)->filters();
    }
    return Status();
  }

  std::string codec_version() const override { return codec_version_; }

  /// Write with the variables set that Tailrace reads at each H5Fcreate.
  Status write(const std::string& path, RunDetails& details) override {
    {
      const Variable served("TAILRACE_HDF5", served_ ? "on" : "off");
      const Variable options("TAILRACE_OPTIONS", options_);
      const Hdf5Scope scope;
      TAILRACE_TRY(write_file(path));
    }
    return context_.options.fsync && !served_ ? sync(path, details) : Status();
  }

  Result<ReadBack> read_back(const std::string& path) override {
    return read_back_with_hdf5(context_, path, codec_name_ == "none" || codec_name_.empty());
  }

  Status remove(const std::string& path) override {
    // A failed run may leave a served file under its temporary name.
    ::unlink((path + kPartialSuffix).c_str());
    return Method::remove(path);
  }

 private:
  Status write_file(const std::string& path) const {
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS));
    if (H5Pset_fapl_mpio(access.get(), MPI_COMM_WORLD, MPI_INFO_NULL) < 0 ||
        H5Pset_coll_metadata_write(access.get(), true) < 0) {
      return hdf5_failure(Code::internal, "cannot set the file access property list");
    }
    Hdf5Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    if (!file.valid()) return hdf5_failure(Code::io_error, "creating \"" + path + "\"");
    // A file that HDF5 creates exists now; a served file gets its name at the first flush.
    const bool there = context_.comm.is_root() && ::access(path.c_str(), F_OK) == 0;
    const Hdf5Id transfer(H5Pcreate(H5P_DATASET_XFER));
    const H5FD_mpio_xfer_t mode = collective_ ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT;
    if (H5Pset_dxpl_mpio(transfer.get(), mode) < 0) {
      return hdf5_failure(Code::internal, "cannot set the transfer property list");
    }
    for (std::size_t f = 0; f < context_.work.fields.size(); ++f) {
      TAILRACE_TRY(write_field(file.get(), transfer.get(), f));
    }
    if (H5Fclose(file.release()) < 0)
      return hdf5_failure(Code::io_error, "closing \"" + path + "\"");
    if (!served_ || !there) return Status();
    return Status(Code::unsupported,
                  "libtailrace_hdf5.so is preloaded, but does not intercept this HDF5");
  }

  Status write_field(hid_t file, hid_t transfer, std::size_t f) const {
    const BenchField& field = context_.work.fields[f];
    const std::vector<hsize_t> shape = extents(field.shape);
    const std::vector<hsize_t> chunk = extents(field.chunk_shape);
    const std::vector<hsize_t> start = extents(field.box.start);
    const std::vector<hsize_t> count = extents(field.box.count);
    const int n_dimensions = static_cast<int>(shape.size());
    const hid_t type = field.dtype == DType::f32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;

    const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE));
    if (!filters_[f].empty()) H5Pset_chunk(creation.get(), n_dimensions, chunk.data());
    H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
    for (const FilterSpec& filter : filters_[f]) {
      if (H5Pset_filter(creation.get(), static_cast<H5Z_filter_t>(filter.filter_id), filter.flags,
                        filter.client_data.size(), filter.client_data.data()) < 0) {
        return hdf5_failure(Code::plugin_missing, "filter " + std::to_string(filter.filter_id));
      }
    }
    const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links.get(), 1);
    const Hdf5Id space(H5Screate_simple(n_dimensions, shape.data(), nullptr));
    const Hdf5Id dataset(H5Dcreate2(file, field.path.c_str(), type, space.get(), links.get(),
                                    creation.get(), H5P_DEFAULT));
    if (!dataset.valid()) return hdf5_failure(Code::io_error, "creating \"" + field.path + "\"");
    const Hdf5Id memory(H5Screate_simple(n_dimensions, count.data(), nullptr));
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    if (H5Dwrite(dataset.get(), type, memory.get(), space.get(), transfer, field.values.data()) <
        0) {
      return hdf5_failure(Code::io_error, "writing \"" + field.path + "\"");
    }
    return Status();
  }

  /// Each rank syncs the data of its node, as Tailrace's ranks do.
  Status sync(const std::string& path, RunDetails& details) const {
    Result<std::unique_ptr<Storage>> storage = open_posix_storage(path, false, false);
    if (!storage.ok()) return storage.status();
    const double start_s = MPI_Wtime();
    const Status synced = (*storage)->sync();
    details.sync_s = MPI_Wtime() - start_s;
    return synced;
  }

  BenchContext context_;
  bool collective_;
  std::string codec_name_;  ///< Empty: Tailrace's defaults.
  bool served_;
  std::string options_;  ///< TAILRACE_OPTIONS.
  std::string codec_version_;
  std::vector<std::vector<FilterSpec>> filters_;
};

}  // namespace
#endif

bool has_native_parallel() { return TAILRACE_BENCH_NATIVE_PARALLEL != 0; }

bool start_native_mpi([[maybe_unused]] int* argc, [[maybe_unused]] char*** argv) {
#if TAILRACE_BENCH_NATIVE_PARALLEL
  int already = 0;
  MPI_Initialized(&already);
  if (already != 0) return false;
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  return true;
#else
  return false;
#endif
}

void stop_native_mpi([[maybe_unused]] bool started) {
#if TAILRACE_BENCH_NATIVE_PARALLEL
  if (started) MPI_Finalize();
#endif
}

bool is_preloaded() { return ::dlsym(RTLD_DEFAULT, "tailrace_hdf5_loaded") != nullptr; }

Result<std::unique_ptr<Method>> make_unchanged_method(
    [[maybe_unused]] const BenchContext& context, [[maybe_unused]] std::string name,
    [[maybe_unused]] const std::string& codec_name) {
  if (!is_preloaded()) {
    return Status(
        Code::unsupported,
        "needs libtailrace_hdf5.so in LD_PRELOAD, which intercepts the HDF5 of this program");
  }
#if TAILRACE_BENCH_NATIVE_PARALLEL
  auto method = std::make_unique<NativeMethod>(context, std::move(name), true, codec_name, true);
  TAILRACE_TRY(method->prepare());
  return std::unique_ptr<Method>(std::move(method));
#else
  return Status(Code::unsupported, "this tailrace-bench was built without a parallel HDF5");
#endif
}

Result<std::unique_ptr<Method>> make_hdf5_method([[maybe_unused]] const BenchContext& context,
                                                 [[maybe_unused]] std::string name, bool collective,
                                                 const std::string& codec_name) {
  if (!collective && codec_name != "none") {
    return Status(Code::unsupported, "HDF5 refuses independent writes of datasets with filters");
  }
  if (codec_name == "portable") {
    return Status(Code::unsupported, "HDF5 has no filter that rounds; use codec deflate");
  }
#if TAILRACE_BENCH_NATIVE_PARALLEL
  auto method =
      std::make_unique<NativeMethod>(context, std::move(name), collective, codec_name, false);
  TAILRACE_TRY(method->prepare());
  return std::unique_ptr<Method>(std::move(method));
#else
  return Status(Code::unsupported, "this tailrace-bench was built without a parallel HDF5");
#endif
}

}  // namespace tailrace::bench
