// Checks, chunk shapes, bounds and codecs of fields.

#include "field/field_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "codec/registry.hpp"
#include "codec/verify.hpp"
#include "core/option_table.hpp"
#include "hdf5/filter_plugins.hpp"
#include "layout/chunk_shape.hpp"

namespace tailrace {
namespace {

Status bad_field(const FieldDefinition& definition, Code code, const std::string& why) {
  return Status(code, "field \"" + definition.path + "\": " + why);
}

std::uint64_t gcd_entry(std::uint64_t a, std::uint64_t b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

/// Fold one box's borders into the field's cuts. The field's own borders are no cuts.
void add_cuts(const Shape& shape, const Box& box, std::uint64_t* cut_gcd, std::uint64_t* largest) {
  if (box.empty()) return;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::uint64_t end = box.start[d] + box.count[d];
    cut_gcd[d] = gcd_entry(cut_gcd[d], box.start[d]);
    if (end < shape[d]) cut_gcd[d] = gcd_entry(cut_gcd[d], end);
    largest[d] = std::max(largest[d], box.count[d]);
  }
}

Status set_chunk_shape(FieldState& field, DecompositionFacts facts) {
  const FieldDefinition& definition = field.definition;
  const Shape& shape = definition.shape;
  const std::uint64_t element = dtype_bytes(definition.dtype);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (facts.cut_gcd[d] == 0) facts.cut_gcd[d] = std::max<std::uint64_t>(shape[d], 1);
    facts.largest_box[d] = std::max<std::uint64_t>(facts.largest_box[d], 1);
  }
  if (stored_plainly(definition) || definition.options.layout == "contiguous") {
    field.chunk_shape =
        slab_shape_for(shape, element, definition.options.chunk_bytes, facts.cut_gcd);
  } else if (definition.options.chunk_shape) {
    field.chunk_shape = *definition.options.chunk_shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      field.chunk_shape[d] = std::min(field.chunk_shape[d], std::max<std::uint64_t>(shape[d], 1));
    }
  } else {
    field.chunk_shape = chunk_shape_for(shape, element, definition.options.chunk_bytes, facts);
  }
  const std::uint64_t n_bytes = n_elements(field.chunk_shape) * element;
  if (n_bytes <= largest_chunk_bytes) return Status();
  return bad_field(definition, Code::invalid_argument,
                   "a chunk of " + shape_text(field.chunk_shape) + " holds " + bytes_text(n_bytes) +
                       ", at most " + bytes_text(largest_chunk_bytes) + " are possible");
}

/// The range of this rank's values of one field; pulled ones are read chunk by chunk.
Status scan_values(const FieldState& field, ValueRange& range) {
  const FieldDefinition& definition = field.definition;
  const std::size_t element = dtype_bytes(definition.dtype);
  const ChunkGrid grid = field.grid();
  for (const PutRecord& put : field.puts) {
    if (put.box.empty()) continue;
    if (put.source == nullptr) {
      range.merge(value_range(definition.dtype, {put.values, put.box.n_elements() * element},
                              definition.options.fill_value));
      continue;
    }
    Status read;
    for_each_position(grid.touched(put.box), [&](const Shape& coordinates) {
      if (!read.ok()) return;
      const Box part = intersect(put.box, grid.clipped_box(grid.index_of(coordinates)));
      Buffer values(part.n_elements() * element);
      if (!values.allocated()) {
        read = Status(Code::out_of_memory, "no memory to read " + box_text(part));
        return;
      }
      read = put.source->read(part, values.bytes());
      if (read.ok()) {
        range.merge(value_range(definition.dtype, values.bytes(), definition.options.fill_value));
      }
    });
    if (!read.ok()) return read.within("field \"" + definition.path + "\"");
  }
  return Status();
}

/// A range that only a fill value explains makes a rel bound meaningless: every real value would be
/// free to become any other. The caller may mean it, so it is said and not refused.
void warn_of_unnamed_fill(const FieldState& field, const LogCallback& log) {
  constexpr double kLeastFill = 1e19;  // the customary ones: 1e20, 1e30, 9.97e36, -1e34
  const double least = field.value_least;
  const double greatest = field.value_greatest;
  if (!log || !field.definition.options.bound.needs_range()) return;
  if (std::abs(least) < kLeastFill && std::abs(greatest) < kLeastFill) return;
  const double suspect = std::abs(least) > std::abs(greatest) ? least : greatest;
  std::ostringstream text;
  text << "field \"" << field.definition.path << "\": values reach " << suspect << ", so the bound "
       << error_bound_text(field.definition.options.bound) << " comes to " << field.absolute_bound
       << "; if that is a fill value, name it with fill=" << suspect;
  log(text.str());
}

Status prepare_codec(FieldState& field, const std::string& plugin_path, const LogCallback& log) {
  warn_of_unnamed_fill(field, log);
  CodecRequest request = codec_request(field);
  Result<std::unique_ptr<Codec>> codec = field.book.counter != nullptr
                                             ? trz::make_counting_codec(request, field.book.counter)
                                             : make_codec(request, plugin_path);
  const bool constant = field.definition.options.bound.needs_range() && field.absolute_bound == 0;
  if (!codec.ok() && constant && codec.status().code() == Code::unsupported) {
    if (log) {
      log("field \"" + field.definition.path + "\": all values are equal, so the bound " +
          error_bound_text(field.definition.options.bound) + " is 0; stored losslessly by deflate");
    }
    request.name = "deflate";
    request.settings.clear();
    codec = make_codec(request, plugin_path);
  }
  if (!codec.ok()) return codec.status().within("field \"" + field.definition.path + "\"");
  field.codec = std::move(*codec);
  // Lossy by its own settings (zfp,rate=8) and no bound asked: nothing is promised of finite
  // values.
  const double promised = field.definition.options.bound.lossless()
                              ? std::numeric_limits<double>::infinity()
                              : request.absolute_bound;
  field.absolute_bound = field.codec->lossy() ? promised : 0;
  field.pointwise_bound = field.codec->lossy() ? request.pointwise_bound : 0;
  switch (field.definition.options.verify) {
    case Verify::on: field.verify = true; break;
    case Verify::off: field.verify = false; break;
    case Verify::automatic:
      field.verify = field.codec->lossy() && !field.codec->keeps_bound_by_construction();
      break;
  }
  return Status();
}

/// What the field's dataset will be, as each rank came to it.
std::string decision_text(const FieldState& field) {
  std::string text = "layout " + std::string(field.layout->name()) + ", chunks " +
                     shape_text(field.chunk_shape) + ", codec " + std::string(field.codec->name());
  for (const FilterSpec& filter : field.codec->filters()) {
    // Client data may be thousands of words: shared books.
    std::uint64_t digest = filter.flags;
    for (const std::uint32_t word : filter.final_client_data)
      digest = digest * 0x100000001B3U + word;
    text += ", filter " + std::to_string(filter.filter_id) + " " + std::to_string(digest);
  }
  return text + ", bound " + error_bound_text({BoundMode::abs, field.absolute_bound}) + " " +
         error_bound_text({BoundMode::pw_rel, field.pointwise_bound}) +
         (field.verify ? ", verified" : "");
}

}  // namespace

/// Scalars and empty fields have nothing to compress: they are stored contiguously, as HDF5 wants.
/// What can grow must be chunked even while it is empty.
bool stored_plainly(const FieldDefinition& definition) {
  if (definition.options.over_time || definition.grows()) return false;
  return definition.shape.empty() || n_elements(definition.shape) == 0;
}

Result<std::unique_ptr<Codec>> make_codec(const CodecRequest& request,
                                          const std::string& plugin_path) {
  for (const CodecEntry& entry : codec_registry()) {
    if (entry.name == request.name) return make_builtin_codec(request);
  }
  if (is_plugin_codec(request.name)) return make_plugin_codec(request, plugin_path);
  std::string known;
  for (const CodecEntry& entry : codec_registry()) known += std::string(entry.name) + ", ";
  return Status(Code::invalid_argument, "codec \"" + request.name +
                                            "\" is unknown; there are: " + known +
                                            "sz3, zfp, zstd, and id=NUMBER for any plug-in");
}

CodecRequest codec_request(const FieldState& field) {
  const FieldOptions& options = field.definition.options;
  CodecRequest request{options.codec, options.codec_settings, field.definition.dtype,
                       field.dataset_chunk_shape(), field.absolute_bound};
  request.fill_value = options.fill_value;
  request.pointwise_bound = field.pointwise_bound;
  const bool floating = is_floating(field.definition.dtype);
  const std::array<std::string_view, 4> lossy = {"sz3", "zfp", "sperr", "portable"};
  const bool lossy_codec = std::find(lossy.begin(), lossy.end(), request.name) != lossy.end();
  if (stored_plainly(field.definition)) {
    request.name = "none";
    request.settings.clear();
  } else if (!floating && !options.codec_given_for_field && lossy_codec) {
    request.name = "deflate";  // a lossy default is meant for measurements, not for counts and ids
    request.settings.clear();
  }
  if (!floating && !options.codec_given_for_field) {
    request.absolute_bound = request.pointwise_bound = 0;
  }
  return request;
}

Shape FieldState::dataset_chunk_shape() const {
  Shape shape = chunk_shape;
  if (definition.options.over_time) shape.insert(shape.begin(), 1);
  return shape;
}

Shape FieldState::dataset_shape(std::uint64_t n) const {
  Shape shape = definition.shape;
  if (definition.options.over_time) shape.insert(shape.begin(), n);
  return shape;
}

Status check_definition(const FieldDefinition& definition) {
  const auto& [path, dtype, shape, options, extendable, more_unlimited] = definition;
  const auto bad = [&](const std::string& why) {
    return bad_field(definition, Code::invalid_argument, why);
  };
  if (path.size() < 2 || path.front() != '/' || path.back() == '/' ||
      path.find("//") != std::string::npos || path.find('\0') != std::string::npos) {
    return bad("the path must be absolute and name a dataset, such as \"/group/name\"");
  }
  if (shape.size() + (options.over_time ? 1 : 0) > max_rank) return bad("too many dimensions");
  if (n_elements(shape) > std::numeric_limits<std::uint64_t>::max() / 16) {
    return bad("shape " + shape_text(shape) + " is larger than any file");
  }
  if (!options.bound.lossless() && !(options.bound.value > 0)) return bad("the bound must be > 0");
  if (options.chunk_shape &&
      (options.chunk_shape->size() != shape.size() || n_elements(*options.chunk_shape) == 0)) {
    return bad("chunk shape " + shape_text(*options.chunk_shape) + " does not fit shape " +
               shape_text(shape));
  }
  Result<std::unique_ptr<Layout>> layout = make_layout(options.layout, options);
  if (!layout.ok()) return layout.status().within("field \"" + path + "\"");
  if ((*layout)->contiguous()) {
    if (options.codec != "none") {
      return bad("layout contiguous stores uncompressed values; it needs codec none, not " +
                 options.codec);
    }
    if (options.over_time || definition.grows()) return bad("a growing field cannot be contiguous");
    if (options.allow_holes) return bad("a contiguous field cannot have holes");
  }
  if (options.over_time && n_elements(shape) == 0)
    return bad("an empty field cannot grow over time");
  if (definition.grows() && (shape.empty() || options.over_time)) {
    return bad("only a field with dimensions of its own can be extendable");
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
      if (box.empty()) return Status();  // nothing is put, wherever it is
      return bad_field(
          definition, Code::bad_coverage,
          "box " + box_text(box) + " leaves the shape " + shape_text(definition.shape));
    }
  }
  return Status();
}

std::string definition_text(const FieldDefinition& definition) {
  const auto& [path, dtype, shape, options, extendable, more_unlimited] = definition;
  // One line, so that an error shows the whole definition.
  std::string of_options = agreed_text(options);
  std::replace(of_options.begin(), of_options.end(), '\n', ' ');
  return "field \"" + path + "\" " + std::string(dtype_name(dtype)) + " " + shape_text(shape) +
         " " + of_options + "unlimited=" + std::to_string(int{extendable}) + "," +
         std::to_string(more_unlimited) + "\n";
}

Status choose_chunk_shapes(Comm& comm, std::vector<FieldState>& fields) {
  std::vector<std::uint64_t> cuts;
  std::vector<std::uint64_t> maxima;  // per field: whether it was put, then the largest box
  for (const FieldState& field : fields) {
    if (!field.is_open()) continue;
    const std::size_t n = field.definition.shape.size();
    cuts.resize(cuts.size() + n, 0);
    maxima.push_back(field.put_called ? 1 : 0);
    maxima.resize(maxima.size() + n, 0);
    for (const PutRecord& put : field.puts) {
      add_cuts(field.definition.shape, put.box, cuts.data() + cuts.size() - n,
               maxima.data() + maxima.size() - n);
    }
  }
  comm.allreduce(std::span<std::uint64_t>(cuts), Reduction::gcd);
  comm.allreduce(std::span<std::uint64_t>(maxima), Reduction::max);

  auto cut = cuts.begin();
  auto maximum = maxima.begin();
  for (FieldState& field : fields) {
    if (!field.is_open()) continue;
    const auto n = static_cast<std::ptrdiff_t>(field.definition.shape.size());
    field.active = field.is_new() || *maximum > 0;
    ++maximum;
    const DecompositionFacts facts{Shape(cut, cut + n), Shape(maximum, maximum + n)};
    cut += n;
    maximum += n;
    if (field.active && field.is_new() && !field.continued) {
      TAILRACE_TRY(set_chunk_shape(field, facts));
    }
  }
  return Status();
}

Status resolve_bounds(Comm& comm, std::vector<FieldState>& fields) {
  std::vector<double> bounds;  // least and minus greatest, so that one minimum finds both
  Status scanned;
  for (const FieldState& field : fields) {
    if (!field.is_new() || field.continued) continue;
    if (!field.definition.options.bound.needs_range()) continue;
    ValueRange range;
    if (Status status = scan_values(field, range); !status.ok() && scanned.ok()) scanned = status;
    bounds.push_back(range.least);
    bounds.push_back(-range.greatest);
  }
  comm.allreduce(std::span<double>(bounds), Reduction::min);
  auto entry = bounds.begin();
  for (FieldState& field : fields) {
    if (!field.is_new() || field.continued) continue;
    const ErrorBound& bound = field.definition.options.bound;
    if (bound.needs_range()) {
      field.value_least = *entry++;
      field.value_greatest = -*entry++;
      if (field.value_greatest < field.value_least) field.value_least = field.value_greatest = 0;
    }
    field.absolute_bound = absolute_bound(bound, field.value_least, field.value_greatest);
    field.pointwise_bound = pointwise_bound(bound);
  }
  return scanned;
}

Status prepare_codecs(Comm& comm, std::vector<FieldState>& fields, const std::string& plugin_path,
                      const LogCallback& log) {
  for (FieldState& field : fields) {
    if (!field.active || !field.is_new()) continue;
    const bool plain = stored_plainly(field.definition);
    Result<std::unique_ptr<Layout>> layout = make_layout(
        plain ? "contiguous" : field.definition.options.layout, field.definition.options);
    if (!layout.ok()) return layout.status().within("field \"" + field.definition.path + "\"");
    field.layout = std::move(*layout);
    TAILRACE_TRY(prepare_codec(field, plugin_path, log));
    comm.decide("field \"" + field.definition.path + "\"", decision_text(field));
  }
  return Status();
}

void reserve_by_shape(Comm& comm, Tail& tail, std::uint64_t alignment_bytes,
                      std::span<FieldState* const> active) {
  constexpr std::uint64_t kElementAlignment = 8;  // so that a reader may map the values in place
  std::uint64_t n_bytes = 0;
  for (FieldState* field : active) {
    if (field->layout->base_from() != BaseFrom::shape) continue;
    const ChunkGrid grid = field->grid();
    const std::uint64_t chunk_bytes =
        n_elements(grid.chunk_shape) * dtype_bytes(field->definition.dtype);
    // A contiguous run ends with the field; all other slots have room for a whole chunk.
    const std::uint64_t field_bytes =
        field->layout->contiguous()
            ? field->raw_bytes()
            : grid.n_chunks() * field->layout->capacity({0, chunk_bytes, 0, 0});
    field->base_address = n_bytes;
    n_bytes += (field_bytes + kElementAlignment - 1) / kElementAlignment * kElementAlignment;
  }
  if (n_bytes == 0) return;
  const std::uint64_t alignment = std::max(alignment_bytes, kElementAlignment);
  std::uint64_t base = 0;
  if (comm.is_root()) base = (tail.claim(n_bytes + alignment - 1) + alignment - 1) / alignment;
  comm.allreduce(std::span<std::uint64_t>(&base, 1), Reduction::max);
  for (FieldState* field : active) {
    if (field->layout->base_from() == BaseFrom::shape) field->base_address += base * alignment;
  }
}

}  // namespace tailrace
