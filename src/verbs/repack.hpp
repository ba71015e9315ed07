// repack: an existing file in, a compressed HDF5 file out, in parallel and in bounded memory.

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

/// Whether the output's dimensions get names of netCDF-4, and which.
struct NetcdfRequest {
  bool wanted = false;
  std::vector<std::string> dimensions;  ///< "GLOB=time,y,x"; later ones win.
};

/// What options begin as here: a file is repacked for its bytes (docs/choice.md).
inline FileOptions repack_options() {
  FileOptions options;
  options.objective = Objective::balanced;
  return options;
}

struct RepackRequest {
  std::string input;
  std::string output;
  std::string raw_format;  ///< "f32:512x512x512"; empty: the input says what it is.
  FieldRequests fields;
  NetcdfRequest netcdf;
  bool cmip7 = false;        ///< As check_cmip7_packing wants it: layout front, chunks by rule.
  bool cloud = false;        ///< For readers over a network: the same, chunks of 8 to 16 MiB.
  bool as_stored = false;    ///< Chunks are copied; only where they lie is new.
  bool whole_times = false;  ///< With as_stored: but the time and its bounds are one chunk each.
  bool follow_external = false;  ///< Values in other files, too (OtherFiles).
  bool skip_unreadable = false;  ///< Leave out objects that HDF5 cannot open.
  bool roles = true;  ///< A bound for all is for fields of role value (policy/roles.hpp).
  FileOptions options = repack_options();  ///< With `trace`, the report has the events.
  bool chunk_given = false;                ///< The user has named the size or shape of chunks.
  bool memory_given = false;               ///< ... and options.memory_bytes, which then must do.
  std::string scratch;  ///< "off", or the folder of scratch files; empty: beside the output.
};

/// What became of one file.
struct RepackReport {
  std::string input_path;
  std::string input_format;
  std::uint64_t input_bytes = 0;
  std::string output_path;
  int n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Encode threads a rank.
  FileOptions options;
  std::vector<PlannedField> plan;        ///< In the order of step.fields.
  StepReport step;                       ///< file_bytes: at rank 0.
  std::uint64_t scratch_bytes = 0;       ///< Values that all ranks kept in scratch files.
  double total_s = 0;                    ///< From opening the input to the closed output.
  std::vector<OtherDataset> others;      ///< Of other types, and not compressed: copied as stored.
  std::vector<std::string> remarks;      ///< What could not be carried over; at rank 0.
  std::vector<std::string> unreadable;   ///< Objects that were left out, and why; on every rank.
  std::vector<TraceEvent> events;        ///< options.trace: of all ranks, at rank 0.
  std::vector<std::string> field_paths;  ///< By the events' field_index.
};

/// The outputs of these inputs, one each: `output` itself, or names in it if it is a folder.
/// Not collective. @error invalid_argument  several inputs into one file, or two into the same.
Result<std::vector<std::string>> repack_outputs(const std::vector<std::string>& inputs,
                                                const std::string& output, bool netcdf);

/// Write request.output, whole or not at all. Every rank opens the input by itself and encodes
/// whole chunks of the output; nothing is held but the chunks in flight.
/// Collective. @error what opening, planning and writing return; an older output stays then.
/// @error out_of_memory  request.memory_given, and a stored chunk takes more to be decoded.
Result<RepackReport> repack(const VerbRanks& ranks, const RepackRequest& request);

// --- what the report tells; docs/cli.md explains the names
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

/// A field of the step, and what the plan says of it.
struct RepackedField {
  const FieldReport& field;
  const PlannedField* planned;  ///< Null: none.
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
