// repack: compresses an existing file to an HDF5 file, in parallel and in bounded memory.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/covered_cells.hpp"
#include "core/options.hpp"
#include "core/trace.hpp"
#include "field/box_codec.hpp"
#include "verbs/repack_plan.hpp"
#include "verbs/report_fields.hpp"
#include "verbs/verb_ranks.hpp"
#include "write/write.hpp"

namespace tailrace::verbs {

/// Requests netCDF-4 dimension names for the output.
struct NetcdfRequest {
  bool wanted = false;
  std::vector<std::string> dimensions;  ///< "GLOB=time,y,x"; later entries override earlier ones.
};

/// Initial options: repack minimizes the file among choices that cost little time
/// (docs/decisions.md).
inline FileOptions repack_options() {
  FileOptions options;
  options.objective = Objective::balanced;
  return options;
}

/// Form of the whole output, which decides on the chunks.
enum class Publish : std::uint8_t {
  none,
  cmip7,     ///< Meet check_cmip7_packing: layout front, chunks by its rules.
  cloud,     ///< Serve readers over a network: layout front, chunks of 8 to 16 MiB.
  as_stored  ///< Copy chunks; change only their positions.
};

/// Parse "cmip7", "cloud" or "as-stored". @error invalid_argument
Result<Publish> parse_publish(const std::string& text);

struct RepackRequest {
  std::string input;
  std::string output;
  std::string raw_format;  ///< "f32:512x512x512"; empty: the input describes itself.
  FieldRequests fields;
  NetcdfRequest netcdf;
  Publish publish = Publish::none;
  bool whole_times = false;      ///< Together with Publish::as_stored: make the time and its bounds
                                 ///< one chunk each.
  bool follow_external = false;  ///< Include values in other files, too (OtherFiles).
  bool skip_unreadable = false;  ///< Leave out objects that HDF5 cannot open.
  bool roles = true;             ///< Apply a bound for all fields only to those of role value
                                 ///< (policy/roles.hpp).
  FileOptions options = repack_options();  ///< `trace` adds events to the report.
  bool chunk_given = false;                ///< The user has set the size or shape of chunks.
  bool memory_given = false;               ///< The user has set options.memory_bytes; it must
                                           ///< suffice.
  std::string scratch;  ///< "off", or the folder of scratch files; empty: the output's folder.
};

/// Result for one file.
struct RepackReport {
  std::string input_path;
  std::string input_format;
  std::uint64_t input_bytes = 0;
  std::string output_path;
  int n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Encode threads per rank.
  FileOptions options;
  std::vector<PlannedField> plan;        ///< Plan in the order of step.fields.
  StepReport step;                       ///< Its file_bytes is set at rank 0 only.
  std::uint64_t scratch_bytes = 0;       ///< Bytes that all ranks wrote to scratch files.
  double total_s = 0;                    ///< Time from opening the input to the closed output.
  std::vector<OtherDataset> others;      ///< Datasets of other types that were copied as stored.
  std::vector<std::string> remarks;      ///< Content that could not be carried over; at rank 0.
  std::vector<std::string> unreadable;   ///< Objects that were left out, with the reasons; on every
                                         ///< rank.
  std::vector<TraceEvent> events;        ///< Events of all ranks, at rank 0; filled if
                                         ///< options.trace.
  std::vector<std::string> field_paths;  ///< Paths by the events' field_index.
};

/// Output path for each input: `output` itself, or a name in it if it is a folder. Not collective.
/// @error invalid_argument  several inputs for one file, or two for the same output.
Result<std::vector<std::string>> repack_outputs(const std::vector<std::string>& inputs,
                                                const std::string& output, bool netcdf);

/// Write request.output completely or not at all. Every rank opens the input independently and
/// encodes complete chunks of the output; memory holds only the chunks in flight.
/// Collective. @error errors of opening, planning and writing; an older output then remains.
/// @error out_of_memory  request.memory_given, and a stored chunk needs more memory to be decoded.
Result<RepackReport> repack(const VerbRanks& ranks, const RepackRequest& request);

// --- Report fields; docs/cli.md explains the names
// -----------------------------------------

/// A codec that was compared for a field.
struct RepackCandidate {
  const CandidateForecast& forecast;
  bool chosen;
};

template <class Visit>
void report_fields(const RepackCandidate& candidate, Visit&& visit) {
  const CandidateForecast& one = candidate.forecast;
  const bool usable = one.refused.empty();
  visit("codec", one.codec);
  visit("chosen", candidate.chosen);
  visit("refused", value_if(!usable, one.refused));
  if (usable) {
    visit("predicted_bytes", one.encoded_bytes);
    visit("predicted_encode_s", one.encode_s);
    visit("predicted_encode_lane_s", one.encode_lane_s);
    visit("predicted_write_lane_s", one.write_lane_s);
    visit("predicted_alone_s", one.alone_s);
  }
  if (one.measured_bytes > 0) {
    visit("measured_bytes", one.measured_bytes);
    visit("measured_encode_s", one.measured_encode_s);
  }
}

/// A field of the step with its plan.
struct RepackedField {
  const FieldReport& field;
  const PlannedField* planned;  ///< Null: not planned.
};

template <class Visit>
void report_fields(const RepackedField& repacked, Visit&& visit) {
  const FieldReport& field = repacked.field;
  visit("path", field.path);
  visit("dtype", field.type_text());
  visit("shape", field.shape);
  visit("chunk_shape", field.chunk_shape);
  const FieldBoxes* boxes =
      repacked.planned != nullptr ? repacked.planned->definition.boxes.get() : nullptr;
  const bool by_component = boxes != nullptr && !boxes->bounds.empty();
  visit("bound_mode",
        by_component ? std::string_view("component") : bound_mode_name(field.bound.mode));
  visit("bound_asked", field.bound.value);
  visit("max_error_over_bound", value_if(field.verified && field.bound_of_error() > 0,
                                         field.max_error / field.bound_of_error()));
  constexpr bool always = true;
  const bool verified = field.verified;
  const bool predicted = field.predicted_bytes > 0;
  const bool booked = field.book_bytes > 0;
#define TAILRACE_VISIT(type, name, known) visit(#name, value_if(known, field.name));
  TAILRACE_FIELD_REPORT_LIST(TAILRACE_VISIT)
#undef TAILRACE_VISIT
  visit("verify_s", field.verify_s);
  visit("expected_psnr_db", value_if(field.expected_psnr_db > 0, field.expected_psnr_db));
  if (!field.candidates.empty()) {
    std::vector<RepackCandidate> candidates;
    for (std::size_t c = 0; c < field.candidates.size(); ++c) {
      candidates.push_back({field.candidates[c], c == field.chosen_candidate});
    }
    visit("candidates", candidates);
  }
  if (by_component) visit("component_bounds", boxes->bounds);
  const CoveredCells* covered =
      repacked.planned != nullptr ? repacked.planned->definition.covered.get() : nullptr;
  if (covered != nullptr) {
    visit("n_covered", covered->n_cells() * covered->boxes().components.size());
  }
  if (repacked.planned != nullptr) {
    const PlannedField& planned = *repacked.planned;
    visit("role", value_if(planned.has_role, role_name(planned.verdict.role)));
    visit("role_because", value_if(planned.has_role, planned.verdict.because));
    visit("kept_exact_because", planned.exact_reason);
    visit("limits_kept", planned.keeps_limits ? planned.verdict.limits : std::vector<double>());
  }
  if (repacked.planned != nullptr) visit("quantization", repacked.planned->quantization);
  if (repacked.planned != nullptr)
    visit("losses_before", losses_text(repacked.planned->losses.losses));
}

template <class Visit>
void report_fields(const RepackReport& report, Visit&& visit) {
  const StepReport& step = report.step;
  visit("input", report.input_path);
  visit("input_format", report.input_format);
  visit("input_bytes", report.input_bytes);
  visit("output", report.output_path);
  visit("n_ranks", report.n_ranks);
  visit("n_threads", report.n_threads);
  visit("fsync", report.options.sync);
  visit("memory_cap_bytes", report.options.memory_bytes);
  visit("ratio", value_if(step.encoded_bytes > 0, static_cast<double>(step.raw_bytes) /
                                                      static_cast<double>(step.encoded_bytes)));
  constexpr bool always = true;
  const bool predicted = step.predicted_bytes > 0;
#define TAILRACE_VISIT(type, name, known) visit(#name, value_if(known, step.name));
  TAILRACE_STEP_REPORT_LIST(TAILRACE_VISIT)
#undef TAILRACE_VISIT
  visit("read_s", step.read_s);
  visit("scratch_bytes", report.scratch_bytes);
  visit("index_s", step.index_s);
  visit("total_s", report.total_s);
  visit("remarks", report.remarks);
  visit("unreadable", report.unreadable);
  std::vector<RepackedField> fields;
  for (std::size_t f = 0; f < step.fields.size(); ++f) {
    fields.push_back({step.fields[f], f < report.plan.size() ? &report.plan[f] : nullptr});
  }
  visit("fields", fields);
  visit("others", report.others);
}

}  // namespace tailrace::verbs
