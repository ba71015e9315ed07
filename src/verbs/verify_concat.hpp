// verify --concat: checks that every element of every input is in the output, and nothing else.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concat/check/concat_check.hpp"
#include "verbs/report_fields.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::verbs {

struct VerifyConcatRequest {
  std::string output;
  std::vector<std::string> files;      ///< The inputs, in order,
  std::string list_path;               ///< or the path of a list of them.
  std::string key_names;               ///< Same as for concat; empty: none.
  std::string memory;                  ///< Memory limit of each rank; empty: 256 MiB.
  std::string tile;                    ///< Same as for concat.
  std::string on_different = "error";  ///< Same as for concat.
  bool follow_external = false;        ///< Compare values in other files, too (OtherFiles).
};

struct VerifyConcatReport {
  std::string output;
  std::vector<std::string> inputs;
  int n_ranks = 1;
  std::vector<std::string> keys;
  std::uint64_t n_datasets = 0;
  std::uint64_t n_empty = 0;
  std::uint64_t n_rows = 0;
  std::uint64_t raw_bytes = 0;
  ConcatFindings findings;  ///< Findings of all ranks, in the order of the inputs.
  /// Differences between inputs, in objects that the output has from the first input. Rank 0.
  std::vector<std::string> remarks;
  double total_s = 0;

  bool ok() const { return findings.n_all == 0; }
};

/// Read output and inputs with HDF5 only and compare them. Collective.
/// @error errors that prevent the comparison; differences are not errors.
Result<VerifyConcatReport> verify_concat(const VerbRanks& ranks,
                                         const VerifyConcatRequest& request);

/// Gather the findings of all ranks, in rank order, on every rank. Collective.
ConcatFindings share_findings(Comm& comm, const ConcatFindings& mine);

template <class Visit>
void report_fields(const VerifyConcatReport& report, Visit&& visit) {
  document_head("", visit);
  visit("output", report.output);
  visit("n_files", report.inputs.size());
  visit("n_ranks", report.n_ranks);
  visit("n_datasets", report.n_datasets);
  visit("n_empty", report.n_empty);
  visit("n_rows", report.n_rows);
  visit("raw_bytes", report.raw_bytes);
  visit("keys", report.keys);
  visit("n_differences", report.findings.n_all);
  visit("differences", report.findings.lines);
  visit("remarks", report.remarks);
  visit("total_s", report.total_s);
  visit("ok", report.ok());
}

}  // namespace tailrace::verbs
