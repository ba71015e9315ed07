// GlobOptions: options of a file whose datasets the program defines. Globs over dataset names
// select options; they come from a text, a file or TAILRACE_OPTIONS.
//
// Array files (array/array_file.hpp), and with them the frontends for PnetCDF and HDF5, use it. So
// does the preloaded library for serial HDF5, which has no engine.

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
  FileOptions file;  ///< field_defaults apply to every variable.
  /// Options per variable, by glob over its path ("/g/name"; without '/': its name); later entries
  /// override earlier ones: "temp*" -> "codec=trz,bound=abs=1e-3".
  std::vector<std::pair<std::string, std::string>> variable_options;
  /// Bounds per component of plotfiles that HDF5 programs write, by glob over the component's name;
  /// later entries override earlier ones.
  std::vector<std::pair<std::string, ErrorBound>> component_bounds;
  std::string spill_folder;  ///< Folder for spilled values; empty: TMPDIR, or /tmp.
};

/// Parse the text of an options file or environment variable: lines or ';'-separated entries. An
/// entry is file options ("memory=256MB,codec=trz"), "GLOB: options" for variables, or
/// "component:GLOB: bound=..."; '#' starts a comment.
/// @param file  origin of the text; empty: it was given as a text.
/// @error invalid_argument  names the entry, or the line number of the file without its content.
Status apply_glob_options(std::string_view text, GlobOptions& options,
                          const std::string& file = "");

struct OptionsText {
  std::string text;
  std::string file;  ///< File that the text was read from; empty: the variable itself.
};
/// Return the options in TAILRACE_OPTIONS: its text, or the content of a file ("@FILE", or its
/// path); empty if it is not set.
/// @error invalid_argument  neither options nor a regular file of at most 1 MiB.
Result<OptionsText> options_text_of_environment();

/// Check that all named codecs exist and accept their settings. Each is tried on a chunk of
/// floating-point values, so that an error in any variable's options is found before a variable
/// exists.
/// @error those of make_codec(), within the glob
Status check_codecs(const GlobOptions& options);

/// Return the options of the variable with this path: the file's defaults, overridden by matching
/// globs.
/// @param exact  the variable is lossless, unless a pattern that names it says otherwise.
Result<FieldOptions> options_by_glob(const std::string& path, std::size_t n_dimensions, bool exact,
                                     const GlobOptions& options);
/// Give an exact variable the codec of all variables again, if it has a bound of its own and no
/// codec of its own.
Status take_codec_for_own_bound(const std::string& path, std::size_t n_dimensions,
                                const GlobOptions& options, FieldOptions& made);
/// Return true if the pattern names the variable without wildcards. A name with brackets does.
bool names_alone(std::string_view pattern, std::string_view path);
/// Return true if a pattern without wildcards names the variable.
bool named_alone(const std::string& path, const GlobOptions& options);
/// True if values of a field with these options may change when they are encoded.
/// @param aims  a target of the file gives bounds to fields without one.
bool may_lose(const FieldOptions& options, bool floating, bool aims);
/// Return a remark for the user that lists the globs that match none of these paths or component
/// names; empty if all match.
std::string idle_globs_remark(const GlobOptions& options, std::span<const std::string> paths,
                              const std::set<std::string>& component_globs);

/// Bound requested for the components whose names match.
struct ComponentBound {
  std::string glob;
  ErrorBound bound;
};
inline constexpr std::string_view kComponentEntry = "component:";
/// Parse the part of an entry after kComponentEntry, "density: bound=rel=1e-3"; names may have
/// colons. Returns one element for each bound=.
/// @param form  syntax of the entry, for the message.
/// @error invalid_argument
Result<std::vector<ComponentBound>> parse_component_bounds(std::string_view entry,
                                                           std::string_view form);

}  // namespace tailrace
