// Values of a put: dense, part of a larger array, or with any strides.

#include "exec/field_plan.hpp"

#include <cstring>
#include <utility>

namespace tailrace {

void PutRecord::set_strides(const std::int64_t* given, std::size_t element_bytes) {
  held.clear();
  strides.clear();
  if (given == nullptr || box.empty()) return;
  const std::size_t rank = box.rank();
  // A row-major array has these strides if each is a multiple of the next one. The stride of a
  // dimension with one element does not matter.
  Shape extents = box.count;
  auto expected = static_cast<std::int64_t>(element_bytes);
  for (std::size_t d = rank; d-- > 0;) {
    if (box.count[d] > 1 && given[d] != expected) {
      // The next faster dimension of the larger array may have more elements than the box.
      const std::size_t faster = d + 1;
      const std::int64_t step =
          faster < rank ? expected / static_cast<std::int64_t>(extents[faster]) : 0;
      if (faster == rank || given[d] < expected || given[d] % step != 0) {
        strides.assign(given, given + rank);
        return;
      }
      extents[faster] = static_cast<std::uint64_t>(given[d] / step);
      expected = given[d];
    }
    expected *= static_cast<std::int64_t>(box.count[d]);
  }
  if (extents != box.count) held = std::move(extents);
}

void PutRecord::copy_to(const Box& part, const Box& to_box, std::byte* to,
                        std::size_t element_bytes) const {
  if (dense()) return copy_box(part, box, values, to_box, to, element_bytes);
  if (strides.empty()) return copy_box(part, held_box(), values, to_box, to, element_bytes);
  if (part.empty()) return;
  const std::size_t rank = part.rank();
  const std::byte* from = values;
  Shape to_stride(rank, element_bytes);
  for (std::size_t d = rank; d-- > 1;) to_stride[d - 1] = to_stride[d] * to_box.count[d];
  for (std::size_t d = 0; d < rank; ++d) {
    from += static_cast<std::int64_t>(part.start[d] - box.start[d]) * strides[d];
    to += (part.start[d] - to_box.start[d]) * to_stride[d];
  }
  const std::size_t last = rank - 1;  // A scalar has no strides.
  Shape at(rank, 0);
  while (true) {
    for (std::uint64_t i = 0; i < part.count[last]; ++i) {
      std::memcpy(to + i * element_bytes, from + static_cast<std::int64_t>(i) * strides[last],
                  element_bytes);
    }
    std::size_t d = last;
    while (true) {
      if (d == 0) return;
      --d;
      from += strides[d];
      to += to_stride[d];
      if (++at[d] < part.count[d]) break;
      from -= static_cast<std::int64_t>(part.count[d]) * strides[d];
      to -= part.count[d] * to_stride[d];
      at[d] = 0;
    }
  }
}

Result<StridedValues> PutRecord::view(const Box& part, DType dtype, Buffer& buffer) const {
  if (strides.empty()) return strided_part(held_box(), values, dtype, part);
  buffer = Buffer(part.n_elements() * dtype_bytes(dtype));
  if (!buffer.allocated()) {
    return Status(Code::out_of_memory, "not enough memory to sample " + box_text(part));
  }
  copy_to(part, part, buffer.data(), dtype_bytes(dtype));
  return strided_part(part, buffer.data(), dtype, part);
}

}  // namespace tailrace
