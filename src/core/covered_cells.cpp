#include "core/covered_cells.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/box_index.hpp"

namespace tailrace {
namespace {

/// Offset added to indices, so that none is negative.
constexpr std::int64_t kBias = std::int64_t{1} << 34;

std::int64_t floor_of(std::int64_t number, std::int64_t divisor) {
  const std::int64_t quotient = number / divisor;
  return number % divisor < 0 ? quotient - 1 : quotient;
}

/// Convert a box of the finer level to the cells of the coarser level that it contains completely,
/// as words of BoxIndex, slowest axis first. Counts are 0 if it contains none.
void coarsen(const LevelCorners& finer, std::size_t box, std::span<const std::int64_t> ratio,
             std::span<std::uint64_t> words) {
  const std::size_t rank = finer.n_dimensions;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t first = floor_of(finer.low(box, axis) + ratio[axis] - 1, ratio[axis]);
    const std::int64_t end = floor_of(finer.high(box, axis) + 1, ratio[axis]);
    words[rank - 1 - axis] = static_cast<std::uint64_t>(first + kBias);
    words[2 * rank - 1 - axis] = static_cast<std::uint64_t>(std::max<std::int64_t>(end - first, 0));
  }
}

}  // namespace

std::vector<CoveredPart> covered_parts(const LevelCorners& level, const LevelCorners& finer,
                                       std::span<const std::int64_t> ratio) {
  const std::size_t rank = level.n_dimensions;
  std::vector<std::uint64_t> coarsened(finer.n_boxes() * 2 * rank);
  const auto coarse = [&](std::size_t number) {
    return std::span(coarsened).subspan(number * 2 * rank, 2 * rank);
  };
  for (std::size_t f = 0; f < finer.n_boxes(); ++f) coarsen(finer, f, ratio, coarse(f));
  BoxIndex index;
  index.extend(finer.n_boxes(), rank, [&](std::size_t number, std::span<std::uint64_t> words) {
    std::ranges::copy(coarse(number), words.begin());
  });
  std::vector<CoveredPart> parts;
  std::vector<std::uint64_t> own(2 * rank);
  const std::vector<std::int64_t> ones(rank, 1);
  for (std::size_t b = 0; b < level.n_boxes(); ++b) {
    coarsen(level, b, ones, own);
    const std::size_t first = parts.size();
    index.visit(own, [&](std::size_t number) {
      const std::span<const std::uint64_t> other = coarse(number);
      if (!boxes_touch(own, other)) return true;
      CoveredPart part{b, {Shape(rank), Shape(rank)}};
      for (std::size_t d = 0; d < rank; ++d) {
        const std::uint64_t start = std::max(own[d], other[d]);
        const std::uint64_t end = std::min(own[d] + own[rank + d], other[d] + other[rank + d]);
        part.cells.start[d] = start - own[d];
        part.cells.count[d] = end - start;
      }
      if (!part.cells.empty()) parts.push_back(std::move(part));
      return true;
    });
    std::sort(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end(),
              [](const CoveredPart& x, const CoveredPart& y) {
                return std::tie(x.cells.start, x.cells.count) <
                       std::tie(y.cells.start, y.cells.count);
              });
  }
  return parts;
}

CoveredCells::CoveredCells(std::shared_ptr<const BoxSeries> boxes, std::vector<CoveredPart> parts)
    : boxes_(std::move(boxes)), parts_(std::move(parts)) {
  Run next;
  for (const BoxSeries::Run& run : boxes_->runs) {
    runs_.push_back(next);
    next.first_box += run.n_boxes;
    next.first_element += run.n_boxes * boxes_->components.size() * tailrace::n_elements(run.cells);
  }
  n_elements_ = next.first_element;
}

bool CoveredCells::mark(std::uint64_t first, std::span<std::uint8_t> marks) const {
  const std::uint64_t end = std::min(first + marks.size(), n_elements_);
  const std::uint64_t n_components = boxes_->components.size();
  bool any = false;
  const auto mark_row = [&](std::uint64_t from, std::uint64_t n) {
    const std::uint64_t low = std::max(from, first);
    const std::uint64_t high = std::min(from + n, end);
    if (low >= high) return;
    std::memset(marks.data() + (low - first), 1, high - low);
    any = true;
  };
  // Mark the part in one component, whose cells begin at element `base`.
  const auto mark_part = [&](const Shape& cells, const Box& part, std::uint64_t base) {
    // Pad to three axes: the slowest missing axes have length 1.
    std::array<std::uint64_t, 3> extent{1, 1, 1};
    std::array<std::uint64_t, 3> start{0, 0, 0};
    std::array<std::uint64_t, 3> count{1, 1, 1};
    for (std::size_t d = 0; d < cells.size(); ++d) {
      const std::size_t at = d + 3 - cells.size();
      extent[at] = cells[d];
      start[at] = part.start[d];
      count[at] = part.count[d];
    }
    const std::uint64_t plane = extent[1] * extent[2];
    for (std::uint64_t z = start[0]; z < start[0] + count[0]; ++z) {
      if (base + (z + 1) * plane <= first) continue;
      if (base + z * plane >= end) break;
      for (std::uint64_t y = start[1]; y < start[1] + count[1]; ++y) {
        mark_row(base + z * plane + y * extent[2] + start[2], count[2]);
      }
    }
  };
  auto run = static_cast<std::size_t>(
      std::ranges::upper_bound(runs_, first, {}, &Run::first_element) - runs_.begin());
  for (run -= run > 0 ? 1 : 0; run < runs_.size() && runs_[run].first_element < end; ++run) {
    const BoxSeries::Run& boxes = boxes_->runs[run];
    const std::uint64_t n_cells = tailrace::n_elements(boxes.cells);
    const std::uint64_t of_box = n_components * n_cells;
    const std::uint64_t run_first = runs_[run].first_element;
    const std::uint64_t first_box = first > run_first ? (first - run_first) / of_box : 0;
    const std::uint64_t end_box = std::min(boxes.n_boxes, (end - run_first + of_box - 1) / of_box);
    auto part =
        std::ranges::lower_bound(parts_, runs_[run].first_box + first_box, {}, &CoveredPart::box);
    for (; part != parts_.end() && part->box < runs_[run].first_box + end_box; ++part) {
      const std::uint64_t begin = run_first + (part->box - runs_[run].first_box) * of_box;
      const std::uint64_t skipped = first > begin ? (first - begin) / n_cells : 0;
      for (std::uint64_t c = skipped; c < n_components && begin + c * n_cells < end; ++c) {
        mark_part(boxes.cells, part->cells, begin + c * n_cells);
      }
    }
  }
  return any;
}

std::uint64_t CoveredCells::component_end(std::uint64_t element) const {
  if (element >= n_elements_) return UINT64_MAX;
  const auto behind = std::ranges::upper_bound(runs_, element, {}, &Run::first_element);
  const auto run = static_cast<std::size_t>(behind - runs_.begin()) - 1;
  const std::uint64_t first = runs_[run].first_element;
  const std::uint64_t n_cells = tailrace::n_elements(boxes_->runs[run].cells);
  return first + ((element - first) / n_cells + 1) * n_cells;
}

std::uint64_t CoveredCells::n_cells() const {
  std::uint64_t n = 0;
  for (const CoveredPart& part : parts_) n += part.cells.n_elements();
  return n;
}

std::uint64_t CoveredCells::checksum() const {
  // Hash word by word: there may be millions of parts.
  std::uint64_t digest = parts_.size();
  const auto add = [&](std::uint64_t word) { digest = (digest ^ word) * 0x100000001B3U; };
  for (const CoveredPart& part : parts_) {
    add(part.box);
    for (const std::uint64_t word : part.cells.start) add(word);
    for (const std::uint64_t word : part.cells.count) add(word);
  }
  return digest;
}

}  // namespace tailrace
