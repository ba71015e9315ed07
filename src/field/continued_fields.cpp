// Looking up new fields in the file, on rank 0, and sending the results to the other ranks.

#include <algorithm>
#include <set>

#include "core/byte_stream.hpp"
#include "describe/field_attributes.hpp"
#include "describe/stored_file.hpp"
#include "field/chunk_beginnings.hpp"
#include "field/field_state.hpp"
#include "hdf5/hdf5_file.hpp"
#include "trz/base/error_bound.hpp"

namespace tailrace {
namespace {

Status refuse(const FieldState& field, Code code, const std::string& why) {
  return Status(code, field.definition.name() + ": " + why);
}

/// Check that the field's dataset does not lie inside a dataset of the file or of this step.
Status check_parents(Hdf5File& file, const FieldState& field, const std::set<std::string>& paths) {
  const std::string& path = field.definition.path;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (paths.count(parent) == 0 && !(file.exists(parent) && file.dataset_shape(parent).ok())) {
      continue;
    }
    return refuse(field, Code::invalid_argument, "\"" + parent + "\" is a field, not a group");
  }
  return Status();
}

/// Check that the field's dataset does not take the path of a group that a waiting field needs.
Status check_children(const FieldState& field, const std::set<std::string>& paths) {
  const std::string below = field.definition.path + "/";
  const auto child = paths.lower_bound(below);
  if (child == paths.end() || !child->starts_with(below)) return Status();
  return refuse(field, Code::invalid_argument,
                "\"" + *child + "\" lies below it, so it cannot be a field");
}

/// Check that the dataset's chunks hold as many steps as the definition's.
Status check_steps_in_chunks(const FieldState& field, const StoredDataset& dataset) {
  const std::uint64_t requested = field.definition.steps_per_entry;
  const std::uint64_t stored = dataset.storage.chunk_shape.front();
  if (stored != requested) {
    return refuse(field, Code::already_exists,
                  "its chunks in the file are " + shape_text(dataset.storage.chunk_shape) + " (" +
                      std::to_string(stored) + " along the first dimension); chunks of " +
                      std::to_string(requested) + " steps cannot be added");
  }
  return Status();
}

Status refuse_midst(const FieldState& field, const std::string& why) {
  return refuse(field, Code::unsupported,
                "the last chunk in the file is incomplete: it has " +
                    std::to_string(field.n_begun) + " of " +
                    std::to_string(field.definition.steps_per_entry) + " steps, " + why +
                    "; continue in another file and join both with tailrace concat (--codec "
                    "deflate if they are lossy)");
}

/// Find the chunks of an incomplete entry. Rank 0 only. Cost: one look into the dataset's index.
Status find_begun_chunks(const Hdf5File& file, const std::string& path,
                         const StoredDataset& dataset, FieldState& field) {
  const std::uint64_t n_steps = dataset.shape.front();
  field.n_begun = n_steps % field.definition.steps_per_entry;
  if (field.n_begun == 0) return Status();
  if (field.definition.options.allow_holes) {
    return refuse_midst(field, "and it cannot be completed with holes=on");
  }
  if (!file.keeps_replaced()) {
    return refuse_midst(field, "and HDF5 would overwrite the chunk before the next commit");
  }
  const std::uint64_t n_chunks = field.grid().n_chunks();
  TAILRACE_TAKE(const std::vector<StoredChunk> all, read_chunk_index(path, dataset.path));
  for (StoredChunk chunk : all) {
    if (chunk.chunk_index < field.n_entries * n_chunks) continue;
    chunk.chunk_index -= field.n_entries * n_chunks;
    field.begun_chunks.push_back(chunk);
  }
  if (field.begun_chunks.size() != n_chunks) {
    return refuse_midst(field, "and parts of the chunk were never written");
  }
  // Chunks without filters are rewritten in place.
  const auto may_be_shared = [](const StoredChunk& chunk) {
    return chunk.extent.encoded_bytes <= kSharedChunkBytesMax;
  };
  if (!dataset.storage.filters.empty() || std::ranges::none_of(field.begun_chunks, may_be_shared)) {
    return Status();
  }
  TAILRACE_TAKE(const std::vector<std::string> sharing, datasets_that_share_chunks(path));
  if (std::ranges::find(sharing, dataset.path) == sharing.end()) return Status();
  return refuse_midst(field, "and its bytes are shared with other chunks");
}

/// Adopt the properties that the dataset's header fixes; refuse a definition with another meaning.
Status adopt(const Hdf5File& file, const std::string& path, const StoredDataset& dataset,
             const FieldAttributes& stored, FieldState& field) {
  const FieldDefinition& definition = field.definition;
  const bool growing = dataset.extendable && !dataset.shape.empty() && dataset.chunked();
  if (!growing)
    return refuse(field, Code::already_exists, "it is in the file already and cannot grow");
  TAILRACE_TRY(check_steps_in_chunks(field, dataset));
  const std::uint64_t n_entries = dataset.shape.front() / definition.steps_per_entry;
  Shape continued = definition.with_entries(n_entries, definition.shape);
  if (continued.size() == dataset.shape.size()) continued.front() = dataset.shape.front();
  if (dataset.dtype != definition.dtype || dataset.shape != continued) {
    return refuse(field, Code::invalid_argument,
                  "in the file it is " + std::string(dtype_name(*dataset.dtype)) + " " +
                      shape_text(dataset.shape) + "; entries of " +
                      std::string(dtype_name(definition.dtype)) + " " +
                      shape_text(definition.shape) + " cannot be added to it");
  }
  ResolvedField& resolved = field.resolved;
  resolved.chunk_shape = dataset.storage.chunk_shape;
  if (!definition.gathers_steps()) resolved.chunk_shape.erase(resolved.chunk_shape.begin());
  if (definition.options.chunk_shape && *definition.options.chunk_shape != resolved.chunk_shape) {
    return refuse(field, Code::invalid_argument,
                  "its chunks in the file are " + shape_text(resolved.chunk_shape) + ", not " +
                      shape_text(*definition.options.chunk_shape));
  }
  const bool lossy = stored.absolute_bound > 0 || stored.pointwise_bound > 0;
  if (lossy && stored.bound != definition.options.bound) {
    return refuse(field, Code::invalid_argument,
                  "its bound in the file is " + error_bound_text(stored.bound) + ", not " +
                      error_bound_text(definition.options.bound));
  }
  const Guards& requested = definition.options.guards;
  if (lossy && !requested.empty() && requested != stored.guards) {
    return refuse(field, Code::invalid_argument,
                  "in the file it has guard=" + guards_text(stored.guards) + ", not " +
                      guards_text(requested));
  }
  if (lossy && (stored.guards.minmax || !stored.guards_unknown.empty())) {
    return refuse(field, Code::unsupported,
                  "in the file it has guard=" +
                      (stored.guards.minmax ? guards_text(stored.guards) : stored.guards_unknown) +
                      ", which added values could break");
  }
  field.continued = true;
  resolved.swapped = dataset.swapped;
  field.n_entries = n_entries;
  resolved.stored_guards = stored.guards;
  resolved.absolute_bound = stored.absolute_bound;
  resolved.pointwise_bound = stored.pointwise_bound;
  field.learned.max_error = stored.max_error.value_or(0);
  field.stored_filters = dataset.storage.filters;
  return find_begun_chunks(file, path, dataset, field);
}

Status adopt_from_file(const Hdf5File& output, const std::string& path,
                       std::vector<FieldState*>& known) {
  std::vector<std::string> paths;
  paths.reserve(known.size());
  for (const FieldState* field : known) paths.push_back(field->definition.path);
  TAILRACE_TAKE(const std::unique_ptr<StoredFile> file, StoredFile::open(path));
  TAILRACE_TAKE(const DatasetList list, file->list(CatalogDetail::fields));
  TAILRACE_TAKE(const std::vector<FieldAttributes> stored, read_field_attributes(path, paths));
  for (std::size_t i = 0; i < known.size(); ++i) {
    const StoredDataset* found = nullptr;
    for (const StoredDataset& dataset : list.datasets) {
      if (dataset.field && dataset.path == paths[i]) found = &dataset;
    }
    if (found == nullptr) {
      return refuse(*known[i], Code::already_exists, "the file has another object of this name");
    }
    TAILRACE_TRY(adopt(output, path, *found, stored[i], *known[i]));
  }
  return Status();
}

}  // namespace

Status look_up_existing(Hdf5File& file, const std::string& path, bool appended,
                        std::vector<FieldState>& fields) {
  std::set<std::string> paths;
  for (const FieldState& field : fields) {
    if (field.life != FieldLife::retired) paths.insert(field.definition.path);
  }
  for (const FieldState& field : fields) {
    if (field.makes_dataset()) TAILRACE_TRY(check_parents(file, field, paths));
  }
  std::vector<FieldState*> known;
  for (FieldState& field : fields) {
    if (!field.makes_dataset()) continue;
    if (!file.exists(field.definition.path)) {
      TAILRACE_TRY(check_children(field, paths));
      continue;
    }
    const bool dataset = file.dataset_shape(field.definition.path).ok();
    if (!appended || !dataset || !field.definition.options.over_time) {
      return refuse(field, Code::already_exists,
                    dataset ? "it is in the file already" : "the file has a group of this name");
    }
    known.push_back(&field);
  }
  return known.empty() ? Status() : adopt_from_file(file, path, known);
}

void pack_continued(const std::vector<FieldState>& fields, ByteWriter& writer) {
  const auto taken_up = [](const FieldState& field) { return field.continued && field.is_new(); };
  writer.add(std::count_if(fields.begin(), fields.end(), taken_up));
  std::size_t n_new = 0;
  for (const FieldState& field : fields) {
    n_new += field.is_new() ? 1 : 0;
    if (!taken_up(field)) continue;
    writer.add(n_new - 1);
    writer.add(field.resolved.chunk_shape);
    writer.add(field.n_entries);
    writer.add(field.n_begun);
    writer.add(field.begun_chunks.size());
    for (const StoredChunk& chunk : field.begun_chunks) writer.add(chunk);
    writer.add(field.resolved.absolute_bound);
    writer.add(field.resolved.pointwise_bound);
    writer.add_text(guards_text(field.resolved.stored_guards));
    writer.add(field.learned.max_error);
  }
}

bool is_any_continued(std::span<const std::byte> packed) {
  return ByteReader(packed).take<std::ptrdiff_t>() > 0;
}

void take_continued(ByteReader& reader, std::vector<FieldState>& fields) {
  std::vector<std::size_t> fresh;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].is_new()) fresh.push_back(f);
  }
  for (auto n = reader.take<std::ptrdiff_t>(); n > 0; --n) {
    FieldState& field = fields[fresh[reader.take<std::size_t>()]];
    field.continued = true;
    field.resolved.chunk_shape = reader.take_shape();
    field.n_entries = reader.take<std::uint64_t>();
    field.n_begun = reader.take<std::uint64_t>();
    field.begun_chunks.resize(reader.take<std::size_t>());
    for (StoredChunk& chunk : field.begun_chunks) chunk = reader.take<StoredChunk>();
    field.resolved.absolute_bound = reader.take<double>();
    field.resolved.pointwise_bound = reader.take<double>();
    const Result<Guards> guards = parse_guards(reader.take_text());
    if (guards.ok())
      field.resolved.stored_guards = *guards;  // Tailrace wrote this text, so it
                                               // parses.
    field.learned.max_error = reader.take<double>();
  }
}

bool has_filters(const std::vector<FilterSpec>& stored, const Codec& codec) {
  return std::equal(codec.filters().begin(), codec.filters().end(), stored.begin(), stored.end(),
                    [](const FilterSpec& made, const FilterSpec& filter) {
                      return made.filter_id == filter.filter_id &&
                             made.final_client_data == filter.final_client_data;
                    });
}

Status check_continued_codecs(const std::vector<FieldState>& fields) {
  for (const FieldState& field : fields) {
    const Codec* codec = field.resolved.codec.get();
    if (!field.continued || !field.is_new() || codec == nullptr) continue;
    if (has_filters(field.stored_filters, *codec)) {
      if (field.n_begun == 0 || keeps_beginnings(*codec)) continue;
      return refuse_midst(field, "and codec " + std::string(codec->name()) +
                                     " would have to encode these again, with a second error");
    }
    std::string stored;
    for (const FilterSpec& filter : field.stored_filters) {
      stored += (stored.empty() ? "" : ", ") + filter.name + " (" +
                std::to_string(filter.filter_id) + ")";
    }
    return refuse(field, Code::invalid_argument,
                  "its filters in the file are {" + stored + "}, but codec " +
                      std::string(codec->name()) + " with these settings has others");
  }
  return Status();
}

}  // namespace tailrace
