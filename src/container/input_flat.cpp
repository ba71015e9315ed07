// One class for .npy and raw files: a strided array, transposed while reading if it is in Fortran
// order. They hold no attributes and no other objects, so there is nothing to carry over.

#include "container/input_flat.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "container/npy_header.hpp"
#include "core/buffer.hpp"

namespace tailrace {
namespace {

/// Scratch for one transposed slab.
constexpr std::uint64_t kSlabBytes = 4U << 20;

Shape reversed(Shape shape) {
  std::reverse(shape.begin(), shape.end());
  return shape;
}

class FlatInput final : public InputFile {
 public:
  FlatInput(std::string format, std::shared_ptr<InputBytes> bytes, InputField field,
            StridedArray array, bool fortran_order)
      : format_(std::move(format)),
        bytes_(std::move(bytes)),
        fields_({std::move(field)}),
        array_(std::move(array)),
        fortran_order_(fortran_order) {}

  const std::string& format() const override { return format_; }
  const std::vector<InputField>& fields() const override { return fields_; }

  Status read(std::size_t field_index, const Box& box, std::span<std::byte> values) override {
    if (field_index != 0) {
      return Status(Code::invalid_argument,
                    bytes_->path() + ": holds one field, not " + std::to_string(field_index + 1));
    }
    if (!fortran_order_) return read_strided_box(*bytes_, array_, box, values);
    return read_transposed(box, values);
  }

  Result<std::vector<std::string>> carry_over_objects(Hdf5File&) override {
    return std::vector<std::string>();
  }
  Result<std::vector<std::string>> carry_over_attributes(Hdf5File&) override {
    return std::vector<std::string>();
  }

 private:
  /// The file holds the array with its dimensions reversed. Read it in slabs of the file's slowest
  /// dimension, so that reads are sequential and the scratch is bounded, and scatter each slab.
  Status read_transposed(const Box& box, std::span<std::byte> values) const {
    const InputField& field = fields_[0];
    TAILRACE_TRY(
        check_read_request(bytes_->path(), field.shape, box, array_.element_bytes, values.size()));
    if (box.empty()) return Status();
    const std::size_t last = field.shape.size() - 1;
    const std::uint64_t entry_bytes = box.n_elements() / box.count[last] * array_.element_bytes;
    const std::uint64_t n_per_slab = std::max<std::uint64_t>(1, kSlabBytes / entry_bytes);
    Buffer slab_values(std::min(n_per_slab, box.count[last]) * entry_bytes);
    if (!slab_values.allocated()) {
      return Status(Code::out_of_memory, bytes_->path() + ": no memory to transpose a slab of " +
                                             std::to_string(entry_bytes) + " bytes");
    }
    for (std::uint64_t done = 0; done < box.count[last]; done += n_per_slab) {
      Box slab = box;
      slab.start[last] += done;
      slab.count[last] = std::min(n_per_slab, box.count[last] - done);
      const Box file_box = {reversed(slab.start), reversed(slab.count)};
      const std::uint64_t n_bytes = slab.n_elements() * array_.element_bytes;
      TAILRACE_TRY(read_strided_box(*bytes_, array_, file_box, slab_values.bytes().first(n_bytes)));
      scatter(slab, box, slab_values.data(), values.data());
    }
    return Status();
  }

  /// Copy a slab from file order (first dimension fastest) into the row-major box.
  void scatter(const Box& slab, const Box& box, const std::byte* from, std::byte* to) const {
    const std::size_t rank = box.rank();
    Shape stride(rank, 1);
    for (std::size_t d = rank - 1; d-- > 0;) stride[d] = stride[d + 1] * box.count[d + 1];
    Box file_order = {reversed(slab.start), reversed(slab.count)};
    for_each_position(file_order, [&](const Shape& at) {
      std::uint64_t position = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        position += (at[rank - 1 - d] - box.start[d]) * stride[d];
      }
      std::memcpy(to + position * array_.element_bytes, from, array_.element_bytes);
      from += array_.element_bytes;
    });
  }

  std::string format_;
  std::shared_ptr<InputBytes> bytes_;
  std::vector<InputField> fields_;
  StridedArray array_;  // In the file's own order of dimensions.
  bool fortran_order_;
};

std::unique_ptr<InputFile> make_flat_input(std::string format, std::shared_ptr<InputBytes> bytes,
                                           const NpyHeader& facts) {
  InputField field;
  field.path = field_path_of_file(bytes->path());
  field.dtype = facts.dtype;
  field.shape = facts.shape;
  field.stored_bytes = bytes->file_bytes() - facts.data_address;
  StridedArray array;
  array.address = facts.data_address;
  // One dimension or none reads the same in both orders.
  const bool transpose = facts.fortran_order && facts.shape.size() > 1;
  array.shape = transpose ? reversed(facts.shape) : facts.shape;
  array.element_bytes = dtype_bytes(facts.dtype);
  array.swap_bytes = facts.swap_bytes;
  array.outer_stride_bytes = array.entry_bytes();
  return std::make_unique<FlatInput>(std::move(format), std::move(bytes), std::move(field),
                                     std::move(array), transpose);
}

}  // namespace

Result<std::unique_ptr<InputFile>> open_npy_input(std::shared_ptr<InputBytes> bytes) {
  const Result<NpyHeader> header = read_npy_header(*bytes);
  if (!header.ok()) return header.status();
  return make_flat_input("npy", std::move(bytes), *header);
}

Result<std::unique_ptr<InputFile>> open_raw_input(std::shared_ptr<InputBytes> bytes,
                                                  const RawFormat& format) {
  if (format.shape.size() > max_rank) {
    return Status(Code::invalid_argument, "raw format: " + std::to_string(format.shape.size()) +
                                              " dimensions, at most 32 are possible");
  }
  std::uint64_t expected = 0;
  const bool fits = multiply_checked(n_elements(format.shape), dtype_bytes(format.dtype), expected);
  if (!fits || expected != bytes->file_bytes()) {
    return Status(Code::invalid_argument,
                  bytes->path() + ": " + std::string(dtype_name(format.dtype)) + " of shape " +
                      shape_text(format.shape) + " takes " +
                      (fits ? std::to_string(expected) : "more than 2^64") +
                      " bytes, but the file holds " + std::to_string(bytes->file_bytes()));
  }
  NpyHeader facts;
  facts.dtype = format.dtype;
  facts.shape = format.shape;
  return make_flat_input("raw", std::move(bytes), facts);
}

}  // namespace tailrace
