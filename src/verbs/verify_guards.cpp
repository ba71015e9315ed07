#include "verbs/verify_guards.hpp"

#include <algorithm>
#include <cmath>

#include "trz/base/error_bound.hpp"
#include "verbs/fidelity.hpp"

namespace tailrace::verbs {
namespace {

template <class T>
struct GuardedBox {
  const VerifyTask& task;
  const Box& box;
  const T* x;
  const T* y;
  BrokenGuards& broken;

  void found(std::uint64_t index) const {
    if (broken.n++ == 0) broken.first = index;
  }
};

template <class T>
void check_values(const GuardedBox<T>& of) {
  Guards of_each = of.task.guards;
  of_each.minmax = false;
  const ValueGuards guards(of_each, 0, 0);
  const bool any = guards.zeros || !guards.thresholds.empty() || !guards.functions.empty();
  const std::uint64_t count = any ? of.box.n_elements() : 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(of.x[i]);
    // The comparison of values requires that these are bit-identical.
    if (!std::isfinite(x) || of.task.fill_value == x) continue;
    if (breaks_guards(guards, x, static_cast<double>(of.y[i]))) of.found(i);
  }
}

/// Check the regions' tighter bounds.
template <class T>
void check_regions_of(const GuardedBox<T>& of, const RegionLevels& tighter) {
  for (std::uint64_t i = 0; i < tighter.of_value.size(); ++i) {
    if (tighter.of_value[i] == 0) continue;
    const auto x = static_cast<double>(of.x[i]);
    const auto y = static_cast<double>(of.y[i]);
    if (!std::isfinite(x) || of.task.fill_value == x) continue;
    const double bound = tighter.bounds[tighter.of_value[i] - 1U];
    if (!std::isfinite(y) || exceeds_bound(x, y, bound)) of.found(i);
  }
}

/// Check that neighbours along an axis retain their order. At the ends of a box, next to other
/// boxes, values must be exact (docs/guards.md), so that pairs across boxes retain their order,
/// too.
template <class T>
void check_order(const GuardedBox<T>& of, std::size_t axis) {
  const Box& box = of.box;
  std::uint64_t stride = 1;
  for (std::size_t d = axis + 1; d < box.rank(); ++d) stride *= box.count[d];
  const std::uint64_t length = box.count[axis];
  const bool is_first = box.start[axis] == 0;
  const bool is_last = box.start[axis] + length == of.task.shape[axis];
  const auto moved = [&](std::uint64_t i) { return of.x[i] == of.x[i] && of.x[i] != of.y[i]; };
  for (std::uint64_t i = 0; i < box.n_elements(); ++i) {
    const std::uint64_t at = i / stride % length;
    const bool at_end = (at == 0 && !is_first) || (at + 1 == length && !is_last);
    if (at_end && moved(i)) of.found(i);
    if (at + 1 == length) continue;
    const std::uint64_t next = i + stride;
    if (turns_order(of.x[i], of.x[next], of.y[i], of.y[next])) of.found(i);
  }
}

/// Check the sum of each chunk's values. Elements beyond the array's end do not count.
template <class T>
void check_sums(const GuardedBox<T>& of) {
  const Box& box = of.box;
  const bool chunked = of.task.chunk_shape.size() == box.rank();
  const ChunkGrid grid{box.count, chunked ? of.task.chunk_shape : box.count};
  for (std::uint64_t chunk = 0; chunk < grid.n_chunks(); ++chunk) {
    Box rows = grid.clipped_box(chunk);
    if (rows.rank() == 0) return;
    const std::uint64_t row_length = rows.count.back();
    rows.count.back() = 1;
    ExactSum excess;
    T greatest = 0;
    std::uint64_t first = 0;
    bool any = false;
    for_each_position(rows, [&](const Shape& at) {
      std::uint64_t begin = 0;
      for (std::size_t d = 0; d < at.size(); ++d) begin = begin * box.count[d] + at[d];
      if (!any) first = begin;
      any = true;
      for (std::uint64_t i = begin; i < begin + row_length; ++i) {
        const T x = of.x[i];
        if (!std::isfinite(x) || of.task.fill_value == static_cast<double>(x)) continue;
        excess.add(static_cast<double>(of.y[i]));
        excess.add(-static_cast<double>(x));
        greatest = std::max({greatest, std::fabs(x), std::fabs(of.y[i])});
      }
    });
    excess.carry();
    if (!(std::fabs(excess.value()) <= sum_tolerance(greatest))) of.found(first);
  }
}

template <class T>
BrokenGuards check(const VerifyTask& task, const Box& box, const RegionLevels& tighter,
                   std::span<const std::byte> original, std::span<const std::byte> decoded) {
  BrokenGuards broken;
  const GuardedBox<T> of{task, box, reinterpret_cast<const T*>(original.data()),
                         reinterpret_cast<const T*>(decoded.data()), broken};
  check_values(of);
  for (const int axis : task.guards.monotone) {
    const auto a = static_cast<std::size_t>(axis);
    if (a < box.rank() && !box.empty()) check_order(of, a);
  }
  if (task.guards.sum && !box.empty()) check_sums(of);
  check_regions_of(of, tighter);
  return broken;
}

}  // namespace

BrokenGuards find_broken_guards(const VerifyTask& task, const Box& box, const RegionLevels& tighter,
                                std::span<const std::byte> original,
                                std::span<const std::byte> decoded) {
  if (task.dtype == DType::f32) return check<float>(task, box, tighter, original, decoded);
  if (task.dtype == DType::f64) return check<double>(task, box, tighter, original, decoded);
  return {};
}

}  // namespace tailrace::verbs
