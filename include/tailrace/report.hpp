// The reports of Tailrace's C++ API: those of tailrace.h as values that may be kept.
//
// A tailrace_step_report is the file's and goes with its next step; these are copies of it. Units
// and meanings stand in tailrace.h. Included by tailrace.hpp.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tailrace/tailrace.h>
#include <tailrace/report_lists.hpp>

namespace tailrace {
inline namespace api {

/// What became of one field in one step; see tailrace_field_report for meanings and units.
struct FieldReport {
  std::string path;
  std::string bound;
  double ratio = 1;
  TAILRACE_FIELD_REPORT_LIST(TAILRACE_REPORT_MEMBER)
};

/// What became of one step; see tailrace_step_report for meanings and units.
struct StepReport {
  std::vector<FieldReport> fields;
  double ratio = 1;
  TAILRACE_STEP_REPORT_LIST(TAILRACE_REPORT_MEMBER)
  TAILRACE_APPLICATION_STEP_LIST(TAILRACE_REPORT_MEMBER)
  /// False: there is no report yet, and all else is 0. From end_step() of the modes async and
  /// in_situ, which hand a step over and report the one before: the first has none before it.
  bool completed = true;
};

#define TAILRACE_REPORT_COPY(type, name, known) to.name = static_cast<type>(from.name);

/// A copy that may be kept. Not collective. Thread-safe.
inline FieldReport copy_of(const tailrace_field_report& from) {
  FieldReport to;
  to.path = from.path;
  to.bound = from.bound;
  to.ratio = from.ratio;
  TAILRACE_FIELD_REPORT_LIST(TAILRACE_REPORT_COPY)
  return to;
}

inline StepReport copy_of(const tailrace_step_report& from) {
  StepReport to;
  to.ratio = from.ratio;
  TAILRACE_STEP_REPORT_LIST(TAILRACE_REPORT_COPY)
  TAILRACE_APPLICATION_STEP_LIST(TAILRACE_REPORT_COPY)
  for (std::uint64_t i = 0; i < from.n_fields; ++i) to.fields.push_back(copy_of(*from.fields[i]));
  return to;
}

#undef TAILRACE_REPORT_COPY

}  // namespace api
}  // namespace tailrace
