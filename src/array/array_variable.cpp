// What a variable's definition and options come to.

#include "array/array_variable.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

#include "array/array_file.hpp"
#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/comm.hpp"
#include "core/option_table.hpp"
#include "describe/field_attributes.hpp"
#include "describe/input_bytes.hpp"
#include "field/box_codec.hpp"

namespace tailrace {

namespace {

bool has_wildcard(std::string_view pattern) {
  return pattern.find_first_of("*?") != std::string_view::npos;
}

/// The words of a blank-separated list in an attribute.
std::vector<std::string> words_of(const ModelAttribute& attribute) {
  std::string text;
  if (attribute.type == ModelType::text_char) {
    text.assign(reinterpret_cast<const char*>(attribute.values.data()), attribute.values.size());
  } else if (attribute.type == ModelType::text && !attribute.texts.empty()) {
    text = attribute.texts.front();
  }
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Take back what only measurements may lose.
void keep_exactly(FieldOptions& options) {
  options.bound = ErrorBound();
  options.bound_given = true;  // a target leaves it alone, too
  if (codec_entry(options.codec).loss != Loss::by_purpose) return;
  options.codec = exact_codec;
  options.codec_settings.clear();
}

bool is_float(ModelType type) { return type == ModelType::f32 || type == ModelType::f64; }

}  // namespace

double element_number(ModelType type, const std::vector<std::byte>& element) {
  if (type == ModelType::f32) {
    float value = 0;
    std::memcpy(&value, element.data(), sizeof value);
    return static_cast<double>(value);
  }
  double value = 0;
  std::memcpy(&value, element.data(), sizeof value);
  return value;
}

std::unique_ptr<Codec> share_codec(std::shared_ptr<const Codec> codec) {
  return std::make_unique<CodecOver>(std::move(codec));
}

std::optional<DType> array_dtype(ModelType type) {
  return type == ModelType::text_char ? DType::u8 : model_dtype(type);
}

std::vector<std::byte> fill_element(const ModelVariable& variable) {
  const std::size_t n_bytes = model_type_bytes(variable.type);
  if (variable.no_fill || n_bytes == 0)
    return std::vector<std::byte>(std::max<std::size_t>(n_bytes, 1));
  const FillValue fill(variable);
  return {fill.bytes().begin(), fill.bytes().end()};
}

std::vector<bool> growing_dimensions(const NetcdfModel& model, const ModelVariable& variable) {
  std::vector<bool> growing;
  for (const std::size_t d : variable.dimensions) {
    growing.push_back(model.dimensions[d].unlimited);
  }
  return growing;
}

CoordinateNames listed_coordinates(const NetcdfModel& model) {
  CoordinateNames names;
  for (const ModelVariable& variable : model.variables) {
    for (const char* const list : {"coordinates", "bounds"}) {
      const ModelAttribute* const attribute = variable.attribute(list);
      if (attribute == nullptr) continue;
      for (std::string& word : words_of(*attribute)) names.emplace(variable.group, std::move(word));
    }
  }
  return names;
}

bool is_coordinate(const NetcdfModel& model, const ModelVariable& variable,
                   const CoordinateNames& listed) {
  const std::vector<std::size_t>& dimensions = variable.dimensions;
  return (dimensions.size() == 1 && model.dimensions[dimensions[0]].name == variable.name) ||
         listed.contains({variable.group, variable.name});
}

Result<FieldOptions> options_by_glob(const std::string& path, std::size_t n_dimensions, bool exact,
                                     const ArrayFileOptions& options) {
  FieldOptions made = options.file.field_defaults;
  // A shape for many variables is for those that have its dimensions.
  const auto fits = [&] { return !made.chunk_shape || made.chunk_shape->size() == n_dimensions; };
  if (!fits()) made.chunk_shape.reset();
  if (exact) keep_exactly(made);
  for (const auto& [pattern, text] : options.variable_options) {
    if (!glob_matches(pattern, path)) continue;
    const bool for_field = made.codec_given_for_field;
    const std::optional<Shape> chunk_shape = made.chunk_shape;
    TAILRACE_TRY(apply_field_options(text, made).within("options of \"" + pattern + "\""));
    if (!has_wildcard(pattern)) continue;
    made.codec_given_for_field = for_field;
    if (!fits()) made.chunk_shape = chunk_shape;
    if (exact) keep_exactly(made);
  }
  return made;
}

namespace {

/// One element of a type as a fill value of another, where that has it.
std::optional<double> fill_from(ModelType type, std::span<const std::byte> element, DType dtype) {
  const std::optional<DType> from = model_dtype(type);
  if (!from || element.size() < dtype_bytes(*from)) return std::nullopt;
  return visit_dtype(*from, [&]<class T>() {
    using Widest =
        std::conditional_t<std::is_floating_point_v<T>, double,
                           std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
    T value{};
    std::memcpy(&value, element.data(), sizeof value);
    return fill_for_dtype(static_cast<Widest>(value), dtype);
  });
}

}  // namespace

std::optional<double> kept_value(const ModelVariable& variable) {
  const std::optional<DType> dtype = array_dtype(variable.type);
  if (!dtype || variable.type == ModelType::text_char) return std::nullopt;
  const ModelAttribute* fill = variable.attribute("_FillValue");
  const ModelAttribute* said = fill != nullptr ? fill : variable.attribute("missing_value");
  if (said != nullptr && said->n_values == 1) {
    const std::optional<double> kept = fill_from(said->type, said->values, *dtype);
    if (kept) return kept;
  }
  if (variable.no_fill) return std::nullopt;
  return fill_from(variable.type, fill_element(variable), *dtype);
}

Status adapt_to_parts(const std::string& path, FieldOptions& options) {
  if (options.over_time) {
    return Status(Code::invalid_argument, "variable \"" + path +
                                              "\": option over-time is for fields; give it an "
                                              "unlimited dimension");
  }
  options.allow_holes = false;  // what nobody puts is filled in any case
  std::erase_if(options.codec_settings, [](const KeyValue& setting) {
    return setting.first == "book" && setting.second == "auto";  // learnt from steps
  });
  options.fill_value.reset();
  return Status();
}

Result<FieldOptions> variable_options(const NetcdfModel& model, std::size_t variable,
                                      const CoordinateNames& listed,
                                      const ArrayFileOptions& options,
                                      const std::vector<std::string>& own_options) {
  const ModelVariable& it = model.variables[variable];
  const std::string path = model.path_of(it);
  const bool exact = !is_float(it.type) || is_coordinate(model, it, listed);
  TAILRACE_TAKE(FieldOptions made, options_by_glob(path, it.dimensions.size(), exact, options));
  for (const std::string& text : own_options) {
    TAILRACE_TRY(apply_field_options(text, made).within("variable \"" + path + "\""));
  }
  if (it.type == ModelType::text_char && !made.bound.lossless()) {
    return Status(Code::unsupported,
                  "variable \"" + path + "\" holds text, which can only be kept exactly");
  }
  TAILRACE_TRY(adapt_to_parts(path, made));
  if (made.drop_covered) {
    return Status(Code::unsupported, "variable \"" + path +
                                         "\": covered=drop is for levels of plotfiles, of HDF5 "
                                         "programs and repack");
  }
  // Where nothing is lost, integers have no use for it.
  if (is_float(it.type) || !made.bound.lossless()) made.fill_value = kept_value(it);
  return made;
}

namespace {

class ExistingCodec final : public CodecOver {
 public:
  ExistingCodec(std::unique_ptr<Codec> stored, std::size_t swapped_bytes)
      : CodecOver(std::move(stored)), swapped_bytes_(swapped_bytes) {}
  bool keeps_bound_by_construction() const override { return !lossy(); }
  Result<EncodedBytes> encode(Buffer values) const override {
    swap_elements(values.bytes(), swapped_bytes_);
    return CodecOver::encode(std::move(values));
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    Result<Buffer> values = CodecOver::decode(std::move(encoded));
    if (values.ok()) swap_elements(values->bytes(), swapped_bytes_);
    return values;
  }

 private:
  std::size_t swapped_bytes_;
};

}  // namespace

std::unique_ptr<Codec> existing_codec(std::unique_ptr<Codec> stored, std::size_t swapped_bytes) {
  return std::make_unique<ExistingCodec>(std::move(stored), swapped_bytes);
}

// --- The text of an options file, or of an environment variable.

namespace {

/// Where "GLOB: options" is divided: the first colon that no '=' comes before, which would make it
/// part of a value (cd=1:2:3).
std::size_t colon_of(std::string_view entry) {
  const std::size_t colon = entry.find(':');
  return colon < entry.find('=') ? colon : std::string_view::npos;
}

Status apply_component_entry(std::string_view entry, ArrayFileOptions& options) {
  TAILRACE_TAKE(const std::vector<ComponentBound> components,
                parse_component_bounds(entry, "component:NAME: bound=..."));
  for (const auto& [glob, bound] : components) {
    if (bound.mode == BoundMode::pw_rel) {
      return Status(Code::unsupported, "a component's bound is abs, rel, psnr or none, not pw_rel");
    }
    options.component_bounds.emplace_back(glob, bound);
  }
  return Status();
}

Status apply_entry(std::string_view entry, ArrayFileOptions& options) {
  if (entry.starts_with(component_entry)) {
    return apply_component_entry(entry.substr(component_entry.size()), options);
  }
  const std::size_t colon = colon_of(entry);
  if (colon != std::string_view::npos) {
    const std::string pattern(trimmed(entry.substr(0, colon)));
    const std::string text(trimmed(entry.substr(colon + 1)));
    if (pattern.empty()) return Status(Code::invalid_argument, "names no variable before the ':'");
    FieldOptions tried;  // a codec of its own, if any: what it is laid over is known later
    TAILRACE_TRY(apply_field_options(text, tried));
    options.variable_options.emplace_back(pattern, text);
    return Status();
  }
  TAILRACE_TAKE(std::vector<KeyValue> pairs, split_key_values(entry));
  for (const KeyValue& pair : pairs) {
    if (pair.first == "spill-folder") {
      options.spill_folder = pair.second;
    } else {
      TAILRACE_TRY(apply_file_option(pair, options.file));
    }
  }
  return Status();
}

}  // namespace

Status apply_array_file_options(std::string_view text, ArrayFileOptions& options) {
  ArrayFileOptions made = options;
  while (!text.empty()) {
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const std::size_t end = std::min(line.find(';'), line.size());
      const std::string_view entry = trimmed(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
      if (entry.empty()) continue;
      TAILRACE_TRY(apply_entry(entry, made).within("options \"" + std::string(entry) + "\""));
    }
  }
  options = std::move(made);
  return Status();
}

// --- The environment.

namespace {

Result<std::string> text_of_environment() {
  const char* variable = std::getenv("TAILRACE_OPTIONS");
  if (variable == nullptr) return std::string();
  std::string text = variable;
  const bool named = text.starts_with('@');
  if (named) text.erase(0, 1);
  // A path has no '=' as a rule, options have one always.
  if (!named && (text.empty() || text.find('=') != std::string::npos)) return text;
  std::ifstream file(text);
  if (!file) {
    return Status(Code::invalid_argument, "TAILRACE_OPTIONS: neither options nor a file: " + text);
  }
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

/// Whether there is the codec, and it takes these settings: tried on a chunk of measurements, so
/// that what is wrong for any variable fails before there is one. A bound may stand elsewhere.
Status check_codec(const std::string& of, FieldOptions made, const std::string& plugin_path) {
  if (!made.codec_given || made.codec == auto_codec) return Status();
  TAILRACE_TRY(adapt_to_parts(of, made));
  const CodecEntry& entry = codec_entry(made.codec);
  if (entry.loss == Loss::unknown) return Status();  // By its number: who asks for it knows.
  CodecRequest request{made.codec, made.codec_settings, DType::f32, {16, 16, 16}};
  request.pointwise_bound = pointwise_bound(made.bound);
  request.guards = made.guards;
  TAILRACE_TRY(check_array_guards(made));
  const bool bound = !made.bound.lossless();
  if (request.pointwise_bound == 0 && bound) request.absolute_bound = 1;
  const Status tried = make_codec(request, plugin_path).status();
  if (tried.ok() || bound || entry.loss != Loss::by_purpose) return tried;
  request.absolute_bound = 1;  // Which another entry may bring.
  return make_codec(request, plugin_path).status();
}

Status check_codecs(const ArrayFileOptions& options) {
  TAILRACE_TRY(check_codec("*", options.file.field_defaults, options.file.plugin_path));
  for (const auto& [pattern, text] : options.variable_options) {
    FieldOptions made;  // Without a codec of its own, its settings are for whichever others name.
    TAILRACE_TRY(apply_field_options(text, made).within(pattern));
    TAILRACE_TRY(check_codec(pattern, made, options.file.plugin_path).within(pattern));
  }
  return Status();
}

}  // namespace

Status read_array_options(Comm& comm, ArrayFileOptions& options, bool writes) {
  TAILRACE_TAKE(const Bytes heard, hear_rank_0(comm, [](ByteWriter& words) {
                  TAILRACE_TAKE(const std::string text, text_of_environment());
                  words.add_text(text);
                  return Status();
                }));
  ByteReader reader(heard);
  TAILRACE_TRY(apply_array_file_options(reader.take_text(), options).within("TAILRACE_OPTIONS"));
  if (writes) TAILRACE_TRY(check_codecs(options).within("TAILRACE_OPTIONS"));
  // Unless somebody has a better idea: what every reader has, at the level that costs least. On the
  // fields of docs/codecs.md level 1 is a third faster than level 4, at the same ratio.
  FieldOptions& defaults = options.file.field_defaults;
  if (!defaults.codec_given && !defaults.bound_given && defaults.codec_settings.empty()) {
    defaults.codec_settings = {{"level", "1"}};
  }
  return Status();
}

}  // namespace tailrace
