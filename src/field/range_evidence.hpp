// Facts about a field's values from which the rule on wide bounds (policy/bound_width) decides.
//
// A rank scans its values before the range over all ranks is known. Therefore it records how often
// its extremes occur, its next extremes, and a sample of magnitudes. These facts, related to the
// range of all ranks, are reduced with an agreement that is made anyway.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "core/comm.hpp"
#include "policy/bound_width.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace {

struct FieldState;

/// Data on this rank's values of one field that the rule needs.
struct RangeEvidence {
  ValueRange range;
  MagnitudeSample sample;

  /// Cost: one pass over the values.
  void add(DType dtype, std::span<const std::byte> values, std::optional<double> fill_value);
  /// The facts, related to the range of all ranks and the bound derived from it.
  ValueFacts facts(double least, double greatest, double absolute_bound) const;
};

/// Facts of values that one process holds completely.
ValueFacts facts_of(const ValueRange& range, const MagnitudeCount& magnitudes);

/// Verdicts on the bounds of new fields, which are resolved (ValueRanges).
class BoundVerdicts {
 public:
  explicit BoundVerdicts(const std::vector<FieldState>& fields);
  BoundVerdicts(const BoundVerdicts&) = delete;
  BoundVerdicts& operator=(const BoundVerdicts&) = delete;
  /// Numbers to reduce over all ranks, in place.
  RankNumbers numbers();
  /// Store the verdicts in the same fields, once the numbers are reduced.
  void note(std::vector<FieldState>& fields) const;

 private:
  struct Entry {
    std::size_t field = 0;
    ValueFacts facts;
    double greatest_negated = 0;  ///< The next greatest value, negated: minima are reduced.
  };
  std::vector<Entry> entries_;
};

/// Advice in messages of interfaces that write step by step, that put parts of variables in any
/// order, and that serve HDF5's calls.
inline constexpr OptionSyntax kSyntaxOfSteps = {
    "fill=VALUE; tailrace repack: --field 'PATH:fill=VALUE', or --fill VALUE for all fields",
    "allow-wide-bound=on; tailrace repack: --allow-wide-bound"};
inline constexpr OptionSyntax kSyntaxOfArrays = {
    "fill_value=VALUE, netCDF's attribute _FillValue",
    "allow-wide-bound=on; in Python allow_wide_bound=True"};
inline constexpr OptionSyntax kSyntaxOfDatasets = {
    "VALUE as the dataset's fill value, or as its attribute _FillValue",
    "allow-wide-bound=on in TAILRACE_OPTIONS"};

/// Store a refused field exactly instead, for a program that cannot answer the refusal: it runs
/// unchanged, or closes the file. Needs verdict and codec; the same on every rank. Drops the bound
/// and the guards, and replaces a codec that has no lossless form.
/// @returns the refusal's text; empty for a field that is not refused.  @error as prepare_codecs()
Result<std::string> store_refused_exactly(Comm& comm, FieldState& field,
                                          const std::string& plugin_path,
                                          const OptionSyntax& syntax);
/// Refuse a field whose bound was widened by an undeclared fill value, if its codec would change
/// values within that bound; ok for others. Needs verdict and codec; the same on every rank.
/// @error invalid_argument
Status check_bound_width(const FieldState& field, const OptionSyntax& syntax);
/// check_bound_width() for all new fields of a step: the error names each refused field.
Status check_bound_widths(const std::vector<FieldState>& fields, const OptionSyntax& syntax);
/// Remark on a bound given with a codec without loss that the user named; empty: no such bound.
std::string unused_bound_remark(const FieldState& field);
/// Remark on the bound: remark_text() of policy, or unused_bound_remark(); empty if it needs none.
std::string bound_width_remark(const FieldState& field, const OptionSyntax& syntax);

}  // namespace tailrace
