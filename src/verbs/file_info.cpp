// Examines a file.

#include "verbs/file_info.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>

#include "core/codec_registry.hpp"
#include "hdf5/recover.hpp"
#include "hdf5/writer_lock.hpp"
#include "verbs/input_fields.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::verbs {
namespace {

SpaceInfo measure_space(std::vector<Extent> extents, std::uint64_t file_bytes) {
  SpaceInfo space;
  std::ranges::sort(extents, {}, &Extent::address);
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

Status read_hdf5(InfoReport& report) {
  std::vector<std::string> paths;
  for (const FieldInfo& info : report.fields) paths.push_back(info.field.path);
  TAILRACE_TAKE(std::vector<FieldAttributes> attributes, read_field_attributes(report.path, paths));
  TAILRACE_TAKE(std::unique_ptr<ChunkIndexReader> reader, ChunkIndexReader::open(report.path));

  std::vector<Extent> extents;
  const auto add = [&](const std::vector<StoredChunk>& chunks) {
    for (const StoredChunk& chunk : chunks) extents.push_back(chunk.extent);
  };
  for (std::size_t f = 0; f < report.fields.size(); ++f) {
    report.fields[f].attributes = std::move(attributes[f]);
    TAILRACE_TAKE(report.fields[f].chunks, reader->read(paths[f]));
    add(report.fields[f].chunks);
    report.n_masked_chunks += static_cast<std::uint64_t>(std::ranges::count_if(
        report.fields[f].chunks, [](const StoredChunk& chunk) { return chunk.filter_mask != 0; }));
  }
  // Strings, compounds and the like are not fields, but their bytes are data, too.
  TAILRACE_TAKE(std::vector<std::string> all_paths, reader->dataset_paths());
  const std::unordered_set<std::string> listed(paths.begin(), paths.end());
  for (const std::string& path : all_paths) {
    if (listed.contains(path)) continue;
    Result<std::vector<StoredChunk>> chunks = reader->read(path);
    if (chunks.ok()) add(*chunks);
  }
  report.space = measure_space(std::move(extents), report.file_bytes);
  TAILRACE_TAKE(report.forms, reader_forms_of(report.path));
  return Status();
}

/// Report the progress of a file that its job has not closed.
void add_unfinished(InfoReport& report) {
  const Result<std::string> path = resolve_links(report.path);
  if (!path.ok() || ::access(lock_path_of(*path).c_str(), F_OK) != 0) return;
  const std::string writer = writer_of(*path);
  report.remarks.push_back(writer.empty() ? "The job that wrote the file died before it closed it."
                                          : "The file is being written by " + writer + ".");
  if (const std::string text = last_entries_text(*path); !text.empty()) {
    report.remarks.push_back(text);
  }
}

}  // namespace

Shape FieldInfo::chunk_start(const StoredChunk& chunk) const {
  if (!field.chunked()) return Shape(field.shape.size(), 0);
  return ChunkGrid{field.shape, field.storage.chunk_shape}.full_box(chunk.chunk_index).start;
}

std::string FieldInfo::storage() const {
  constexpr const char* names[] = {"virtual", "compact", "contiguous", "chunked"};
  return field.type.empty() ? "" : names[static_cast<std::size_t>(field.storage.kind)];
}

Result<InfoReport> file_info(const InfoRequest& request) {
  ReadOptions reading;
  reading.follow_external = request.follow_external;
  reading.skip_unreadable = true;  // List the readable rest.
  TAILRACE_TAKE(auto opened, open_input(request.file, request.raw_format, reading));
  const std::vector<StoredDataset>& fields = opened->fields();
  const bool lists = !request.chunks_of.empty();
  InfoReport report;
  report.path = request.file;
  report.format = opened->format();
  report.others = opened->other_datasets();
  report.remarks = opened->remarks();
  if (std::string end = opened->remark_of_end(); !end.empty()) {
    report.remarks.push_back(std::move(end));
  }
  report.unreadable = opened->unreadable();
  report.file_bytes = file_bytes_of(request.file);
  report.hdf5 = report.format == "HDF5" || report.format == "netCDF-4";
  for (const StoredDataset& field : fields) {
    const bool lists_chunks = lists && glob_matches(request.chunks_of, field.path);
    report.fields.push_back({field, {}, {}, lists_chunks, find_quantization(*opened, field)});
  }
  if (report.hdf5) TAILRACE_TRY(read_hdf5(report));
  if (report.hdf5) add_unfinished(report);
  if (!lists) return report;
  if (!report.hdf5) {
    return Status(Code::unsupported,
                  fmt::format("{}: --chunks needs an HDF5 file; {} files have no chunks",
                              request.file, report.format));
  }
  TAILRACE_TRY(check_patterns_match(std::vector{request.chunks_of}, "--chunks", fields));
  return report;
}

}  // namespace tailrace::verbs

std::string tailrace::filter_name(const FilterSpec& filter) {
  const CodecEntry* known = find_filter(filter.filter_id);
  if (known != nullptr && !known->name.empty()) return std::string(known->name);
  if (known != nullptr && !known->summary.empty()) return std::string(known->summary);
  return filter.name.empty() ? fmt::format("id {}", filter.filter_id)
                             : fmt::format("{} (id {})", filter.name, filter.filter_id);
}
