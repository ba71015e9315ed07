// The inputs of the verbs, and how a user names fields in them: globs, and options for those that
// match.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.hpp"
#include "core/status.hpp"
#include "read/read.hpp"

namespace tailrace::verbs {

/// Let HDF5 look for filter plug-ins in these folders first, also when it reads. Must come before
/// the first HDF5 call, which is when HDF5 looks at its environment.
void search_plugins_in(const std::string& folders);

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

/// "a, b, c" of the paths that a pattern could have meant; at most 20.
std::string field_list_text(std::span<const StoredDataset> fields);

}  // namespace tailrace::verbs
