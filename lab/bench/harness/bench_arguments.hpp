// Arguments that several of the bench's command lines share: lists of bounds and bandwidths, fill
// values.

#pragma once

#include <string>
#include <vector>

#include "trz/base/error_bound.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

/// Bandwidth of the storage, for all ranks together or for each.
struct Bandwidth {
  double bytes_per_s = 0;  ///< 0: unlimited.
  bool per_rank = false;

  bool limited() const { return bytes_per_s > 0; }
  /// Bandwidth of all ranks together; 0: unlimited.
  double total(int n_ranks) const { return per_rank ? bytes_per_s * n_ranks : bytes_per_s; }
};

/// "25.0 MB/s/rank", "100 MB/s", "unlimited".
std::string bandwidth_text(const Bandwidth& bandwidth);

/// Parse "1,5,25MB/s/rank,unlimited". A number without a unit has the unit of the next number with
/// one. Not collective. @error invalid_argument
Result<std::vector<Bandwidth>> parse_bandwidths(const std::string& text);

/// Parse "rel=1e-2,1e-3,abs=5" and append bounds that `bounds` lacks. A number without a mode has
/// the mode of the bound before it. Not collective. @error invalid_argument
Status parse_bounds(const std::string& text, std::vector<ErrorBound>& bounds);

/// Fill value of the fields that match: stored exactly and excluded from the range.
struct FillChoice {
  std::string glob;
  double value = 0;
};

/// Parse "GLOB:VALUE", such as "levitus_*:-1e10", and append it. @error invalid_argument
Status parse_fill(const std::string& text, std::vector<FillChoice>& fills);

/// Bound of the fields that match, which overrides the common bound.
struct FieldBound {
  std::string glob;
  ErrorBound bound;
};

/// Parse "GLOB:MODE=VALUE", such as "temperature:abs=1e3", and append it. @error invalid_argument
Status parse_field_bound(const std::string& text, std::vector<FieldBound>& bounds);

/// Non-empty parts of `text` between the separators.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace tailrace::bench
