// Properties of a variable that follow from its definition and options.

#include "array/array_variable.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "array/array_options.hpp"
#include "core/byte_order.hpp"
#include "core/byte_stream.hpp"
#include "core/codec_registry.hpp"
#include "core/comm.hpp"
#include "core/glob_options.hpp"
#include "core/option_table.hpp"
#include "describe/field_attributes.hpp"
#include "describe/input_bytes.hpp"
#include "policy/door_rules.hpp"

namespace tailrace {

namespace {

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

namespace {

class SkippingCodec final : public CodecOver {
 public:
  using CodecOver::CodecOver;
  const Codec* keeping_decoded() const override { return nullptr; }
  bool lossy() const override { return false; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override { return n_bytes; }
  std::uint64_t working_bytes(std::uint64_t) const override { return 0; }
  Result<EncodedBytes> encode(Buffer values) const override {
    const std::uint32_t mask = (std::uint32_t{1} << filters().size()) - 1;
    return EncodedBytes{std::move(values), mask};
  }
};

}  // namespace

std::unique_ptr<Codec> skipping_codec(std::unique_ptr<Codec> codec) {
  return std::make_unique<SkippingCodec>(std::move(codec));
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

namespace {

/// Convert an element of one type to a fill value of another, if that type has the value.
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
  const ModelAttribute* stated = fill != nullptr ? fill : variable.attribute("missing_value");
  if (stated != nullptr && stated->n_values == 1) {
    const std::optional<double> kept = fill_from(stated->type, stated->values, *dtype);
    if (kept) return kept;
  }
  if (variable.no_fill) return std::nullopt;
  return fill_from(variable.type, fill_element(variable), *dtype);
}

Result<FieldOptions> variable_options(const NetcdfModel& model, std::size_t variable,
                                      ModelRoles& roles, const ArrayFileOptions& options,
                                      const std::vector<std::string>& own_options) {
  const ModelVariable& it = model.variables[variable];
  const std::string path = model.path_of(it);
  const auto options_if = [&](bool exact) -> Result<FieldOptions> {
    const std::size_t n_dimensions = it.dimensions.size();
    TAILRACE_TAKE(FieldOptions made, options_by_glob(path, n_dimensions, exact, options));
    for (const std::string& text : own_options) {
      TAILRACE_TRY(apply_field_options(text, made).within("variable \"" + path + "\""));
    }
    if (exact) TAILRACE_TRY(take_codec_for_own_bound(path, n_dimensions, options, made));
    return made;
  };
  const bool exact = !is_float(it.type) || roles.is_coordinate(variable);
  TAILRACE_TAKE(FieldOptions made, options_if(exact));
  const bool may_change = !exact && may_lose(made, true, options.file.has_target());
  if (may_change && made.by_role && !roles.reason_to_stay_exact(variable).empty()) {
    TAILRACE_TAKE(made, options_if(true));
  }
  // A bound without a codec lets Tailrace choose another codec than the default, so drop the
  // default codec's settings.
  const bool chosen = !made.codec_given && !made.bound.lossless();
  if (chosen && options.default_settings &&
      made.codec_settings == options.file.field_defaults.codec_settings) {
    made.codec_settings.clear();
  }
  if (it.type == ModelType::text_char && !made.bound.lossless()) {
    return Status(
        Code::unsupported,
        "variable \"" + path + "\" holds text, which can only be stored exactly; use bound=none");
  }
  TAILRACE_TRY(check_door(made, options.file.door).within("variable \"" + path + "\""));
  made.allow_holes = false;  // Elements that were never put are filled in any case.
  // Exactly stored integers do not need a fill value.
  if (is_float(it.type) || !made.bound.lossless()) made.fill_value = kept_value(it);
  // A codec receives the fill value as an f64, and would round a value that an f64 cannot
  // represent: netCDF's defaults of i64 and u64.
  const bool has_fill = !it.no_fill || it.attribute("_FillValue") || it.attribute("missing_value");
  if (!is_float(it.type) && has_fill && !made.fill_value) made.bound = ErrorBound();
  return made;
}

namespace {

class ExistingCodec final : public SwappingCodec {
 public:
  using SwappingCodec::SwappingCodec;
  bool keeps_bound_by_construction() const override { return !lossy(); }
};

}  // namespace

std::unique_ptr<Codec> existing_codec(std::unique_ptr<Codec> stored, std::size_t swapped_bytes) {
  return std::make_unique<ExistingCodec>(std::move(stored), swapped_bytes);
}

Status read_array_options(Comm& comm, ArrayFileOptions& options, bool writes, int* flags) {
  TAILRACE_TAKE(const Bytes received, broadcast_from_root(comm, [flags](ByteWriter& message) {
                  message.add(flags != nullptr ? *flags : 0);
                  TAILRACE_TAKE(const OptionsText given, options_text_of_environment());
                  message.add_text(given.text);
                  message.add_text(given.file);
                  return Status();
                }));
  ByteReader reader(received);
  const int of_root = reader.take<int>();
  if (flags != nullptr) *flags = of_root;
  const std::string text = reader.take_text();
  TAILRACE_TRY(apply_glob_options(text, options, reader.take_text()).within("TAILRACE_OPTIONS"));
  if (writes) {
    TAILRACE_TRY(check_door(options).within("TAILRACE_OPTIONS"));
    TAILRACE_TRY(check_codecs(options).within("TAILRACE_OPTIONS"));
  }
  // Without other choices, use what every reader supports at the lowest cost. On the fields of
  // lab/bench/results/README.md level 1 is a third faster than level 4, at the same ratio.
  FieldOptions& defaults = options.file.field_defaults;
  if (!defaults.codec_given && !defaults.bound_given && defaults.codec_settings.empty()) {
    defaults.codec_settings = {{"level", "1"}};
    options.default_settings = true;
  }
  return Status();
}

}  // namespace tailrace
