// GlobOptions: options of a file whose datasets a program makes itself, so that they are found by
// globs over their names; as a text, a file or TAILRACE_OPTIONS has them.
//
// Array files (array/array_file.hpp) and with them the frontends for PnetCDF and HDF5 stand on it,
// and so does the preloaded library for serial HDF5, which has no engine.

#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/options.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

struct GlobOptions {
  FileOptions file;  ///< field_defaults are every variable's.
  /// Per variable, by glob over its path ("/g/name"; without '/': its name), later ones on top:
  /// "temp*" -> "codec=trz,bound=abs=1e-3".
  std::vector<std::pair<std::string, std::string>> variable_options;
  /// Per component of plotfiles that HDF5 programs write, by glob over its name, later ones on top.
  std::vector<std::pair<std::string, ErrorBound>> component_bounds;
  std::string spill_folder;  ///< Of what is staged; empty: TMPDIR, or /tmp.
};

/// Parse the text of an options file or environment variable: lines or ';'-separated entries, each
/// either file options ("memory=256MB,codec=trz"), or "GLOB: options" for variables, or
/// "component:GLOB: bound=..."; '#' comments. @param file  where the text was read; empty: given as
/// a text. @error invalid_argument  names the entry, or the line of the file and nothing in it.
Status apply_glob_options(std::string_view text, GlobOptions& options,
                          const std::string& file = "");

struct OptionsText {
  std::string text;
  std::string file;  ///< Where the text was read; empty: the variable has it.
};
/// What TAILRACE_OPTIONS says: a text, or the content of a file ("@FILE", or its path); empty where
/// it is not set. @error invalid_argument  neither options nor a regular file of at most 1 MiB.
Result<OptionsText> options_text_of_environment();

/// Whether all codecs that are named are there and take their settings: tried on a chunk of
/// measurements, so that what is wrong for any variable fails before there is one.
/// @error as of make_codec(), within the glob
Status check_codecs(const GlobOptions& options);

/// What the options say to the variable of this path: the file's defaults, with those of the globs
/// that match on top. @param exact  it keeps its values, unless a pattern that names it says
/// otherwise.
Result<FieldOptions> options_by_glob(const std::string& path, std::size_t n_dimensions, bool exact,
                                     const GlobOptions& options);
/// Whether a pattern without wildcards names it.
bool named_alone(const std::string& path, const GlobOptions& options);
/// True if values of a field with these options may change when they are encoded.
/// @param aims  a target of the file gives bounds to fields without one.
bool may_lose(const FieldOptions& options, bool floating, bool aims);
/// What the user should hear: globs that match none of these paths, and none of these components'
/// names. Empty: there are none.
std::string idle_globs_remark(const GlobOptions& options, std::span<const std::string> paths,
                              const std::set<std::string>& component_globs);

/// What is asked of the components whose names match.
struct ComponentBound {
  std::string glob;
  ErrorBound bound;
};
inline constexpr std::string_view component_entry = "component:";
/// "density: bound=rel=1e-3", behind component_entry; names may have colons. One for each bound=.
/// @param form  how the user writes such an entry, for the message. @error invalid_argument
Result<std::vector<ComponentBound>> parse_component_bounds(std::string_view entry,
                                                           std::string_view form);

}  // namespace tailrace
