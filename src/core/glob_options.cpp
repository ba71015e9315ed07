// Options by globs: parses the text, and selects the options of one variable.

#include "core/glob_options.hpp"

#include <algorithm>

#include "core/codec_registry.hpp"
#include "core/environment.hpp"
#include "core/option_table.hpp"
#include "trz/base/regions.hpp"

namespace tailrace {

namespace {

/// Drop options that only floating-point measurements may have.
void keep_exactly(FieldOptions& options) {
  options.bound = ErrorBound();
  options.bound_given = true;  // a target then does not change it
  if (codec_entry(options.codec).loss != Loss::by_purpose) return;
  options.codec = kExactCodec;
  options.codec_settings.clear();
}

}  // namespace

Result<FieldOptions> options_by_glob(const std::string& path, std::size_t n_dimensions, bool exact,
                                     const GlobOptions& options) {
  FieldOptions made = options.file.field_defaults;
  // A chunk shape given for many variables applies only to those with its number of dimensions.
  const auto fits = [&] { return !made.chunk_shape || made.chunk_shape->size() == n_dimensions; };
  if (!fits()) made.chunk_shape.reset();
  if (exact) keep_exactly(made);
  for (const auto& [pattern, text] : options.variable_options) {
    if (!glob_matches(pattern, path)) continue;
    const bool for_field = made.codec_given_for_field;
    const std::optional<Shape> chunk_shape = made.chunk_shape;
    TAILRACE_TRY(apply_field_options(text, made).within("options of \"" + pattern + "\""));
    if (names_alone(pattern, path)) continue;
    made.codec_given_for_field = for_field;
    if (!fits()) made.chunk_shape = chunk_shape;
    if (exact) keep_exactly(made);
  }
  if (exact) TAILRACE_TRY(take_codec_for_own_bound(path, n_dimensions, options, made));
  return made;
}

Status take_codec_for_own_bound(const std::string& path, std::size_t n_dimensions,
                                const GlobOptions& options, FieldOptions& made) {
  if (made.bound.lossless() || made.codec_given_for_field) return Status();
  TAILRACE_TAKE(const FieldOptions full, options_by_glob(path, n_dimensions, false, options));
  if (full.codec == made.codec) return Status();
  made.codec = full.codec;
  made.codec_settings = full.codec_settings;
  return Status();
}

bool names_alone(std::string_view pattern, std::string_view path) {
  if (!has_wildcard(pattern)) return glob_matches(pattern, path);
  const bool is_path = pattern == path || (path.starts_with('/') && pattern == path.substr(1));
  return is_path || pattern == path.substr(path.rfind('/') + 1);
}

bool named_alone(const std::string& path, const GlobOptions& options) {
  return std::ranges::any_of(options.variable_options,
                             [&](const auto& entry) { return names_alone(entry.first, path); });
}

bool may_lose(const FieldOptions& options, bool floating, bool aims) {
  if (!floating) return false;
  const bool chosen = options.codec == kAutoCodec || !options.codec_given;
  if (!chosen && codec_entry(options.codec).loss == Loss::never) return false;
  // Codecs that lose digits without a bound (zfp) are recognised by these settings.
  const auto by_itself = [](const KeyValue& setting) {
    return setting.first == "rate" || setting.first == "precision";
  };
  return !options.bound.lossless() || (aims && !options.bound_given) ||
         std::ranges::any_of(options.codec_settings, by_itself);
}

std::string idle_globs_remark(const GlobOptions& options, std::span<const std::string> paths,
                              const std::set<std::string>& component_globs) {
  std::string idle;
  const auto note = [&](const std::string& pattern) {
    idle += (idle.empty() ? "\"" : ", \"") + pattern + "\"";
  };
  for (const auto& [pattern, of_variable] : options.variable_options) {
    const auto is_named = [&glob = pattern](const std::string& path) {
      return glob_matches(glob, path);
    };
    if (std::ranges::none_of(paths, is_named)) note(pattern);
  }
  for (const auto& [pattern, bound] : options.component_bounds) {
    if (!component_globs.contains(pattern)) note("component:" + pattern);
  }
  if (idle.empty()) return idle;
  return "these options match nothing in the file: " + idle;
}

Result<std::vector<ComponentBound>> parse_component_bounds(std::string_view entry,
                                                           std::string_view form) {
  const std::size_t colon = entry.substr(0, entry.find('=')).rfind(':');
  const std::string glob(trimmed(entry.substr(0, std::min(colon, entry.size()))));
  if (colon == std::string_view::npos || glob.empty()) {
    return Status(Code::invalid_argument, "expected " + std::string(form));
  }
  TAILRACE_TAKE(const std::vector<KeyValue> pairs,
                split_key_values(trimmed(entry.substr(colon + 1))));
  std::vector<ComponentBound> components;
  for (const auto& [key, value] : pairs) {
    if (key != "bound") {
      return Status(
          Code::invalid_argument,
          "a component takes only bound= (all other options apply to its whole dataset), not " +
              key + "=");
    }
    TAILRACE_TAKE(const ErrorBound bound, parse_error_bound(value));
    components.push_back({glob, bound});
  }
  return components;
}

// --- The text.

namespace {

/// Find the colon of "GLOB: options": the first one without a preceding '='. After an '=' a colon
/// belongs to a value (cd=1:2:3).
std::size_t colon_of(std::string_view entry) {
  const std::size_t colon = find_unescaped(entry, ":");
  return colon < entry.find('=') ? colon : std::string_view::npos;
}

Status apply_component_entry(std::string_view entry, GlobOptions& options) {
  TAILRACE_TAKE(const std::vector<ComponentBound> components,
                parse_component_bounds(entry, "component:NAME: bound=..."));
  for (const auto& [glob, bound] : components) {
    if (bound.mode == BoundMode::pw_rel) {
      return Status(Code::unsupported,
                    "a component's bound must be abs, rel, psnr or none, not pw_rel");
    }
    options.component_bounds.emplace_back(glob, bound);
  }
  return Status();
}

Status apply_entry(std::string_view entry, GlobOptions& options) {
  if (entry.starts_with(kComponentEntry)) {
    return apply_component_entry(entry.substr(kComponentEntry.size()), options);
  }
  const std::size_t colon = colon_of(entry);
  if (colon != std::string_view::npos) {
    const std::string pattern(trimmed(entry.substr(0, colon)));
    const std::string text(trimmed(entry.substr(colon + 1)));
    if (pattern.empty())
      return Status(Code::invalid_argument, "expected a variable's name before the ':'");
    FieldOptions tried;  // a codec from this entry only, if any: its base is not known yet
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

Status apply_glob_options(std::string_view text, GlobOptions& options, const std::string& file) {
  GlobOptions made = options;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const std::size_t end = std::min(line.find(';'), line.size());
      const std::string_view entry = trimmed(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
      if (entry.empty()) continue;
      const Status applied = apply_entry(entry, made);
      if (!applied.ok() && !file.empty()) {
        // Do not show content: the user who names the file may lack the right to read it.
        return Status(applied.code(), file + ", line " + std::to_string(line_number) +
                                          ": unknown option or invalid value; expected entries "
                                          "such as \"temp*: codec=trz,bound=abs=1e-3\"");
      }
      TAILRACE_TRY(applied.within("options \"" + std::string(entry) + "\""));
    }
  }
  options = std::move(made);
  return Status();
}

// --- The environment.

Result<OptionsText> options_text_of_environment() {
  const char* variable = environment_variable("TAILRACE_OPTIONS");
  if (variable == nullptr) return OptionsText();
  std::string text = variable;
  const bool named = text.starts_with('@');
  if (named) text.erase(0, 1);
  // A path usually has no '='; options always have one.
  if (!named && (text.empty() || text.find('=') != std::string::npos)) return OptionsText{text, ""};
  Result<std::string> content = read_settings_file(text);
  if (content.ok()) return OptionsText{std::move(*content), text};
  return content.status().within(
      "TAILRACE_OPTIONS: neither options nor the path of an options file");
}

namespace {

/// Check that the codec exists and accepts these settings, on a chunk of floating-point values. An
/// error in any variable's options is thus found before a variable exists. Another entry may have
/// the bound.
Status check_codec(const FieldOptions& made, const std::string& plugin_path) {
  if (!made.codec_given || made.codec == kAutoCodec) return Status();
  const CodecEntry& entry = codec_entry(made.codec);
  if (entry.loss == Loss::unknown) return Status();  // An id=NUMBER codec: the user is responsible.
  CodecRequest request{made.codec, made.codec_settings, DType::f32, {16, 16, 16}};
  request.pointwise_bound = pointwise_bound(made.bound);
  request.guards = made.guards;
  const bool bound = !made.bound.lossless();
  if (request.pointwise_bound == 0 && bound) request.absolute_bound = 1;
  const Status tried = make_codec(request, plugin_path).status();
  if (tried.ok() || bound || entry.loss != Loss::by_purpose) return tried;
  request.absolute_bound = 1;  // Another entry may supply it.
  return make_codec(request, plugin_path).status();
}

}  // namespace

Status check_codecs(const GlobOptions& options) {
  TAILRACE_TRY(check_codec(options.file.field_defaults, options.file.plugin_path));
  for (const auto& [pattern, text] : options.variable_options) {
    FieldOptions made;  // Without codec=, the settings are for the codec that another entry names.
    TAILRACE_TRY(apply_field_options(text, made).within("options of \"" + pattern + "\""));
    TAILRACE_TRY(
        check_codec(made, options.file.plugin_path).within("options of \"" + pattern + "\""));
  }
  return Status();
}

}  // namespace tailrace
