// tailrace info: one screen about a file, of any format that Tailrace reads.
//
// Rank 0 looks, the others wait for its verdict. Only headers and the chunk index are read, no
// values, so no plug-in is needed.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "hdf5/chunk_index_reader.hpp"
#include "describe/field_attributes.hpp"
#include "info_report.hpp"
#include "summary.hpp"
#include "text_table.hpp"

namespace tailrace::cli {
namespace {

/// One field with all that is known of its storage.
struct FieldFacts {
  InputField field;
  FieldAttributes attributes;
  std::vector<StoredChunk> chunks;

  std::uint64_t raw_bytes() const { return n_elements(field.shape) * dtype_bytes(field.dtype); }
};

/// How the bytes of an HDF5 file are used.
struct SpaceFacts {
  std::uint64_t n_extents = 0;
  std::uint64_t data_bytes = 0;   ///< Stored values of all datasets.
  std::uint64_t n_gaps = 0;       ///< Between stored pieces that do not touch.
  std::uint64_t gap_bytes = 0;    ///< In these gaps; part of them holds metadata.
  std::uint64_t other_bytes = 0;  ///< File less data: metadata, attributes, gaps.
};

struct FileFacts {
  std::string path;
  std::string format;
  std::uint64_t file_bytes = 0;
  bool hdf5 = false;
  std::vector<FieldFacts> fields;
  SpaceFacts space;
};

/// A filter by the name that people know, or by its number.
std::string filter_text(const StoredFilter& filter) {
  static const std::map<std::uint32_t, const char*> known = {
      {1, "deflate"},        {2, "shuffle"},     {3, "fletcher32"}, {4, "szip"},
      {5, "nbit"},           {6, "scaleoffset"}, {32001, "blosc"},  {32004, "lz4"},
      {32008, "bitshuffle"}, {32013, "zfp"},     {32015, "zstd"},   {32017, "sz2"},
      {32024, "sz3"},        {481, "trz"},       {32026, "blosc2"}};
  const auto found = known.find(filter.filter_id);
  if (found != known.end()) return found->second;
  return filter.name.empty() ? fmt::format("id {}", filter.filter_id)
                             : fmt::format("{} (id {})", filter.name, filter.filter_id);
}

std::string filters_text(const FieldAttributes& attributes) {
  std::string text;
  for (const StoredFilter& filter : attributes.filters) {
    text += (text.empty() ? "" : "+") + filter_text(filter);
  }
  return text;
}

SpaceFacts measure_space(std::vector<Extent> extents, std::uint64_t file_bytes) {
  SpaceFacts space;
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.address < b.address; });
  std::uint64_t end = 0;
  for (const Extent& extent : extents) {
    if (space.n_extents > 0 && extent.address > end) {
      ++space.n_gaps;
      space.gap_bytes += extent.address - end;
    }
    ++space.n_extents;
    space.data_bytes += extent.encoded_bytes;
    end = std::max(end, extent.address + extent.encoded_bytes);
  }
  space.other_bytes = file_bytes - std::min(file_bytes, space.data_bytes);
  return space;
}

std::vector<std::string> paths_of(const std::vector<FieldFacts>& fields) {
  std::vector<std::string> paths;
  paths.reserve(fields.size());
  for (const FieldFacts& field : fields) paths.push_back(field.field.path);
  return paths;
}

Status read_hdf5_facts(FileFacts& facts) {
  const std::vector<std::string> paths = paths_of(facts.fields);
  Result<std::vector<FieldAttributes>> attributes = read_field_attributes(facts.path, paths);
  if (!attributes.ok()) return attributes.status();
  Result<std::unique_ptr<ChunkIndexReader>> reader = ChunkIndexReader::open(facts.path);
  if (!reader.ok()) return reader.status();

  std::vector<Extent> extents;
  const auto add = [&](const std::vector<StoredChunk>& chunks) {
    for (const StoredChunk& chunk : chunks) extents.push_back(chunk.extent);
  };
  for (std::size_t f = 0; f < facts.fields.size(); ++f) {
    facts.fields[f].attributes = std::move((*attributes)[f]);
    Result<std::vector<StoredChunk>> chunks = (*reader)->read(paths[f]);
    if (!chunks.ok()) return chunks.status();
    facts.fields[f].chunks = std::move(*chunks);
    add(facts.fields[f].chunks);
  }
  // Strings, compounds and the like are no fields, but their bytes are data, too.
  Result<std::vector<std::string>> all_paths = (*reader)->dataset_paths();
  if (!all_paths.ok()) return all_paths.status();
  for (const std::string& path : *all_paths) {
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) continue;
    Result<std::vector<StoredChunk>> chunks = (*reader)->read(path);
    if (chunks.ok()) add(*chunks);
  }
  facts.space = measure_space(std::move(extents), facts.file_bytes);
  return Status();
}

Status gather_facts(const InfoArguments& arguments, FileFacts& facts) {
  facts.path = arguments.file;
  Result<std::unique_ptr<InputFile>> opened = open_input(arguments.file, arguments.raw_format);
  if (!opened.ok()) return opened.status();
  facts.format = (*opened)->format();
  facts.file_bytes = file_bytes_of(arguments.file);
  facts.hdf5 = facts.format == "HDF5" || facts.format == "netCDF-4";
  for (const InputField& field : (*opened)->fields()) {
    facts.fields.emplace_back();
    facts.fields.back().field = field;
  }
  if (facts.hdf5) TAILRACE_TRY(read_hdf5_facts(facts));
  if (arguments.chunks_of.empty()) return Status();
  if (!facts.hdf5) {
    return Status(Code::unsupported,
                  fmt::format("{}: {} files have no chunks", arguments.file, facts.format));
  }
  return check_patterns_match(std::vector{arguments.chunks_of}, "--chunks", (*opened)->fields());
}

std::string chunk_count_cell(const FieldFacts& facts) {
  return facts.attributes.storage == "chunked" ? fmt::format("{}", facts.chunks.size()) : "";
}

std::string info_text(const FileFacts& facts) {
  const std::string group = common_group(paths_of(facts.fields));
  TextTable table({{"field", false, 14},
                   {"type"},
                   {"shape", false, 9},
                   {"chunk\nshape", false, 9},
                   {"chunks", true},
                   {"filters", false, 9},
                   {"stored", true},
                   {"ratio", true},
                   {"bound", false, 9},
                   {"absolute\nbound", true},
                   {"error,\nof bound", true}});
  for (const FieldFacts& field : facts.fields) {
    const FieldAttributes& attributes = field.attributes;
    const bool lossy = attributes.bound_of_error() > 0;
    // A codec's own name tells more than its filters: "portable" is a shuffle and a deflate.
    const bool own_name = attributes.codec == "portable";
    table.add_row(
        {std::string(shown_path(field.field.path, group)),
         std::string(dtype_name(field.field.dtype)), shape_text(field.field.shape),
         field.field.chunk_shape.empty() ? attributes.storage : shape_text(field.field.chunk_shape),
         chunk_count_cell(field), own_name ? attributes.codec : filters_text(attributes),
         size_text(field.field.stored_bytes),
         ratio_text(field.raw_bytes(), field.field.stored_bytes),
         attributes.by_tailrace ? bound_column_text(attributes.bound) : "",
         attributes.absolute_bound > 0 ? fmt::format("{:.3g}", attributes.absolute_bound) : "",
         lossy && attributes.max_error
             ? share_text(*attributes.max_error, attributes.bound_of_error())
             : ""});
  }
  std::uint64_t raw_bytes = 0;
  for (const FieldFacts& field : facts.fields) raw_bytes += field.raw_bytes();
  std::string out = fmt::format("{}\n{}, {}, {} with {} of values{}, ratio {}\n\n", facts.path,
                                facts.format, size_text(facts.file_bytes),
                                counted(facts.fields.size(), "field"), size_text(raw_bytes),
                                group_remark(group), ratio_text(raw_bytes, facts.file_bytes));
  if (!table.empty()) out += table.text() + "\n";
  if (!facts.hdf5) return out;
  const SpaceFacts& space = facts.space;
  out += fmt::format("data {} in {}; metadata, attributes and gaps {}", size_text(space.data_bytes),
                     counted(space.n_extents, "piece"), size_text(space.other_bytes));
  if (space.n_gaps > 0) {
    out += fmt::format(" ({} in {} between pieces)", size_text(space.gap_bytes),
                       counted(space.n_gaps, "gap"));
  }
  return out + "\n";
}

Shape chunk_start(const FieldFacts& facts, const StoredChunk& chunk) {
  if (facts.field.chunk_shape.empty()) return Shape(facts.field.shape.size(), 0);
  return ChunkGrid{facts.field.shape, facts.field.chunk_shape}.full_box(chunk.chunk_index).start;
}

/// The chunks of the fields that match, in the order of their positions.
std::string chunk_list_text(const FileFacts& facts, const std::string& glob) {
  std::string out;
  for (const FieldFacts& field : facts.fields) {
    if (!glob_matches(glob, field.field.path)) continue;
    out += fmt::format("\n{}\n", field.field.path);
    TextTable table(
        {{"chunk", true}, {"start"}, {"address", true}, {"bytes", true}, {"filter mask", true}});
    for (const StoredChunk& chunk : field.chunks) {
      table.add_row({fmt::format("{}", chunk.chunk_index),
                     fmt::format("[{}]", fmt::join(chunk_start(field, chunk), ", ")),
                     fmt::format("{}", chunk.extent.address),
                     fmt::format("{}", chunk.extent.encoded_bytes),
                     fmt::format("{}", chunk.filter_mask)});
    }
    out += table.text();
  }
  return out;
}

nlohmann::ordered_json field_json(const FieldFacts& facts, bool with_chunks) {
  const FieldAttributes& attributes = facts.attributes;
  nlohmann::ordered_json entry;
  entry["path"] = facts.field.path;
  entry["dtype"] = std::string(dtype_name(facts.field.dtype));
  entry["shape"] = facts.field.shape;
  entry["chunk_shape"] = facts.field.chunk_shape;
  entry["storage"] = attributes.storage;
  entry["n_chunks"] = facts.chunks.size();
  entry["filters"] = nlohmann::ordered_json::array();
  for (const StoredFilter& filter : attributes.filters) {
    entry["filters"].push_back({{"id", filter.filter_id},
                                {"name", filter_text(filter)},
                                {"client_data", filter.client_data}});
  }
  entry["raw_bytes"] = facts.raw_bytes();
  entry["stored_bytes"] = facts.field.stored_bytes;
  entry["by_tailrace"] = attributes.by_tailrace;
  entry["codec"] = attributes.codec;
  entry["codec_version"] = attributes.codec_version;
  entry["tailrace_version"] = attributes.version;
  entry["bound_mode"] = std::string(bound_mode_name(attributes.bound.mode));
  entry["bound_asked"] = attributes.bound.value;
  entry["absolute_bound"] = attributes.absolute_bound;
  entry["pointwise_bound"] = attributes.pointwise_bound;
  entry["max_error"] =
      attributes.max_error ? nlohmann::ordered_json(*attributes.max_error) : nullptr;
  if (!with_chunks) return entry;
  entry["chunks"] = nlohmann::ordered_json::array();
  for (const StoredChunk& chunk : facts.chunks) {
    entry["chunks"].push_back({{"index", chunk.chunk_index},
                               {"start", chunk_start(facts, chunk)},
                               {"address", chunk.extent.address},
                               {"bytes", chunk.extent.encoded_bytes},
                               {"filter_mask", chunk.filter_mask}});
  }
  return entry;
}

nlohmann::ordered_json info_json(const FileFacts& facts, const std::string& chunks_of) {
  nlohmann::ordered_json document;
  document["schema_version"] = json_schema_version;
  document["command"] = "info";
  document["file"] = facts.path;
  document["format"] = facts.format;
  document["file_bytes"] = facts.file_bytes;
  document["data_bytes"] = facts.space.data_bytes;
  document["other_bytes"] = facts.space.other_bytes;
  document["n_gaps"] = facts.space.n_gaps;
  document["gap_bytes"] = facts.space.gap_bytes;
  document["fields"] = nlohmann::ordered_json::array();
  for (const FieldFacts& field : facts.fields) {
    const bool with_chunks = !chunks_of.empty() && glob_matches(chunks_of, field.field.path);
    document["fields"].push_back(field_json(field, with_chunks));
  }
  return document;
}

Status print_info(const InfoArguments& arguments) {
  ReportFile json;
  TAILRACE_TRY(json.open(arguments.json_path, true));
  Result<InfoReport> report = describe_file(arguments);
  if (!report.ok()) return report.status();
  if (!json.to_stdout()) fmt::print("{}", report->text);
  if (!json.wanted()) return Status();
  return json.finish(json_text(report->json));
}

}  // namespace

Result<InfoReport> describe_file(const InfoArguments& arguments) {
  FileFacts facts;
  TAILRACE_TRY(gather_facts(arguments, facts));
  InfoReport report{info_text(facts), info_json(facts, arguments.chunks_of)};
  if (!arguments.chunks_of.empty()) report.text += chunk_list_text(facts, arguments.chunks_of);
  return report;
}

int run_info(Session& session, const InfoArguments& arguments) {
  const Status status = session.settle(session.speaks() ? print_info(arguments) : Status());
  return status.ok() ? exit_done : session.fail(status);
}

}  // namespace tailrace::cli
