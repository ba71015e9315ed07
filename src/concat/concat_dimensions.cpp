// Comparison of inputs with the first one's survey, and remarks on the differences.

#include "concat/concat_dimensions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "concat/concat_inputs.hpp"
#include "core/utf8.hpp"

namespace tailrace {
namespace {

/// Source number of the output that is appended to: its rows precede all inputs'.
constexpr std::uint64_t kOlderSource = UINT64_MAX;
constexpr std::size_t kNamesInLine = 8;

/// True for attributes without which a dataset's values would have another meaning.
bool gives_meaning(std::string_view name) {
  static constexpr std::array<std::string_view, 8> names = {
      "units",      "calendar",      "scale_factor", "add_offset",
      "_FillValue", "missing_value", "_Unsigned",    "_Encoding"};
  return std::ranges::find(names, name) != names.end();
}

/// True for attributes that record how a file was made, which nearly always differ.
bool is_history(std::string_view name) {
  static constexpr std::array<std::string_view, 14> names = {"history",
                                                             "history_of_appended_files",
                                                             "NCO",
                                                             "CDO",
                                                             "nco_openmp_thread_number",
                                                             "creation_date",
                                                             "date_created",
                                                             "date_modified",
                                                             "tracking_id",
                                                             "uuid",
                                                             "filename",
                                                             "timeStamp",
                                                             "date",
                                                             "id"};
  return std::ranges::find(names, name) != names.end();
}

std::string quoted_dataset(const std::string& path) { return "dataset \"" + path + "\""; }

std::string quoted_object(const SurveyedObject& object) {
  return (object.dataset ? "dataset \"" : "group \"") + object.path + "\"";
}

/// "(/time, /y)"
std::string dimensions_text(const std::vector<std::string>& dimensions) {
  std::string text;
  for (const std::string& dimension : dimensions) {
    text += (text.empty() ? "" : ", ") + (dimension.empty() ? std::string("-") : dimension);
  }
  return "(" + text + ")";
}

/// Calls visit(name) for each attribute that differs between two objects.
template <class Visit>
void for_each_difference(const SurveyedObject& a, const SurveyedObject& b, Visit&& visit) {
  auto x = a.attributes.begin();
  auto y = b.attributes.begin();
  while (x != a.attributes.end() || y != b.attributes.end()) {
    if (y == b.attributes.end() || (x != a.attributes.end() && x->first < y->first)) {
      visit((x++)->first);
    } else if (x == a.attributes.end() || y->first < x->first) {
      visit((y++)->first);
    } else {
      if (x->second != y->second) visit(x->first);
      ++x;
      ++y;
    }
  }
}

/// Set the row count of growing datasets to the length of their dimension: that of its longest
/// dataset.
void give_dimension_rows(const DimensionSurvey& survey, std::vector<StoredDataset>& datasets) {
  std::unordered_map<std::string_view, std::string_view> dimension_of;
  for (const SurveyedObject& object : survey.objects) {
    if (!object.dimensions.empty() && !object.dimensions[0].empty()) {
      dimension_of.emplace(object.path, object.dimensions[0]);
    }
  }
  std::unordered_map<std::string_view, std::uint64_t> length;
  const auto for_each_growing = [&](const auto& visit) {
    for (StoredDataset& dataset : datasets) {
      const auto dimension = dimension_of.find(dataset.path);
      if (!dataset.appended || !dataset.chunked() || dimension == dimension_of.end()) continue;
      visit(dataset, length[dimension->second]);
    }
  };
  for_each_growing([](const StoredDataset& dataset, std::uint64_t& n_rows) {
    n_rows = std::max(n_rows, dataset.n_rows());
  });
  for_each_growing([](StoredDataset& dataset, std::uint64_t n_rows) { dataset.shape[0] = n_rows; });
}

}  // namespace

Status ConcatDimensions::take_first(ConcatInput& input) {
  on_ = input.has_dimensions();
  if (!on_) {
    if (request_.tile_dimensions.empty()) return Status();
    return Status(Code::invalid_argument,
                  input.path() + ": the file has no dimensions, which --tile needs");
  }
  const auto choose = [&](const DimensionSurvey& survey) -> Result<PathSet> {
    TAILRACE_TRY(tiles_.choose_axes(survey));
    if (tiles_.on()) {
      for (const SurveyedObject& object : survey.objects) {
        if (object.dataset && !tiles_.is_tiled(object.dimensions)) fixed_.insert(object.path);
      }
      return fixed_;
    }
    TAILRACE_TAKE(PathSet fixed, fixed_datasets(input.datasets(), survey));
    const bool alone = request_.inputs.size() == 1 && !request_.append;
    if (fixed.size() == input.datasets().size() && !alone) {
      return Status(Code::invalid_argument,
                    "no dataset has an unlimited dimension to append along; make one (ncks "
                    "--mk_rec_dmn), or give --tile to place inputs by the values of a coordinate");
    }
    fixed_ = fixed;
    return fixed;
  };
  return input.visit_hdf5([&](std::int64_t file) {
    TAILRACE_TAKE(first_, survey_dimensions(file, choose));
    return Status();
  });
}

void ConcatDimensions::pack(ByteWriter& writer) const {
  writer.add(static_cast<std::uint8_t>(on_));
  if (!on_) return;
  pack_survey(writer, first_);
  tiles_.pack(writer);
  for (const std::string& path : fixed_) writer.add_text(path);
}

void ConcatDimensions::unpack(ByteReader& reader) {
  on_ = reader.take<std::uint8_t>() != 0;
  if (!on_) return;
  first_ = unpack_survey(reader);
  tiles_.unpack(reader);
  fixed_.clear();
  while (!reader.at_end()) fixed_.insert(reader.take_text());
}

void ConcatDimensions::mark_fixed(std::vector<StoredDataset>& datasets) const {
  for (StoredDataset& dataset : datasets) {
    if (fixed_.contains(dataset.path)) dataset.appended = false;
  }
}

std::string ConcatDimensions::source_name(std::uint64_t source) const {
  return source == kOlderSource ? request_.output : request_.inputs[source];
}

void ConcatDimensions::accept() {
  for (std::pair<std::string, std::string>& where : found_.differences) {
    Difference& difference = differences_[std::move(where)];
    if (difference.n_inputs++ == 0) difference.first_source = found_.source;
    difference.first_source = std::min(difference.first_source, found_.source);
  }
  for (auto& [path, order] : found_.orders) orders_[path].push_back({found_.source, order});
  found_ = {};
  tiles_.accept();
}

void ConcatDimensions::find_orders(const DimensionSurvey& survey) {
  for (const SurveyedObject& object : survey.objects) {
    if (!object.order || fixed_.contains(object.path) || object.order->n_values == 0) continue;
    if (tiles_.on()) continue;  // Tiles are ordered by position.
    found_.orders.emplace_back(object.path, *object.order);
  }
}

Status ConcatDimensions::compare(ConcatInput& input, std::uint64_t source,
                                 std::span<const StoredDataset> first_datasets,
                                 std::vector<StoredDataset>& datasets) {
  mark_fixed(datasets);
  DimensionSurvey survey;
  TAILRACE_TRY(input.visit_hdf5([&](std::int64_t file) {
    TAILRACE_TAKE(survey, survey_dimensions(file, [&](const DimensionSurvey&) -> Result<PathSet> {
                    return fixed_;
                  }));
    return Status();
  }));
  found_ = {};
  found_.source = source;
  find_orders(survey);
  give_dimension_rows(survey, datasets);
  if (tiles_.on()) TAILRACE_TRY(tiles_.take(survey, first_, source, first_datasets, datasets));
  std::unordered_map<std::string_view, const SurveyedObject*> objects;
  for (const SurveyedObject& object : survey.objects) objects.emplace(object.path, &object);
  const bool refuses = request_.on_different == OnDifferent::error;
  constexpr const char* reference = "the first file";
  constexpr const char* keep = "--on-different keep-first keeps that of the first file";
  std::vector<std::string> lines;
  for (const SurveyedObject& first : first_.objects) {
    const auto found = objects.find(first.path);
    if (found == objects.end()) {
      // A missing dataset is a conflict of schemas.
      if (!first.dataset) found_.differences.emplace_back(first.path, "(the group)");
      continue;
    }
    const SurveyedObject& object = *found->second;
    if (object.dimensions != first.dimensions) {
      lines.push_back(fmt::format("{}: dimensions {}, but {} in {}", quoted_dataset(first.path),
                                  dimensions_text(object.dimensions),
                                  dimensions_text(first.dimensions), reference));
    }
    if (first.values && object.values != first.values) {
      const bool scalar = first.dimensions.empty();
      if (refuses && !scalar) {
        lines.push_back(fmt::format(
            "{}: it has no unlimited dimension, and its values differ from those in {}; {}",
            quoted_dataset(first.path), reference, keep));
      } else {
        found_.differences.emplace_back(first.path, "");
      }
    }
    for_each_difference(first, object, [&](const std::string& attribute) {
      if (tiles_.on() && ConcatTiles::is_of_tile(attribute)) return;
      if (refuses && first.dataset && gives_meaning(attribute)) {
        lines.push_back(
            fmt::format("{}: attribute \"{}\", which the meaning of the values depends on, differs "
                        "from that in {}; {}",
                        quoted_object(first), attribute, reference, keep));
      } else {
        found_.differences.emplace_back(first.path, attribute);
      }
    });
  }
  for (const SurveyedObject& object : survey.objects) {
    if (object.dataset || first_.find(object.path) != nullptr) continue;
    found_.differences.emplace_back(object.path, "(the group)");
  }
  return lines.empty() ? Status() : Status::of_lines(Code::invalid_argument, conflicts_text(lines));
}

Status ConcatDimensions::compare_older(ConcatInput& older, std::vector<StoredDataset>& datasets) {
  TAILRACE_TRY(compare(older, kOlderSource, {}, datasets));
  accept();
  return Status();
}

Result<std::vector<ValueDigest>> ConcatDimensions::digests(ConcatInput& input,
                                                           std::span<const std::string> paths) {
  std::vector<ValueDigest> digests;
  TAILRACE_TRY(input.visit_hdf5([&](std::int64_t file) {
    for (const std::string& path : paths) {
      TAILRACE_TAKE(const ValueDigest digest, digest_dataset(file, path));
      digests.push_back(digest);
    }
    return Status();
  }));
  return digests;
}

Status ConcatDimensions::merge(Comm& comm, std::vector<StoredDataset>& schema) {
  if (!on_) return Status();
  ByteWriter mine;
  mine.add(static_cast<std::uint32_t>(differences_.size()));
  for (const auto& [where, difference] : differences_) {
    mine.add_text(where.first);
    mine.add_text(where.second);
    mine.add(difference);
  }
  for (const auto& [path, orders] : orders_) {
    mine.add_text(path);
    mine.add(static_cast<std::uint64_t>(orders.size()));
    for (const CoordinateOrder& order : orders) mine.add(order);
  }
  const std::vector<Bytes> all = comm.gather(mine.bytes(), 0);
  differences_.clear();
  orders_.clear();
  for (const Bytes& bytes : all) {
    ByteReader reader(bytes);
    for (auto n = reader.take<std::uint32_t>(); n > 0; --n) {
      std::string path = reader.take_text();
      std::string attribute = reader.take_text();
      const auto theirs = reader.take<Difference>();
      Difference& difference = differences_[{std::move(path), std::move(attribute)}];
      if (difference.n_inputs == 0) difference = Difference{theirs.first_source, 0};
      difference.first_source = std::min(difference.first_source, theirs.first_source);
      difference.n_inputs += theirs.n_inputs;
    }
    while (!reader.at_end()) {
      std::vector<CoordinateOrder>& orders = orders_[reader.take_text()];
      for (auto n = reader.take<std::uint64_t>(); n > 0; --n) {
        orders.push_back(reader.take<CoordinateOrder>());
      }
    }
  }
  return tiles_.on() ? tiles_.lay_out(comm, first_, schema) : Status();
}

/// Remark on the first place where a coordinate changes direction; empty: none.
std::string ConcatDimensions::order_remark(const std::string& path,
                                           const std::vector<CoordinateOrder>& orders) const {
  int direction = 0;  // 1: ascends, -1: descends.
  const CoordinateOrder* before = nullptr;
  for (const CoordinateOrder& at : orders) {
    if (before != nullptr) {
      const double step = at.order.first - before->order.last;
      const int goes = step > 0 ? 1 : step < 0 ? -1 : 0;
      if (direction == 0) direction = goes;
      if (goes == 0 || goes != direction) {
        return fmt::format(
            "coordinate \"{}\" is not monotonic over the inputs: {} begins at {}, "
            "after {} in {}",
            path, source_name(at.source), at.order.first, before->order.last,
            source_name(before->source));
      }
    }
    if (at.order.n_values > 1) {
      const int goes = at.order.ascends ? 1 : at.order.descends ? -1 : 0;
      if (direction == 0) direction = goes;
      if (goes == 0 || goes != direction) {
        return fmt::format(
            "coordinate \"{}\" is not monotonic over the inputs: {} has values from "
            "{} to {}",
            path, source_name(at.source), at.order.first, at.order.last);
      }
    }
    before = &at;
  }
  return "";
}

std::vector<std::pair<std::string, std::string>> ConcatDimensions::left_out_attributes() const {
  std::vector<std::pair<std::string, std::string>> left_out;
  for (const SurveyedObject& object : first_.objects) {
    for (const auto& [attribute, digest] : object.attributes) {
      if (!tiles_.on() || !ConcatTiles::is_of_tile(attribute)) continue;
      left_out.emplace_back(object.path, attribute);
    }
  }
  return left_out;
}

std::vector<std::string> ConcatDimensions::remarks() const {
  std::vector<std::string> values;
  std::vector<std::string> history;
  std::vector<std::string> others;
  for (const auto& [where, difference] : differences_) {
    const auto& [path, attribute] = where;
    const std::string first = source_name(difference.first_source);
    if (attribute.empty()) {
      values.push_back(fmt::format("{} (in {})", path, first));
    } else {
      (is_history(attribute) ? history : others)
          .push_back(fmt::format("{}@{} (in {})", path, attribute, first));
    }
  }
  std::vector<std::string> lines;
  const auto report = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) lines.push_back(what + first_names_text(names, kNamesInLine));
  };
  report(
      "datasets without an unlimited dimension differ between inputs; the values of the first "
      "input are kept: ",
      values);
  report("attributes differ between inputs; those of the first input are kept: ", others);
  report(
      "history and provenance attributes differ between inputs; those of the first input are "
      "kept: ",
      history);
  for (const auto& [path, orders] : orders_) {
    std::vector<CoordinateOrder> sorted = orders;
    std::ranges::sort(sorted, {}, [](const CoordinateOrder& at) {
      return at.source + 1;  // The older output wraps around to 0, so it comes first.
    });
    std::string line = order_remark(path, sorted);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (!left_out_attributes().empty()) {
    lines.push_back(
        "attributes that describe a single tile (domain_decomposition, NumFilesInSet) are not in "
        "the output");
  }
  lines.insert(lines.end(), tiles_.remarks().begin(), tiles_.remarks().end());
  return lines;
}

}  // namespace tailrace
