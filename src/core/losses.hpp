// Losses: the bounds of the lossy encodings that values went through, oldest first.
//
// Errors add up: values that were stored within abs=0.01, decoded and stored within abs=0.01 again
// are within 0.02 of the original. A dataset that was encoded from lossy values records all its
// losses (docs/format.md), and its bound is their total. Which datasets are encoded again is the
// verbs' decision (verbs/repack_plan.hpp).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Bounds in mode abs or pw_rel; mode none stands for a loss of unknown size.
using Losses = std::vector<ErrorBound>;

/// "abs=0.01 then pw_rel=0.001 then unknown"; empty for no loss.
std::string losses_text(const Losses& losses);
/// Inverse of losses_text(). @error invalid_argument  another mode, no number, too many losses.
Result<Losses> parse_losses(std::string_view text);

/// The bound of all losses together, rounded up: the sum of absolute ones, (1 + a)(1 + b) - 1 of
/// pointwise ones, mode none for no loss. Nothing if no bound can be stated: the size of a loss is
/// unknown, or losses of both modes are mixed.
std::optional<ErrorBound> total_of(const Losses& losses);

/// The losses behind `earlier`, where `all` begins with these; nothing where it does not.
std::optional<Losses> losses_since(const Losses& all, const Losses& earlier);

/// True if a registered filter changes values whatever its settings are, as far as it is known.
bool always_lossy(std::uint32_t filter_id);

/// Attributes and filters of a dataset, as far as they tell of losses.
struct LossFacts {
  std::string recorded;  ///< losses_attribute; empty: absent.
  std::string mode;      ///< bound_mode_attribute; empty: absent.
  std::optional<double> asked;
  std::optional<double> absolute_bound;
  bool lossy_filter = false;  ///< One of the filters drops digits.
};
/// The losses that a dataset certainly has.
Losses losses_of(const LossFacts& facts);

}  // namespace tailrace
