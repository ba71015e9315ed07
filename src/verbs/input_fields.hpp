// The inputs of the verbs, how a user names fields in them (globs, and options for those that
// match), and what they say of losses that are not ours.

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

/// Open an input; an empty `raw_format` means that the file says what it is. Chunks of trz and xor
/// are read without plug-ins by programs that have registered these filters (hdf5_filter).
Result<std::unique_ptr<InputFile>> open_input(const std::string& path,
                                              const std::string& raw_format,
                                              const ReadOptions& options = {});

bool matches_any(std::string_view path, std::span<const std::string> globs);

/// An error that names every pattern which matches no field and lists the fields.
Status check_patterns_match(std::span<const std::string> globs, std::string_view option,
                            std::span<const StoredDataset> fields);

/// What globs can name: fields, and datasets of other types (of which the path alone is known).
std::vector<StoredDataset> with_others(std::vector<StoredDataset> fields,
                                       std::span<const OtherDataset> others);

/// Which fields a verb is about.
struct FieldSelection {
  std::vector<std::string> only;     ///< Globs; empty: all.
  std::vector<std::string> exclude;  ///< Globs of the fields to leave out.

  bool holds(std::string_view path) const;
  /// @error invalid_argument  a glob that matches nothing.
  Status check(std::span<const StoredDataset> fields) const;
};

/// A --field argument in its two halves: what it matches, and what it sets.
struct FieldPattern {
  std::string glob;
  std::vector<KeyValue> options;
};
/// @error invalid_argument  no colon, an empty half, or an option that does not parse.
Result<FieldPattern> parse_field_pattern(const std::string& text);

/// The options that the patterns set for one field, in order: later ones win.
std::vector<KeyValue> own_options(const StoredDataset& field,
                                  std::span<const FieldPattern> patterns);

/// That a variable's values were rounded before, as its attributes say: CF 1.12, section 8.4, or
/// the netCDF library's, NCO's or netCDF4-python's own.
struct Quantization {
  enum class Kept : std::uint8_t {
    bits,     ///< Of the mantissa, without the leading one.
    digits,   ///< Significant decimal ones.
    decimals  ///< Behind the decimal point; may be negative.
  };
  std::string algorithm;       ///< CF's word, such as "bitround"; empty: nobody says.
  std::string implementation;  ///< As the file says; empty: it does not.
  Kept kept = Kept::bits;
  int n_kept = 0;

  /// "bitround, 9 bits of the mantissa (libnetcdf version 4.9.2)".
  std::string text() const;
  /// From which magnitude on values may have been moved by more than an absolute bound; 0: all,
  /// infinite: none. Digits as the algorithms promise them; most keep some bits more.
  double coarser_from(double absolute_bound) const;
};

/// What the field's attributes say; nothing: that they say nothing. Not collective.
std::optional<Quantization> find_quantization(InputFile& input, const StoredDataset& field);

/// True if an attribute of this name and value states that a variable's values were rounded.
bool states_rounding(const std::string& name, double value);

/// A sentence, where a bound keeps what an earlier rounding has made; else empty.
/// @param largest  magnitude in the field, if it is known.
/// @param pointwise_bound  > 0: that one counts.
std::string quantization_doubt(const std::string& path, const Quantization& quantization,
                               double absolute_bound, double pointwise_bound,
                               std::optional<double> largest);

/// Losses that a field's values have, and what in the file tells of them.
struct FieldLosses {
  Losses losses;
  std::string told_by;  ///< "attribute tailrace_absolute_bound"; empty: no losses.

  bool any() const { return !losses.empty(); }
};

/// What attributes of Tailrace, attributes of quantization and filters tell of a field of floating
/// point numbers. Not collective.
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

/// "/a (complex of f64), /b (string of 8 bytes)" of the first of them.
std::string other_datasets_text(std::span<const OtherDataset> others);

/// "a, b, c" of the paths that a pattern could have meant; at most 20.
std::string field_list_text(std::span<const StoredDataset> fields);

}  // namespace tailrace::verbs
