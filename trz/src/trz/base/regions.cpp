#include "trz/base/regions.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <tuple>

#include "trz/base/error_bound.hpp"

namespace tailrace {
namespace {

constexpr std::string_view kForms =
    "expected A..Bx*x...:BOUND with a range or * for each axis, or /MASK:BOUND";

Status no_region(const std::string& why) {
  return Status(Code::invalid_argument, why + "; " + std::string(kForms));
}

std::optional<std::uint64_t> index_of(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

/// Parse "A..B", where A or B may be omitted, or "*", and append the range to `region`.
Status add_range(std::string_view text, RegionGuard& region) {
  const std::string quoted = "\"" + std::string(text) + "\"";
  std::uint64_t begin = 0;
  std::uint64_t end = RegionGuard::kOpenEnd;
  if (text != "*") {
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return no_region(quoted + " is not a range A..B");
    const std::string_view first = text.substr(0, dots);
    const std::string_view last = text.substr(dots + 2);
    if (!first.empty()) {
      const std::optional<std::uint64_t> index = index_of(first);
      if (!index) return no_region(quoted + " is not a range A..B");
      begin = *index;
    }
    if (!last.empty()) {
      const std::optional<std::uint64_t> index = index_of(last);
      if (!index || *index == RegionGuard::kOpenEnd)
        return no_region(quoted + " is not a range A..B");
      end = *index;
    }
    if (begin >= end) return no_region(quoted + " is empty: B must be greater than A");
  }
  if (region.begin.size() == kMaxRank)
    return no_region("more than " + std::to_string(kMaxRank) + " ranges");
  region.begin.push_back(begin);
  region.end.push_back(end);
  return Status();
}

Status set_mask(std::string_view path, RegionGuard& region) {
  // Options and guards are separated by these characters.
  const bool plain = std::ranges::none_of(path, [](char c) {
    return c == '+' || c == ',' || c == ';' || (c >= 0 && c <= ' ') || c == 0x7f;
  });
  if (path.size() < 2 || path.back() == '/' || path.find("//") != std::string_view::npos ||
      !plain) {
    return no_region("\"" + std::string(path) +
                     "\" is not a path of a mask, or contains one of + , ; or a blank");
  }
  region.mask = path;
  return Status();
}

std::string range_text(std::uint64_t begin, std::uint64_t end) {
  if (end == RegionGuard::kOpenEnd) return begin == 0 ? "*" : std::to_string(begin) + "..";
  return std::to_string(begin) + ".." + std::to_string(end);
}

/// The part of a region that lies in a box; empty if they do not overlap.
Box part_of(const RegionGuard& region, const Box& box) {
  Box whole{region.begin, region.end};
  for (std::size_t d = 0; d < whole.rank(); ++d) whole.count[d] -= whole.start[d];
  return intersect(whole, box);
}

/// Call visit(first) with the index of the first value of each row of `part`. Indexes count the
/// values of a row-major array of `extents` that begins at the box's start.
template <class Visit>
void for_each_row(const Box& part, const Box& box, const Shape& extents, Visit&& visit) {
  if (part.empty()) return;
  Box rows = part;
  rows.count.back() = 1;
  for_each_position(rows, [&](const Shape& at) {
    std::uint64_t first = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      first = first * extents[d] + (at[d] - box.start[d]);
    }
    visit(first);
  });
}

}  // namespace

bool RegionGuard::operator<(const RegionGuard& other) const {
  return std::tie(mask, begin, end, most) <
         std::tie(other.mask, other.begin, other.end, other.most);
}

Result<RegionGuard> parse_region(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return no_region("the bound is missing");
  RegionGuard region;
  const std::string_view number = text.substr(colon + 1);
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, region.most);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(region.most) ||
      region.most < 0) {
    return no_region("\"" + std::string(number) + "\" is not a bound >= 0");
  }
  if (region.most == 0) region.most = 0;  // Turn -0 into 0.
  std::string_view where = text.substr(0, colon);
  if (where.starts_with('/')) {
    TAILRACE_TRY(set_mask(where, region));
    return region;
  }
  for (bool more = true; more;) {
    const std::size_t next = where.find('x');
    TAILRACE_TRY(add_range(where.substr(0, next), region));
    more = next != std::string_view::npos;
    if (more) where = where.substr(next + 1);
  }
  return region;
}

std::string region_text(const RegionGuard& region) {
  std::string text = region.mask;
  for (std::size_t d = 0; d < region.begin.size(); ++d) {
    text += (d == 0 ? "" : "x") + range_text(region.begin[d], region.end[d]);
  }
  return text + ":" + number_text(region.most);
}

Status check_regions(std::span<const RegionGuard> regions, const Shape& shape,
                     std::uint64_t growing) {
  for (const RegionGuard& region : regions) {
    if (!region.mask.empty()) continue;
    const auto bad = [&](const std::string& why) {
      return Status(Code::invalid_argument, "guard=region=" + region_text(region) + ": " + why);
    };
    if (region.begin.size() != shape.size()) {
      return bad("it has " + std::to_string(region.begin.size()) + " axes, the dataset has shape " +
                 shape_text(shape));
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if ((growing >> d & 1U) != 0) continue;
      const bool ends_behind = region.end[d] != RegionGuard::kOpenEnd && region.end[d] > shape[d];
      if (region.begin[d] < shape[d] && !ends_behind) continue;
      return bad("it exceeds the shape " + shape_text(shape) + " along axis " + std::to_string(d));
    }
  }
  return Status();
}

bool has_masks(std::span<const RegionGuard> regions) {
  return std::ranges::any_of(regions, [](const RegionGuard& r) { return !r.mask.empty(); });
}

Result<RegionLevels> region_levels(std::span<const RegionGuard> regions, const RegionMasks& masks,
                                   const Box& box, const Shape& extents) {
  RegionLevels levels;
  for (const RegionGuard& region : regions) levels.bounds.push_back(region.most);
  std::ranges::sort(levels.bounds, std::greater<>());
  levels.bounds.erase(std::unique(levels.bounds.begin(), levels.bounds.end()), levels.bounds.end());
  if (box.rank() == 0 || box.empty()) return levels;
  const auto prepare = [&] {
    if (levels.empty()) levels.of_value.resize(n_elements(extents), 0);
  };
  const std::uint64_t row = box.count.back();
  std::vector<std::uint8_t> inside;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const RegionGuard& region = regions[r];
    const auto found = std::ranges::find(levels.bounds, region.most);
    const auto level = static_cast<std::uint8_t>(found - levels.bounds.begin() + 1);
    if (region.mask.empty()) {
      const Box part = part_of(region, box);
      if (part.empty()) continue;
      prepare();
      for_each_row(part, box, extents, [&](std::uint64_t first) {
        std::uint8_t* of = levels.of_value.data() + first;
        for (std::uint64_t i = 0; i < part.count.back(); ++i) of[i] = std::max(of[i], level);
      });
      continue;
    }
    if (r >= masks.size() || masks[r] == nullptr) continue;
    inside.resize(box.n_elements());
    TAILRACE_TRY(masks[r]->read(box, inside));
    if (std::ranges::find(inside, 1) == inside.end()) continue;
    prepare();
    const std::uint8_t* marks = inside.data();
    for_each_row(box, box, extents, [&](std::uint64_t first) {
      std::uint8_t* of = levels.of_value.data() + first;
      for (std::uint64_t i = 0; i < row; ++i) {
        of[i] = std::max(of[i], static_cast<std::uint8_t>(marks[i] != 0 ? level : 0));
      }
      marks += row;
    });
  }
  return levels;
}

}  // namespace tailrace
