// RepackPlan: what becomes of each array of an input, decided from its description alone.
//
// A global bound asks for loss only where loss is meant: integers, coordinates (dimension scales,
// coordinate variables) and arrays under 4 KiB keep their exact values, by the lossless codec. A
// --field pattern that names such a field overrides this; loss asked of integers is an error.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "describe/input_file.hpp"
#include "core/options.hpp"
#include "core/status.hpp"
#include "write/write.hpp"

namespace tailrace::cli {

/// What the user asked of the fields.
struct FieldRequests {
  std::string codec;                   ///< "sz3,level=2"; empty: not given.
  std::string bound;                   ///< "rel=1e-3"; empty: not given.
  std::string lossless_codec;          ///< For what stays exact; empty: deflate.
  std::vector<std::string> per_field;  ///< "GLOB:key=value,..."; later ones win.
  std::vector<std::string> only;       ///< Globs of the fields to write; empty: all.
  std::vector<std::string> exclude;    ///< Globs of the fields to leave out.
};

/// One field of the output.
struct PlannedField {
  std::size_t input_index = 0;  ///< Into InputFile::fields().
  FieldDefinition definition;   ///< With its chunk shape.
  std::string exact_reason;     ///< Why a global bound was not applied: "integers", ...
  bool lossy_before = false;    ///< The input's values carry an earlier loss already.
};

/// A --field argument in its two halves: what it matches, and what it sets.
struct FieldPattern {
  std::string glob;
  std::vector<KeyValue> options;
};
/// @error invalid_argument  no colon, an empty half, or an option that does not parse.
Result<FieldPattern> parse_field_pattern(const std::string& text);

/// "a, b, c" of the paths that a pattern could have meant; at most 20.
std::string field_list_text(std::span<const InputField> fields);

/// An error that names every pattern which matches no field and lists the fields.
Status check_patterns_match(std::span<const std::string> globs, std::string_view option,
                            std::span<const InputField> fields);

/// Whether --only and --exclude leave this field in.
bool selected(const InputField& field, std::span<const std::string> only,
              std::span<const std::string> exclude);

/// Decide for every selected field. Pure: the same on every rank.
/// @param file  defaults of all fields (chunk, layout, verify) and the memory cap.
/// @error invalid_argument  a pattern that matches nothing, loss asked of integers, a bad option.
Result<std::vector<PlannedField>> plan_fields(std::span<const InputField> fields,
                                              const FieldRequests& requests,
                                              const FileOptions& file, bool chunk_given,
                                              int n_ranks);

}  // namespace tailrace::cli
