// Comparison of inputs with the first one's survey, and remarks on the differences.

#include "concat/concat_dimensions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "concat/concat_inputs.hpp"
#include "core/utf8.hpp"

namespace tailrace {
namespace {

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
    first_ = input.survey();
    if (request_.tile_dimensions.empty()) return Status();
    return Status(Code::invalid_argument,
                  input.path() + ": the file has no dimensions, which --tile needs");
  }
  const auto choose = [&](const DimensionSurvey& survey) -> Result<PathSet> {
    TAILRACE_TRY(tiles_.choose_axes(survey));
    if (tiles_.on()) {
      for (const SurveyedObject& object : survey.objects) {
        if (object.is_dataset() && !tiles_.is_tiled(object.dimensions)) fixed_.insert(object.path);
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
  pack_survey(writer, first_);
  tiles_.pack(writer);
  for (const std::string& path : fixed_) writer.add_text(path);
}

void ConcatDimensions::unpack(ByteReader& reader) {
  on_ = reader.take<std::uint8_t>() != 0;
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
  return source == SurveyDifferences::kOlderSource ? request_.output : request_.inputs[source];
}

void ConcatDimensions::accept() {
  differences_.accept();
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
  found_ = {};
  found_.source = source;
  const SurveyDifferences::Rules rules{request_.on_different == OnDifferent::keep_first,
                                       tiles_.on()};
  const auto compare_with_first = [&](const DimensionSurvey& survey) {
    const std::vector<std::string> lines = differences_.compare(first_, survey, source, rules);
    return lines.empty() ? Status()
                         : Status::of_lines(Code::invalid_argument, conflicts_text(lines));
  };
  if (!on_) return compare_with_first(input.survey());
  mark_fixed(datasets);
  DimensionSurvey survey;
  TAILRACE_TRY(input.visit_hdf5([&](std::int64_t file) {
    TAILRACE_TAKE(survey, survey_dimensions(file, [&](const DimensionSurvey&) -> Result<PathSet> {
                    return fixed_;
                  }));
    return Status();
  }));
  find_orders(survey);
  give_dimension_rows(survey, datasets);
  if (tiles_.on()) TAILRACE_TRY(tiles_.take(survey, first_, source, first_datasets, datasets));
  return compare_with_first(survey);
}

Status ConcatDimensions::compare_older(ConcatInput& older, std::vector<StoredDataset>& datasets) {
  TAILRACE_TRY(compare(older, SurveyDifferences::kOlderSource, {}, datasets));
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
  differences_.merge(comm);
  if (!on_) return Status();
  ByteWriter mine;
  for (const auto& [path, orders] : orders_) {
    mine.add_text(path);
    mine.add(static_cast<std::uint64_t>(orders.size()));
    for (const CoordinateOrder& order : orders) mine.add(order);
  }
  const std::vector<Bytes> all = comm.gather(mine.bytes(), 0);
  orders_.clear();
  for (const Bytes& bytes : all) {
    ByteReader reader(bytes);
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
      if (!tiles_.on() || !is_tile_attribute(attribute)) continue;
      left_out.emplace_back(object.path, attribute);
    }
  }
  return left_out;
}

std::vector<std::string> ConcatDimensions::remarks() const {
  SurveyDifferences::Names names;
  if (request_.append) names.reference = "the output";
  names.of_source = [&](std::uint64_t source) { return source_name(source); };
  std::vector<std::string> lines = differences_.remarks(first_, names);
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
