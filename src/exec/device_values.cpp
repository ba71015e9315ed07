// Copies of boxes from device memory, run by run.

#include "exec/device_values.hpp"

#include <cstdint>

namespace tailrace {
namespace {

/// Position of an element in an array that is dense over `box`. Dimensions from at.size() on are at
/// the first index of `part`.
std::uint64_t element_of(const Box& box, const Box& part, const Shape& at) {
  std::uint64_t element = 0;
  for (std::size_t d = 0; d < box.rank(); ++d) {
    const std::uint64_t index = d < at.size() ? at[d] : part.start[d];
    element = element * box.count[d] + index - box.start[d];
  }
  return element;
}

}  // namespace

Status DeviceValues::read_part(const Box& part, const Box& whole, std::byte* values) {
  if (part.empty()) return Status();
  // The fastest dimensions are one run while the part spans both arrays in them.
  std::size_t n_outer = part.rank();
  std::uint64_t n_run_bytes = element_bytes_;
  while (n_outer > 0) {
    const std::size_t d = --n_outer;
    n_run_bytes *= part.count[d];
    if (part.count[d] != box_.count[d] || part.count[d] != whole.count[d]) break;
  }
  Box outer = part;
  outer.start.resize(n_outer);
  outer.count.resize(n_outer);
  int failed = 0;
  const auto copy_run = [&](const Shape& at) {
    if (failed != 0) return;
    failed = copy_(values + element_of(whole, part, at) * element_bytes_,
                   values_ + element_of(box_, part, at) * element_bytes_, n_run_bytes);
  };
  if (n_outer == 0) {
    copy_run({});
  } else {
    for_each_position(outer, copy_run);
  }
  if (failed == 0) return Status();
  return Status(Code::io_error, field_name_ + ": the function that copies from the device failed " +
                                    "with " + std::to_string(failed) + " for box " +
                                    box_text(part));
}

}  // namespace tailrace
