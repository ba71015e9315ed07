// Arithmetic of strided hyperslabs.
//
// A copy between two arrays becomes nested loops over byte steps. Dimensions of one element vanish;
// adjacent dimensions merge if both arrays step through them evenly. An innermost run that is
// contiguous in both arrays is one memcpy.

#include "core/slab.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tailrace {
namespace {

/// Return ceil((to - from) / stride); 0 if the distance is negative.
std::uint64_t n_steps(std::uint64_t from, std::uint64_t to, std::uint64_t stride) {
  return to <= from ? 0 : (to - from - 1) / stride + 1;
}

/// Nested loops of a copy, outermost first; steps in bytes.
struct CopyLoops {
  std::array<std::uint64_t, kMaxRank + 1> count{};
  std::array<std::uint64_t, kMaxRank + 1> from_step{};
  std::array<std::uint64_t, kMaxRank + 1> to_step{};
  std::size_t n = 0;

  void add(std::uint64_t n_times, std::uint64_t from, std::uint64_t to) {
    if (n_times == 1) return;
    // Merge with the outer loop if that continues where this one ends, in both arrays.
    if (n > 0 && from_step[n - 1] == n_times * from && to_step[n - 1] == n_times * to) {
      count[n - 1] *= n_times;
      from_step[n - 1] = from;
      to_step[n - 1] = to;
      return;
    }
    count[n] = n_times;
    from_step[n] = from;
    to_step[n] = to;
    ++n;
  }
};

template <std::size_t n_bytes>
void copy_elements(std::uint64_t n, const std::byte* from, std::uint64_t from_step, std::byte* to,
                   std::uint64_t to_step) {
  for (std::uint64_t i = 0; i < n; ++i) {
    std::memcpy(to, from, n_bytes);
    from += from_step;
    to += to_step;
  }
}

void copy_row(std::uint64_t n, const std::byte* from, std::uint64_t from_step, std::byte* to,
              std::uint64_t to_step, std::size_t element_bytes) {
  if (from_step == element_bytes && to_step == element_bytes) {
    std::memcpy(to, from, n * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1: copy_elements<1>(n, from, from_step, to, to_step); return;
    case 2: copy_elements<2>(n, from, from_step, to, to_step); return;
    case 4: copy_elements<4>(n, from, from_step, to, to_step); return;
    case 8: copy_elements<8>(n, from, from_step, to, to_step); return;
    default:
      for (std::uint64_t i = 0; i < n; ++i) {
        std::memcpy(to + i * to_step, from + i * from_step, element_bytes);
      }
  }
}

void run(const CopyLoops& loops, const std::byte* from, std::byte* to, std::size_t element_bytes) {
  if (loops.n == 0) {
    std::memcpy(to, from, element_bytes);
    return;
  }
  const std::size_t inner = loops.n - 1;
  std::array<std::uint64_t, kMaxRank + 1> at{};
  while (true) {
    copy_row(loops.count[inner], from, loops.from_step[inner], to, loops.to_step[inner],
             element_bytes);
    std::size_t d = inner;
    while (true) {
      if (d == 0) return;
      --d;
      from += loops.from_step[d];
      to += loops.to_step[d];
      if (++at[d] < loops.count[d]) break;
      from -= loops.count[d] * loops.from_step[d];
      to -= loops.count[d] * loops.to_step[d];
      at[d] = 0;
    }
  }
}

/// Loops over a part in the array of a box and in the dense array of its slab's elements.
struct PartLoops {
  CopyLoops loops;
  std::uint64_t in_box = 0;   ///< Byte position of the part's first element in the box's array.
  std::uint64_t in_slab = 0;  ///< Its byte position in the slab's array.

  PartLoops(const SlabPart& part, const Box& box, const Slab& slab, std::size_t element_bytes) {
    const std::size_t rank = box.rank();
    TAILRACE_CHECK(part.slab.rank() == rank && slab.rank() == rank && part.first.size() == rank);
    std::array<std::uint64_t, kMaxRank + 1> box_step{};
    std::array<std::uint64_t, kMaxRank + 1> slab_step{};
    std::uint64_t box_bytes = element_bytes;
    std::uint64_t slab_bytes = element_bytes;
    for (std::size_t d = rank; d-- > 0;) {
      box_step[d] = box_bytes;
      slab_step[d] = slab_bytes;
      in_box += (part.slab.start[d] - box.start[d]) * box_bytes;
      in_slab += part.first[d] * slab_bytes;
      box_bytes *= box.count[d];
      slab_bytes *= slab.count[d];
    }
    for (std::size_t d = 0; d < rank; ++d) {
      loops.add(part.slab.count[d], box_step[d] * part.slab.stride_of(d), slab_step[d]);
    }
  }
};

}  // namespace

bool Slab::dense() const {
  for (std::size_t d = 0; d < rank(); ++d) {
    if (count[d] > 1 && stride_of(d) != 1) return false;
  }
  return true;
}

std::optional<std::uint64_t> Slab::first_of_run(const Shape& shape) const {
  if (!dense() || empty()) return std::nullopt;
  std::uint64_t first = 0;
  bool begun = false;  // True after a dimension with several elements: the inner ones must then be
                       // complete.
  for (std::size_t d = 0; d < rank(); ++d) {
    if (begun && count[d] != shape[d]) return std::nullopt;
    begun = begun || count[d] > 1;
    first = first * shape[d] + start[d];
  }
  return first;
}

Box Slab::bounding_box() const {
  Box box{start, count};
  for (std::size_t d = 0; d < rank(); ++d) {
    if (count[d] > 1) box.count[d] = (count[d] - 1) * stride_of(d) + 1;
  }
  return box;
}

std::string slab_text(const Slab& slab) {
  std::string text = "[";
  for (std::size_t d = 0; d < slab.rank(); ++d) {
    if (d > 0) text += ", ";
    const std::uint64_t stride = slab.stride_of(d);
    const std::uint64_t n = slab.count[d];
    const std::uint64_t end = slab.start[d] + (n == 0 ? 0 : (n - 1) * stride + 1);
    text += std::to_string(slab.start[d]) + ":" + std::to_string(end);
    if (stride != 1) text += ":" + std::to_string(stride);
  }
  return text + "]";
}

Status check_slab(const Slab& slab, const Shape& shape) {
  const std::size_t rank = shape.size();
  if (slab.start.size() != rank || slab.count.size() != rank ||
      (!slab.stride.empty() && slab.stride.size() != rank)) {
    return Status(Code::invalid_argument, "a slab has " + std::to_string(slab.start.size()) +
                                              " starts, " + std::to_string(slab.count.size()) +
                                              " counts and " + std::to_string(slab.stride.size()) +
                                              " strides; expected " + std::to_string(rank) +
                                              " of each (strides may be omitted)");
  }
  for (std::size_t d = 0; d < rank; ++d) {
    const std::string where = "dimension " + std::to_string(d) + " of the slab: ";
    if (slab.stride_of(d) == 0) {
      return Status(Code::invalid_argument, where + "stride is 0, must be at least 1");
    }
    const std::uint64_t n = slab.count[d];
    const std::uint64_t start = slab.start[d];
    bool inside = start <= shape[d];
    if (n > 0) {
      inside = start < shape[d] && n - 1 <= (shape[d] - 1 - start) / slab.stride_of(d);
    }
    if (!inside) {
      return Status(Code::bad_coverage, where + std::to_string(n) + " elements from index " +
                                            std::to_string(start) + " with stride " +
                                            std::to_string(slab.stride_of(d)) +
                                            " exceed the extent " + std::to_string(shape[d]));
    }
  }
  return Status();
}

SlabPart part_within(const Slab& slab, const Box& box) {
  const std::size_t rank = slab.rank();
  TAILRACE_CHECK(box.rank() == rank);
  SlabPart part{{Shape(rank), Shape(rank), slab.stride}, Shape(rank)};
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t stride = slab.stride_of(d);
    const std::uint64_t first = n_steps(slab.start[d], box.start[d], stride);
    const std::uint64_t end =
        std::min(n_steps(slab.start[d], box.start[d] + box.count[d], stride), slab.count[d]);
    part.first[d] = first;
    part.slab.start[d] = slab.start[d] + first * stride;
    part.slab.count[d] = end > first ? end - first : 0;
  }
  return part;
}

void gather_part(const SlabPart& part, const Box& from_box, const std::byte* from, const Slab& slab,
                 std::byte* to, std::size_t element_bytes) {
  if (part.slab.empty()) return;
  const PartLoops both(part, from_box, slab, element_bytes);
  run(both.loops, from + both.in_box, to + both.in_slab, element_bytes);
}

void scatter_part(const SlabPart& part, const Slab& slab, const std::byte* from, const Box& to_box,
                  std::byte* to, std::size_t element_bytes) {
  if (part.slab.empty()) return;
  PartLoops both(part, to_box, slab, element_bytes);
  std::swap(both.loops.from_step, both.loops.to_step);
  run(both.loops, from + both.in_slab, to + both.in_box, element_bytes);
}

}  // namespace tailrace
