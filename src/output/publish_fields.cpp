// The index gather, the datasets and attributes of a step, and the rename of a new file.

#include "output/publish_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/byte_stream.hpp"
#include "core/encoding_notes.hpp"
#include "core/version.hpp"
#include "field/box_codec.hpp"
#include "field/covered_values.hpp"
#include "hdf5/hdf5_paths.hpp"

namespace tailrace {
namespace {

/// First filter number of plug-ins; HDF5's own filters are below (H5Z_FILTER_RESERVED).
constexpr std::uint32_t kOwnFiltersEnd = 256;

AttributeValue text_value(std::string_view text) { return {std::string(text)}; }
AttributeValue number_value(double number) { return {std::vector<double>{number}}; }

DatasetDefinition dataset_definition(const FieldState& field) {
  const FieldDefinition& definition = field.definition;
  const ResolvedField& resolved = field.resolved;
  DatasetDefinition dataset;
  dataset.path = definition.path;
  dataset.dtype = definition.dtype;
  dataset.shape = definition.with_entries(field.n_entries + 1, definition.shape);
  dataset.extendable = definition.extendable || definition.options.over_time;
  dataset.grows_by_steps = definition.options.over_time;
  dataset.more_unlimited = definition.more_unlimited;
  dataset.fill_value = definition.options.fill_value;
  dataset.stored_fill = definition.stored_fill;
  dataset.compact = definition.in_header;
  if (const StoredDataset* const like = definition.like.get(); like != nullptr) {
    if (like->swapped == resolved.swapped) {
      dataset.type = like->type;
      dataset.type_path = like->type_path;
    }
    dataset.times = like->times;
    dataset.limits = like->max_shape;
  }
  if (!resolved.layout->contiguous() && !definition.in_header) {
    dataset.chunk_shape = definition.with_entries(1, resolved.chunk_shape);
    dataset.filters = resolved.codec->filters();
    for (FilterSpec& filter : dataset.filters) {
      const bool own = filter.filter_id < kOwnFiltersEnd;
      // HDF5's own filters compute the stored client data from these again.
      if (own && definition.as_stored != nullptr) filter.client_data = filter.final_client_data;
      // A plug-in would read the dataset's fill value, which differs from the codec's.
      if (!own && dataset.stored_fill && !filter.final_client_data.empty()) {
        filter.client_data.clear();
      }
    }
  }
  if (definition.holds_bytes()) {
    dataset.element_bytes = definition.shape.back();
    for (Shape* extents : {&dataset.shape, &dataset.chunk_shape, &dataset.limits}) {
      if (!extents->empty()) extents->pop_back();
    }
  }
  return dataset;
}

}  // namespace

std::string attribute_text(const PendingAttribute& attribute) {
  std::string text = "attribute \"" + attribute.name + "\" of \"" + attribute.object_path + "\":";
  if (const auto* value = std::get_if<std::string>(&attribute.value.value)) {
    return text + " \"" + *value + "\"\n";
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

namespace {

using ChunksByPlan = std::vector<std::vector<WrittenChunk>>;

void sort_in(std::span<const std::byte> bytes, ChunksByPlan& by_plan) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(WrittenChunk)) {
    WrittenChunk chunk;
    std::memcpy(&chunk, bytes.data() + at, sizeof chunk);
    by_plan[static_cast<std::size_t>(chunk.field)].push_back(chunk);
  }
}

void sort_by_index(ChunksByPlan& by_plan) {
  for (std::vector<WrittenChunk>& chunks : by_plan) {
    std::sort(chunks.begin(), chunks.end(), [](const WrittenChunk& a, const WrittenChunk& b) {
      return a.chunk_index < b.chunk_index;
    });
  }
}

/// The ranks' written chunks if no rank failed; else the first failure.
Result<GatheredChunks> take_messages(std::vector<Bytes>& messages, StepEnd& end) {
  GatheredChunks chunks(end.n_plans);
  Status done;
  for (std::size_t r = 0; r < messages.size(); ++r) {
    ByteReader reader(messages[r]);
    const Status theirs = reader.take_status();
    if (done.ok()) done = theirs;
    if (!theirs.ok()) continue;
    if (r == 0) {
      end.numbers.take(reader);
    } else {
      end.numbers.merge(reader);
    }
    const std::size_t first_byte = messages[r].size() - reader.rest().size();
    chunks.add(std::move(messages[r]), first_byte);
  }
  if (!done.ok()) return done;
  return chunks;
}

/// Rank 0's part of publish_together(), from all ranks' messages to the answer.
Bytes publish_at_root(const Comm& comm, std::vector<Bytes> messages, StepEnd& end,
                      const std::function<Status(GatheredChunks&&)>& publish) {
  const Status done = local_part([&]() -> Status {
    TAILRACE_TAKE(GatheredChunks chunks, take_messages(messages, end));
    end.published = true;  // Also true if publishing fails midway, which is as bad.
    return comm.named(local_part([&] { return publish(std::move(chunks)); }));
  });
  ByteWriter answer;
  answer.add(end.published);
  answer.add_status(done);
  end.numbers.pack(answer);
  end.numbers_of_root.pack(answer);
  return answer.take();
}

}  // namespace

void GatheredChunks::add(Bytes message, std::size_t first_byte) {
  parts_.push_back({std::move(message), first_byte});
}

ChunksByPlan GatheredChunks::take_sorted() {
  ChunksByPlan by_plan(n_plans_);
  for (Part& part : parts_) {
    sort_in(std::span(part.message).subspan(part.first_byte), by_plan);
    part.message = Bytes();  // Free it: there may be many.
  }
  sort_by_index(by_plan);
  return by_plan;
}

ChunksByPlan gather_written(Comm& comm, const std::vector<WrittenChunk>& mine,
                            std::size_t n_plans) {
  ChunksByPlan by_plan(n_plans);
  for (const Bytes& bytes : comm.gather(std::as_bytes(std::span(mine)), 0)) {
    sort_in(bytes, by_plan);
  }
  sort_by_index(by_plan);
  return by_plan;
}

Status publish_together(Comm& comm, StepEnd& end,
                        const std::function<Status(GatheredChunks&&)>& publish) {
  ByteWriter mine;
  const Status packed = local_part([&] {
    mine.add_status(comm.named(end.own));
    if (!end.own.ok()) return Status();
    end.numbers.pack(mine);
    mine.add_bytes(std::as_bytes(end.written));
    return Status();
  });
  if (!packed.ok()) {
    mine = ByteWriter();
    mine.add_status(end.own.ok() ? packed : end.own);
  }
  std::vector<Bytes> messages = comm.gather(mine.bytes(), 0);
  Bytes answer;
  if (comm.is_root()) answer = publish_at_root(comm, std::move(messages), end, publish);
  comm.broadcast(answer, 0);
  ByteReader reader(answer);
  end.published = reader.take<bool>();
  Status done = reader.take_status();
  end.numbers.take(reader);
  end.numbers_of_root.take(reader);
  return done;
}

std::vector<Hdf5File::ChunkRecord> chunk_records(std::span<const WrittenChunk> chunks,
                                                 std::uint64_t n_before) {
  std::vector<Hdf5File::ChunkRecord> records;
  records.reserve(chunks.size());
  for (const WrittenChunk& chunk : chunks) {
    records.push_back({n_before + chunk.chunk_index,
                       {chunk.address, chunk.encoded_bytes},
                       static_cast<std::uint32_t>(chunk.filter_mask)});
  }
  return records;
}

NamedAttribute max_error_attribute(double max_error) {
  return {kMaxErrorAttributeName, number_value(max_error)};
}

namespace {

/// True if the file's attribute states the note for all datasets, or if it is the default.
bool is_implied(const EncodingNote& note) {
  const auto* const text = std::get_if<std::string>(&note.value);
  return note.name == kVersionAttribute ||
         (note.name == kCodecVersionAttribute && text != nullptr && *text == kBuiltInCodecVersion);
}

}  // namespace

std::vector<NamedAttribute> provenance(const FieldDefinition& definition,
                                       const ResolvedField& resolved, double max_error,
                                       Notes notes) {
  std::vector<NamedAttribute> attributes;
  const bool silent = !definition.keeps_source_notes && definition.options.earlier_loss.empty() &&
                      !resolved.codec->lossy();
  if (notes == Notes::off || (notes == Notes::one && silent)) return attributes;
  const std::vector<EncodingNote> all =
      definition.keeps_source_notes
          ? encoding_notes_of_codec(*resolved.codec)
          : encoding_notes(*resolved.codec, definition.options.bound, resolved.absolute_bound,
                           guards_of(definition, resolved),
                           resolved.verify ? std::optional(max_error) : std::nullopt,
                           definition.options.earlier_loss);
  for (const EncodingNote& note : all) {
    if (notes == Notes::one && is_implied(note)) continue;
    const auto* text = std::get_if<std::string>(&note.value);
    attributes.push_back({note.name, text != nullptr ? text_value(*text)
                                                     : number_value(std::get<double>(note.value))});
  }
  if (definition.notes_fill && definition.options.fill_value && resolved.codec->lossy()) {
    attributes.push_back({kFillValueAttribute, number_value(*definition.options.fill_value)});
  }
  return attributes;
}

Notes NotesOfFile::choose(Hdf5File& file, Notes requested, bool opened) {
  if (requested != Notes::one) return requested;
  of_others_ = of_others_ || (opened && !file.has_attribute("/", kFileNoteAttribute));
  return of_others_ ? Notes::all : Notes::one;
}

Status NotesOfFile::write_file_note(Hdf5File& file, Notes chosen) const {
  if (chosen != Notes::one || file.has_attribute("/", kFileNoteAttribute)) return Status();
  std::string text = R"({"lossless": "datasets without tailrace_codec", "version": ")";
  return file.set_attribute("/", kFileNoteAttribute,
                            text_value(text.append(version_text).append("\"}")));
}

namespace {

/// Total bounds of components whose values had `earlier` losses; nothing if no bound can be stated.
std::optional<std::vector<double>> bounds_after(const Losses& earlier,
                                                std::span<const double> bounds) {
  std::vector<double> totals;
  for (const double bound : bounds) {
    Losses losses = earlier;
    if (bound > 0) losses.push_back({BoundMode::abs, bound});
    const std::optional<ErrorBound> total = total_of(losses);
    if (!total || total->mode == BoundMode::pw_rel) return std::nullopt;
    totals.push_back(total->value);
  }
  return totals;
}

}  // namespace

Hdf5File::DatasetUpdate update_of(const FieldState& field, Notes notes) {
  const bool first_step = field.life != FieldLife::in_file;
  Hdf5File::DatasetUpdate update;
  update.dataset = dataset_definition(field);
  update.is_new = first_step && !field.continued;
  const double max_error = field.learned.max_error;
  if (field.definition.as_stored != nullptr || field.definition.in_header) return update;
  if (first_step) {
    update.attributes = provenance(field.definition, field.resolved, max_error, notes);
    const FieldBoxes* const boxes = field.definition.boxes.get();
    if (boxes != nullptr && !boxes->bounds.empty() && field.resolved.codec->lossy()) {
      const Losses& earlier = field.definition.options.earlier_loss;
      if (const auto bounds = bounds_after(earlier, boxes->bounds)) {
        describe_components(*boxes->series, *bounds, update.attributes);
      }
    }
    if (field.definition.covered != nullptr) {
      update.attributes.push_back(covered_attribute(*field.definition.covered));
    }
  } else if (field.resolved.verify && field.definition.options.earlier_loss.empty() &&
             (notes == Notes::all || (notes == Notes::one && field.resolved.codec->lossy()))) {
    // The only attribute that changes from entry to entry.
    update.attributes = {max_error_attribute(max_error)};
  }
  return update;
}

void list_chunks(Hdf5File::DatasetUpdate& update, std::span<const WrittenChunk> chunks,
                 std::uint64_t n_before, std::span<const StoredChunk> begun) {
  if (update.dataset.chunk_shape.empty()) {
    update.dataset.contiguous_address = chunks.empty() ? 0 : chunks.front().address;
    return;
  }
  update.records = chunk_records(chunks, n_before);
  if (update.dataset.filters.empty()) return;  // Chunks without filters stay in place.
  for (Hdf5File::ChunkRecord& record : update.records) {
    const std::uint64_t in_entry = record.chunk_index - n_before;
    const auto old = std::ranges::lower_bound(begun, in_entry, {}, &StoredChunk::chunk_index);
    if (old != begun.end() && old->chunk_index == in_entry) record.replaced = old->extent;
  }
}

Status publish_groups(Hdf5File& file, std::span<const Hdf5File::DatasetUpdate> updates) {
  std::map<std::string, std::uint64_t> n_new;
  for (const Hdf5File::DatasetUpdate& update : updates) {
    if (update.is_new) ++n_new[parent_path(update.dataset.path)];
  }
  for (const auto& [group, n_links] : n_new) {
    TAILRACE_TRY(file.create_group(group, n_links));
  }
  return Status();
}

Status publish_attributes(Hdf5File& file, const std::vector<PendingAttribute>& attributes) {
  for (const PendingAttribute& attribute : attributes) {
    if (!file.exists(attribute.object_path)) TAILRACE_TRY(file.create_group(attribute.object_path));
    TAILRACE_TRY(file.set_attribute(attribute.object_path, attribute.name, attribute.value));
  }
  return Status();
}

}  // namespace tailrace
