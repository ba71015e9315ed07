// Losses: the bounds of the lossy encodings that values went through, oldest first.
//
// Errors add up: values stored within abs=0.01, decoded and stored within abs=0.01 again are within
// 0.02 of the original. A dataset encoded from lossy values records all its losses
// (docs/format.md), and its bound is their total. The verbs decide which datasets to re-encode
// (verbs/repack_plan.hpp).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Bounds in mode abs or pw_rel; mode none represents a loss of unknown size.
using Losses = std::vector<ErrorBound>;

/// Format losses: "abs=0.01 then pw_rel=0.001 then unknown"; empty for no loss.
std::string losses_text(const Losses& losses);
/// Parse the format of losses_text(). @error invalid_argument  another mode, not a number, too many
/// losses.
Result<Losses> parse_losses(std::string_view text);

/// Return the bound of all losses together, rounded up. It is the sum of absolute ones, (1 + a)(1 +
/// b) - 1 of pointwise ones, mode none for no loss. Nothing if no bound can be stated: a loss has
/// unknown size, or both modes are mixed.
std::optional<ErrorBound> total_of(const Losses& losses);

/// Return the losses in `all` after `earlier`; nothing if `all` does not begin with `earlier`.
std::optional<Losses> losses_since(const Losses& all, const Losses& earlier);

/// Return true if a registered filter is known to change values whatever its settings are.
bool always_lossy(std::uint32_t filter_id);

/// Attributes and filters of a dataset that indicate losses.
struct LossFacts {
  std::string recorded;  ///< losses_attribute; empty: absent.
  std::string mode;      ///< bound_mode_attribute; empty: absent.
  std::optional<double> requested;
  std::optional<double> absolute_bound;
  bool lossy_filter = false;  ///< One of the filters drops digits.
};
/// Return the losses that a dataset certainly has.
Losses losses_of(const LossFacts& facts);

}  // namespace tailrace
