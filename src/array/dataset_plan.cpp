// Plans of new datasets: bounds, codec and chunks. Existing datasets: codec and guards. Deferred
// decisions: covered cells and value-dependent bounds.

#include "array/dataset_plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "array/staged_ranges.hpp"
#include "codec/registry.hpp"
#include "codec/verify.hpp"
#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "exec/encode_lane.hpp"
#include "field/box_codec.hpp"
#include "field/covered_values.hpp"
#include "field/range_evidence.hpp"
#include "field/region_codec.hpp"
#include "hdf5/stored_codec.hpp"
#include "layout/layout.hpp"
#include "policy/bound_width.hpp"
#include "policy/door_rules.hpp"
#include "policy/storage_decision.hpp"

namespace tailrace {

namespace {

/// Upper bound of the memory for merging (PatchedChunks::extra_bytes) and encoding a chunk. Some
/// codecs need less.
std::uint64_t most_memory_bytes(const FieldState& field) {
  FieldPlan plan;
  plan.dtype = field.definition.dtype;
  plan.opaque_bytes = field.definition.opaque_bytes;
  plan.grid = ChunkGrid{field.definition.shape, field.resolved.chunk_shape};
  plan.codec = field.resolved.codec.get();
  plan.verify = field.definition.options.verify == Verify::on;
  const std::uint64_t raw = plan.chunk_bytes();
  const std::uint64_t patched = 2 * raw + plan.codec->encoded_bytes_max(raw);
  return encode_memory_bytes(plan) + patched + n_elements(plan.grid.chunk_shape) / 8 + 8;
}

/// Memory for encoding a chunk in several ways (ChunkEdit).
std::uint64_t trial_memory_bytes(const FieldState& field) {
  const std::uint64_t raw = field.chunk_bytes();
  return most_memory_bytes(field) + 2 * raw + field.resolved.codec->encoded_bytes_max(raw);
}

/// Set the type by which codecs handle elements that are not native numbers.
void set_type_of_bytes(std::uint64_t element_bytes, FieldDefinition& definition) {
  definition.dtype = element_bytes == 2   ? DType::u16
                     : element_bytes == 4 ? DType::u32
                     : element_bytes == 8 ? DType::u64
                                          : DType::u8;
  definition.opaque_bytes = has_codec_type(element_bytes) ? 0 : element_bytes;
}

double fill_number(DType dtype, const std::vector<std::byte>& element) {
  return element_number(dtype == DType::f32 ? ModelType::f32 : ModelType::f64, element);
}

bool has_floats(const NewDataset& dataset) {
  return dataset.number && is_floating(*dataset.number);
}

/// Length of a plotfile's chunks; 0 if they do not follow its boxes.
std::uint64_t chunks_by_boxes(const NewDataset& dataset, const FieldOptions& options,
                              bool bounded) {
  const bool given = !dataset.chunk_shape.empty() || options.chunk_shape;
  if (dataset.boxes == nullptr || given) return 0;
  return box_chunk_length(*dataset.boxes, dataset.element_bytes, options, bounded);
}

/// Set a field's growing dimensions.
void set_growing(const std::vector<bool>& growing, FieldDefinition& field) {
  field.extendable = !growing.empty() && growing[0];
  field.more_unlimited = 0;
  for (std::size_t d = 1; d < growing.size(); ++d) {
    if (growing[d]) field.more_unlimited |= std::uint64_t{1} << d;
  }
}

/// Convert a new dataset to policy's facts.
DatasetFacts facts_of_new(const NewDataset& dataset) {
  DatasetFacts facts;
  facts.number = dataset.number;
  facts.element_bytes = dataset.element_bytes;
  facts.shape = dataset.shape;
  facts.growing = dataset.growing();
  facts.own_chunks = dataset.chunk_shape;
  facts.own_filters = dataset.own_filters;
  facts.only_hdf5 = dataset.only_by_root;
  return facts;
}

/// Determine the bounds of a plotfile's components. The header specifies the exact form; only
/// chunks know their bounds. Component bounds cannot be met if a chunk holds several components, or
/// if it is unknown which. Then all values are stored exactly, whatever the dataset's bound.
Status bound_components(const NewDataset& dataset, const ArrayFileOptions& of_file,
                        FieldOptions& options, DatasetPlan& plan) {
  if (!dataset.of_level || !has_floats(dataset) || of_file.component_bounds.empty()) {
    return Status();
  }
  const BoxSeries* boxes = dataset.boxes.get();
  // A component without a readable name may match any pattern. The attribute for very many
  // components would not fit into the header.
  constexpr std::size_t kMostComponents = 4000;
  const bool known = boxes != nullptr && boxes->components.size() <= kMostComponents &&
                     std::ranges::count(boxes->components, "") == 0;
  std::vector<ErrorBound> bounds(known ? boxes->components.size() : 0, options.bound);
  bool requested = !known;
  for (const auto& [pattern, bound] : of_file.component_bounds) {
    bool matches = !known;
    for (std::size_t c = 0; c < bounds.size(); ++c) {
      if (!glob_matches(pattern, boxes->components[c])) continue;
      bounds[c] = bound;
      requested = matches = true;
    }
    if (matches) plan.component_globs.push_back(pattern);
  }
  if (!requested) return Status();
  if (bounds.size() == 1) {
    options.bound = bounds.front();
    options.bound_given = true;
    return Status();
  }
  const bool follows = known && chunks_by_boxes(dataset, options, true) > 0;
  TAILRACE_TRY(check_component_bounds(quoted_dataset(dataset.path), bounds, options));
  options.bound = ErrorBound();
  if (!follows) {
    plan.remark = "stored exactly, because their components do not have separate chunks";
    return Status();
  }
  if (std::ranges::all_of(bounds, &ErrorBound::lossless)) return Status();
  if (options.codec != kYardstickCodec) options.codec_settings.clear();
  options.codec = kYardstickCodec;
  options.codec_given = true;
  plan.component_bounds = std::move(bounds);
  return Status();
}

Result<FieldDefinition> define_new(const NewDataset& dataset, const ArrayFileOptions& of_file,
                                   const LeastMemory& least, DatasetPlan& plan) {
  const bool floating = has_floats(dataset);
  FieldDefinition field;
  field.path = dataset.path;
  set_type_of_bytes(dataset.element_bytes, field);
  if (dataset.number) field.dtype = *dataset.number;
  field.shape = dataset.shape;
  set_growing(dataset.growing(), field);
  TAILRACE_TAKE(field.options,
                options_by_glob(dataset.path, dataset.shape.size(), !floating, of_file));
  FieldOptions& options = field.options;
  options.allow_holes = false;  // Elements that were never put are filled in any case.
  TAILRACE_TAKE(const FieldOptions unnamed,
                options_by_glob(dataset.path, dataset.shape.size(), true, of_file));
  // The datasets of plotfiles' levels are values.
  plan.for_all = options.by_role && !dataset.of_level && may_lose(options, floating, false) &&
                 !may_lose(unnamed, floating, false);
  plan.named = options.by_role && !dataset.of_level && !plan.for_all &&
               may_lose(options, floating, false) && named_alone(dataset.path, of_file);
  TAILRACE_TRY(check_door(options, Door::hdf5).within(quoted_dataset(dataset.path)));
  TAILRACE_TRY(bound_components(dataset, of_file, options, plan));
  TAILRACE_TAKE(StorageDecision decision,
                decide(facts_of_new(dataset),
                       {options, of_file.file.compatibility, least.total_bytes}, Door::hdf5)
                    .within(quoted_dataset(dataset.path)));
  plan.keep_filters = decision.keeps_filters;
  options = std::move(decision.options);
  if (floating && dataset.fill_given) options.fill_value = fill_number(field.dtype, dataset.fill);
  FieldDefinition checked = field;
  checked.path = "/checked";  // HDF5 has accepted the name, whatever it is
  checked.options.chunk_shape.reset();
  checked.options.drop_covered = false;  // Only levels have covered cells to drop.
  TAILRACE_TRY(check_definition(checked).within(quoted_dataset(dataset.path)));
  return field;
}

/// Codec of a dataset whose header has another form than its chunks. Readers decode with the chunk
/// and the header's shape only (trz/client_data.hpp).
class LateCodec final : public CodecOver {
 public:
  LateCodec(std::shared_ptr<const Codec> codec, std::vector<FilterSpec> header)
      : CodecOver(std::move(codec)), header_(std::move(header)) {}
  const std::vector<FilterSpec>& filters() const override { return header_; }

 private:
  std::vector<FilterSpec> header_;
};

/// Make the exact form of a dataset whose bound may turn out not to apply to it. Both forms share a
/// header: trz's is exact, and its chunks know their bounds. Other codecs lose nothing if their
/// exact form has the same filters, or if chunks skip the filters.
Status make_exact_form(Comm& comm, const std::string& plugin_path, FieldState& field,
                       DatasetPlan& plan) {
  std::vector<FieldState> exact(1);
  exact[0].definition = field.definition;
  exact[0].resolved.chunk_shape = field.resolved.chunk_shape;
  FieldOptions& options = exact[0].definition.options;
  options.bound = ErrorBound();
  options.guards = Guards();
  const bool knows_bound = codec_entry(options.codec).loss == Loss::in_bound;
  if (!knows_bound) become_exact(options.codec, options.codec_settings);
  TAILRACE_TRY(prepare_codecs(comm, exact, plugin_path, nullptr));
  std::unique_ptr<Codec> codec = std::move(exact[0].resolved.codec);
  std::shared_ptr<const Codec> bounded = std::move(field.resolved.codec);
  const std::vector<FilterSpec> header = bounded->filters();
  if (knows_bound) {
    plan.exact_codec = std::move(codec);
    field.resolved.codec = std::make_unique<LateCodec>(bounded, plan.exact_codec->filters());
    return Status();
  }
  field.resolved.codec = share_codec(bounded);
  if (std::ranges::equal(header, codec->filters(), {}, &FilterSpec::filter_id,
                         &FilterSpec::filter_id)) {
    plan.exact_codec = std::make_shared<LateCodec>(std::move(codec), header);
  } else {
    plan.exact_codec = skipping_codec(share_codec(bounded));
  }
  return Status();
}

/// Determine chunks, codec and layout. If the bound needs the values' range, the exact form is used
/// until the first flush.
Status resolve_new(const NewDataset& dataset, const std::string& plugin_path, Comm& comm,
                   FieldState& field, DatasetPlan& plan) {
  FieldOptions& options = field.definition.options;
  const bool late = options.bound.needs_range();
  Shape& chunk = field.resolved.chunk_shape;
  const std::uint64_t of_boxes = chunks_by_boxes(dataset, options, !plan.component_bounds.empty());
  if (of_boxes > 0) plan.boxes = dataset.boxes;
  if (!dataset.chunk_shape.empty()) {
    chunk = dataset.chunk_shape;
  } else if (of_boxes > 0 && !options.chunk_shape) {
    chunk = Shape{std::clamp<std::uint64_t>(of_boxes, 1, dataset.shape[0])};
  } else {
    chunk = choose_chunks_unseen(facts_of_new(dataset), options,
                                 static_cast<std::uint64_t>(comm.n_ranks()));
  }
  if (!options.bound.lossless()) {
    // Check the regions now: flushes cover many datasets, and would detect a wrong region too late.
    // Only dimensions grow whose limit allows it.
    FieldDefinition limited = field.definition;
    std::vector<bool> growing;
    for (std::size_t d = 0; d < dataset.max_shape.size(); ++d) {
      growing.push_back(dataset.max_shape[d] > dataset.shape[d]);
    }
    set_growing(growing, limited);
    TAILRACE_TRY(check_field_regions(limited, options.guards, plan.boxes != nullptr)
                     .within(quoted_dataset(dataset.path)));
  }
  const ErrorBound requested = options.bound;
  if (late) options.bound = ErrorBound();
  field.resolved.absolute_bound = absolute_bound(options.bound, 0, 0);
  field.resolved.pointwise_bound = pointwise_bound(options.bound);
  std::vector<FieldState> fields;
  fields.push_back(std::move(field));
  const Status made = prepare_codecs(comm, fields, plugin_path, nullptr);
  field = std::move(fields.front());
  if (made.ok() && plan.boxes != nullptr) {
    TAILRACE_TRY(encode_by_boxes(*plan.boxes, {}, chunk[0],
                                 codec_request(field.definition, field.resolved), plugin_path,
                                 field.resolved.codec));
  }
  field.definition.options.bound = requested;
  TAILRACE_TRY(made);
  if (plan.for_all && !late) TAILRACE_TRY(make_exact_form(comm, plugin_path, field, plan));
  if (field.definition.extendable && field.resolved.layout->base_from() == BaseFrom::shape) {
    TAILRACE_TAKE(field.resolved.layout, make_layout("claimed"));
  }
  return Status();
}

/// Make a variable that rank 0 writes with HDF5, filled with zeros.
ArrayVariable variable_by_hdf5(StagingMemory& memory, std::size_t element_bytes,
                               const std::string& path, std::vector<bool> growing) {
  ArrayVariable variable(memory, element_bytes);
  variable.definition.path = path;
  variable.growing = std::move(growing);
  variable.fill.assign(element_bytes, std::byte{0});
  variable.records_max_error = false;
  variable.storage = ArrayStorage::by_hdf5;
  return variable;
}

/// Adopt the codec of an existing dataset. The variable becomes chunked, unless HDF5 has created
/// the dataset without a filter that it does not have.
Status adopt_codec(const StoredDataset& stored, bool created, const std::string& plugin_path,
                   Comm& comm, AdoptedDataset& adopted) {
  ArrayVariable& variable = adopted.variable;
  ResolvedField& resolved = variable.resolved;
  const bool plain = stored.dtype && stored.plain_number && !stored.swapped;
  const auto continued = [filters = stored.storage.filters, dtype = stored.dtype,
                          chunk = stored.storage.chunk_shape](const ValueGuards& guards) {
    return continued_codec(filters, *dtype, chunk, guards);
  };
  if (plain) resolved.codec = continued({});
  if (resolved.codec != nullptr && resolved.codec->lossy() && !stored.guards_text.empty()) {
    const Result<Guards> guards = guards_to_continue(stored.guards_text);
    adopted.refused = guards.status();
    if (guards.ok()) {
      std::unique_ptr<Codec> guarded = continued(ValueGuards(*guards, 0, 0));
      adopted.refused =
          tighten_stored(*guards, stored.shape, dtype_bytes(*stored.dtype), continued, guarded);
      if (adopted.refused.ok()) {
        resolved.stored_guards = *guards;
        resolved.codec = std::move(guarded);
      }
    }
  }
  if (resolved.codec == nullptr) {
    Result<std::unique_ptr<Codec>> made = make_stored_codec(stored, stored.storage, plugin_path);
    // HDF5 omits an optional filter that it does not have.
    if (!made.ok() && created) {
      comm.decide(variable.definition.path, "missing filters");
      return Status();
    }
    TAILRACE_TRY(made.status());
    resolved.codec = existing_codec(std::move(*made), 1);
  }
  TAILRACE_TAKE(resolved.layout, make_layout("claimed"));
  resolved.chunk_shape = stored.storage.chunk_shape;
  FieldDefinition& definition = variable.definition;
  set_type_of_bytes(stored.element_bytes, definition);
  if (plain) definition.dtype = *stored.dtype;
  definition.shape = stored.shape;
  definition.extendable = std::ranges::count(variable.growing, true) > 0;
  if (plain && is_floating(*stored.dtype) && !stored.fill_value.empty()) {
    definition.options.fill_value = fill_number(*stored.dtype, variable.fill);
  }
  variable.storage = ArrayStorage::chunked;
  variable.places_known = created;
  return Status();
}

}  // namespace

Result<DatasetPlan> plan_dataset(const NewDataset& dataset, const ArrayFileOptions& options,
                                 const LeastMemory& least, Comm& comm) {
  DatasetPlan plan;
  const bool own_chunks = !dataset.chunk_shape.empty();
  const std::uint64_t n_bytes = n_elements(dataset.shape) * dataset.element_bytes;
  StorageRequest request;
  request.memory_bytes = least.total_bytes;
  plan.why = reason_to_leave(facts_of_new(dataset), request, Door::hdf5);
  if (!plan.why.empty()) {
    // Other ranks' files are never committed, so space there would waste memory.
    plan.placed_at_once = comm.is_root() && dataset.only_by_root.empty() && !own_chunks &&
                          n_bytes > 0 && n_bytes < kChunkedBytesMin;
    return plan;
  }
  plan.field = std::make_shared<FieldState>();
  TAILRACE_TAKE(plan.field->definition, define_new(dataset, options, least, plan));
  plan.in_chunks = true;
  plan.drops_covered =
      plan.field->definition.options.drop_covered && dataset.of_level && has_floats(dataset);
  if (plan.keep_filters) return plan;
  TAILRACE_TRY(resolve_new(dataset, options.file.plugin_path, comm, *plan.field, plan));
  if (own_chunks && most_memory_bytes(*plan.field) > least.room_bytes) {
    plan = DatasetPlan();
    plan.why = "chunks too large to encode within memory=";
    return plan;
  }
  if (plan.drops_covered && trial_memory_bytes(*plan.field) > least.room_bytes) {
    plan.drops_covered = false;
    plan.remark = "with all covered cells kept, because memory= is too small to drop them";
  }
  if (plan.remark.empty() && !unused_bound_remark(*plan.field).empty()) {
    const FieldOptions& own = plan.field->definition.options;
    plan.remark = "stored exactly: " + unused_bound_text(own.codec, own.bound);
  }
  plan.form.kind = StoredForm::Kind::chunked;
  plan.form.chunk_shape = plan.field->resolved.chunk_shape;
  plan.form.filters = plan.field->resolved.codec->filters();
  return plan;
}

ArrayVariable make_variable(StagingMemory& memory, const NewDataset& dataset,
                            const DatasetPlan& plan) {
  ArrayVariable variable =
      variable_by_hdf5(memory, dataset.element_bytes, dataset.path, dataset.growing());
  variable.fill = dataset.fill;
  if (!plan.in_chunks) return variable;
  variable.definition = plan.field->definition;
  variable.resolved = std::move(plan.field->resolved);
  variable.storage = ArrayStorage::chunked;
  return variable;
}

ArrayVariable make_variable(StagingMemory& memory, const NewDataset& dataset,
                            const CompoundMember& member) {
  return variable_by_hdf5(memory, member.bytes, dataset.path, dataset.growing());
}

Result<AdoptedDataset> adopt_dataset(const StoredDataset& stored, const std::string& path,
                                     DatasetOrigin origin, const std::string& plugin_path,
                                     StagingMemory& memory, Comm& comm) {
  AdoptedDataset adopted{
      variable_by_hdf5(memory, static_cast<std::size_t>(stored.element_bytes), path,
                       std::vector<bool>(stored.shape.size(), stored.chunked())),
      stored.by_value && !stored.foreign, Status()};
  ArrayVariable& variable = adopted.variable;
  if (stored.fill_value.size() == variable.fill.size()) variable.fill = stored.fill_value;
  const bool by_ranks = adopted.by_value && stored.element_bytes > 0;
  // Only rank 0 has space for datasets that HDF5 has copied. Rank 0 writes small datasets, as in
  // created files, so that the latest put of any rank wins.
  const std::uint64_t least_bytes = comm.n_ranks() > 1 ? kChunkedBytesMin : 1;
  if (by_ranks && origin == DatasetOrigin::opened &&
      stored.storage.kind == StoredForm::Kind::contiguous &&
      stored.contiguous.encoded_bytes >= least_bytes) {
    variable.storage = ArrayStorage::contiguous;
    variable.address = stored.contiguous.address;
    variable.definition.shape = stored.shape;
  } else if (by_ranks && stored.chunked() && !stored.plain_edges) {
    const bool created = origin == DatasetOrigin::created;
    TAILRACE_TRY(adopt_codec(stored, created, plugin_path, comm, adopted));
  }
  return adopted;
}

Status continue_bound(const StoredDataset& stored, const RecordedBound& recorded,
                      const ArrayFileOptions& of_file, Comm& comm, ArrayVariable& variable) {
  ResolvedField& resolved = variable.resolved;
  if (variable.storage != ArrayStorage::chunked || recorded.mode.empty()) return Status();
  const std::vector<FilterSpec> header = resolved.codec->filters();
  const CodecEntry* const entry = header.size() == 1 ? find_filter(header[0].filter_id) : nullptr;
  const bool knows_bound = entry != nullptr && entry->loss == Loss::in_bound;
  if (!knows_bound || resolved.codec->lossy() || recorded.codec != entry->name) return Status();
  FieldDefinition& definition = variable.definition;
  TAILRACE_TAKE(FieldOptions options,
                options_by_glob(definition.path, stored.shape.size(), false, of_file));
  const ErrorBound& bound = options.bound;
  const bool same = bound_mode_name(bound.mode) == recorded.mode && bound.value == recorded.asked &&
                    (!options.codec_given || options.codec == entry->name);
  const bool pointwise = bound.mode == BoundMode::pw_rel;
  const bool usable = pointwise || (recorded.absolute > 0 && std::isfinite(recorded.absolute));
  const bool guarded = !options.guards.empty() || !stored.guards_text.empty();
  if (!same || !usable || guarded) return Status();
  definition.options.bound = bound;
  definition.options.codec = entry->name;
  if (options.codec_given) definition.options.codec_settings = options.codec_settings;
  resolved.absolute_bound = pointwise ? 0 : recorded.absolute;
  resolved.pointwise_bound = pointwise_bound(bound);
  TAILRACE_TAKE(std::unique_ptr<Codec> codec,
                make_codec(codec_request(definition, resolved), of_file.file.plugin_path));
  comm.decide(definition.path, "continues with bound " + error_bound_text(bound));
  resolved.codec = std::make_unique<LateCodec>(std::move(codec), header);
  return Status();
}

// --- DeferredDecisions

void DeferredDecisions::add(std::size_t dataset, const NewDataset& definition,
                            const DatasetPlan& plan) {
  Entry entry;
  if (plan.in_chunks && !plan.keep_filters) {
    entry.role_open = plan.for_all;
    entry.role_untold = plan.named;
    if (plan.exact_codec != nullptr) entry.exact_codec = share_codec(plan.exact_codec);
    entry.boxes = plan.boxes;
    entry.component_bounds = plan.component_bounds;
    entry.bound_open =
        plan.field->definition.options.bound.needs_range() || !plan.component_bounds.empty();
    entry.width_open = !entry.bound_open && judged_by_range(plan.field->definition);
  }
  entry.cover_open = plan.drops_covered;
  entry.level = definition.boxes;
  entry.find_cover = definition.find_cover;
  if (entry.role_open || entry.role_untold || entry.bound_open || entry.width_open ||
      entry.cover_open || entry.boxes != nullptr) {
    entries_.emplace(dataset, std::move(entry));
  }
}

bool DeferredDecisions::role_open(std::size_t dataset) const {
  const auto entry = entries_.find(dataset);
  return entry != entries_.end() && entry->second.role_open;
}

/// Mark the datasets to which a bound for all datasets applies. If the objects of the file cannot
/// be listed, it applies to none. Called on rank 0.
std::vector<bool> DeferredDecisions::applies_at_root(std::span<const std::size_t> datasets,
                                                     const ListObjects& list_objects,
                                                     const AddressOf& address_of,
                                                     const NoteRemark& note_remark) {
  std::vector<bool> applies(datasets.size(), false);
  const auto note_exact = [&](std::size_t i, const std::string& why) {
    if (!role_open(datasets[i])) return;
    outcomes_["exact under a bound for all (" + why + ")"].insert(
        variables_[datasets[i]].definition.path);
  };
  const Result<FileObjects> objects = list_objects();
  if (!objects.ok()) {
    for (std::size_t i = 0; i < datasets.size(); ++i) {
      note_exact(i, "of unknown role: " + objects.status().message());
    }
    return applies;
  }
  std::map<std::uint64_t, std::size_t> position_of;
  for (std::size_t d = 0; d < objects->addresses.size(); ++d) {
    position_of.emplace(objects->addresses[d], d);
  }
  // A dataset without a name is taken for values.
  applies.assign(datasets.size(), true);
  std::vector<std::size_t> named;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const auto found = position_of.find(address_of(datasets[i]));
    if (found == position_of.end()) continue;
    named.push_back(i);
    positions.push_back(found->second);
  }
  const std::vector<RoleVerdict> verdicts = tailrace::decide_roles(objects->facts, positions);
  for (std::size_t n = 0; n < named.size(); ++n) {
    applies[named[n]] = verdicts[n].role == Role::value;
    if (applies[named[n]]) continue;
    const std::string why = std::string(role_name(verdicts[n].role)) + " by " + verdicts[n].because;
    note_exact(named[n], why);
    const std::size_t v = datasets[named[n]];
    if (role_open(v)) continue;
    note_remark(
        [&] { return lossy_role_text(variables_[v].definition.path, why, "TAILRACE_OPTIONS"); });
  }
  return applies;
}

/// Store a dataset exactly, although its options have a bound. Allocates no memory.
void DeferredDecisions::keep_exact(std::size_t v, Entry& entry) {
  FieldOptions& options = variables_[v].definition.options;
  ResolvedField& resolved = variables_[v].resolved;
  entry.bound_open = entry.width_open = false;
  options.bound = ErrorBound();
  options.guards = Guards();
  if (entry.exact_codec == nullptr) return;
  resolved.codec = std::move(entry.exact_codec);
  resolved.absolute_bound = resolved.pointwise_bound = 0;
  resolved.verify = options.verify == Verify::on;
}

Status DeferredDecisions::decide_roles(std::span<const std::size_t> datasets,
                                       const ListObjects& list_objects, const AddressOf& address_of,
                                       const NoteRemark& note_remark) {
  std::vector<std::size_t> open;
  std::ranges::copy_if(datasets, std::back_inserter(open), [this](std::size_t v) {
    const auto entry = entries_.find(v);
    return entry != entries_.end() && (entry->second.role_open || entry->second.role_untold);
  });
  if (open.empty()) return Status();
  const Result<Bytes> received = broadcast_from_root(comm_, [&](ByteWriter& message) {
    for (const bool applies : applies_at_root(open, list_objects, address_of, note_remark)) {
      message.add(static_cast<std::uint8_t>(applies));
    }
    return Status();
  });
  TAILRACE_TRY(received.status());
  ByteReader reader(*received);
  for (const std::size_t v : open) {
    Entry& entry = entries_.at(v);
    const bool decides = std::exchange(entry.role_open, false);
    entry.role_untold = false;
    if (reader.take<std::uint8_t>() == 0 && decides) keep_exact(v, entry);
  }
  return Status();
}

Status DeferredDecisions::find_covers(const std::vector<bool>& staged) {
  for (auto& [v, entry] : entries_) {
    if (!entry.cover_open || !staged[v]) continue;
    if (variables_[v].storage != ArrayStorage::chunked) continue;
    if (entry.level != nullptr) {
      TAILRACE_TRY(receive_cover(v, entry));
    } else {
      outcomes_["with all covered cells kept, because the boxes do not fit the data"].insert(
          variables_[v].definition.path);
    }
  }
  return Status();
}

/// Receive the covered cells of a level from rank 0. Errors are agreed. Collective: a broadcast.
Status DeferredDecisions::receive_cover(std::size_t v, Entry& entry) {
  const Result<Bytes> received = broadcast_from_root(comm_, [&](ByteWriter& writer) {
    LevelCover found;
    const Status looked = local_part([&] {
      found = entry.find_cover();
      return Status();
    });
    // Without memory for this, all values are stored.
    if (!looked.ok()) found = {nullptr, looked.message()};
    writer.add_text(found.unknown);
    if (found.cells == nullptr) return Status();
    for (const CoveredPart& part : found.cells->parts()) {
      writer.add(part.box);
      writer.add(part.cells);
    }
    return Status();
  });
  TAILRACE_TRY(received.status());
  return comm_.agree(local_part([&] {
    ByteReader reader(*received);
    const std::string unknown = reader.take_text();
    entry.cover_open = !unknown.empty();
    ArrayVariable& variable = variables_[v];
    if (entry.cover_open) {
      outcomes_["with all covered cells kept at a flush, because " + unknown].insert(
          variable.definition.path);
      return Status();
    }
    std::vector<CoveredPart> parts;
    while (!reader.at_end()) {
      CoveredPart& part = parts.emplace_back();
      part.box = reader.take<std::uint64_t>();
      part.cells.start = reader.take_shape();
      part.cells.count = reader.take_shape();
    }
    if (parts.empty()) return Status();
    auto cells = std::make_shared<const CoveredCells>(entry.level, std::move(parts));
    variable.resolved.edit =
        edit_covered(cells, entry.boxes.get(), variable.definition, variable.resolved);
    if (variable.resolved.edit == nullptr) return Status();
    entry.cells = std::move(cells);
    outcomes_["without values of covered cells"].insert(variable.definition.path);
    return Status();
  }));
}

const CoveredCells* DeferredDecisions::cells_to_describe(std::size_t dataset) const {
  const auto entry = entries_.find(dataset);
  const bool open = entry != entries_.end() && !entry->second.cells_described;
  return open ? entry->second.cells.get() : nullptr;
}

/// Value ranges of the components, from this rank's staged values.
std::vector<double> DeferredDecisions::component_ranges(std::size_t v, const Entry& entry) const {
  const ArrayVariable& variable = variables_[v];
  const StagingLog& log = variable.log;
  const std::size_t element = log.element_bytes();
  const std::uint64_t length = variable.resolved.chunk_shape[0];
  const BoxChunks chunks(*entry.boxes, length);
  std::vector<ValueRange> ranges(entry.component_bounds.size());
  log.for_each_lasting({}, [&](const StagingLog::Lasting& run) {
    const std::uint64_t stride = run.piece.stride_of(0);
    for (std::uint64_t done = 0; done < run.n;) {
      const std::uint64_t at = run.piece.start[0] + (run.first + done) * stride;
      const std::uint64_t left = ((at / length + 1) * length - at + stride - 1) / stride;
      const std::uint64_t n_here = std::min(left, run.n - done);
      ranges[chunks.part(at / length).component].merge(
          value_range(variable.definition.dtype,
                      {run.values + done * element, static_cast<std::size_t>(n_here) * element},
                      variable.definition.options.fill_value));
      done += n_here;
    }
  });
  return reducible(ranges);
}

/// Encode a dataset's chunks as slabs of boxes, within the components' bounds, if any.
Status DeferredDecisions::encode_boxes(std::size_t v, const Entry& entry,
                                       std::span<const double> bounds) {
  ResolvedField& resolved = variables_[v].resolved;
  return encode_by_boxes(*entry.boxes, bounds, resolved.chunk_shape[0],
                         codec_request(variables_[v].definition, resolved),
                         options_.file.plugin_path, resolved.codec);
}

/// Resolve component bounds from the values of all ranks. Errors are agreed. Collective.
Status DeferredDecisions::resolve_component_bounds(std::size_t v, Entry& entry) {
  std::vector<double> least;
  TAILRACE_TRY(comm_.agree(local_part([&] {
    least = component_ranges(v, entry);
    return Status();
  })));
  comm_.allreduce(std::span<double>(least), Reduction::min);
  const Status made = local_part([&] {
    std::vector<double> bounds = absolute_bounds(entry.component_bounds, least);
    TAILRACE_TRY(encode_boxes(v, entry, bounds).within(quoted(v)));
    entry.absolute_bounds = std::move(bounds);
    return Status();
  });
  TAILRACE_TRY(comm_.agree(made));
  variables_[v].resolved.absolute_bound = std::ranges::max(entry.absolute_bounds);
  entry.bound_open = false;
  return Status();
}

/// Judge the absolute bounds of datasets in their first flush with values. Errors are agreed.
/// Collective: an agreement, if any bound is open.
Status DeferredDecisions::judge_bounds(std::span<const std::size_t> datasets,
                                       const NoteRemark& note_remark) {
  std::vector<std::size_t> open;
  std::ranges::copy_if(datasets, std::back_inserter(open), [this](std::size_t v) {
    const auto entry = entries_.find(v);
    return entry != entries_.end() && entry->second.width_open;
  });
  if (open.empty()) return Status();
  std::vector<double> least(2 * open.size(), std::numeric_limits<double>::infinity());
  const Status mine = local_part([&] {
    for (std::size_t i = 0; i < open.size(); ++i) {
      const ArrayVariable& variable = variables_[open[i]];
      const ValueRange range = range_within_bound(variable.log, variable.definition);
      least[2 * i] = range.least;
      least[2 * i + 1] = -range.greatest;
    }
    return Status();
  });
  RankNumbers numbers;
  numbers.add_all(Reduction::min, least);
  TAILRACE_TRY(comm_.agree(mine, numbers));
  for (std::size_t i = 0; i < open.size(); ++i) {
    ValueFacts facts;
    facts.least = least[2 * i];
    facts.greatest = -least[2 * i + 1];
    if (facts.greatest < facts.least) continue;
    entries_.at(open[i]).width_open = false;
    const FieldDefinition& definition = variables_[open[i]].definition;
    const ErrorBound& bound = definition.options.bound;
    const BoundVerdict verdict = judge_bound(
        bound, definition.options.guards.bound_within(bound.value, definition.shape.size()), facts);
    note_remark([&] {
      return remark_text({definition.path, quoted(open[i]), definition.dtype, bound, bound.value,
                          kSyntaxOfDatasets},
                         verdict);
    });
  }
  return Status();
}

Status DeferredDecisions::resolve_bounds(std::span<const std::size_t> datasets,
                                         const ShapeOf& shape_of, const NoteRemark& note_remark) {
  TAILRACE_TRY(judge_bounds(datasets, note_remark));
  std::vector<std::size_t> open;
  std::vector<FieldState> fields;
  std::vector<const StagingLog*> logs;
  for (const std::size_t v : datasets) {
    const auto entry = entries_.find(v);
    if (entry == entries_.end() || !entry->second.bound_open) continue;
    if (!entry->second.component_bounds.empty()) {
      TAILRACE_TRY(resolve_component_bounds(v, entry->second));
      continue;
    }
    open.push_back(v);
    FieldState& field = fields.emplace_back();
    field.definition = variables_[v].definition;
    field.definition.shape = shape_of(v);
    field.resolved.chunk_shape = variables_[v].resolved.chunk_shape;
    logs.push_back(&variables_[v].log);
  }
  if (open.empty()) return Status();
  TAILRACE_TRY(resolve_staged_bounds(comm_, logs, fields));
  TAILRACE_TRY(comm_.agree(prepare_codecs(comm_, fields, options_.file.plugin_path, nullptr)));
  Status mine;
  for (std::size_t i = 0; i < open.size(); ++i) {
    Entry& entry = entries_.at(open[i]);
    ResolvedField& resolved = variables_[open[i]].resolved;
    ResolvedField& now = fields[i].resolved;
    entry.bound_open = false;
    // Store the values exactly. The program cannot be asked, and an error would lose the values.
    if (const Status refused = check_bound_width(fields[i], kSyntaxOfDatasets); !refused.ok()) {
      note_remark([&] { return "stored exactly: " + refused.message(); });
      continue;
    }
    note_remark([&] { return bound_width_remark(fields[i], kSyntaxOfDatasets); });
    const std::vector<FilterSpec> header = resolved.codec->filters();
    const std::vector<FilterSpec>& made = now.codec->filters();
    // If all values are equal, the exact form stays.
    if (made.size() != 1 || header.size() != 1 || made[0].filter_id != header[0].filter_id)
      continue;
    resolved.absolute_bound = now.absolute_bound;
    resolved.verify = now.verify;
    resolved.codec = std::make_unique<LateCodec>(std::move(now.codec), header);
    if (entry.boxes == nullptr) continue;
    // Without memory for this, chunks are encoded as one-dimensional: larger, and within the bound.
    const Status cut = local_part([&] { return encode_boxes(open[i], entry, {}); });
    if (mine.ok() && cut.code() != Code::out_of_memory) mine = cut.within(quoted(open[i]));
  }
  return comm_.agree(mine);
}

void DeferredDecisions::describe_bounds(std::size_t dataset,
                                        std::vector<NamedAttribute>& attributes) const {
  const auto entry = entries_.find(dataset);
  if (entry == entries_.end() || entry->second.absolute_bounds.empty()) return;
  describe_components(*entry->second.boxes, entry->second.absolute_bounds, attributes);
}

}  // namespace tailrace
