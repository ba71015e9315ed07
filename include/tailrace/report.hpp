// Reports of Tailrace's C++ API: the structs of tailrace.h as values that the caller owns.
//
// A tailrace_step_report belongs to the file and is invalid after its next step; these are copies.
// tailrace.h documents units and meanings. Included by tailrace.hpp.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tailrace/tailrace.h>
#include <tailrace/report_lists.hpp>

namespace tailrace {
inline namespace api {

/// Report of one field in one step; see tailrace_field_report for meanings and units.
struct FieldReport {
  std::string path;
  std::string bound;
  double ratio = 1;
  TAILRACE_FIELD_REPORT_LIST(TAILRACE_REPORT_MEMBER)
};

/// Report of one step; see tailrace_step_report for meanings and units.
struct StepReport {
  std::vector<FieldReport> fields;
  double ratio = 1;
  TAILRACE_STEP_REPORT_LIST(TAILRACE_REPORT_MEMBER)
  TAILRACE_APPLICATION_STEP_LIST(TAILRACE_REPORT_MEMBER)
  /// False: the report is empty and all other members are 0. The first end_step() in the modes
  /// async and in_situ returns this, because it reports the previous step.
  bool completed = true;
};

#define TAILRACE_REPORT_COPY(type, name, known) to.name = static_cast<type>(from.name);

/// Copy a report of the C API, so that it outlives the file's next step. Not collective.
/// Thread-safe.
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
