// Copying rows of variable length in pieces.

#include "concat/hdf5/concat_rows.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "describe/element_writes.hpp"
#include "describe/hdf5_copy.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/stub_filters.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

namespace {

/// Memory for the variable parts of one piece. HDF5 allocates it in small blocks and frees none;
/// all blocks are freed together. Refuses allocations beyond the limit, so that a piece is never
/// too large although its size is unknown before it is read.
class VariableMemory {
 public:
  explicit VariableMemory(std::uint64_t n_bytes_max) : n_left_(n_bytes_max) {}

  /// HDF5's allocation callback. @returns null beyond the limit.
  static void* allocate(std::size_t n_bytes, void* self) {
    return static_cast<VariableMemory*>(self)->take(n_bytes);
  }
  static void free(void*, void*) {}
  bool refused() const { return refused_; }

 private:
  static constexpr std::size_t block_bytes = 1U << 20;
  static constexpr std::size_t alignment = alignof(std::max_align_t);

  void* take(std::size_t n_bytes) {
    const std::size_t n_rounded =
        (std::max<std::size_t>(n_bytes, 1) + alignment - 1) / alignment * alignment;
    if (n_rounded > n_in_block_) {
      const std::size_t n_block =
          std::max<std::size_t>(n_rounded, std::min<std::uint64_t>(block_bytes, n_left_));
      if (n_rounded < n_bytes || n_block > n_left_) return refuse();
      auto block = std::make_unique<Buffer>(n_block);
      if (!block->allocated()) return refuse();
      next_ = static_cast<std::byte*>(block->data());
      n_in_block_ = n_block;
      n_left_ -= n_block;
      blocks_.push_back(std::move(block));
    }
    std::byte* const taken = next_;
    next_ += n_rounded;
    n_in_block_ -= n_rounded;
    return taken;
  }
  void* refuse() {
    refused_ = true;
    return nullptr;
  }

  std::uint64_t n_left_;
  bool refused_ = false;
  std::vector<std::unique_ptr<Buffer>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t n_in_block_ = 0;
};

/// A run of rows of one dataset as an HDF5 selection.
struct RowSpace {
  Hdf5Id space;
  std::vector<hsize_t> extents;

  explicit RowSpace(hid_t dataset) : space(H5Dget_space(dataset)) {
    extents.resize(kMaxRank);
    const int rank = H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
    extents.resize(static_cast<std::size_t>(std::max(rank, 0)));
  }
  std::uint64_t row_elements() const {
    return n_elements(Shape(extents.begin() + 1, extents.end()));
  }
  bool select(std::uint64_t first_row, std::uint64_t n_rows) const {
    std::vector<hsize_t> start(extents.size());
    std::vector<hsize_t> count = extents;
    start[0] = first_row;
    count[0] = n_rows;
    return H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                               nullptr) >= 0;
  }
};

}  // namespace

Status copy_rows_from(hid_t from, hid_t to, const std::string& where, std::uint64_t n_rows,
                      std::uint64_t first_row, std::uint64_t memory_bytes) {
  const Hdf5Id stored_type(H5Dget_type(from));
  const Hdf5Id type(H5Tcopy(stored_type.get()));
  if (Hdf5References::holds_references(type.get())) {
    return Status(Code::unsupported,
                  where + " contains references, which are not valid in another file");
  }
  TAILRACE_TRY(check_lists(type.get(), where));
  const RowSpace from_rows(from);
  const RowSpace to_rows(to);
  if (from_rows.extents.empty() || from_rows.extents[0] > n_rows ||
      to_rows.extents.size() != from_rows.extents.size() ||
      from_rows.row_elements() != to_rows.row_elements()) {
    return Status(Code::corrupt,
                  where + " has changed: its shape is " +
                      shape_text(Shape(from_rows.extents.begin(), from_rows.extents.end())) +
                      ", expected " + std::to_string(n_rows) + " rows");
  }
  // A variable shorter than its dimension lacks the last rows, which were never written.
  n_rows = from_rows.extents[0];
  const std::uint64_t row_elements = from_rows.row_elements();
  const std::uint64_t row_bytes =
      std::max<std::uint64_t>(1, row_elements * H5Tget_size(type.get()));
  // Fixed parts get a quarter of the memory, variable parts the rest.
  std::uint64_t n_per_piece = std::max<std::uint64_t>(1, memory_bytes / 4 / row_bytes);
  const std::uint64_t variable_bytes = memory_bytes - std::min(memory_bytes, memory_bytes / 4);
  for (std::uint64_t done = 0; done < n_rows;) {
    const std::uint64_t n_piece = std::min(n_per_piece, n_rows - done);
    const hsize_t n_values = n_piece * row_elements;
    const Hdf5Id piece(H5Screate_simple(1, &n_values, nullptr));
    Buffer values(n_piece * row_bytes);
    if (!values.allocated())
      return Status(Code::out_of_memory, where + ": not enough memory for " +
                                             std::to_string(n_piece * row_bytes) +
                                             " bytes of rows");
    VariableMemory variable(variable_bytes);
    const Hdf5Id transfer(H5Pcreate(H5P_DATASET_XFER));
    H5Pset_vlen_mem_manager(transfer.get(), VariableMemory::allocate, &variable,
                            VariableMemory::free, &variable);
    if (!from_rows.select(done, n_piece) || !to_rows.select(first_row + done, n_piece)) {
      return hdf5_failure(Code::internal, where + ": the rows cannot be selected");
    }
    if (H5Dread(from, type.get(), piece.get(), from_rows.space.get(), transfer.get(),
                values.data()) < 0) {
      const Status failure = plain_read_failure(from, where + " cannot be read");
      if (!variable.refused()) return failure;
      if (n_piece == 1) {
        return Status(Code::out_of_memory,
                      where + ": row " + std::to_string(done) + " needs more than the " +
                          std::to_string(memory_bytes) + " bytes that --memory allows");
      }
      n_per_piece = std::max<std::uint64_t>(1, n_piece / 4);
      continue;
    }
    const auto write = [&] {
      return write_elements(to, type.get(), to_rows.space.get(), transfer.get(), values.data());
    };
    if (call_with_filters(to, write) < 0) {
      return hdf5_failure(Code::io_error, where + " cannot be written");
    }
    done += n_piece;
  }
  return Status();
}

Status copy_rows_from_files(hid_t to, const std::string& path, std::span<const RowSource> sources,
                            std::uint64_t first_row, std::uint64_t memory_bytes) {
  for (const RowSource& source : sources) {
    if (source.n_rows == 0) continue;
    const std::string where = "file \"" + source.file + "\", dataset \"" + path + "\"";
    prepare_plugin_folders();
    const Hdf5Id file(H5Fopen(source.file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (!file.valid()) return hdf5_open_failure("file \"" + source.file + "\"");
    const Hdf5Id from(H5Dopen2(file.get(), path.c_str(), H5P_DEFAULT));
    if (!from.valid()) return hdf5_open_failure(where);
    TAILRACE_TRY(copy_rows_from(from.get(), to, where, source.n_rows, first_row, memory_bytes));
    first_row += source.n_rows;
  }
  return Status();
}

}  // namespace tailrace
