// The table of fields, the line about space, the lists of chunks.

#include "info_text.hpp"

#include <fmt/format.h>

#include "core/codec_registry.hpp"
#include "number_text.hpp"
#include "text_table.hpp"
#include "trz/base/printable.hpp"

namespace tailrace::report {
namespace {

using verbs::FieldInfo;
using verbs::InfoReport;

std::string filters_text(const StoredDataset& field) {
  std::string text;
  for (const FilterSpec& filter : field.storage.filters) {
    text += (text.empty() ? "" : "+") + filter_name(filter);
  }
  return text;
}

std::string chunk_count_cell(const FieldInfo& info) {
  return info.field.chunked() ? fmt::format("{}", info.chunks.size()) : "";
}

/// Breakdown of the file's bytes: data; metadata, attributes and gaps.
std::string space_line(const verbs::SpaceInfo& space) {
  std::string out =
      fmt::format("data {} in {}; metadata, attributes and gaps {}", size_text(space.data_bytes),
                  counted(space.n_extents, "piece"), size_text(space.other_bytes));
  if (space.n_gaps > 0) {
    out += fmt::format(" ({} in {} between pieces)", size_text(space.gap_bytes),
                       counted(space.n_gaps, "gap"));
  }
  return wrapped(out, 2) + "\n";
}

std::string newer_form_text(const NewerForm& form, std::string_view what, std::string_view group) {
  if (form.n_objects == 0) return "";
  return fmt::format("{} of {} ({}{})", what, counted(form.n_objects, "object"),
                     form.n_objects > 1 ? "first " : "", shown_path(form.first, group));
}

/// Readers that can open the file, the filters they need, and chunks that leave out filters.
std::string readers_lines(const InfoReport& report, std::string_view group) {
  const ReaderForms& forms = report.forms;
  std::string out;
  if (forms.for_everyone()) {
    out =
        wrapped(
            "readers: all that support the HDF5 1.8 format, such as netCDF-Java, pyfive and jsfive",
            2) +
        "\n";
  } else {
    std::string why = newer_form_text(forms.indexes, "chunk indexes", group);
    const std::string numbers = newer_form_text(
        forms.attribute_numbers, "own thresholds for dense attribute storage", group);
    why += (why.empty() || numbers.empty() ? "" : ", ") + numbers;
    const bool indexes = forms.indexes.n_objects > 0;
    out = wrapped(fmt::format("readers: HDF5 {} and newer; not {}: {}", indexes ? "1.10" : "1.8",
                              indexes ? "netCDF-Java 4, pyfive, jsfive" : "pyfive", why),
                  2) +
          "\n";
  }
  if (!forms.filters.empty()) {
    out += wrapped(fmt::format("readers need the {} {}",
                               forms.filters.size() > 1 ? "filters" : "filter",
                               fmt::join(forms.filters, ", ")),
                   2) +
           "\n";
  }
  if (report.n_masked_chunks > 0) {
    out += wrapped(fmt::format("{} {} filters of their dataset, which some readers (jhdf, "
                               "VirtualiZarr) ignore",
                               counted(report.n_masked_chunks, "chunk"),
                               report.n_masked_chunks == 1 ? "skips" : "skip"),
                   2) +
           "\n";
  }
  return out;
}

/// Chunks of the fields that the request names, in order of their positions.
std::string chunk_lists(const InfoReport& report) {
  std::string out;
  for (const FieldInfo& field : report.fields) {
    if (!field.lists_chunks) continue;
    out += fmt::format("\n{}\n", printable(field.field.path));
    TextTable table(">chunk|start|>address|>bytes|>filter mask");
    for (const StoredChunk& chunk : field.chunks) {
      table.add_row({fmt::format("{}", chunk.chunk_index), position_text(field.chunk_start(chunk)),
                     fmt::format("{}", chunk.extent.address),
                     fmt::format("{}", chunk.extent.encoded_bytes),
                     fmt::format("{}", chunk.filter_mask)});
    }
    out += table.text();
  }
  return out;
}

/// Guards of a field, which it keeps in addition to its bound; "" for most fields.
std::string guard_line(const FieldInfo& field, std::string_view group) {
  const FieldAttributes& attributes = field.attributes;
  if (attributes.guards.empty() && attributes.guards_unknown.empty()) return "";
  const std::string line =
      fmt::format("guards of {}: {}", shown_path(field.field.path, group),
                  attributes.guards_unknown.empty()
                      ? guards_text(attributes.guards)
                      : "cannot be parsed: \"" + attributes.guards_unknown + "\"");
  return wrapped(line, 2) + "\n";
}

std::string quantization_line(const FieldInfo& field, std::string_view group) {
  if (!field.quantization) return "";
  const std::string line = fmt::format("{} was rounded: {}", shown_path(field.field.path, group),
                                       field.quantization->text());
  return wrapped(line, 2) + "\n";
}

}  // namespace

std::string info_text(const InfoReport& report) {
  std::vector<std::string> paths;
  for (const FieldInfo& field : report.fields) paths.push_back(field.field.path);
  const std::string group = common_group(paths);
  TextTable table(
      "field/20|type?2|shape|chunk\nshape?4|>chunks?3|filters/12|>stored|>ratio|bound|>"
      "absolute\nbound?1|>error,\nof bound");
  for (const FieldInfo& field : report.fields) {
    const FieldAttributes& attributes = field.attributes;
    const bool lossy = attributes.bound_of_error() > 0;
    // A codec's name says more than its filters: "portable" is a shuffle and a deflate.
    const bool own_name = codec_entry(attributes.codec).rounds_before;
    table.add_row(
        {std::string(shown_path(field.field.path, group)),
         std::string(dtype_name(*field.field.dtype)), shape_text(field.field.shape),
         field.field.chunked() ? shape_text(field.field.storage.chunk_shape) : field.storage(),
         chunk_count_cell(field), own_name ? attributes.codec : filters_text(field.field),
         size_text(field.field.stored_bytes),
         ratio_text(field.raw_bytes(), field.field.stored_bytes),
         !attributes.by_tailrace               ? ""
         : attributes.component_bounds.empty() ? bound_column_text(attributes.bound)
                                               : "component",
         attributes.absolute_bound > 0 ? fmt::format("{:.3g}", attributes.absolute_bound) : "",
         lossy && attributes.max_error
             ? share_text(*attributes.max_error, attributes.bound_of_error())
             : ""});
  }
  std::uint64_t raw_bytes = 0;
  for (const FieldInfo& field : report.fields) raw_bytes += field.raw_bytes();
  std::string out = fitted(report.path, 0) + "\n";
  out += wrapped(fmt::format("{}, {}, {} with {} of values{}, ratio {}", report.format,
                             size_text(report.file_bytes), counted(report.fields.size(), "field"),
                             size_text(raw_bytes), group_remark(group),
                             ratio_text(raw_bytes, report.file_bytes)),
                 2) +
         "\n\n";
  if (!table.empty()) out += table.text() + "\n";
  for (const FieldInfo& field : report.fields) {
    out += guard_line(field, group) + quantization_line(field, group);
  }
  if (!report.others.empty()) {
    out += wrapped("not fields: " + verbs::other_datasets_text(report.others), 2) + "\n";
  }
  if (report.hdf5) out += space_line(report.space) + readers_lines(report, group);
  return out + chunk_lists(report);
}

}  // namespace tailrace::report
