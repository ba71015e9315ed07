// Computes spans along axes, and the cells that files cover.

#include "describe/tile_layout.hpp"

#include <algorithm>
#include <map>

namespace tailrace {
namespace {

using Name = std::function<std::string(std::uint64_t)>;

std::string span_text(const TileSpan& span) {
  return std::to_string(span.begin + 1) + " to " + std::to_string(span.end);
}

Status overlap(const std::string& axis, const Name& name, const TileFacts& a, const TileFacts& b,
               const std::string& where_a, const std::string& where_b) {
  return Status(Code::invalid_argument, name(a.source) + " and " + name(b.source) +
                                            " overlap along dimension \"" + axis +
                                            "\": " + where_a + ", and " + where_b);
}

/// Compute spans from the files' attributes. A gap between them becomes a span without a file.
Status spans_by_attribute(TileAxis& axis, std::span<const TileFacts> facts, const Name& name) {
  std::vector<TileFacts> sorted(facts.begin(), facts.end());
  std::ranges::stable_sort(sorted, {}, [](const TileFacts& f) { return f.span.begin; });
  std::uint64_t end = 0;
  const auto add = [&](std::uint64_t begin, std::uint64_t to, std::uint64_t domain) {
    if (to > begin) axis.spans.push_back({begin, to, domain});
  };
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const TileFacts& at = sorted[i];
    const TileFacts& before = sorted[i == 0 ? 0 : i - 1];
    if (!at.has_span || at.span.domain != sorted[0].span.domain) {
      return Status(Code::invalid_argument, name(at.source) + ": dataset \"" + axis.path +
                                                "\": its attribute domain_decomposition is "
                                                "missing, or describes another domain than in " +
                                                name(sorted[0].source));
    }
    if (at.span.end - at.span.begin != at.n_values) {
      return Status(Code::invalid_argument, name(at.source) + ": dataset \"" + axis.path +
                                                "\" has " + std::to_string(at.n_values) +
                                                " elements, but domain_decomposition states " +
                                                span_text(at.span));
    }
    if (i > 0 && at.span == before.span) continue;
    if (at.span.begin < end) {
      return overlap(axis.path, name, before, at, span_text(before.span), span_text(at.span));
    }
    add(end, at.span.begin, at.span.domain);
    add(at.span.begin, at.span.end, at.span.domain);
    end = at.span.end;
  }
  add(end, sorted[0].span.domain, sorted[0].span.domain);
  return Status();
}

std::string values_text(const ValueOrder& order) {
  return "values " + std::to_string(order.first) + " to " + std::to_string(order.last);
}

/// Compute spans from the order of the coordinate's values, ascending or descending.
Status spans_by_values(TileAxis& axis, std::span<TileFacts> facts, const Name& name) {
  bool ascends = true;
  bool descends = true;
  for (const TileFacts& at : facts) {
    if (at.n_values == 0 || at.order.n_values != at.n_values ||
        !(at.order.ascends || at.order.descends)) {
      return Status(Code::invalid_argument,
                    name(at.source) + ": the position of the tile along dimension \"" + axis.path +
                        "\" is unknown; its coordinate needs monotonic values or an attribute "
                        "domain_decomposition");
    }
    ascends = ascends && at.order.ascends;
    descends = descends && at.order.descends;
  }
  if (!ascends && !descends) {
    return Status(Code::invalid_argument,
                  "coordinate \"" + axis.path + "\" ascends in some inputs and descends in others");
  }
  std::vector<TileFacts*> sorted;
  for (TileFacts& at : facts) sorted.push_back(&at);
  std::ranges::stable_sort(sorted, [&](const TileFacts* a, const TileFacts* b) {
    return ascends ? a->order.first < b->order.first : a->order.first > b->order.first;
  });
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    TileFacts& at = *sorted[i];
    const TileFacts& before = *sorted[i == 0 ? 0 : i - 1];
    if (i > 0 && at.order == before.order) {
      at.span = before.span;
      continue;
    }
    const bool behind =
        ascends ? at.order.first > before.order.last : at.order.first < before.order.last;
    if (i > 0 && !behind) {
      return overlap(axis.path, name, before, at, values_text(before.order), values_text(at.order));
    }
    at.span = {end, end + at.n_values, 0};
    axis.spans.push_back(at.span);
    end += at.n_values;
  }
  return Status();
}

}  // namespace

Result<TileLayout> TileLayout::make(std::span<const std::string> axes,
                                    std::span<const std::vector<TileFacts>> facts,
                                    std::size_t n_sources, const Name& name) {
  TileLayout layout;
  layout.span_of_.assign(n_sources, std::vector<std::uint32_t>(axes.size(), nowhere));
  for (std::size_t a = 0; a < axes.size(); ++a) {
    TileAxis& axis = layout.axes_.emplace_back();
    axis.path = axes[a];
    std::vector<TileFacts> of_axis = facts[a];
    if (of_axis.empty()) continue;
    const bool by_attribute = std::ranges::any_of(of_axis, &TileFacts::has_span);
    TAILRACE_TRY(by_attribute ? spans_by_attribute(axis, of_axis, name)
                              : spans_by_values(axis, of_axis, name));
    for (const TileFacts& at : of_axis) {
      const auto span = std::ranges::lower_bound(axis.spans, at.span.begin, {}, &TileSpan::begin);
      layout.span_of_[at.source][a] = static_cast<std::uint32_t>(span - axis.spans.begin());
    }
  }
  std::map<std::vector<std::uint32_t>, std::size_t> seen;
  for (std::size_t s = 0; s < n_sources; ++s) {
    const std::vector<std::uint32_t>& cell = layout.span_of_[s];
    if (std::ranges::find(cell, nowhere) != cell.end()) continue;
    const auto [other, added] = seen.emplace(cell, s);
    if (added) continue;
    std::string where;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      where += (a > 0 ? ", " : "") + axes[a] + " " + span_text(layout.axes_[a].spans[cell[a]]);
    }
    return Status(Code::invalid_argument, name(other->second) + " and " + name(s) +
                                              " are the same tile: " + where +
                                              "; name more dimensions by --tile");
  }
  return layout;
}

std::vector<std::uint32_t> TileLayout::axes_of(std::span<const std::string> dimensions) const {
  std::vector<std::uint32_t> axes;
  for (const std::string& dimension : dimensions) {
    const auto axis = std::ranges::find(axes_, dimension, &TileAxis::path);
    axes.push_back(axis == axes_.end() ? nowhere
                                       : static_cast<std::uint32_t>(axis - axes_.begin()));
  }
  return axes;
}

Shape TileLayout::domain_shape(std::span<const std::uint32_t> axes, Shape shape) const {
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] != nowhere) shape[d] = axes_[axes[d]].domain();
  }
  return shape;
}

Box TileLayout::box_of(std::span<const std::uint32_t> axes, const Shape& shape,
                       std::size_t source) const {
  Box box{Shape(shape.size(), 0), shape};
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] == nowhere) continue;
    const TileSpan& span = axes_[axes[d]].spans[span_of_[source][axes[d]]];
    box.start[d] = span.begin;
    box.count[d] = span.end - span.begin;
  }
  return box;
}

std::vector<std::uint32_t> TileLayout::cell_of(std::span<const std::uint32_t> axes,
                                               std::size_t source) const {
  std::vector<std::uint32_t> cell;
  for (const std::uint32_t axis : axes) {
    cell.push_back(axis == nowhere ? 0 : span_of_[source][axis]);
    if (cell.back() == nowhere) return {};
  }
  return cell;
}

const TileLayout::Cells& TileLayout::cells_of(std::span<const std::uint32_t> axes) const {
  const auto [known, added] = used_.try_emplace({axes.begin(), axes.end()});
  for (std::size_t s = 0; added && s < span_of_.size(); ++s) {
    std::vector<std::uint32_t> cell = cell_of(axes, s);
    if (cell.empty()) continue;
    const auto [use, first] = known->second.try_emplace(std::move(cell), CellUse{s, 0});
    ++use->second.n_files;
  }
  return known->second;
}

std::size_t TileLayout::owner(std::span<const std::uint32_t> axes, std::size_t source) const {
  return cells_of(axes).at(cell_of(axes, source)).first;
}

std::size_t TileLayout::n_sharing(std::span<const std::uint32_t> axes, std::size_t source) const {
  return cells_of(axes).at(cell_of(axes, source)).n_files;
}

std::vector<Box> TileLayout::missing(std::span<const std::uint32_t> axes,
                                     const Shape& shape) const {
  // Cells as coordinates in the spans of the dataset's dimensions.
  Box all{Shape(axes.size(), 0), Shape(axes.size(), 1)};
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] != nowhere) all.count[d] = axes_[axes[d]].spans.size();
  }
  std::vector<Box> cells;
  for_each_position(all, [&](const Shape& at) {
    if (cells_of(axes).contains({at.begin(), at.end()})) return;
    Box& box = cells.emplace_back(whole_box(shape));
    for (std::size_t d = 0; d < axes.size(); ++d) {
      if (axes[d] == nowhere) continue;
      const TileSpan& span = axes_[axes[d]].spans[at[d]];
      box.start[d] = span.begin;
      box.count[d] = span.end - span.begin;
    }
  });
  return cells;
}

std::string TileLayout::cell_text(std::span<const std::uint32_t> axes, const Box& box) const {
  std::string text;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] == nowhere) continue;
    text += (text.empty() ? "" : ", ") + axes_[axes[d]].path + " " +
            span_text({box.start[d], box.start[d] + box.count[d], 0});
  }
  return text;
}

void TileLayout::pack(ByteWriter& writer) const {
  writer.add(static_cast<std::uint32_t>(axes_.size()));
  for (const TileAxis& axis : axes_) {
    writer.add_text(axis.path);
    writer.add(static_cast<std::uint32_t>(axis.spans.size()));
    for (const TileSpan& span : axis.spans) writer.add(span);
  }
  writer.add(static_cast<std::uint64_t>(span_of_.size()));
  for (const std::vector<std::uint32_t>& cell : span_of_) {
    for (const std::uint32_t index : cell) writer.add(index);
  }
}

TileLayout TileLayout::unpack(ByteReader& reader) {
  TileLayout layout;
  for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
    TileAxis& axis = layout.axes_.emplace_back();
    axis.path = reader.take_text();
    for (auto s = reader.take<std::uint32_t>(); s > 0; --s) {
      axis.spans.push_back(reader.take<TileSpan>());
    }
  }
  layout.span_of_.resize(static_cast<std::size_t>(reader.take<std::uint64_t>()));
  for (std::vector<std::uint32_t>& cell : layout.span_of_) {
    for (std::size_t a = 0; a < layout.axes_.size(); ++a) {
      cell.push_back(reader.take<std::uint32_t>());
    }
  }
  return layout;
}

}  // namespace tailrace
