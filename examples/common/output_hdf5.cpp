// Output hdf5: plain parallel HDF5, used as its documentation recommends, with its best settings.
//
// Datasets are contiguous and created collectively without writing fill values. Each rank writes
// its box directly from the application's memory, independently or collectively (--transfer). The
// datasets of a field over time have room for all steps of the run, because contiguous datasets
// cannot grow. With --filters they are chunked and HDF5 filters them; transfers are then
// collective. The step is written when end_step returns: nothing is hidden.
//
// The HDF5 async VOL connector (--output hdf5-async) would be a third output. It needs HDF5 1.13.
// Until a supported distribution provides it, the program reports that it is unavailable.

#include <hdf5.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/arguments.hpp"
#include "common/step_output.hpp"
#include "common/variant.hpp"

namespace app {
namespace {

/// Throws if an HDF5 call failed: ids and statuses are negative then.
template <class Number>
Number checked(Number returned, const std::string& what) {
  if (returned < 0) throw std::runtime_error("HDF5: " + what + " failed");
  return returned;
}

/// An id of HDF5, released at the end of its scope.
class Id {
 public:
  Id() = default;
  Id(hid_t id, const std::string& what) : id_(checked(id, what)) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Id() { reset(); }
  void reset() {
    if (id_ >= 0) H5Idec_ref(std::exchange(id_, -1));
  }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = -1;
};

hid_t type_of(ValueType type) {
  switch (type) {
    case ValueType::f32: return H5T_NATIVE_FLOAT;
    case ValueType::f64: return H5T_NATIVE_DOUBLE;
    case ValueType::i32: return H5T_NATIVE_INT32;
    case ValueType::i64: return H5T_NATIVE_INT64;
  }
  return H5T_NATIVE_DOUBLE;
}

struct Filter {
  unsigned id = 0;
  std::vector<unsigned> values;
};

/// Numbers of a text like "1:4,5", separated by `separators`. Throws Unavailable for any other
/// text.
std::vector<unsigned> numbers_of(const std::string& text, const std::string& separators) {
  std::vector<unsigned> numbers;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.empty() || word.size() > 9 ||
        word.find_first_not_of("0123456789") != std::string::npos) {
      throw Unavailable("--filters, --filter-chunk: expected numbers, got \"" + text + "\"");
    }
    numbers.push_back(static_cast<unsigned>(std::stoul(word)));
    at = end + 1;
  }
  return numbers;
}

/// "2;1:4": filter 2, then filter 1 with the client data 4.
std::vector<Filter> filters_of(const std::string& text) {
  std::vector<Filter> filters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    std::vector<unsigned> numbers = numbers_of(text.substr(at, end - at), ":,");
    filters.push_back({numbers.front(), {numbers.begin() + 1, numbers.end()}});
    at = end + 1;
  }
  return filters;
}

class Hdf5Output final : public StepOutput {
 public:
  Hdf5Output(const OutputOptions& options, MPI_Comm comm)
      : StepOutput(options, comm), filters_(filters_of(options.filters)) {
    if (!options.filter_chunk.empty()) {
      const std::vector<unsigned> numbers = numbers_of(options.filter_chunk, "x");
      chunk_.assign(numbers.begin(), numbers.end());
    }
  }

  void open() override {
    const Id access(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
    checked(H5Pset_fapl_mpio(access.get(), comm_, MPI_INFO_NULL), "H5Pset_fapl_mpio");
    checked(H5Pset_coll_metadata_write(access.get(), true), "H5Pset_coll_metadata_write");
    file_ = Id(H5Fcreate(options_.path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()),
               "creating \"" + options_.path + "\"");
    transfer_ = Id(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
    // HDF5 encodes chunks only in collective writes.
    const bool collective = options_.transfer == "collective" || !filters_.empty();
    checked(H5Pset_dxpl_mpio(transfer_.get(),
                             collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT),
            "H5Pset_dxpl_mpio");
  }

  void close() override {
    release_datasets();
    transfer_.reset();
    file_.reset();
  }

 protected:
  void write_step() override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!options_.over_time || n_written_ == 0) create_dataset(i);
      write_part(i);
    }
    if (!options_.over_time) {
      const Id group(H5Gopen2(file_.get(), group_of_step().c_str(), H5P_DEFAULT), "H5Gopen");
      write_attribute(group, "time", H5T_NATIVE_DOUBLE, &time_);
      write_attribute(group, "step", H5T_NATIVE_INT, &step_);
    }
    if (options_.fsync) checked(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "H5Fflush");
    totals_.n_steps += 1;
  }

 private:
  void release_datasets() {
    // The size after filtering is known once all values are written.
    if (!filters_.empty()) {
      for (const Id& dataset : datasets_)
        totals_.encoded_bytes += H5Dget_storage_size(dataset.get());
    }
    datasets_.clear();
  }

  /// Extents in the file: with the time in front, if the field is over time.
  std::vector<hsize_t> extents(std::uint64_t first, const std::vector<std::uint64_t>& rest) const {
    std::vector<hsize_t> all(rest.begin(), rest.end());
    if (options_.over_time) all.insert(all.begin(), first);
    return all;
  }

  static Id simple_space(const std::vector<hsize_t>& shape) {
    if (shape.empty()) return Id(H5Screate(H5S_SCALAR), "H5Screate");
    return Id(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
              "H5Screate_simple");
  }

  void create_dataset(std::size_t index) {
    if (index == 0) release_datasets();
    const FieldPart& part = parts_[index];
    const Id creation(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
    const auto n_outputs = static_cast<std::uint64_t>(options_.n_steps / options_.every);
    const std::vector<hsize_t> shape = extents(n_outputs, part.shape);
    set_filters(creation, shape, part.name);
    const Id links(H5Pcreate(H5P_LINK_CREATE), "H5Pcreate");
    H5Pset_create_intermediate_group(links.get(), 1);
    const Id space = simple_space(shape);
    const std::string path = path_of(part.name);
    datasets_.emplace_back(H5Dcreate2(file_.get(), path.c_str(), type_of(part.type), space.get(),
                                      links.get(), creation.get(), H5P_DEFAULT),
                           "creating " + path);
  }

  /// Applies to fields with as many dimensions as the chunk; others are contiguous.
  void set_filters(const Id& creation, const std::vector<hsize_t>& shape,
                   const std::string& name) const {
    if (filters_.empty() || chunk_.size() != shape.size()) return;
    checked(H5Pset_chunk(creation.get(), static_cast<int>(chunk_.size()), chunk_.data()),
            "the chunks of " + name);
    for (const Filter& filter : filters_) {
      checked(H5Pset_filter(creation.get(), static_cast<H5Z_filter_t>(filter.id),
                            H5Z_FLAG_MANDATORY, filter.values.size(), filter.values.data()),
              "filter " + std::to_string(filter.id) + " for " + name);
    }
  }

  void write_part(std::size_t index) {
    const FieldPart& part = parts_[index];
    const hid_t dataset = datasets_[index].get();
    const Id space(H5Dget_space(dataset), "H5Dget_space");
    const Id memory = simple_space({part.count.begin(), part.count.end()});
    if (part.values == nullptr) {
      H5Sselect_none(space.get());
      H5Sselect_none(memory.get());
    } else {
      const std::vector<hsize_t> start =
          extents(static_cast<std::uint64_t>(n_written_), part.start);
      const std::vector<hsize_t> count = extents(1, part.count);
      if (!start.empty()) {
        checked(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                    count.data(), nullptr),
                "H5Sselect_hyperslab");
      }
    }
    checked(H5Dwrite(dataset, type_of(part.type), memory.get(), space.get(), transfer_.get(),
                     part.values),
            "writing " + path_of(part.name));
    std::uint64_t n_bytes = bytes_of(part.type);
    for (const std::uint64_t extent : part.shape) n_bytes *= extent;
    totals_.raw_bytes += n_bytes;
    if (filters_.empty()) totals_.encoded_bytes += n_bytes;
  }

  static void write_attribute(const Id& group, const char* name, hid_t type, const void* value) {
    const Id space = simple_space({});
    const Id attribute(H5Acreate2(group.get(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                       "H5Acreate");
    checked(H5Awrite(attribute.get(), type, value), "H5Awrite");
  }

  Id file_;
  Id transfer_;
  std::vector<Id> datasets_;
  std::vector<Filter> filters_;
  std::vector<hsize_t> chunk_;
};

}  // namespace

const char* linked_suffix() { return "-hdf5"; }

std::unique_ptr<StepOutput> make_linked_output(const OutputOptions& options, MPI_Comm comm) {
  if (options.output == "hdf5-async") {
    throw Unavailable(
        "--output hdf5-async: not available here: it needs the async VOL connector of an HDF5 1.13 "
        "or newer; this build has none, and " H5_VERS_INFO);
  }
  return std::make_unique<Hdf5Output>(options, comm);
}

}  // namespace app
