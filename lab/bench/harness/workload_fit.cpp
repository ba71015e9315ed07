// Tiling row by row, refinement dimension by dimension.

#include "workload_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tailrace::bench {
namespace {

/// Stretch dimension `d` of an array from its extent to `extent`, starting at `shift`.
template <class Value>
void stretch(const Value* from, const Shape& shape, std::size_t d, std::uint64_t shift,
             std::uint64_t extent, Value* to) {
  std::uint64_t outer = 1;
  std::uint64_t inner = 1;
  for (std::size_t i = 0; i < d; ++i) outer *= shape[i];
  for (std::size_t i = d + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::uint64_t n = shape[d];
  const double step = extent > n ? static_cast<double>(n) / static_cast<double>(extent) : 1.0;
  for (std::uint64_t o = 0; o < outer; ++o) {
    for (std::uint64_t i = 0; i < extent; ++i) {
      const double at = static_cast<double>(i) * step;
      const auto whole = static_cast<std::uint64_t>(at);
      const auto weight = static_cast<Value>(at - static_cast<double>(whole));
      const Value* low = from + (o * n + (whole + shift) % n) * inner;
      const Value* high = from + (o * n + (whole + shift + 1) % n) * inner;
      Value* target = to + (o * extent + i) * inner;
      for (std::uint64_t k = 0; k < inner; ++k) target[k] = low[k] + weight * (high[k] - low[k]);
    }
  }
}

}  // namespace

Shape shift_of(int rank, const Shape& shape) {
  Shape shift;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    // Multiples of the golden ratio's share keep the ranks far apart in every dimension.
    const double share = 0.381966 * rank * static_cast<double>(d + 1);
    shift.push_back(
        static_cast<std::uint64_t>((share - std::floor(share)) * static_cast<double>(shape[d])));
  }
  return shift;
}

void tile(std::span<const std::byte> whole, const Shape& whole_shape, std::uint64_t element_bytes,
          const Shape& shift, const Shape& block_shape, std::span<std::byte> block) {
  const std::size_t last = whole_shape.size() - 1;
  std::byte* target = block.data();
  Box rows = whole_box(block_shape);
  rows.count[last] = 1;
  for_each_position(rows, [&](const Shape& at) {
    std::uint64_t row = 0;
    for (std::size_t d = 0; d < last; ++d) {
      row = row * whole_shape[d] + (at[d] + shift[d]) % whole_shape[d];
    }
    const std::byte* line = whole.data() + row * whole_shape[last] * element_bytes;
    std::uint64_t from = shift[last];
    for (std::uint64_t done = 0; done < block_shape[last];) {
      const std::uint64_t n = std::min(whole_shape[last] - from, block_shape[last] - done);
      std::memcpy(target, line + from * element_bytes, n * element_bytes);
      target += n * element_bytes;
      done += n;
      from = 0;
    }
  });
}

Buffer refine(DType dtype, std::span<const std::byte> whole, const Shape& whole_shape,
              const Shape& shift, const Shape& block_shape) {
  Buffer now = Buffer::copy_of(whole);
  Shape shape = whole_shape;
  for (std::size_t d = 0; d < shape.size() && now.allocated(); ++d) {
    Shape next_shape = shape;
    next_shape[d] = block_shape[d];
    Buffer next(n_elements(next_shape) * dtype_bytes(dtype));
    if (!next.allocated()) return next;
    if (dtype == DType::f32) {
      stretch(reinterpret_cast<const float*>(now.data()), shape, d, shift[d], block_shape[d],
              reinterpret_cast<float*>(next.data()));
    } else {
      stretch(reinterpret_cast<const double*>(now.data()), shape, d, shift[d], block_shape[d],
              reinterpret_cast<double*>(next.data()));
    }
    now = std::move(next);
    shape = next_shape;
  }
  return now;
}

}  // namespace tailrace::bench
