// Checks, chunk shapes, bounds and codecs of fields.

#include "field/field_state.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "codec/verify.hpp"
#include "core/covered_cells.hpp"
#include "core/glob_options.hpp"
#include "core/option_table.hpp"
#include "exec/comm_factory.hpp"
#include "field/box_codec.hpp"
#include "field/candidates.hpp"
#include "field/codec_choice.hpp"
#include "field/covered_values.hpp"
#include "field/edge_codec.hpp"
#include "field/range_evidence.hpp"
#include "field/region_codec.hpp"
#include "hdf5/stored_codec.hpp"

namespace tailrace {
namespace {

Status bad_field(const FieldDefinition& definition, Code code, const std::string& why) {
  return Status(code, definition.name() + ": " + why);
}

Status set_chunk_shape(FieldState& field, const DecompositionFacts& facts) {
  const FieldDefinition& definition = field.definition;
  const Shape& shape = definition.shape;
  Shape& chunk = field.resolved.chunk_shape;
  Shape limits = shape;  // Upper limits for a requested chunk shape.
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (definition.as_stored != nullptr) limits[d] = UINT64_MAX;
    if (definition.as_stored == nullptr && definition.like != nullptr) {
      limits[d] = definition.limit(d);
    }
  }
  chunk = choose_chunks(facts_of(definition), definition.options, limits, facts, Door::steps);
  const bool in_chunks = !stored_plainly(definition) && definition.options.layout != "contiguous";
  if (in_chunks && definition.options.chunk_shape && definition.gathers_steps()) {
    chunk[0] = definition.steps_per_entry;  // also for an entry with fewer steps
  }
  if (field.chunk_bytes() <= largest_chunk_bytes) return Status();
  return bad_field(definition, Code::invalid_argument,
                   "a chunk of " + shape_text(chunk) + " holds " + bytes_text(field.chunk_bytes()) +
                       ", at most " + bytes_text(largest_chunk_bytes) +
                       " are possible; lower chunk=");
}

/// Scan this rank's values of one field for the rules on its bound. Values that are pulled, or not
/// dense, are read in pieces of the size of a chunk. That is the requested chunk shape, or a guess,
/// since the shape may not be chosen yet.
/// @param take  receives the values; false: no more are needed.
Status scan_values(const FieldState& field,
                   const std::function<bool(std::span<const std::byte>)>& take) {
  const FieldDefinition& definition = field.definition;
  const FieldOptions& options = definition.options;
  const std::size_t element = dtype_bytes(definition.dtype);
  const ChunkGrid grid = {definition.shape,
                          options.chunk_shape
                              ? *options.chunk_shape
                              : slab_shape_for(definition.shape, element, options.chunk_bytes)};
  for (const PutRecord& put : field.puts) {
    if (put.box.empty()) continue;
    if (put.source == nullptr && put.dense()) {
      if (!take({put.values, put.box.n_elements() * element})) return Status();
      continue;
    }
    Status read;
    bool more = true;
    for_each_position(grid.touched(put.box), [&](const Shape& coordinates) {
      if (!read.ok() || !more) return;
      const Box part = intersect(put.box, grid.clipped_box(grid.index_of(coordinates)));
      Buffer values(part.n_elements() * element);
      if (!values.allocated()) {
        read = Status(Code::out_of_memory,
                      definition.name() + ": not enough memory to read " + box_text(part));
        return;
      }
      if (put.source != nullptr) {
        read = put.source->read(part, values.bytes());
      } else {
        put.copy_to(part, part, values.data(), element);
      }
      if (read.ok()) more = take(values.bytes());
    });
    TAILRACE_TRY(read);
    if (!more) return Status();
  }
  return Status();
}

/// Check that the field's axes and chunks suit these guards.
Status check_guards_of_chunks(const FieldDefinition& definition, const CodecRequest& request) {
  const Guards& guards = request.guards;
  if (definition.boxes != nullptr && (guards.of_chunks() || guards.laplacian > 0)) {
    return bad_field(definition, Code::unsupported,
                     "guard=" + guards_text(guards) +
                         ": sum, monotone and laplacian are not served for plotfile levels");
  }
  if (definition.covered != nullptr && guards.minmax) {
    return bad_field(
        definition, Code::unsupported,
        "guard=" + guards_text(guards) + ": minmax needs the values that covered=drop discards");
  }
  const Shape& chunk = request.chunk_shape;
  for (const int number : guards.monotone) {
    const auto axis = static_cast<std::size_t>(number);
    const std::string option = "guard=monotone=" + std::to_string(number);
    if (axis >= chunk.size()) {
      return bad_field(definition, Code::invalid_argument,
                       option + ": chunks of " + shape_text(chunk) +
                           " have no such axis; axes are counted from 0");
    }
    if (request.array_shape[axis] <= chunk[axis] || chunk[axis] > 2) continue;
    return bad_field(definition, Code::invalid_argument,
                     option + ": chunks of " + shape_text(chunk) +
                         " are too thin; choose a chunk= with at least 3 values along this axis");
  }
  return Status();
}

/// @param counter  counter of the field's book; null: nothing is counted.
Status prepare_codec(const FieldDefinition& definition,
                     const std::shared_ptr<trz::BookCounter>& counter, ResolvedField& resolved,
                     const std::string& plugin_path, const LogCallback& log) {
  const FieldOptions& options = definition.options;
  if (const StoredDataset* const stored = definition.as_stored.get(); stored != nullptr) {
    resolved.codec = make_copying_codec(stored->storage);
    resolved.swapped = stored->swapped;
    return Status();
  }
  CodecRequest request = codec_request(definition, resolved);
  Result<std::unique_ptr<Codec>> codec = counter != nullptr
                                             ? trz::make_counting_codec(request, counter)
                                             : make_codec(request, plugin_path);
  const bool constant = options.bound.needs_range() && resolved.absolute_bound == 0;
  if (!codec.ok() && constant && codec.status().code() == Code::unsupported) {
    if (log) {
      log(definition.name() + ": all values are equal, so the bound " +
          error_bound_text(options.bound) + " is 0; stored losslessly by " +
          std::string(kExactCodec));
    }
    become_exact(request.name, request.settings);
    codec = make_codec(request, plugin_path);
  }
  if (!codec.ok()) return codec.status().within(definition.name());
  resolved.codec = std::move(*codec);
  const bool swappable = codec_entry(request.name).any_byte_order;
  if (definition.like == nullptr && resolved.swapped && !swappable) {
    return bad_field(definition, Code::unsupported,
                     "its byte order in the file is not this machine's, and codec " + request.name +
                         " cannot write that order");
  }
  resolved.swapped = request.swapped && swappable;
  std::span<const double> of_components;
  if (definition.boxes != nullptr) {
    of_components = definition.boxes->bounds;
    TAILRACE_TRY(encode_by_boxes(*definition.boxes->series, of_components, resolved.chunk_shape[0],
                                 request, plugin_path, resolved.codec)
                     .within(definition.name()));
  }
  if (definition.covered != nullptr) {
    const BoxSeries* const boxes =
        definition.boxes != nullptr ? definition.boxes->series.get() : nullptr;
    resolved.edit = edit_covered(definition.covered, boxes, definition, resolved);
  }
  const bool lossy = resolved.codec->lossy();
  if (lossy && request.guards.minmax && options.over_time) {
    return bad_field(definition, Code::unsupported,
                     "guard=" + guards_text(request.guards) +
                         " needs all values at once; minmax is not served over time");
  }
  if (lossy && request.guards.of_chunks() && definition.gathers_steps()) {
    return bad_field(definition, Code::unsupported,
                     "guard=" + guards_text(request.guards) +
                         ": sum and monotone need chunks of a single step, not of several");
  }
  if (lossy) TAILRACE_TRY(check_guards_of_chunks(definition, request));
  if (lossy && request.guards.of_chunks()) {
    TAILRACE_TRY(encode_edges_apart({definition.shape, resolved.chunk_shape}, request, plugin_path,
                                    resolved.codec)
                     .within(definition.name()));
  }
  if (lossy) {
    TAILRACE_TRY(
        tighten_field(definition, request, plugin_path, resolved.codec).within(definition.name()));
  }
  // A codec that is lossy by its own settings (zfp,rate=8), without a requested bound, promises
  // nothing for finite values.
  const double promised = !of_components.empty()     ? std::ranges::max(of_components)
                          : options.bound.lossless() ? std::numeric_limits<double>::infinity()
                                                     : request.absolute_bound;
  resolved.absolute_bound = lossy ? promised : 0;
  resolved.pointwise_bound = lossy ? request.pointwise_bound : 0;
  resolved.verify =
      options.verify == Verify::on || (options.verify == Verify::automatic && lossy &&
                                       !resolved.codec->keeps_bound_by_construction());
  return Status();
}

/// The absolute bound as guards of neighbours tighten it.
double bound_to_judge(const FieldDefinition& definition) {
  const FieldOptions& options = definition.options;
  return options.guards.bound_within(options.bound.value, definition.shape.size());
}

/// Text of the decision on the field's dataset, to be compared between ranks.
std::string decision_text(const ResolvedField& resolved) {
  std::string text = "layout " + std::string(resolved.layout->name()) + ", chunks " +
                     shape_text(resolved.chunk_shape) + ", codec " +
                     std::string(resolved.codec->name());
  for (const FilterSpec& filter : resolved.codec->filters()) {
    // Client data may be thousands of words: shared books.
    std::uint32_t checksum = filter.flags;
    for (const std::uint32_t word : filter.final_client_data)
      checksum = (checksum ^ word) * 0x01000193U;
    text += ", filter " + std::to_string(filter.filter_id) + " with settings of checksum " +
            std::to_string(checksum);
  }
  return text + ", bound " + error_bound_text({BoundMode::abs, resolved.absolute_bound}) +
         ", bound " + error_bound_text({BoundMode::pw_rel, resolved.pointwise_bound}) +
         (resolved.verify ? ", verified" : ", not verified") +
         (resolved.swapped ? ", swapped" : "");
}

}  // namespace

bool needs_range(const FieldOptions& options) {
  return options.bound.needs_range() || options.guards.minmax;
}

bool judged_by_range(const FieldDefinition& definition) {
  const FieldOptions& options = definition.options;
  return judged_by_range(options.bound, options.guards) && definition.as_stored == nullptr &&
         may_lose(options, is_floating(definition.dtype) && definition.opaque_bytes == 0, false);
}

RangeWithinBound::RangeWithinBound(const FieldDefinition& definition)
    : dtype_(definition.dtype),
      fill_value_(definition.options.fill_value),
      absolute_bound_(bound_to_judge(definition)) {}

bool RangeWithinBound::add(std::span<const std::byte> values) {
  constexpr std::size_t n_at_once = 8192;
  const std::size_t step = n_at_once * dtype_bytes(dtype_);
  while (!values.empty() && spans_range(absolute_bound_, range_.least, range_.greatest)) {
    const std::span<const std::byte> here = values.first(std::min(step, values.size()));
    range_.merge(value_range(dtype_, here, fill_value_));
    values = values.subspan(here.size());
  }
  return spans_range(absolute_bound_, range_.least, range_.greatest);
}

DatasetFacts facts_of(const FieldDefinition& definition) {
  DatasetFacts facts;
  if (definition.opaque_bytes == 0) facts.number = definition.dtype;
  facts.element_bytes = definition.element_bytes();
  facts.shape = definition.shape;
  facts.over_time = definition.options.over_time;
  facts.in_header = definition.in_header;
  for (std::size_t d = 0; d < definition.shape.size(); ++d) {
    const bool grows = d == 0 ? definition.extendable : (definition.more_unlimited >> d & 1U) != 0;
    const bool like_grows =
        definition.like != nullptr && definition.like->limit(d) != definition.like->shape[d];
    facts.growing.push_back(grows || like_grows);
  }
  return facts;
}

bool stored_plainly(const FieldDefinition& definition) {
  return has_nothing_to_compress(facts_of(definition));
}

const Guards& guards_of(const FieldDefinition& definition, const ResolvedField& resolved) {
  const Guards& requested = definition.options.guards;
  return requested.empty() ? resolved.stored_guards : requested;
}

CodecRequest codec_request(const FieldDefinition& definition, const ResolvedField& resolved) {
  const FieldOptions& options = definition.options;
  CodecRequest request{options.codec, options.codec_settings, definition.dtype,
                       definition.with_entries(1, resolved.chunk_shape), resolved.absolute_bound};
  request.fill_value = options.fill_value;
  request.swapped = definition.like != nullptr ? definition.like->swapped : resolved.swapped;
  request.pointwise_bound = resolved.pointwise_bound;
  request.guards = guards_of(definition, resolved);
  request.array_shape = definition.with_entries(UINT64_MAX, definition.shape);
  request.absolute_bound =
      request.guards.bound_within(request.absolute_bound, request.array_shape.size());
  request.value_least = resolved.value_least;
  request.value_greatest = resolved.value_greatest;
  if (definition.holds_bytes()) request.element_bytes = definition.shape.back();
  if (definition.opaque_bytes > 0) {
    request.element_bytes = definition.opaque_bytes;
    request.chunk_shape.push_back(definition.opaque_bytes);
    request.array_shape.push_back(definition.opaque_bytes);
  }
  CodecWish wish = codec_wish(facts_of(definition), options);
  request.name = std::move(wish.name);
  request.settings = std::move(wish.settings);
  if (!wish.keeps_bound) request.absolute_bound = request.pointwise_bound = 0;
  return request;
}

Status check_definition(const FieldDefinition& definition) {
  const auto& [path, dtype, shape, options, extendable, more_unlimited, as_stored, boxes, covered,
               region_masks, stored_fill, keeps_source_notes, like, in_header, steps_per_entry,
               notes_fill, opaque_bytes, dimensions] = definition;
  const auto bad = [&](const std::string& why) {
    return bad_field(definition, Code::invalid_argument, why);
  };
  if (path.size() < 2 || path.front() != '/' || path.back() == '/' ||
      path.find("//") != std::string::npos || path.find('\0') != std::string::npos) {
    return bad("the path must be absolute and name a dataset, such as \"/group/name\"");
  }
  if ((path + "/").find("/./") != std::string::npos) {
    return bad("the path must not contain the name \".\", which means the group itself in HDF5");
  }
  if (definition.holds_bytes() && (like->shape.size() != shape.size() || shape.size() < 2)) {
    return bad("elements stored as bytes need a last dimension for their bytes, got shape " +
               shape_text(shape));
  }
  if (opaque_bytes > 0 && (dtype != DType::u8 || definition.holds_bytes())) {
    return bad("elements of " + std::to_string(opaque_bytes) + " bytes must have dtype u8");
  }
  const std::size_t element_bytes =
      definition.holds_bytes() ? shape.back() : definition.element_bytes();
  if (stored_fill && !stored_fill->empty() && stored_fill->size() != element_bytes) {
    return bad("the fill value has " + std::to_string(stored_fill->size()) + " bytes, expected " +
               std::to_string(element_bytes));
  }
  const bool adds_time = options.over_time && steps_per_entry == 1;
  if (shape.size() + (adds_time ? 1 : 0) > kMaxRank) {
    return bad(std::to_string(shape.size() + (adds_time ? 1 : 0)) + " dimensions, at most " +
               std::to_string(kMaxRank) + " are possible");
  }
  if (n_elements(shape) > std::numeric_limits<std::uint64_t>::max() / 16) {
    return bad("shape " + shape_text(shape) + " is larger than any file");
  }
  if (!options.bound.lossless() && !(options.bound.value > 0)) return bad("the bound must be > 0");
  if (options.chunk_shape &&
      (options.chunk_shape->size() != shape.size() || n_elements(*options.chunk_shape) == 0)) {
    return bad("chunk shape " + shape_text(*options.chunk_shape) + " does not fit shape " +
               shape_text(shape) + "; give one extent >= 1 for each dimension");
  }
  TAILRACE_TAKE(auto layout, make_layout(options.layout, options).within(definition.name()));
  if (layout->contiguous()) {
    if (!codec_entry(options.codec).stores_plainly) {
      return bad("layout contiguous stores uncompressed values; it needs codec none, not " +
                 options.codec);
    }
    if (options.over_time || definition.grows()) return bad("a growing field cannot be contiguous");
    if (options.allow_holes) return bad("a contiguous field cannot have holes");
  }
  if (options.over_time && n_elements(shape) == 0)
    return bad("an empty field cannot grow over time");
  if (definition.grows() && (shape.empty() || options.over_time)) {
    return bad("an extendable field needs at least one dimension, and over-time=off");
  }
  if (options.drop_covered && covered == nullptr) {
    return bad("covered=drop applies only to plotfile levels (HDF5 programs and repack)");
  }
  return Status();
}

Status check_box(const FieldDefinition& definition, const Box& box) {
  if (box.start.size() != definition.shape.size() || box.count.size() != definition.shape.size()) {
    return bad_field(definition, Code::invalid_argument,
                     "a box of " + std::to_string(box.count.size()) +
                         " dimensions was put, the field has " +
                         std::to_string(definition.shape.size()));
  }
  for (std::size_t d = 0; d < box.rank(); ++d) {
    const std::uint64_t extent = definition.shape[d];
    if (box.count[d] > extent || box.start[d] > extent - box.count[d]) {
      if (box.empty()) return Status();  // nothing is put, so the position does not matter
      return bad_field(
          definition, Code::bad_coverage,
          "box " + box_text(box) + " exceeds the shape " + shape_text(definition.shape));
    }
  }
  return Status();
}

namespace {

/// Text of the properties that a dataset copies from another one, equal if these are equal.
std::string form_text(const StoredDataset& like) {
  std::string text = std::string(like.bytes_axis ? "bytes, " : "") +
                     "created like a dataset of type " + like.type_text + ", named type \"" +
                     like.type_path + "\", limits " + shape_text(like.max_shape) +
                     ", allocation time " + std::to_string(like.times.allocation) + ", fill time " +
                     std::to_string(like.times.fill) +
                     (like.times.no_fill_value ? ", no fill value" : "") + ", bytes of the type";
  for (const std::byte byte : like.type) text += " " + std::to_string(std::to_integer<int>(byte));
  return text;
}

}  // namespace

std::string definition_text(const FieldDefinition& definition) {
  const auto& [path, dtype, shape, options, extendable, more_unlimited, as_stored, boxes, covered,
               region_masks, stored_fill, keeps_source_notes, like, in_header, steps_per_entry,
               notes_fill, opaque_bytes, dimensions] = definition;
  // One line of items, so that an error shows those that differ.
  std::string of_options = agreed_text(options);
  for (std::size_t end = 0; (end = of_options.find('\n', end)) != std::string::npos;) {
    of_options.replace(end, 1, ", ");
  }
  std::string text = definition.name() + ": type " + std::string(dtype_name(dtype)) + ", shape " +
                     shape_text(shape) + ", " + of_options +
                     (extendable ? "grows along its first dimension" : "of fixed length");
  for (std::size_t d = 1; d < shape.size(); ++d) {
    if ((more_unlimited >> d & 1U) != 0) text += ", dimension " + std::to_string(d) + " unlimited";
  }
  if (opaque_bytes > 0) text += ", elements of " + std::to_string(opaque_bytes) + " bytes";
  if (as_stored != nullptr) text += ", chunks as they are stored";
  if (stored_fill) {
    text += ", fill value of bytes";
    for (const std::byte byte : *stored_fill) {
      text += " " + std::to_string(std::to_integer<unsigned>(byte));
    }
  }
  if (steps_per_entry > 1) text += ", " + std::to_string(steps_per_entry) + " steps in a chunk";
  if (like != nullptr) text += ", " + form_text(*like);
  if (in_header) text += ", stored in its header";
  if (keeps_source_notes) text += ", with its source's notes on the encoding";
  if (notes_fill) text += ", with a note on its fill value";
  if (!dimensions.empty()) text += ", dimensions";
  for (const std::string& name : dimensions) text += " \"" + name + "\"";
  if (boxes != nullptr) text += ", " + boxes_text(*boxes);
  if (covered != nullptr) {
    text += ", covered cells of checksum " + std::to_string(covered->checksum());
  }
  return text + "\n";
}

Result<std::vector<DecompositionFacts>> common_facts(Comm& comm, std::span<const LocalBoxes> fields,
                                                     const Status& mine, const RankNumbers& along) {
  std::vector<std::uint64_t> cuts;
  std::vector<std::uint64_t> maxima;  // per field: the largest box, then 1 if it was put
  for (const LocalBoxes& field : fields) {
    const std::size_t first = cuts.size();
    cuts.resize(first + field.shape.size() + 1, 0);
    maxima.resize(cuts.size(), 1);
    maxima.back() = field.put_called ? 1 : 0;
    for (const Box& box : field.boxes) add_cuts(field.shape, box, &cuts[first], &maxima[first]);
  }
  RankNumbers numbers = along;
  numbers.add_all(Reduction::gcd, cuts);
  numbers.add_all(Reduction::max, maxima);
  TAILRACE_TRY(comm.agree(mine, numbers));
  std::vector<DecompositionFacts> facts;
  std::size_t at = 0;
  for (const LocalBoxes& field : fields) {
    DecompositionFacts& one = facts.emplace_back();
    for (std::uint64_t extent : field.shape) {
      extent = std::max<std::uint64_t>(extent, 1);
      one.cut_gcd.push_back(cuts[at] == 0 ? extent : std::min(cuts[at], extent));
      one.largest_box.push_back(maxima[at++]);
    }
    one.any_put = maxima[at++] > 0;
  }
  return facts;
}

Result<std::vector<std::size_t>> choose_chunk_shapes(Comm& comm, std::vector<FieldState>& fields,
                                                     const Status& mine, const RankNumbers& along) {
  std::vector<std::size_t> open;
  std::vector<LocalBoxes> local;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const FieldState& field = fields[f];
    if (!field.is_open()) continue;
    open.push_back(f);
    local.push_back({field.definition.shape, {}, field.put_called});
    for (const PutRecord& put : field.puts) local.back().boxes.push_back(put.box);
  }
  const Result<std::vector<DecompositionFacts>> facts = common_facts(comm, local, mine, along);
  if (!facts.ok()) return facts.status();
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < open.size(); ++i) {
    FieldState& field = fields[open[i]];
    const DecompositionFacts& of_field = (*facts)[i];
    if (field.is_new() || of_field.any_put) active.push_back(open[i]);
    // All ranks have the same definitions and facts, so all ranks fail alike.
    if (field.makes_dataset()) TAILRACE_TRY(set_chunk_shape(field, of_field));
  }
  return active;
}

ValueRanges::ValueRanges(const std::vector<FieldState>& fields, const Scan& scan) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const FieldState& field = fields[i];
    const FieldDefinition& definition = field.definition;
    const bool to_judge = judged_by_range(definition);
    if (!field.makes_dataset() || (!needs_range(definition.options) && !to_judge)) continue;
    const auto evidence = std::make_shared<RangeEvidence>();
    const Status status = local_part([&] {
      if (scan) return scan(i, *evidence);
      if (needs_range(definition.options)) {
        return scan_values(field, [&](std::span<const std::byte> values) {
          evidence->add(definition.dtype, values, definition.options.fill_value);
          return true;
        });
      }
      RangeWithinBound within(definition);
      TAILRACE_TRY(scan_values(
          field, [&](std::span<const std::byte> values) { return within.add(values); }));
      evidence->range = within.range();
      return Status();
    });
    if (scanned_.ok()) scanned_ = status;
    least_.push_back(evidence->range.least);
    least_.push_back(-evidence->range.greatest);
    evidence_.push_back(evidence);
  }
}

RankNumbers ValueRanges::numbers() {
  RankNumbers numbers;
  numbers.add_all(Reduction::min, least_);
  return numbers;
}

void ValueRanges::resolve_bounds(std::vector<FieldState>& fields) const {
  auto entry = least_.begin();
  auto evidence = evidence_.begin();
  for (FieldState& field : fields) {
    if (!field.makes_dataset()) continue;
    const ErrorBound& bound = field.definition.options.bound;
    ResolvedField& resolved = field.resolved;
    if (needs_range(field.definition.options)) {
      field.evidence = *evidence++;
      resolved.value_least = *entry++;
      resolved.value_greatest = -*entry++;
      if (resolved.value_greatest < resolved.value_least) {
        resolved.value_least = resolved.value_greatest = 0;
      }
    }
    resolved.absolute_bound = absolute_bound(bound, resolved.value_least, resolved.value_greatest);
    resolved.pointwise_bound = pointwise_bound(bound);
    if (!judged_by_range(field.definition)) continue;
    // The range is complete if the bound spans it, and does not steer the encoding.
    ValueFacts facts;
    if (needs_range(field.definition.options)) {
      facts.least = resolved.value_least;
      facts.greatest = resolved.value_greatest;
    } else {
      ++evidence;
      facts.least = *entry++;
      facts.greatest = -*entry++;
    }
    resolved.width = judge_bound(bound, bound_to_judge(field.definition), facts);
  }
}

Status resolve_bounds(Comm& comm, std::vector<FieldState>& fields) {
  ValueRanges ranges(fields);
  ranges.numbers().reduce(comm);
  ranges.resolve_bounds(fields);
  return ranges.scanned();
}

Status prepare_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path,
                      const LogCallback& log) {
  for (FieldState& field : fields) {
    if (!field.is_new()) continue;
    const FieldDefinition& definition = field.definition;
    const std::string& wanted = definition.options.layout;
    const std::string layout = stored_plainly(definition) ? "contiguous" : wanted;
    TAILRACE_TAKE(field.resolved.layout,
                  make_layout(layout, definition.options).within(definition.name()));
    TAILRACE_TRY(
        prepare_codec(definition, field.learned.book.counter, field.resolved, plugin_path, log));
    comm.decide(definition.name(), decision_text(field.resolved));
  }
  return Status();
}

Status try_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path) {
  for (FieldState& field : fields) {
    if (!field.is_new()) continue;
    FieldOptions& options = field.definition.options;
    const auto is_auto_book = [](const KeyValue& setting) {
      return setting.first == "book" && setting.second == "auto";
    };
    if (codec_is_ours_to_choose(options)) {
      TAILRACE_TRY(check_chosen_settings(field.definition));
      if (field.continued) {
        TAILRACE_TRY(name_stored_codec(comm, field, plugin_path));
      } else {
        const bool lossy = is_floating(field.definition.dtype) && !options.bound.lossless();
        TAILRACE_TRY(name_codec(std::string(lossy ? kYardstickCodec : kExactCodec), options));
      }
    } else if (std::erase_if(options.codec_settings, is_auto_book) > 0) {
      field.continued = false;  // its dataset records the book
    }
    if (field.continued) continue;
    ResolvedField& resolved = field.resolved;
    if (needs_range(options)) resolved.value_greatest = 1;
    resolved.absolute_bound =
        absolute_bound(options.bound, resolved.value_least, resolved.value_greatest);
    resolved.pointwise_bound = pointwise_bound(options.bound);
  }
  return prepare_codecs(comm, fields, plugin_path, nullptr);
}

Status try_definition(const FieldDefinition& definition, const std::string& plugin_path) {
  const bool copied = definition.as_stored != nullptr || definition.boxes != nullptr;
  if (copied || definition.covered != nullptr || codec_is_ours_to_choose(definition.options)) {
    return Status();
  }
  const std::unique_ptr<Comm> alone = make_self_comm();
  std::vector<FieldState> fields(1);
  FieldState& field = fields.front();
  const auto attempt = [&](const Shape* chunk) {
    field = FieldState();
    field.definition = definition;
    TAILRACE_TRY(set_chunk_shape(field, {definition.shape, definition.shape}));
    if (chunk != nullptr) field.resolved.chunk_shape = *chunk;
    const Status tried = try_codecs(*alone, fields, plugin_path);
    const bool alike = tried.code() == Code::unsupported || tried.code() == Code::invalid_argument;
    return tried.ok() || alike ? tried : Status();
  };
  const Status first = attempt(nullptr);
  const bool follows_boxes = !definition.options.chunk_shape && !stored_plainly(definition);
  if (first.ok() || !follows_boxes) return first;
  Shape likely = definition.shape;
  for (std::uint64_t& extent : likely) extent = std::max<std::uint64_t>(extent, 1);
  if (attempt(&likely).ok()) return Status();
  likely.front() = 1;
  return attempt(&likely).ok() ? Status() : first;
}

FieldPlan field_plan(std::size_t field_index, const FieldDefinition& definition,
                     const ResolvedField& resolved) {
  FieldPlan plan;
  plan.field_index = field_index;
  plan.path = definition.path;
  plan.dtype = definition.dtype;
  plan.opaque_bytes = definition.opaque_bytes;
  plan.grid = {definition.shape, resolved.chunk_shape};
  plan.codec = resolved.codec.get();
  plan.edit = resolved.edit.get();
  plan.layout = resolved.layout.get();
  plan.absolute_bound = resolved.absolute_bound;
  plan.pointwise_bound = resolved.pointwise_bound;
  plan.fill_value = definition.options.fill_value;
  plan.stored_fill = definition.stored_fill;
  plan.verify = resolved.verify;
  plan.fall_back_to_raw = definition.options.fall_back_to_raw;
  plan.allow_holes = definition.options.allow_holes;
  plan.pad_with_fill = definition.grows();
  plan.swapped = resolved.swapped;
  return plan;
}

}  // namespace tailrace
