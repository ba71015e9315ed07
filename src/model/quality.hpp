// Quality: the error bound that a wished PSNR or a wished size comes to.
//
// Inverse models. The PSNR follows from the errors' variance: quantisation spreads errors evenly
// within the bound, which makes bound^2 / 3; what a sample's errors show instead corrects that
// (values that are predicted exactly, for instance, have no error). The size follows from sizes
// predicted at a few bounds, between which it is taken as a power of the bound. Both say "about":
// mode psnr= is the one that guarantees.

#pragma once

#include <optional>
#include <span>

namespace tailrace {

/// The absolute bound at which errors of this variance share make `psnr_db`.
/// Not collective. @param value_range  > 0.  @param variance_share  variance of the errors over
/// bound^2 / 3, > 0; 1: even within the bound.
double bound_for_psnr(double psnr_db, double value_range, double variance_share);

/// PSNR in dB that a bound makes; the inverse of bound_for_psnr.
double psnr_for_bound(double absolute_bound, double value_range, double variance_share);

/// What all fields together come to under one bound.
struct SizeAtBound {
  double relative_bound = 0;  ///< Of each field's value range.
  double encoded_bytes = 0;
};

/// The tightest relative bound whose size is at most target_bytes.
/// Not collective. @param sizes  at least one, from the loosest bound to the tightest. A size that
/// is smaller than one at a looser bound is taken as equal to it.
/// @returns nothing if even the loosest bound makes more.
std::optional<double> tightest_bound(std::span<const SizeAtBound> sizes, double target_bytes);

}  // namespace tailrace
