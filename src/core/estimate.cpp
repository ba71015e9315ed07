// Views of boxes inside larger arrays.

#include "core/estimate.hpp"

namespace tailrace {

bool StridedValues::dense() const {
  std::uint64_t run = 1;
  for (std::size_t d = shape.size(); d > 0; --d) {
    if (shape[d - 1] != 1 && strides[d - 1] != run) return false;
    run *= shape[d - 1];
  }
  return true;
}

StridedValues strided_part(const Box& held, const std::byte* values, DType dtype, const Box& part) {
  StridedValues view{values, dtype, part.count, Shape(part.rank(), 1)};
  std::uint64_t stride = 1;
  std::uint64_t first = 0;
  for (std::size_t d = part.rank(); d > 0; --d) {
    view.strides[d - 1] = stride;
    first += (part.start[d - 1] - held.start[d - 1]) * stride;
    stride *= held.count[d - 1];
  }
  view.data = values + first * dtype_bytes(dtype);
  return view;
}

void gather(const StridedValues& values, std::byte* to) {
  if (values.n_values() == 0) return;
  // The array that holds the box, as far as its strides tell.
  Box held{Shape(values.shape.size(), 0), values.shape};
  for (std::size_t d = 1; d < held.rank(); ++d) {
    held.count[d] = values.strides[d - 1] / values.strides[d];
  }
  const Box part{held.start, values.shape};
  copy_box(part, held, values.data, part, to, dtype_bytes(values.dtype));
}

}  // namespace tailrace
