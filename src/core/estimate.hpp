// Estimate: what is expected of one chunk before it is encoded. The fourth noun of a field's way.
//
// Values are looked at where the application left them: a StridedValues points into the caller's
// array, so that a look at one value in a hundred copies nothing.

#pragma once

#include <cstddef>
#include <vector>

#include "core/box.hpp"
#include "core/dtype.hpp"

namespace tailrace {

/// A box of values inside a larger row-major array. Not owned.
struct StridedValues {
  const std::byte* data = nullptr;  ///< The box's first value.
  DType dtype = DType::f32;
  Shape shape;    ///< Of the box, slowest first.
  Shape strides;  ///< Elements from one value to the next along each dimension; the last is 1.

  std::uint64_t n_values() const { return n_elements(shape); }
  std::uint64_t n_bytes() const { return n_values() * dtype_bytes(dtype); }
  /// Whether the box is one run of memory.
  bool dense() const;
};

/// The part `part` of a row-major array over `held`, which contains it.
StridedValues strided_part(const Box& held, const std::byte* values, DType dtype, const Box& part);

/// Copy the box to a dense row-major array of n_bytes().
void gather(const StridedValues& values, std::byte* to);

/// What a codec would make of a chunk.
struct Estimate {
  double encoded_bytes = 0;
  /// Encoded bytes without the lossless stage over those with it (Liang et al. 2019, rho_ll /
  /// rho_l); 1 for codecs that have no such stage.
  double lossless_gain = 1;
  /// One standard deviation of encoded_bytes as a fraction of it; 0: not known.
  double spread = 0;
};

}  // namespace tailrace
