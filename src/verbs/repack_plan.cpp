// Rules of the plan.

#include "verbs/repack_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "core/codec_registry.hpp"
#include "core/glob_options.hpp"
#include "core/option_table.hpp"
#include "core/utf8.hpp"
#include "describe/field_attributes.hpp"
#include "field/box_codec.hpp"
#include "field/candidates.hpp"
#include "policy/door_rules.hpp"
#include "policy/one_piece.hpp"
#include "policy/storage_decision.hpp"
#include "verbs/element_bytes.hpp"
#include "verbs/repack_kept.hpp"

namespace tailrace::verbs {
namespace {

/// Facts for policy about a field of the input, read as numbers.
DatasetFacts facts_of_stored(const StoredDataset& field) {
  DatasetFacts facts;
  facts.number = field.dtype;
  facts.element_bytes = field.value_bytes();
  facts.shape = field.shape;
  for (std::size_t d = 0; d < field.shape.size(); ++d) {
    facts.growing.push_back(field.limit(d) != field.shape[d]);
  }
  if (field.chunked()) {
    facts.own_chunks = field.storage.chunk_shape;
    const std::uint64_t n_chunks = ChunkGrid{field.shape, facts.own_chunks}.n_chunks();
    if (field.n_chunks_there < n_chunks) {
      facts.written_fraction = double(field.n_chunks_there) / double(n_chunks);
    }
  }
  return facts;
}

/// Last value of a key: later patterns override earlier ones. nullptr: not set.
const std::string* last_value(const std::vector<KeyValue>& options, std::string_view key) {
  const auto found = std::find_if(options.rbegin(), options.rend(),
                                  [&](const KeyValue& entry) { return entry.first == key; });
  return found == options.rend() ? nullptr : &found->second;
}

/// Fit a chunk shape given for all fields to one field. Fields with another number of dimensions
/// ignore it. No chunk becomes larger than the field can grow.
void fit_common_chunk_shape(const StoredDataset& field, FieldOptions& options) {
  if (!options.chunk_shape) return;
  if (options.chunk_shape->size() != field.shape.size()) {
    options.chunk_shape.reset();
    return;
  }
  for (std::size_t d = 0; d < field.shape.size(); ++d) {
    std::uint64_t& extent = (*options.chunk_shape)[d];
    extent = std::clamp<std::uint64_t>(field.limit(d), 1, extent);
  }
}

Status check_own_chunk_shape(const StoredDataset& field, const Shape& chunk_shape) {
  bool fits = chunk_shape.size() == field.shape.size();
  for (std::size_t d = 0; fits && d < chunk_shape.size(); ++d) {
    fits = chunk_shape[d] <= field.limit(d);
  }
  if (fits) return Status();
  return Status(Code::invalid_argument,
                fmt::format("field \"{}\": chunk={} does not fit its shape {}", field.path,
                            shape_text(chunk_shape), shape_text(field.shape)));
}

/// True if the Writer chooses the codec.
bool chooses_codec(const FieldOptions& options) {
  return options.codec == kAutoCodec || !options.codec_given;
}

// --- --publish cmip7 and cloud: which chunks remain, and how the others are rewritten

bool is_whole(const FrontChunks& front, const StoredDataset& field) {
  return std::find(front.whole.begin(), front.whole.end(), field.path) != front.whole.end();
}

/// True if the chunk sizes apply to the field.
bool is_data(const FrontChunks& front, const StoredDataset& field) {
  if (!front.all_data) return field.path == front.data;
  return n_elements(field.shape) * field.value_bytes() >= kBoundedBytesMin;
}

/// True if the stored chunks comply with the rules. A data variable's chunks may be too small by
/// less than one row.
bool chunks_fit(const FrontChunks& front, const StoredDataset& field, bool lossy) {
  const Shape& chunk = field.storage.chunk_shape;
  const std::uint64_t chunk_bytes = n_elements(chunk) * field.element_bytes;
  // Copy a lossy field's chunks: encoding them again would enlarge them.
  if (front.all_as_stored && (lossy || !is_whole(front, field))) return true;
  if (is_data(front, field) && chunk_bytes > front.most_bytes) return false;
  if (ChunkGrid{field.shape, chunk}.n_chunks() <= 1) return true;
  if (is_whole(front, field)) return false;
  if (!is_data(front, field)) return true;
  const std::uint64_t row_bytes = chunk.size() > 1 ? chunk_bytes / chunk[0] : 0;
  return chunk_bytes + row_bytes >= front.least_bytes;
}

/// True if stored chunks can be copied into the output's dataset unchanged.
bool can_be_copied(const StoredDataset& field) {
  return field.chunked() && field.plain_number && !field.by_hdf5() && !field.plain_edges;
}

/// Retain Fletcher's checksum if the codec supports one, unless the user disables it.
void keep_checksum(const StoredDataset& field, FieldOptions& options) {
  const bool has_one = options.codec == kExactCodec || options.codec == kPortableCodec;
  if (!has_checksum(field) || !has_one || codec_is_ours_to_choose(options)) return;
  if (last_value(options.codec_settings, "checksum") != nullptr) return;
  options.codec_settings.emplace_back("checksum", "on");
}

/// Requests of the user about the encoding of a field.
struct Requested {
  bool anything = false;  ///< Its stored chunks must be encoded again.
  bool codec = false;     ///< Its codec is given.
};

Status choose_front_chunks(const FrontChunks& front, const StoredDataset& field,
                           Requested requested, PlannedField& planned) {
  FieldDefinition& definition = planned.definition;
  FieldOptions& options = definition.options;
  const bool fit = field.chunked() && chunks_fit(front, field, planned.losses.any());
  const bool anew =
      requested.anything || (front.masked.contains(field.path) && !planned.losses.any());
  if (fit && !anew && can_be_copied(field)) {
    definition.as_stored = definition.like;
    options.chunk_shape = field.storage.chunk_shape;
    return Status();
  }
  const std::uint64_t n_bytes = n_elements(field.shape) * field.value_bytes();
  const bool plain_before = field.storage.kind == StoredForm::Kind::contiguous ||
                            field.storage.kind == StoredForm::Kind::compact;
  const bool plain =
      !field.chunked() && !is_data(front, field) && (plain_before || n_bytes < kBoundedBytesMin);
  if (plain && !requested.anything && !definition.grows()) {
    if (field.storage.kind == StoredForm::Kind::compact)
      return Status();  // The field remains in its header.
    options.layout = "contiguous";
    options.codec = plain_codec;
    options.codec_settings.clear();
    return Status();
  }
  if (is_whole(front, field)) {
    options.chunk_shape = field.shape;
    for (std::uint64_t& extent : *options.chunk_shape) extent = std::max<std::uint64_t>(extent, 1);
  } else if (fit) {
    options.chunk_shape = field.storage.chunk_shape;
    fit_common_chunk_shape(field, options);
  } else if (!front.all_as_stored) {
    options.chunk_shape = chunk_shape_of_least(field.shape, field.value_bytes(), front.least_bytes);
  }
  if (front.all_as_stored && field.chunked() && !requested.anything) {
    planned.other_chunks_reason =
        "chunks cannot be copied as stored and are encoded again with deflate";
  }
  if (!requested.codec) {
    options.codec = options.bound.lossless() ? kExactCodec : kPortableCodec;
    options.codec_settings.clear();
    if (front.checksum) options.codec_settings = {{"checksum", "on"}};
    options.codec_given = true;
  }
  if (!front.checksum || options.codec == kExactCodec || options.codec == kPortableCodec) {
    return Status();
  }
  return Status(
      Code::invalid_argument,
      fmt::format(
          "field \"{}\": {} supports only codecs that every reader can decode ({}, {}), not {}",
          field.path, front.option, kExactCodec, kPortableCodec, options.codec));
}

Status check_front_request(const FrontChunks& front, const FileOptions& file, bool chunk_given,
                           std::span<const FieldPattern> patterns) {
  const FieldOptions& defaults = file.field_defaults;
  const bool shape_given = defaults.chunk_shape.has_value();
  if (chunk_given && (shape_given || defaults.chunk_bytes < kCmipChunkBytesLeast)) {
    return Status(Code::invalid_argument,
                  front.option + ": --chunk must be a minimum size of 4MiB or more, not a shape");
  }
  for (const FieldPattern& pattern : patterns) {
    for (const char* key : {"chunk", "layout"}) {
      if (last_value(pattern.options, key) == nullptr) continue;
      return Status(Code::invalid_argument,
                    fmt::format("--field '{}': {}= cannot be combined with {}, which chooses it",
                                pattern.glob, key, front.option));
    }
  }
  return Status();
}

/// Extents from which chunks are cut. A dimension that may grow counts as at least one chunk of the
/// input, however short it is now.
Shape extents_to_cut(const StoredDataset& field) {
  Shape extents = field.shape;
  for (std::size_t d = 0; d < extents.size() && field.chunked(); ++d) {
    if (field.limit(d) > extents[d]) {
      extents[d] = std::max(extents[d], field.storage.chunk_shape[d]);
    }
  }
  return extents;
}

/// Choose the boxes in which the field is read and encoded.
Status choose_pieces(const StoredDataset& field, FieldOptions& options, int n_ranks) {
  if (options.layout != "contiguous") {
    if (!options.chunk_shape) {
      options.chunk_shape = Writer::choose_chunk_shape(extents_to_cut(field), *field.dtype,
                                                       options.chunk_bytes, n_ranks);
    }
    return Status();
  }
  if (options.chunk_shape) {
    return Status(Code::invalid_argument,
                  fmt::format("field \"{}\": layout contiguous has no chunks, so chunk={} does not "
                              "apply; chunk=SIZE sets the size of writes",
                              field.path, shape_text(*options.chunk_shape)));
  }
  // Contiguous storage holds plain values: a request for it without a codec means codec none.
  if (chooses_codec(options)) options.codec = plain_codec;
  options.chunk_shape = slab_shape_for(field.shape, field.value_bytes(), options.chunk_bytes);
  return Status();
}

// --- Plotfiles: chunks that follow boxes, and bounds of components

Result<ComponentBound> parse_component_field(const std::string& text) {
  const std::string where = fmt::format("--field '{}'", text);
  TAILRACE_TAKE(const std::vector<ComponentBound> components,
                parse_component_bounds(std::string_view(text).substr(kComponentEntry.size()),
                                       "component:NAME:bound=MODE=VALUE")
                    .within(where));
  if (components.size() == 1) return components.front();
  return Status(Code::invalid_argument,
                where + ": expected one bound=, found " + std::to_string(components.size()));
}

/// Check that each entry matches a component of a field that is written.
Status check_components_match(std::span<const ComponentBound> wanted, const FieldRequests& requests,
                              std::span<const StoredDataset> fields) {
  for (const ComponentBound& component : wanted) {
    std::string names;
    bool found = false;
    for (std::size_t f = 0; f < requests.boxes.size(); ++f) {
      if (requests.boxes[f] == nullptr || !requests.selection.holds(fields[f].path)) continue;
      for (const std::string& name : requests.boxes[f]->components) {
        found = found || glob_matches(component.glob, name);
        if (names.size() < 400) names += (names.empty() ? "" : ", ") + name;
      }
    }
    if (found) continue;
    return Status(
        Code::invalid_argument,
        names.empty()
            ? "--field 'component:...' needs a plotfile (AMReX, Chombo) with a level whose boxes "
              "match its data"
            : fmt::format("--field 'component:{}' matches no component; the components are: {}",
                          component.glob, names));
  }
  return Status();
}

/// Cut a level's chunks as slabs of its boxes, unless the user has chosen chunks.
Status follow_boxes(const StoredDataset& field, const std::shared_ptr<const BoxSeries>& boxes,
                    std::span<const ComponentBound> wanted, PlannedField& planned) {
  FieldOptions& options = planned.definition.options;
  std::vector<ErrorBound> bounds(boxes->components.size(), options.bound);
  bool requested = false;
  for (const ComponentBound& component : wanted) {
    for (std::size_t c = 0; c < bounds.size(); ++c) {
      if (!glob_matches(component.glob, boxes->components[c])) continue;
      bounds[c] = component.bound;
      requested = true;
    }
  }
  if (requested) {
    TAILRACE_TRY(check_component_bounds(planned.definition.name(), bounds, options));
    planned.exact_reason.clear();
    options.bound = bounds.size() == 1 ? bounds.front() : ErrorBound();
    requested = bounds.size() > 1 && std::ranges::any_of(bounds, [](const ErrorBound& bound) {
                  return !bound.lossless();
                });
  }
  // The Writer's choice of a codec uses a sample that ignores boxes, so choose here.
  if (requested || (chooses_codec(options) && !options.bound.lossless())) {
    if (options.codec != kYardstickCodec) options.codec_settings.clear();
    options.codec = kYardstickCodec;
    options.codec_given = true;
  }
  const std::uint64_t length =
      options.chunk_shape ? 0 : box_chunk_length(*boxes, field.value_bytes(), options, requested);
  if (length > 0) {
    options.chunk_shape = Shape{length};
    planned.boxes = boxes;
    if (requested) planned.component_bounds = std::move(bounds);
  } else if (requested) {
    planned.exact_reason = "components share chunks";
  }
  return Status();
}

/// Decide whether values of covered cells may be dropped. The covering boxes are found later.
void plan_covered(const StoredDataset& field, const FieldRequests& requests,
                  const std::shared_ptr<const BoxSeries>& boxes, PlannedField& planned) {
  FieldOptions& options = planned.definition.options;
  if (!options.drop_covered) return;
  const bool level = boxes != nullptr && is_floating(*field.dtype);
  options.drop_covered = level && !requests.front && options.codec != plain_codec;
  if (options.drop_covered || !level) return;
  planned.covered_kept_reason = requests.front
                                    ? requests.front->option + " keeps chunks as they are"
                                    : "nothing is compressed";
}

/// Guard values against crossing the limits that the dataset states, if its codec supports it.
void keep_limits(const std::vector<KeyValue>& own, PlannedField& planned) {
  FieldOptions& options = planned.definition.options;
  const std::vector<double>& limits = planned.verdict.limits;
  if (limits.empty() || last_value(own, "guard") != nullptr) return;
  if (!chooses_codec(options) && !codec_entry(options.codec).keeps_guards) {
    planned.limits_unkept = fmt::format("{}, which codec {} does not guard; trz does",
                                        planned.verdict.limits_because, options.codec);
    return;
  }
  std::vector<double>& thresholds = options.guards.thresholds;
  thresholds.insert(thresholds.end(), limits.begin(), limits.end());
  std::ranges::sort(thresholds);
  thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  planned.keeps_limits = true;
}

struct Defaults {
  FieldOptions lossy;         ///< Set by --codec and --bound.
  FieldOptions lossless;      ///< Options of fields that must remain exact.
  bool lossy_wanted = false;  ///< A bound, a target that determines bounds, or a lossy codec is
                              ///< requested.
  bool aims = false;          ///< A target is set.
  bool codec_given = false;   ///< --codec is set; a bound exempts fields that must remain exact.
  bool lossless_given = false;
  bool keeps_chunks = false;  ///< No option sets chunks.
  Compatibility compatibility = Compatibility::automatic;
  std::uint64_t memory_bytes = 0;
  std::vector<FieldPattern> patterns;
  std::vector<ComponentBound> components;
};

bool asks_to_drop(const Defaults& defaults) {
  if (defaults.lossy.drop_covered) return true;
  return std::ranges::any_of(defaults.patterns, [](const FieldPattern& pattern) {
    const std::string* const value = last_value(pattern.options, "covered");
    return value != nullptr && *value == "drop";
  });
}

/// Reject options of a field that repack does not support.
Status check_pattern(const FieldPattern& pattern) {
  FieldOptions own;
  for (const KeyValue& entry : pattern.options) TAILRACE_TRY(apply_field_option(entry, own));
  return check_door(own, Door::repack);
}

Result<Defaults> resolve_defaults(const FieldRequests& requests, const FileOptions& file,
                                  bool chunk_given) {
  Defaults defaults;
  TAILRACE_TRY(check_door(file, Door::repack));
  defaults.lossy = file.field_defaults;
  if (!chunk_given) {
    const std::uint64_t fitting =
        std::max<std::uint64_t>(file.memory_bytes / kChosenChunksPerMemory, 1);
    defaults.lossy.chunk_bytes = std::min(defaults.lossy.chunk_bytes, fitting);
  }
  defaults.keeps_chunks = !chunk_given;
  defaults.compatibility = file.compatibility;
  defaults.memory_bytes = file.memory_bytes;
  defaults.lossless = defaults.lossy;
  defaults.codec_given = !requests.codec.empty();
  if (defaults.codec_given) {
    TAILRACE_TRY(apply_field_options("codec=" + requests.codec, defaults.lossy).within("--codec"));
    // A lossy codec for all fields does not apply to integers; one set by --field does.
    defaults.lossy.codec_given_for_field = false;
  }
  if (!requests.bound.empty()) {
    TAILRACE_TRY(apply_field_option({"bound", requests.bound}, defaults.lossy).within("--bound"));
  }
  defaults.aims = file.has_target();
  defaults.lossy_wanted = !defaults.lossy.bound.lossless() || defaults.aims ||
                          tailrace::may_lose(defaults.lossy, true, false);
  defaults.lossless_given = !requests.lossless_codec.empty();
  // Without a bound, --codec is a lossless codec and applies to all fields.
  const bool codec_serves_all = !defaults.lossless_given && !defaults.lossy_wanted;
  if (codec_serves_all) {
    defaults.lossless = defaults.lossy;
  } else {
    const std::string name =
        defaults.lossless_given ? requests.lossless_codec : std::string(kExactCodec);
    TAILRACE_TRY(
        apply_field_options("codec=" + name, defaults.lossless).within("--lossless-codec"));
    // Bounds from a target do not apply to fields that must remain exact.
    defaults.lossless.bound_given = true;
  }
  for (const std::string& text : requests.per_field) {
    if (text.starts_with(kComponentEntry)) {
      TAILRACE_TAKE(ComponentBound component, parse_component_field(text));
      defaults.components.push_back(std::move(component));
      continue;
    }
    TAILRACE_TAKE(FieldPattern pattern, parse_field_pattern(text));
    TAILRACE_TRY(check_pattern(pattern).within(fmt::format("--field '{}'", text)));
    defaults.patterns.push_back(pattern);
  }
  return defaults;
}

/// True if the user sets chunks, a codec, a layout or a bound for this field.
bool asks_for_storage(const std::vector<KeyValue>& own) {
  return std::ranges::any_of(own, [](const KeyValue& entry) {
    const bool exact = entry.first == "bound" && entry.second == "none";
    return !exact && (entry.first == "chunk" || entry.first == "codec" || entry.first == "layout" ||
                      entry.first == "bound");
  });
}

/// True if compact data remain in the header: no loss or other storage is requested.
bool stays_in_header(const StoredDataset& field, const std::vector<KeyValue>& own,
                     const FieldDefinition& definition, const Defaults& defaults) {
  return field.storage.kind == StoredForm::Kind::compact && !asks_for_storage(own) &&
         definition.options.layout != "contiguous" &&
         !tailrace::may_lose(definition.options, is_floating(definition.dtype), defaults.aims);
}

void lay_in_header(FieldDefinition& definition) {
  FieldOptions& options = definition.options;
  definition.in_header = true;
  options.layout = "claimed";
  options.codec = plain_codec;
  options.codec_settings.clear();
  options.codec_given = options.allow_holes = true;
  options.chunk_shape = definition.shape;
  for (std::uint64_t& extent : *options.chunk_shape) extent = std::max<std::uint64_t>(extent, 1);
}

/// Retain the input's chunks if the user requests no others, or state why not.
void keep_chunk_shape(const StoredDataset& field, const std::vector<KeyValue>& own,
                      const Defaults& defaults, PlannedField& planned) {
  FieldOptions& options = planned.definition.options;
  const bool requested_here = last_value(own, "chunk") != nullptr || options.layout == "contiguous";
  if (!field.chunked() || requested_here) return;
  if (chunks_have_meaning(field.path)) {
    options.chunk_shape = field.storage.chunk_shape;
    if (defaults.keeps_chunks) return;
    planned.other_chunks_reason =
        "chunks of the input are kept despite --chunk, since PyTables locates index entries by "
        "them";
    return;
  }
  if (!defaults.keeps_chunks) return;
  if (planned.boxes != nullptr) {
    planned.other_chunks_reason = "chunks follow the plotfile's boxes, not the input's chunks";
  } else if (!options.chunk_shape) {
    const bool loses = tailrace::may_lose(options, is_floating(*field.dtype), defaults.aims);
    const KeptChunks kept = keep_chunks(facts_of_stored(field), loses, defaults.memory_bytes);
    if (kept.keeps) options.chunk_shape = field.storage.chunk_shape;
    planned.other_chunks_reason = kept.why;
  }
}

/// True if a field is not chunked, has values, and no option requests other storage.
bool may_stay_in_one_piece(const StoredDataset& field, const FieldDefinition& definition) {
  const FieldOptions& options = definition.options;
  const bool usual = options.layout == "claimed" || options.layout == kFrontLayout;
  // Elements that were never written stay missing only in chunked storage.
  const bool written =
      field.storage.kind != StoredForm::Kind::contiguous || field.contiguous.encoded_bytes > 0;
  return written && usual && !options.chunk_shape && !field.chunked() && !definition.grows() &&
         definition.as_stored == nullptr && field.plain_number;
}

/// The dataset that defines the output's type, limits and times: contiguous storage cannot grow.
std::shared_ptr<const StoredDataset> form_to_keep(const StoredDataset& field, bool contiguous) {
  StoredDataset like = field;
  if (contiguous) like.max_shape = like.shape;
  return std::make_shared<const StoredDataset>(std::move(like));
}

/// True if the field itself states this fill value, as its type holds it.
bool states_fill(const StoredDataset& field, double fill) {
  const std::optional<double> held = fill_for_dtype(fill, *field.dtype);
  if (!field.missing_value || !held) return false;
  return *held == *field.missing_value || (std::isnan(*held) && std::isnan(*field.missing_value));
}

/// Define a dataset like the input's. It retains its HDF5 fill value, even if _FillValue differs
/// and codecs preserve that one.
FieldDefinition definition_like(const StoredDataset& field) {
  FieldDefinition definition;
  definition.path = field.path;
  definition.dtype = *field.dtype;
  definition.shape = field.shape;
  definition.extendable = field.extendable;
  definition.more_unlimited = field.more_unlimited();
  definition.stored_fill = field.fill_value;
  if (field.swapped) std::ranges::reverse(*definition.stored_fill);
  definition.like = form_to_keep(field, false);
  return definition;
}

Result<PlannedField> plan_field(const StoredDataset& field, const Defaults& defaults,
                                const FieldRequests& requests, FieldLosses losses,
                                const RoleVerdict* verdict,
                                const std::shared_ptr<const BoxSeries>& boxes, int n_ranks) {
  const std::optional<FrontChunks>& front = requests.front;
  TAILRACE_TRY(check_not_hollow(field));
  PlannedField planned;
  planned.has_role = verdict != nullptr;
  if (verdict != nullptr) planned.verdict = *verdict;
  planned.losses = std::move(losses);
  FieldDefinition& definition = planned.definition = definition_like(field);

  const std::string reason =
      reason_to_stay_exact(facts_of_stored(field), field.coordinate, planned.verdict.role);
  const std::string to_be_named =
      reason_to_be_named(facts_of_stored(field), field.coordinate, planned.verdict.role);
  const OwnOptions requests_here = own_options(field, defaults.patterns, !to_be_named.empty());
  const std::vector<KeyValue>& own = requests_here.entries;
  const std::string* own_bound = last_value(own, "bound");
  const bool exact_on_request = own_bound != nullptr && *own_bound == "none";
  const bool protect = exact_on_request || (own_bound == nullptr && !reason.empty());
  if (protect && (defaults.lossy_wanted || requests_here.spared)) {
    planned.exact_reason = exact_on_request ? "as asked" : reason;
  }
  definition.options = protect ? defaults.lossless : defaults.lossy;
  FieldOptions& options = definition.options;
  // Small data that tools read first: use a codec that every reader has.
  const bool plain = reason == "coordinate" || reason == "small";
  if (protect && plain && options.codec == kAutoCodec && !defaults.lossless_given) {
    options.codec = kExactCodec;
  }
  if (field.missing_value) options.fill_value = field.missing_value;

  fit_common_chunk_shape(field, options);
  for (const KeyValue& entry : own) {
    TAILRACE_TRY(apply_field_option(entry, options).within("field \"" + field.path + "\""));
  }
  definition.notes_fill = options.fill_value.has_value() &&
                          (field.fill_noted || !states_fill(field, *options.fill_value));
  if (!is_floating(*field.dtype) && !options.bound.lossless()) {
    return Status(
        Code::invalid_argument,
        fmt::format("field \"{}\" holds integers ({}), which are kept exactly: remove "
                    "bound={} from its --field",
                    field.path, dtype_name(*field.dtype), error_bound_text(options.bound)));
  }
  if (options.chunk_shape && last_value(own, "chunk") != nullptr) {
    TAILRACE_TRY(check_own_chunk_shape(field, *options.chunk_shape));
  }
  const bool codec_requested =
      protect && defaults.lossy_wanted ? defaults.lossless_given : defaults.codec_given;
  if (front) {
    Requested requested;
    requested.codec = last_value(own, "codec") != nullptr || codec_requested;
    requested.anything = requested.codec || !own.empty() || !options.bound.lossless();
    TAILRACE_TRY(choose_front_chunks(*front, field, requested, planned));
  } else if (boxes != nullptr && is_floating(*field.dtype) && options.layout != "contiguous") {
    TAILRACE_TRY(follow_boxes(field, boxes, defaults.components, planned));
  }
  const bool loses = is_floating(*field.dtype) && definition.as_stored == nullptr &&
                     tailrace::may_lose(options, true, defaults.aims);
  if (loses && boxes == nullptr) keep_limits(own, planned);
  if (loses && boxes == nullptr) planned.lossy_role = to_be_named;
  if (stays_in_header(field, own, definition, defaults)) {
    lay_in_header(definition);
    return planned;
  }
  const std::uint64_t n_bytes = n_elements(field.shape) * field.value_bytes();
  if (!front && boxes == nullptr && own.empty() && !codec_requested && n_bytes > 0 &&
      may_stay_in_one_piece(field, definition) &&
      is_smaller_in_one_piece(field.shape, n_bytes, defaults.compatibility)) {
    if (defaults.lossy_wanted && planned.exact_reason.empty()) planned.exact_reason = "small";
    store_in_one_piece(options);
  }
  if (!front || chunks_have_meaning(field.path)) keep_chunk_shape(field, own, defaults, planned);
  if (definition.as_stored == nullptr) keep_checksum(field, options);
  TAILRACE_TRY(choose_pieces(field, options, n_ranks));
  if (options.layout == "contiguous") definition.like = form_to_keep(field, true);
  plan_covered(field, requests, boxes, planned);
  return planned;
}

/// Plan a dataset of another type as bytes. No bound applies.
Result<PlannedField> plan_bytes(const StoredDataset& field, const Defaults& defaults,
                                const BytesRequest& requested, int n_ranks) {
  PlannedField planned;
  FieldDefinition& definition = planned.definition = definition_like(field);
  definition.options = options_of_bytes(defaults.lossless);
  FieldOptions& options = definition.options;
  for (const KeyValue& entry : requested.options) {
    TAILRACE_TRY(apply_field_option(entry, options).within("dataset \"" + field.path + "\""));
  }
  if (defaults.lossy_wanted || requested.bound) planned.exact_reason = kind_of_bytes(field);
  // Chunks contain complete elements.
  if (options.chunk_shape) options.chunk_shape->push_back(field.shape.back());
  keep_chunk_shape(field, requested.options, defaults, planned);
  if (!options.chunk_shape) {
    options.chunk_shape = chunk_shape_of_bytes(field, options.chunk_bytes, n_ranks);
  }
  if (!requested.unapplied.empty()) {
    planned.other_chunks_reason = requested.unapplied + " of --field applies only to numbers";
  }
  return planned;
}

/// Collect the --field entries for each field of bytes, which represents a dataset of another type.
/// Check the entries for datasets that are copied as stored.
Result<std::vector<BytesRequest>> requests_of_others(std::span<const StoredDataset> fields,
                                                     std::span<const StoredDataset> numbers,
                                                     const FieldRequests& requests,
                                                     const Defaults& defaults) {
  std::vector<BytesRequest> requested(fields.size());
  std::set<std::string> as_bytes;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (!fields[f].bytes_axis) continue;
    as_bytes.insert(fields[f].path);
    TAILRACE_TAKE(requested[f], request_of_bytes(fields[f], defaults.patterns, numbers));
  }
  const std::string why =
      requests.front ? requests.front->option + " copies datasets of other types as stored" : "";
  for (const OtherDataset& other : requests.others) {
    if (as_bytes.contains(other.path)) continue;
    TAILRACE_TRY(check_not_requested(other, defaults.patterns, numbers, why));
  }
  return requested;
}

/// The fields to which user options for numbers apply.
std::vector<StoredDataset> fields_of_numbers(std::span<const StoredDataset> fields) {
  std::vector<StoredDataset> numbers(fields.begin(), fields.end());
  std::erase_if(numbers, [](const StoredDataset& field) { return field.bytes_axis; });
  return numbers;
}

/// Reject lossy encoding of values that are already lossy.
Status check_not_again(const std::vector<PlannedField>& plan, const FileOptions& file) {
  const PlannedField* first = nullptr;
  std::size_t n_more = 0;
  for (const PlannedField& planned : plan) {
    if (!planned.losses.any() || !may_lose(planned, file)) continue;
    if (first == nullptr) {
      first = &planned;
    } else {
      ++n_more;
    }
  }
  if (first == nullptr) return Status();
  const FieldDefinition& field = first->definition;
  const std::optional<ErrorBound> had = total_of(first->losses.losses);
  const ErrorBound& bound = field.options.bound;
  const std::string more =
      n_more == 0 ? "" : fmt::format(" (and {})", counted(n_more, "more field"));
  const std::string new_loss = !bound.lossless()                  ? error_bound_text(bound)
                               : !first->component_bounds.empty() ? "bounds of components"
                               : file.has_target()                ? "the bound of a target"
                                                                  : "codec " + field.options.codec;
  return Status(Code::invalid_argument,
                fmt::format("field \"{}\"{}: its values are already lossy ({}, by its {}); {} "
                            "would add to that. Repack the original, or keep these values exactly "
                            "(--field '{}:bound=none' or no bound), or allow it by --again: {}",
                            field.path, more, had ? error_bound_text(*had) : "bound unknown",
                            first->losses.stated_by, new_loss, field.path.substr(1),
                            had ? "the output then records the sum of the bounds"
                                : "the output then records no bound against the original"));
}

}  // namespace

bool may_lose(const PlannedField& planned, const FileOptions& file) {
  const FieldDefinition& field = planned.definition;
  const bool by_component = std::ranges::any_of(
      planned.component_bounds, [](const ErrorBound& bound) { return !bound.lossless(); });
  return field.as_stored == nullptr &&
         (by_component ||
          tailrace::may_lose(field.options, is_floating(field.dtype), file.has_target()));
}

Result<bool> asks_for_loss(const FieldRequests& requests, const FileOptions& file) {
  TAILRACE_TAKE(const Defaults defaults, resolve_defaults(requests, file, false));
  return defaults.lossy_wanted || !requests.per_field.empty();
}

Result<bool> compresses_others(const FieldRequests& requests, const FileOptions& file) {
  TAILRACE_TAKE(const Defaults defaults, resolve_defaults(requests, file, false));
  return !codec_entry(defaults.lossless.codec).stores_plainly &&
         defaults.lossless.layout != "contiguous";
}

Result<std::vector<PlannedField>> plan_fields(std::span<const StoredDataset> fields,
                                              const FieldRequests& requests,
                                              const FileOptions& file, bool chunk_given,
                                              int n_ranks) {
  TAILRACE_TAKE(Defaults defaults, resolve_defaults(requests, file, chunk_given));
  if (requests.front) {
    TAILRACE_TRY(check_front_request(*requests.front, file, chunk_given, defaults.patterns));
  }
  const std::vector<StoredDataset> numbers = fields_of_numbers(fields);
  const std::vector<StoredDataset> all = with_others(numbers, requests.others);
  TAILRACE_TRY(requests.selection.check(all));
  std::vector<std::string> globs;
  for (const FieldPattern& pattern : defaults.patterns) globs.push_back(pattern.glob);
  TAILRACE_TRY(check_patterns_match(globs, "--field", all));
  TAILRACE_TAKE(const std::vector<BytesRequest> of_others,
                requests_of_others(fields, numbers, requests, defaults));
  TAILRACE_TRY(check_components_match(defaults.components, requests, fields));

  std::vector<PlannedField> plan;
  bool drops = false;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].bytes_axis) {
      // Datasets that are not written as fields are carried over, unless they are excluded by name.
      const BytesRequest& requested = of_others[f];
      const bool pays = f < requests.bytes_that_pay.size() && requests.bytes_that_pay[f];
      if (matches_any(fields[f].path, requests.selection.exclude) || requested.as_stored ||
          (!pays && !requested.compressed)) {
        continue;
      }
      TAILRACE_TAKE(PlannedField planned, plan_bytes(fields[f], defaults, requested, n_ranks));
      planned.input_index = f;
      plan.push_back(std::move(planned));
      continue;
    }
    if (!requests.selection.holds(fields[f].path)) continue;
    const auto boxes = f < requests.boxes.size() ? requests.boxes[f] : nullptr;
    FieldLosses losses = f < requests.losses.size() ? requests.losses[f] : FieldLosses();
    TAILRACE_TAKE(
        PlannedField planned,
        plan_field(fields[f], defaults, requests, std::move(losses),
                   f < requests.roles.size() ? &requests.roles[f] : nullptr, boxes, n_ranks));
    drops =
        drops || planned.definition.options.drop_covered || !planned.covered_kept_reason.empty();
    planned.input_index = f;
    plan.push_back(std::move(planned));
  }
  if (!requests.again) TAILRACE_TRY(check_not_again(plan, file));
  if (!drops && asks_to_drop(defaults)) {
    return Status(
        Code::invalid_argument,
        "covered=drop needs a plotfile (AMReX, Chombo) with a level whose boxes match its data");
  }
  return plan;
}

}  // namespace tailrace::verbs
