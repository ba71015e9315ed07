// The facts of a field's values on which the one rule on wide bounds (policy/bound_width) decides.
//
// A rank's pass over its values comes before the range of all is known. Therefore it keeps how
// often its own extremes occur, its next ones, and a sample of magnitudes. What these mean beside
// the range of all ranks goes with an agreement that is made anyway.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/verify.hpp"
#include "core/comm.hpp"
#include "policy/bound_width.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace {

struct FieldState;

/// This rank's values of one field, as far as the rule asks for them.
struct RangeEvidence {
  ValueRange range;
  MagnitudeSample sample;

  /// Cost: one pass over the values.
  void add(DType dtype, std::span<const std::byte> values, std::optional<double> fill_value);
  /// Beside the range of all ranks and the bound that it makes.
  ValueFacts facts(double least, double greatest, double absolute_bound) const;
};

/// Facts of values that one process has all of.
ValueFacts facts_of(const ValueRange& range, const MagnitudeCount& magnitudes);

/// The verdicts on the bounds of new fields, which are resolved (ValueRanges).
class BoundVerdicts {
 public:
  explicit BoundVerdicts(const std::vector<FieldState>& fields);
  BoundVerdicts(const BoundVerdicts&) = delete;
  BoundVerdicts& operator=(const BoundVerdicts&) = delete;
  /// To be reduced over all ranks; they stand here.
  RankNumbers numbers();
  /// Note the verdicts in these very fields, as soon as the numbers are all ranks'.
  void note(std::vector<FieldState>& fields) const;

 private:
  struct Entry {
    std::size_t field = 0;
    ValueFacts facts;
    double greatest_negated = 0;  ///< The next greatest value, negated: minima are reduced.
  };
  std::vector<Entry> entries_;
};

/// Where values come step by step, and where parts of variables come in any order.
inline constexpr DoorWords words_of_steps = {
    "fill=VALUE; tailrace repack: --field 'PATH:fill=VALUE', or --fill VALUE for all fields",
    "allow-wide-bound=on; tailrace repack: --allow-wide-bound"};
inline constexpr DoorWords words_of_arrays = {
    "fill_value=VALUE, netCDF's attribute _FillValue",
    "allow-wide-bound=on; in Python allow_wide_bound=True"};
inline constexpr DoorWords words_of_datasets = {
    "VALUE as the dataset's fill value, or as its attribute _FillValue",
    "allow-wide-bound=on in TAILRACE_OPTIONS"};

/// The refusal of a field whose codec would change values within a bound that an undeclared fill
/// value has widened; ok for others. Needs verdict and codec; the same on every rank.
/// @error invalid_argument
Status check_bound_width(const FieldState& field, const DoorWords& words);
/// The same of all new fields of a step: an error names each that is refused.
Status check_bound_widths(const std::vector<FieldState>& fields, const DoorWords& words);
/// As remark_text() of policy; empty where nothing is to be said.
std::string bound_width_remark(const FieldState& field, const DoorWords& words);

}  // namespace tailrace
