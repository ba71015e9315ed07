// info: contents of a file in any format that Tailrace reads. Reads headers and the chunk index but
// no values, so no plug-in is needed.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/field_attributes.hpp"
#include "describe/input_file.hpp"
#include "describe/reader_forms.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "verbs/input_fields.hpp"
#include "verbs/report_fields.hpp"

namespace tailrace {

/// Common name of a filter, or its number.
std::string filter_name(const FilterSpec& filter);

template <class Visit>
void report_fields(const FilterSpec& filter, Visit&& visit) {
  visit("id", filter.filter_id);
  visit("name", filter_name(filter));
  visit("client_data", filter.final_client_data);
}

}  // namespace tailrace

namespace tailrace::verbs {

struct InfoRequest {
  std::string file;
  std::string chunks_of;   ///< List the chunks of the fields that match this glob; empty: none.
  std::string raw_format;  ///< "f32:512x512x512"; empty: the file describes itself.
  bool follow_external = false;  ///< List datasets with values in other files, too (OtherFiles).
};

/// One field with its complete storage information.
struct FieldInfo {
  StoredDataset field;
  FieldAttributes attributes;
  std::vector<StoredChunk> chunks;
  bool lists_chunks = false;  ///< chunks_of matches this field.
  std::optional<Quantization> quantization;

  std::uint64_t raw_bytes() const { return n_elements(field.shape) * field.value_bytes(); }
  Shape chunk_start(const StoredChunk& chunk) const;
  /// "contiguous", "chunked", "compact", "virtual"; empty: not HDF5.
  std::string storage() const;
};

/// Use of the bytes of an HDF5 file.
struct SpaceInfo {
  std::uint64_t n_extents = 0;
  std::uint64_t data_bytes = 0;   ///< Stored values of all datasets.
  std::uint64_t n_gaps = 0;       ///< Gaps between stored pieces.
  std::uint64_t gap_bytes = 0;    ///< Bytes in these gaps; part of them holds metadata.
  std::uint64_t other_bytes = 0;  ///< File size minus data: metadata, attributes, gaps.
};

struct InfoReport {
  std::string path;
  std::string format;
  std::uint64_t file_bytes = 0;
  bool hdf5 = false;
  std::vector<FieldInfo> fields;
  std::vector<OtherDataset> others;  ///< Datasets that are not fields.
  SpaceInfo space;
  ReaderForms forms;                    ///< HDF5 files only.
  std::uint64_t n_masked_chunks = 0;    ///< Chunks that skip some of their dataset's filters.
  std::vector<std::string> remarks;     ///< Objects that are not listed; links that form cycles.
  std::vector<std::string> unreadable;  ///< Objects that HDF5 cannot open, with the reasons.
};

/// Examine a file. Not collective: called by one rank. @error not_found, corrupt, unsupported
Result<InfoReport> file_info(const InfoRequest& request);

// --- Report fields; docs/cli.md explains the names
// -----------------------------------------

struct ListedChunk {
  const FieldInfo& field;
  const StoredChunk& chunk;
};

template <class Visit>
void report_fields(const ListedChunk& listed, Visit&& visit) {
  visit("index", listed.chunk.chunk_index);
  visit("start", listed.field.chunk_start(listed.chunk));
  visit("address", listed.chunk.extent.address);
  visit("bytes", listed.chunk.extent.encoded_bytes);
  visit("filter_mask", listed.chunk.filter_mask);
}

template <class Visit>
void report_fields(const FieldInfo& info, Visit&& visit) {
  const FieldAttributes& attributes = info.attributes;
  visit("path", info.field.path);
  visit("dtype", dtype_name(*info.field.dtype));
  visit("shape", info.field.shape);
  visit("chunk_shape", info.field.storage.chunk_shape);
  visit("storage", info.storage());
  visit("n_chunks", info.chunks.size());
  visit("filters", info.field.storage.filters);
  visit("raw_bytes", info.raw_bytes());
  visit("stored_bytes", info.field.stored_bytes);
  visit("by_tailrace", attributes.by_tailrace);
  visit("codec", attributes.codec);
  visit("codec_version", attributes.codec_version);
  visit("tailrace_version", attributes.version);
  const bool by_component = !attributes.component_bounds.empty();
  visit("bound_mode",
        by_component ? std::string_view("component") : bound_mode_name(attributes.bound.mode));
  if (by_component) visit("component_bounds", attributes.component_bounds);
  visit("bound_asked", attributes.bound.value);
  visit("absolute_bound", attributes.absolute_bound);
  visit("pointwise_bound", attributes.pointwise_bound);
  visit("guard", attributes.guards_unknown.empty() ? guards_text(attributes.guards)
                                                   : attributes.guards_unknown);
  visit("max_error", attributes.max_error);
  visit("quantization", info.quantization);
  if (!info.lists_chunks) return;
  std::vector<ListedChunk> chunks;
  for (const StoredChunk& chunk : info.chunks) chunks.push_back({info, chunk});
  visit("chunks", chunks);
}

template <class Visit>
void report_fields(const InfoReport& report, Visit&& visit) {
  document_head("info", visit);
  visit("file", report.path);
  visit("format", report.format);
  visit("file_bytes", report.file_bytes);
  visit("data_bytes", report.space.data_bytes);
  visit("other_bytes", report.space.other_bytes);
  visit("n_gaps", report.space.n_gaps);
  visit("gap_bytes", report.space.gap_bytes);
  if (report.hdf5) {
    visit("opens_in", report.forms.for_everyone()          ? "everyone"
                      : report.forms.indexes.n_objects > 0 ? "hdf5-1.10"
                                                           : "hdf5-1.8");
    visit("new_indexes", report.forms.indexes.n_objects);
    visit("attribute_numbers", report.forms.attribute_numbers.n_objects);
    visit("masked_chunks", report.n_masked_chunks);
    visit("filters_needed", report.forms.filters);
  }
  visit("fields", report.fields);
  visit("others", report.others);
  visit("remarks", report.remarks);
  visit("unreadable", report.unreadable);
}

}  // namespace tailrace::verbs
