// The datasets of a program's HDF5 file: how new and existing ones are stored, and their staging.
// dataset_array_flush.cpp has the flushes, dataset_array_read.cpp the reads.

#include "array/dataset_array.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/registry.hpp"
#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "describe/input_bytes.hpp"
#include "exec/comm_factory.hpp"
#include "exec/encode_lane.hpp"
#include "field/box_codec.hpp"
#include "field/region_codec.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/stored_codec.hpp"
#include "layout/layout.hpp"
#include "output/publish_fields.hpp"
#include "policy/door_rules.hpp"
#include "policy/storage_decision.hpp"

namespace tailrace {

namespace {

/// Upper bound of the memory for merging (PatchedChunks::extra_bytes) and encoding a chunk. Some
/// codecs need less.
std::uint64_t most_memory_bytes(const FieldState& field) {
  FieldPlan plan;
  plan.dtype = field.definition.dtype;
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

/// Type by which codecs handle elements that are not native numbers.
DType dtype_of_bytes(std::size_t element_bytes) {
  switch (element_bytes) {
    case 1: return DType::u8;
    case 2: return DType::u16;
    case 4: return DType::u32;
    default: return DType::u64;
  }
}

double fill_number(DType dtype, const std::vector<std::byte>& element) {
  return element_number(dtype == DType::f32 ? ModelType::f32 : ModelType::f64, element);
}

/// Length of a plotfile's chunks; 0 if they do not follow its boxes.
std::uint64_t chunks_by_boxes(const DatasetArray::Definition& definition,
                              const FieldOptions& options, bool bounded) {
  const bool given = !definition.chunk_shape.empty() || options.chunk_shape;
  if (definition.boxes == nullptr || given) return 0;
  return box_chunk_length(*definition.boxes, definition.element_bytes, options, bounded);
}

/// Mark the dimensions that may change: all of a dataset that the program has chunked, since it may
/// also cut it.
std::vector<bool> growing_of(const Shape& shape, bool chunked) {
  return std::vector<bool>(shape.size(), chunked);
}

/// Restrict a field's growing dimensions to those that the dataset's limits allow to grow.
FieldDefinition with_limits(FieldDefinition field, const Shape& max_shape) {
  field.extendable = false;
  field.more_unlimited = 0;
  for (std::size_t d = 0; d < max_shape.size(); ++d) {
    if (max_shape[d] <= field.shape[d]) continue;
    if (d == 0) field.extendable = true;
    if (d > 0) field.more_unlimited |= std::uint64_t{1} << d;
  }
  return field;
}

bool any_of(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

}  // namespace

Box DatasetArray::box_of(const SlabPart& part) { return {part.first, part.slab.count}; }
Box DatasetArray::box_of(const Slab& slab) { return {Shape(slab.rank(), 0), slab.count}; }

// --- the file

DatasetArray::~DatasetArray() {
  drop_readers();
  if (closed_) return;
  drop_flight();
  comm_->abandon();
  private_file_.reset();
  output_.abandon();
}

Result<std::unique_ptr<DatasetArray>> DatasetArray::create(std::unique_ptr<Comm> comm,
                                                           const std::string& path,
                                                           const ArrayFileOptions& options) {
  std::unique_ptr<DatasetArray> file(new DatasetArray(std::move(comm), path, options));
  TAILRACE_TRY(file->start(true));
  return file;
}

Result<std::unique_ptr<DatasetArray>> DatasetArray::open(std::unique_ptr<Comm> comm,
                                                         const std::string& path,
                                                         const ArrayFileOptions& options) {
  std::unique_ptr<DatasetArray> file(new DatasetArray(std::move(comm), path, options));
  TAILRACE_TRY(file->start(false));
  return file;
}

Status DatasetArray::start(bool create) {
  TAILRACE_TRY(agree_on_options());
  writable_ = true;
  opened_ = !create;
  // The rank with the least memory decides how datasets are stored.
  const std::uint64_t own_bytes = options_.file.memory_bytes;
  std::uint64_t most[] = {time_now(), ~own_bytes, ~(own_bytes - memory_.cap_bytes())};
  comm_->allreduce(std::span(most), Reduction::max);
  begin_time(most[0]);
  least_memory_bytes_ = ~most[1];
  least_room_bytes_ = ~most[2];
  if (create) {
    TAILRACE_TRY(output_.create(*comm_, path_, options_.file));
  } else {
    if (comm_->is_root()) preserve_at_root();
    TAILRACE_TRY(open_output(sharing_));
    share_sharing();
    if (comm_->is_root()) {
      const Result<std::uint64_t> n_bytes = output_.storage().file_bytes();
      opened_bytes_ = n_bytes.ok() ? *n_bytes : UINT64_MAX;
    }
  }
  return comm_->agree(comm_->is_root() ? Status()
                                       : local_part([&] { return start_private(create); }));
}

/// Install a storage that preserves what rank 0 overwrites of an opened file. The other ranks must
/// continue to see the old bytes: their HDF5 does not know the chunks that flushes insert.
void DatasetArray::preserve_at_root() {
  const auto open = options_.file.open_storage;
  const bool direct_io = options_.file.direct_io;
  options_.file.open_storage = [this, open, direct_io](
                                   const std::string& path,
                                   bool create) -> Result<std::unique_ptr<Storage>> {
    Result<std::unique_ptr<Storage>> storage =
        open ? open(path, create) : open_posix_storage(path, create, direct_io);
    if (!storage.ok()) return storage;
    auto preserving = std::make_unique<PreservingStorage>(std::move(*storage));
    preserving_ = preserving.get();
    return std::unique_ptr<Storage>(std::move(preserving));
  };
}

/// Broadcast which datasets share chunks. Collective: one broadcast.
void DatasetArray::share_sharing() {
  ByteWriter writer;
  for (const std::string& path : sharing_) writer.add_text(path);
  Bytes bytes = writer.take();
  comm_->broadcast(bytes, 0);
  sharing_.clear();
  for (ByteReader reader(bytes); !reader.at_end();) sharing_.push_back(reader.take_text());
}

/// Broadcast the bytes that rank 0 preserved. Collective: one broadcast, if the file was opened.
void DatasetArray::share_preserved() {
  if (!opened_) return;
  ByteWriter writer;
  const DirtyBytes preserved = std::exchange(preserved_, {});
  for (const auto& [address, segment] : preserved.segments()) {
    writer.add(address);
    writer.add(static_cast<std::uint64_t>(segment.bytes.size()));
    writer.add_bytes(segment.bytes);
  }
  Bytes bytes = writer.take();
  comm_->broadcast(bytes, 0);
  if (comm_->is_root()) return;
  ByteReader reader(bytes);
  while (!reader.at_end()) {
    const auto address = reader.take<std::uint64_t>();
    private_storage_->preserve(address, reader.take_bytes(reader.take<std::uint64_t>()));
  }
}

/// Create or open the file in which this rank repeats rank 0's metadata changes.
Status DatasetArray::start_private(bool create) {
  const Hdf5File::Allocate allocate = [this](std::uint64_t n_bytes) {
    return std::exchange(private_end_, private_end_ + n_bytes);
  };
  Hdf5File::Settings settings = metadata_settings(options_.file);
  settings.journal = false;
  if (create) {
    private_storage_ = make_private_storage(output_.temporary_path());
    TAILRACE_TAKE(private_file_, Hdf5File::create(*private_storage_, allocate, settings));
    return Status();
  }
  TAILRACE_TAKE(private_storage_, open_private_storage(output_.path()));
  std::uint64_t end = 0;
  TAILRACE_TAKE(private_file_, Hdf5File::open(*private_storage_, allocate, settings, end));
  private_end_ = end;
  return Status();
}

Hdf5File& DatasetArray::metadata() { return comm_->is_root() ? output_.file() : *private_file_; }

// --- new datasets

/// Convert a definition to policy's facts on a dataset.
DatasetFacts DatasetArray::facts_of_new(const Definition& definition) {
  DatasetFacts facts;
  facts.number = definition.number;
  facts.element_bytes = definition.element_bytes;
  facts.shape = definition.shape;
  facts.growing = growing_of(definition.shape, !definition.chunk_shape.empty());
  facts.own_chunks = definition.chunk_shape;
  facts.own_filters = definition.own_filters;
  facts.only_hdf5 = definition.only_by_root;
  return facts;
}

/// Determine the bounds of a plotfile's components. The header specifies the exact form; only
/// chunks know their bounds. Component bounds cannot be met if a chunk holds several components, or
/// if it is unknown which. Then all values are stored exactly, whatever the dataset's bound.
Status DatasetArray::bound_components(const Definition& definition, FieldOptions& options,
                                      Plan& plan) const {
  const bool floating = definition.number && is_floating(*definition.number);
  if (!definition.of_level || !floating || options_.component_bounds.empty()) return Status();
  const BoxSeries* boxes = definition.boxes.get();
  // A component without a readable name may match any pattern. The attribute for very many
  // components would not fit into the header.
  constexpr std::size_t kMostComponents = 4000;
  const bool known = boxes != nullptr && boxes->components.size() <= kMostComponents &&
                     std::ranges::count(boxes->components, "") == 0;
  if (!known) boxes = nullptr;
  std::vector<ErrorBound> bounds(known ? boxes->components.size() : 0, options.bound);
  bool asked = !known;
  for (const auto& [pattern, bound] : options_.component_bounds) {
    bool matches = !known;
    for (std::size_t c = 0; c < bounds.size(); ++c) {
      if (!glob_matches(pattern, boxes->components[c])) continue;
      bounds[c] = bound;
      asked = matches = true;
    }
    if (matches) plan.component_globs.push_back(pattern);
  }
  if (!asked) return Status();
  if (bounds.size() == 1) {
    options.bound = bounds.front();
    options.bound_given = true;
    return Status();
  }
  const bool follows = known && chunks_by_boxes(definition, options, true) > 0;
  TAILRACE_TRY(check_component_bounds("dataset \"" + definition.path + "\"", bounds, options));
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

Result<FieldDefinition> DatasetArray::define_new(const Definition& definition, Plan& plan) const {
  const bool floating = definition.number && is_floating(*definition.number);
  FieldDefinition field;
  field.path = definition.path;
  field.dtype = definition.number.value_or(dtype_of_bytes(definition.element_bytes));
  field.shape = definition.shape;
  const std::vector<bool> growing = growing_of(definition.shape, !definition.chunk_shape.empty());
  for (std::size_t d = 0; d < growing.size(); ++d) {
    if (d == 0) field.extendable = growing[0];
    if (d > 0 && growing[d]) field.more_unlimited |= std::uint64_t{1} << d;
  }
  TAILRACE_TAKE(field.options,
                options_by_glob(definition.path, definition.shape.size(), !floating, options_));
  FieldOptions& options = field.options;
  options.allow_holes = false;  // Elements that were never put are filled in any case.
  TAILRACE_TRY(check_door(options, Door::hdf5).within("dataset \"" + definition.path + "\""));
  TAILRACE_TRY(bound_components(definition, options, plan));
  TAILRACE_TAKE(StorageDecision decision,
                decide(facts_of_new(definition),
                       {options, options_.file.compatibility, least_memory_bytes_}, Door::hdf5)
                    .within("dataset \"" + definition.path + "\""));
  plan.keep_filters = decision.keeps_filters;
  options = std::move(decision.options);
  if (floating && definition.fill_given)
    options.fill_value = fill_number(field.dtype, definition.fill);
  FieldDefinition checked = field;
  checked.path = "/checked";  // HDF5 has accepted the name, whatever it is
  checked.options.chunk_shape.reset();
  checked.options.drop_covered = false;  // Only levels have covered cells to drop.
  TAILRACE_TRY(check_definition(checked).within("dataset \"" + definition.path + "\""));
  return field;
}

/// Determine chunks, codec and layout. If the bound needs the values' range, the exact form is used
/// until the first flush.
Status DatasetArray::resolve_new(FieldState& field, const Definition& definition, Plan& plan) {
  FieldOptions& options = field.definition.options;
  const bool late = options.bound.needs_range();
  Shape& chunk = field.resolved.chunk_shape;
  const std::uint64_t of_boxes =
      chunks_by_boxes(definition, options, !plan.component_bounds.empty());
  if (of_boxes > 0) plan.boxes = definition.boxes;
  if (!definition.chunk_shape.empty()) {
    chunk = definition.chunk_shape;
  } else if (of_boxes > 0 && !options.chunk_shape) {
    chunk = Shape{std::clamp<std::uint64_t>(of_boxes, 1, definition.shape[0])};
  } else {
    chunk = choose_chunks_unseen(facts_of_new(definition), options,
                                 static_cast<std::uint64_t>(comm_->n_ranks()));
  }
  if (!options.bound.lossless()) {
    // Check the regions now: flushes cover many datasets, and would detect a wrong region too late.
    TAILRACE_TRY(check_field_regions(with_limits(field.definition, definition.max_shape),
                                     options.guards, plan.boxes != nullptr)
                     .within("dataset \"" + definition.path + "\""));
  }
  const ErrorBound asked = options.bound;
  if (late) options.bound = ErrorBound();
  field.resolved.absolute_bound = absolute_bound(options.bound, 0, 0);
  field.resolved.pointwise_bound = pointwise_bound(options.bound);
  std::vector<FieldState> fields;
  fields.push_back(std::move(field));
  const Status made = prepare_codecs(*comm_, fields, options_.file.plugin_path, nullptr);
  field = std::move(fields.front());
  if (made.ok() && plan.boxes != nullptr) {
    TAILRACE_TRY(encode_by_boxes(*plan.boxes, {}, chunk[0],
                                 codec_request(field.definition, field.resolved),
                                 options_.file.plugin_path, field.resolved.codec));
  }
  field.definition.options.bound = asked;
  TAILRACE_TRY(made);
  if (field.definition.extendable && field.resolved.layout->base_from() == BaseFrom::shape) {
    TAILRACE_TAKE(field.resolved.layout, make_layout("claimed"));
  }
  return Status();
}

Result<DatasetArray::Plan> DatasetArray::plan_new(const Definition& definition) {
  Plan plan;
  const bool own_chunks = !definition.chunk_shape.empty();
  const std::uint64_t n_bytes = n_elements(definition.shape) * definition.element_bytes;
  StorageRequest request;
  request.memory_bytes = least_memory_bytes_;
  plan.why = reason_to_leave(facts_of_new(definition), request, Door::hdf5);
  if (!plan.why.empty()) {
    // Other ranks' files are never committed, so space there would waste memory.
    plan.placed_at_once = comm_->is_root() && definition.only_by_root.empty() && !own_chunks &&
                          n_bytes > 0 && n_bytes < kChunkedBytesMin;
    return plan;
  }
  plan.field = std::make_shared<FieldState>();
  TAILRACE_TAKE(plan.field->definition, define_new(definition, plan));
  const FieldOptions& options = plan.field->definition.options;
  plan.in_chunks = true;
  plan.drops_covered = options.drop_covered && definition.of_level && definition.number &&
                       is_floating(*definition.number);
  if (plan.keep_filters) return plan;
  TAILRACE_TRY(resolve_new(*plan.field, definition, plan));
  if (own_chunks && most_memory_bytes(*plan.field) > least_room_bytes_) {
    plan = Plan();
    plan.why = "chunks too large to encode within memory=";
    return plan;
  }
  if (plan.drops_covered && trial_memory_bytes(*plan.field) > least_room_bytes_) {
    plan.drops_covered = false;
    plan.remark = "with all covered cells kept, because memory= is too small to drop them";
  }
  plan.form.kind = StoredForm::Kind::chunked;
  plan.form.chunk_shape = plan.field->resolved.chunk_shape;
  plan.form.filters = plan.field->resolved.codec->filters();
  return plan;
}

std::size_t DatasetArray::add(const Definition& definition, const Plan& plan, std::uint64_t address,
                              std::uint64_t values_at) {
  const std::size_t added = add_existing(definition.path, address, Origin::created);
  component_globs_.insert(plan.component_globs.begin(), plan.component_globs.end());
  if (plan.drops_covered) {
    live_[added].cover = std::make_unique<Cover>();
    live_[added].cover->boxes = definition.boxes;
    live_[added].cover->find = definition.find_cover;
  }
  if (plan.keep_filters) {  // The header defines the filters.
    add_members(added, definition);
    return added;
  }
  variables_[added] = ArrayVariable(memory_, definition.element_bytes);
  ArrayVariable& variable = variables_[added];
  Live& live = live_[added];
  live.created = true;
  live.shape = definition.shape;
  live.values_at = values_at;
  if (values_at != 0) {
    // If the values of another dataset lay here, that one has been deleted. The deletion may have
    // gone unseen, through an unserved file in which this file is mounted.
    const std::uint64_t n_bytes = n_elements(live.shape) * definition.element_bytes;
    if (placed_.overlaps(values_at, n_bytes)) look_for_deleted();
    placed_.insert(values_at, n_bytes);
  }
  live.addresses = definition.addresses;
  live.by_value = definition.by_value || (definition.addresses && comm_->is_root());
  variable.definition.path = definition.path;
  variable.growing = growing_of(definition.shape, !definition.chunk_shape.empty());
  variable.fill = definition.fill;
  variable.tells_max_error = false;
  variable.storage = ArrayStorage::by_hdf5;
  if (!plan.in_chunks) {
    add_members(added, definition);
    return added;
  }
  variable.definition = plan.field->definition;
  variable.resolved = std::move(plan.field->resolved);
  variable.storage = ArrayStorage::chunked;
  live.bound_open = variable.definition.options.bound.needs_range();
  if (plan.boxes != nullptr) {
    live.level = std::make_unique<Level>(Level{plan.boxes, plan.component_bounds, {}});
    if (!plan.component_bounds.empty()) live.bound_open = true;
  }
  add_members(added, definition);  // Last, because it invalidates references to variables.
  return added;
}

/// Register the members of a compound. Ranks may put different members of the same elements, and
/// each put must persist, so members have separate logs. Rank 0 writes these logs one after the
/// other. If all ranks write the dataset, it combines them into complete elements (fold_members).
void DatasetArray::add_members(std::size_t whole, const Definition& definition) {
  if (comm_->n_ranks() == 1 || !definition.by_value) return;
  for (const Member& member : definition.members) {
    const std::size_t added = variables_.size();
    ArrayVariable variable(memory_, member.bytes);
    variable.definition.path = definition.path;
    variable.growing = growing_of(definition.shape, !definition.chunk_shape.empty());
    variable.fill.assign(member.bytes, std::byte{0});
    variable.tells_max_error = false;
    variable.storage = ArrayStorage::by_hdf5;
    variables_.push_back(std::move(variable));
    Live& live = live_.emplace_back();
    live.created = true;
    live.shape = definition.shape;
    live.whole = whole;
    live.member = member;
    live_[whole].members.push_back(added);
  }
}

std::optional<std::size_t> DatasetArray::member_of(std::size_t v, const std::string& name) const {
  for (const std::size_t m : live_[v].members) {
    if (live_[m].member.name == name) return m;
  }
  return std::nullopt;
}

std::size_t DatasetArray::add_existing(const std::string& path, std::uint64_t address,
                                       Origin origin) {
  const std::size_t added = variables_.size();
  // Reserve first: if memory is missing, neither list may change.
  if (live_.size() == live_.capacity()) live_.reserve(2 * added + 8);
  ArrayVariable variable(memory_, std::size_t{1});
  variable.definition.path = path;
  variables_.push_back(std::move(variable));
  live_.emplace_back();
  live_.back().address = address;
  live_.back().origin = origin;
  if (origin == Origin::opened) live_.back().file_address = address;
  // The values may be addresses that only rank 0 has written; adopt() finds out from the header.
  live_.back().addresses =
      origin == Origin::copied &&
      std::ranges::any_of(live_, [](const Live& live) { return live.created && live.addresses; });
  const auto [at, fresh] = by_address_.try_emplace(address, added);
  if (!fresh) live_[std::exchange(at->second, added)].dead = true;
  note_change("the dataset opened or created as number " + std::to_string(added), path);
  return added;
}

void DatasetArray::begin_deletion() {
  // Find the objects that an earlier program left counted, which needs all links to be present
  // still.
  if (opened_ && !std::exchange(counted_known_, true)) {
    const Status counted = local_part([&] {
      TAILRACE_TAKE(counted_, counted_objects(metadata().hdf5_id()));
      return Status();
    });
    // Objects that this rank does not know to be counted would be lost.
    if (!counted.ok()) lose(counted);
  }
  ++n_deletions_;
  if (!counted_.empty() && !held_) {
    const Status held = local_part([&] {
      held_.emplace(metadata().hdf5_id(), counted_);
      return Status();
    });
    if (!held.ok()) lose(held);
  }
  look_for_deleted();
}

void DatasetArray::end_deletion() {
  if (--n_deletions_ > 0) return;  // The call was nested: a link's own callback.
  if (held_) held_->release(counted_);
  held_.reset();
}

void DatasetArray::note_count(std::uint64_t address, int change) {
  const Status noted = local_part([&] {
    std::uint64_t& n = counted_[address];
    if (change > 0) ++n;
    if (change < 0 && n > 0) --n;
    if (n == 0) counted_.erase(address);
    return Status();
  });
  if (!noted.ok()) lose(noted);
}

std::optional<std::size_t> DatasetArray::find(std::uint64_t address) const {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return std::nullopt;
  return found->second;
}

// --- existing datasets

/// Adopt the storage that a dataset's header fixes. Alike on every rank, since no flush has changed
/// it yet.
Status DatasetArray::adopt(std::size_t v) {
  if (variables_[v].in_file()) return Status();
  TAILRACE_TAKE(StoredDataset stored,
                describe_dataset_at(metadata().hdf5_id(), live_[v].address).within(quoted(v)));
  // Work on a copy: if memory is missing, the dataset stays unknown, and a later flush can retry.
  ArrayVariable variable(memory_, static_cast<std::size_t>(stored.element_bytes));
  variable.definition.path = variables_[v].definition.path;
  variable.growing = growing_of(stored.shape, stored.chunked());
  variable.tells_max_error = false;
  variable.fill.assign(variable.log.element_bytes(), std::byte{0});
  if (stored.fill_value.size() == variable.fill.size()) variable.fill = stored.fill_value;
  Shape file_shape = stored.shape;
  Live& live = live_[v];
  const bool by_value = stored.by_value && !stored.foreign;
  const bool by_ranks = by_value && has_codec_type(stored.element_bytes);
  // Only rank 0 has space for datasets that HDF5 has copied. Rank 0 writes small datasets, as in
  // created files, so that the latest put of any rank wins.
  const bool opened = live.origin == Origin::opened;
  const std::uint64_t least_bytes = comm_->n_ranks() > 1 ? kChunkedBytesMin : 1;
  variable.storage = ArrayStorage::by_hdf5;
  if (by_ranks && opened && stored.storage.kind == StoredForm::Kind::contiguous &&
      stored.contiguous.encoded_bytes >= least_bytes) {
    variable.storage = ArrayStorage::contiguous;
    variable.address = stored.contiguous.address;
    variable.definition.shape = stored.shape;
  } else if (by_ranks && stored.chunked() && !stored.plain_edges) {
    const bool created = live.origin == Origin::created;
    TAILRACE_TRY(adopt_codec(stored, created, variable, live.refused).within(quoted(v)));
  }
  variables_[v] = std::move(variable);
  live.by_value = by_value;
  live.addresses = live.addresses && !stored.by_value;
  live.file_shape = std::move(file_shape);
  live.shape = std::move(stored.shape);
  return Status();
}

/// Adopt the codec of an existing dataset.
/// @param refused  set if the dataset has guards that new values could break; reads still work.
Status DatasetArray::adopt_codec(const StoredDataset& stored, bool created, ArrayVariable& variable,
                                 Status& refused) const {
  ResolvedField& resolved = variable.resolved;
  const bool plain = stored.dtype && stored.plain_number && !stored.swapped;
  const auto continued = [filters = stored.storage.filters, dtype = stored.dtype,
                          chunk = stored.storage.chunk_shape](const ValueGuards& guards) {
    return continued_codec(filters, *dtype, chunk, guards);
  };
  if (plain) resolved.codec = continued({});
  if (resolved.codec != nullptr && resolved.codec->lossy() && !stored.guards_text.empty()) {
    const Result<Guards> guards = guards_to_continue(stored.guards_text);
    refused = guards.status();
    if (guards.ok()) {
      std::unique_ptr<Codec> guarded = continued(ValueGuards(*guards, 0, 0));
      refused =
          tighten_stored(*guards, stored.shape, dtype_bytes(*stored.dtype), continued, guarded);
      if (refused.ok()) {
        resolved.stored_guards = *guards;
        resolved.codec = std::move(guarded);
      }
    }
  }
  if (resolved.codec == nullptr) {
    Result<std::unique_ptr<Codec>> made =
        make_stored_codec(stored, stored.storage, options_.file.plugin_path);
    // HDF5 omits an optional filter that it does not have.
    if (!made.ok() && created) {
      comm_->decide(variable.definition.path, "missing filters");
      return Status();
    }
    TAILRACE_TRY(made.status());
    resolved.codec = existing_codec(std::move(*made), 1);
  }
  TAILRACE_TAKE(resolved.layout, make_layout("claimed"));
  resolved.chunk_shape = stored.storage.chunk_shape;
  FieldDefinition& definition = variable.definition;
  definition.dtype =
      plain ? *stored.dtype : dtype_of_bytes(static_cast<std::size_t>(stored.element_bytes));
  definition.shape = stored.shape;
  definition.extendable = any_of(variable.growing);
  if (plain && is_floating(*stored.dtype) && !stored.fill_value.empty()) {
    definition.options.fill_value = fill_number(*stored.dtype, variable.fill);
  }
  variable.storage = ArrayStorage::chunked;
  variable.places_known = created;
  return Status();
}

Result<DatasetArray::Facts> DatasetArray::facts(std::size_t v) {
  TAILRACE_TRY(adopt(v));
  return Facts{variables_[v].log.element_bytes(), &live_[v].shape, live_[v].by_value,
               variables_[v].storage == ArrayStorage::by_hdf5, live_[v].addresses};
}

namespace {

Shape least_of(const Shape& a, const Shape& b) {
  Shape least = a;
  for (std::size_t d = 0; d < least.size(); ++d) least[d] = std::min(least[d], b[d]);
  return least;
}

/// True if a chunk still has all its elements after its dataset was cut.
bool is_whole(const ChunkGrid& grid, std::uint64_t chunk_index, const Shape& cut_to) {
  const Box box = grid.clipped_box(chunk_index);
  return intersect(box, whole_box(cut_to)) == box;
}

}  // namespace

/// Find the stored chunks of datasets that existed before. Collective. Cost: for each such dataset,
/// once, two agreements and a sparse exchange.
Status DatasetArray::load_places(const ArrayFlush& flush) {
  for (const std::size_t v : flush.variables) {
    ArrayVariable& variable = variables_[v];
    if (variable.places_known || variable.storage != ArrayStorage::chunked) continue;
    std::vector<StoredChunk> chunks;
    Status mine;
    if (comm_->is_root()) {
      const Result<FlushedFile*> file = flushed_file();
      mine = file.status();
      if (mine.ok()) {
        Result<std::vector<StoredChunk>> found = (*file)->chunks(listed(v));
        mine = found.status();
        if (found.ok()) chunks = std::move(*found);
      }
    }
    TAILRACE_TRY(comm_->agree(mine.within(quoted(v))));
    const ChunkGrid grid{live_[v].file_shape, variable.resolved.chunk_shape};
    if (live_[v].cut_to) {
      std::erase_if(chunks, [&](const StoredChunk& chunk) {
        return !is_whole(grid, chunk.chunk_index, *live_[v].cut_to);
      });
    }
    TAILRACE_TRY(comm_->agree(places_.load(*comm_, {v, grid, {}, variable.growing}, chunks)));
    variable.places_known = true;
  }
  return Status();
}

/// True if chunks of this opened dataset share their addresses with other chunks.
bool DatasetArray::shares_chunks(std::size_t v) const {
  return live_[v].origin == Origin::opened &&
         std::ranges::find(sharing_, variables_[v].definition.path) != sharing_.end();
}

bool DatasetArray::hdf5_can_cut(std::size_t v) const {
  if (shares_chunks(v)) return false;
  const ArrayVariable& variable = variables_[v];
  if (variable.storage != ArrayStorage::chunked) return true;
  // HDF5 would re-encode the chunks at the edge, and a lossy codec would lose more digits.
  if (variable.resolved.codec->lossy()) return false;
  const std::vector<FilterSpec>& filters = variable.resolved.codec->filters();
  return std::all_of(filters.begin(), filters.end(), [](const FilterSpec& filter) {
    const CodecEntry* entry = find_filter(filter.filter_id);
    return entry != nullptr && !entry->plugin;
  });
}

Status DatasetArray::before_cut(std::size_t v, const Shape& shape) {
  cut_parts_.clear();
  if (variables_[v].storage != ArrayStorage::chunked) return Status();
  const Status mine = local_part([&] {
    const ChunkGrid grid{live_[v].shape, variables_[v].resolved.chunk_shape};
    live_[v].cut_to = least_of(live_[v].shape, shape);
    const Box left = whole_box(*live_[v].cut_to);
    const auto n_ranks = static_cast<std::uint64_t>(comm_->n_ranks());
    Status read;
    for_each_position(grid.touched(left), [&](const Shape& coordinates) {
      const std::uint64_t chunk_index = grid.index_of(coordinates);
      if (!read.ok() || is_whole(grid, chunk_index, *live_[v].cut_to)) return;
      if (chunk_index % n_ranks != static_cast<std::uint64_t>(comm_->rank())) return;
      CutPart part{Slab::of(intersect(grid.clipped_box(chunk_index), left)), {}};
      part.values.resize(part.slab.n_elements() * variables_[v].log.element_bytes());
      read = get(v, part.slab, part.values);
      if (read.ok()) cut_parts_.push_back(std::move(part));
    });
    return read;
  });
  const Status kept = comm_->agree(mine);
  if (!kept.ok()) undo_cut(v);
  return kept;
}

Status DatasetArray::after_cut(std::size_t v) {
  const std::vector<CutPart> parts = std::exchange(cut_parts_, {});
  if (variables_[v].storage != ArrayStorage::chunked) return Status();
  places_.forget(v);
  variables_[v].places_known = false;
  begin_write();
  for (const CutPart& part : parts) TAILRACE_TRY(put(v, part.slab, part.values));
  return Status();
}

// --- staging

/// Check that values can be staged for a dataset.
Status DatasetArray::check_put(std::size_t v) {
  TAILRACE_TRY(adopt(v));
  if (!live_[v].refused.ok()) return note(live_[v].refused.within(quoted(v)));
  // HDF5 itself rewrites a chunk of unchanged length in place.
  if (variables_[v].storage != ArrayStorage::by_hdf5 || !shares_chunks(v)) return Status();
  return note(Status(Code::unsupported,
                     quoted(v) + ": its chunks share their bytes with other chunks (concat "
                                 "--dedup), which HDF5 would change too; repack the file first"));
}

Status DatasetArray::check_growth(std::size_t v, const Shape& shape) const {
  const Live& live = live_[v];
  // New cells count as values, even if only fill values.
  for (std::size_t d = 0; d < std::min(shape.size(), live.shape.size()); ++d) {
    if (shape[d] > live.shape[d]) return live.refused.within(quoted(v));
  }
  return Status();
}

Status DatasetArray::put(std::size_t v, const Slab& slab, std::span<const std::byte> values) {
  TAILRACE_TRY(check_writable());
  TAILRACE_TRY(adopt(v));
  TAILRACE_TRY(check_slab(slab, live_[v].shape).within(quoted(v)));
  if (slab.empty()) return Status();
  TAILRACE_TRY(check_put(v));
  TAILRACE_TRY(note(variables_[v].log.put(slab, values, call_epoch_).within(quoted(v))));
  put_bytes_ += values.size();
  return Status();
}

Status DatasetArray::put_runs(std::size_t v, const ElementRuns& runs,
                              std::span<const std::byte> values) {
  TAILRACE_TRY(check_writable());
  TAILRACE_TRY(check_put(v));
  if (runs.empty()) return Status();
  ArrayVariable& variable = variables_[v];
  TAILRACE_TRY(note(variable.log.put(live_[v].shape, runs, values, call_epoch_).within(quoted(v))));
  put_bytes_ += values.size();
  return Status();
}

Status DatasetArray::set_shape(std::size_t v, const Shape& shape) {
  TAILRACE_TRY(adopt(v));
  ArrayVariable& variable = variables_[v];
  const std::string extents = "extents " + shape_text(shape);
  const auto change = [&] {  // Called last: after an error nothing has changed.
    if (live_[v].shape == shape) return Status();
    for (const std::size_t m : live_[v].members) TAILRACE_TRY(set_shape(m, shape));
    live_[v].shape = shape;
    note_change(quoted(v), extents);
    return Status();
  };
  const StagingLog& log = variable.log;
  const bool shrinks = !contains(whole_box(shape), whole_box(live_[v].shape));
  // Element numbers stay valid only if no dimension but the slowest changes.
  const bool renumbers =
      shape.size() > 1 && !std::equal(shape.begin() + 1, shape.end(), live_[v].shape.begin() + 1);
  bool scattered = false;
  for (std::size_t e = 0; e < log.n_entries() && renumbers; ++e) scattered |= log.scattered(e);
  if ((!shrinks && !scattered) || log.empty()) return change();
  StagingLog kept(memory_, log.element_bytes());
  Status put;
  for (std::size_t e = 0; e < log.n_entries(); ++e) {
    log.for_each_piece(e, [&](const Slab& slab, std::uint64_t epoch, const std::byte* staged) {
      const SlabPart part = part_within(slab, whole_box(shape));
      if (part.slab.empty() || !put.ok()) return;
      std::vector<std::byte> values(part.slab.n_elements() * log.element_bytes());
      copy_box(box_of(part), box_of(slab), staged, box_of(part), values.data(),
               log.element_bytes());
      put = kept.put(part.slab, values, epoch);
    });
  }
  TAILRACE_TRY(put);
  variable.log = std::move(kept);
  return change();
}

}  // namespace tailrace
