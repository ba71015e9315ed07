// Ranges of --slab.

#include "export_slab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace tailrace::cli {
namespace {

/// One range of --slab: what Python's slices mean, without negative numbers.
struct Range {
  std::optional<std::uint64_t> start;
  std::optional<std::uint64_t> end;
  std::uint64_t step = 1;
};

Result<std::vector<Range>> parse_ranges(const std::string& text) {
  const auto wrong = [&](std::string_view part) {
    return Status(
        Code::invalid_argument,
        fmt::format("--slab {}: expected START:END or START:END:STEP, found \"{}\"", text, part));
  };
  std::vector<Range> ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = std::string_view(text).substr(at, end - at);
    std::vector<std::optional<std::uint64_t>> numbers;
    for (std::size_t from = 0; from <= part.size();) {
      const std::size_t to = std::min(part.find(':', from), part.size());
      std::optional<std::uint64_t> number;
      if (to > from) {
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(part.data() + from, part.data() + to, value);
        if (parsed.ec != std::errc() || parsed.ptr != part.data() + to) return wrong(part);
        number = value;
      }
      numbers.push_back(number);
      from = to + 1;
    }
    if (numbers.size() == 1 && numbers[0]) numbers.emplace_back(*numbers[0] + 1);
    if (numbers.size() < 2 || numbers.size() > 3) return wrong(part);
    Range range{numbers[0], numbers[1], 1};
    if (numbers.size() == 3) range.step = numbers[2].value_or(1);
    if (range.step == 0) return wrong(part);
    ranges.push_back(range);
    at = end + 1;
  }
  return ranges;
}

}  // namespace

Result<Slab> slab_of(const StoredDataset& dataset, const std::string& text) {
  const Shape& shape = dataset.shape();
  if (text.empty()) return Slab::of(whole_box(shape));
  const Result<std::vector<Range>> ranges = parse_ranges(text);
  if (!ranges.ok()) return ranges.status();
  if (ranges->size() != shape.size()) {
    return Status(Code::invalid_argument,
                  fmt::format("--slab {}: {} ranges, dataset \"{}\" is {}", text, ranges->size(),
                              dataset.path, shape_text(shape)));
  }
  Slab slab;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Range& range = (*ranges)[d];
    const std::uint64_t start = range.start.value_or(0);
    const std::uint64_t end = range.end.value_or(shape[d]);
    if (start > end || end > shape[d]) {
      return Status(Code::bad_coverage,
                    fmt::format("--slab {}: {}:{} leaves the extent {} of dataset \"{}\"", text,
                                start, end, shape[d], dataset.path));
    }
    slab.start.push_back(start);
    slab.count.push_back(start == end ? 0 : (end - start - 1) / range.step + 1);
    slab.stride.push_back(range.step);
  }
  return slab;
}

Result<std::size_t> n_ranges(const std::string& text) {
  const Result<std::vector<Range>> ranges = parse_ranges(text);
  if (!ranges.ok()) return ranges.status();
  return ranges->size();
}

}  // namespace tailrace::cli
