// The index gather, the datasets and attributes of a step, and the rename of a new file.

#include "output/publish_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "core/version.hpp"

namespace tailrace {
namespace {

AttributeValue text_value(std::string_view text) { return {std::string(text)}; }
AttributeValue number_value(double number) { return {std::vector<double>{number}}; }

DatasetDefinition dataset_definition(const FieldState& field,
                                     std::span<const WrittenChunk> chunks) {
  const FieldDefinition& definition = field.definition;
  DatasetDefinition dataset;
  dataset.path = definition.path;
  dataset.dtype = definition.dtype;
  dataset.shape = field.dataset_shape(1);
  dataset.extendable = definition.extendable || definition.options.over_time;
  dataset.more_unlimited = definition.more_unlimited;
  dataset.fill_value = definition.options.fill_value;
  if (field.layout->contiguous()) {
    dataset.contiguous_address = chunks.empty() ? 0 : field.base_address;
  } else {
    dataset.chunk_shape = field.dataset_chunk_shape();
    dataset.filters = field.codec->filters();
  }
  return dataset;
}

}  // namespace

std::string attribute_text(const PendingAttribute& attribute) {
  std::string text = "attribute \"" + attribute.name + "\" of \"" + attribute.object_path + "\" =";
  if (const auto* words = std::get_if<std::string>(&attribute.value.value)) {
    return text + " \"" + *words + "\"\n";
  }
  std::visit(
      [&](const auto& values) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(values)>, std::string>) {
          std::array<char, 32> digits{};
          for (const auto value : values) {
            const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
            text.append(" ").append(digits.data(), end);
          }
        }
      },
      attribute.value.value);
  return text + "\n";
}

std::vector<std::vector<WrittenChunk>> gather_written(Comm& comm,
                                                      const std::vector<WrittenChunk>& mine,
                                                      std::size_t n_plans) {
  const std::vector<Bytes> all = comm.gather(std::as_bytes(std::span(mine)), 0);
  std::vector<std::vector<WrittenChunk>> by_plan(n_plans);
  for (const Bytes& bytes : all) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(WrittenChunk)) {
      WrittenChunk chunk;
      std::memcpy(&chunk, bytes.data() + at, sizeof chunk);
      by_plan[static_cast<std::size_t>(chunk.field)].push_back(chunk);
    }
  }
  for (std::vector<WrittenChunk>& chunks : by_plan) {
    std::sort(chunks.begin(), chunks.end(), [](const WrittenChunk& a, const WrittenChunk& b) {
      return a.chunk_index < b.chunk_index;
    });
  }
  return by_plan;
}

Status publish_max_error(Hdf5File& file, const FieldState& field) {
  return file.set_attribute(field.definition.path, "tailrace_max_error",
                            number_value(field.max_error));
}

Status publish_provenance(Hdf5File& file, const FieldState& field) {
  const FieldDefinition& definition = field.definition;
  const std::string& path = definition.path;
  const ErrorBound& bound = definition.options.bound;
  TAILRACE_TRY(file.set_attribute(path, "tailrace_codec", text_value(field.codec->name())));
  TAILRACE_TRY(
      file.set_attribute(path, "tailrace_codec_version", text_value(field.codec->version())));
  const BoundMode mode = field.codec->lossy() ? bound.mode : BoundMode::none;
  TAILRACE_TRY(file.set_attribute(path, "tailrace_bound_mode", text_value(bound_mode_name(mode))));
  if (mode != BoundMode::none) {
    TAILRACE_TRY(file.set_attribute(path, "tailrace_bound_asked", number_value(bound.value)));
  }
  if (mode != BoundMode::pw_rel) {
    TAILRACE_TRY(
        file.set_attribute(path, "tailrace_absolute_bound", number_value(field.absolute_bound)));
  }
  if (field.verify) TAILRACE_TRY(publish_max_error(file, field));
  return file.set_attribute(path, "tailrace_version", text_value(version_text));
}

Status publish_field(Hdf5File& file, const FieldState& field,
                     std::span<const WrittenChunk> chunks) {
  const FieldDefinition& definition = field.definition;
  if (!field.in_file && !field.continued) {
    TAILRACE_TRY(file.create_dataset(dataset_definition(field, chunks)));
  } else {
    TAILRACE_TRY(file.extend_dataset(definition.path, field.dataset_shape(field.n_entries + 1)));
  }
  if (!field.layout->contiguous()) {
    const std::uint64_t first = field.n_entries * field.grid().n_chunks();
    std::vector<Hdf5File::ChunkRecord> records;
    records.reserve(chunks.size());
    for (const WrittenChunk& chunk : chunks) {
      records.push_back({first + chunk.chunk_index,
                         {chunk.address, chunk.encoded_bytes},
                         static_cast<std::uint32_t>(chunk.filter_mask)});
    }
    TAILRACE_TRY(file.insert_chunks(definition.path, records));
  }
  if (!field.explained) return publish_provenance(file, field);
  // Of what a dataset says about itself only this changes from entry to entry.
  return field.verify ? publish_max_error(file, field) : Status();
}

Status publish_attributes(Hdf5File& file, const std::vector<PendingAttribute>& attributes) {
  for (const PendingAttribute& attribute : attributes) {
    if (!file.exists(attribute.object_path)) TAILRACE_TRY(file.create_group(attribute.object_path));
    TAILRACE_TRY(file.set_attribute(attribute.object_path, attribute.name, attribute.value));
  }
  return Status();
}

}  // namespace tailrace
