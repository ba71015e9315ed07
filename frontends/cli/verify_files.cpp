// Two files, field by field: what is compared with what, under which bound, and the comparison.
//
// The bound of a field is the user's (--bound, --field) if given, else what the Writer recorded in
// the dataset's attributes, else 0: a file that says nothing about loss is expected to have none.

#include "verify_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "describe/field_attributes.hpp"
#include "verify_task.hpp"
#include "core/option_table.hpp"

namespace tailrace::cli {
namespace {

/// Bounds and fill values asked on the command line.
struct VerifyRequests {
  std::optional<ErrorBound> bound;
  std::vector<FieldPattern> patterns;
};

Result<VerifyRequests> parse_requests(const VerifyArguments& arguments) {
  VerifyRequests requests;
  if (!arguments.bound.empty()) {
    Result<ErrorBound> bound = parse_error_bound(arguments.bound);
    if (!bound.ok()) return bound.status().within("--bound");
    requests.bound = *bound;
  }
  for (const std::string& text : arguments.per_field) {
    Result<FieldPattern> pattern = parse_field_pattern(text);
    if (!pattern.ok()) return pattern.status();
    for (const auto& [key, value] : pattern->options) {
      if (key == "bound" || key == "fill") continue;
      return Status(Code::invalid_argument,
                    fmt::format("--field '{}': verify knows bound= and fill=, not {}=", text, key));
    }
    requests.patterns.push_back(*pattern);
  }
  return requests;
}

/// The bound that one field is held to.
Status resolve_bound(const InputField& field, const VerifyRequests& requests,
                     const FieldAttributes& recorded, VerifyTask& task) {
  std::optional<ErrorBound> asked = requests.bound;
  // A bound for all fields means loss where loss is possible; see repack_plan.hpp.
  if (asked && (!is_floating(field.dtype) || (recorded.by_tailrace && recorded.bound.lossless()))) {
    asked.reset();
  }
  FieldOptions options;
  for (const FieldPattern& pattern : requests.patterns) {
    if (!glob_matches(pattern.glob, field.path)) continue;
    for (const KeyValue& entry : pattern.options) {
      TAILRACE_TRY(apply_field_option(entry, options));
      if (entry.first == "bound") asked = options.bound;
    }
  }
  if (options.fill_value) task.fill_value = options.fill_value;

  task.bound_known = asked.has_value() || recorded.by_tailrace;
  if (!asked) {
    task.asked = recorded.bound;
    task.absolute_bound = recorded.absolute_bound;
    task.pointwise_bound = recorded.pointwise_bound;
    return Status();
  }
  task.asked = *asked;
  task.resolve_range = asked->needs_range();
  if (asked->mode == BoundMode::abs) task.absolute_bound = asked->value;
  task.pointwise_bound = pointwise_bound(*asked);
  if (task.psnr_asked()) task.absolute_bound = std::numeric_limits<double>::infinity();
  return Status();
}

/// Pair the fields of both files by path. What cannot be paired becomes a problem in words.
struct Pairing {
  std::vector<VerifyTask> tasks;
  std::vector<std::string> problems;
};

std::string difference_text(const InputField& original, const InputField& compressed) {
  if (original.shape != compressed.shape) {
    return fmt::format("field \"{}\": shape {} in the original, {} in the compressed file",
                       original.path, shape_text(original.shape), shape_text(compressed.shape));
  }
  if (original.dtype != compressed.dtype) {
    return fmt::format("field \"{}\": type {} in the original, {} in the compressed file",
                       original.path, dtype_name(original.dtype), dtype_name(compressed.dtype));
  }
  return "";
}

Result<Pairing> pair_fields(const VerifyArguments& arguments, const VerifyRequests& requests,
                            const InputFile& original, const InputFile& compressed) {
  TAILRACE_TRY(check_patterns_match(arguments.only, "--only", original.fields()));
  TAILRACE_TRY(check_patterns_match(arguments.exclude, "--exclude", original.fields()));
  for (const FieldPattern& pattern : requests.patterns) {
    TAILRACE_TRY(check_patterns_match(std::vector{pattern.glob}, "--field", original.fields()));
  }
  Pairing pairing;
  std::vector<std::string> paths;
  for (std::size_t f = 0; f < original.fields().size(); ++f) {
    const InputField& field = original.fields()[f];
    if (!selected(field, arguments.only, arguments.exclude)) continue;
    const auto& others = compressed.fields();
    const auto other = std::find_if(others.begin(), others.end(), [&](const InputField& candidate) {
      return candidate.path == field.path;
    });
    if (other == others.end()) {
      pairing.problems.push_back(
          fmt::format("field \"{}\" is missing in the compressed file", field.path));
      continue;
    }
    if (const std::string text = difference_text(field, *other); !text.empty()) {
      pairing.problems.push_back(text);
      continue;
    }
    VerifyTask task;
    task.path = field.path;
    task.dtype = field.dtype;
    task.shape = field.shape;
    task.original_index = f;
    task.compressed_index = static_cast<std::size_t>(other - others.begin());
    task.box_shape = box_shape_for(field.shape, other->chunk_shape, field.dtype);
    task.fill_value = other->fill_value ? other->fill_value : field.fill_value;
    task.raw_bytes = n_elements(field.shape) * dtype_bytes(field.dtype);
    task.stored_bytes = other->stored_bytes;
    pairing.tasks.push_back(std::move(task));
    paths.push_back(field.path);
  }
  Result<std::vector<FieldAttributes>> recorded =
      read_field_attributes(arguments.compressed, paths);
  if (!recorded.ok()) return recorded.status();
  for (std::size_t t = 0; t < pairing.tasks.size(); ++t) {
    VerifyTask& task = pairing.tasks[t];
    task.codec = (*recorded)[t].codec;
    TAILRACE_TRY(
        resolve_bound(original.fields()[task.original_index], requests, (*recorded)[t], task));
  }
  return pairing;
}

}  // namespace

Status verify_files(Session& session, const VerifyArguments& arguments,
                    const VerifyProgress& progress, VerifyOutcome& outcome) {
  Result<VerifyRequests> requests = parse_requests(arguments);
  if (!requests.ok()) return requests.status();
  Result<std::unique_ptr<InputFile>> original =
      open_input(arguments.original, arguments.raw_format);
  TAILRACE_TRY(session.settle(original.status()));
  Result<std::unique_ptr<InputFile>> compressed = InputFile::open(arguments.compressed);
  TAILRACE_TRY(session.settle(compressed.status()));
  Result<Pairing> pairing = pair_fields(arguments, *requests, **original, **compressed);
  TAILRACE_TRY(session.settle(pairing.status()));
  outcome.tasks = std::move(pairing->tasks);
  outcome.problems = std::move(pairing->problems);
  if (outcome.tasks.empty() && outcome.problems.empty()) {
    return Status(Code::invalid_argument,
                  fmt::format("{} holds no number arrays to compare", arguments.original));
  }
  outcome.original_path = arguments.original;
  outcome.compressed_path = arguments.compressed;
  TAILRACE_TRY(resolve_ranges(**original, session.comm, outcome.tasks));

  Result<std::vector<VerifyFinding>> findings =
      compare_fields(**original, **compressed, session.comm, outcome.tasks, progress);
  if (!findings.ok()) return findings.status();
  outcome.findings = std::move(*findings);
  return Status();
}

}  // namespace tailrace::cli
