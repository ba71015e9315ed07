// Opens inputs, matches globs.

#include "verbs/input_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/codec_registry.hpp"
#include "core/encoding_notes.hpp"
#include "core/glob_options.hpp"
#include "core/option_table.hpp"
#include "core/utf8.hpp"

namespace tailrace::verbs {
namespace {

Status unknown_pattern(std::string_view option, const std::string& text,
                       std::span<const StoredDataset> fields) {
  return Status(Code::invalid_argument, fmt::format("{} '{}' matches no field; the fields are: {}",
                                                    option, text, field_list_text(fields)));
}

struct QuantizedName {
  const char* name;
  Quantization::Kept kept;
  const char* algorithm;  ///< Empty: the quantization variable states it.
};

using Kept = Quantization::Kept;

/// Attribute names; CF's are first, since they may coexist with the library's and contain more. The
/// prefix '_' is the netCDF library's. The prefix "Quantize" is NCO's, as is
/// number_of_significant_digits in its first versions. netCDF4-python and NCO both use
/// least_significant_digit.
constexpr QuantizedName kQuantizedNames[] = {
    {"quantization_nsb", Kept::bits, ""},
    {"quantization_nsd", Kept::digits, ""},
    {"_QuantizeBitRoundNumberOfSignificantBits", Kept::bits, "bitround"},
    {"_QuantizeBitGroomNumberOfSignificantDigits", Kept::digits, "bitgroom"},
    {"_QuantizeGranularBitRoundNumberOfSignificantDigits", Kept::digits, "granular_bitround"},
    {"QuantizeBitRoundNumberOfSignificantBits", Kept::bits, "bitround"},
    {"QuantizeBitGroomNumberOfSignificantDigits", Kept::digits, "bitgroom"},
    {"QuantizeGranularBitRoundNumberOfSignificantDigits", Kept::digits, "granular_bitround"},
    {"QuantizeDigitRoundNumberOfSignificantDigits", Kept::digits, "digitround"},
    {"QuantizeBitGroomRoundNumberOfSignificantDigits", Kept::digits, "bitgroomround"},
    {"QuantizeBitSetNumberOfSignificantDigits", Kept::digits, "bitset"},
    {"QuantizeHalfShaveNumberOfSignificantDigits", Kept::digits, "halfshave"},
    {"number_of_significant_digits", Kept::digits, ""},
    {"least_significant_digit", Kept::decimals, ""},
};

/// True if a variable can have `n` bits, digits or decimals.
bool can_be_kept(Kept kept, double n) {
  if (n != std::floor(n)) return false;
  if (kept == Kept::decimals) return std::fabs(n) <= 300;
  return n >= 1 && n <= (kept == Kept::bits ? 52 : 15);
}

/// Read an attribute of the variable that `field` names as its quantization variable. That variable
/// is in the field's group or in a group above.
std::string of_quantization_variable(InputFile& input, const StoredDataset& field,
                                     const char* attribute) {
  const std::string name = input.text_attribute(field.path, "quantization");
  if (name.empty() || name.find('/') != std::string::npos) return "";
  for (std::string group = field.path; !group.empty();) {
    group.resize(group.rfind('/'));
    const std::string found = input.text_attribute(group + "/" + name, attribute);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string Quantization::text() const {
  std::string what;
  if (kept == Kept::bits) what = fmt::format("{} bits of the mantissa", n_kept);
  if (kept == Kept::digits) what = fmt::format("{} significant digits", n_kept);
  if (kept == Kept::decimals) what = fmt::format("{} digits after the decimal point", n_kept);
  if (!algorithm.empty()) what = algorithm + ", " + what;
  return implementation.empty() ? what : fmt::format("{} ({})", what, implementation);
}

double Quantization::coarser_from(double absolute_bound) const {
  if (!(absolute_bound > 0)) return 0;
  if (kept == Kept::decimals) {
    return 0.5 * std::pow(10, -n_kept) > absolute_bound ? 0
                                                        : std::numeric_limits<double>::infinity();
  }
  if (kept == Kept::bits) {
    // From 2^e on, values are multiples of 2^(e - bits), and were moved by at most half of that.
    int exponent = 0;
    std::frexp(absolute_bound, &exponent);  // 2^exponent is the smallest power of two above it.
    return std::ldexp(1, exponent + 1 + n_kept);
  }
  // From 10^d on, half a unit of the last preserved digit is 0.5 10^(d + 1 - digits).
  const double decade = std::floor(std::log10(2 * absolute_bound)) + n_kept;
  return std::pow(10, decade);
}

std::optional<Quantization> find_quantization(InputFile& input, const StoredDataset& field) {
  if (!field.dtype || !is_floating(*field.dtype)) return std::nullopt;
  std::array<const char*, std::size(kQuantizedNames)> names{};
  std::ranges::transform(kQuantizedNames, names.begin(), &QuantizedName::name);
  const std::optional<NamedNumber> number = input.number_attribute(field.path, names);
  if (!number) return std::nullopt;
  const auto known = std::ranges::find_if(
      kQuantizedNames, [&](const QuantizedName& one) { return number->name == one.name; });
  if (!can_be_kept(known->kept, number->value)) return std::nullopt;
  Quantization found{known->algorithm, "", known->kept, static_cast<int>(number->value)};
  const std::string stated = of_quantization_variable(input, field, "algorithm");
  if (!stated.empty()) found.algorithm = stated;
  found.implementation = of_quantization_variable(input, field, "implementation");
  return found;
}

bool states_rounding(const std::string& name, double value) {
  const auto known = std::ranges::find_if(
      kQuantizedNames, [&](const QuantizedName& one) { return name == one.name; });
  return known != std::end(kQuantizedNames) && can_be_kept(known->kept, value);
}

FieldLosses find_losses(InputFile& input, const StoredDataset& field) {
  FieldLosses found;
  if (!field.dtype || !is_floating(*field.dtype)) return found;
  const auto number = [&](const char* name) -> std::optional<double> {
    const auto attribute = input.number_attribute(field.path, {&name, 1});
    return attribute ? std::optional(attribute->value) : std::nullopt;
  };
  const auto filter = std::ranges::find_if(
      field.storage.filters, [](const FilterSpec& one) { return always_lossy(one.filter_id); });
  const auto text = [&](const char* name) { return input.text_attribute(field.path, name); };
  const LossFacts facts = loss_facts(text, number, filter != field.storage.filters.end());
  found.losses = losses_of(facts);
  if (!found.any()) {
    const std::optional<Quantization> quantization = find_quantization(input, field);
    if (!quantization) return found;
    found.losses = {ErrorBound()};
    found.stated_by = "attributes of quantization: " + quantization->text();
  } else if (!facts.recorded.empty()) {
    found.stated_by = std::string("attribute ") + kLossesAttribute;
  } else if (facts.mode.empty() || facts.mode == kUnknownWord) {
    found.stated_by = fmt::format("filter {} ({})", filter->name, filter->filter_id);
  } else {
    found.stated_by = std::string("attribute ") + kBoundModeAttribute;
  }
  return found;
}

std::string quantization_doubt(const std::string& path, const Quantization& quantization,
                               double absolute_bound, double pointwise_bound,
                               std::optional<double> largest) {
  double from = std::numeric_limits<double>::infinity();
  double bound = absolute_bound;
  if (pointwise_bound > 0) {
    bound = pointwise_bound;
    const double moved = quantization.kept == Kept::bits
                             ? std::ldexp(1, -quantization.n_kept - 1)
                             : 0.5 * std::pow(10, 1 - quantization.n_kept);
    if (quantization.kept != Kept::decimals && moved > bound) from = 0;
  } else if (absolute_bound > 0) {
    from = quantization.coarser_from(absolute_bound);
  }
  if (std::isinf(from) || (largest && *largest < from)) return "";
  const std::string values =
      from > 0 ? fmt::format("values of {:.6g} and more in magnitude", from) : "values";
  return fmt::format(
      "field \"{}\": {} may already be rounded by more than the bound {:.4g}{} ({}); a bound this "
      "small keeps digits without meaning",
      path, values, bound, pointwise_bound > 0 ? " of each value" : "", quantization.text());
}

std::string other_datasets_text(std::span<const OtherDataset> others) {
  constexpr std::size_t most_named = 8;
  std::vector<std::string> names;
  for (const OtherDataset& other : others) {
    names.push_back(fmt::format("{} ({})", other.path, other.type));
  }
  return first_names_text(names, most_named);
}

Result<RawFormat> parse_raw_format(const std::string& text, const char* option) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return Status(Code::invalid_argument,
                  fmt::format("{} {}: expected TYPE:SHAPE such as f32:512x512x512", option, text));
  }
  const std::string where = fmt::format("{} {}", option, text);
  TAILRACE_TAKE(DType dtype, parse_dtype(text.substr(0, colon)).within(where));
  TAILRACE_TAKE(Shape shape, parse_shape(text.substr(colon + 1)).within(where));
  return RawFormat{dtype, shape};
}

Result<std::unique_ptr<InputFile>> open_input(const std::string& path,
                                              const std::string& raw_format,
                                              const ReadOptions& options) {
  if (raw_format.empty()) return open_input_file(path, {}, options);
  TAILRACE_TAKE(RawFormat raw, parse_raw_format(raw_format));
  return open_input_file(path, raw, options);
}

namespace {

bool is_bound(const KeyValue& entry) { return entry.first == "bound" && entry.second != "none"; }

/// True if a pattern requests loss: a bound, or a codec that is designed to change values.
bool requests_loss(const FieldPattern& pattern) {
  FieldOptions options;
  for (const KeyValue& entry : pattern.options) (void)apply_field_option(entry, options);
  return may_lose(options, true, false) || codec_entry(options.codec).loss == Loss::by_purpose;
}

/// True for options of how values are lost: codecs and their settings, bounds and guards.
bool is_of_loss(const KeyValue& entry) {
  const std::string& key = entry.first;
  return is_bound(entry) || key == "codec" || key == "guard" || key == "allow-wide-bound" ||
         check_codec_setting(key, "").ok();
}

}  // namespace

OwnOptions own_options(const StoredDataset& field, std::span<const FieldPattern> patterns,
                       bool exact) {
  OwnOptions own;
  const bool bound_by_name = std::ranges::any_of(patterns, [&](const FieldPattern& pattern) {
    return names_alone(pattern.glob, field.path) && std::ranges::any_of(pattern.options, is_bound);
  });
  for (const FieldPattern& pattern : patterns) {
    if (!glob_matches(pattern.glob, field.path)) continue;
    const bool spares = exact && !names_alone(pattern.glob, field.path) && requests_loss(pattern);
    for (const KeyValue& entry : pattern.options) {
      if (spares && (bound_by_name ? is_bound(entry) : is_of_loss(entry))) continue;
      own.entries.push_back(entry);
    }
    own.spared = own.spared || (spares && !bound_by_name);
  }
  return own;
}

Result<FieldPattern> parse_field_pattern(const std::string& text) {
  const std::size_t colon = find_unescaped(text, ":");
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    return Status(Code::invalid_argument,
                  fmt::format("--field '{}': expected 'GLOB:key=value,...', for example "
                              "'temperature:codec=zfp,bound=abs=1e3'",
                              text));
  }
  FieldPattern pattern;
  pattern.glob = text.substr(0, colon);
  const std::string where = fmt::format("--field '{}'", text);
  TAILRACE_TAKE(pattern.options, split_key_values(text.substr(colon + 1)).within(where));
  // Check values here, not only on use: the message can quote the argument.
  FieldOptions trial;
  for (const KeyValue& entry : pattern.options) {
    TAILRACE_TRY(apply_field_option(entry, trial).within(where));
  }
  return pattern;
}

std::string field_list_text(std::span<const StoredDataset> fields) {
  constexpr std::size_t most = 20;
  return fields.empty() ? "(none)" : first_names_text(fields, most, &StoredDataset::path);
}

Status check_patterns_match(std::span<const std::string> globs, std::string_view option,
                            std::span<const StoredDataset> fields) {
  for (const std::string& glob : globs) {
    const bool found = std::ranges::any_of(
        fields, [&](const StoredDataset& field) { return glob_matches(glob, field.path); });
    if (!found) return unknown_pattern(option, glob, fields);
  }
  return Status();
}

std::vector<StoredDataset> with_others(std::vector<StoredDataset> fields,
                                       std::span<const OtherDataset> others) {
  for (const OtherDataset& other : others) fields.emplace_back().path = other.path;
  return fields;
}

bool matches_any(std::string_view path, std::span<const std::string> globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return glob_matches(glob, path); });
}

bool FieldSelection::holds(std::string_view path) const {
  return !matches_any(path, exclude) && (only.empty() || matches_any(path, only));
}

Status FieldSelection::check(std::span<const StoredDataset> fields) const {
  TAILRACE_TRY(check_patterns_match(only, "--only", fields));
  return check_patterns_match(exclude, "--exclude", fields);
}

}  // namespace tailrace::verbs
