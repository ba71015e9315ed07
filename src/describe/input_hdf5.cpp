// Reads boxes of an HDF5 file's datasets, whatever their layout, filters and byte order.
//
// Invariant 1: at most one dataset is open, so that at most one chunk cache takes memory.
// Invariant 2: HDF5 is only called within an Hdf5Scope.
// The chunk cache holds the input chunks that one row of boxes can touch again, so that boxes read
// in row-major order decode each input chunk once. It is limited to 64 MiB, or to one chunk where
// that is larger (HDF5 needs that much to decode the chunk in any case); beyond the limit, a chunk
// is decoded again for each row of boxes that touches it.

#include "describe/input_file.hpp"

#include <hdf5.h>

#include <algorithm>
#include <utility>

#include "describe/carry_over_hdf5.hpp"
#include "describe/hdf5_catalog.hpp"
#include "describe/input_bytes.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"

namespace tailrace {
namespace {

/// Limit of the chunk cache: an eighth of the CLI's default memory cap, a quarter of the smallest
/// that the product promises to honour (256 MB).
constexpr std::uint64_t kChunkCacheBytes = 64U << 20;

std::uint64_t next_prime(std::uint64_t n) {
  for (;; ++n) {
    bool prime = n > 1;
    for (std::uint64_t d = 2; d * d <= n && prime; ++d) prime = n % d != 0;
    if (prime) return n;
  }
}

/// Access properties with a chunk cache for row-major boxes.
Hdf5Id access_for(const InputField& field) {
  Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS));
  if (field.chunk_shape.empty()) return access;
  std::uint64_t chunk_bytes = dtype_bytes(field.dtype);
  std::uint64_t n_chunks_per_row = 1;
  for (std::size_t d = 0; d < field.chunk_shape.size(); ++d) {
    chunk_bytes *= field.chunk_shape[d];
    if (d > 0) n_chunks_per_row *= (field.shape[d] - 1) / field.chunk_shape[d] + 1;
  }
  // Boxes that are not aligned with the chunks touch two rows of chunks at a time.
  const std::uint64_t limit = std::max(kChunkCacheBytes, chunk_bytes);
  const std::uint64_t n_chunks = std::clamp<std::uint64_t>(
      2 * n_chunks_per_row, 1, std::max<std::uint64_t>(1, limit / chunk_bytes));
  // HDF5 advises about 100 slots a chunk; a collision costs a second decode. A slot is a pointer.
  const std::uint64_t n_slots = next_prime(std::clamp<std::uint64_t>(100 * n_chunks, 521, 1000003));
  // 1: chunks that have been read completely go first, as no later box needs them.
  constexpr double kPreferReadChunks = 1.0;
  H5Pset_chunk_cache(access.get(), n_slots, n_chunks * chunk_bytes, kPreferReadChunks);
  return access;
}

class Hdf5Input final : public InputFile {
 public:
  Hdf5Input(std::string path, Hdf5Id file, Hdf5Catalog catalog)
      : path_(std::move(path)),
        format_(catalog.netcdf4 ? "netCDF-4" : "HDF5"),
        file_(std::move(file)),
        catalog_(std::move(catalog)) {}

  ~Hdf5Input() override {
    const Hdf5Scope scope;
    dataset_.reset();
    file_.reset();
  }

  const std::string& format() const override { return format_; }
  const std::vector<InputField>& fields() const override { return catalog_.fields; }

  Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) override {
    if (field_index >= catalog_.fields.size()) {
      return Status(Code::invalid_argument, path_ + ": there is no field " +
                                                std::to_string(field_index) + " of " +
                                                std::to_string(catalog_.fields.size()));
    }
    const InputField& field = catalog_.fields[field_index];
    TAILRACE_TRY(check_read_request("field \"" + field.path + "\"", field.shape, box,
                                    dtype_bytes(field.dtype), values.size()));
    if (box.empty()) return Status();
    const Hdf5Scope scope;
    TAILRACE_TRY(open_dataset(field_index));
    const Hdf5Id file_space(H5Dget_space(dataset_.get()));
    const std::size_t rank = box.rank();
    const std::vector<hsize_t> start(box.start.begin(), box.start.end());
    const std::vector<hsize_t> count(box.count.begin(), box.count.end());
    const Hdf5Id memory_space(
        rank == 0 ? H5Screate(H5S_SCALAR)
                  : H5Screate_simple(static_cast<int>(rank), count.data(), nullptr));
    if (rank > 0 && H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                        count.data(), nullptr) < 0) {
      return hdf5_failure(Code::internal, read_text(field, box));
    }
    if (H5Dread(dataset_.get(), hdf5_native_type(field.dtype), memory_space.get(), file_space.get(),
                H5P_DEFAULT, values.data()) < 0) {
      return plain_read_failure(dataset_.get(), read_text(field, box));
    }
    return Status();
  }

  Result<std::vector<std::string>> carry_over_objects(Hdf5File& output) override {
    const Hdf5Scope scope;
    return carry_over_hdf5_objects(file_.get(), catalog_, output);
  }

  Result<std::vector<std::string>> carry_over_attributes(Hdf5File& output) override {
    const Hdf5Scope scope;
    return carry_over_hdf5_attributes(file_.get(), catalog_, output);
  }

 private:
  std::string read_text(const InputField& field, const Box& box) const {
    return path_ + ": reading field \"" + field.path + "\" " + box_text(box);
  }

  Status open_dataset(std::size_t field_index) {
    if (dataset_.valid() && open_field_ == field_index) return Status();
    dataset_.reset();
    const InputField& field = catalog_.fields[field_index];
    const Hdf5Id access = access_for(field);
    dataset_ = Hdf5Id(H5Dopen2(file_.get(), field.path.c_str(), access.get()));
    if (!dataset_.valid()) {
      return hdf5_failure(Code::corrupt, path_ + ": opening field \"" + field.path + "\"");
    }
    open_field_ = field_index;
    const Status sources = check_virtual_sources(dataset_.get(), path_);
    if (!sources.ok()) dataset_.reset();
    return sources.within(path_ + ": reading field \"" + field.path + "\"");
  }

  std::string path_;
  std::string format_;
  Hdf5Id file_;
  Hdf5Catalog catalog_;
  Hdf5Id dataset_;  // Of catalog_.fields[open_field_], if valid.
  std::size_t open_field_ = 0;
};

}  // namespace

Result<std::unique_ptr<InputFile>> open_hdf5_input(const std::string& path) {
  const Hdf5Scope scope;
  Result<Hdf5Id> file = open_plain_hdf5(path);
  if (!file.ok()) return file.status();
  Result<Hdf5Catalog> catalog = read_hdf5_catalog(file->get());
  if (!catalog.ok()) return catalog.status().within(path);
  return std::unique_ptr<InputFile>(
      std::make_unique<Hdf5Input>(path, std::move(*file), std::move(catalog).value()));
}

}  // namespace tailrace
