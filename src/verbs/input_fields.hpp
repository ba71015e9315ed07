// Inputs of the verbs: how a user names fields in them (globs, and options for the fields that
// match), and which losses their values have already.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/losses.hpp"
#include "core/options.hpp"
#include "read/read.hpp"
#include "trz/base/status.hpp"
#include "verbs/report_fields.hpp"

namespace tailrace {

template <class Visit>
void report_fields(const OtherDataset& dataset, Visit&& visit) {
  visit("path", dataset.path);
  visit("type", dataset.type);
  visit("shape", dataset.shape);
}

}  // namespace tailrace

namespace tailrace::verbs {

/// Parse "f32:512x512x512". @error invalid_argument  begins with the option's name.
Result<RawFormat> parse_raw_format(const std::string& text, const char* option = "--raw");

/// Open an input. An empty `raw_format` means that the file describes itself. Programs that have
/// registered the filters trz and xor (hdf5_filter) read their chunks without plug-ins.
Result<std::unique_ptr<InputFile>> open_input(const std::string& path,
                                              const std::string& raw_format,
                                              const ReadOptions& options = {});

bool matches_any(std::string_view path, std::span<const std::string> globs);

/// Check the patterns. The error names every pattern that matches no field, and lists the fields.
Status check_patterns_match(std::span<const std::string> globs, std::string_view option,
                            std::span<const StoredDataset> fields);

/// Objects that globs can name: fields, and datasets of other types (only their paths are known).
std::vector<StoredDataset> with_others(std::vector<StoredDataset> fields,
                                       std::span<const OtherDataset> others);

/// Fields that a verb processes.
struct FieldSelection {
  std::vector<std::string> only;     ///< Globs; empty: all fields.
  std::vector<std::string> exclude;  ///< Globs of fields to leave out.

  bool holds(std::string_view path) const;
  /// @error invalid_argument  a glob that matches nothing.
  Status check(std::span<const StoredDataset> fields) const;
};

/// A --field argument in two halves: the pattern and the options.
struct FieldPattern {
  std::string glob;
  std::vector<KeyValue> options;
};
/// Parse a --field argument. @error invalid_argument  no colon, an empty half, or an invalid
/// option.
Result<FieldPattern> parse_field_pattern(const std::string& text);

/// Options that the patterns set for one field.
struct OwnOptions {
  std::vector<KeyValue> entries;  ///< Later ones override earlier ones.
  bool spared = false;            ///< Loss that a pattern with wildcards requests is left out.
};
/// @param exact  the field stays exact unless a pattern without wildcards names it. Patterns with
/// wildcards then give it no bound; nor, unless a named pattern gives it a bound, their codec.
OwnOptions own_options(const StoredDataset& field, std::span<const FieldPattern> patterns,
                       bool exact);

/// Earlier rounding of a variable's values, as described by its attributes: CF 1.12, section 8.4,
/// or conventions of the netCDF library, NCO or netCDF4-python.
struct Quantization {
  enum class Kept : std::uint8_t {
    bits,     ///< Bits of the mantissa, without the leading one.
    digits,   ///< Significant decimal digits.
    decimals  ///< Digits behind the decimal point; may be negative.
  };
  std::string algorithm;       ///< CF's name, such as "bitround"; empty: unknown.
  std::string implementation;  ///< Text from the file; empty: not stated.
  Kept kept = Kept::bits;
  int n_kept = 0;

  /// Text such as "bitround, 9 bits of the mantissa (libnetcdf version 4.9.2)".
  std::string text() const;
  /// Magnitude from which on the rounding may have moved values by more than an absolute bound; 0:
  /// all, infinite: none. Digits count as the algorithms guarantee them; most preserve a few more
  /// bits.
  double coarser_from(double absolute_bound) const;
};

/// Read the rounding that the field's attributes describe; nothing: none. Not collective.
std::optional<Quantization> find_quantization(InputFile& input, const StoredDataset& field);

/// True if an attribute of this name and value states that a variable's values were rounded.
bool states_rounding(const std::string& name, double value);

/// Sentence for a bound that is finer than an earlier rounding; empty: it is not.
/// @param largest  largest magnitude in the field, if known.
/// @param pointwise_bound  > 0: this bound applies.
std::string quantization_doubt(const std::string& path, const Quantization& quantization,
                               double absolute_bound, double pointwise_bound,
                               std::optional<double> largest);

/// Losses of a field's values, and their source in the file.
struct FieldLosses {
  Losses losses;
  std::string stated_by;  ///< "attribute tailrace_absolute_bound"; empty: no losses.

  bool any() const { return !losses.empty(); }
};

/// Determine losses of a floating point field from Tailrace's attributes, quantization attributes
/// and filters. Not collective.
FieldLosses find_losses(InputFile& input, const StoredDataset& field);

template <class Visit>
void report_fields(const Quantization& quantization, Visit&& visit) {
  constexpr const char* units[] = {"bits", "digits", "decimals"};
  visit("algorithm", value_if(!quantization.algorithm.empty(), quantization.algorithm));
  visit("implementation",
        value_if(!quantization.implementation.empty(), quantization.implementation));
  visit("kept", quantization.n_kept);
  visit("unit", std::string(units[static_cast<std::size_t>(quantization.kept)]));
}

/// Text for the first datasets: "/a (complex of f64), /b (string of 8 bytes)".
std::string other_datasets_text(std::span<const OtherDataset> others);

/// Paths that a pattern could have meant: "a, b, c"; at most 20.
std::string field_list_text(std::span<const StoredDataset> fields);

}  // namespace tailrace::verbs
