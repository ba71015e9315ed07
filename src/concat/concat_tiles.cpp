// Choosing axes, laying out tiles, comparing the parts that tiles share.

#include "concat/concat_tiles.hpp"

#include <algorithm>
#include <unordered_map>

#include "concat/concat_inputs.hpp"
#include "core/utf8.hpp"
#include "hdf5/hdf5_paths.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kTilesInLine = 8;

std::string tiled_dataset_text(const StoredDataset& dataset) {
  return "dataset \"" + dataset.path + "\"";
}

}  // namespace

Status ConcatTiles::choose_axes(const DimensionSurvey& first) {
  for (const std::string& name : request_.tile_dimensions) {
    const std::size_t before = axes_.size();
    for (const SurveyedObject& object : first.objects) {
      if (!object.scale || object.dimensions.empty()) continue;
      if (object.path == name || last_component(object.path) == name) axes_.push_back(object.path);
    }
    if (axes_.size() > before) continue;
    return Status(Code::invalid_argument, "--tile " + name + ": no dimension has this name");
  }
  for (const SurveyedObject& object : first.objects) {
    const bool part = object.tile && object.tile->is_part();
    if (!part || !request_.tile_dimensions.empty()) continue;
    if (object.scale && object.dimensions.size() == 1) {
      axes_.push_back(object.path);
      continue;
    }
    return Status(Code::invalid_argument,
                  "dataset \"" + object.path +
                      "\": it has an attribute domain_decomposition but is not the coordinate of a "
                      "dimension; name the dimensions of the tiles by --tile");
  }
  if (!on()) return Status();
  if (request_.append || !request_.key_names.empty()) {
    return Status(Code::invalid_argument,
                  "inputs are tiles of a domain (dimension \"" + axes_.front() +
                      "\"); --append and --key are not supported with tiles");
  }
  return Status();
}

void ConcatTiles::pack(ByteWriter& writer) const {
  writer.add(static_cast<std::uint32_t>(axes_.size()));
  for (const std::string& axis : axes_) writer.add_text(axis);
}

void ConcatTiles::unpack(ByteReader& reader) {
  axes_.clear();
  for (auto n = reader.take<std::uint32_t>(); n > 0; --n) axes_.push_back(reader.take_text());
  facts_.resize(axes_.size());
}

bool ConcatTiles::is_tiled(const std::vector<std::string>& dimensions) const {
  return std::ranges::any_of(dimensions, [&](const std::string& dimension) {
    return std::ranges::find(axes_, dimension) != axes_.end();
  });
}

Status ConcatTiles::take(const DimensionSurvey& survey, const DimensionSurvey& first_survey,
                         std::size_t source, std::span<const StoredDataset> first,
                         std::vector<StoredDataset>& datasets) {
  taken_.clear();
  std::unordered_map<std::string_view, std::uint64_t> length;
  for (const StoredDataset& dataset : datasets) length.emplace(dataset.path, dataset.n_rows());
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const SurveyedObject* scale = survey.find(axes_[a]);
    if (scale == nullptr) {
      return Status(Code::invalid_argument, "dimension \"" + axes_[a] + "\" is missing");
    }
    const SurveyedObject* const first_scale = first_survey.find(axes_[a]);
    if (!scale->tile && first_scale != nullptr && first_scale->tile) {
      return Status(Code::invalid_argument, "dataset \"" + axes_[a] +
                                                "\": the attribute domain_decomposition, which "
                                                "gives the position of the tile, is missing");
    }
    TileFacts facts;
    facts.source = source;
    facts.n_values = length[axes_[a]];
    facts.has_span = scale->tile.has_value();
    facts.span = scale->tile.value_or(TileSpan());
    facts.order = scale->order.value_or(ValueOrder());
    taken_.push_back(facts);
  }
  std::unordered_map<std::string_view, const StoredDataset*> firsts;
  for (const StoredDataset& dataset : first) firsts.emplace(dataset.path, &dataset);
  for (StoredDataset& dataset : datasets) {
    const SurveyedObject* object = first_survey.find(dataset.path);
    const auto like = firsts.find(dataset.path);
    if (object == nullptr || like == firsts.end()) continue;  // A conflict of schemas.
    for (std::size_t d = 0; d < std::min(object->dimensions.size(), dataset.shape.size()); ++d) {
      const std::string& dimension = object->dimensions[d];
      if (std::ranges::find(axes_, dimension) == axes_.end()) continue;
      if (dataset.shape[d] != length[dimension]) {
        return Status(Code::invalid_argument,
                      tiled_dataset_text(dataset) + " has " + std::to_string(dataset.shape[d]) +
                          " elements along dimension \"" + dimension + "\" of length " +
                          std::to_string(length[dimension]));
      }
      if (d < like->second->shape.size()) dataset.shape[d] = like->second->shape[d];
    }
  }
  return Status();
}

void ConcatTiles::accept() {
  for (std::size_t a = 0; a < taken_.size(); ++a) facts_[a].push_back(taken_[a]);
  taken_.clear();
}

Status ConcatTiles::lay_out(Comm& comm, const DimensionSurvey& first_survey,
                            std::vector<StoredDataset>& schema) {
  ByteWriter mine;
  for (const std::vector<TileFacts>& facts : facts_) {
    mine.add(static_cast<std::uint64_t>(facts.size()));
    for (const TileFacts& at : facts) mine.add(at);
  }
  const std::vector<Bytes> all = comm.gather(mine.bytes(), 0);
  ByteWriter verdict;
  if (comm.is_root()) {
    std::vector<std::vector<TileFacts>> facts(axes_.size());
    for (const Bytes& bytes : all) {
      ByteReader reader(bytes);
      for (std::vector<TileFacts>& of_axis : facts) {
        for (auto n = reader.take<std::uint64_t>(); n > 0; --n) {
          of_axis.push_back(reader.take<TileFacts>());
        }
      }
    }
    Result<TileLayout> layout =
        TileLayout::make(axes_, facts, request_.inputs.size(),
                         [&](std::uint64_t source) { return request_.inputs[source]; });
    verdict.add_status(layout.status());
    if (layout.ok()) layout->pack(verdict);
  }
  Bytes packed = verdict.take();
  comm.broadcast(packed, 0);
  ByteReader reader(packed);
  TAILRACE_TRY(reader.take_status());
  layout_ = TileLayout::unpack(reader);
  axes_of_.assign(schema.size(), {});
  for (std::size_t d = 0; d < schema.size(); ++d) {
    const SurveyedObject* object = first_survey.find(schema[d].path);
    if (object == nullptr || !is_tiled(object->dimensions)) continue;
    if (!schema[d].by_value) {
      return Status(Code::unsupported, tiled_dataset_text(schema[d]) +
                                           ": tiles cannot have elements of variable length");
    }
    axes_of_[d] = layout_.axes_of(object->dimensions);
    schema[d].shape = layout_.domain_shape(axes_of_[d], schema[d].shape);
  }
  return check_missing(schema);
}

Status ConcatTiles::check_missing(std::span<const StoredDataset> schema) {
  std::vector<std::string> cells;
  for (std::size_t d = 0; d < schema.size(); ++d) {
    if (!is_tiled(d)) continue;
    for (const Box& box : missing(d, schema[d])) {
      std::string text = layout_.cell_text(axes_of_[d], box);
      if (std::ranges::find(cells, text) == cells.end()) cells.push_back(std::move(text));
      if (cells.size() > kTilesInLine) break;
    }
  }
  if (cells.empty()) return Status();
  std::string text = "tiles are missing: ";
  for (std::size_t i = 0; i < std::min(cells.size(), kTilesInLine); ++i) {
    text += (i > 0 ? "; " : "") + cells[i];
  }
  if (cells.size() > kTilesInLine) text += "; and more";
  if (!request_.allow_missing_tiles) {
    return Status(Code::invalid_argument,
                  text + "; --allow-missing-tiles leaves fill values there");
  }
  remarks_.push_back(text + "; the output has fill values there");
  return Status();
}

Status ConcatTiles::compare_shared(Comm& comm, std::span<const SharedDigest> digests,
                                   std::span<const StoredDataset> schema) {
  Status compared;
  const std::vector<Bytes> gathered = comm.gather(std::as_bytes(digests), 0);
  std::vector<SharedDigest> all;
  for (const Bytes& bytes : gathered) {
    ByteReader reader(bytes);
    while (!reader.at_end()) all.push_back(reader.take<SharedDigest>());
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, ValueDigest> owners;
  for (const SharedDigest& part : all) {
    if (owns(part.dataset, part.source)) owners[{part.dataset, part.source}] = part.digest;
  }
  std::vector<std::string> lines;
  for (const SharedDigest& part : all) {
    const auto owner =
        static_cast<std::uint32_t>(layout_.owner(axes_of_[part.dataset], part.source));
    if (owners.at({part.dataset, owner}) == part.digest) continue;
    lines.push_back(tiled_dataset_text(schema[part.dataset]) + " differs between " +
                    request_.inputs[owner] + " and " + request_.inputs[part.source] +
                    ", which both contain the same part");
  }
  if (!lines.empty() && request_.on_different == OnDifferent::keep_first) {
    remarks_.push_back("overlapping tiles differ; the values of the first input are kept: " +
                       first_names_text(lines, kTilesInLine));
  } else if (!lines.empty()) {
    compared = Status::of_lines(
        Code::invalid_argument,
        conflicts_text(lines) + "\n    --on-different keep-first keeps those of the first input");
  }
  return agree_with_root(comm, compared);
}

}  // namespace tailrace
